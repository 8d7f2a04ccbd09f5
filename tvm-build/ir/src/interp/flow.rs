//! Control flow of machine code, common to both levels.

use super::build::{Builder, Lin};
use super::instr::Op;
use crate::arith::IntBound;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::span::Span;

/// A compiler that emits to a builder.
pub(super) trait Flow: Sized {
    fn builder(&mut self) -> &mut Builder;

    /// `if`
    fn branch(
        &mut self,
        cond: &Lin,
        then: impl FnOnce(&mut Self) -> Result<(), Diag>,
        otherwise: impl FnOnce(&mut Self) -> Result<(), Diag>,
    ) -> Result<(), Diag> {
        match cond.as_const() {
            Some(0) => return otherwise(self),
            Some(_) => return then(self),
            None => {}
        }
        let b = self.builder();
        let c = b.materialize(cond);
        let equal = b.made_by(Op::Eq, c, b.depth());
        b.enter();
        then(self)?;
        let then_code = self.builder().leave();
        self.builder().enter();
        otherwise(self)?;
        let b = self.builder();
        let else_code = b.leave();
        let length = Builder::distance(&then_code, i32::from(!else_code.is_empty()));
        match equal {
            Some([x, y]) => b.effect(Op::JumpIfNe, 0, [x, y, 0], length),
            None => b.effect(Op::JumpIfZero, 0, [c, 0, 0], length),
        }
        b.append(then_code);
        if !else_code.is_empty() {
            b.effect(Op::Jump, 0, [0; 3], Builder::distance(&else_code, 0));
            b.append(else_code);
        }
        Ok(())
    }

    /// A loop from `min` to before `min + extent`. Errors when the end overflows.
    fn counted(
        &mut self,
        min: &Lin,
        extent: &Lin,
        span: Span,
        body: impl FnOnce(&mut Self, Lin) -> Result<(), Diag>,
    ) -> Result<(), Diag> {
        let b = self.builder();
        let Some(end) = min.add(extent, 1) else {
            return Err(Diag::error(span, "the end of a loop overflows"));
        };
        let (low, high) = (b.lin_bound(min), b.lin_bound(&end));
        match (min.as_const(), extent.as_const()) {
            (Some(first), Some(1)) => return body(self, Lin::constant(first)),
            (_, Some(n)) if n <= 0 => return Ok(()),
            _ => {}
        }
        let last = if high.max == IntBound::POS_INF { high.max } else { (high.max - 1).max(low.min) };
        let (from, to) = (b.materialize(min), b.materialize(&end));
        b.enter();
        let v = b.loop_var(IntBound::new(low.min, last));
        body(self, Lin::reg(v))?;
        let b = self.builder();
        let code = b.leave();
        let length = Builder::distance(&code, 1);
        b.effect(Op::LoopEnter, v, [from, to, 0], length);
        b.append(code);
        b.effect(Op::LoopNext, v, [0, to, 0], -length);
        Ok(())
    }

    /// `while`
    fn repeat(
        &mut self,
        cond: impl FnOnce(&mut Self) -> Result<Lin, Diag>,
        body: impl FnOnce(&mut Self) -> Result<(), Diag>,
    ) -> Result<(), Diag> {
        self.builder().enter();
        let cond = cond(self)?;
        let b = self.builder();
        let c = b.materialize(&cond);
        b.enter();
        body(self)?;
        let b = self.builder();
        let inner = b.leave();
        b.effect(Op::JumpIfZero, 0, [c, 0, 0], Builder::distance(&inner, 1));
        b.append(inner);
        let code = b.leave();
        let back = -Builder::distance(&code, 1);
        b.append(code);
        b.effect(Op::JumpBack, 0, [0; 3], back);
        Ok(())
    }

    /// Fails with a message unless a condition holds.
    fn require(&mut self, cond: &Lin, span: Span, message: String) {
        if cond.as_const().is_some_and(|v| v != 0) {
            return;
        }
        let b = self.builder();
        let c = b.materialize(cond);
        let site = b.site(span, message);
        b.effect(Op::JumpIfNonZero, 0, [c, 0, 0], 1);
        b.effect(Op::Fail, 0, [0; 3], site);
    }

    /// One of two scalars; where neither side can fail both are computed.
    fn lazy(
        &mut self,
        dtype: DType,
        cond: &Lin,
        then: impl FnOnce(&mut Self) -> Result<Lin, Diag>,
        otherwise: impl FnOnce(&mut Self) -> Result<Lin, Diag>,
        fails: bool,
    ) -> Result<Lin, Diag> {
        match cond.as_const() {
            Some(0) => return otherwise(self),
            Some(_) => return then(self),
            None => {}
        }
        if !fails {
            let (x, y) = (then(self)?, otherwise(self)?);
            return Ok(self.builder().select(dtype, cond, &x, &y));
        }
        let out = self.variable(dtype);
        self.branch(cond, |s| then(s).map(|v| s.assign(out, &v)), |s| otherwise(s).map(|v| s.assign(out, &v)))?;
        Ok(Lin::reg(out))
    }

    /// A register that several places set.
    fn variable(&mut self, dtype: DType) -> u16 {
        let bound = if dtype.is_float() { IntBound::EVERYTHING } else { IntBound::of_type(dtype.scalar()) };
        self.builder().variable(bound)
    }

    /// Sets such a register.
    fn assign(&mut self, to: u16, value: &Lin) {
        let b = self.builder();
        let r = b.materialize(value);
        b.effect(Op::Move, to, [r, 0, 0], 0);
    }
}
