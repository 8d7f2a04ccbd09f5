//! `loop_partition`

use super::{LoopRV, Schedule};
use tvm_ir::arith::Analyzer;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, Range, Substitution, Var};
use tvm_ir::tir::{For, Stmt, map_exprs, rewrite_stmt, substitute_stmt};

impl Schedule {
    /// Cuts a loop in two, one after the other: iterations `0 .. at` and `at .. extent`. Expressions in both are
    /// simplified under the new ranges, so that bounds which hold for one part alone become constants there. Blocks
    /// and allocations of the second part are copies. Errs when `at` is known to lie outside of the extent.
    pub fn loop_partition(&mut self, l: &LoopRV, at: PrimExpr) -> Result<[LoopRV; 2], Diag> {
        let analyzer = self.analyzer();
        let f = self.get_loop(l)?.clone();
        let at = analyzer.simplify(&at.cast(l.0.dtype()));
        let zero = PrimExpr::int(l.0.dtype(), 0);
        if analyzer.prove(&at.clone().lt(zero)) || analyzer.prove(&at.clone().gt(f.extent.clone())) {
            return Err(self.error(format!("loop {l} of extent {:?} has no iteration {at:?} to be cut at", f.extent)));
        }
        let rest = analyzer.simplify(&(&f.extent - &at));
        let second = l.0.copy();
        let copy = self.copy_stmt(&f.body);
        let copy = substitute_stmt(copy, &Substitution::var(&l.0, second.expr()));
        let first = part(&f, l.0.clone(), f.min.clone(), at.clone(), f.body.clone(), &analyzer);
        let second_loop = part(&f, second.clone(), &f.min + &at, rest, copy, &analyzer);
        self.replace_loop(l, &mut |_| Ok(Stmt::seq([first.clone(), second_loop.clone()])))?;
        Ok([l.clone(), LoopRV(second)])
    }
}

fn part(f: &For, var: Var, min: PrimExpr, extent: PrimExpr, body: Stmt, analyzer: &Analyzer) -> Stmt {
    let mut known = analyzer.clone();
    known.bind_range(&var, Range { min: min.clone(), extent: extent.clone() });
    // Of a part of one iteration at most, the first is the only one.
    let single = analyzer.prove(&extent.clone().le(PrimExpr::int(extent.dtype(), 1)));
    crate::tir_tools::bind_loops(&body, &mut known);
    let body = if single { substitute_stmt(body, &Substitution::var(&var, min.clone())) } else { body };
    let body = rewrite_stmt(body, &mut |s| map_exprs(s, &mut |e| known.simplify(e)));
    Stmt::For(Box::new(For { var, min, extent, body, ..f.clone() }))
}
