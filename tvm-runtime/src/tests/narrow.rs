use crate::*;
use std::vec::Vec;

macro_rules! round_trips {
    ($($t:ident)*) => { $(
        for bits in 0..=255u8 {
            let v = $t(bits).to_f32();
            let back = $t::from_f32(v);
            if v.is_nan() {
                assert!(back.to_f32().is_nan(), "{} {bits:#x}", stringify!($t));
            } else if v.is_infinite() {
                assert_eq!(back.to_f32(), $t::MAX.to_f32() * v.signum());
            } else {
                assert_eq!(back, $t(bits), "{} {bits:#x} = {v}", stringify!($t));
            }
        }
        assert!($t::NAN.to_f32().is_nan());
        assert_eq!($t::from_f32(f32::MAX), $t::MAX);
        assert_eq!(f32::from($t::from_f32(1.0)), 1.0);
    )* };
}

#[test]
fn every_pattern_of_8_bit_floats_survives() {
    round_trips!(F8E4M3Fn F8E4M3FnUz F8E5M2 F8E5M2FnUz F8E8M0Fnu);
    assert_eq!(F8E4M3Fn::MAX.to_f32(), 448.0);
    assert_eq!(F8E4M3FnUz::MAX.to_f32(), 240.0);
    assert_eq!((F8E5M2::MAX.to_f32(), F8E5M2FnUz::MAX.to_f32()), (57344.0, 57344.0));
    // Ties go to even: between 16 and 18, 17 to 16; between 18 and 20, 19 to 20.
    assert_eq!([17.0, 19.0, -17.1].map(|v| F8E4M3Fn::from_f32(v).to_f32()), [16.0, 20.0, -18.0]);
    assert_eq!(F8E4M3FnUz::from_f32(-0.0), F8E4M3FnUz(0));
    assert_eq!(F8E5M2::from_f32(f32::NEG_INFINITY).to_f32(), -57344.0);
}

#[test]
fn scales_round_up() {
    let up = |v| F8E8M0Fnu::from_f32(v).to_f32();
    assert_eq!([1.0, 1.001, 2.0, 3.0, 0.3].map(up), [1.0, 2.0, 2.0, 4.0, 0.5]);
    assert_eq!((F8E8M0Fnu::from_f32(0.0), F8E8M0Fnu::from_f32(1e-40)), (F8E8M0Fnu(0), F8E8M0Fnu(0)));
    assert!(up(-1.0).is_nan() && up(f32::NAN).is_nan());
}

#[test]
fn packed_elements() {
    assert_eq!(I4x2::new([-1, 7]), I4x2(0x7f));
    assert_eq!(I2x4::new([0, 1, -2, -1]).to_array(), [0, 1, -2, -1]);
    assert_eq!(U4x2::pack(&[1, 2, 3]).collect::<Vec<_>>(), [U4x2(0x21), U4x2(3)]);
    assert_eq!(U2x4::unpack(&[U2x4(0b_11_10_01_00), U2x4(2)]).take(5).collect::<Vec<_>>(), [0, 1, 2, 3, 2]);
    for byte in 0..=255 {
        assert_eq!(I4x2::new(I4x2(byte).to_array()), I4x2(byte));
        assert_eq!(U4x2::new(U4x2(byte).to_array()), U4x2(byte));
        assert_eq!(I2x4::new(I2x4(byte).to_array()), I2x4(byte));
        assert_eq!(U2x4::new(U2x4(byte).to_array()), U2x4(byte));
        assert_eq!(F4E2M1x2::new(F4E2M1x2(byte).to_array()), F4E2M1x2(byte));
    }
    let round = |v: f32| F4E2M1x2::new([v, 0.0]).to_array()[0];
    assert_eq!([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 9.0].map(round), [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 6.0]);
    assert_eq!((round(-0.3), F4E2M1x2::new([f32::NAN, 0.0])), (-0.5, F4E2M1x2(8)));
}

#[test]
fn sizes() {
    let bytes = |d: DType, n| d.storage_bytes(n);
    assert_eq!((bytes(DType::I4, 5), bytes(DType::U2, 5), bytes(DType::BOOL, 5)), (Some(3), Some(2), Some(5)));
    assert_eq!((DType::I4.units(5), DType::F64.units(5)), (3, 5));
    assert_eq!(bytes(DType::F64, usize::MAX), None);
}
