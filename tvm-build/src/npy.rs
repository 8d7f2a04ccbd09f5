//! NumPy's `.npy` arrays.

use tvm_ir::dtype::{DType, TypeCode};
use tvm_ir::prim::wrap_int;

use crate::npy_strings;
pub use crate::npy_strings::Strings;

/// An array in main memory: compact, row-major, little endian.
///
/// Invariant of what is read, and to be kept for what is written: `data` holds exactly what `dtype` and `shape`
/// ask for (types under 8 bits packed, low bits first).
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first; empty for a scalar.
    pub shape: Vec<u64>,
    /// The elements.
    pub data: Vec<u8>,
}

/// An array of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Of numbers or truth values.
    Numbers(Array),
    /// Of strings.
    Strings(Strings),
}

/// Longest header that is read.
const MAX_HEADER: usize = 1 << 16;
const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads an array. Big-endian and column-major arrays are brought into this system's order. Types of NumPy extensions,
/// of which a file only says the size (`|V1`, `|V2`), are read as unsigned integers of their bits: [`Array::into_type`]
/// gives them their type. The error is a sentence; malformed headers, sizes that do not fit and types without a
/// counterpart are errors.
pub fn read(bytes: &[u8]) -> Result<Array, String> {
    match read_any(bytes)? {
        Content::Numbers(array) => Ok(array),
        Content::Strings(_) => Err("an array of strings, where numbers are expected".to_owned()),
    }
}

/// As [`read`], also of strings: of a fixed width as Unicode (`<U5`) or UTF-8 (`|S5`), or objects (`|O`) that are strings.
pub fn read_any(bytes: &[u8]) -> Result<Content, String> {
    let cut = || "not a .npy array: it is cut short".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or("not a .npy array: it does not start as one")?;
    let (version, rest) = rest.split_at_checked(2).ok_or_else(cut)?;
    let (length, rest) = match version[0] {
        1 => rest.split_first_chunk::<2>().map(|(n, rest)| (usize::from(u16::from_le_bytes(*n)), rest)),
        2 | 3 => rest
            .split_first_chunk::<4>()
            .map(|(n, rest)| (usize::try_from(u32::from_le_bytes(*n)).unwrap_or(usize::MAX), rest)),
        other => return Err(format!("version {other} of the .npy format is unknown")),
    }
    .ok_or_else(cut)?;
    if length > MAX_HEADER {
        return Err(format!("not a .npy array: its header takes {length} bytes"));
    }
    let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = Header::parse(header)?;
    let count = header.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    if header.elements == Elements::Objects {
        let strings = npy_strings::objects(data)?;
        if count != Some(strings.len() as u64) {
            return Err(format!("shape {:?} does not fit the {} strings of the array", header.shape, strings.len()));
        }
        return Ok(Content::Strings(Strings { shape: header.shape, strings }));
    }
    let wanted = count.and_then(|n| match header.elements {
        Elements::Numbers(dtype) => dtype.storage_bytes(n),
        _ => n.checked_mul(header.bytes() as u64),
    });
    if wanted != Some(data.len() as u64) {
        return Err(format!(
            "shape {:?} of {} does not fit the {} bytes of the array",
            header.shape,
            header.descr,
            data.len()
        ));
    }
    let mut data = if header.fortran { to_row_major(data, &header) } else { data.to_vec() };
    let Elements::Numbers(dtype) = header.elements else {
        let one = |s: &[u8]| match header.elements {
            Elements::Unicode(width) => npy_strings::unicode(s, width, header.big_endian),
            _ => npy_strings::bytes(s),
        };
        let count = usize::try_from(count.unwrap_or(0)).unwrap_or(0);
        let strings = match header.bytes() {
            0 if count > MAX_EMPTY => Err("the array has too many strings".to_owned()),
            0 => Ok(vec![String::new(); count]),
            bytes => data.chunks_exact(bytes).map(one).collect(),
        };
        return Ok(Content::Strings(Strings { shape: header.shape, strings: strings? }));
    };
    let width = header.width();
    if header.big_endian && width > 0 {
        data.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    if dtype.is_bool() && data.iter().any(|&b| b > 1) {
        return Err("a bool is neither 0 nor 1".to_owned());
    }
    Ok(Content::Numbers(Array { dtype, shape: header.shape, data }))
}

/// Writes an array of any kind; strings as Unicode of the longest one's width.
pub fn write_any(content: &Content) -> Result<Vec<u8>, String> {
    let all = match content {
        Content::Numbers(array) => return write(array),
        Content::Strings(all) => all,
    };
    let count = all.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    if count != Some(all.strings.len() as u64) {
        return Err(format!("shape {:?} does not fit {} strings", all.shape, all.strings.len()));
    }
    let (descr, data) = npy_strings::write(&all.strings)?;
    let mut out = header(&descr, &all.shape, data.len())?;
    out.extend_from_slice(&data);
    Ok(out)
}

/// Writes an array. Types that NumPy does not have are written as NumPy extensions do: bfloat16 and floats of 8 and 4
/// bits as raw bytes (`|V2`, `|V1`), integers of 4 and 2 bits as `int8` and `uint8`, an element a byte. Vectors and
/// handles have no form and are an error.
pub fn write(array: &Array) -> Result<Vec<u8>, String> {
    let dtype = array.dtype;
    let count = array.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    if count.and_then(|n| dtype.storage_bytes(n)) != Some(array.data.len() as u64) {
        return Err(format!("shape {:?} of {dtype} does not fit {} bytes", array.shape, array.data.len()));
    }
    let descr = match (dtype.code, dtype.bits, dtype.lanes) {
        (TypeCode::Bool, _, 1) => "|b1".to_owned(),
        (TypeCode::Int, 2 | 4 | 8, 1) => "|i1".to_owned(),
        (TypeCode::UInt, 2 | 4 | 8, 1) => "|u1".to_owned(),
        (TypeCode::Int, bits @ (16 | 32 | 64), 1) => format!("<i{}", bits / 8),
        (TypeCode::UInt, bits @ (16 | 32 | 64), 1) => format!("<u{}", bits / 8),
        (TypeCode::Float, bits, 1) => format!("<f{}", bits / 8),
        (TypeCode::Complex, bits, 1) => format!("<c{}", bits / 8),
        (TypeCode::BFloat, 16, 1) => "|V2".to_owned(),
        (_, 4 | 8, 1) if dtype.is_float() => "|V1".to_owned(),
        _ => return Err(format!("NumPy has no form for {dtype}")),
    };
    let mut out = header(&descr, &array.shape, array.data.len())?;
    if dtype.is_packed() {
        unpack(array, &mut out);
    } else {
        out.extend_from_slice(&array.data);
    }
    Ok(out)
}

/// What stands before the data, of which there will be so many bytes.
fn header(descr: &str, shape: &[u64], bytes: usize) -> Result<Vec<u8>, String> {
    let axes = shape;
    let shape = match axes {
        [only] => format!("({only},)"),
        dims => format!("({})", dims.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The data starts at a multiple of 64 bytes; the header ends in a line feed.
    let before = MAGIC.len() + 4;
    let total = (before + header.len() + 1).next_multiple_of(64);
    header.extend(std::iter::repeat_n(' ', total - before - header.len() - 1));
    header.push('\n');
    let length = u16::try_from(header.len()).map_err(|_| format!("shape {axes:?} has too many axes"))?;
    let mut out = Vec::with_capacity(total + bytes);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    Ok(out)
}

/// Appends the elements of a packed array, a byte each, sign extended.
fn unpack(array: &Array, out: &mut Vec<u8>) {
    let dtype = array.dtype;
    let count = usize::try_from(array.shape.iter().product::<u64>()).unwrap_or(usize::MAX);
    let bits = (0..count).map_while(|i| dtype.packed_bits(&array.data, i));
    out.extend(bits.map(|b| if dtype.is_int() { wrap_int(dtype, b as i64) as u8 } else { b as u8 }));
}

impl Array {
    /// The array with elements of a type that `.npy` files do not name, from what they hold in its place: bits as
    /// unsigned integers of as many bits (`uint8` for `float8_e5m2`), and a byte an element for types under 8 bits.
    /// An array of the type, or that cannot be one, is given back as it is. The error is a sentence about a value that
    /// is out of range.
    pub fn into_type(self, to: DType) -> Result<Array, String> {
        let named = matches!(to.code, TypeCode::Int | TypeCode::UInt | TypeCode::Float | TypeCode::Bool);
        let from = self.dtype;
        if to.is_packed() && (from == DType::U8 || from == DType::I8 && to.is_int()) {
            let bytes = to.storage_bytes(self.data.len() as u64).and_then(|n| usize::try_from(n).ok());
            let mut data = vec![0; bytes.ok_or("the array is too large")?];
            for (i, &byte) in self.data.iter().enumerate() {
                // Files do not say whether a byte has a sign.
                let extended = to.is_int() && wrap_int(to, i64::from(byte)) as u8 == byte;
                if byte >> to.bits != 0 && !extended {
                    return Err(format!("element {i} is {byte}, which {to} does not hold"));
                }
                to.set_packed_bits(&mut data, i, u64::from(byte));
            }
            return Ok(Array { dtype: to, shape: self.shape, data });
        }
        let same_bits = from.is_uint() && from.bits == to.bits && !named;
        Ok(if same_bits { Array { dtype: to, ..self } } else { self })
    }
}

/// What an array has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Elements {
    Numbers(DType),
    /// As many characters a string.
    Unicode(usize),
    /// As many bytes a string.
    Bytes(usize),
    Objects,
}

/// Most strings of an array of strings without characters, which takes no bytes.
const MAX_EMPTY: usize = 1 << 24;

struct Header {
    /// As the file has it.
    descr: String,
    elements: Elements,
    big_endian: bool,
    fortran: bool,
    shape: Vec<u64>,
}

impl Header {
    /// Bytes of an element.
    fn bytes(&self) -> usize {
        match self.elements {
            Elements::Numbers(dtype) => usize::try_from(dtype.bytes()).unwrap_or(0),
            Elements::Unicode(width) => width.saturating_mul(4),
            Elements::Bytes(width) => width,
            Elements::Objects => 0,
        }
    }

    /// Bytes of what is swapped as one: an element, or each half of a complex one.
    fn width(&self) -> usize {
        match self.elements {
            Elements::Numbers(dtype) if dtype.code == TypeCode::Complex => self.bytes() / 2,
            _ => self.bytes(),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Header, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "the header of the array is not text")?;
        let bad = || format!("the header of the array is malformed: {}", text.trim_end());
        let mut parser = Parser { rest: text };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        parser.expect("{").ok_or_else(bad)?;
        while !parser.take("}") {
            let key = parser.string().ok_or_else(bad)?;
            parser.expect(":").ok_or_else(bad)?;
            let fresh = match key {
                "descr" => descr
                    .replace(
                        parser
                            .string()
                            .ok_or_else(|| "arrays of records are not supported; save a plain array".to_owned())?,
                    )
                    .is_none(),
                "fortran_order" => fortran.replace(parser.bool().ok_or_else(bad)?).is_none(),
                "shape" => shape.replace(parser.tuple().ok_or_else(bad)?).is_none(),
                _ => false,
            };
            if !fresh || (!parser.take(",") && !parser.rest.starts_with('}')) {
                return Err(bad());
            }
        }
        if !parser.rest.trim().is_empty() {
            return Err(bad());
        }
        let descr = descr.ok_or_else(bad)?;
        let (elements, big_endian) = element(descr).ok_or_else(|| {
            format!("elements of type '{descr}' are not supported; save them as numbers of 1 to 64 bits or as strings")
        })?;
        let descr = match elements {
            Elements::Numbers(dtype) => dtype.to_string(),
            _ => descr.to_owned(),
        };
        Ok(Header { descr, elements, big_endian, fortran: fortran.ok_or_else(bad)?, shape: shape.ok_or_else(bad)? })
    }
}

/// The type of a NumPy type string, and whether it is big endian.
fn element(descr: &str) -> Option<(Elements, bool)> {
    let mut chars = descr.chars();
    let order = chars.next()?;
    let kind = chars.next()?;
    match (kind, order) {
        ('O', _) => return Some((Elements::Objects, false)),
        ('U', '<' | '>') => return Some((Elements::Unicode(chars.as_str().parse().ok()?), order == '>')),
        ('S', _) => return Some((Elements::Bytes(chars.as_str().parse().ok()?), false)),
        _ => {}
    }
    let bytes: u8 = chars.as_str().parse().ok()?;
    let code = match (kind, bytes) {
        ('b', 1) => return (order == '|').then_some((Elements::Numbers(DType::BOOL), false)),
        ('i', 1 | 2 | 4 | 8) => TypeCode::Int,
        ('u', 1 | 2 | 4 | 8) => TypeCode::UInt,
        ('f', 2 | 4 | 8) => TypeCode::Float,
        ('c', 8 | 16) => TypeCode::Complex,
        ('V', 1 | 2) => {
            let bits = Elements::Numbers(DType::new(TypeCode::UInt, bytes * 8));
            return matches!(order, '|' | '<').then_some((bits, false));
        }
        _ => return None,
    };
    let big_endian = match order {
        '<' => false,
        '>' => true,
        '|' if bytes == 1 => false,
        _ => return None,
    };
    Some((Elements::Numbers(DType::new(code, bytes * 8)), big_endian))
}

/// Elements of a column-major array in row-major order. `data` has the size that the header asks for.
fn to_row_major(data: &[u8], header: &Header) -> Vec<u8> {
    let width = header.bytes().max(1);
    let shape: Vec<usize> = header.shape.iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect();
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = width;
    for &extent in &shape {
        strides.push(stride);
        stride = stride.saturating_mul(extent);
    }
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0usize; shape.len()];
    while out.len() < data.len() {
        let at: usize = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        out.extend_from_slice(&data[at..at + width]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

/// Reads the Python literals that a header is made of.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn take(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.trim_start_matches(' ').strip_prefix(token) else { return false };
        self.rest = rest.trim_start_matches(' ');
        true
    }

    fn expect(&mut self, token: &str) -> Option<()> {
        self.take(token).then_some(())
    }

    fn string(&mut self) -> Option<&'a str> {
        let quote = if self.take("'") {
            '\''
        } else if self.take("\"") {
            '"'
        } else {
            return None;
        };
        let (text, rest) = self.rest.split_once(quote)?;
        self.rest = rest;
        Some(text)
    }

    fn bool(&mut self) -> Option<bool> {
        if self.take("True") { Some(true) } else { self.take("False").then_some(false) }
    }

    fn tuple(&mut self) -> Option<Vec<u64>> {
        let mut items = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            let digits = self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            items.push(self.rest[..digits].parse().ok()?);
            self.rest = &self.rest[digits..];
            // Python 2 wrote long integers with a suffix.
            self.take("L");
            if !self.take(",") && !self.rest.starts_with(')') {
                return None;
            }
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend([1, 0]);
        out.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn round_trips() {
        for dtype in
            ["bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64"]
        {
            let dtype: DType = dtype.parse().unwrap();
            for shape in [vec![], vec![3], vec![2, 3], vec![0, 4]] {
                let count: u64 = shape.iter().product();
                let data = (0..dtype.storage_bytes(count).unwrap()).map(|i| (i % 2) as u8).collect();
                let array = Array { dtype, shape, data };
                let bytes = write(&array).unwrap();
                assert_eq!((bytes.len() - array.data.len()) % 64, 0);
                assert_eq!(read(&bytes).unwrap(), array);
            }
        }
    }

    #[test]
    fn strings() {
        let all = Strings { shape: vec![2, 2], strings: ["a", "", "ü", "xyz"].map(String::from).to_vec() };
        let bytes = write_any(&Content::Strings(all.clone())).unwrap();
        assert_eq!(read_any(&bytes).unwrap(), Content::Strings(all));
        let columns = npy("{'descr': '|S1', 'fortran_order': True, 'shape': (2, 2)}", b"abcd");
        let Content::Strings(read) = read_any(&columns).unwrap() else { panic!() };
        assert_eq!(read.strings, ["a", "c", "b", "d"]);
    }

    #[test]
    fn other_orders_are_converted() {
        let bytes =
            npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", &[0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6]);
        let array = read(&bytes).unwrap();
        assert_eq!(array.data, [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]);
        assert_eq!((array.dtype, array.shape), (DType::new(TypeCode::Int, 16), vec![2, 3]));
    }

    #[test]
    fn types_that_numpy_lacks() {
        let int4 = Array { dtype: DType::I4, shape: vec![3], data: vec![0xf1, 0x07] };
        let bytes = read(&write(&int4).unwrap()).unwrap();
        assert_eq!(bytes, Array { dtype: DType::I8, shape: vec![3], data: vec![1, 255, 7] });
        assert_eq!(bytes.clone().into_type(DType::I4), Ok(int4));
        assert!(bytes.into_type(DType::I2).unwrap_err().contains("element 2 is 7"));
        for (name, data) in [
            ("bfloat16", vec![0x80, 0x3f, 0, 0, 1, 0]),
            ("float8_e8m0fnu", vec![1, 2, 3]),
            ("float4_e2m1fn", vec![0x5f, 0x02]),
            ("uint2", vec![0x1b]),
            ("int2", vec![0x39]),
        ] {
            let array = Array { dtype: name.parse().unwrap(), shape: vec![3], data };
            let read = read(&write(&array).unwrap()).unwrap();
            assert_ne!(read.dtype, array.dtype);
            assert_eq!(read.into_type(array.dtype).unwrap(), array);
        }
        let f32s = Array { dtype: DType::F32, shape: vec![1], data: vec![0; 4] };
        assert_eq!(f32s.clone().into_type(DType::BF16), Ok(f32s));
        assert!(write(&Array { dtype: DType::F32.with_lanes(2), shape: vec![1], data: vec![0; 8] }).is_err());
    }

    #[test]
    fn refuses_malformed_arrays() {
        let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n";
        assert!(read(&npy(good, &[0; 4])).is_ok());
        for (bytes, words) in [
            (vec![], "does not start"),
            (b"PK\x03\x04".to_vec(), "does not start"),
            (MAGIC.to_vec(), "cut short"),
            (npy(good, &[0; 3]), "does not fit the 3 bytes"),
            (npy(good, &[0; 5]), "does not fit the 5 bytes"),
            (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), ", &[0; 4]), "malformed"),
            (npy("{'descr': '<f4', 'fortran_order': False}", &[0; 4]), "malformed"),
            (npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", &[0; 4]), "malformed"),
            (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", &[0; 4]), "malformed"),
            (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", &[0; 4]), "malformed"),
            (npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", &[0; 4]), "malformed"),
            (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 1", &[0; 4]), "malformed"),
            (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", &[]), "does not fit"),
            (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", &[0; 8]), "are not strings"),
            (npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", &[b'a', 0, 0, 0]), "an array of strings"),
            (npy("{'descr': '<U2', 'fortran_order': False, 'shape': (1,)}", &[b'a', 0, 0, 0]), "of <U2 does not fit"),
            (npy("{'descr': '<U0', 'fortran_order': False, 'shape': (4294967296,)}", &[]), "too many"),
            (npy("{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", &[0; 3]), "'<f3' are not"),
            (npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", &[0; 4]), "records"),
            (npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", &[2]), "neither 0 nor 1"),
        ] {
            let error = read(&bytes).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
