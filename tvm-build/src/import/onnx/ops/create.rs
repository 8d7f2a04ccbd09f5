//! Constants and shapes as values.

use tvm_ir::attrs::AttrValue;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::Leaf;

use super::strings::{strings, tensor_value};
use super::{Row, ints};
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::data_type::DataType;
use crate::import::onnx::emit::{Fail, scalar};
use crate::import::onnx::graph;
use crate::import::onnx::value::{Value, constant, dtype, int_constant, numbers_of};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("Constant", 1, constant_node),
    ("ConstantOfShape", 9, constant_of_shape),
    ("EyeLike", 9, eye_like),
    ("Range", 11, range),
    ("Shape", 1, shape),
    ("Size", 1, size),
    ("Trilu", 14, trilu),
];

fn floats(values: &[f32], scalar: bool) -> Option<Constant> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let shape = if scalar { vec![] } else { vec![values.len() as u64] };
    Constant::new(DType::F32, shape, Bytes::new(bytes)).ok()
}

fn constant_node(cx: &mut OpCx<'_>) -> Outputs {
    use graph::Value as V;
    let names = [
        "value",
        "sparse_value",
        "value_float",
        "value_floats",
        "value_int",
        "value_ints",
        "value_string",
        "value_strings",
    ];
    let given: Vec<(&str, &V)> = names.iter().filter_map(|&n| Some((n, cx.node.attribute(n)?))).collect();
    let [(name, value)] = given[..] else {
        return Err(format!("exactly one of the attributes {} must be given", names.join(", ")).into());
    };
    let made = match (name, value) {
        ("value" | "sparse_value", V::Tensor(tensor)) => return Ok(vec![tensor_value(cx.emitter, tensor)?]),
        ("value_float", V::Float(v)) => floats(&[*v], true),
        ("value_floats", V::Floats(v)) => floats(v, false),
        ("value_int", V::Int(v)) => int_constant(&[*v], true),
        ("value_ints", V::Ints(v)) => int_constant(v, false),
        ("value_string", V::String(_)) => {
            let one = cx.node.string(name)?.ok_or("attribute 'value_string' is missing")?;
            return Ok(vec![strings(cx.emitter, &[one], vec![])?]);
        }
        ("value_strings", V::Strings(_)) => {
            let all = cx.node.strings(name)?.unwrap_or_default();
            let count = all.len() as u64;
            return Ok(vec![strings(cx.emitter, &all, vec![count])?]);
        }
        _ => None,
    };
    let made = made.ok_or_else(|| format!("attribute '{name}' cannot be {}", value.kind()))?;
    Ok(vec![made.into()])
}

fn constant_of_shape(cx: &mut OpCx<'_>) -> Outputs {
    let shape = cx.input(0, "input")?;
    let dims = cx.run_time_dims_of(&shape, "the shape")?;
    if let Some(dim) = dims.iter().filter_map(PrimExpr::as_int).find(|&d| d < 0) {
        return Err(format!("dimension {dim} of the shape is negative").into());
    }
    let fill = match cx.node.tensor("value")? {
        None => scalar(0.0, DType::F32).ok_or("there is no float32 constant")?,
        Some(tensor) => {
            let value = constant(tensor)?;
            if value.len() != 1 {
                return Err(format!("attribute 'value' must have one element, not {}", value.len()).into());
            }
            Constant::new(value.dtype(), vec![], value.data().clone()).map_err(|_| "attribute 'value' is malformed")?
        }
    };
    Ok(vec![cx.call("broadcast_to", vec![fill.into(), Value::shape(dims)], vec![])?])
}

/// At inference the input passes through; there is no mask to give.
fn shape(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "data")?;
    let dims = cx.dims(&x, "data")?;
    let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
    let clamp =
        |at: i64| usize::try_from(if at < 0 { at.saturating_add(rank) } else { at }.clamp(0, rank)).unwrap_or(0);
    let start = clamp(cx.node.int_or("start", 0)?);
    let end = clamp(cx.node.int_or("end", rank)?);
    Ok(vec![Value::ints(dims.get(start..end).unwrap_or(&[]).to_vec())])
}

fn size(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "data")?;
    let dims = cx.dims(&x, "data")?;
    Ok(vec![Value::int(ints::product(&dims))])
}

fn trilu(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let upper = cx.node.flag_or("upper", true)?;
    let k = match cx.optional(1) {
        None => 0,
        Some(k) => match k.fixed_ints().as_deref() {
            Some([k]) => *k,
            Some(_) => return Err(Fail::from("k must be one integer")),
            None => return trilu_at_run_time(cx, &x, &k, upper),
        },
    };
    let op = if upper { "triu" } else { "tril" };
    Ok(vec![cx.call(op, vec![x, Leaf::Prim(PrimExpr::i64(k)).into()], vec![])?])
}

/// Keeps what is so many places to the right of the diagonal as `k` says, or further to the side.
fn trilu_at_run_time(cx: &mut OpCx<'_>, x: &Value, k: &Value, upper: bool) -> Outputs {
    let (dims, dtype) = (cx.dims(x, "input")?, cx.dtype(x, "input")?);
    let [.., n, m] = &dims[..] else { return Err(format!("the input of shape {dims:?} is no matrix").into()) };
    let count = |cx: &mut OpCx<'_>, n: &PrimExpr| cx.call("arange", vec![Leaf::Prim(n.clone()).into()], vec![]);
    let (rows, columns) = (count(cx, n)?, count(cx, m)?);
    let rows = cx.reshape(&rows, vec![n.clone(), PrimExpr::i64(1)])?;
    let right = cx.apply("subtract", &[&columns, &rows])?;
    let k = cx.reshape(k, Vec::new())?;
    let kept = cx.apply(if upper { "greater_equal" } else { "less_equal" }, &[&right, &k])?;
    let zero = cx.scalar(0.0, dtype)?;
    Ok(vec![cx.apply("where", &[&kept, x, &zero])?])
}

pub(in super::super) fn element_type(code: i64) -> Result<DType, Fail> {
    let element = i32::try_from(code).ok().and_then(DataType::from_code);
    Ok(dtype(element.ok_or_else(|| format!("element type {code} is unknown"))?)?)
}

fn eye_like(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "input")?;
    let k = cx.node.int_or("k", 0)?;
    let dims = cx.dims(&x, "input")?;
    let [n, m] = &dims[..] else { return Err(format!("the input must be a matrix, not of shape {dims:?}").into()) };
    let to = match cx.node.int("dtype")? {
        Some(code) => element_type(code)?,
        None => cx.dtype(&x, "input")?,
    };
    let args = vec![Leaf::Prim(n.clone()).into(), Leaf::Prim(m.clone()).into(), Leaf::Prim(PrimExpr::i64(k)).into()];
    Ok(vec![cx.call("eye", args, vec![("dtype", AttrValue::DType(to))])?])
}

/// A number that is known now, as an argument.
fn number(cx: &OpCx<'_>, value: &Value, role: &str) -> Option<PrimExpr> {
    let dtype = cx.dtype(value, role).ok()?;
    match (value.known_ints().as_deref(), value.as_const().and_then(numbers_of).as_deref()) {
        (Some([value]), _) => Some(value.cast(dtype)),
        (_, Some([number])) => Some(PrimExpr::number(dtype, *number)),
        _ => None,
    }
}

/// Three tensors of one number.
fn range_at_run_time(cx: &mut OpCx<'_>, limits: [Value; 3]) -> Outputs {
    let mut scalars = Vec::new();
    for v in limits {
        scalars.push(cx.reshape(&v, Vec::new())?);
    }
    let extent = cx.call("range_extent", scalars.clone(), vec![])?;
    let n = cx.run_time_dims(&extent, 1)?;
    let [start, _, delta] = <[Value; 3]>::try_from(scalars).map_err(|_| "there are no three limits")?;
    Ok(vec![cx.call("dynamic_arange", vec![start, delta, Value::shape(n)], vec![])?])
}

fn range(cx: &mut OpCx<'_>) -> Outputs {
    let (start, limit, delta) = (cx.input(0, "start")?, cx.input(1, "limit")?, cx.input(2, "delta")?);
    // The type that floats of 16 bits are computed in.
    cx.node.int("stash_type")?;
    let to = cx.dtype(&start, "start")?;
    let known = [(&start, "start"), (&limit, "limit"), (&delta, "delta")].map(|(v, role)| number(cx, v, role));
    let [Some(start), Some(limit), Some(delta)] = known else {
        return range_at_run_time(cx, [start, limit, delta]);
    };
    if delta.as_int() == Some(0) || delta.as_float() == Some(0.0) {
        return Err("delta is 0".into());
    }
    let args = [start, limit, delta].map(|v| Leaf::Prim(v).into()).to_vec();
    Ok(vec![cx.call("arange", args, vec![("dtype", AttrValue::DType(to))])?])
}
