//! Convolutions and pools at places that come from data.

use super::extents::assert;
use super::row::{attr, op, optional, required, tensor};
use super::show::show_tensor;
use super::window::Window;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr, Var};
use crate::relax::{ArgKind, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Reducer, Te};
use crate::tir::{PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[
    op(
        "nn.deformable_conv2d",
        "convolution of NCHW data, each of whose elements is read as far from its place as `offset` says (batch, for each \
         group, row and column of the kernel and for y and x, height, width), between elements by bilinear interpolation, \
         outside as 0, and multiplied by the mask",
        &[tensor("data"), tensor("offset"), tensor("weight"), optional("mask", ArgKind::Tensor)],
        &[
            attr("strides", AttrKind::Ints, AttrDefault::Ints(&[1, 1])),
            attr("padding", AttrKind::Ints, AttrDefault::Ints(&[0, 0, 0, 0])),
            attr("dilation", AttrKind::Ints, AttrDefault::Ints(&[1, 1])),
            attr("deformable_groups", AttrKind::Int, AttrDefault::Int(1)),
            attr("groups", AttrKind::Int, AttrDefault::Int(1)),
        ],
        infer_conv,
        Lower::Tir("deformable_conv2d", lower_conv),
        Pattern::OutEWiseFusable,
    ),
    op(
        "vision.roi_align",
        "for each region of interest (batch index, x1, y1, x2, y2) a grid of averages (\"avg\") or maxima (\"max\") of \
         samples of NCHW data by bilinear interpolation, `sample_ratio` along each axis of a cell, or about one an element \
         where it is not positive. `aligned` moves regions by half an element. A batch index out of range is an error at \
         run time",
        &[tensor("data"), tensor("rois")],
        &[
            required("pooled_size", AttrKind::Ints),
            required("spatial_scale", AttrKind::Float),
            attr("sample_ratio", AttrKind::Int, AttrDefault::Int(-1)),
            attr("aligned", AttrKind::Bool, AttrDefault::Bool(false)),
            attr("layout", AttrKind::Str, AttrDefault::Str("NCHW")),
            attr("mode", AttrKind::Str, AttrDefault::Str("avg")),
        ],
        infer_roi,
        Lower::Tir("roi_align", lower_roi),
        Pattern::Opaque,
    ),
];

/// Groups of channels of the offsets, and of the convolution.
fn groups(cx: &InferCx<'_>) -> Result<(i64, i64), Diag> {
    let (deformable, groups) = (cx.int("deformable_groups")?, cx.int("groups")?);
    if deformable < 1 || groups < 1 {
        return Err(cx.fail("`groups` and `deformable_groups` must be positive"));
    }
    Ok((deformable, groups))
}

fn infer_conv(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let (x, offset, w) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    for (i, t) in [&x, &offset, &w].into_iter().enumerate() {
        cx.expect_rank(i, t, 4)?;
        cx.expect_dtype(i, "floating point", DType::is_float)?;
    }
    let dtype = cx.common_dtype(0, 2)?;
    let window = Window::of(cx, 2)?;
    let (deformable, groups) = groups(cx)?;
    let (Some(xd), Some(od), Some(wd)) = (x.dims.known(), offset.dims.known(), w.dims.known()) else {
        return cx.result(Dims::Rank(4), dtype);
    };
    let misfit = |what: &str| {
        cx.fail(format!(
            "`data` {}, `offset` {} and `weight` {}: {what}",
            show_tensor(&x),
            show_tensor(&offset),
            show_tensor(&w)
        ))
    };
    let places = &wd[2] * wd[3].clone() * deformable;
    let divides = |n: &PrimExpr, by: i64| n.as_int().is_none_or(|n| n % by == 0);
    if cx.differ(&xd[1], &(&wd[1] * groups)) || !divides(&wd[0], groups) || !divides(&xd[1], deformable) {
        return Err(misfit("the channels do not fit"));
    }
    if cx.differ(&od[1], &(places.clone() * 2)) || cx.differ(&od[0], &xd[0]) {
        return Err(misfit("there must be two offsets for each place of the kernel and group"));
    }
    let spatial = window.out_dims(cx, &xd[2..], &wd[2..], false)?;
    if cx.differ(&od[2], &spatial[0]) || cx.differ(&od[3], &spatial[1]) {
        return Err(misfit("the offsets do not have the size of the result"));
    }
    if cx.is_given(3) {
        let mask = cx.tensor(3)?;
        cx.expect_rank(3, &mask, 4)?;
        cx.expect_dtype(3, "floating point", DType::is_float)?;
        if mask.dims.known().is_some_and(|m| cx.differ(&m[1], &places) || cx.differ(&m[2], &spatial[0])) {
            return Err(cx.fail(format!("`mask` {} must have one value for two offsets", show_tensor(&mask))));
        }
    }
    cx.result(Dims::Known(vec![xd[0].clone(), wd[0].clone(), spatial[0].clone(), spatial[1].clone()]), dtype)
}

/// The type that places and sums are computed in.
fn wide(dtype: DType) -> DType {
    if dtype.bits > 32 { DType::F64 } else { DType::F32 }
}

/// The element `(y, x)` of one channel, 0 outside; the places are whole numbers of a float type.
fn element(data: &Buffer, image: &[PrimExpr; 2], y: &PrimExpr, x: &PrimExpr) -> PrimExpr {
    let dtype = y.dtype();
    let index = |e: &PrimExpr| e.cast(DType::I64);
    let within = |e: &PrimExpr, n: &PrimExpr| PrimExpr::i64(0).le(index(e)).and(index(e).lt(n.clone()));
    let inside = within(y, &data.shape[2]).and(within(x, &data.shape[3]));
    let at = vec![image[0].clone(), image[1].clone(), index(y), index(x)];
    PrimExpr::if_then_else(inside, PrimExpr::load(data, at).cast(dtype), PrimExpr::zero(dtype))
}

fn lower_conv(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (data, offset, weight) = (cx.buffer(0)?, cx.buffer(1)?, cx.buffer(2)?);
    let mask = cx.inputs.get(3).and_then(|b| b.first());
    let (window, (deformable, groups)) = cx.with_infer(|c| Ok((Window::of(c, 2)?, groups(c)?)))?;
    let (out, dtype) = (cx.out_dims()?, wide(data.dtype));
    let (height, width) = (weight.shape[2].clone(), weight.shape[3].clone());
    let of_offsets = data.shape[1].clone().floordiv(deformable);
    let mut te = Te::new();
    // The data at the places of each result and element of the kernel.
    let shape = [&data.shape[..2], &[height.clone(), width.clone()], &out[2..]].concat();
    let sampled = te.compute("sampled", Axes::Ax, &shape, dtype, |i| {
        let [n, c, p, q, h, w] = i else { return PrimExpr::zero(dtype) };
        let at = (c.clone().floordiv(of_offsets.clone()) * height.clone() + p.clone()) * width.clone() + q.clone();
        let place = |axis: usize, i: &PrimExpr, k: &PrimExpr| {
            let own =
                PrimExpr::load(offset, vec![n.clone(), at.clone() * 2 + i64::from(axis == 1), h.clone(), w.clone()]);
            let fixed = i.clone() * window.strides[axis] + k.clone() * window.dilation[axis] - window.before[axis];
            fixed.cast(dtype) + own.cast(dtype)
        };
        let (y, x) = (place(0, h, p), place(1, w, q));
        let floor = |e: &PrimExpr| PrimExpr::call(Intrinsic::Floor, vec![e.clone()]);
        let (top, left, one) = (floor(&y), floor(&x), PrimExpr::number(dtype, 1.0));
        let (down, right) = (y - top.clone(), x - left.clone());
        let image = [n.clone(), c.clone()];
        let corner = |below: bool, beside: bool| {
            let y = if below { top.clone() + one.clone() } else { top.clone() };
            let x = if beside { left.clone() + one.clone() } else { left.clone() };
            let share = |part: &PrimExpr, far: bool| if far { part.clone() } else { one.clone() - part.clone() };
            element(data, &image, &y, &x) * share(&down, below) * share(&right, beside)
        };
        let value = corner(false, false) + corner(false, true) + corner(true, false) + corner(true, true);
        match mask {
            Some(mask) => value * PrimExpr::load(mask, vec![n.clone(), at.clone(), h.clone(), w.clone()]).cast(dtype),
            None => value,
        }
    });
    let reduced = [("rc", weight.shape[1].clone()), ("ry", height), ("rx", width)];
    let per_group = weight.shape[0].clone().floordiv(groups);
    let sum = te.reduce("deformable_conv2d", Axes::Ax, out, &reduced, Reducer::Sum, dtype, |i, k| {
        let channel =
            if groups == 1 { k[0].clone() } else { i[1].clone().floordiv(per_group) * &weight.shape[1] + k[0].clone() };
        let at = vec![i[0].clone(), channel, k[1].clone(), k[2].clone(), i[2].clone(), i[3].clone()];
        let own = PrimExpr::load(weight, vec![i[1].clone(), k[0].clone(), k[1].clone(), k[2].clone()]);
        PrimExpr::load(&sampled, at) * own.cast(dtype)
    });
    let out = if dtype == data.dtype {
        sum
    } else {
        te.compute("T_cast", Axes::Ax, out, data.dtype, |i| PrimExpr::load(&sum, i.to_vec()))
    };
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

fn infer_roi(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let (x, rois) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.expect_rank(0, &x, 4)?;
    cx.expect_rank(1, &rois, 2)?;
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    cx.expect_dtype(1, "floating point", DType::is_float)?;
    for (name, legal) in [("mode", &["avg", "max"][..]), ("layout", &["NCHW"])] {
        let given = cx.str(name)?;
        if !legal.contains(&given) {
            let message = format!("attribute `{name}` is \"{given}\"");
            return Err(cx.fail(message).help(format!("it is one of {}", legal.join(", "))));
        }
    }
    let size = cx.ints("pooled_size")?;
    if size.len() != 2 || size.iter().any(|n| *n < 1) {
        return Err(cx.fail(format!("attribute `pooled_size` must be two positive integers, it is {size:?}")));
    }
    let (Some(xd), Some(rd)) = (x.dims.known(), rois.dims.known()) else { return cx.result(Dims::Rank(4), x.dtype) };
    if cx.differ(&rd[1], &PrimExpr::i64(5)) {
        return Err(cx.fail(format!("`rois` {} must have five numbers for each region", show_tensor(&rois))));
    }
    let dims = vec![rd[0].clone(), xd[1].clone(), PrimExpr::i64(size[0]), PrimExpr::i64(size[1])];
    cx.result(Dims::Known(dims), x.dtype)
}

/// A region along one axis: where its cells begin, how long one is and how many samples it has.
struct Span {
    start: PrimExpr,
    cell: PrimExpr,
    samples: PrimExpr,
}

/// Most samples along an axis of one cell; a region that asks for more is too large for any image.
const MAX_SAMPLES: f64 = 65536.0;

fn lower_roi(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, rois) = (cx.buffer(0)?, cx.buffer(1)?);
    let dtype = wide(x.dtype);
    let (ratio, max, size, scale) = cx.with_infer(|c| {
        Ok((
            c.int("sample_ratio")?,
            c.str("mode")? == "max",
            c.ints("pooled_size")?,
            c.call.attr("spatial_scale").as_float(),
        ))
    })?;
    let scale = scale.ok_or_else(|| cx.fail("attribute `spatial_scale` must be a number"))?;
    let aligned = cx.call.attr("aligned").as_bool() == Some(true);
    let float = |v: f64| PrimExpr::number(dtype, v);
    let sum = Buffer::new("roi_align", cx.out_dims()?.to_vec(), dtype);
    let mut te = Te::new();
    te.block("roi_align", Axes::Ax, cx.out_dims()?, &[], std::slice::from_ref(&sum), |i, _| {
        let number = |column: i64| PrimExpr::load(rois, vec![i[0].clone(), PrimExpr::i64(column)]).cast(dtype);
        let span = |axis: usize| {
            let column = if axis == 0 { 2 } else { 1 };
            let edge = |column: i64| number(column) * float(scale) - float(if aligned { 0.5 } else { 0.0 });
            let length = edge(column + 2) - edge(column);
            let length = if aligned { length } else { length.max(float(1.0)) };
            let cell = length / float(size[axis] as f64);
            let samples = if ratio > 0 {
                PrimExpr::i64(ratio)
            } else {
                let count = PrimExpr::call(Intrinsic::Ceil, vec![cell.clone()]);
                count.min(float(MAX_SAMPLES)).max(float(0.0)).cast(DType::I64)
            };
            Span { start: edge(column), cell, samples }
        };
        let (rows, columns) = (span(0), span(1));
        let set = |v: PrimExpr| Stmt::store(&sum, i.to_vec(), v);
        let old = || PrimExpr::load(&sum, i.to_vec());
        let (p, q) = (Var::new("p", DType::I64), Var::new("q", DType::I64));
        let batch = number(0).cast(DType::I64);
        let inside = PrimExpr::i64(0).le(batch.clone()).and(batch.clone().lt(x.shape[0].clone()));
        let image = [batch.min(x.shape[0].clone() - 1).max(0), i[1].clone()];
        let places = [place(&rows, &i[2], &p.expr()), place(&columns, &i[3], &q.expr())];
        let sample = sample(x, &image, places, max);
        let first = p.expr().eq(0).and(q.expr().eq(0));
        let more = if max { PrimExpr::select(first, sample.clone(), old().max(sample)) } else { old() + sample };
        let inner = Stmt::serial(q.clone(), columns.samples.clone(), set(more));
        let loops = Stmt::serial(p.clone(), rows.samples.clone(), inner);
        let body = Stmt::seq([assert(inside, "the batch index of a region is out of range"), set(float(0.0)), loops]);
        if max {
            return (None, body);
        }
        let count = (rows.samples.clone() * columns.samples.clone()).max(1);
        (None, Stmt::seq([body, set(old() / count.cast(dtype))]))
    });
    let out = if dtype == x.dtype {
        sum
    } else {
        te.compute("T_cast", Axes::Ax, cx.out_dims()?, x.dtype, |i| PrimExpr::load(&sum, i.to_vec()))
    };
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// The place of a sample of a cell.
fn place(span: &Span, cell: &PrimExpr, sample: &PrimExpr) -> PrimExpr {
    let dtype = span.cell.dtype();
    let within = (sample.cast(dtype) + PrimExpr::number(dtype, 0.5)) * span.cell.clone() / span.samples.cast(dtype);
    span.start.clone() + cell.cast(dtype) * span.cell.clone() + within
}

/// The element of one channel at a place, or the greatest of the shares it is made of; 0 further outside than one element.
fn sample(x: &Buffer, image: &[PrimExpr; 2], at: [PrimExpr; 2], max: bool) -> PrimExpr {
    let dtype = at[0].dtype();
    let float = |v: f64| PrimExpr::number(dtype, v);
    let mut near = PrimExpr::bool(true);
    // Along each axis two elements and their shares.
    let sides: Vec<[(PrimExpr, PrimExpr); 2]> = at
        .into_iter()
        .zip(&x.shape[2..])
        .map(|(at, n)| {
            let length = n.cast(dtype);
            near = near.clone().and(at.clone().ge(float(-1.0))).and(at.clone().le(length));
            let at = at.max(float(0.0));
            let last = n.clone() - 1;
            let low = at.cast(DType::I64).min(last.clone()).max(0);
            let high = (low.clone() + 1).min(last.clone()).max(0);
            let beyond = low.clone().ge(last);
            let far = PrimExpr::select(beyond, float(0.0), at - low.cast(dtype));
            [(low, float(1.0) - far.clone()), (high, far)]
        })
        .collect();
    let shares = sides[0].iter().flat_map(|(y, a)| {
        sides[1].iter().map(move |(x_, b)| {
            let index = vec![image[0].clone(), image[1].clone(), y.clone(), x_.clone()];
            a.clone() * b.clone() * PrimExpr::load(x, index).cast(dtype)
        })
    });
    let value = shares.reduce(|a, b| if max { a.max(b) } else { a + b }).unwrap_or_else(|| float(0.0));
    PrimExpr::if_then_else(near, value, float(0.0))
}
