//! ConvertToDataflow: runs of pure bindings become dataflow blocks.

use super::canonicalize_bindings::canonicalize;
use super::support::{is_impure, map_functions};
use crate::pass::{Pass, PassCx};
use std::collections::BTreeSet;
use tvm_ir::diag::Diags;
use tvm_ir::module::IRModule;
use tvm_ir::relax::{AttrDef, AttrDefault, AttrKind, Binding, Block, Body, Expr, Function, Var, leaf_vars};

/// Makes dataflow blocks of runs of at least `min_size` bindings in plain blocks that are calls or tuples without
/// effects and no conditionals; their outputs are the variables used after them. Then the bindings are canonicalized.
pub(super) static CONVERT_TO_DATAFLOW: Pass = Pass {
    name: "ConvertToDataflow",
    doc: "makes dataflow blocks of runs of pure bindings",
    params: &[AttrDef { name: "min_size", kind: AttrKind::Int, default: Some(AttrDefault::Int(2)) }],
    run,
};

fn run(module: &mut IRModule, cx: &PassCx<'_>) -> Result<(), Diags> {
    let min = cx.arg("min_size").as_int().and_then(|v| usize::try_from(v).ok()).unwrap_or(2).max(1);
    map_functions(module, |module, _, f| {
        Ok(canonicalize(&Function { body: convert(module, &f.body, min), ..f.clone() }))
    })
}

fn convert(module: &IRModule, body: &Body, min: usize) -> Body {
    let mut blocks: Vec<Block> = Vec::new();
    for block in &body.blocks {
        match block {
            Block::Dataflow { .. } => blocks.push(block.clone()),
            Block::Plain(bindings) => {
                for run in bindings.chunk_by(|a, b| is_pure(module, &a.value) == is_pure(module, &b.value)) {
                    let run: Vec<Binding> = run.iter().map(|b| inner(module, b, min)).collect();
                    let pure = run.first().is_some_and(|b| is_pure(module, &b.value));
                    match blocks.last_mut() {
                        _ if pure && run.len() >= min => {
                            blocks.push(Block::Dataflow { bindings: run, outputs: Vec::new() });
                        }
                        Some(Block::Plain(last)) => last.extend(run),
                        _ => blocks.push(Block::Plain(run)),
                    }
                }
            }
        }
    }
    // From the end, so that what is used later is known.
    let mut used: BTreeSet<Var> = leaf_vars(&Expr::Leaf(body.result.clone())).into_iter().collect();
    for block in blocks.iter_mut().rev() {
        if let Block::Dataflow { bindings, outputs } = block {
            *outputs = bindings.iter().map(|b| &b.var).filter(|v| used.contains(v)).cloned().collect();
        }
        used.extend(block.bindings().iter().flat_map(|b| leaf_vars(&b.value)));
    }
    Body { blocks, result: body.result.clone() }
}

fn inner(module: &IRModule, b: &Binding, min: usize) -> Binding {
    let mut b = b.clone();
    match &mut b.value {
        Expr::If(i) => {
            i.then = convert(module, &i.then, min);
            i.otherwise = convert(module, &i.otherwise, min);
        }
        Expr::Function(f) => f.body = convert(module, &f.body, min),
        _ => {}
    }
    b
}

fn is_pure(module: &IRModule, value: &Expr) -> bool {
    !matches!(value, Expr::If(_) | Expr::Function(_)) && !is_impure(module, value)
}
