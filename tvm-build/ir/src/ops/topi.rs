//! Stages that several lowerings are made of, named as TVM's TOPI library names them.

use super::cx::load_broadcast;
use super::reshape::{ravel, unravel};
use crate::prim::{BinOp, Buffer, Intrinsic, PrimExpr};
use crate::te::{Axes, Te};

/// A buffer or a scalar.
#[derive(Clone)]
pub(super) enum Value<'a> {
    /// Elements, broadcast to the result.
    Of(&'a Buffer),
    /// The same for every element.
    Scalar(PrimExpr),
}

impl Value<'_> {
    fn at(&self, out: &[PrimExpr], index: &[PrimExpr]) -> PrimExpr {
        match self {
            Value::Of(b) => load_broadcast(b, out, index),
            Value::Scalar(e) => e.clone(),
        }
    }
}

/// The name of the stage of an operator.
fn stage_name(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "T_add",
        BinOp::Sub => "T_subtract",
        BinOp::Mul => "T_multiply",
        BinOp::Div => "T_divide",
        BinOp::Max => "T_maximum",
        BinOp::Min => "T_minimum",
        BinOp::Mod => "T_mod",
        BinOp::FloorDiv => "T_floor_divide",
        BinOp::FloorMod => "T_floor_mod",
        BinOp::BitAnd => "T_bitwise_and",
        BinOp::BitOr => "T_bitwise_or",
        BinOp::BitXor => "T_bitwise_xor",
        BinOp::Shl => "T_left_shift",
        BinOp::Shr => "T_right_shift",
    }
}

/// `a op b` over the shape of `like`.
pub(super) fn binary(te: &mut Te, op: BinOp, like: &Buffer, a: &Value<'_>, b: &Value<'_>) -> Buffer {
    let dims = &like.shape;
    te.compute(stage_name(op), Axes::Ax, dims, like.dtype, |i| PrimExpr::binary(op, a.at(dims, i), b.at(dims, i)))
}

/// An intrinsic of each element.
pub(super) fn unary(te: &mut Te, f: Intrinsic, x: &Buffer) -> Buffer {
    te.compute("compute", Axes::I, &x.shape, x.dtype, |i| PrimExpr::call(f, vec![PrimExpr::load(x, i.to_vec())]))
}

/// The same elements in another shape.
pub(super) fn reshape(te: &mut Te, x: &Buffer, shape: &[PrimExpr]) -> Buffer {
    te.compute("T_reshape", Axes::Ax, shape, x.dtype, |i| PrimExpr::load(x, unravel(&ravel(i, shape), &x.shape)))
}
