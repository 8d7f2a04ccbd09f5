//! Values of integer expressions at points, for counterexamples.

use crate::prim::{BinOp, Intrinsic, PrimExpr, PrimKind, Var, eval_int, wrap_int};
use std::collections::BTreeMap;

/// The value of a scalar integer or bool expression; `None` where it depends on memory, on a variable without a
/// value, or is an error.
pub(super) fn eval(e: &PrimExpr, at: &BTreeMap<Var, i64>) -> Option<i64> {
    match e.kind() {
        PrimKind::Int(v) => Some(*v),
        PrimKind::Var(v) => at.get(v).copied(),
        PrimKind::Binary(op, a, b) if !e.dtype().is_float() => {
            let (x, y) = (eval(a, at)?, eval(b, at)?);
            match op {
                BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor if e.dtype().is_bool() => match op {
                    BinOp::BitAnd => Some(x & y),
                    BinOp::BitOr => Some(x | y),
                    _ => Some(x ^ y),
                },
                op => eval_int(*op, e.dtype(), x, y),
            }
        }
        PrimKind::Cmp(op, a, b) if !a.dtype().is_float() => {
            let d = a.dtype();
            PrimExpr::cmp(*op, PrimExpr::int(d, eval(a, at)?), PrimExpr::int(d, eval(b, at)?)).as_int()
        }
        PrimKind::And(a, b) => match eval(a, at)? {
            0 => Some(0),
            _ => eval(b, at),
        },
        PrimKind::Or(a, b) => match eval(a, at)? {
            0 => eval(b, at),
            v => Some(v),
        },
        PrimKind::Not(a) => Some(i64::from(eval(a, at)? == 0)),
        PrimKind::Select(c, a, b) => eval(if eval(c, at)? != 0 { a } else { b }, at),
        PrimKind::Cast(a) if a.dtype().is_integer() || a.dtype().is_bool() => {
            (e.dtype().is_integer() || e.dtype().is_bool()).then_some(())?;
            Some(wrap_int(e.dtype(), eval(a, at)?))
        }
        PrimKind::Call(Intrinsic::IfThenElse, args) => match args.as_slice() {
            [c, a, b] => eval(if eval(c, at)? != 0 { a } else { b }, at),
            _ => None,
        },
        PrimKind::Call(Intrinsic::Likely, args) => eval(args.first()?, at),
        _ => None,
    }
}
