//! Losses of classification.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;

use super::Row;
use super::index::from_the_start;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("NegativeLogLikelihoodLoss", 12, negative_log_likelihood),
    ("SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy),
];

/// The loss of the target class of each place, from logarithms of probabilities with the classes along axis 1.
fn loss(cx: &mut OpCx<'_>, log_prob: &Value) -> Result<Value, Fail> {
    let (target, weight) = (cx.input(1, "target")?, cx.optional(2));
    let ignored = cx.node.int("ignore_index")?;
    let reduction = cx.node.string_or("reduction", "mean")?;
    let dtype = cx.dtype(log_prob, "the input")?;
    let mut class = target;
    if cx.dtype(&class, "target")? != DType::I64 {
        class = cx.call("astype", vec![class], vec![("dtype", AttrValue::DType(DType::I64))])?;
    }
    let mut counts = None;
    if let Some(ignored) = ignored {
        let index = cx.emitter.materialize(&[tvm_ir::prim::PrimExpr::i64(ignored)], true)?;
        let counted = cx.apply("not_equal", &[&class, &index])?;
        let zero = cx.scalar(0.0, DType::I64)?;
        class = cx.apply("where", &[&counted, &class, &zero])?;
        counts = Some(counted);
    }
    let dims = cx.dims(log_prob, "the input")?;
    let classes = dims.get(1).ok_or("the input must have an axis of classes")?;
    class = from_the_start(cx, class, classes)?;
    if let Some(weight) = &weight {
        let [weights] = cx.dims_of::<1>(weight, "weight")?;
        if weights != *classes {
            return Err(format!("there are {weights:?} weights of {classes:?} classes").into());
        }
    }
    let mut factor = match weight {
        Some(weight) => Some(cx.call("take", vec![weight, class.clone()], vec![("axis", 0.into())])?),
        None => None,
    };
    if let Some(counted) = &counts {
        let (zero, one) = (cx.scalar(0.0, dtype)?, cx.scalar(1.0, dtype)?);
        factor = Some(cx.apply("where", &[counted, factor.as_ref().unwrap_or(&one), &zero])?);
    }
    let index = cx.call("expand_dims", vec![class], vec![("axis", vec![1].into())])?;
    let picked = cx.call("gather_elements", vec![log_prob.clone(), index], vec![("axis", 1.into())])?;
    let picked = cx.call("squeeze", vec![picked], vec![("axis", vec![1].into())])?;
    let mut out = cx.apply("negative", &[&picked])?;
    if let Some(factor) = &factor {
        out = cx.apply("multiply", &[&out, factor])?;
    }
    match (reduction, factor) {
        ("none", _) => Ok(out),
        ("sum", _) => cx.apply("sum", &[&out]),
        ("mean", None) => cx.apply("mean", &[&out]),
        ("mean", Some(factor)) => {
            let (sum, weight) = (cx.apply("sum", &[&out])?, cx.apply("sum", &[&factor])?);
            cx.apply("divide", &[&sum, &weight])
        }
        (other, _) => Err(format!("attribute 'reduction' cannot be '{other}'").into()),
    }
}

fn negative_log_likelihood(cx: &mut OpCx<'_>) -> Outputs {
    let log_prob = cx.input(0, "input")?;
    Ok(vec![loss(cx, &log_prob)?])
}

fn softmax_cross_entropy(cx: &mut OpCx<'_>) -> Outputs {
    let scores = cx.input(0, "scores")?;
    let log_prob = cx.call("nn.log_softmax", vec![scores], vec![("axis", 1.into())])?;
    let loss = loss(cx, &log_prob)?;
    Ok(vec![loss, log_prob])
}
