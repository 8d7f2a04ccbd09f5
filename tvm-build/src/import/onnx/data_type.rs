//! Element types.

/// The element types of ONNX tensors; the number of each is the format's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DataType {
    Float = 1,
    Uint8 = 2,
    Int8 = 3,
    Uint16 = 4,
    Int16 = 5,
    Int32 = 6,
    Int64 = 7,
    String = 8,
    Bool = 9,
    Float16 = 10,
    Double = 11,
    Uint32 = 12,
    Uint64 = 13,
    Complex64 = 14,
    Complex128 = 15,
    Bfloat16 = 16,
    Float8E4M3Fn = 17,
    Float8E4M3Fnuz = 18,
    Float8E5M2 = 19,
    Float8E5M2Fnuz = 20,
    Uint4 = 21,
    Int4 = 22,
    Float4E2M1 = 23,
    Float8E8M0 = 24,
    Uint2 = 25,
    Int2 = 26,
}

/// Number, name as it is written in a dtype, and bits of each type (0 for strings).
#[rustfmt::skip]
const TABLE: &[(DataType, &str, u32)] = &[
    (DataType::Float, "float32", 32),
    (DataType::Uint8, "uint8", 8),
    (DataType::Int8, "int8", 8),
    (DataType::Uint16, "uint16", 16),
    (DataType::Int16, "int16", 16),
    (DataType::Int32, "int32", 32),
    (DataType::Int64, "int64", 64),
    (DataType::String, "string", 0),
    (DataType::Bool, "bool", 8),
    (DataType::Float16, "float16", 16),
    (DataType::Double, "float64", 64),
    (DataType::Uint32, "uint32", 32),
    (DataType::Uint64, "uint64", 64),
    (DataType::Complex64, "complex64", 64),
    (DataType::Complex128, "complex128", 128),
    (DataType::Bfloat16, "bfloat16", 16),
    (DataType::Float8E4M3Fn, "float8_e4m3fn", 8),
    (DataType::Float8E4M3Fnuz, "float8_e4m3fnuz", 8),
    (DataType::Float8E5M2, "float8_e5m2", 8),
    (DataType::Float8E5M2Fnuz, "float8_e5m2fnuz", 8),
    (DataType::Uint4, "uint4", 4),
    (DataType::Int4, "int4", 4),
    (DataType::Float4E2M1, "float4_e2m1fn", 4),
    (DataType::Float8E8M0, "float8_e8m0fnu", 8),
    (DataType::Uint2, "uint2", 2),
    (DataType::Int2, "int2", 2),
];

impl DataType {
    /// The type with the format's number `code`.
    pub(crate) fn from_code(code: i32) -> Option<DataType> {
        let row = usize::try_from(code).ok()?.checked_sub(1)?;
        TABLE.get(row).map(|row| row.0)
    }

    /// The type that a dtype is written as.
    pub(crate) fn from_name(name: &str) -> Option<DataType> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Its name, as a dtype is written: `float32`.
    pub(crate) fn name(self) -> &'static str {
        TABLE[self as usize - 1].1
    }

    /// Bits of an element as stored; types under 8 bits are packed, low bits first. 0 for strings.
    pub(crate) fn bits(self) -> u32 {
        TABLE[self as usize - 1].2
    }

    /// Bytes that `elements` elements take, packed; `None` on overflow. 0 for strings.
    pub(crate) fn bytes(self, elements: u64) -> Option<u64> {
        Some(elements.checked_mul(u64::from(self.bits()))?.div_ceil(8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_numbers() {
        for (row, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.0 as usize, row + 1);
            assert_eq!(DataType::from_code(row as i32 + 1), Some(entry.0));
        }
        for code in [0, -1, 27, 9999, i32::MIN, i32::MAX] {
            assert_eq!(DataType::from_code(code), None);
        }
    }

    #[test]
    fn packed_types_round_up() {
        assert_eq!(DataType::Int4.bytes(5), Some(3));
        assert_eq!(DataType::Int2.bytes(5), Some(2));
        assert_eq!(DataType::Double.bytes(u64::MAX / 8), None);
    }
}
