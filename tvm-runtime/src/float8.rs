//! 8-bit floats as bit patterns.
//!
//! Conversions from `f32` round once, to nearest, ties to even, and saturate, as ONNX's `Cast` does by default: what
//! is beyond the greatest finite value, an infinity too, becomes that value. NaN stays NaN.

/// What the bits that no finite number takes are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// Infinities and NaNs under the greatest exponent.
    Ieee,
    /// NaN where all bits but the sign are ones.
    AllOnes,
    /// NaN where negative zero would be.
    NegativeZero,
}

/// A format of a sign, an exponent and `man` bits of mantissa.
#[derive(Clone, Copy)]
struct Format {
    man: u32,
    bias: u32,
    special: Special,
}

impl Format {
    /// Bits of the greatest finite number.
    const fn max(self) -> u8 {
        match self.special {
            Special::Ieee => 0x7f - (1 << self.man),
            Special::AllOnes => 0x7e,
            Special::NegativeZero => 0x7f,
        }
    }

    /// Bits of the positive NaN, or of the only one.
    const fn nan(self) -> u8 {
        match self.special {
            Special::Ieee => self.max() + 1 + (1 << (self.man - 1)),
            Special::AllOnes => 0x7f,
            Special::NegativeZero => 0x80,
        }
    }

    fn decode(self, bits: u8) -> f32 {
        let magnitude = u32::from(bits & 0x7f);
        let sign = u32::from(bits & 0x80) << 24;
        let finite = magnitude <= u32::from(self.max());
        if bits == 0x80 && self.special == Special::NegativeZero || !finite && self.special != Special::Ieee {
            return f32::from_bits(sign | 0x7fc0_0000);
        }
        if !finite {
            let infinite = magnitude == u32::from(self.max()) + 1;
            return f32::from_bits(sign | if infinite { 0x7f80_0000 } else { 0x7fc0_0000 });
        }
        let (exponent, mantissa) = (magnitude >> self.man, magnitude & ((1 << self.man) - 1));
        let significand = if exponent == 0 { mantissa } else { mantissa | 1 << self.man };
        // Units of the last place: a power of two that is a normal f32, so that the product is exact.
        let unit = f32::from_bits((exponent.max(1) + 127 - self.bias - self.man) << 23);
        f32::from_bits(sign | (significand as f32 * unit).to_bits())
    }

    fn encode(self, value: f32) -> u8 {
        let bits = value.to_bits();
        let (sign, magnitude) = ((bits >> 24 & 0x80) as u8, bits & 0x7fff_ffff);
        let only_nan = self.special == Special::NegativeZero;
        if value.is_nan() {
            return if only_nan { self.nan() } else { sign | self.nan() };
        }
        if value.is_infinite() {
            return sign | self.max();
        }
        let down = 23 - self.man;
        // The exponent field in the new bias, less where the value is subnormal there.
        let exponent = (magnitude >> 23) as i32 - 127 + self.bias as i32;
        let rounded = if exponent >= 1 {
            round(((exponent as u32) << 23) | magnitude & 0x7f_ffff, down)
        } else {
            match u32::try_from(down as i32 + 1 - exponent) {
                Ok(shift) if shift <= 25 => round(magnitude & 0x7f_ffff | 0x80_0000, shift),
                _ => 0,
            }
        };
        let magnitude = rounded.min(u32::from(self.max())) as u8;
        if magnitude == 0 && only_nan { 0 } else { sign | magnitude }
    }
}

/// `bits / 2^shift` rounded to nearest, ties to even; `shift` in 1..=25.
fn round(bits: u32, shift: u32) -> u32 {
    let (down, rest, half) = (bits >> shift, bits & ((1 << shift) - 1), 1 << (shift - 1));
    down + u32::from(rest > half || rest == half && down & 1 == 1)
}

macro_rules! floats {
    ($($(#[doc = $doc:literal])* $name:ident $man:literal $bias:literal $special:ident;)*) => { $(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            const FORMAT: Format = Format { man: $man, bias: $bias, special: Special::$special };
            /// The greatest finite number.
            pub const MAX: Self = $name(Self::FORMAT.max());
            /// A number that is none.
            pub const NAN: Self = $name(Self::FORMAT.nan());

            /// The exact value.
            pub fn to_f32(self) -> f32 {
                Self::FORMAT.decode(self.0)
            }

            /// Rounds to nearest, ties to even; what is too great gives the greatest number of its sign.
            pub fn from_f32(value: f32) -> Self {
                $name(Self::FORMAT.encode(value))
            }
        }

        impl From<$name> for f32 {
            fn from(value: $name) -> f32 {
                value.to_f32()
            }
        }
    )* };
}

floats! {
    /// `float8_e4m3fn`: a sign, 4 bits of exponent, 3 of mantissa; NaN but no infinity, up to 448.
    F8E4M3Fn 3 7 AllOnes;
    /// `float8_e4m3fnuz`: as [`F8E4M3Fn`] with one zero and one NaN, up to 240.
    F8E4M3FnUz 3 8 NegativeZero;
    /// `float8_e5m2`: the upper byte of a binary16, up to 57344.
    F8E5M2 2 15 Ieee;
    /// `float8_e5m2fnuz`: as [`F8E5M2`] with one zero, one NaN and no infinity, up to 57344.
    F8E5M2FnUz 2 16 NegativeZero;
}

/// `float8_e8m0fnu`: the powers of two from 2^-127 to 2^127, and NaN; the scales of blocks in the MX formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct F8E8M0Fnu(pub u8);

impl F8E8M0Fnu {
    /// 2^127
    pub const MAX: Self = F8E8M0Fnu(0xfe);
    /// A number that is none.
    pub const NAN: Self = F8E8M0Fnu(0xff);

    /// The exact value.
    pub fn to_f32(self) -> f32 {
        match self.0 {
            0xff => f32::NAN,
            // 2^-127 is subnormal in f32.
            0 => f32::from_bits(0x0040_0000),
            exponent => f32::from_bits(u32::from(exponent) << 23),
        }
    }

    /// The least power of two that is not below the value (so that a scale made of the greatest magnitude of a block
    /// holds it), as ONNX's `Cast` rounds by default; 0 gives the least, what is too great the greatest power. NaN and
    /// negative numbers give NaN.
    pub fn from_f32(value: f32) -> Self {
        if value.is_nan() || value < 0.0 {
            return Self::NAN;
        }
        let bits = value.to_bits() & 0x7fff_ffff;
        let exponent = bits >> 23;
        let above = if exponent == 0 { bits > 0x0040_0000 } else { bits & 0x7f_ffff != 0 };
        F8E8M0Fnu((exponent + u32::from(above)).min(0xfe) as u8)
    }
}

impl From<F8E8M0Fnu> for f32 {
    fn from(value: F8E8M0Fnu) -> f32 {
        value.to_f32()
    }
}
