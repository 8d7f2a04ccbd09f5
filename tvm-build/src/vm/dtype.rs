//! Element types of the IR as the run time knows them.

use tvm_ir::dtype::{DType, TypeCode};
use tvm_runtime::{DType as RunDType, TypeCode as RunCode};

/// The run-time type of an element; `None` for types that only the compiler knows (odd widths, handles).
pub fn run_dtype(d: DType) -> Option<RunDType> {
    let code = match (d.code, d.bits) {
        (TypeCode::Bool, _) => return Some(RunDType { lanes: d.lanes, ..RunDType::BOOL }),
        (TypeCode::Int, 2 | 4) if d.lanes == 1 => RunCode::Int,
        (TypeCode::UInt, 2 | 4) if d.lanes == 1 => RunCode::UInt,
        (TypeCode::Int, 8 | 16 | 32 | 64) => RunCode::Int,
        (TypeCode::UInt, 8 | 16 | 32 | 64) => RunCode::UInt,
        (TypeCode::Float, 16 | 32 | 64) => RunCode::Float,
        (TypeCode::BFloat, 16) => RunCode::BFloat,
        (TypeCode::Text, _) => RunCode::Text,
        (TypeCode::Float8E4M3FN, _) => RunCode::Float8E4M3FN,
        (TypeCode::Float8E4M3FNUZ, _) => RunCode::Float8E4M3FNUZ,
        (TypeCode::Float8E5M2, _) => RunCode::Float8E5M2,
        (TypeCode::Float8E5M2FNUZ, _) => RunCode::Float8E5M2FNUZ,
        (TypeCode::Float8E8M0FNU, _) => RunCode::Float8E8M0FNU,
        (TypeCode::Float4E2M1FN, _) if d.lanes == 1 => RunCode::Float4E2M1FN,
        _ => return None,
    };
    Some(RunDType { code, bits: d.bits, lanes: d.lanes })
}

/// An element type in typed entry points: its constant of [`RunDType`], the Rust type and that type's zero.
pub(super) struct ElementType {
    pub(super) dtype: RunDType,
    pub(super) constant: &'static str,
    pub(super) rust: &'static str,
    pub(super) zero: &'static str,
}

macro_rules! elements {
    ($($constant:ident $rust:literal $zero:literal;)*) => {
        &[$(ElementType {
            dtype: RunDType::$constant,
            constant: stringify!($constant),
            rust: $rust,
            zero: $zero,
        }),*]
    };
}

static ELEMENTS: &[ElementType] = elements! {
    BOOL "bool" "false";
    I8 "i8" "0";
    I16 "i16" "0";
    I32 "i32" "0";
    I64 "i64" "0";
    U8 "u8" "0";
    U16 "u16" "0";
    U32 "u32" "0";
    U64 "u64" "0";
    F16 "F16" "F16(0)";
    BF16 "Bf16" "Bf16(0)";
    F32 "f32" "0.0";
    F64 "f64" "0.0";
    F8E4M3FN "F8E4M3Fn" "F8E4M3Fn(0)";
    F8E4M3FNUZ "F8E4M3FnUz" "F8E4M3FnUz(0)";
    F8E5M2 "F8E5M2" "F8E5M2(0)";
    F8E5M2FNUZ "F8E5M2FnUz" "F8E5M2FnUz(0)";
    F8E8M0FNU "F8E8M0Fnu" "F8E8M0Fnu(0)";
    F4E2M1FN "F4E2M1x2" "F4E2M1x2(0)";
    I4 "I4x2" "I4x2(0)";
    U4 "U4x2" "U4x2(0)";
    I2 "I2x4" "I2x4(0)";
    U2 "U2x4" "U2x4(0)";
    TEXT "Text" "Text::EMPTY";
};

/// How an element is written in Rust; `None` for types that entry points cannot take.
pub(super) fn element_type(d: RunDType) -> Option<&'static ElementType> {
    ELEMENTS.iter().find(|e| e.dtype == d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_a_type_of_the_same_name() {
        for e in ELEMENTS {
            let ir: DType = e.dtype.to_string().parse().unwrap();
            assert_eq!(run_dtype(ir), Some(e.dtype), "{ir}");
            for count in [0, 1, 5, 8] {
                let bytes = ir.storage_bytes(count as u64);
                assert_eq!(e.dtype.storage_bytes(count), bytes.map(|b| b as usize), "{count} of {ir}");
            }
        }
    }

    /// The wrapper types of the run time convert as the compiler does. `float8_e8m0fnu` rounds up there, to nearest here.
    #[test]
    fn wrappers_agree_with_the_compiler() {
        use tvm_runtime::{F4E2M1x2, F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz, F8E8M0Fnu};
        type Row = (&'static str, fn(u8) -> f32, fn(f32) -> u8);
        let rows: [Row; 6] = [
            ("float8_e4m3fn", |b| F8E4M3Fn(b).to_f32(), |v| F8E4M3Fn::from_f32(v).0),
            ("float8_e4m3fnuz", |b| F8E4M3FnUz(b).to_f32(), |v| F8E4M3FnUz::from_f32(v).0),
            ("float8_e5m2", |b| F8E5M2(b).to_f32(), |v| F8E5M2::from_f32(v).0),
            ("float8_e5m2fnuz", |b| F8E5M2FnUz(b).to_f32(), |v| F8E5M2FnUz::from_f32(v).0),
            ("float8_e8m0fnu", |b| F8E8M0Fnu(b).to_f32(), |v| F8E8M0Fnu::from_f32(v).0),
            ("float4_e2m1fn", |b| F4E2M1x2(b).to_array()[0], |v| F4E2M1x2::new([v, 0.0]).0),
        ];
        for (name, to_f32, from_f32) in rows {
            let d: DType = name.parse().unwrap();
            for bits in 0..=(1u64 << d.bits) - 1 {
                let (got, want) = (f64::from(to_f32(bits as u8)), tvm_ir::float::decode(d, bits));
                assert!(got == want || got.is_nan() && want.is_nan(), "{name} {bits:#x}: {got}, not {want}");
            }
            // Every sign and exponent with mantissas around every half-way point.
            for bits in (0..1u32 << 16).flat_map(|high| [0, 1, 0x7fff, 0x8000, 0xffff].map(|low| high << 16 | low)) {
                let v = f32::from_bits(bits);
                if d.code == TypeCode::Float8E8M0FNU {
                    let power = |b: u8| f64::from(to_f32(b));
                    let code = from_f32(v);
                    let fits = code == 0xff || power(code) >= f64::from(v) || code == 0xfe;
                    let least = code == 0 || code == 0xff || power(code - 1) < f64::from(v);
                    assert!(fits && least && (code == 0xff) == (v.is_nan() || v < 0.0), "{v} to {name}: {code}");
                    continue;
                }
                let want = tvm_ir::float::encode(d, f64::from(v));
                let (got, nan) = (u64::from(from_f32(v)), tvm_ir::float::decode(d, want).is_nan());
                assert!(got == want || nan && to_f32(got as u8).is_nan(), "{v} to {name}: {got:#x}, not {want:#x}");
            }
        }
    }
}
