//! Operators whose results are as many as the data says.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Dims, TensorInfo};

use super::slice::tuple;
use super::{Row, ints};
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::{Fail, scalar};
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("Compress", 9, compress),
    ("NonMaxSuppression", 10, non_max_suppression),
    ("NonZero", 9, non_zero),
    ("Unique", 11, unique),
];

/// The indices of the elements of `x` that are not zero: a matrix with a row for each axis, and its columns.
fn nonzero(cx: &mut OpCx<'_>, x: &Value) -> Result<(Value, PrimExpr), Fail> {
    let rank = cx.rank(x, "the input")?;
    let found = cx.apply("nonzero", &[x])?;
    let count = cx.emitter.fresh_extent("nonzero");
    let rows = PrimExpr::i64(i64::try_from(rank).unwrap_or(i64::MAX));
    Ok((cx.emitter.cast_dims(&found, vec![rows, count.clone()], "lv")?, count))
}

fn non_zero(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    Ok(vec![nonzero(cx, &x)?.0])
}

/// The slices along an axis (or elements, without one) where the condition holds; it may be shorter than the axis.
fn compress(cx: &mut OpCx<'_>) -> Outputs {
    let (x, condition) = (cx.input(0, "input")?, cx.input(1, "condition")?);
    let (mut x, axis) = (x, cx.node.int("axis")?);
    let mut dims = cx.dims(&x, "input")?;
    let axis = match axis {
        Some(axis) => cx.axis(axis, dims.len())?,
        None => {
            dims = vec![ints::product(&dims)];
            x = cx.reshape(&x, dims.clone())?;
            0
        }
    };
    let length = cx.dims(&condition, "condition")?;
    let [length] = &length[..] else { return Err(format!("the condition has {} axes, not 1", length.len()).into()) };
    let condition = if fits(cx, length, &dims[axis]) {
        condition
    } else {
        // What is beyond the axis chooses nothing.
        let end = length.clone().min(dims[axis].clone());
        let args = vec![condition, tuple(vec![0.into()]), tuple(vec![0.into()]), tuple(vec![end])];
        cx.call("strided_slice", args, vec![("assume_inbound", true.into())])?
    };
    let (found, count) = nonzero(cx, &condition)?;
    let indices = cx.reshape(&found, vec![count])?;
    let axis = i64::try_from(axis).unwrap_or(i64::MAX);
    Ok(vec![cx.call("take", vec![x, indices], vec![("axis", axis.into())])?])
}

/// Whether the first extent is known not to exceed the second.
fn fits(cx: &mut OpCx<'_>, a: &PrimExpr, b: &PrimExpr) -> bool {
    a == b || cx.emitter.function.bindings().analyzer.prove(&a.clone().le(b.clone()))
}

/// Values, and then by the outputs asked for: first indices, the inverse, counts.
fn unique(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let (axis, sorted) = (cx.node.int("axis")?, cx.node.flag_or("sorted", true)?);
    let dims = cx.dims(&x, "X")?;
    let axis = axis.map(|axis| cx.axis(axis, dims.len())).transpose()?;
    let attrs = vec![
        ("sorted", sorted.into()),
        ("return_index", true.into()),
        ("return_inverse", true.into()),
        ("return_counts", true.into()),
        ("axis", axis.map_or(AttrValue::None, |a| i64::try_from(a).unwrap_or(i64::MAX).into())),
    ];
    let all = cx.call("unique", vec![x], attrs)?;
    let fields = cx.emitter.fields(&all)?;
    let count = cx.emitter.fresh_extent("unique");
    let wanted = cx.output_count();
    let mut out = Vec::with_capacity(fields.len());
    for (i, field) in fields.into_iter().enumerate() {
        let rank = cx.rank(&field, "the result")?;
        let own = match (i, axis) {
            (2, _) => None,
            (0, Some(axis)) => {
                let mut own = dims.clone();
                own[axis] = count.clone();
                Some(own)
            }
            _ => Some(vec![count.clone(); rank]),
        };
        out.push(match own {
            Some(own) if i < wanted.max(1) => cx.emitter.cast_dims(&field, own, "lv")?,
            _ => field,
        });
    }
    Ok(out)
}

/// Rows of batch, class and box.
fn non_max_suppression(cx: &mut OpCx<'_>) -> Outputs {
    let (boxes, scores) = (cx.input(0, "boxes")?, cx.input(1, "scores")?);
    let center = match cx.node.int_or("center_point_box", 0)? {
        0 => false,
        1 => true,
        other => return Err(format!("attribute 'center_point_box' cannot be {other}").into()),
    };
    let dtype = cx.dtype(&boxes, "boxes")?;
    let number = |cx: &mut OpCx<'_>, i: usize, dtype: DType, absent: f64| -> Result<Value, Fail> {
        match cx.optional(i) {
            None => Ok(scalar(absent, dtype).ok_or("a constant is malformed")?.into()),
            Some(v) => cx.reshape(&v, Vec::new()),
        }
    };
    // Each box has four numbers and a score of each class.
    let boxes = cx.emitter.of_extents(&boxes, &[(2, 4)])?;
    let (of_boxes, mut of_scores) = (cx.dims(&boxes, "boxes")?, cx.dims(&scores, "scores")?);
    if let ([batch, count, _], [b, _, n]) = (&of_boxes[..], &mut of_scores[..]) {
        for (own, wanted) in [(b, batch), (n, count)] {
            if own.as_int().is_none() || wanted.as_int().is_none() {
                *own = wanted.clone();
            }
        }
    }
    let scores = cx.emitter.of_shape(&scores, of_scores)?;
    let most = number(cx, 2, DType::I64, 0.0)?;
    let (overlap, least) = (number(cx, 3, dtype, 0.0)?, number(cx, 4, dtype, f64::NEG_INFINITY)?);
    let args = vec![boxes, scores, most, overlap, least];
    let all = cx.call("vision.all_class_non_max_suppression", args, vec![("center_point_box", center.into())])?;
    let fields = cx.emitter.fields(&all)?;
    let [rows, count] = &fields[..] else { return Err("there are no two results".into()) };
    let Some(TensorInfo { dims: Dims::Known(dims), .. }) = rows.tensor_info() else {
        return Err(Fail::limit("the shapes of boxes and scores must be known when the model is imported"));
    };
    let count = cx.emitter.bounded_dims(count, dims[..1].to_vec(), &["selected"])?;
    Ok(vec![first(cx, rows, 0, count)?])
}

/// The first elements along an axis: `count` is one extent, and at most that of the axis.
pub(super) fn first(cx: &mut OpCx<'_>, x: &Value, axis: i64, count: Vec<PrimExpr>) -> Result<Value, Fail> {
    let args = vec![x.clone(), tuple(vec![axis.into()]), tuple(vec![0.into()]), tuple(count)];
    cx.call("strided_slice", args, vec![("assume_inbound", true.into())])
}
