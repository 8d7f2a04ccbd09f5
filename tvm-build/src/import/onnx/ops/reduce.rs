//! Reductions along axes.

use tvm_ir::attrs::AttrValue;
use tvm_ir::prim::{BinOp, PrimExpr};

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version. First the axes are an attribute, then an input.
pub(super) static ROWS: &[Row] = &[
    ("ArgMax", 1, |cx| arg(cx, "argmax")),
    ("ArgMin", 1, |cx| arg(cx, "argmin")),
    ("CumProd", 26, |cx| cumulative(cx, "cumprod")),
    ("CumSum", 11, |cx| cumulative(cx, "cumsum")),
    ("ReduceL1", 1, |cx| reduce(cx, false, l1)),
    ("ReduceL1", 18, |cx| reduce(cx, true, l1)),
    ("ReduceL2", 1, |cx| reduce(cx, false, l2)),
    ("ReduceL2", 18, |cx| reduce(cx, true, l2)),
    ("ReduceLogSum", 1, |cx| reduce(cx, false, log_sum)),
    ("ReduceLogSum", 18, |cx| reduce(cx, true, log_sum)),
    ("ReduceLogSumExp", 1, |cx| reduce(cx, false, log_sum_exp)),
    ("ReduceLogSumExp", 18, |cx| reduce(cx, true, log_sum_exp)),
    ("ReduceMax", 1, |cx| reduce(cx, false, |cx, x, a| a.call(cx, "max", x))),
    ("ReduceMax", 18, |cx| reduce(cx, true, |cx, x, a| a.call(cx, "max", x))),
    ("ReduceMean", 1, |cx| reduce(cx, false, |cx, x, a| a.call(cx, "mean", x))),
    ("ReduceMean", 18, |cx| reduce(cx, true, |cx, x, a| a.call(cx, "mean", x))),
    ("ReduceMin", 1, |cx| reduce(cx, false, |cx, x, a| a.call(cx, "min", x))),
    ("ReduceMin", 18, |cx| reduce(cx, true, |cx, x, a| a.call(cx, "min", x))),
    ("ReduceProd", 1, |cx| reduce(cx, false, |cx, x, a| a.call(cx, "prod", x))),
    ("ReduceProd", 18, |cx| reduce(cx, true, |cx, x, a| a.call(cx, "prod", x))),
    ("ReduceSum", 1, |cx| reduce(cx, false, |cx, x, a| a.call(cx, "sum", x))),
    ("ReduceSum", 13, |cx| reduce(cx, true, |cx, x, a| a.call(cx, "sum", x))),
    ("ReduceSumSquare", 1, |cx| reduce(cx, false, sum_square)),
    ("ReduceSumSquare", 18, |cx| reduce(cx, true, sum_square)),
];

/// Which axes are reduced.
#[derive(Clone)]
enum Axes {
    /// Every axis.
    All,
    /// These; an empty list is none.
    These(Vec<i64>),
    /// Those that are given at run time: the extents after the reduction, with 1 for each reduced axis, and those of the
    /// result.
    AtRunTime { kept: Vec<PrimExpr>, result: Vec<PrimExpr> },
}

/// Which axes are reduced and whether they stay with an extent of 1.
struct Along {
    axes: Axes,
    keepdims: bool,
}

impl Along {
    fn call(&self, cx: &mut OpCx<'_>, op: &'static str, x: &Value) -> Result<Value, Fail> {
        let axes = match &self.axes {
            // A reduction along no axis is what it reduces.
            Axes::These(axes) if axes.is_empty() => return Ok(x.clone()),
            Axes::These(axes) => axes.clone().into(),
            Axes::All => AttrValue::None,
            Axes::AtRunTime { kept, .. } => {
                let args = vec![x.clone(), Value::shape(kept.clone())];
                let out = cx.call("collapse_to", args, vec![("reduction", op.into())])?;
                return self.squeezed(cx, out);
            }
        };
        cx.call(op, vec![x.clone()], vec![("axis", axes), ("keepdims", self.keepdims.into())])
    }

    /// A reduction whose reduced axes stay, without them unless they are to stay.
    fn squeezed(&self, cx: &mut OpCx<'_>, kept: Value) -> Result<Value, Fail> {
        let axes = match &self.axes {
            _ if self.keepdims => return Ok(kept),
            Axes::AtRunTime { result, .. } => return cx.reshape(&kept, result.clone()),
            Axes::These(axes) => axes.clone().into(),
            Axes::All => AttrValue::None,
        };
        cx.call("squeeze", vec![kept], vec![("axis", axes)])
    }
}

/// Reduces with `f`. `noop_with_empty_axes` says that without axes nothing is reduced; what is done to each
/// element is done all the same.
fn reduce(
    cx: &mut OpCx<'_>,
    axes_are_input: bool,
    f: fn(&mut OpCx<'_>, &Value, &Along) -> Result<Value, Fail>,
) -> Outputs {
    let x = cx.input(0, "data")?;
    let keepdims = cx.node.flag_or("keepdims", true)?;
    let rank = cx.rank(&x, "data")?;
    let mut noop = false;
    let axes = if axes_are_input {
        noop = cx.node.flag_or("noop_with_empty_axes", false)?;
        match cx.optional(1) {
            None => None,
            Some(axes) => match known_axes(cx, &axes, rank)? {
                Some(axes) => Some(axes),
                None => {
                    let axes = axes_at_run_time(cx, &x, axes, keepdims, noop)?;
                    return Ok(vec![f(cx, &x, &Along { axes, keepdims })?]);
                }
            },
        }
    } else {
        cx.node.ints("axes")?.map(<[i64]>::to_vec)
    };
    let axes = match axes.filter(|axes| !axes.is_empty()) {
        Some(axes) => {
            cx.axes(&axes, rank)?;
            Axes::These(axes)
        }
        None if noop => Axes::These(Vec::new()),
        None => Axes::All,
    };
    Ok(vec![f(cx, &x, &Along { axes, keepdims })?])
}

/// The axes, where they are constant, or where their number alone tells them: none, or as many as there are.
fn known_axes(cx: &OpCx<'_>, axes: &Value, rank: usize) -> Result<Option<Vec<i64>>, Fail> {
    if let Some(axes) = axes.fixed_ints() {
        return Ok(Some(axes));
    }
    let dims = cx.dims(axes, "the axes")?;
    let [count] = &dims[..] else { return Err(format!("the axes must be a list, not of shape {dims:?}").into()) };
    let count = count.as_int().and_then(|n| usize::try_from(n).ok());
    Ok(match count {
        Some(n) if n == 0 || n == rank => {
            Some((0..rank).take(n).map(|a| i64::try_from(a).unwrap_or(i64::MAX)).collect())
        }
        Some(n) if n > rank => return Err(format!("{n} axes are given for {rank}").into()),
        _ => None,
    })
}

fn axes_at_run_time(cx: &mut OpCx<'_>, x: &Value, axes: Value, keepdims: bool, noop: bool) -> Result<Axes, Fail> {
    let dims = cx.dims(x, "data")?;
    let extents = cx.emitter.materialize(&dims, false)?;
    let reduced = |cx: &mut OpCx<'_>, keepdims: bool| {
        let attrs = vec![("keepdims", keepdims.into()), ("noop_with_empty_axes", noop.into())];
        cx.call("reduced_extents", vec![extents.clone(), axes.clone()], attrs)
    };
    // An extent of 1 is 1 either way.
    let known: Vec<_> = dims.iter().map(|d| d.is_int(1).then(|| d.clone())).collect();
    let kept = reduced(cx, true)?;
    let kept = cx.run_time_dims_beside(&kept, &known)?;
    if keepdims {
        return Ok(Axes::AtRunTime { result: kept.clone(), kept });
    }
    let count = cx.dims(&axes, "the axes")?.first().and_then(PrimExpr::as_int);
    let unknown =
        "the number of axes must be known when the model is imported, where 'keepdims' is 0: it is that of the result";
    let count = count.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| Fail::limit(unknown))?;
    let result = reduced(cx, false)?;
    let result = cx.run_time_dims(&result, dims.len().saturating_sub(count))?;
    Ok(Axes::AtRunTime { kept, result })
}

fn sum_square(cx: &mut OpCx<'_>, x: &Value, along: &Along) -> Result<Value, Fail> {
    let square = cx.apply("multiply", &[x, x])?;
    along.call(cx, "sum", &square)
}

fn l1(cx: &mut OpCx<'_>, x: &Value, along: &Along) -> Result<Value, Fail> {
    let size = cx.apply("abs", &[x])?;
    along.call(cx, "sum", &size)
}

fn l2(cx: &mut OpCx<'_>, x: &Value, along: &Along) -> Result<Value, Fail> {
    let sum = sum_square(cx, x, along)?;
    cx.apply("sqrt", &[&sum])
}

fn log_sum(cx: &mut OpCx<'_>, x: &Value, along: &Along) -> Result<Value, Fail> {
    let sum = along.call(cx, "sum", x)?;
    cx.apply("log", &[&sum])
}

/// `log(sum(exp(x - max))) + max`, which does not overflow.
fn log_sum_exp(cx: &mut OpCx<'_>, x: &Value, along: &Along) -> Result<Value, Fail> {
    if matches!(&along.axes, Axes::These(axes) if axes.is_empty()) {
        return Ok(x.clone());
    }
    if let Axes::AtRunTime { .. } = along.axes {
        return along.call(cx, "log_sum_exp", x);
    }
    let kept = Along { axes: along.axes.clone(), keepdims: true };
    let max = kept.call(cx, "max", x)?;
    let shifted = cx.apply("subtract", &[x, &max])?;
    let exp = cx.apply("exp", &[&shifted])?;
    let sum = kept.call(cx, "sum", &exp)?;
    let log = cx.apply("log", &[&sum])?;
    let out = cx.apply("add", &[&log, &max])?;
    along.squeezed(cx, out)
}

/// The first of equal elements, or with `select_last_index` the last.
fn arg(cx: &mut OpCx<'_>, op: &str) -> Outputs {
    let x = cx.input(0, "data")?;
    let axis = cx.node.int_or("axis", 0)?;
    let keepdims = cx.node.flag_or("keepdims", true)?;
    let last = cx.node.flag_or("select_last_index", false)?;
    let dims = cx.dims(&x, "data")?;
    let axis = cx.axis(axis, dims.len())?;
    let at = || AttrValue::Int(i64::try_from(axis).unwrap_or(i64::MAX));
    let find = |cx: &mut OpCx<'_>, x: Value| cx.call(op, vec![x], vec![("axis", at()), ("keepdims", keepdims.into())]);
    if !last {
        return Ok(vec![find(cx, x)?]);
    }
    let flipped = cx.call("flip", vec![x], vec![("axis", at())])?;
    let index = find(cx, flipped)?;
    let top = PrimExpr::binary(BinOp::Sub, dims[axis].clone(), PrimExpr::i64(1));
    let top = cx.emitter.materialize(&[top], true)?;
    Ok(vec![cx.apply("subtract", &[&top, &index])?])
}

fn cumulative(cx: &mut OpCx<'_>, op: &str) -> Outputs {
    let x = cx.input(0, "x")?;
    let axis = cx.input(1, "axis")?;
    let exclusive = cx.node.flag_or("exclusive", false)?;
    let reverse = cx.node.flag_or("reverse", false)?;
    let rank = cx.rank(&x, "x")?;
    let Some(axis) = axis.fixed_ints() else {
        let op = if op == "cumsum" { "dynamic_cumsum" } else { "dynamic_cumprod" };
        let axis = cx.reshape(&axis, Vec::new())?;
        let attrs = vec![("exclusive", exclusive.into()), ("reverse", reverse.into())];
        return Ok(vec![cx.call(op, vec![x, axis], attrs)?]);
    };
    let [axis] = axis[..] else { return Err("the axis must be one integer".into()) };
    let axis = i64::try_from(cx.axis(axis, rank)?).unwrap_or(i64::MAX);
    let flip = |cx: &mut OpCx<'_>, x: Value| {
        if reverse { cx.call("flip", vec![x], vec![("axis", axis.into())]) } else { Ok(x) }
    };
    let dtype = cx.dtype(&x, "x")?;
    let x = flip(cx, x)?;
    let attrs = vec![("axis", axis.into()), ("dtype", AttrValue::DType(dtype)), ("exclusive", exclusive.into())];
    let sums = cx.call(op, vec![x], attrs)?;
    Ok(vec![flip(cx, sums)?])
}
