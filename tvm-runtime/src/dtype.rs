//! Data types of tensor elements.

use core::fmt;

/// Kind of an element, numbered as in DLPack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TypeCode {
    /// Signed integer.
    Int = 0,
    /// Unsigned integer.
    UInt = 1,
    /// IEEE floating point.
    Float = 2,
    /// Opaque pointer.
    Handle = 3,
    /// `bfloat16`.
    BFloat = 4,
    /// Truth value; one byte, 0 or 1, when `bits` is 8.
    Bool = 6,
    /// `float8_e4m3fn`: no infinity.
    Float8E4M3FN = 10,
    /// `float8_e4m3fnuz`: no infinity, no negative zero.
    Float8E4M3FNUZ = 11,
    /// `float8_e5m2`.
    Float8E5M2 = 12,
    /// `float8_e5m2fnuz`: no infinity, no negative zero.
    Float8E5M2FNUZ = 13,
    /// `float8_e8m0fnu`: powers of two.
    Float8E8M0FNU = 14,
    /// `float4_e2m1fn`: neither infinity nor NaN.
    Float4E2M1FN = 17,
    /// A string: its number among those of the state.
    Text = 128,
}

/// Data type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DType {
    /// Kind.
    pub code: TypeCode,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes; 1 for a scalar.
    pub lanes: u16,
}

impl DType {
    /// A scalar type.
    pub const fn new(code: TypeCode, bits: u8) -> Self {
        DType { code, bits, lanes: 1 }
    }

    /// Bytes of one element; of one that shares its byte with others, 1.
    pub const fn bytes(self) -> usize {
        (self.bits as usize * self.lanes as usize).div_ceil(8)
    }

    /// Elements that a byte holds: 2 of 4-bit types, 4 of 2-bit types, the first in the lowest bits; else 1.
    pub const fn per_byte(self) -> usize {
        match (self.bits, self.lanes) {
            (4, 1) => 2,
            (2, 1) => 4,
            _ => 1,
        }
    }

    /// Rust values of the type's [`crate::Element`] that hold `count` elements: a value holds [`Self::per_byte`].
    pub const fn units(self, count: usize) -> usize {
        count.div_ceil(self.per_byte())
    }

    /// Bytes of `count` elements in a compact tensor; `None` on overflow.
    pub const fn storage_bytes(self, count: usize) -> Option<usize> {
        self.units(count).checked_mul(self.bytes())
    }
}

macro_rules! dtypes {
    ($($name:ident $code:ident $bits:literal;)*) => {
        impl DType {
            $(#[doc = concat!("`", stringify!($name), "`.")]
            pub const $name: DType = DType::new(TypeCode::$code, $bits);)*
        }
    };
}

dtypes! {
    BOOL Bool 8;
    I8 Int 8;
    I16 Int 16;
    I32 Int 32;
    I64 Int 64;
    U8 UInt 8;
    U16 UInt 16;
    U32 UInt 32;
    U64 UInt 64;
    F16 Float 16;
    F32 Float 32;
    F64 Float 64;
    BF16 BFloat 16;
    F8E4M3FN Float8E4M3FN 8;
    F8E4M3FNUZ Float8E4M3FNUZ 8;
    F8E5M2 Float8E5M2 8;
    F8E5M2FNUZ Float8E5M2FNUZ 8;
    F8E8M0FNU Float8E8M0FNU 8;
    F4E2M1FN Float4E2M1FN 4;
    I4 Int 4;
    U4 UInt 4;
    I2 Int 2;
    U2 UInt 2;
    TEXT Text 64;
}

/// TVM's spelling: `float32`, `int8x4`, `bool`.
impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.code {
            TypeCode::Int => "int",
            TypeCode::UInt => "uint",
            TypeCode::Float => "float",
            TypeCode::Handle => "handle",
            TypeCode::BFloat => "bfloat",
            TypeCode::Bool => "bool",
            TypeCode::Float8E4M3FN => "float8_e4m3fn",
            TypeCode::Float8E4M3FNUZ => "float8_e4m3fnuz",
            TypeCode::Float8E5M2 => "float8_e5m2",
            TypeCode::Float8E5M2FNUZ => "float8_e5m2fnuz",
            TypeCode::Float8E8M0FNU => "float8_e8m0fnu",
            TypeCode::Float4E2M1FN => "float4_e2m1fn",
            TypeCode::Text => "string",
        };
        f.write_str(name)?;
        if matches!(self.code, TypeCode::Int | TypeCode::UInt | TypeCode::Float | TypeCode::BFloat) {
            write!(f, "{}", self.bits)?;
        }
        if self.lanes != 1 {
            write!(f, "x{}", self.lanes)?;
        }
        Ok(())
    }
}
