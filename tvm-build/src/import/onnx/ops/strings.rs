//! Operators on strings: builtins of the VM. What only moves or compares strings are ordinary kernels.

use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::dtype::DType;
use tvm_ir::name::Name;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Expr, Leaf, StructInfo};

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::data_type::DataType;
use crate::import::onnx::emit::{Emitter, Fail, constant_of};
use crate::import::onnx::tensor::Tensor;
use crate::import::onnx::value::{Value, constant, int_constant};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("RegexFullMatch", 20, regex_full_match),
    ("StringConcat", 20, string_concat),
    ("StringNormalizer", 10, string_normalizer),
    ("StringSplit", 20, string_split),
];

/// A call of a builtin of the VM that writes tensors.
pub(super) fn builtin(emitter: &mut Emitter, name: &str, args: Vec<Value>, out: StructInfo) -> Result<Value, Fail> {
    let args = args.iter().map(|a| emitter.bind(a)).collect::<Result<Vec<Leaf>, _>>()?;
    let symbol = Name::from(format!("vm.builtin.{name}"));
    Ok(emitter.emit(Expr::CallDps { symbol, args, out: out.clone() }, out))
}

/// A tensor of given strings, made when the model runs: their numbers are those of the run.
pub(crate) fn strings(emitter: &mut Emitter, all: &[&str], shape: Vec<u64>) -> Result<Value, Fail> {
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for s in all {
        bytes.extend_from_slice(s.as_bytes());
        ends.extend((bytes.len() as i64).to_le_bytes());
    }
    let malformed = |_| "a constant is malformed";
    let count = all.len() as u64;
    let ends = Constant::new(DType::I64, vec![count], Bytes::new(ends)).map_err(malformed)?;
    let bytes = Constant::new(DType::U8, vec![bytes.len() as u64], Bytes::new(bytes)).map_err(malformed)?;
    let dims = shape.iter().map(|d| i64::try_from(*d).map(PrimExpr::i64)).collect::<Result<Vec<_>, _>>();
    let dims = dims.map_err(|_| "a tensor of strings is too large")?;
    let args = vec![bytes.clone().into(), ends.clone().into()];
    let value = builtin(emitter, "text_constant", args, StructInfo::tensor(dims, DType::TEXT))?;
    emitter.texts.tell(&value, bytes, ends, shape);
    Ok(value)
}

fn text(cx: &OpCx<'_>, value: &Value, role: &str) -> Result<(), Fail> {
    match cx.dtype(value, role)? {
        DType::TEXT => Ok(()),
        other => Err(format!("{role} must be a tensor of strings, not of {other}").into()),
    }
}

fn int(v: i64) -> Value {
    Leaf::Prim(PrimExpr::i64(v)).into()
}

fn string_concat(cx: &mut OpCx<'_>) -> Outputs {
    let (mut a, mut b) = (cx.input(0, "X")?, cx.input(1, "Y")?);
    text(cx, &a, "X")?;
    text(cx, &b, "Y")?;
    // What the shapes broadcast to is what a comparison gives.
    let both = cx.apply("equal", &[&a, &b])?;
    let dims = cx.dims(&both, "the result")?;
    for x in [&mut a, &mut b] {
        if cx.dims(x, "an input")? != dims {
            *x = cx.call("broadcast_to", vec![x.clone(), Value::shape(dims.clone())], vec![])?;
        }
    }
    Ok(vec![builtin(cx.emitter, "text_concat", vec![a, b], StructInfo::tensor(dims, DType::TEXT))?])
}

/// An extent that a builtin counts.
fn counted(cx: &mut OpCx<'_>, name: &str, args: Vec<Value>) -> Result<PrimExpr, Fail> {
    let info = StructInfo::tensor(vec![PrimExpr::i64(1)], DType::I64);
    let count = builtin(cx.emitter, name, args, info)?;
    cx.run_time_dims(&count, 1)?.pop().ok_or_else(|| "there is no extent".into())
}

fn string_normalizer(cx: &mut OpCx<'_>) -> Outputs {
    let mut x = cx.input(0, "X")?;
    text(cx, &x, "X")?;
    let case = match cx.node.string_or("case_change_action", "NONE")? {
        "NONE" => 0,
        "LOWER" => 1,
        "UPPER" => 2,
        other => return Err(format!("attribute 'case_change_action' cannot be '{other}'").into()),
    };
    let sensitive = cx.node.flag_or("is_case_sensitive", false)?;
    cx.node.string("locale")?;
    let stop: Vec<String> = cx.node.strings("stopwords")?.unwrap_or_default().into_iter().map(String::from).collect();
    let mut dims = cx.dims(&x, "X")?;
    if !stop.is_empty() {
        let all: Vec<&str> = stop.iter().map(String::as_str).collect();
        let words = strings(cx.emitter, &all, vec![all.len() as u64])?;
        let fold = int(i64::from(!sensitive));
        let last = dims.pop().ok_or("X must have an axis")?;
        if dims.iter().any(|d| !d.is_int(1)) {
            return Err("X must be a row of strings".into());
        }
        x = cx.reshape(&x, vec![last])?;
        let kept = counted(cx, "text_keep_count", vec![x.clone(), words.clone(), fold.clone()])?;
        dims.push(kept);
        x = builtin(cx.emitter, "text_keep", vec![x, words, fold], StructInfo::tensor(dims.clone(), DType::TEXT))?;
    }
    if case != 0 {
        x = builtin(cx.emitter, "text_normalize", vec![x, int(case)], StructInfo::tensor(dims, DType::TEXT))?;
    }
    Ok(vec![x])
}

fn string_split(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    text(cx, &x, "X")?;
    let delimiter = cx.node.string_or("delimiter", "")?.to_string();
    let most = int(cx.node.int_or("maxsplit", -1)?);
    let delimiter = strings(cx.emitter, &[&delimiter], vec![1])?;
    let dims = cx.dims(&x, "X")?;
    let args = vec![x, delimiter, most];
    let widest = counted(cx, "text_split_count", args.clone())?;
    let mut pieces = dims.clone();
    pieces.push(widest);
    let info = StructInfo::Tuple(vec![StructInfo::tensor(pieces, DType::TEXT), StructInfo::tensor(dims, DType::I64)]);
    let both = builtin(cx.emitter, "text_split", args, info)?;
    cx.emitter.fields(&both)
}

fn regex_full_match(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    text(cx, &x, "X")?;
    let pattern = cx.node.string("pattern")?.ok_or("attribute 'pattern' is missing")?.to_string();
    let pattern = strings(cx.emitter, &[&pattern], vec![1])?;
    let dims = cx.dims(&x, "X")?;
    Ok(vec![builtin(cx.emitter, "text_match", vec![x, pattern], StructInfo::tensor(dims, DType::BOOL))?])
}

/// By operator and version, of the set `ai.onnx.ml`.
pub(super) static ML_ROWS: &[Row] = &[("LabelEncoder", 2, label_encoder)];

/// A tensor of an attribute.
pub(crate) fn tensor_value(emitter: &mut Emitter, tensor: &Tensor) -> Result<Value, Fail> {
    if tensor.dtype != DataType::String {
        return Ok(constant(tensor)?.into());
    }
    let all = tensor.strings.iter().map(|s| std::str::from_utf8(s)).collect::<Result<Vec<_>, _>>();
    strings(emitter, &all.map_err(|_| "a string is not UTF-8")?, tensor.shape.clone())
}

/// The list in one of the attributes `<name>_strings`, `…_int64s`, `…_floats`, `…_tensor`, and the ending of its name.
fn list(cx: &mut OpCx<'_>, name: &str) -> Result<(Value, &'static str), Fail> {
    let mut found = Vec::new();
    if let Some(all) = cx.node.strings(&format!("{name}_strings"))? {
        let count = all.len() as u64;
        found.push((strings(cx.emitter, &all, vec![count])?, "string"));
    }
    if let Some(all) = cx.node.ints(&format!("{name}_int64s"))? {
        found.push((int_constant(all, false).ok_or("the list is malformed")?.into(), "int64"));
    }
    if let Some(all) = cx.node.floats(&format!("{name}_floats"))? {
        let numbers: Vec<f64> = all.iter().map(|v| f64::from(*v)).collect();
        let made = constant_of(&numbers, vec![all.len() as u64], DType::F32);
        found.push((made.ok_or("the list is malformed")?.into(), "float"));
    }
    if let Some(tensor) = cx.node.tensor(&format!("{name}_tensor"))? {
        found.push((tensor_value(cx.emitter, tensor)?, "tensor"));
    }
    match (found.pop(), found.pop()) {
        (Some(one), None) => Ok(one),
        _ => Err(format!("one of the attributes {name}_strings, _int64s, _floats and _tensor must be given").into()),
    }
}

/// Each element replaced by the value at the place of the first key that it equals; by the default if there is none.
fn label_encoder(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let texts = cx.node.strings("values_strings")?.is_some()
        || cx.node.tensor("values_tensor")?.is_some_and(|t| t.dtype == DataType::String);
    if !texts && cx.dtype(&x, "X")? != DType::TEXT {
        return super::trees::label_encoder(cx);
    }
    let (keys, _) = list(cx, "keys")?;
    let (values, kind) = list(cx, "values")?;
    // All are read; the one of the values' type counts.
    let text = cx.node.string_or("default_string", "_Unused")?.to_string();
    let (int, float) = (cx.node.int_or("default_int64", -1)?, cx.node.float_or("default_float", -0.0)?);
    let given = cx.node.tensor("default_tensor")?;
    let dtype = cx.dtype(&values, "the values")?;
    let default = match (kind, given) {
        (_, Some(tensor)) => tensor_value(cx.emitter, tensor)?,
        ("string", _) => strings(cx.emitter, &[&text], vec![1])?,
        ("int64", _) => int_constant(&[int], false).ok_or("the default is malformed")?.into(),
        ("float", _) => constant_of(&[f64::from(float)], vec![1], dtype).ok_or("the default is malformed")?.into(),
        _ => return Err("attribute 'default_tensor' is missing".into()),
    };
    if cx.dtype(&default, "the default")? != dtype {
        return Err(format!("the default is not of the values' type, {dtype}").into());
    }
    let key_count = cx.dims(&keys, "the keys")?;
    let [count] = &key_count[..] else { return Err("the keys must have one axis".into()) };
    let count =
        count.as_int().ok_or_else(|| Fail::limit("the number of keys must be known when the model is imported"))?;
    if cx.dims(&values, "the values")? != key_count {
        return Err("there must be as many values as keys".into());
    }
    let default = cx.reshape(&default, vec![PrimExpr::i64(1)])?;
    let table = cx.call("concat", vec![Value::Tuple(vec![values, default])], vec![("axis", 0i64.into())])?;
    let mut dims = cx.dims(&x, "X")?;
    dims.push(PrimExpr::i64(1));
    let column = cx.reshape(&x, dims)?;
    let equal = cx.apply("equal", &[&column, &keys])?;
    let places: Vec<i64> = (0..count).collect();
    let places: Value = int_constant(&places, false).ok_or("the list is malformed")?.into();
    let none = cx.scalar(count as f64, DType::I64)?;
    let place = cx.apply("where", &[&equal, &places, &none])?;
    let place = cx.call("min", vec![place], vec![("axis", vec![-1i64].into())])?;
    Ok(vec![cx.call("take", vec![table, place], vec![("axis", 0i64.into())])?])
}
