//! Element-wise ops of one tensor.

use super::row::{op, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{CmpOp, Intrinsic, PrimExpr};
use crate::relax::{InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

/// One row an op: name, name hint of its PrimFunc, types, block name, what it computes of an element, doc.
macro_rules! unary {
    ($($name:literal $hint:literal $infer:ident $stage:literal $f:expr, $doc:literal;)*) => {
        pub(super) static OPS: &[OpDef] = &[$(
            op($name, $doc, &[tensor("x")], &[], $infer, Lower::Tir($hint, |cx| lower(cx, $stage, $f)), Pattern::ElemWise),
        )*
        ];
    };
}

unary! {
    "abs" "tir_abs" any "compute" abs, "|x|; the least integer wraps";
    "acos" "tir_acos" float "compute" |x| call(Intrinsic::Acos, x), "arc cosine";
    "acosh" "tir_acosh" float "compute" |x| call(Intrinsic::Acosh, x), "inverse hyperbolic cosine";
    "asin" "tir_asin" float "compute" |x| call(Intrinsic::Asin, x), "arc sine";
    "asinh" "tir_asinh" float "compute" |x| call(Intrinsic::Asinh, x), "inverse hyperbolic sine";
    "atan" "tir_atan" float "compute" |x| call(Intrinsic::Atan, x), "arc tangent";
    "atanh" "tir_atanh" float "compute" |x| call(Intrinsic::Atanh, x), "inverse hyperbolic tangent";
    "bitwise_not" "tir_bitwise_not" bits "T_bitwise_not" |x| call(Intrinsic::BitNot, x), "every bit flipped";
    "ceil" "tir_ceil" any "compute" |x| whole(Intrinsic::Ceil, x), "least integer not below";
    "cos" "tir_cos" float "compute" |x| call(Intrinsic::Cos, x), "cosine";
    "cosh" "tir_cosh" float "compute" |x| call(Intrinsic::Cosh, x), "hyperbolic cosine";
    "erf" "erf" float "compute" |x| call(Intrinsic::Erf, x), "error function";
    "exp" "tir_exp" float "compute" |x| call(Intrinsic::Exp, x), "e to the x";
    "floor" "tir_floor" any "compute" |x| whole(Intrinsic::Floor, x), "greatest integer not above";
    "isfinite" "tir_isfinite" test "compute" is_finite, "whether x is neither infinite nor NaN";
    "isinf" "tir_isinf" test "compute" is_inf, "whether x is infinite, of either sign";
    "isnan" "tir_isnan" test "compute" is_nan, "whether x is not a number";
    "log" "tir_log" float "compute" |x| call(Intrinsic::Log, x), "natural logarithm";
    "logical_not" "tir_logical_not" logic "T_logical_not" PrimExpr::logical_not, "not x, of bools";
    "negative" "tir_negative" any "compute" |x| { let minus = PrimExpr::number(x.dtype(), -1.0); x * minus }, "-x";
    "nn.relu" "relu" any "compute" |x| { let zero = PrimExpr::zero(x.dtype()); x.max(zero) }, "max(x, 0)";
    "round" "tir_round" any "compute" |x| whole(Intrinsic::Nearbyint, x), "nearest integer, ties to even";
    "rsqrt" "tir_rsqrt" float "compute" |x| call(Intrinsic::Rsqrt, x), "1 / sqrt(x)";
    "sigmoid" "tir_sigmoid" float "compute" |x| call(Intrinsic::Sigmoid, x), "1 / (1 + exp(-x))";
    "sign" "tir_sign" any "T_sign" sign, "-1, 0 or 1; a NaN stays";
    "sin" "tir_sin" float "compute" |x| call(Intrinsic::Sin, x), "sine";
    "sinh" "tir_sinh" float "compute" |x| call(Intrinsic::Sinh, x), "hyperbolic sine";
    "sqrt" "tir_sqrt" float "compute" |x| call(Intrinsic::Sqrt, x), "square root";
    "square" "tir_square" any "T_multiply" |x| x.clone() * x, "x * x";
    "tan" "tir_tan" float "compute" |x| call(Intrinsic::Tan, x), "tangent";
    "tanh" "tir_tanh" float "compute" |x| call(Intrinsic::Tanh, x), "hyperbolic tangent";
    "trunc" "tir_trunc" any "compute" |x| whole(Intrinsic::Trunc, x), "integer part";
}

fn call(f: Intrinsic, x: PrimExpr) -> PrimExpr {
    PrimExpr::call(f, vec![x])
}

/// A rounding: integers are whole already.
fn whole(f: Intrinsic, x: PrimExpr) -> PrimExpr {
    if x.dtype().is_float() { call(f, x) } else { x }
}

fn abs(x: PrimExpr) -> PrimExpr {
    let dtype = x.dtype();
    if dtype.is_float() {
        return call(Intrinsic::Abs, x);
    }
    if !dtype.is_int() {
        return x;
    }
    let minus = PrimExpr::zero(dtype) - x.clone();
    PrimExpr::select(PrimExpr::i64(0).le(x.cast(DType::I64)), x, minus)
}

fn sign(x: PrimExpr) -> PrimExpr {
    let dtype = x.dtype();
    let (zero, wide) = if dtype.is_int() { (PrimExpr::i64(0), x.cast(DType::I64)) } else { (PrimExpr::zero(dtype), x) };
    let number = |v: f64| PrimExpr::number(dtype, v);
    if !dtype.is_float() && !dtype.is_int() {
        return PrimExpr::select(zero.lt(wide), number(1.0), number(0.0));
    }
    let negative = PrimExpr::select(wide.clone().lt(zero.clone()), number(-1.0), number(0.0));
    let sign = PrimExpr::select(zero.lt(wide.clone()), number(1.0), negative);
    if dtype.is_float() { PrimExpr::select(is_nan(wide.clone()), wide, sign) } else { sign }
}

fn is_nan(x: PrimExpr) -> PrimExpr {
    let dtype = x.dtype();
    if !dtype.is_float() {
        return PrimExpr::bool(false);
    }
    call(Intrinsic::IsNan, if dtype.bits < 32 { x.cast(DType::F32) } else { x })
}

fn infinite(op: CmpOp, x: &PrimExpr) -> PrimExpr {
    let inf = PrimExpr::float(x.dtype(), f64::INFINITY);
    PrimExpr::cmp(op, call(Intrinsic::Abs, x.clone()), inf)
}

fn is_inf(x: PrimExpr) -> PrimExpr {
    if !x.dtype().is_float() {
        return PrimExpr::bool(false);
    }
    infinite(CmpOp::Eq, &x).and(is_nan(x).logical_not())
}

fn is_finite(x: PrimExpr) -> PrimExpr {
    if !x.dtype().is_float() {
        return PrimExpr::bool(true);
    }
    infinite(CmpOp::Ne, &x).or(is_nan(x.clone())).and(is_nan(x).logical_not())
}

/// The same shape and type.
pub(super) fn any(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    cx.result(x.dims, x.dtype)
}

/// The same shape and type, which must be floating point.
pub(super) fn float(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    any(cx)
}

fn bits(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "an integer type or bool", |d| d.is_integer() || d.is_bool())?;
    any(cx)
}

fn logic(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "bool", DType::is_bool)?;
    any(cx)
}

fn test(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    cx.result(x.dims, Some(DType::BOOL))
}

fn lower(cx: &LowerCx<'_>, stage: &str, f: fn(PrimExpr) -> PrimExpr) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let axes = if stage == "compute" { Axes::I } else { Axes::Ax };
    let mut te = Te::new();
    let out = te.compute(stage, axes, cx.out_dims()?, cx.out_dtype()?, |i| f(PrimExpr::load(x, i.to_vec())));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
