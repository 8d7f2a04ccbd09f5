//! Arrays of `.npz` files as arguments and results.

use tvm_build::npy::Array;
use tvm_build::vm::{Entry, EntryKind, run_dtype};
use tvm_ir::diag::Diag;
use tvm_ir::span::Span;
use tvm_runtime::host::HostTensor;

fn error(message: String) -> Diag {
    Diag::error(Span::NONE, message)
}

/// The arguments of a function among named arrays: by parameter name, or as `input_0`, `input_1`, … by position.
/// What is missing, superfluous or of the wrong type is an error.
pub fn inputs(entry: &Entry, mut arrays: Vec<(String, Array)>) -> Result<Vec<HostTensor>, Diag> {
    let mut inputs = Vec::new();
    for (i, param) in entry.params.iter().enumerate() {
        let positional = format!("input_{i}");
        let at = arrays
            .iter()
            .position(|(n, _)| *n == param.name)
            .or_else(|| arrays.iter().position(|(n, _)| *n == positional));
        let Some(at) = at else {
            let given: Vec<&str> = arrays.iter().map(|(n, _)| n.as_str()).collect();
            let message = format!("there is no array for the parameter {} of {}", param.name, entry.name);
            return Err(error(message).help(format!(
                "name it {} or {positional}; left are: {}",
                param.name,
                given.join(", ")
            )));
        };
        let (name, array) = arrays.swap_remove(at);
        inputs.push(input(&name, &array, &param.kind)?);
    }
    match arrays.first() {
        Some((name, _)) => Err(error(format!("{} has no parameter for the array {name}", entry.name))),
        None => Ok(inputs),
    }
}

fn input(name: &str, array: &Array, kind: &EntryKind) -> Result<HostTensor, Diag> {
    let dtype = run_dtype(array.dtype).ok_or_else(|| error(format!("{name}: {} cannot be passed", array.dtype)))?;
    if let EntryKind::Tensor(Some(wanted), _) = kind
        && *wanted != dtype
    {
        return Err(error(format!("{name} has elements of type {dtype}, the function takes {wanted}")));
    }
    let shape = array.shape.iter().map(|d| i64::try_from(*d)).collect::<Result<Vec<_>, _>>();
    shape
        .ok()
        .and_then(|shape| HostTensor::new(dtype, &shape, &array.data))
        .ok_or_else(|| error(format!("{name}: {} bytes do not fit the shape {:?}", array.data.len(), array.shape)))
}

/// Results as `output_0`, `output_1`, …
pub fn arrays(outputs: &[HostTensor]) -> Result<Vec<(String, Array)>, Diag> {
    let array = |(i, t): (usize, &HostTensor)| {
        let dtype = t.dtype().to_string().parse().map_err(|_| error(format!("{} cannot be written", t.dtype())))?;
        let shape = t.shape().iter().map(|d| d.unsigned_abs()).collect();
        Ok((format!("output_{i}"), Array { dtype, shape, data: t.bytes().to_vec() }))
    };
    outputs.iter().enumerate().map(array).collect()
}

/// Type, shape and the first elements.
pub fn preview(array: &Array) -> String {
    let width = usize::try_from(array.dtype.bytes()).unwrap_or(1).max(1);
    let elements: Vec<String> = array
        .data
        .chunks_exact(width)
        .take(10)
        .map(|c| {
            let float = array.dtype.is_float();
            match *c {
                [a, b, c, d] if float => f32::from_le_bytes([a, b, c, d]).to_string(),
                [a, b, c, d, e, f, g, h] if float => f64::from_le_bytes([a, b, c, d, e, f, g, h]).to_string(),
                [a] if array.dtype.is_int() => i8::from_le_bytes([a]).to_string(),
                [a] => a.to_string(),
                [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).to_string(),
                [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]).to_string(),
                _ => format!("{c:02x?}"),
            }
        })
        .collect();
    let more = if array.data.len() / width > elements.len() { ", …" } else { "" };
    format!("{} {:?} [{}{more}]", array.dtype, array.shape, elements.join(", "))
}
