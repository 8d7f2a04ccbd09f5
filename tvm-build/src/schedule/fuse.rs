//! `fuse`

use super::split::serial;
use super::{LoopRV, Schedule};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{Substitution, Var, free_vars};
use tvm_ir::tir::{For, ForKind, Stmt, substitute_stmt};

impl Schedule {
    /// Makes one loop of two serial loops from 0, the second alone directly inside of the first, with an extent that
    /// does not depend on it.
    pub fn fuse(&mut self, outer: &LoopRV, inner: &LoopRV) -> Result<LoopRV, Diag> {
        let o = self.get_loop(outer)?;
        let i = match &o.body {
            Stmt::For(i) if i.var == inner.0 => i,
            _ => return Err(self.error(format!("loop {inner} is not directly inside of loop {outer}"))),
        };
        let plain = |f: &For| f.kind == ForKind::Serial && f.min.is_int(0);
        if !plain(o) || !plain(i) {
            return Err(self.error(format!("only serial loops from 0 can be fused: {outer}, {inner}")));
        }
        if free_vars(&i.extent).contains(&outer.0) {
            return Err(self.error(format!("the extent of loop {inner} depends on loop {outer}")));
        }
        let analyzer = self.analyzer();
        let fused = Var::new(format!("{}_{}_fused", outer.0.name(), inner.0.name()), outer.0.dtype());
        self.replace_loop(outer, &mut |o| {
            let Stmt::For(i) = o.body else { return Ok(o.body) };
            let extent = analyzer.simplify(&(&o.extent * &i.extent));
            let mut sub = Substitution::var(&outer.0, fused.expr().floordiv(i.extent.clone()));
            sub.vars.insert(inner.0.clone(), fused.expr().floormod(i.extent.clone()).cast(inner.0.dtype()));
            Ok(Stmt::For(Box::new(For { body: substitute_stmt(i.body, &sub), ..serial(&fused, extent) })))
        })?;
        Ok(LoopRV(fused))
    }
}
