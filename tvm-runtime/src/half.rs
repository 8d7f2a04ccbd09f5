//! `float16` and `bfloat16` as bit patterns.

/// IEEE binary16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct F16(pub u16);

/// `bfloat16`: the upper half of a binary32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Bf16(pub u16);

impl F16 {
    /// The exact value.
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let exponent = u32::from(self.0 >> 10) & 0x1f;
        let fraction = u32::from(self.0 & 0x3ff);
        match exponent {
            // A subnormal is fraction * 2^-24, exact in f32.
            0 => f32::from_bits(sign | (fraction as f32 * f32::from_bits(0x3380_0000)).to_bits()),
            0x1f => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
            _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
        }
    }

    /// Rounds to nearest, ties to even; overflow gives infinity, NaN stays NaN (made quiet).
    pub fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        let half = if magnitude > 0x7f80_0000 {
            0x7e00 | (magnitude >> 13) as u16 & 0x3ff
        } else if magnitude >= 0x4780_0000 {
            0x7c00
        } else if magnitude >= 0x3880_0000 {
            round(magnitude - (112 << 23), 13)
        } else {
            // Units of 2^-24: the significand, shifted by what the exponent lacks.
            let shift = 126 - (magnitude >> 23);
            if shift > 24 { 0 } else { round(magnitude & 0x7f_ffff | 0x80_0000, shift) }
        };
        F16(sign | half)
    }
}

impl Bf16 {
    /// The exact value.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// Rounds to nearest, ties to even; overflow gives infinity, NaN stays NaN (made quiet).
    pub fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        if value.is_nan() { Bf16((bits >> 16) as u16 | 0x40) } else { Bf16(round(bits, 16)) }
    }
}

/// `bits / 2^shift` rounded to nearest, ties to even; `shift` in 1..=24, the result must fit.
fn round(bits: u32, shift: u32) -> u16 {
    let down = bits >> shift;
    let rest = bits & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    (down + u32::from(rest > half || rest == half && down & 1 == 1)) as u16
}
