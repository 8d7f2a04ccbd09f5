//! Casts between numbers and strings: builtins of the VM, or computed now where the operand is a constant.

use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::dtype::DType;
use tvm_ir::name::Name;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Leaf, StructInfo};
use tvm_runtime::number::{self, Float};

use super::strings::{builtin, strings};
use crate::import::onnx::cx::OpCx;
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// Numbers or truth values as strings, as [`tvm_runtime::number`] writes them.
pub(super) fn to_text(cx: &mut OpCx<'_>, value: &Value) -> Result<Value, Fail> {
    let from = cx.dtype(value, "input")?;
    // Each type is written as the widest of its kind, which holds its values exactly.
    let wide = match from {
        DType::F64 | DType::U64 => from,
        _ if from.is_float() => DType::F32,
        _ if from.is_integer() || from.is_bool() => DType::I64,
        _ => return Err(format!("{from} cannot be written as strings").into()),
    };
    let value = cx.astype(value, wide)?;
    let dims = cx.dims(&value, "input")?;
    if let Some(constant) = value.as_const() {
        let all = written(constant).ok_or("a constant is malformed")?;
        let shape = constant.shape().to_vec();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        return strings(cx.emitter, &all, shape);
    }
    builtin(cx.emitter, "text_format", vec![value], StructInfo::tensor(dims, DType::TEXT))
}

fn written(constant: &Constant) -> Option<Vec<String>> {
    let data: &[u8] = constant.data();
    let width = usize::try_from(constant.dtype().bytes()).ok()?;
    let one = |bytes: &[u8]| {
        Some(match constant.dtype() {
            DType::F32 => Float::Single(f32::from_le_bytes(bytes.try_into().ok()?)).to_string(),
            DType::F64 => Float::Double(f64::from_le_bytes(bytes.try_into().ok()?)).to_string(),
            DType::I64 => i64::from_le_bytes(bytes.try_into().ok()?).to_string(),
            DType::U64 => u64::from_le_bytes(bytes.try_into().ok()?).to_string(),
            _ => return None,
        })
    };
    data.chunks_exact(width).map(one).collect()
}

/// Strings as numbers of a type that holds those of `to` exactly, to be converted to it: of float types but `float32`
/// doubles, of integers of less than a byte bytes. What writes no number of the type is an error: here in a constant, else
/// when the model runs.
pub(super) fn of_text(cx: &mut OpCx<'_>, value: &Value, to: DType) -> Result<Value, Fail> {
    let read = match to {
        DType::F32 | DType::BOOL => to,
        _ if to.is_float() => DType::F64,
        _ if to.is_int() && to.bits < 8 => DType::I8,
        _ if to.is_integer() && to.bits < 8 => DType::U8,
        _ if to.is_integer() => to,
        _ => return Err(format!("strings cannot be read as {to}").into()),
    };
    let node = cx.node.node().path.clone();
    if let Some((all, shape)) = cx.emitter.texts.of(value) {
        let mut bytes = Vec::new();
        for (i, text) in all.iter().enumerate() {
            let error = || format!("string {i} of those that are cast, '{text}', is no number of the range of {to}");
            bytes.extend_from_slice(&bytes_of(text, read, to.bits).ok_or_else(error)?);
        }
        return Ok(Constant::new(read, shape, Bytes::new(bytes)).map_err(|_| "a constant is malformed")?.into());
    }
    let dims = cx.dims(value, "input")?;
    let bits = Leaf::Prim(PrimExpr::i64(to.bits.into()));
    let args = vec![value.clone(), bits.into(), Leaf::Str(Name::from(node)).into()];
    builtin(cx.emitter, "text_parse", args, StructInfo::tensor(dims, read))
}

/// The bytes of the number that a string writes, of a type, of whose integers `bits` bits count.
fn bytes_of(text: &str, dtype: DType, bits: u8) -> Option<Vec<u8>> {
    Some(match dtype {
        DType::F32 => (number::float(text)? as f32).to_le_bytes().to_vec(),
        DType::F64 => number::float(text)?.to_le_bytes().to_vec(),
        DType::BOOL => vec![number::truth(text)?.into()],
        _ => {
            let half = 1i128 << bits.clamp(1, 64).saturating_sub(1);
            let (least, most) = if dtype.is_int() { (-half, half - 1) } else { (0, 2 * half - 1) };
            let width = usize::try_from(dtype.bytes()).ok()?;
            number::int(text, least, most)?.to_le_bytes().get(..width)?.to_vec()
        }
    })
}
