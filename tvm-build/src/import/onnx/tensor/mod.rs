//! Tensors: `TensorProto` to a shape and compact little-endian bytes.

use bytes::Bytes;

use super::data_type::DataType;
use super::external::Folder;
use super::limits::{Limits, check_rank};
use super::proto::TensorProto;

/// A dense tensor.
///
/// `data` holds the elements in row-major order, little endian and without padding; types under 8 bits are
/// packed, low bits first; booleans are bytes of 0 or 1. Its length is exactly what `shape` and `dtype` ask
/// for. Strings are in `strings` and `data` is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    /// The element type.
    pub(crate) dtype: DataType,
    /// The shape; empty for a scalar.
    pub(crate) shape: Vec<u64>,
    /// The elements. A view of the model file where the file allows it.
    pub(crate) data: Bytes,
    /// The elements, if they are strings.
    pub(crate) strings: Vec<Bytes>,
}

/// What reading tensors needs: the bounds, the folder, and what is left of the budget for dense copies.
#[derive(Debug)]
pub(super) struct TensorCx<'a> {
    pub(super) limits: &'a Limits,
    pub(super) folder: Folder,
    pub(super) dense_bytes_left: u64,
}

impl<'a> TensorCx<'a> {
    pub(super) fn new(limits: &'a Limits, folder: Folder) -> Self {
        TensorCx { limits, folder, dense_bytes_left: limits.dense_bytes }
    }

    /// The tensor that `proto` describes. The error is a sentence about the tensor that does not name it.
    pub(super) fn read(&mut self, proto: TensorProto) -> Result<Tensor, String> {
        let dtype = DataType::from_code(proto.data_type)
            .ok_or_else(|| format!("element type {} is unknown", proto.data_type))?;
        let shape = shape(&proto.dims)?;
        let elements = elements(&shape, self.limits)?;
        let bytes = dtype.bytes(elements).ok_or_else(|| format!("shape {shape:?} of {} is too large", dtype.name()))?;
        if proto.segment.is_some() {
            return Err(
                "it is stored in segments, which is not supported; save the model with whole tensors".to_owned()
            );
        }
        let source = source(&proto)?;
        if dtype == DataType::String {
            if !matches!(source, Source::Typed("string_data")) && elements != 0 {
                return Err("strings must be in 'string_data'".to_owned());
            }
            expect_count("strings", proto.string_data.len(), elements)?;
            return Ok(Tensor { dtype, shape, data: Bytes::new(), strings: proto.string_data });
        }
        let data = match source {
            Source::Raw => proto.raw_data.unwrap_or_default(),
            Source::External => self.folder.read(&proto.external_data, self.limits)?,
            Source::Typed(field) => typed(proto, dtype, field, elements)?,
            Source::Nothing => Bytes::new(),
        };
        if data.len() as u64 != bytes {
            return Err(format!(
                "shape {shape:?} of {} needs {bytes} bytes, and {} are given",
                dtype.name(),
                data.len()
            ));
        }
        let data = if dtype == DataType::Bool { normalise_bools(data) } else { data };
        Ok(Tensor { dtype, shape, data, strings: Vec::new() })
    }
}

/// Where the elements of a tensor are.
enum Source {
    Raw,
    External,
    Typed(&'static str),
    Nothing,
}

fn source(proto: &TensorProto) -> Result<Source, String> {
    let external = match proto.data_location {
        0 if proto.external_data.is_empty() => false,
        0 => return Err("it lists external data but its data location is not external".to_owned()),
        1 => true,
        other => return Err(format!("data location {other} is unknown")),
    };
    let mut found: Vec<(&'static str, Source)> = Vec::new();
    if external {
        found.push(("external_data", Source::External));
    }
    if proto.raw_data.as_ref().is_some_and(|raw| !raw.is_empty()) {
        found.push(("raw_data", Source::Raw));
    }
    for (field, present) in [
        ("float_data", !proto.float_data.is_empty()),
        ("int32_data", !proto.int32_data.is_empty()),
        ("string_data", !proto.string_data.is_empty()),
        ("int64_data", !proto.int64_data.is_empty()),
        ("double_data", !proto.double_data.is_empty()),
        ("uint64_data", !proto.uint64_data.is_empty()),
    ] {
        if present {
            found.push((field, Source::Typed(field)));
        }
    }
    match (found.pop(), found.pop()) {
        (None, _) => Ok(Source::Nothing),
        (Some((_, only)), None) => Ok(only),
        (Some((a, _)), Some((b, _))) => Err(format!("its elements are given twice, in '{b}' and in '{a}'")),
    }
}

/// The dims as extents; a negative one is an error.
pub(super) fn shape(dims: &[i64]) -> Result<Vec<u64>, String> {
    check_rank(dims.len())?;
    dims.iter().map(|&d| u64::try_from(d).map_err(|_| format!("dimension {d} of shape {dims:?} is negative"))).collect()
}

/// The number of elements of `shape`; more than the limit is an error.
pub(super) fn elements(shape: &[u64], limits: &Limits) -> Result<u64, String> {
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(1u64, |product, &d| product.checked_mul(d))
        .filter(|&n| n <= limits.tensor_elements)
        .ok_or_else(|| {
            format!(
                "shape {shape:?} has more elements than the limit of {} (Limits::tensor_elements)",
                limits.tensor_elements
            )
        })
}

fn expect_count(what: &str, found: usize, wanted: u64) -> Result<(), String> {
    if found as u64 == wanted { Ok(()) } else { Err(format!("its shape needs {wanted} {what}, and {found} are given")) }
}

/// The bytes of a tensor whose elements are in the typed list `field`.
fn typed(proto: TensorProto, dtype: DataType, field: &'static str, elements: u64) -> Result<Bytes, String> {
    use DataType::*;
    let wanted = match dtype {
        Float | Complex64 => "float_data",
        Double | Complex128 => "double_data",
        Int64 => "int64_data",
        Uint32 | Uint64 => "uint64_data",
        String => "string_data",
        Uint8 | Int8 | Uint16 | Int16 | Int32 | Bool | Float16 | Bfloat16 | Float8E4M3Fn | Float8E4M3Fnuz
        | Float8E5M2 | Float8E5M2Fnuz | Uint4 | Int4 | Float4E2M1 | Float8E8M0 | Uint2 | Int2 => "int32_data",
    };
    if field != wanted {
        return Err(format!("elements of {} belong in '{wanted}' or 'raw_data', not in '{field}'", dtype.name()));
    }
    let numbers = match dtype {
        Complex64 | Complex128 => elements.saturating_mul(2),
        // Packed types: each number is a byte of several elements.
        _ if dtype.bits() < 8 => dtype.bytes(elements).unwrap_or(u64::MAX),
        _ => elements,
    };
    let size = dtype.bytes(elements).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    // Only as much as there are numbers in the file.
    let most = proto.int32_data.len().max(proto.int64_data.len()).max(proto.uint64_data.len()).saturating_mul(8);
    let mut out = Vec::with_capacity(size.min(most));
    match wanted {
        "float_data" => {
            let bytes = proto.float_data.into_bytes().ok_or_else(|| cut(wanted))?;
            expect_count("numbers in 'float_data'", bytes.len() / 4, numbers)?;
            return Ok(bytes);
        }
        "double_data" => {
            let bytes = proto.double_data.into_bytes().ok_or_else(|| cut(wanted))?;
            expect_count("numbers in 'double_data'", bytes.len() / 8, numbers)?;
            return Ok(bytes);
        }
        "int64_data" => {
            expect_count("numbers in 'int64_data'", proto.int64_data.len(), numbers)?;
            out.extend(proto.int64_data.iter().flat_map(|v| v.to_le_bytes()));
        }
        "uint64_data" => {
            expect_count("numbers in 'uint64_data'", proto.uint64_data.len(), numbers)?;
            for &value in &proto.uint64_data {
                if dtype == Uint64 {
                    out.extend(value.to_le_bytes());
                } else {
                    let value = u32::try_from(value).map_err(|_| format!("{value} does not fit into uint32"))?;
                    out.extend(value.to_le_bytes());
                }
            }
        }
        _ => {
            expect_count("numbers in 'int32_data'", proto.int32_data.len(), numbers)?;
            let width = usize::try_from(dtype.bits().max(8) / 8).unwrap_or(4);
            for &value in &proto.int32_data {
                out.extend(narrow(value, width, dtype)?);
            }
        }
    }
    Ok(Bytes::from(out))
}

fn cut(field: &str) -> String {
    format!("'{field}' ends in the middle of a number")
}

/// The low `width` bytes of `value`, which must fit into them as a signed or as an unsigned number: writers
/// differ on which of the two they store.
fn narrow(value: i32, width: usize, dtype: DataType) -> Result<impl Iterator<Item = u8>, String> {
    let bits = 8 * width as u32;
    let fits = bits >= 32 || (i64::from(value) >= -(1i64 << (bits - 1)) && i64::from(value) < 1i64 << bits);
    if !fits {
        return Err(format!("{value} in 'int32_data' does not fit into {}", dtype.name()));
    }
    Ok(value.to_le_bytes().into_iter().take(width))
}

/// Booleans as bytes of 0 and 1; copies only if some byte is another.
fn normalise_bools(data: Bytes) -> Bytes {
    if data.iter().all(|&b| b <= 1) { data } else { data.iter().map(|&b| u8::from(b != 0)).collect() }
}

#[cfg(test)]
mod tests;
