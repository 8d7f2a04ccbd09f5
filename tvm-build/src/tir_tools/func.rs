//! Facts of whole functions: symbolic variables, and an analyzer that knows the ranges of all loops.

use tvm_ir::arith::Analyzer;
use tvm_ir::prim::{PrimExpr, Range, Var, free_vars};
use tvm_ir::tir::{Param, PrimFunc, Stmt, visit_stmt};

/// A symbolic extent and where its value is read off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolicVar {
    /// The variable.
    pub var: Var,
    /// Index among the buffer parameters and the axis where the variable stands bare; `None` when it does so nowhere.
    pub source: Option<(usize, usize)>,
}

/// The variables in the shapes, strides and offsets of the parameters that are no scalar parameters, in order of first
/// appearance.
pub fn symbolic_vars(f: &PrimFunc) -> Vec<SymbolicVar> {
    let mut out: Vec<SymbolicVar> = Vec::new();
    let scalar = |v: &Var| f.params.iter().any(|p| matches!(p, Param::Scalar(s) if s == v));
    for (k, b) in f.buffers().enumerate() {
        let exprs = b.shape.iter().map(Some).chain(std::iter::repeat(None));
        let layout = b.strides.iter().chain(&b.elem_offset);
        let all = b.shape.iter().chain(layout).zip(exprs).enumerate();
        for (axis, (e, in_shape)) in all {
            for var in in_appearance_order(e) {
                if scalar(&var) {
                    continue;
                }
                let bare = in_shape.is_some() && e.as_var() == Some(&var);
                let source = bare.then_some((k, axis));
                match out.iter_mut().find(|s| s.var == var) {
                    Some(known) => known.source = known.source.or(source),
                    None => out.push(SymbolicVar { var, source }),
                }
            }
        }
    }
    out
}

fn in_appearance_order(e: &PrimExpr) -> Vec<Var> {
    let free = free_vars(e);
    let mut out = Vec::new();
    tvm_ir::prim::visit(e, &mut |n| {
        if let Some(v) = n.as_var() {
            if free.contains(v) && !out.contains(v) {
                out.push(v.clone());
            }
        }
    });
    out
}

/// An analyzer that knows the range of every loop and block iterator of a function, and that its extents are not
/// negative.
pub fn analyzer_of(f: &PrimFunc) -> Analyzer {
    let mut analyzer = Analyzer::new();
    for s in symbolic_vars(f) {
        analyzer.assume_nonnegative(&s.var);
    }
    bind_loops(&f.body, &mut analyzer);
    analyzer
}

/// Tells an analyzer the range of every loop and block iterator of a statement.
pub fn bind_loops(s: &Stmt, analyzer: &mut Analyzer) {
    visit_stmt(s, &mut |s| match s {
        Stmt::For(l) => analyzer.bind_range(&l.var, Range { min: l.min.clone(), extent: l.extent.clone() }),
        Stmt::Block(b) => b.iters.iter().for_each(|i| analyzer.bind_range(&i.var, i.dom.clone())),
        _ => {}
    });
}
