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

/// Which axes are reduced and whether they stay with an extent of 1.
struct Along {
    /// `None` is every axis; an empty list is none.
    axes: Option<Vec<i64>>,
    keepdims: bool,
}

impl Along {
    fn call(&self, cx: &mut OpCx<'_>, op: &str, x: &Value) -> Result<Value, Fail> {
        if self.axes.as_ref().is_some_and(Vec::is_empty) {
            // A reduction along no axis is what it reduces.
            return Ok(x.clone());
        }
        let axes = self.axes.clone().map_or(AttrValue::None, AttrValue::from);
        cx.call(op, vec![x.clone()], vec![("axis", axes), ("keepdims", self.keepdims.into())])
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
        cx.optional(1).map(|v| cx.fixed_ints(&v, "the axes")).transpose()?
    } else {
        cx.node.ints("axes")?.map(<[i64]>::to_vec)
    };
    let axes = axes.filter(|axes| !axes.is_empty());
    if let Some(axes) = &axes {
        cx.axes(axes, rank)?;
    }
    let axes = if axes.is_none() && noop { Some(Vec::new()) } else { axes };
    Ok(vec![f(cx, &x, &Along { axes, keepdims })?])
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
    if along.axes.as_ref().is_some_and(Vec::is_empty) {
        return Ok(x.clone());
    }
    let kept = Along { axes: along.axes.clone(), keepdims: true };
    let max = kept.call(cx, "max", x)?;
    let shifted = cx.apply("subtract", &[x, &max])?;
    let exp = cx.apply("exp", &[&shifted])?;
    let sum = kept.call(cx, "sum", &exp)?;
    let log = cx.apply("log", &[&sum])?;
    let out = cx.apply("add", &[&log, &max])?;
    if along.keepdims {
        return Ok(out);
    }
    let axes = along.axes.clone().map_or(AttrValue::None, AttrValue::from);
    cx.call("squeeze", vec![out], vec![("axis", axes)])
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
    let [axis] = cx.fixed_ints(&axis, "the axis")?[..] else { return Err("the axis must be one integer".into()) };
    let exclusive = cx.node.flag_or("exclusive", false)?;
    let reverse = cx.node.flag_or("reverse", false)?;
    let rank = cx.rank(&x, "x")?;
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
