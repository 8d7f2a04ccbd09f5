//! Fourier transforms. A complex tensor has a last axis of two: real and imaginary parts.

use super::row::{arg, attr, op, optional, tensor};
use super::show::show_tensor;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr};
use crate::relax::{
    ArgKind, AttrDefault, AttrKind, Dims, InferCx, Leaf, Lower, LowerCx, OpDef, Pattern, StructInfo, TensorInfo,
};
use crate::te::{Axes, Reducer, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[
    op(
        "dft",
        "discrete Fourier transform of `length` elements along an axis, complex; the last axis of x has the real part alone \
         or both parts. Missing elements are 0. `onesided` leaves out those that follow from the others as x is real: in \
         the result, or with `inverse` in x, and then the result is real",
        &[tensor("x"), arg("length", ArgKind::Prim)],
        &[
            attr("axis", AttrKind::Int, AttrDefault::Int(-2)),
            attr("inverse", AttrKind::Bool, AttrDefault::Bool(false)),
            attr("onesided", AttrKind::Bool, AttrDefault::Bool(false)),
        ],
        infer_dft,
        Lower::Tir("dft", lower_dft),
        Pattern::Opaque,
    ),
    op(
        "stft",
        "Fourier transforms of parts of a signal (batch, length, 1 or 2): of `frame_length` elements, multiplied by the window, \
         each `frame_step` after the one before; (batch, part, frequency, 2)",
        &[
            tensor("signal"),
            optional("window", ArgKind::Tensor),
            arg("frame_length", ArgKind::Prim),
            arg("frame_step", ArgKind::Prim),
        ],
        &[attr("onesided", AttrKind::Bool, AttrDefault::Bool(true))],
        infer_stft,
        Lower::Tir("stft", lower_stft),
        Pattern::Opaque,
    ),
];

/// The number that argument `i` is; it becomes part of the shape.
fn number(cx: &InferCx<'_>, i: usize) -> Result<PrimExpr, Diag> {
    let value = match cx.call.args.get(i) {
        Some(Leaf::Prim(e)) => Some(e.cast(DType::I64)),
        Some(Leaf::Const(c)) => super::legalize::scalar_constant(c).map(|e| e.cast(DType::I64)),
        Some(Leaf::Var(v)) => match v.info() {
            StructInfo::Prim(_, Some(e)) => Some(e.cast(DType::I64)),
            _ => None,
        },
        _ => None,
    };
    let value = value.ok_or_else(|| cx.fail(format!("`{}` must be a known number", cx.arg_name(i))))?;
    match value.as_int() {
        Some(n) if n < 1 => Err(cx.fail(format!("`{}` is {n}, it must be positive", cx.arg_name(i)))),
        _ => Ok(value),
    }
}

/// Whether a tensor has an imaginary part, by its last axis.
fn is_complex(cx: &InferCx<'_>, x: &TensorInfo, dims: &[PrimExpr]) -> Result<bool, Diag> {
    match dims.last().and_then(PrimExpr::as_int) {
        Some(1) => Ok(false),
        Some(2) => Ok(true),
        _ => {
            Err(cx.fail(format!("the last axis of {} must be 1, real, or 2, real and imaginary parts", show_tensor(x))))
        }
    }
}

fn flag(cx: &InferCx<'_>, name: &str) -> bool {
    cx.call.attr(name).as_bool() == Some(true)
}

/// The number of frequencies that a real signal has of its own.
fn half(length: &PrimExpr) -> PrimExpr {
    length.clone().floordiv(2) + 1
}

fn infer_dft(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    let (x, length) = (cx.tensor(0)?, number(cx, 1)?);
    let Some(dims) = x.dims.known() else {
        return cx.result(x.dims.rank().map_or(Dims::Unknown, Dims::Rank), x.dtype);
    };
    let (inverse, onesided) = (flag(cx, "inverse"), flag(cx, "onesided"));
    let complex = is_complex(cx, &x, dims)?;
    if onesided && complex != inverse {
        let want = if inverse { "complex" } else { "real" };
        return Err(cx.fail(format!("{} must be {want} for `onesided`", show_tensor(&x))));
    }
    let axis = cx.axis("axis", cx.int("axis")?, dims.len())?;
    if axis + 1 == dims.len() {
        return Err(cx.fail("the axis must be before the last one, which holds real and imaginary parts"));
    }
    let mut out = dims.to_vec();
    out[axis] = cx.analyzer.simplify(&if onesided && !inverse { half(&length) } else { length });
    if let Some(last) = out.last_mut() {
        *last = PrimExpr::i64(if onesided && inverse { 1 } else { 2 });
    }
    cx.result(Dims::Known(out), x.dtype)
}

/// The type that is computed in.
fn wide(dtype: DType) -> DType {
    if dtype.bits > 32 { DType::F64 } else { DType::F32 }
}

/// Cosine and sine of each part of a circle of `length` parts.
fn circle(te: &mut Te, length: &PrimExpr, dtype: DType) -> Buffer {
    te.compute("circle", Axes::Ax, &[length.clone(), PrimExpr::i64(2)], dtype, |i| {
        let float = |e: &PrimExpr| e.cast(DType::F64);
        let turn = PrimExpr::float(DType::F64, std::f64::consts::TAU) * float(&i[0]) / float(length);
        let cos = PrimExpr::call(Intrinsic::Cos, vec![turn.clone()]);
        PrimExpr::select(i[1].clone().eq(0), cos, PrimExpr::call(Intrinsic::Sin, vec![turn])).cast(dtype)
    })
}

/// Part `part` of a complex number turned by part `at` of the circle, backwards unless `inverse`.
fn turned(circle: &Buffer, at: PrimExpr, x: (PrimExpr, PrimExpr), part: &PrimExpr, inverse: bool) -> PrimExpr {
    let of = |i: i64| PrimExpr::load(circle, vec![at.clone(), PrimExpr::i64(i)]);
    let (cos, sin, (re, im)) = (of(0), of(1), x);
    let real = if inverse {
        re.clone() * cos.clone() - im.clone() * sin.clone()
    } else {
        re.clone() * cos.clone() + im.clone() * sin.clone()
    };
    let imaginary = if inverse { im * cos + re * sin } else { im * cos - re * sin };
    PrimExpr::select(part.clone().eq(0), real, imaginary)
}

fn lower_dft(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let (length, axis, inverse, onesided, complex) = cx.with_infer(|c| {
        let (dims, info) = (&x.shape, c.tensor(0)?);
        let axis = c.axis("axis", c.int("axis")?, dims.len())?;
        Ok((number(c, 1)?, axis, flag(c, "inverse"), flag(c, "onesided"), is_complex(c, &info, dims)?))
    })?;
    let (out, dtype) = (cx.out_dims()?, wide(x.dtype));
    let last = out.len() - 1;
    let mut te = Te::new();
    let circle = circle(&mut te, &length, dtype);
    let given = x.shape[axis].clone();
    let reduced = [("k", length.clone())];
    let sum = te.reduce("dft_sum", Axes::Ax, out, &reduced, Reducer::Sum, dtype, |i, k| {
        let k = &k[0];
        // The second half of what was left out mirrors the first.
        let mirrored = (inverse && onesided).then(|| length.clone().lt(k.clone() * 2));
        let place =
            mirrored.as_ref().map_or(k.clone(), |m| PrimExpr::select(m.clone(), length.clone() - k.clone(), k.clone()));
        let part = |part: i64| {
            let mut at = i.to_vec();
            (at[axis], at[last]) = (place.clone(), PrimExpr::i64(part));
            let element = PrimExpr::load(x, at).cast(dtype);
            if given == length && mirrored.is_none() {
                return element;
            }
            PrimExpr::if_then_else(place.clone().lt(given.clone()), element, PrimExpr::zero(dtype))
        };
        let im = if complex { part(1) } else { PrimExpr::zero(dtype) };
        let im = mirrored
            .as_ref()
            .map_or(im.clone(), |m| PrimExpr::select(m.clone(), PrimExpr::zero(dtype) - im.clone(), im));
        let at = (i[axis].clone() * k.clone()).floormod(length.clone());
        turned(&circle, at, (part(0), im), &i[last], inverse)
    });
    let out = te.compute("dft", Axes::Ax, out, x.dtype, |i| {
        let sum = PrimExpr::load(&sum, i.to_vec());
        if inverse { sum / length.cast(dtype) } else { sum }
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn infer_stft(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    let (x, length, step) = (cx.tensor(0)?, number(cx, 2)?, number(cx, 3)?);
    cx.expect_rank(0, &x, 3)?;
    if cx.is_given(1) {
        cx.common_dtype(0, 1)?;
        let window = cx.tensor(1)?;
        cx.expect_rank(1, &window, 1)?;
        if window.dims.known().is_some_and(|d| cx.differ(&d[0], &length)) {
            return Err(cx.fail(format!("`window` {} must have {length:?} elements", show_tensor(&window))));
        }
    }
    let Some(dims) = x.dims.known() else { return cx.result(Dims::Rank(4), x.dtype) };
    let complex = is_complex(cx, &x, dims)?;
    let onesided = flag(cx, "onesided");
    if onesided && complex {
        return Err(cx.fail(format!("{} must be real for `onesided`", show_tensor(&x))));
    }
    let parts = cx.analyzer.simplify(&((dims[1].clone() - length.clone()).floordiv(step) + 1));
    if parts.as_int().is_some_and(|n| n < 0) {
        return Err(cx.fail(format!("a frame of {length:?} is longer than {}", show_tensor(&x))));
    }
    let bins = cx.analyzer.simplify(&if onesided { half(&length) } else { length });
    cx.result(Dims::Known(vec![dims[0].clone(), parts, bins, PrimExpr::i64(2)]), x.dtype)
}

fn lower_stft(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let window = cx.inputs.get(1).and_then(|b| b.first());
    let (length, step, complex) =
        cx.with_infer(|c| Ok((number(c, 2)?, number(c, 3)?, is_complex(c, &c.tensor(0)?, &x.shape)?)))?;
    let (out, dtype) = (cx.out_dims()?, wide(x.dtype));
    let mut te = Te::new();
    let circle = circle(&mut te, &length, dtype);
    let reduced = [("k", length.clone())];
    let sum = te.reduce("stft_sum", Axes::Ax, out, &reduced, Reducer::Sum, dtype, |i, k| {
        let place = i[1].clone() * step.clone() + k[0].clone();
        let part = |part: i64| {
            let element = PrimExpr::load(x, vec![i[0].clone(), place.clone(), PrimExpr::i64(part)]).cast(dtype);
            let element = match window {
                Some(window) => element * PrimExpr::load(window, k.to_vec()).cast(dtype),
                None => element,
            };
            if length.as_int().is_some() && step.as_int().is_some() && x.shape[1].as_int().is_some() {
                return element;
            }
            PrimExpr::if_then_else(place.clone().lt(x.shape[1].clone()), element, PrimExpr::zero(dtype))
        };
        let im = if complex { part(1) } else { PrimExpr::zero(dtype) };
        let at = (i[2].clone() * k[0].clone()).floormod(length.clone());
        turned(&circle, at, (part(0), im), &i[3], false)
    });
    let out = te.compute("stft", Axes::Ax, out, x.dtype, |i| PrimExpr::load(&sum, i.to_vec()));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
