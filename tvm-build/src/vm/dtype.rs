//! Element types of the IR as the run time knows them.

use tvm_ir::dtype::{DType, TypeCode};
use tvm_runtime::{DType as RunDType, TypeCode as RunCode};

/// The run-time type of an element; `None` for types that only kernels know (8-bit floats, 4-bit integers).
pub fn run_dtype(d: DType) -> Option<RunDType> {
    let code = match (d.code, d.bits) {
        (TypeCode::Bool, _) => return Some(RunDType { lanes: d.lanes, ..RunDType::BOOL }),
        (TypeCode::Int, 8 | 16 | 32 | 64) => RunCode::Int,
        (TypeCode::UInt, 8 | 16 | 32 | 64) => RunCode::UInt,
        (TypeCode::Float, 16 | 32 | 64) => RunCode::Float,
        (TypeCode::BFloat, 16) => RunCode::BFloat,
        _ => return None,
    };
    Some(RunDType { code, bits: d.bits, lanes: d.lanes })
}

/// The Rust type of an element in typed entry points.
pub(super) fn rust_type(d: RunDType) -> Option<&'static str> {
    [
        (RunDType::BOOL, "bool"),
        (RunDType::I8, "i8"),
        (RunDType::I16, "i16"),
        (RunDType::I32, "i32"),
        (RunDType::I64, "i64"),
        (RunDType::U8, "u8"),
        (RunDType::U16, "u16"),
        (RunDType::U32, "u32"),
        (RunDType::U64, "u64"),
        (RunDType::F16, "F16"),
        (RunDType::BF16, "Bf16"),
        (RunDType::F32, "f32"),
        (RunDType::F64, "f64"),
    ]
    .into_iter()
    .find_map(|(dtype, name)| (dtype == d).then_some(name))
}
