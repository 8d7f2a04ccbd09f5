//! ToNonDataflow: dataflow blocks become plain ones.

use super::support::map_functions;
use crate::pass::{Pass, PassCx};
use tvm_ir::diag::Diags;
use tvm_ir::module::IRModule;
use tvm_ir::relax::{Block, Body, Expr, Function};

/// Makes every dataflow block a plain one; neighbouring plain blocks become one.
pub(super) static TO_NON_DATAFLOW: Pass =
    Pass { name: "ToNonDataflow", doc: "makes dataflow blocks plain blocks", params: &[], run };

fn run(module: &mut IRModule, _cx: &PassCx<'_>) -> Result<(), Diags> {
    map_functions(module, |_, _, f| {
        let mut body = f.body.clone();
        flatten(&mut body);
        Ok(Function { body, ..f.clone() })
    })
}

fn flatten(body: &mut Body) {
    let mut all = Vec::new();
    for mut block in std::mem::take(&mut body.blocks) {
        all.append(block.bindings_mut());
    }
    for b in &mut all {
        match &mut b.value {
            Expr::If(i) => {
                flatten(&mut i.then);
                flatten(&mut i.otherwise);
            }
            Expr::Function(f) => flatten(&mut f.body),
            _ => {}
        }
    }
    if !all.is_empty() {
        body.blocks.push(Block::Plain(all));
    }
}
