//! Pools.

use tvm_ir::attrs::AttrValue;
use tvm_ir::prim::PrimExpr;

use super::Row;
use super::window::Window;
use crate::import::onnx::cx::{OpCx, Outputs, axes_attr};
use crate::import::onnx::emit::{Fail, constant_of};
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("AveragePool", 1, average_pool),
    ("GlobalAveragePool", 1, |cx| global(cx, "mean")),
    ("GlobalLpPool", 2, global_lp_pool),
    ("GlobalMaxPool", 1, |cx| global(cx, "max")),
    ("LpPool", 2, lp_pool),
    ("MaxPool", 1, max_pool),
];

fn pool(cx: &mut OpCx<'_>, x: Value, name: &str, count_include_pad: bool) -> Result<(Value, Window), Fail> {
    let dims = cx.dims(&x, "X")?;
    let (op, layout) = match (dims.len(), name) {
        (3, "max") => ("nn.max_pool1d", "NCW"),
        (4, "max") => ("nn.max_pool2d", "NCHW"),
        (5, "max") => ("nn.max_pool3d", "NCDHW"),
        (3, _) => ("nn.avg_pool1d", "NCW"),
        (4, _) => ("nn.avg_pool2d", "NCHW"),
        (5, _) => ("nn.avg_pool3d", "NCDHW"),
        _ => return Err(format!("pools are over 1 to 3 spatial axes, and X has shape {dims:?}").into()),
    };
    let mut window = Window::read(cx, dims.len() - 2, None)?;
    let ceil_mode = cx.node.flag_or("ceil_mode", false)?;
    let dtype = cx.dtype(&x, "X")?;
    let (mut x, mut dims) = (x, dims);
    // A mean over what is within the input alone does not know padding that is made before.
    if name == "max" || count_include_pad {
        let lowest = dtype.min_int().map_or(f64::NEG_INFINITY, |n| n as f64);
        let value = cx.scalar(if name == "max" { lowest } else { 0.0 }, dtype)?;
        x = window.padded(cx, x, value)?;
        dims = cx.dims(&x, "X")?;
    }
    let padding = window.padding(&dims[2..])?;
    let round_up = if ceil_mode { Some(window.round_up(&padding, &dims[2..])?) } else { None };
    // Windows that reach beyond the padding are of no account to a maximum.
    let explicit = round_up.as_ref().filter(|r| !r.plain || name == "avg" && r.beyond);
    let attrs: Vec<(&'static str, AttrValue)> = vec![
        ("pool_size", window.kernel.clone().into()),
        ("strides", window.strides.clone().into()),
        ("padding", explicit.map_or(&padding, |r| &r.padding).clone().into()),
        ("dilation", window.dilations.clone().into()),
        ("ceil_mode", (ceil_mode && explicit.is_none()).into()),
        ("count_include_pad", count_include_pad.into()),
        ("layout", layout.into()),
    ];
    let out = cx.call(op, vec![x], attrs)?;
    let Some(round_up) = explicit.filter(|_| count_include_pad) else { return Ok((out, window)) };
    // What is beyond the padding is not counted: the mean is taken over what is within.
    let extents = dims[2..].iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
    let extents = extents.ok_or("'ceil_mode' with 'count_include_pad' needs fixed spatial extents")?;
    let dtype = cx.dtype(&out, "the output")?;
    let size: f64 = window.kernel.iter().map(|&k| k as f64).product();
    let factors: Vec<f64> = window.counts(&round_up.windows, &padding, &extents).iter().map(|c| size / c).collect();
    let shape = [&[1, 1], &round_up.windows[..]].concat().iter().map(|&n| n.unsigned_abs()).collect();
    let factors = constant_of(&factors, shape, dtype)
        .ok_or_else(|| Fail::limit(format!("pools of {dtype} are not supported")))?;
    Ok((cx.apply("multiply", &[&out, &factors.into()])?, window))
}

fn max_pool(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    // The order of what the second output holds.
    let column_major = cx.node.flag_or("storage_order", false)?;
    if cx.output_count() > 1 {
        return max_pool_with_indices(cx, x, column_major);
    }
    Ok(vec![pool(cx, x, "max", false)?.0])
}

fn max_pool_with_indices(cx: &mut OpCx<'_>, x: Value, column_major: bool) -> Outputs {
    let dims = cx.dims(&x, "X")?;
    let spatial = dims.len().checked_sub(2).filter(|n| *n > 0).ok_or("X must have spatial axes")?;
    let window = Window::read(cx, spatial, None)?;
    let ceil_mode = cx.node.flag_or("ceil_mode", false)?;
    let padding = window.padding(&dims[2..])?;
    let extents = dims[2..].iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
    let extents = extents.ok_or("the indices of MaxPool need fixed spatial extents")?;
    let windows = if ceil_mode {
        window.round_up(&padding, &dims[2..])?.windows
    } else {
        let whole = |a: usize| extents[a].saturating_add(padding[a]).saturating_add(padding[a + spatial]);
        (0..spatial).map(|a| (whole(a) - window.span(a)).div_euclid(window.strides[a]) + 1).collect()
    };
    let attrs = vec![
        ("pool_size", window.kernel.into()),
        ("strides", window.strides.into()),
        ("dilation", window.dilations.into()),
        ("padding", padding[..spatial].to_vec().into()),
        ("windows", windows.into()),
        ("column_major", column_major.into()),
    ];
    let both = cx.call("nn.max_pool_with_indices", vec![x], attrs)?;
    cx.emitter.fields(&both)
}

fn average_pool(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let count_include_pad = cx.node.flag_or("count_include_pad", false)?;
    let dims = cx.dims(&x, "X")?;
    let varies = dims.len() > 2 && Window::read(cx, dims.len() - 2, None)?.varies(&dims[2..]);
    if count_include_pad || !varies {
        return Ok(vec![pool(cx, x, "avg", count_include_pad)?.0]);
    }
    // What windows hold of the input, by what they hold of ones in its place.
    let dtype = cx.dtype(&x, "X")?;
    let mut spatial = dims;
    (spatial[0], spatial[1]) = (PrimExpr::i64(1), PrimExpr::i64(1));
    let ones = cx.call("ones", vec![Value::shape(spatial)], vec![("dtype", AttrValue::DType(dtype))])?;
    let (sum, counts) = (pool(cx, x, "avg", true)?.0, pool(cx, ones, "avg", true)?.0);
    Ok(vec![cx.apply("divide", &[&sum, &counts])?])
}

/// The exponent `p` and `1 / p` as constants.
fn exponents(cx: &mut OpCx<'_>, x: &Value) -> Result<(Value, Value), Fail> {
    let p = cx.node.int_or("p", 2)?;
    if p < 1 {
        return Err(format!("attribute 'p' cannot be {p}").into());
    }
    let dtype = cx.dtype(x, "X")?;
    Ok((cx.scalar(p as f64, dtype)?, cx.scalar(1.0 / p as f64, dtype)?))
}

/// The mean of the powers times the size of the window is their sum.
fn lp_pool(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let (p, root) = exponents(cx, &x)?;
    let size = cx.apply("abs", &[&x])?;
    let powers = cx.apply("power", &[&size, &p])?;
    let (mean, window) = pool(cx, powers, "avg", true)?;
    let dtype = cx.dtype(&x, "X")?;
    let count = cx.scalar(window.kernel.iter().map(|&k| k as f64).product(), dtype)?;
    let sum = cx.apply("multiply", &[&mean, &count])?;
    Ok(vec![cx.apply("power", &[&sum, &root])?])
}

fn over_space(cx: &mut OpCx<'_>, op: &str, x: Value) -> Result<Value, Fail> {
    let rank = cx.rank(&x, "X")?;
    if rank < 2 {
        return Err(format!("the input must have batch and channels, and its rank is {rank}").into());
    }
    let axes: Vec<usize> = (2..rank).collect();
    if axes.is_empty() {
        return Ok(x);
    }
    cx.call(op, vec![x], vec![("axis", axes_attr(&axes)), ("keepdims", true.into())])
}

fn global(cx: &mut OpCx<'_>, op: &str) -> Outputs {
    let x = cx.input(0, "X")?;
    Ok(vec![over_space(cx, op, x)?])
}

fn global_lp_pool(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let (p, root) = exponents(cx, &x)?;
    let size = cx.apply("abs", &[&x])?;
    let powers = cx.apply("power", &[&size, &p])?;
    let sum = over_space(cx, "sum", powers)?;
    Ok(vec![cx.apply("power", &[&sum, &root])?])
}
