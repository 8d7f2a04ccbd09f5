//! Random numbers: those that the node's seed, or its name, gives, in every run.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};

use super::Row;
use super::create::element_type;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("Bernoulli", 15, bernoulli),
    ("Multinomial", 7, multinomial),
    ("RandomNormal", 1, |cx| of_shape(cx, NORMAL)),
    ("RandomNormalLike", 1, |cx| like(cx, NORMAL)),
    ("RandomUniform", 1, |cx| of_shape(cx, UNIFORM)),
    ("RandomUniformLike", 1, |cx| like(cx, UNIFORM)),
];

/// An op of the table with its two attributes and their defaults.
type Kind = (&'static str, [(&'static str, f32); 2]);

const NORMAL: Kind = ("random.normal", [("mean", 0.0), ("scale", 1.0)]);
const UNIFORM: Kind = ("random.uniform", [("low", 0.0), ("high", 1.0)]);

/// The seed of a node that has none: from the name of what it gives, so that nodes draw differently.
pub(super) fn own_seed(name: &str) -> i64 {
    let hash = name.bytes().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    i64::from(hash)
}

fn seed(cx: &OpCx<'_>) -> Result<i64, Fail> {
    let name = cx.node.node().outputs.first().map_or("", String::as_str);
    Ok(cx.node.float("seed")?.map_or_else(|| own_seed(name), |seed| i64::from(seed.to_bits())))
}

fn draw(cx: &mut OpCx<'_>, (op, numbers): Kind, dims: Vec<PrimExpr>, dtype: DType) -> Result<Value, Fail> {
    let mut attrs: Vec<(&'static str, AttrValue)> = vec![("seed", seed(cx)?.into()), ("dtype", dtype.into())];
    for (name, default) in numbers {
        attrs.push((name, f64::from(cx.node.float_or(name, default)?).into()));
    }
    cx.call(op, vec![Value::shape(dims)], attrs)
}

fn of_shape(cx: &mut OpCx<'_>, kind: Kind) -> Outputs {
    let shape = cx.node.ints("shape")?.ok_or("attribute 'shape' is missing")?;
    if let Some(bad) = shape.iter().find(|d| **d < 0) {
        return Err(format!("dimension {bad} of the shape is negative").into());
    }
    let dims = shape.iter().map(|d| PrimExpr::i64(*d)).collect();
    let dtype = element_type(cx.node.int_or("dtype", 1)?)?;
    Ok(vec![draw(cx, kind, dims, dtype)?])
}

fn like(cx: &mut OpCx<'_>, kind: Kind) -> Outputs {
    let x = cx.input(0, "input")?;
    let dims = cx.dims(&x, "input")?;
    let dtype = match cx.node.int("dtype")? {
        Some(code) => element_type(code)?,
        None => cx.dtype(&x, "input")?,
    };
    Ok(vec![draw(cx, kind, dims, dtype)?])
}

/// 1 as often as the input says.
fn bernoulli(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let (dims, own) = (cx.dims(&x, "input")?, cx.dtype(&x, "input")?);
    let to = match cx.node.int("dtype")? {
        Some(code) => element_type(code)?,
        None => own,
    };
    let attrs = vec![("seed", seed(cx)?.into()), ("dtype", own.into())];
    let drawn = cx.call("random.uniform", vec![Value::shape(dims)], attrs)?;
    let hit = cx.apply("less", &[&drawn, &x])?;
    Ok(vec![cx.call("astype", vec![hit], vec![("dtype", AttrValue::DType(to))])?])
}

/// Places drawn from rows of logarithms of probabilities: how many of the running sums of a row are not above the number drawn.
fn multinomial(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let dims = cx.dims(&x, "input")?;
    let [rows, classes] = &dims[..] else { return Err(format!("the input must have two axes, not {dims:?}").into()) };
    let samples = cx.node.int_or("sample_size", 1)?;
    if samples < 1 {
        return Err(format!("attribute 'sample_size' cannot be {samples}").into());
    }
    let to = match cx.node.int_or("dtype", 6)? {
        6 => DType::I32,
        7 => DType::I64,
        other => return Err(format!("attribute 'dtype' is 6 or 7, int32 or int64, not {other}").into()),
    };
    let wide = |cx: &mut OpCx<'_>, v: Value, dtype: DType| {
        cx.call("astype", vec![v], vec![("dtype", AttrValue::DType(dtype))])
    };
    let x = wide(cx, x, DType::F32)?;
    let shares = cx.call("nn.softmax", vec![x], vec![("axis", 1.into())])?;
    let sums = cx.call("cumsum", vec![shares], vec![("axis", 1.into())])?;
    let sums = cx.reshape(&sums, vec![rows.clone(), PrimExpr::i64(1), classes.clone()])?;
    let one = PrimExpr::i64(1);
    let drawn = Value::shape(vec![rows.clone(), PrimExpr::i64(samples), one.clone()]);
    let drawn = cx.call("random.uniform", vec![drawn], vec![("seed", seed(cx)?.into())])?;
    let passed = cx.apply("greater_equal", &[&drawn, &sums])?;
    let passed = wide(cx, passed, to)?;
    let place = cx.call("sum", vec![passed], vec![("axis", vec![2].into())])?;
    // Rounding may leave the last sum below 1.
    let last = PrimExpr::binary(BinOp::Sub, classes.clone(), one);
    let last = cx.emitter.materialize(&[last], true)?;
    let last = wide(cx, last, to)?;
    Ok(vec![cx.apply("minimum", &[&place, &last])?])
}
