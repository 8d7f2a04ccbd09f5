use crate::{Bf16, DType, F16, TypeCode};
use std::string::ToString;

#[test]
fn f16_round_trips_every_pattern() {
    for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 97 } else { 1 }) {
        let value = F16(bits).to_f32();
        if value.is_nan() {
            assert!(F16::from_f32(value).to_f32().is_nan());
        } else {
            assert_eq!(F16::from_f32(value), F16(bits), "{bits:#x} = {value}");
        }
        let wide = Bf16(bits).to_f32();
        if !wide.is_nan() {
            assert_eq!(Bf16::from_f32(wide), Bf16(bits));
        }
    }
}

#[test]
fn f16_rounds_to_nearest_even() {
    // Neighbours of every finite magnitude: the middle goes to the even one, beside it to the nearer one.
    for bits in (0..0x7bffu16).step_by(if cfg!(miri) { 97 } else { 1 }) {
        let (low, high) = (F16(bits).to_f32(), F16(bits + 1).to_f32());
        let middle = (low + high) / 2.0;
        assert_eq!(F16::from_f32(middle).0, bits + (bits & 1), "{bits:#x}");
        assert_eq!(F16::from_f32(f32::from_bits(middle.to_bits() - 1)).0, bits, "{bits:#x}");
        assert_eq!(F16::from_f32(-f32::from_bits(middle.to_bits() + 1)).0, (bits + 1) | 0x8000, "{bits:#x}");
    }
    assert_eq!(F16::from_f32(65519.996).0, 0x7bff);
    assert_eq!(F16::from_f32(65520.0).0, 0x7c00);
    assert_eq!(F16::from_f32(f32::MIN_POSITIVE).0, 0);
    assert_eq!(F16::from_f32(f32::NEG_INFINITY).0, 0xfc00);
}

#[test]
fn bf16_rounds_to_nearest_even() {
    assert_eq!(Bf16::from_f32(f32::from_bits(0x3f80_8000)).0, 0x3f80);
    assert_eq!(Bf16::from_f32(f32::from_bits(0x3f81_8000)).0, 0x3f82);
    assert_eq!(Bf16::from_f32(f32::from_bits(0x3f80_8001)).0, 0x3f81);
    assert_eq!(Bf16::from_f32(f32::MAX).0, 0x7f80);
    assert!(Bf16::from_f32(f32::from_bits(0x7f80_0001)).to_f32().is_nan());
}

#[test]
fn dtypes_print_as_in_tvm() {
    assert_eq!(DType::F32.to_string(), "float32");
    assert_eq!(DType { lanes: 4, ..DType::I8 }.to_string(), "int8x4");
    assert_eq!(DType::BOOL.to_string(), "bool");
    assert_eq!(DType::BF16.to_string(), "bfloat16");
    assert_eq!(DType { code: TypeCode::UInt, bits: 4, lanes: 3 }.bytes(), 2);
}
