//! How data types are spelled in generated C: `f32`, `i64x8`, … as suffixes of helpers, and the C types themselves.

use tvm_ir::diag::Diag;
use tvm_ir::dtype::{DType, TypeCode};
use tvm_ir::span::Span;

/// Suffix and C type of every element type that a kernel may hold.
const SCALARS: &[(&str, &str, DType)] = &[
    ("i8", "int8_t", DType::I8),
    ("i16", "int16_t", DType::I16),
    ("i32", "int32_t", DType::I32),
    ("i64", "int64_t", DType::I64),
    ("u8", "uint8_t", DType::U8),
    ("u16", "uint16_t", DType::U16),
    ("u32", "uint32_t", DType::U32),
    ("u64", "uint64_t", DType::U64),
    ("bool", "uint8_t", DType::BOOL),
    ("f16", "uint16_t", DType::F16),
    ("bf16", "uint16_t", DType::BF16),
    ("text", "uint64_t", DType::TEXT),
    ("f32", "float", DType::F32),
    ("f64", "double", DType::F64),
    ("f8e4m3fn", "uint8_t", DType::new(TypeCode::Float8E4M3FN, 8)),
    ("f8e4m3fnuz", "uint8_t", DType::new(TypeCode::Float8E4M3FNUZ, 8)),
    ("f8e5m2", "uint8_t", DType::new(TypeCode::Float8E5M2, 8)),
    ("f8e5m2fnuz", "uint8_t", DType::new(TypeCode::Float8E5M2FNUZ, 8)),
    ("f8e8m0fnu", "uint8_t", DType::new(TypeCode::Float8E8M0FNU, 8)),
];

/// Suffix of helpers for a type, as `f32x8`. Errors: a type that C kernels cannot hold.
pub(crate) fn suffix(dtype: DType) -> Result<String, Diag> {
    let (name, _, _) = SCALARS.iter().find(|(_, _, d)| *d == dtype.scalar()).ok_or_else(|| unsupported(dtype))?;
    Ok(if dtype.lanes > 1 { format!("{name}x{}", dtype.lanes) } else { (*name).to_owned() })
}

/// The C type of a scalar, or the typedef of a vector. 16-bit and 8-bit floats are held as their bits.
pub(crate) fn ctype(dtype: DType) -> Result<String, Diag> {
    if dtype.lanes > 1 {
        return Ok(format!("tvm_{}", suffix(dtype)?));
    }
    let (_, c, _) = SCALARS.iter().find(|(_, _, d)| *d == dtype).ok_or_else(|| unsupported(dtype))?;
    Ok((*c).to_owned())
}

/// The type of a suffix.
pub(crate) fn parse_suffix(s: &str) -> Option<DType> {
    let scalar = |name: &str| SCALARS.iter().find(|(n, _, _)| *n == name).map(|(_, _, d)| *d);
    if let Some(d) = scalar(s) {
        return Some(d);
    }
    let (name, lanes) = s.rsplit_once('x')?;
    let lanes: u16 = lanes.parse().ok()?;
    (lanes > 1).then_some(())?;
    Some(scalar(name)?.with_lanes(lanes))
}

/// Whether arithmetic of a type goes through `float` and back.
pub(crate) fn is_narrow_float(dtype: DType) -> bool {
    dtype.is_float() && !matches!(dtype.scalar(), DType::F32 | DType::F64)
}

/// The signed integer type of the same width: what vector comparisons give.
pub(crate) fn mask_type(dtype: DType) -> DType {
    let bits = if dtype.is_bool() { 8 } else { dtype.bits };
    DType::new(TypeCode::Int, bits).with_lanes(dtype.lanes)
}

/// The unsigned integer type of the same width.
pub(crate) fn unsigned(dtype: DType) -> DType {
    let bits = if dtype.is_bool() { 8 } else { dtype.bits };
    DType::new(TypeCode::UInt, bits).with_lanes(dtype.lanes)
}

fn unsupported(dtype: DType) -> Diag {
    Diag::error(Span::NONE, format!("the C back end has no type for `{dtype}`"))
        .help("cast the tensor to int8 or wider, or to float8, float16, bfloat16, float32 or float64")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_round_trip() {
        for (_, _, d) in SCALARS {
            for lanes in [1, 2, 16] {
                let d = d.with_lanes(lanes);
                assert_eq!(parse_suffix(&suffix(d).unwrap()), Some(d));
            }
        }
        assert!(suffix(DType::I4).is_err());
        assert_eq!(parse_suffix("f32x1"), None);
    }
}
