//! Data types of scalars, vectors and tensor elements.

use std::fmt;
use std::str::FromStr;

/// The family of a data type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TypeCode {
    /// Two's complement integers of 1 to 64 bits.
    Int,
    /// Unsigned integers of 1 to 64 bits.
    UInt,
    /// IEEE 754 binary floating point of 16, 32 or 64 bits.
    Float,
    /// bfloat16.
    BFloat,
    /// 8-bit floats and smaller, by their exponent/mantissa layout.
    Float8E4M3FN,
    /// `float8_e4m3fnuz`
    Float8E4M3FNUZ,
    /// `float8_e5m2`
    Float8E5M2,
    /// `float8_e5m2fnuz`
    Float8E5M2FNUZ,
    /// `float8_e8m0fnu`
    Float8E8M0FNU,
    /// `float4_e2m1fn`
    Float4E2M1FN,
    /// Truth values: one byte, 0 or 1, in memory.
    Bool,
    /// A pair of floats of half the width.
    Complex,
    /// A string, by its number among those of the running program: equal strings have equal numbers.
    Text,
    /// A pointer or other opaque value.
    Handle,
    /// No type yet (`"void"`, `None`): an `out_dtype` left to inference.
    Void,
}

/// A data type: family, bits of one element, lanes of a vector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DType {
    /// The family.
    pub code: TypeCode,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes; 1 for scalars.
    pub lanes: u16,
}

macro_rules! consts {
    ($($name:ident = $code:ident $bits:literal),* $(,)?) => { $(
        #[doc = concat!("The scalar type of code `", stringify!($code), "` and ", stringify!($bits), " bits.")]
        pub const $name: DType = DType { code: TypeCode::$code, bits: $bits, lanes: 1 };
    )* };
}

impl DType {
    consts! {
        I2 = Int 2, I4 = Int 4, I8 = Int 8, I16 = Int 16, I32 = Int 32, I64 = Int 64,
        U2 = UInt 2, U4 = UInt 4, U8 = UInt 8, U16 = UInt 16, U32 = UInt 32, U64 = UInt 64,
        F16 = Float 16, F32 = Float 32, F64 = Float 64, BF16 = BFloat 16,
        BOOL = Bool 1, TEXT = Text 64, HANDLE = Handle 64, VOID = Void 0,
    }

    /// A scalar type.
    pub const fn new(code: TypeCode, bits: u8) -> DType {
        DType { code, bits, lanes: 1 }
    }

    /// The same element type with other lanes.
    pub const fn with_lanes(self, lanes: u16) -> DType {
        DType { code: self.code, bits: self.bits, lanes }
    }

    /// The element type of a vector.
    pub const fn scalar(self) -> DType {
        self.with_lanes(1)
    }

    /// `int*`
    pub fn is_int(self) -> bool {
        self.code == TypeCode::Int
    }

    /// `uint*`
    pub fn is_uint(self) -> bool {
        self.code == TypeCode::UInt
    }

    /// Any floating-point family, bfloat and 8-bit ones included.
    pub fn is_float(self) -> bool {
        matches!(
            self.code,
            TypeCode::Float
                | TypeCode::BFloat
                | TypeCode::Float8E4M3FN
                | TypeCode::Float8E4M3FNUZ
                | TypeCode::Float8E5M2
                | TypeCode::Float8E5M2FNUZ
                | TypeCode::Float8E8M0FNU
                | TypeCode::Float4E2M1FN
        )
    }

    /// `int*` or `uint*`
    pub fn is_integer(self) -> bool {
        self.is_int() || self.is_uint()
    }

    /// `bool`
    pub fn is_bool(self) -> bool {
        self.code == TypeCode::Bool
    }

    /// No type yet.
    pub fn is_void(self) -> bool {
        self.code == TypeCode::Void
    }

    /// Scalars that a byte holds in compact storage: 2 of 4-bit types, 4 of 2-bit types, low bits first; else 1 (a
    /// bool takes a byte).
    pub fn per_byte(self) -> u64 {
        match self.bits {
            4 => 2,
            2 => 4,
            _ => 1,
        }
    }

    /// Whether several elements share a byte.
    pub fn is_packed(self) -> bool {
        self.per_byte() > 1
    }

    /// Bytes of `count` elements in compact storage: packed types share bytes, the last one may be filled in part;
    /// every other element takes whole bytes. `None` on overflow.
    pub fn storage_bytes(self, count: u64) -> Option<u64> {
        let count = count.checked_mul(u64::from(self.lanes))?;
        if self.is_packed() {
            return Some(count.div_ceil(self.per_byte()));
        }
        count.checked_mul(u64::from(self.bits).div_ceil(8))
    }

    /// The bits of element `i` of packed storage; `None` out of range or of a type that is not packed.
    pub fn packed_bits(self, data: &[u8], i: usize) -> Option<u64> {
        let (byte, shift, mask) = self.place(i)?;
        Some(u64::from(*data.get(byte)? >> shift & mask))
    }

    /// Replaces the bits of element `i` of packed storage and leaves its neighbours; `None` as [`Self::packed_bits`].
    pub fn set_packed_bits(self, data: &mut [u8], i: usize, bits: u64) -> Option<()> {
        let (byte, shift, mask) = self.place(i)?;
        let byte = data.get_mut(byte)?;
        *byte = *byte & !(mask << shift) | (bits as u8 & mask) << shift;
        Some(())
    }

    /// Byte, shift and mask of an element of packed storage.
    fn place(self, i: usize) -> Option<(usize, u32, u8)> {
        let per = usize::try_from(self.per_byte()).ok().filter(|n| *n > 1)?;
        let shift = u32::try_from(i % per).ok()? * u32::from(self.bits);
        Some((i / per, shift, (1 << self.bits) - 1))
    }

    /// Bytes of one element in memory (an element of a packed type alone takes one).
    pub fn bytes(self) -> u64 {
        self.storage_bytes(1).unwrap_or(0)
    }

    /// The least value an integer or bool lane can hold; `None` for others.
    pub fn min_int(self) -> Option<i64> {
        match self.code {
            TypeCode::Int => Some(if self.bits >= 64 { i64::MIN } else { -(1i64 << (self.bits - 1)) }),
            TypeCode::UInt | TypeCode::Bool => Some(0),
            _ => None,
        }
    }

    /// The greatest value an integer or bool lane can hold, as far as `i64` reaches; `None` for others.
    pub fn max_int(self) -> Option<i64> {
        match self.code {
            TypeCode::Int => Some(if self.bits >= 64 { i64::MAX } else { (1i64 << (self.bits - 1)) - 1 }),
            TypeCode::UInt => Some(if self.bits >= 63 { i64::MAX } else { (1i64 << self.bits) - 1 }),
            TypeCode::Bool => Some(1),
            _ => None,
        }
    }
}

const NAMED: &[(&str, DType)] = &[
    ("bool", DType::BOOL),
    ("bfloat16", DType::BF16),
    ("float8_e4m3fn", DType::new(TypeCode::Float8E4M3FN, 8)),
    ("float8_e4m3fnuz", DType::new(TypeCode::Float8E4M3FNUZ, 8)),
    ("float8_e5m2", DType::new(TypeCode::Float8E5M2, 8)),
    ("float8_e5m2fnuz", DType::new(TypeCode::Float8E5M2FNUZ, 8)),
    ("float8_e8m0fnu", DType::new(TypeCode::Float8E8M0FNU, 8)),
    ("float4_e2m1fn", DType::new(TypeCode::Float4E2M1FN, 4)),
    ("string", DType::TEXT),
    ("handle", DType::HANDLE),
    ("void", DType::VOID),
];

impl fmt::Display for DType {
    /// TVM's spelling: `float32`, `int8x4`, `bool`, `bfloat16`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scalar = self.scalar();
        if let Some((name, _)) = NAMED.iter().find(|(_, d)| *d == scalar) {
            f.write_str(name)?;
        } else {
            let family = match self.code {
                TypeCode::Int => "int",
                TypeCode::UInt => "uint",
                TypeCode::Float => "float",
                TypeCode::Complex => "complex",
                TypeCode::BFloat => "bfloat",
                other => return write!(f, "{other:?}{}", self.bits),
            };
            write!(f, "{family}{}", self.bits)?;
        }
        if self.lanes != 1 { write!(f, "x{}", self.lanes) } else { Ok(()) }
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a data type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownDType;

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(s: &str) -> Result<DType, UnknownDType> {
        // Longest name first, so that `float8_e4m3fnuz` is not read as `float8_e4m3fn`.
        let named = NAMED.iter().filter(|(n, _)| s.starts_with(n)).max_by_key(|(n, _)| n.len());
        let (scalar, rest) = if let Some((name, dtype)) = named {
            (*dtype, &s[name.len()..])
        } else {
            let families = [
                ("uint", TypeCode::UInt),
                ("int", TypeCode::Int),
                ("float", TypeCode::Float),
                ("complex", TypeCode::Complex),
            ];
            let (name, code) = families.iter().find(|(n, _)| s.starts_with(n)).ok_or(UnknownDType)?;
            let rest = &s[name.len()..];
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let bits: u8 = rest[..digits].parse().map_err(|_| UnknownDType)?;
            let legal = match code {
                TypeCode::Float => matches!(bits, 16 | 32 | 64),
                TypeCode::Complex => matches!(bits, 64 | 128),
                _ => (1..=64).contains(&bits),
            };
            if !legal {
                return Err(UnknownDType);
            }
            (DType::new(*code, bits), &rest[digits..])
        };
        if rest.is_empty() {
            return Ok(scalar);
        }
        let lanes: u16 = rest.strip_prefix('x').and_then(|n| n.parse().ok()).ok_or(UnknownDType)?;
        if lanes == 0 { Err(UnknownDType) } else { Ok(scalar.with_lanes(lanes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for s in [
            "float32",
            "int8x4",
            "bool",
            "boolx4",
            "bfloat16",
            "uint1",
            "float8_e4m3fnuz",
            "int4",
            "float16x8",
            "complex64",
            "handle",
        ] {
            assert_eq!(s.parse::<DType>().unwrap().to_string(), s);
        }
        for s in ["float31", "int", "int65", "float32x", "float32x0", "foo", ""] {
            assert!(s.parse::<DType>().is_err(), "{s}");
        }
    }

    #[test]
    fn storage() {
        assert_eq!(DType::I4.storage_bytes(3), Some(2));
        assert_eq!(DType::U2.storage_bytes(5), Some(2));
        let mut data = [0xff, 0xff];
        DType::U2.set_packed_bits(&mut data, 5, 0b101).unwrap();
        assert_eq!((data, DType::U2.packed_bits(&data, 5)), ([0xff, 0xf7], Some(1)));
        assert_eq!(DType::I4.packed_bits(&[0x21], 1), Some(2));
        assert_eq!((DType::U8.packed_bits(&data, 0), DType::U2.packed_bits(&data, 8)), (None, None));
        assert_eq!(DType::BOOL.storage_bytes(3), Some(3));
        assert_eq!(DType::F32.with_lanes(4).bytes(), 16);
        assert_eq!(DType::F64.storage_bytes(u64::MAX), None);
    }
}
