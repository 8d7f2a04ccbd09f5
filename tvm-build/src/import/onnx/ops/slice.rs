//! Slices and padding.

use tvm_ir::attrs::AttrValue;
use tvm_ir::prim::{BinOp, PrimExpr};
use tvm_ir::relax::Leaf;

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs, axes_attr};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::{Value, numbers_of};

/// By operator and version.
pub(super) static ROWS: &[Row] =
    &[("Pad", 2, pad_attributes), ("Pad", 11, pad), ("Slice", 1, slice_attributes), ("Slice", 10, slice)];

/// Integers as an argument.
pub(super) fn tuple(values: Vec<PrimExpr>) -> Value {
    Value::Leaf(Leaf::Tuple(values.into_iter().map(Leaf::Prim).collect()))
}

fn slice_attributes(cx: &mut OpCx<'_>) -> Outputs {
    let list = |values: Option<&[i64]>| values.map(|v| v.iter().map(|&i| PrimExpr::i64(i)).collect::<Vec<_>>());
    let starts = list(cx.node.ints("starts")?).ok_or("attribute 'starts' is missing")?;
    let ends = list(cx.node.ints("ends")?).ok_or("attribute 'ends' is missing")?;
    let axes = cx.node.ints("axes")?.map(<[i64]>::to_vec);
    sliced(cx, starts, ends, axes, None)
}

fn slice(cx: &mut OpCx<'_>) -> Outputs {
    let (starts, ends) = (cx.input(1, "starts")?, cx.input(2, "ends")?);
    let (axes, steps) = (cx.optional(3), cx.optional(4));
    let fixed = |v: &Option<Value>| v.as_ref().is_none_or(|v| v.fixed_ints().is_some());
    match (starts.known_ints(), ends.known_ints()) {
        (Some(starts), Some(ends)) if fixed(&axes) && fixed(&steps) => {
            let axes = axes.map(|v| cx.fixed_ints(&v, "the axes")).transpose()?;
            let steps = steps.map(|v| cx.fixed_ints(&v, "the steps")).transpose()?;
            sliced(cx, starts, ends, axes, steps)
        }
        _ => sliced_at_run_time(cx, starts, ends, axes, steps),
    }
}

/// An argument that may be left out.
fn or_absent(value: Option<Value>) -> Value {
    value.unwrap_or(Value::Leaf(Leaf::Absent))
}

fn sliced_at_run_time(
    cx: &mut OpCx<'_>,
    starts: Value,
    ends: Value,
    axes: Option<Value>,
    steps: Option<Value>,
) -> Outputs {
    let x = cx.input(0, "data")?;
    let dims = cx.dims(&x, "data")?;
    let count = cx.length(&starts, "the starts")?;
    let sliced = match &axes {
        None if count > dims.len() => return Err(format!("{count} starts are given for {} axes", dims.len()).into()),
        None => Some((0..count).collect()),
        Some(axes) => axes.fixed_ints().map(|axes| cx.axes(&axes, dims.len())).transpose()?,
    };
    let extents = cx.emitter.materialize(&dims, false)?;
    let ranges = cx.call("slice_ranges", vec![extents, starts, ends, or_absent(axes), or_absent(steps)], vec![])?;
    let [begin, strides, extent] = &cx.emitter.fields(&ranges)?[..] else {
        return Err("R.slice_ranges does not give three vectors".into());
    };
    let whole = |a: usize| sliced.as_ref().is_some_and(|sliced: &Vec<usize>| !sliced.contains(&a));
    let known: Vec<_> = dims.iter().enumerate().map(|(a, d)| whole(a).then(|| d.clone())).collect();
    let shape = cx.run_time_dims_beside(extent, &known)?;
    let args = vec![x, begin.clone(), strides.clone(), Value::shape(shape)];
    let axes = sliced.map_or(AttrValue::None, |sliced| axes_attr(&sliced));
    Ok(vec![cx.call("dynamic_slice", args, vec![("axes", axes)])?])
}

fn sliced(
    cx: &mut OpCx<'_>,
    starts: Vec<PrimExpr>,
    ends: Vec<PrimExpr>,
    axes: Option<Vec<i64>>,
    steps: Option<Vec<i64>>,
) -> Outputs {
    let x = cx.input(0, "data")?;
    let dims = cx.dims(&x, "data")?;
    let count = starts.len();
    let axes = axes.unwrap_or_else(|| (0..i64::try_from(count).unwrap_or(i64::MAX)).collect());
    let steps = steps.unwrap_or_else(|| vec![1; count]);
    if ends.len() != count || axes.len() != count || steps.len() != count {
        return Err(format!(
            "starts, ends, axes and steps must be of one length, not {count}, {}, {} and {}",
            ends.len(),
            axes.len(),
            steps.len()
        )
        .into());
    }
    let axes = cx.axes(&axes, dims.len())?;
    if steps.contains(&0) {
        return Err("a step cannot be 0".into());
    }
    let mut begin = Vec::with_capacity(count);
    let mut end = Vec::with_capacity(count);
    for (i, &axis) in axes.iter().enumerate() {
        begin.push(bound(&starts[i], &dims[axis], steps[i], true));
        end.push(bound(&ends[i], &dims[axis], steps[i], false));
    }
    let axes = axes.iter().map(|&a| PrimExpr::i64(i64::try_from(a).unwrap_or(i64::MAX))).collect();
    let steps = steps.into_iter().map(|s| PrimExpr::i64(s.clamp(-FAR, FAR))).collect();
    let args = vec![x, tuple(axes), tuple(begin), tuple(end), tuple(steps)];
    Ok(vec![cx.call("strided_slice", args, vec![])?])
}

/// No extent is as large.
const FAR: i64 = 1 << 40;

/// A start or end within `extent`. Numbers are clamped where the extent is a number; an end before the first
/// element, which only a negative step has, is written as `-extent - 1`. Beside symbols `R.strided_slice` clamps, but
/// for a start before the first element, which ONNX takes for the first.
fn bound(value: &PrimExpr, extent: &PrimExpr, step: i64, start: bool) -> PrimExpr {
    let first = |at: PrimExpr| (at + extent.clone()).max(PrimExpr::i64(0));
    let Some(at) = value.as_int() else {
        return if start && step < 0 {
            PrimExpr::select(value.clone().lt(0), first(value.clone()), value.clone())
        } else {
            value.clone()
        };
    };
    let Some(n) = extent.as_int() else {
        return match at {
            _ if at >= i64::from(i32::MAX) => extent.clone(),
            _ if start && step < 0 && at < -FAR => PrimExpr::i64(0),
            _ if start && step < 0 && at < 0 => first(value.clone()),
            _ => value.clone(),
        };
    };
    let at = if at < 0 { at.saturating_add(n) } else { at };
    PrimExpr::i64(match (step > 0, start) {
        (true, _) => at.clamp(0, n),
        (false, true) => at.clamp(0, n.max(1) - 1),
        (false, false) if at < 0 => -n - 1,
        (false, false) => at.min(n - 1),
    })
}

fn pad_attributes(cx: &mut OpCx<'_>) -> Outputs {
    let pads = cx.node.ints("pads")?.ok_or("attribute 'pads' is missing")?.to_vec();
    let value = f64::from(cx.node.float_or("value", 0.0)?);
    padded(cx, &pads, None, value)
}

fn pad(cx: &mut OpCx<'_>) -> Outputs {
    let pads = cx.input(1, "pads")?;
    let (value, axes) = (cx.optional(2), cx.optional(3));
    let number = match &value {
        None => Some(0.0),
        Some(value) => match value.as_const().and_then(numbers_of).as_deref() {
            Some([number]) => Some(*number),
            _ => None,
        },
    };
    let fixed_axes = axes.as_ref().map(Value::fixed_ints);
    match (pads.fixed_ints(), fixed_axes, number) {
        (Some(pads), None, Some(number)) => padded(cx, &pads, None, number),
        (Some(pads), Some(Some(axes)), Some(number)) => padded(cx, &pads, Some(axes), number),
        _ => padded_at_run_time(cx, pads, axes, value),
    }
}

fn padded_at_run_time(cx: &mut OpCx<'_>, pads: Value, axes: Option<Value>, value: Option<Value>) -> Outputs {
    let x = cx.input(0, "data")?;
    let mode = pad_mode(cx)?;
    let (dims, dtype) = (cx.dims(&x, "data")?, cx.dtype(&x, "data")?);
    let count = cx.length(&pads, "the pads")?;
    let named = axes.as_ref().map_or(Ok(dims.len()), |axes| cx.length(axes, "the axes"))?;
    if count != 2 * named {
        return Err(format!("{count} pads do not fit {named} axes").into());
    }
    let value = match value {
        Some(value) => cx.reshape(&value, Vec::new())?,
        None => cx.scalar(0.0, dtype)?,
    };
    let half = i64::try_from(named).unwrap_or(i64::MAX);
    let (before, after) = (along(cx, &pads, 0, 0, half)?, along(cx, &pads, 0, half, 2 * half)?);
    padded_by(cx, x, (before, after), axes, value, mode)
}

/// Pads or crops `x` by what two lists say before and after each of the axes, or of all of them.
pub(super) fn padded_by(
    cx: &mut OpCx<'_>,
    x: Value,
    (before, after): (Value, Value),
    axes: Option<Value>,
    value: Value,
    mode: &str,
) -> Outputs {
    let dims = cx.dims(&x, "data")?;
    let listed = match &axes {
        None => Some((0..dims.len()).collect()),
        Some(axes) => axes.fixed_ints().map(|axes| cx.axes(&axes, dims.len())).transpose()?,
    };
    let extents = cx.emitter.materialize(&dims, false)?;
    let all = cx.call("padded_extents", vec![extents, before, after, or_absent(axes)], vec![])?;
    let [before, after, extent] = &cx.emitter.fields(&all)?[..] else {
        return Err("R.padded_extents does not give three vectors".into());
    };
    let whole = |a: usize| listed.as_ref().is_some_and(|listed: &Vec<usize>| !listed.contains(&a));
    let known: Vec<_> = dims.iter().enumerate().map(|(a, d)| whole(a).then(|| d.clone())).collect();
    let shape = cx.run_time_dims_beside(extent, &known)?;
    let args = vec![x, before.clone(), after.clone(), value, Value::shape(shape)];
    Ok(vec![cx.call("dynamic_pad", args, vec![("pad_mode", mode.into())])?])
}

/// The mode as `R.nn.pad` calls it.
fn pad_mode(cx: &OpCx<'_>) -> Result<&'static str, Fail> {
    Ok(match cx.node.string_or("mode", "constant")? {
        "constant" => "constant",
        "reflect" => "reflect",
        "edge" => "replicate",
        "wrap" => "circular",
        other => return Err(format!("attribute 'mode' cannot be '{other}'").into()),
    })
}

/// Negative pads crop.
fn padded(cx: &mut OpCx<'_>, pads: &[i64], axes: Option<Vec<i64>>, value: f64) -> Outputs {
    let mut x = cx.input(0, "data")?;
    let mode = pad_mode(cx)?;
    let rank = cx.rank(&x, "data")?;
    let axes = axes.map_or_else(|| Ok((0..rank).collect()), |axes| cx.axes(&axes, rank))?;
    if pads.len() != 2 * axes.len() || pads.iter().any(|p| p.unsigned_abs() > 1 << 31) {
        return Err(format!("pads {pads:?} do not fit {} axes", axes.len()).into());
    }
    let mut widths = vec![0; 2 * rank];
    let mut crops = (Vec::new(), Vec::new(), Vec::new());
    let dims = cx.dims(&x, "data")?;
    for (i, &axis) in axes.iter().enumerate() {
        let (before, after) = (pads[i], pads[i + axes.len()]);
        widths[2 * axis] = before.max(0);
        widths[2 * axis + 1] = after.max(0);
        if before < 0 || after < 0 {
            crops.0.push(PrimExpr::i64(i64::try_from(axis).unwrap_or(i64::MAX)));
            crops.1.push(PrimExpr::i64((-before).max(0)));
            crops.2.push(PrimExpr::binary(BinOp::Sub, dims[axis].clone(), PrimExpr::i64((-after).max(0))));
        }
    }
    if !crops.0.is_empty() {
        x = cx.call("strided_slice", vec![x, tuple(crops.0), tuple(crops.1), tuple(crops.2)], vec![])?;
    }
    if widths.iter().all(|&w| w == 0) {
        return Ok(vec![x]);
    }
    let attrs = vec![("pad_width", widths.into()), ("pad_mode", mode.into()), ("pad_value", value.into())];
    Ok(vec![cx.call("nn.pad", vec![x], attrs)?])
}

/// The elements `first..last` along an axis.
pub(super) fn along(cx: &mut OpCx<'_>, x: &Value, axis: i64, first: i64, last: i64) -> Result<Value, Fail> {
    let one = |v: i64| tuple(vec![PrimExpr::i64(v)]);
    cx.call("strided_slice", vec![x.clone(), one(axis), one(first), one(last)], vec![])
}
