//! Operators that move elements without computing them.

use tvm_ir::prim::{BinOp, PrimExpr};

use super::slice::tuple;
use super::{Row, ints, views};
use crate::import::onnx::cx::{OpCx, Outputs, axes_attr};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("Concat", 4, concat),
    ("DepthToSpace", 1, depth_to_space),
    ("Expand", 8, expand),
    ("Flatten", 1, flatten),
    ("Reshape", 1, reshape_attribute),
    ("Reshape", 5, reshape),
    ("SpaceToDepth", 1, space_to_depth),
    ("Split", 2, split_attribute),
    ("Split", 13, split),
    ("Squeeze", 1, squeeze_attribute),
    ("Squeeze", 13, squeeze),
    ("Tile", 6, tile),
    ("Transpose", 1, transpose),
    ("Unsqueeze", 1, unsqueeze_attribute),
    ("Unsqueeze", 13, unsqueeze),
];

fn one() -> PrimExpr {
    PrimExpr::i64(1)
}

fn concat(cx: &mut OpCx<'_>) -> Outputs {
    let mut values = cx.variadic("inputs")?;
    let axis = cx.node.int("axis")?.ok_or("attribute 'axis' is missing")?;
    let rank = cx.rank(&values[0], "the first input")?;
    cx.axis(axis, rank)?;
    // Each element of the result looks for its part: of many parts, some are joined before.
    while values.len() > MAX_PARTS {
        let joined = values.chunks(MAX_PARTS).map(|parts| joined(cx, parts.to_vec(), axis));
        values = joined.collect::<Result<_, _>>()?;
    }
    Ok(vec![joined(cx, values, axis)?])
}

/// Most inputs that one call joins.
const MAX_PARTS: usize = 64;

fn joined(cx: &mut OpCx<'_>, parts: Vec<Value>, axis: i64) -> Result<Value, Fail> {
    match &parts[..] {
        [only] => Ok(only.clone()),
        _ => cx.call("concat", vec![Value::Tuple(parts)], vec![("axis", axis.into())]),
    }
}

/// Batch, channels, height and width, and the block size.
fn blocks(cx: &mut OpCx<'_>) -> Result<(Value, [PrimExpr; 4], i64), Fail> {
    let x = cx.input(0, "input")?;
    let block = cx.node.int("blocksize")?.filter(|&b| b > 0).ok_or("attribute 'blocksize' must be positive")?;
    let dims: [PrimExpr; 4] =
        cx.dims(&x, "input")?.try_into().map_err(|d: Vec<_>| format!("the input must have 4 axes, not {}", d.len()))?;
    Ok((x, dims, block))
}

/// `extent / by`; an error if it is a number that `by` does not divide.
fn divided(extent: &PrimExpr, by: i64, what: &str) -> Result<PrimExpr, Fail> {
    match extent.as_int() {
        Some(n) if by == 0 || n % by != 0 => Err(format!("{what} of {n} is not a multiple of {by}").into()),
        _ => Ok(PrimExpr::binary(BinOp::FloorDiv, extent.clone(), PrimExpr::i64(by))),
    }
}

fn times(extent: &PrimExpr, by: i64) -> PrimExpr {
    PrimExpr::binary(BinOp::Mul, extent.clone(), PrimExpr::i64(by))
}

fn permuted(cx: &mut OpCx<'_>, x: &Value, axes: Vec<i64>) -> Result<Value, Fail> {
    cx.call("permute_dims", vec![x.clone()], vec![("axes", axes.into())])
}

fn depth_to_space(cx: &mut OpCx<'_>) -> Outputs {
    let (x, [n, c, h, w], block) = blocks(cx)?;
    let square = block.checked_mul(block).ok_or("attribute 'blocksize' is too large")?;
    let depth = divided(&c, square, "the number of channels")?;
    let b = PrimExpr::i64(block);
    let (inner, axes) = match cx.node.string_or("mode", "DCR")? {
        "DCR" => ([n.clone(), b.clone(), b, depth.clone(), h.clone(), w.clone()], vec![0, 3, 4, 1, 5, 2]),
        "CRD" => ([n.clone(), depth.clone(), b.clone(), b, h.clone(), w.clone()], vec![0, 1, 4, 2, 5, 3]),
        other => return Err(format!("attribute 'mode' is 'DCR' or 'CRD', not '{other}'").into()),
    };
    let x = cx.reshape(&x, inner.to_vec())?;
    let x = permuted(cx, &x, axes)?;
    Ok(vec![cx.reshape(&x, vec![n, depth, times(&h, block), times(&w, block)])?])
}

fn space_to_depth(cx: &mut OpCx<'_>) -> Outputs {
    let (x, [n, c, h, w], block) = blocks(cx)?;
    let axes = match cx.node.string_or("mode", "DCR")? {
        "DCR" => vec![0, 3, 5, 1, 2, 4],
        "CRD" => vec![0, 1, 3, 5, 2, 4],
        other => return Err(format!("attribute 'mode' is 'DCR' or 'CRD', not '{other}'").into()),
    };
    let square = block.checked_mul(block).ok_or("attribute 'blocksize' is too large")?;
    let (h, w) = (divided(&h, block, "the height")?, divided(&w, block, "the width")?);
    let b = PrimExpr::i64(block);
    let x = cx.reshape(&x, vec![n.clone(), c.clone(), h.clone(), b.clone(), w.clone(), b])?;
    let x = permuted(cx, &x, axes)?;
    Ok(vec![cx.reshape(&x, vec![n, times(&c, square), h, w])?])
}

/// The two shapes broadcast to each other: an extent of 1 on either side gives way.
fn expand(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let shape = cx.input(1, "shape")?;
    let dims = cx.dims(&x, "input")?;
    let Some(target) = shape.known_ints() else { return views::expanded(cx, x, &shape) };
    let rank = target.len().max(dims.len());
    let at = |v: &[PrimExpr], i: usize| i.checked_sub(rank - v.len()).map_or_else(one, |j| v[j].clone());
    let mut out = Vec::with_capacity(rank);
    for i in 0..rank {
        let (from, to) = (at(&dims, i), at(&target, i));
        out.push(match (from.as_int(), to.as_int()) {
            (_, Some(1)) => from,
            (Some(1), Some(n)) if n < 0 => return Err(format!("extent {n} of the shape is negative").into()),
            (Some(1), _) => to,
            (Some(a), Some(b)) if a != b => {
                return Err(format!("shape {dims:?} does not expand to {target:?}: axis {i} is {a} and {b}").into());
            }
            // Whether a varying extent is 1 or the one of the shape is seen at run time.
            _ if !cx.emitter.function.bindings().analyzer.prove_equal(&from, &to) => {
                return views::expanded(cx, x, &shape);
            }
            _ => to,
        });
    }
    if out == dims {
        return Ok(vec![x]);
    }
    Ok(vec![cx.call("broadcast_to", vec![x, Value::shape(out)], vec![])?])
}

fn flatten(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let axis = cx.node.int_or("axis", 1)?;
    let dims = cx.dims(&x, "input")?;
    let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
    let at = if axis < 0 { axis.saturating_add(rank) } else { axis };
    let at = usize::try_from(at).ok().filter(|&at| at <= dims.len());
    let at = at.ok_or_else(|| format!("axis {axis} is out of range for rank {rank}"))?;
    let (outer, inner) = dims.split_at(at);
    Ok(vec![cx.reshape(&x, vec![ints::product(outer), ints::product(inner)])?])
}

fn reshape_attribute(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "data")?;
    cx.node.ints("consumed_inputs")?;
    let shape = cx.node.ints("shape")?.ok_or("attribute 'shape' is missing")?;
    let shape = shape.iter().map(|&d| PrimExpr::i64(d)).collect();
    reshaped(cx, x, shape, false)
}

fn reshape(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "data")?;
    let allow_zero = cx.node.flag_or("allowzero", false)?;
    let shape = cx.input(1, "shape")?;
    match shape.known_ints() {
        Some(shape) => reshaped(cx, x, shape, allow_zero),
        None => views::reshaped(cx, &x, &shape, allow_zero),
    }
}

/// 0 keeps the extent at its place, unless `allow_zero`; one -1 is what is left.
fn reshaped(cx: &mut OpCx<'_>, x: Value, shape: Vec<PrimExpr>, allow_zero: bool) -> Outputs {
    let dims = cx.dims(&x, "data")?;
    let mut out = Vec::with_capacity(shape.len());
    let mut open = None;
    for (i, extent) in shape.iter().enumerate() {
        out.push(match extent.as_int() {
            Some(0) if !allow_zero => {
                dims.get(i).cloned().ok_or_else(|| format!("extent 0 at {i} of {shape:?} has nothing to copy"))?
            }
            Some(-1) if open.is_some() => return Err(format!("shape {shape:?} has more than one -1").into()),
            Some(-1) => {
                open = Some(i);
                one()
            }
            Some(n) if n < 0 => return Err(format!("extent {n} of {shape:?} is negative").into()),
            _ => extent.clone(),
        });
    }
    if let Some(open) = open {
        if allow_zero && shape.iter().any(|e| e.is_int(0)) {
            return Err(format!("shape {shape:?} has 0 and -1, which 'allowzero' does not allow together").into());
        }
        // With an extent of 0 kept, any extent fits; the data has no elements, so 0 does.
        let empty = dims.iter().any(|d| d.is_int(0)) && out.iter().any(|d| d.is_int(0));
        let rest = if empty { Some(PrimExpr::i64(0)) } else { ints::quotient(&dims, &out) };
        out[open] = rest.ok_or_else(|| format!("data of shape {dims:?} does not fill shape {shape:?}"))?;
    }
    views::filled(cx, &x, out)
}

fn split_attribute(cx: &mut OpCx<'_>) -> Outputs {
    let sizes = cx.node.ints("split")?.map(<[i64]>::to_vec);
    splitted(cx, sizes)
}

fn split(cx: &mut OpCx<'_>) -> Outputs {
    let sizes = cx.optional(1);
    if let Some(count) = cx.node.int("num_outputs")? {
        let named = cx.node.node().outputs.len();
        if usize::try_from(count) != Ok(named) {
            return Err(format!("attribute 'num_outputs' is {count}, and the node has {named} outputs").into());
        }
    }
    match sizes {
        Some(sizes) if sizes.fixed_ints().is_none() => split_at_run_time(cx, &sizes),
        None if cx.opset >= 18 => split_rounded_up(cx),
        sizes => {
            let sizes = sizes.map(|v| cx.fixed_ints(&v, "the sizes")).transpose()?;
            splitted(cx, sizes)
        }
    }
}

/// The sizes are checked at run time to make up the extent, so that the parts lie in the input.
fn split_at_run_time(cx: &mut OpCx<'_>, sizes: &Value) -> Outputs {
    let x = cx.input(0, "input")?;
    let given = cx.node.int_or("axis", 0)?;
    let dims = cx.dims(&x, "input")?;
    let axis = cx.axis(given, dims.len())?;
    let (named, count) = (cx.node.node().outputs.len(), cx.length(sizes, "the sizes")?);
    if count != named {
        return Err(format!("{count} sizes do not fit {named} outputs").into());
    }
    let extents = cx.run_time_dims(sizes, count)?;
    let sum = cx.call("sum", vec![sizes.clone()], vec![("keepdims", true.into())])?;
    cx.run_time_dims_beside(&sum, &[Some(dims[axis].clone())])?;
    cut(cx, &x, axis, extents, true)
}

/// Parts of these extents, one behind the other; `inbound` if none can lie behind the end.
fn cut(cx: &mut OpCx<'_>, x: &Value, axis: usize, extents: Vec<PrimExpr>, inbound: bool) -> Outputs {
    let mut parts = Vec::with_capacity(extents.len());
    let mut begin = PrimExpr::i64(0);
    for extent in extents {
        let end = PrimExpr::binary(BinOp::Add, begin.clone(), extent);
        let axes = tuple(vec![PrimExpr::i64(i64::try_from(axis).unwrap_or(i64::MAX))]);
        let args = vec![x.clone(), axes, tuple(vec![begin]), tuple(vec![end.clone()])];
        parts.push(cx.call("strided_slice", args, vec![("assume_inbound", inbound.into())])?);
        begin = end;
    }
    Ok(parts)
}

/// As many parts as `num_outputs` says: all of the extent divided and rounded up, but for what is not left any more.
fn split_rounded_up(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let dims = cx.dims(&x, "input")?;
    let axis = cx.axis(cx.node.int_or("axis", 0)?, dims.len())?;
    if dims[axis].as_int().is_some() {
        return splitted(cx, None);
    }
    let count = cx.node.node().outputs.len();
    let parts = i64::try_from(count).unwrap_or(i64::MAX);
    let part = (dims[axis].clone() + (parts - 1)).floordiv(parts);
    cut(cx, &x, axis, vec![part; count], false)
}

/// Without sizes the parts are equal, and the last one is smaller if it must be.
fn splitted(cx: &mut OpCx<'_>, sizes: Option<Vec<i64>>) -> Outputs {
    let mut x = cx.input(0, "input")?;
    let given = cx.node.int_or("axis", 0)?;
    let mut dims = cx.dims(&x, "input")?;
    let axis = cx.axis(given, dims.len())?;
    let count = cx.node.node().outputs.len();
    let parts = i64::try_from(count).unwrap_or(i64::MAX);
    let extent = dims[axis].as_int();
    if count == 1 && sizes.as_ref().is_none_or(|s| s.len() == 1) {
        return Ok(vec![x]);
    }
    let sections = match (sizes, extent) {
        (Some(sizes), _) => {
            if sizes.len() != count || sizes.iter().any(|&s| s < 0) {
                return Err(format!("sizes {sizes:?} do not fit {count} outputs").into());
            }
            let sum = sizes.iter().try_fold(0i64, |sum, &s| sum.checked_add(s));
            if sum.is_none() || extent.is_some_and(|n| sum != Some(n)) {
                return Err(
                    format!("sizes {sizes:?} do not add up to the extent {:?} of axis {axis}", dims[axis]).into()
                );
            }
            let ends = sizes.iter().scan(0, |at, &size| {
                *at += size;
                Some(*at)
            });
            ends.take(count - 1).collect::<Vec<i64>>().into()
        }
        (None, Some(extent)) if extent % parts != 0 => {
            let part = extent / parts + 1;
            if part * (parts - 1) >= extent {
                return Err(format!("an extent of {extent} does not split into {count} parts").into());
            }
            (1..parts).map(|i| part * i).collect::<Vec<i64>>().into()
        }
        (None, Some(_)) => parts.into(),
        (None, None) => {
            // That it is a multiple is checked at run time.
            dims[axis] = dims[axis].clone().floordiv(parts) * parts;
            x = cx.emitter.of_shape(&x, dims)?;
            parts.into()
        }
    };
    let tuple = cx.call("split", vec![x], vec![("indices_or_sections", sections), ("axis", given.into())])?;
    cx.emitter.fields(&tuple)
}

fn squeeze_attribute(cx: &mut OpCx<'_>) -> Outputs {
    let axes = cx.node.ints("axes")?.map(<[i64]>::to_vec);
    squeezed(cx, axes)
}

fn squeeze(cx: &mut OpCx<'_>) -> Outputs {
    match cx.optional(1) {
        Some(axes) if axes.fixed_ints().is_none() => {
            let x = cx.input(0, "data")?;
            views::squeezed(cx, &x, &axes)
        }
        axes => squeezed(cx, axes.and_then(|axes| axes.fixed_ints())),
    }
}

fn squeezed(cx: &mut OpCx<'_>, axes: Option<Vec<i64>>) -> Outputs {
    let x = cx.input(0, "data")?;
    let dims = cx.dims(&x, "data")?;
    let axes = match axes {
        Some(axes) => cx.axes(&axes, dims.len())?,
        None => (0..dims.len()).filter(|&a| dims[a].is_int(1)).collect(),
    };
    for &axis in &axes {
        if dims[axis].as_int().is_some_and(|n| n != 1) {
            return Err(format!("axis {axis} of shape {dims:?} is not 1 and cannot be squeezed").into());
        }
    }
    if axes.is_empty() {
        return Ok(vec![x]);
    }
    Ok(vec![cx.call("squeeze", vec![x], vec![("axis", axes_attr(&axes))])?])
}

fn unsqueeze_attribute(cx: &mut OpCx<'_>) -> Outputs {
    let axes = cx.node.ints("axes")?.ok_or("attribute 'axes' is missing")?;
    unsqueezed(cx, axes)
}

fn unsqueeze(cx: &mut OpCx<'_>) -> Outputs {
    let axes = cx.input(1, "axes")?;
    match axes.fixed_ints() {
        Some(axes) => unsqueezed(cx, &axes),
        None => {
            let x = cx.input(0, "data")?;
            views::unsqueezed(cx, &x, &axes)
        }
    }
}

/// The axes count in the result.
fn unsqueezed(cx: &mut OpCx<'_>, axes: &[i64]) -> Outputs {
    let mut x = cx.input(0, "data")?;
    let rank = cx.rank(&x, "data")?;
    let mut axes = cx.axes(axes, rank.saturating_add(axes.len()))?;
    axes.sort_unstable();
    for axis in axes {
        x = cx.call("expand_dims", vec![x], vec![("axis", axes_attr(&[axis]))])?;
    }
    Ok(vec![x])
}

fn tile(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let repeats = cx.input(1, "repeats")?;
    let Some(repeats) = repeats.fixed_ints() else { return Ok(vec![views::tiled(cx, &x, &repeats)?]) };
    if repeats.len() != cx.rank(&x, "input")? || repeats.iter().any(|&r| r < 0) {
        return Err(format!("repeats {repeats:?} do not fit the rank of the input").into());
    }
    Ok(vec![cx.call("tile", vec![x], vec![("repeats", repeats.into())])?])
}

/// Without `perm` the axes are reversed.
fn transpose(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "data")?;
    let rank = cx.rank(&x, "data")?;
    let perm = cx.node.ints("perm")?;
    let Some(perm) = perm else {
        return if rank < 2 { Ok(vec![x]) } else { Ok(vec![cx.apply("permute_dims", &[&x])?]) };
    };
    let axes = cx.axes(perm, rank)?;
    if axes.len() != rank {
        return Err(format!("attribute 'perm' {perm:?} does not name every axis of rank {rank}").into());
    }
    if rank == 0 {
        return Ok(vec![x]);
    }
    Ok(vec![cx.call("permute_dims", vec![x], vec![("axes", axes_attr(&axes))])?])
}
