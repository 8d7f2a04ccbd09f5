//! DeadCodeElimination: bindings and functions that nothing needs are removed.

use super::support::{callees, is_impure, rewrite::drop_empty_blocks};
use crate::pass::{Pass, PassCx};
use std::collections::BTreeSet;
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::name::Name;
use tvm_ir::prim::{PrimKind, visit};
use tvm_ir::relax::{AttrDef, AttrDefault, AttrKind, Block, Body, Expr, Function, Leaf, Var, visit_leaves};
use tvm_ir::span::Span;
use tvm_ir::tir::visit_exprs;

/// Removes functions that no function of the interface (`global_symbol`, or listed in `entry_functions`) reaches, and
/// bindings without effect whose values nothing needs. `match_cast` stays: it checks.
pub(super) static DEAD_CODE_ELIMINATION: Pass = Pass {
    name: "DeadCodeElimination",
    doc: "removes bindings and functions that nothing needs",
    params: &[AttrDef { name: "entry_functions", kind: AttrKind::Any, default: Some(AttrDefault::None) }],
    run,
};

fn run(module: &mut IRModule, cx: &PassCx<'_>) -> Result<(), Diags> {
    let mut entries = Vec::new();
    match cx.arg("entry_functions") {
        AttrValue::Str(name) => entries.push(name.clone()),
        AttrValue::List(items) => entries.extend(items.iter().filter_map(|i| i.as_str().map(Name::from))),
        _ => {}
    }
    for name in &entries {
        if module.get(name).is_none() {
            let have: Vec<&str> = module.funcs.keys().map(Name::as_str).collect();
            return Err(Diag::error(Span::NONE, format!("entry function {name} is not in the module"))
                .help(format!("it has {}", have.join(", ")))
                .into());
        }
    }
    eliminate(module, &entries);
    Ok(())
}

/// The pass with given entry functions, besides those of the interface.
pub(crate) fn eliminate(module: &mut IRModule, entries: &[Name]) {
    // Once before, so that less is looked at; once after, for functions that only removed bindings called.
    remove_unused_functions(module, entries);
    remove_unused_bindings_all(module);
    remove_unused_functions(module, entries);
}

/// Removes unneeded bindings of every function.
pub(crate) fn remove_unused_bindings_all(module: &mut IRModule) {
    let names: Vec<Name> = module.relax_funcs().map(|(n, _)| n.clone()).collect();
    for name in names {
        if let Some(Func::Relax(f)) = module.get(&name) {
            let new = remove_unused_bindings(module, f);
            module.funcs.insert(name, Func::Relax(new));
        }
    }
}

fn remove_unused_functions(module: &mut IRModule, entries: &[Name]) {
    let mut reachable: BTreeSet<Name> = entries.iter().cloned().collect();
    reachable.extend(module.funcs.iter().filter(|(_, f)| is_entry(f)).map(|(n, _)| n.clone()));
    let mut todo: Vec<Name> = reachable.iter().cloned().collect();
    while let Some(name) = todo.pop() {
        let called: Vec<Name> = match module.get(&name) {
            Some(Func::Relax(f)) => callees(&f.body).into_iter().map(|g| g.0).collect(),
            Some(Func::Prim(f)) => {
                let mut out = Vec::new();
                visit_exprs(&f.body, &mut |e| {
                    visit(e, &mut |e| {
                        if let PrimKind::CallExtern(symbol, _) = e.kind() {
                            out.push(symbol.clone());
                        }
                    });
                });
                out
            }
            _ => Vec::new(),
        };
        for c in called {
            if reachable.insert(c.clone()) {
                todo.push(c);
            }
        }
    }
    module.funcs.retain(|n, _| reachable.contains(n));
}

fn is_entry(f: &Func) -> bool {
    match f {
        Func::Relax(f) => !f.is_private(),
        Func::Prim(f) => !f.is_private(),
        Func::Extern(_) => true,
    }
}

/// The function without the bindings that its result does not need (TVM's `RemoveAllUnused`).
pub(crate) fn remove_unused_bindings(module: &IRModule, f: &Function) -> Function {
    let mut needed = BTreeSet::new();
    mark(module, &f.body, &mut needed);
    let mut body = f.body.clone();
    sweep(module, &mut body, &needed);
    drop_empty_blocks(&mut body);
    Function { body, ..f.clone() }
}

fn stays(module: &IRModule, b: &tvm_ir::relax::Binding, needed: &BTreeSet<Var>) -> bool {
    let defines = match &b.value {
        Expr::MatchCast(..) => true,
        Expr::Loop(l) => l.defines().is_some(),
        _ => false,
    };
    defines || needed.contains(&b.var) || is_impure(module, &b.value)
}

fn mark(module: &IRModule, body: &Body, needed: &mut BTreeSet<Var>) {
    fn leaf(l: &Leaf, needed: &mut BTreeSet<Var>) {
        match l {
            Leaf::Var(v) => {
                needed.insert(v.clone());
            }
            Leaf::Tuple(items) => items.iter().for_each(|l| leaf(l, needed)),
            _ => {}
        }
    }
    leaf(&body.result, needed);
    for block in body.blocks.iter().rev() {
        for b in block.bindings().iter().rev() {
            if !stays(module, b, needed) {
                continue;
            }
            match &b.value {
                Expr::If(i) => {
                    leaf(&i.cond, needed);
                    mark(module, &i.then, needed);
                    mark(module, &i.otherwise, needed);
                }
                Expr::Function(f) => mark(module, &f.body, needed),
                value => visit_leaves(value, &mut |l| leaf(l, needed)),
            }
        }
    }
}

fn sweep(module: &IRModule, body: &mut Body, needed: &BTreeSet<Var>) {
    for block in &mut body.blocks {
        block.bindings_mut().retain(|b| stays(module, b, needed));
        for b in block.bindings_mut() {
            match &mut b.value {
                Expr::If(i) => {
                    sweep(module, &mut i.then, needed);
                    sweep(module, &mut i.otherwise, needed);
                }
                Expr::Function(f) => sweep(module, &mut f.body, needed),
                _ => {}
            }
        }
        if let Block::Dataflow { bindings, outputs } = block {
            outputs.retain(|o| bindings.iter().any(|b| b.var == *o));
        }
    }
}
