//! `split`

use super::{LoopRV, Schedule};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, Substitution, Var};
use tvm_ir::tir::{For, ForKind, Stmt, substitute_stmt};

impl Schedule {
    /// Splits a serial loop that starts at 0 into an outer loop and an inner one of `factor` iterations. When the factor does not
    /// divide the extent, the last inner loop is shorter: its extent is `min(factor, extent - outer * factor)`, without
    /// a predicate. Errs on a factor below 1.
    pub fn split(&mut self, l: &LoopRV, factor: i64) -> Result<[LoopRV; 2], Diag> {
        if factor < 1 {
            return Err(self.error(format!("loop {l} cannot be split by {factor}")));
        }
        let f = self.get_loop(l)?;
        if f.kind != ForKind::Serial || !f.min.is_int(0) {
            return Err(self.error(format!("only a serial loop from 0 can be split, loop {l} is {:?}", f.kind)));
        }
        let analyzer = self.analyzer();
        let name = l.0.name().clone();
        let outer = Var::new(format!("{name}_0"), l.0.dtype());
        let inner = Var::new(format!("{name}_1"), l.0.dtype());
        let by = PrimExpr::int(l.0.dtype(), factor);
        let ceil = |e: &PrimExpr| (e + PrimExpr::int(l.0.dtype(), factor - 1)).floordiv(by.clone());
        self.replace_loop(l, &mut |f| {
            let outer_extent = analyzer.simplify(&ceil(&f.extent));
            let rest = &f.extent - outer.expr() * &by;
            let divides = analyzer.prove(&f.extent.clone().floormod(by.clone()).eq(PrimExpr::int(l.0.dtype(), 0)));
            let inner_extent = if divides {
                by.clone()
            } else if outer_extent.is_int(1) {
                f.extent.clone()
            } else {
                by.clone().min(rest)
            };
            let value = outer.expr() * &by + inner.expr();
            let body = substitute_stmt(f.body, &Substitution::var(&l.0, value));
            let inner_loop = For { body, ..serial(&inner, inner_extent) };
            let body = Stmt::For(Box::new(inner_loop));
            Ok(Stmt::For(Box::new(For { body, annotations: f.annotations, ..serial(&outer, outer_extent) })))
        })?;
        Ok([LoopRV(outer), LoopRV(inner)])
    }
}

/// A serial loop without a body.
pub(super) fn serial(var: &Var, extent: PrimExpr) -> For {
    For {
        var: var.clone(),
        min: PrimExpr::int(var.dtype(), 0),
        extent,
        kind: ForKind::Serial,
        annotations: Default::default(),
        body: Stmt::Seq(Vec::new()),
        span: Default::default(),
    }
}
