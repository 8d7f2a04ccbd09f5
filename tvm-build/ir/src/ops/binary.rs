//! Element-wise ops of two tensors that broadcast as numpy's do: arithmetic, comparison, logic, bits.

use super::row::{arg, op};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{BinOp, CmpOp, Intrinsic, PrimExpr};
use crate::relax::{ArgDef, ArgKind, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

const ARGS: &[ArgDef] = &[arg("x1", ArgKind::Operand), arg("x2", ArgKind::Operand)];

/// One row an op: name, types, what it computes of two elements, doc. The block is named `T_` and the name.
macro_rules! binary {
    ($($name:literal $infer:ident $f:expr, $doc:literal;)*) => {
        pub(super) static OPS: &[OpDef] = &[$(
            op($name, $doc, ARGS, &[], $infer, Lower::Tir($name, |cx| lower(cx, concat!("T_", $name), $f)), Pattern::Broadcast),
        )*];
    };
}

binary! {
    "add" arithmetic |a, b| a + b, "x1 + x2; integers wrap";
    "atan2" floating |a, b| PrimExpr::call(Intrinsic::Atan2, vec![a, b]), "angle of the point (x2, x1)";
    "bitwise_and" bits |a, b| PrimExpr::binary(BinOp::BitAnd, a, b), "x1 & x2 of integers or bools";
    "bitwise_or" bits |a, b| PrimExpr::binary(BinOp::BitOr, a, b), "x1 | x2 of integers or bools";
    "bitwise_xor" bits |a, b| PrimExpr::binary(BinOp::BitXor, a, b), "x1 ^ x2 of integers or bools";
    "divide" arithmetic |a, b| a / b, "x1 / x2; integers truncate toward zero";
    "equal" comparison |a, b| a.eq(b), "x1 == x2";
    "floor_divide" arithmetic floor_divide, "x1 / x2 rounded toward negative infinity";
    "floor_mod" arithmetic floor_mod, "the remainder of floor_divide; it has x2's sign";
    "greater" comparison |a, b| b.lt(a), "x1 > x2";
    "greater_equal" comparison |a, b| b.le(a), "x1 >= x2";
    "left_shift" integral |a, b| PrimExpr::binary(BinOp::Shl, a, b), "x1 << x2";
    "less" comparison |a, b| a.lt(b), "x1 < x2";
    "less_equal" comparison |a, b| a.le(b), "x1 <= x2";
    "log_add_exp" floating log_add_exp, "log(exp(x1) + exp(x2)) without overflow";
    "logical_and" logic |a, b| a.and(b), "x1 and x2 of bools";
    "logical_or" logic |a, b| a.or(b), "x1 or x2 of bools";
    "logical_xor" logic |a, b| PrimExpr::binary(BinOp::BitXor, a, b), "x1 xor x2 of bools";
    "maximum" arithmetic |a, b| a.max(b), "the greater; a NaN gives NaN";
    "minimum" arithmetic |a, b| a.min(b), "the lesser; a NaN gives NaN";
    "mod" arithmetic |a, b| PrimExpr::binary(BinOp::Mod, a, b), "the remainder of divide; it has x1's sign";
    "multiply" arithmetic |a, b| a * b, "x1 * x2; integers wrap";
    "not_equal" comparison |a, b| PrimExpr::cmp(CmpOp::Ne, a, b), "x1 != x2";
    "power" arithmetic power, "x1 to the power x2";
    "right_shift" integral |a, b| PrimExpr::binary(BinOp::Shr, a, b), "x1 >> x2; signed integers keep their sign";
    "subtract" arithmetic |a, b| a - b, "x1 - x2; integers wrap";
}

fn floor_divide(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    if a.dtype().is_float() { PrimExpr::call(Intrinsic::Floor, vec![a / b]) } else { a.floordiv(b) }
}

fn floor_mod(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    if a.dtype().is_float() { a.clone() - floor_divide(a, b.clone()) * b } else { a.floormod(b) }
}

/// Integers by way of `float64`: exact up to 2^53.
fn power(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    let dtype = a.dtype();
    if dtype.is_float() {
        return PrimExpr::call(Intrinsic::Pow, vec![a, b]);
    }
    PrimExpr::call(Intrinsic::Pow, vec![a.cast(DType::F64), b.cast(DType::F64)]).cast(dtype)
}

fn log_add_exp(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    let top = a.clone().max(b.clone());
    let exp = |x: PrimExpr| PrimExpr::call(Intrinsic::Exp, vec![x - top.clone()]);
    let finite = top.clone() + PrimExpr::call(Intrinsic::Log, vec![exp(a) + exp(b)]);
    // Of an infinity the distances are not numbers; it is the result itself.
    let infinite = PrimExpr::call(Intrinsic::Abs, vec![top.clone()]).eq(PrimExpr::float(top.dtype(), f64::INFINITY));
    PrimExpr::select(infinite, top, finite)
}

fn arithmetic(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let dtype = cx.common_dtype(0, 1)?;
    cx.result(cx.broadcast(0, 1)?, dtype)
}

fn comparison(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.common_dtype(0, 1)?;
    cx.result(cx.broadcast(0, 1)?, Some(DType::BOOL))
}

fn of_types(cx: &InferCx<'_>, want: &str, fits: fn(DType) -> bool) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, want, fits)?;
    cx.expect_dtype(1, want, fits)?;
    arithmetic(cx)
}

fn floating(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    of_types(cx, "floating point", DType::is_float)
}

fn integral(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    of_types(cx, "an integer type", DType::is_integer)
}

fn bits(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    of_types(cx, "an integer type or bool", |d| d.is_integer() || d.is_bool())
}

fn logic(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    of_types(cx, "bool", DType::is_bool)
}

fn lower(cx: &LowerCx<'_>, stage: &str, f: fn(PrimExpr, PrimExpr) -> PrimExpr) -> Result<PrimFunc, Diag> {
    let (a, b) = (cx.operand(0)?, cx.operand(1)?);
    let dims = cx.out_dims()?;
    let mut te = Te::new();
    let out = te.compute(stage, Axes::Ax, dims, cx.out_dtype()?, |i| f(a.at(dims, i), b.at(dims, i)));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
