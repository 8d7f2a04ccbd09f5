//! Expressions of flat TensorIR to lowered expressions.

use super::kernel::Lower;
use super::names::is_c_identifier;
use tvm_ir::diag::Diag;
use tvm_ir::lowered::{Expr, ExprKind, Stmt};
use tvm_ir::prim::{Intrinsic, PrimExpr, PrimKind, Substitution};

/// Whether let bindings may be computed before the statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// The expression is evaluated once, unconditionally.
    Always,
    /// The expression may not be evaluated, or more than once.
    Maybe,
}

fn boxed(e: Expr) -> Box<Expr> {
    Box::new(e)
}

impl Lower<'_> {
    /// An expression; let bindings are appended to `pre` where that is allowed, and substituted elsewhere.
    pub(super) fn expr(&mut self, e: &PrimExpr, when: When, pre: &mut Vec<Stmt>) -> Result<Expr, Diag> {
        let kind = match e.kind() {
            PrimKind::Var(v) => ExprKind::Var(self.var(v)?),
            PrimKind::Int(v) => ExprKind::Int(*v),
            PrimKind::Float(v) => ExprKind::Float(*v),
            PrimKind::Str(s) => {
                return Err(Diag::error(e.span(), format!("the text {s:?} has no value in a kernel")));
            }
            PrimKind::Binary(op, a, b) => {
                ExprKind::Binary(*op, boxed(self.expr(a, when, pre)?), boxed(self.expr(b, when, pre)?))
            }
            PrimKind::Cmp(op, a, b) => {
                ExprKind::Cmp(*op, boxed(self.expr(a, when, pre)?), boxed(self.expr(b, when, pre)?))
            }
            PrimKind::And(a, b) => {
                ExprKind::And(boxed(self.expr(a, when, pre)?), boxed(self.expr(b, When::Maybe, pre)?))
            }
            PrimKind::Or(a, b) => ExprKind::Or(boxed(self.expr(a, when, pre)?), boxed(self.expr(b, When::Maybe, pre)?)),
            PrimKind::Not(a) => ExprKind::Not(boxed(self.expr(a, when, pre)?)),
            PrimKind::Select(c, a, b) => ExprKind::Select(
                boxed(self.expr(c, when, pre)?),
                boxed(self.expr(a, when, pre)?),
                boxed(self.expr(b, when, pre)?),
            ),
            PrimKind::Cast(a) => ExprKind::Cast(boxed(self.expr(a, when, pre)?)),
            PrimKind::Broadcast(a) => ExprKind::Broadcast(boxed(self.expr(a, when, pre)?)),
            PrimKind::Ramp(a, s) => ExprKind::Ramp(boxed(self.expr(a, when, pre)?), boxed(self.expr(s, when, pre)?)),
            PrimKind::Load(b, i) => return self.load(e, b, i, when, pre),
            PrimKind::Let(v, value, body) => {
                if when == When::Maybe {
                    return self.expr(&Substitution::var(v, value.clone()).apply(body), when, pre);
                }
                let value = self.expr(value, when, pre)?;
                let var = self.declare(v);
                pre.push(Stmt::Let { var, value });
                return self.expr(body, when, pre);
            }
            PrimKind::Call(f, args) => return self.call(e, *f, args, when, pre),
            PrimKind::CallExtern(name, args) => {
                if !is_c_identifier(name) {
                    return Err(Diag::error(e.span(), format!("{name:?} is no name of a C function")));
                }
                ExprKind::CallExtern(name.clone(), self.exprs(args, when, pre)?)
            }
        };
        Ok(Expr { dtype: e.dtype(), kind })
    }

    fn exprs(&mut self, args: &[PrimExpr], when: When, pre: &mut Vec<Stmt>) -> Result<Vec<Expr>, Diag> {
        args.iter().map(|a| self.expr(a, when, pre)).collect()
    }

    fn call(
        &mut self,
        e: &PrimExpr,
        f: Intrinsic,
        args: &[PrimExpr],
        when: When,
        pre: &mut Vec<Stmt>,
    ) -> Result<Expr, Diag> {
        let kind = match (f, args) {
            (Intrinsic::IfThenElse, [c, a, b]) => ExprKind::Select(
                boxed(self.expr(c, when, pre)?),
                boxed(self.expr(a, When::Maybe, pre)?),
                boxed(self.expr(b, When::Maybe, pre)?),
            ),
            (Intrinsic::Likely, [a]) => return self.expr(a, when, pre),
            (Intrinsic::Reinterpret, [a]) => ExprKind::Reinterpret(boxed(self.expr(a, when, pre)?)),
            _ => ExprKind::Call(f, self.exprs(args, when, pre)?),
        };
        Ok(Expr { dtype: e.dtype(), kind })
    }

    fn load(
        &mut self,
        e: &PrimExpr,
        buffer: &tvm_ir::prim::Buffer,
        indices: &[PrimExpr],
        when: When,
        pre: &mut Vec<Stmt>,
    ) -> Result<Expr, Diag> {
        let pointer = self.pointer(buffer)?;
        let index = flat_index(buffer, indices)?;
        let load =
            |index, dtype| Expr { dtype, kind: ExprKind::Load { pointer: pointer.clone(), index, aligned: false } };
        Ok(match index.kind() {
            PrimKind::Ramp(base, stride) if stride.is_int(1) => load(boxed(self.expr(base, when, pre)?), e.dtype()),
            PrimKind::Broadcast(one) => {
                let scalar = load(boxed(self.expr(one, when, pre)?), buffer.dtype);
                Expr { dtype: e.dtype(), kind: ExprKind::Broadcast(boxed(scalar)) }
            }
            _ if index.dtype().lanes > 1 => {
                let index = boxed(self.expr(index, when, pre)?);
                Expr { dtype: e.dtype(), kind: ExprKind::Gather { pointer: pointer.clone(), index } }
            }
            _ => load(boxed(self.expr(index, when, pre)?), e.dtype()),
        })
    }
}

/// The one index of an access to a flat buffer.
pub(super) fn flat_index<'e>(buffer: &tvm_ir::prim::Buffer, indices: &'e [PrimExpr]) -> Result<&'e PrimExpr, Diag> {
    match indices {
        [index] if !buffer.dtype.is_packed() => Ok(index),
        [_] => Err(Diag::error(
            buffer.span,
            format!("elements of buffer {} are {}, less than a byte", buffer.name, buffer.dtype),
        )
        .help("run LegalizePackedTypes before")),
        _ => {
            Err(Diag::error(buffer.span, format!("buffer {} is not flat", buffer.name))
                .help("run FlattenBuffer before"))
        }
    }
}
