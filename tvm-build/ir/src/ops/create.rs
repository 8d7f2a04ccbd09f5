//! Tensors from nothing: constants, ranges, identities; and triangles.

use super::row::{arg, attr, op, optional, required, tensor};
use super::show::show_expr;
use crate::arith::Analyzer;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::PrimExpr;
use crate::relax::{
    ArgDef, ArgKind, AttrDef, AttrDefault, AttrKind, Call, Dims, InferCx, Leaf, Lower, LowerCx, OpDef, Pattern,
    StructInfo,
};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

const SHAPE: ArgDef = arg("shape", ArgKind::Shape);
const FILL: ArgDef = arg("fill_value", ArgKind::Prim);
const DTYPE: AttrDef = required("dtype", AttrKind::DType);
const OPT_DTYPE: AttrDef = attr("dtype", AttrKind::DType, AttrDefault::Void);

/// Tensors of one value: name, arguments, dtype, value, doc.
macro_rules! fills {
    ($($name:literal $hint:literal $args:expr, $dtype:expr, $infer:expr, $value:expr, $doc:literal;)*) => {
        [$( op($name, $doc, $args, $dtype, $infer, Lower::Tir($hint, |cx| fill(cx, $value)), Pattern::ElemWise) ),*]
    };
}

pub(super) static FILLS: &[OpDef] = &fills! {
    "full" "full" &[SHAPE, FILL], &[OPT_DTYPE], |cx| of_shape(cx, Some(1)), None, "a tensor of one value";
    "full_like" "full" &[tensor("x"), FILL], &[OPT_DTYPE], like, None, "a tensor of one value in x's shape";
    "ones" "ones" &[SHAPE], &[DTYPE], |cx| of_shape(cx, None), Some(1), "a tensor of ones";
    "ones_like" "ones" &[tensor("x")], &[OPT_DTYPE], like, Some(1), "ones in x's shape";
    "zeros" "zeros" &[SHAPE], &[DTYPE], |cx| of_shape(cx, None), Some(0), "a tensor of zeros";
    "zeros_like" "zeros" &[tensor("x")], &[OPT_DTYPE], like, Some(0), "zeros in x's shape";
};

pub(super) static OPS: &[OpDef] = &[
    op(
        "arange",
        "start, start + step, … below end",
        &[arg("start", ArgKind::Prim), optional("end", ArgKind::Prim), optional("step", ArgKind::Prim)],
        &[OPT_DTYPE],
        infer_arange,
        Lower::Tir("arange", lower_arange),
        Pattern::ElemWise,
    )
    .prepared(prepare_arange),
    op(
        "eye",
        "n by m, ones on the k-th diagonal, zeros elsewhere",
        &[arg("n", ArgKind::Prim), optional("m", ArgKind::Prim), optional("k", ArgKind::Prim)],
        &[attr("dtype", AttrKind::DType, AttrDefault::DType(DType::F32))],
        infer_eye,
        Lower::Tir("eye", lower_eye),
        Pattern::ElemWise,
    )
    .prepared(prepare_eye),
    op(
        "tril",
        "x with zeros above the k-th diagonal of the last two axes",
        &[tensor("x"), optional("k", ArgKind::Prim)],
        &[],
        infer_triangle,
        Lower::Tir("tril", |cx| lower_triangle(cx, false)),
        Pattern::ElemWise,
    )
    .prepared(prepare_triangle),
    op(
        "triu",
        "x with zeros below the k-th diagonal of the last two axes",
        &[tensor("x"), optional("k", ArgKind::Prim)],
        &[],
        infer_triangle,
        Lower::Tir("triu", |cx| lower_triangle(cx, true)),
        Pattern::ElemWise,
    )
    .prepared(prepare_triangle),
];

/// The given dtype, else that of an argument.
fn chosen_dtype(cx: &InferCx<'_>, from: usize) -> Result<Option<DType>, Diag> {
    match cx.dtype_attr("dtype") {
        Some(d) => Ok(Some(d)),
        None => Ok(cx.tensor(from)?.dtype),
    }
}

fn of_shape(cx: &InferCx<'_>, value: Option<usize>) -> Result<StructInfo, Diag> {
    let StructInfo::Shape(dims) = cx.info(0)? else { return Err(cx.fail("argument `shape` must be a shape")) };
    if let Some(bad) = dims.known().and_then(|d| d.iter().find(|e| e.as_int().is_some_and(|v| v < 0))) {
        return Err(cx.fail(format!("dimension {} is negative", show_expr(bad))));
    }
    let dtype = match value {
        Some(i) => chosen_dtype(cx, i)?,
        None => cx.dtype_attr("dtype"),
    };
    cx.result(dims, dtype)
}

/// The shape of `x`, and its type unless another is given.
fn like(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let dtype = chosen_dtype(cx, 0)?;
    cx.result(cx.tensor(0)?.dims, dtype)
}

fn fill(cx: &LowerCx<'_>, value: Option<i64>) -> Result<PrimFunc, Diag> {
    let dtype = cx.out_dtype()?;
    let value = match value {
        Some(v) => PrimExpr::number(dtype, if v == 0 { 0.0 } else { 1.0 }),
        None => cx.scalar(1)?.cast(dtype),
    };
    let mut te = Te::new();
    let out = te.compute("T_full", Axes::Ax, cx.out_dims()?, dtype, |_| value);
    let reads_value = cx.call.op.def().args.iter().any(|a| a.name == "fill_value");
    // The tensor of `*_like` gives its shape alone.
    let inputs = if reads_value { &cx.inputs[1..] } else { &[] };
    Ok(te.finish(inputs, &[out], cx.call.span))
}

/// `arange(n)` is `arange(0, n, 1)`.
fn prepare_arange(call: &mut Call) -> Result<(), Diag> {
    if matches!(call.args[1], Leaf::Absent) {
        call.args.swap(0, 1);
        call.args[0] = Leaf::Prim(PrimExpr::i64(0));
    }
    if matches!(call.args[2], Leaf::Absent) {
        call.args[2] = Leaf::Prim(PrimExpr::i64(1));
    }
    let float = call.args.iter().any(|a| matches!(a, Leaf::Prim(e) if e.dtype().is_float()));
    if call.attrs[0].as_dtype().is_some_and(DType::is_void) {
        call.attrs[0] = if float { DType::F32 } else { DType::I64 }.into();
    }
    Ok(())
}

/// A scalar argument as an expression.
fn prim(cx: &InferCx<'_>, i: usize) -> Result<PrimExpr, Diag> {
    match cx.call.args.get(i) {
        Some(Leaf::Prim(e)) => Ok(e.clone()),
        Some(Leaf::Const(c)) => {
            super::legalize::scalar_constant(c).ok_or_else(|| cx.fail("a constant that is no scalar"))
        }
        _ => match cx.info(i)? {
            StructInfo::Prim(_, Some(e)) => Ok(e),
            _ => Err(cx.fail(format!("the value of `{}` must be known when it is compiled", cx.arg_name(i)))),
        },
    }
}

fn infer_arange(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let (start, end, step) = (prim(cx, 0)?, prim(cx, 1)?, prim(cx, 2)?);
    let dtype = cx.dtype_attr("dtype");
    let float = |e: &PrimExpr| e.as_float().or_else(|| e.as_int().map(|v| v as f64));
    let n = if [&start, &end, &step].iter().any(|e| e.dtype().is_float()) {
        let (Some(a), Some(b), Some(s)) = (float(&start), float(&end), float(&step)) else {
            return cx.result(Dims::Rank(1), dtype);
        };
        let n = ((b - a) / s).ceil();
        if !n.is_finite() || n.abs() > 1e15 {
            return Err(cx.fail(format!("a range from {a} to {b} by {s} has no length")));
        }
        PrimExpr::i64((n as i64).max(0))
    } else {
        if step.is_int(0) {
            return Err(cx.fail("`step` is 0"));
        }
        let (start, end, step) = (start.cast(DType::I64), end.cast(DType::I64), step.cast(DType::I64));
        if let (Some(a), Some(b), Some(s)) = (start.as_int(), end.as_int(), step.as_int()) {
            let n = fixed_length(i128::from(a), i128::from(b), i128::from(s));
            let n = n.ok_or_else(|| cx.fail(format!("a range from {a} to {b} by {s} is too long")))?;
            return cx.result(Dims::Known(vec![PrimExpr::i64(n)]), dtype);
        }
        match step.as_int() {
            Some(s) if s < 0 => {
                let back = s.checked_neg().ok_or_else(|| cx.fail(format!("`step` cannot be {s}")))?;
                (start - end + (back - 1)).floordiv(back).max(0)
            }
            // As TVM: (end - start + step - 1) // step, no check for an empty range of symbolic bounds.
            _ => (end - start + step.clone() - 1).floordiv(step),
        }
    };
    cx.result(Dims::Known(vec![cx.analyzer.simplify(&n)]), dtype)
}

/// How many elements a range has; `None` if these are more than can be counted.
fn fixed_length(start: i128, end: i128, step: i128) -> Option<i64> {
    let (span, step) = if step < 0 { (start - end, -step) } else { (end - start, step) };
    i64::try_from((span.max(0) + step - 1) / step).ok()
}

fn lower_arange(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let dtype = cx.out_dtype()?;
    let (start, step) = cx.with_infer(|c| Ok((prim(c, 0)?, prim(c, 2)?)))?;
    let mut te = Te::new();
    let out = te.compute("T_arange", Axes::Ax, cx.out_dims()?, dtype, |i| {
        let wide = if start.dtype().is_float() || step.dtype().is_float() { dtype } else { DType::I64 };
        (start.cast(wide) + step.cast(wide) * i[0].cast(wide)).cast(dtype)
    });
    Ok(te.finish(&[], &[out], cx.call.span))
}

fn prepare_eye(call: &mut Call) -> Result<(), Diag> {
    if matches!(call.args[1], Leaf::Absent) {
        call.args[1] = call.args[0].clone();
    }
    if matches!(call.args[2], Leaf::Absent) {
        call.args[2] = Leaf::Prim(PrimExpr::i64(0));
    }
    Ok(())
}

fn infer_eye(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let dims = vec![prim(cx, 0)?.cast(DType::I64), prim(cx, 1)?.cast(DType::I64)];
    cx.result(Dims::Known(dims), cx.dtype_attr("dtype"))
}

fn lower_eye(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let dtype = cx.out_dtype()?;
    let k = cx.with_infer(|c| prim(c, 2))?.cast(DType::I64);
    let mut te = Te::new();
    let out = te.compute("eye", Axes::Named(&["i", "j"]), cx.out_dims()?, dtype, |i| {
        let on = i[0].clone().eq(&i[1] - k);
        PrimExpr::if_then_else(on, PrimExpr::number(dtype, 1.0), PrimExpr::zero(dtype))
    });
    Ok(te.finish(&[], &[out], cx.call.span))
}

fn prepare_triangle(call: &mut Call) -> Result<(), Diag> {
    if matches!(call.args[1], Leaf::Absent) {
        call.args[1] = Leaf::Prim(PrimExpr::i64(0));
    }
    Ok(())
}

fn infer_triangle(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    if x.dims.rank().is_some_and(|r| r < 2) {
        return Err(cx.fail("`x` must have at least two axes"));
    }
    cx.result(x.dims, x.dtype)
}

fn lower_triangle(cx: &LowerCx<'_>, upper: bool) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let k = cx.scalar(1)?.cast(DType::I64);
    let analyzer = Analyzer::new();
    let mut te = Te::new();
    let out = te.compute("trilu", Axes::I, &x.shape, x.dtype, |i| {
        let (row, column) = (&i[i.len() - 2], &i[i.len() - 1]);
        let diagonal = analyzer.simplify(&(row + k));
        let kept = if upper { diagonal.le(column) } else { column.clone().le(diagonal) };
        PrimExpr::select(kept, PrimExpr::load(x, i.to_vec()), PrimExpr::zero(x.dtype))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
