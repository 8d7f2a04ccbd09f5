//! Arrays of `.npz` files as arguments and results.

use tvm_build::npy::Array;
use tvm_build::vm::{Entry, EntryKind, run_dtype};
use tvm_ir::diag::Diag;
use tvm_ir::dtype::{DType, TypeCode};
use tvm_ir::interp::TensorBuf;
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
        inputs.push(input(&name, array, &param.kind)?);
    }
    match arrays.first() {
        Some((name, _)) => Err(error(format!("{} has no parameter for the array {name}", entry.name))),
        None => Ok(inputs),
    }
}

fn input(name: &str, array: Array, kind: &EntryKind) -> Result<HostTensor, Diag> {
    let array = match kind {
        EntryKind::Tensor(Some(wanted), _) => match wanted.to_string().parse() {
            Ok(wanted) => array.into_type(wanted).map_err(|e| error(format!("{name}: {e}")))?,
            Err(_) => array,
        },
        _ => array,
    };
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
    let (dtype, shape) = (array.dtype, array.shape.iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)));
    let Ok(values) = TensorBuf::from_bytes(dtype, &shape.collect::<Vec<_>>(), array.data.clone()) else {
        return format!("{dtype} {:?} of {} bytes", array.shape, array.data.len());
    };
    let shown = (0..values.len().min(10)).map(|i| match dtype.code {
        _ if dtype.is_float() && dtype != DType::F64 => (values.get_f64(i) as f32).to_string(),
        _ if dtype.is_float() => values.get_f64(i).to_string(),
        TypeCode::UInt => (values.get_i64(i) as u64).to_string(),
        TypeCode::Complex => "…".to_owned(),
        _ => values.get_i64(i).to_string(),
    });
    let shown: Vec<String> = shown.collect();
    let more = if values.len() > shown.len() { ", …" } else { "" };
    format!("{dtype} {:?} [{}{more}]", array.shape, shown.join(", "))
}
