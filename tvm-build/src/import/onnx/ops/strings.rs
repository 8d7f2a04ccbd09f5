//! Operators on strings: builtins of the VM. What only moves or compares strings are ordinary kernels.

use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::dtype::DType;
use tvm_ir::name::Name;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Expr, Leaf, StructInfo};

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::{Emitter, Fail};
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("RegexFullMatch", 20, regex_full_match),
    ("StringConcat", 20, string_concat),
    ("StringNormalizer", 10, string_normalizer),
    ("StringSplit", 20, string_split),
];

fn builtin(emitter: &mut Emitter, name: &str, args: Vec<Value>, out: StructInfo) -> Result<Value, Fail> {
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
    builtin(emitter, "text_constant", vec![bytes.into(), ends.into()], StructInfo::tensor(dims, DType::TEXT))
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
    let case = match &cx.node.string_or("case_change_action", "NONE")?[..] {
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
