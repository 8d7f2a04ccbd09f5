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

    /// Bytes of one element.
    pub const fn bytes(self) -> usize {
        (self.bits as usize * self.lanes as usize).div_ceil(8)
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
        };
        f.write_str(name)?;
        if !matches!(self.code, TypeCode::Handle | TypeCode::Bool) {
            write!(f, "{}", self.bits)?;
        }
        if self.lanes != 1 {
            write!(f, "x{}", self.lanes)?;
        }
        Ok(())
    }
}
