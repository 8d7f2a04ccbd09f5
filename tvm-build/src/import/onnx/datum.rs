//! Values beside a model: the inputs and outputs of a test case, a serialized value a file.

use std::path::Path;

use bytes::Bytes;
use prost::Message as _;
use tvm_ir::diag::Diags;
use tvm_ir::dtype::DType;
use tvm_ir::span::SourceMap;

use super::data_type::DataType;
use super::external::Folder;
use super::graph::{Dim, Graph, Type, ValueInfo};
use super::limits::Limits;
use super::proto::{OptionalProto, SequenceProto, TensorProto};
use super::tensor::{Tensor, TensorCx};
use super::{read, value, wire};
use crate::import::file;

/// A value in main memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// A tensor of numbers or truth values: row-major, little endian, types under 8 bits packed, low bits first.
    Tensor {
        /// Element type.
        dtype: DType,
        /// Extents, outermost first; empty for a scalar.
        shape: Vec<u64>,
        /// The elements.
        data: Bytes,
    },
    /// A tensor of strings.
    Strings {
        /// Extents, outermost first; empty for a scalar.
        shape: Vec<u64>,
        /// The elements.
        strings: Vec<String>,
    },
    /// A tensor whose element type the compiler does not have; the name of the type.
    Other(&'static str),
    /// A sequence.
    Sequence(Vec<Datum>),
    /// A value that may be absent.
    Optional(Option<Box<Datum>>),
}

/// What kind of value an input or output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatumKind {
    /// A tensor.
    Tensor,
    /// A sequence of values of one kind.
    Sequence(Box<DatumKind>),
    /// A value that may be absent.
    Optional(Box<DatumKind>),
    /// A kind that is not read; its name.
    Other(&'static str),
}

/// An input or output of a model.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its name in the file.
    pub name: String,
    /// Its kind.
    pub kind: DatumKind,
    /// Whether an initializer gives it a value: it is no parameter then.
    pub constant: bool,
}

/// The inputs and outputs of a model.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
}

/// The inputs and outputs of the model in a file, as the file declares them. Errors as [`super::load`]'s reading.
pub fn ports(path: &Path, limits: &Limits, sources: &mut SourceMap) -> Result<Ports, Diags> {
    let graph = read::read_file(path, limits, sources)?.graph;
    let port = |info: &ValueInfo| Port {
        name: info.name.clone(),
        kind: info.ty.as_ref().map_or(DatumKind::Tensor, kind),
        constant: graph.initializers.iter().any(|(name, _)| *name == info.name),
    };
    let ports = |infos: &[ValueInfo]| infos.iter().map(port).collect();
    Ok(Ports { inputs: ports(&graph.inputs), outputs: ports(&graph.outputs) })
}

fn kind(ty: &Type) -> DatumKind {
    match ty {
        Type::Tensor { .. } => DatumKind::Tensor,
        Type::Sequence(inner) => DatumKind::Sequence(Box::new(kind(inner))),
        Type::Optional(inner) => DatumKind::Optional(Box::new(kind(inner))),
        Type::Other(name) => DatumKind::Other(name),
    }
}

/// Reads a serialized `TensorProto`, `SequenceProto` or `OptionalProto` from a file. The error is a sentence.
pub fn read_datum(path: &Path, kind: &DatumKind, limits: &Limits) -> Result<Datum, String> {
    let named = |e: String| format!("{} {e}", path.display());
    let bytes = file::read(path, limits.file_bytes).map_err(named)?;
    decode_datum(bytes, kind, limits).map_err(|e| named(format!("is not a value: {e}")))
}

/// As [`read_datum`], of bytes in memory.
pub fn decode_datum(bytes: Bytes, kind: &DatumKind, limits: &Limits) -> Result<Datum, String> {
    let text = |e: prost::DecodeError| e.to_string();
    match kind {
        DatumKind::Tensor => {
            wire::check(&bytes, wire::Message::Tensor, limits)?;
            tensor(TensorProto::decode(bytes).map_err(text)?, limits)
        }
        DatumKind::Sequence(_) => {
            wire::check(&bytes, wire::Message::Sequence, limits)?;
            sequence(SequenceProto::decode(bytes).map_err(text)?, limits)
        }
        DatumKind::Optional(_) => {
            wire::check(&bytes, wire::Message::Optional, limits)?;
            optional(OptionalProto::decode(bytes).map_err(text)?, limits)
        }
        DatumKind::Other(name) => Err(format!("values of the kind {name} are not read")),
    }
}

fn tensor(proto: TensorProto, limits: &Limits) -> Result<Datum, String> {
    let tensor = TensorCx::new(limits, Folder::default()).read(proto)?;
    if tensor.dtype == DataType::String {
        let strings = tensor.strings.iter().map(|s| String::from_utf8(s.to_vec()));
        let strings = strings.collect::<Result<_, _>>().map_err(|_| "a string is not UTF-8".to_owned())?;
        return Ok(Datum::Strings { shape: tensor.shape, strings });
    }
    Ok(match value::dtype(tensor.dtype) {
        Ok(dtype) => Datum::Tensor { dtype, shape: tensor.shape, data: tensor.data },
        Err(_) => Datum::Other(DataType::name(tensor.dtype)),
    })
}

fn sequence(proto: SequenceProto, limits: &Limits) -> Result<Datum, String> {
    let tensors = proto.tensor_values.into_iter().map(|t| tensor(t, limits));
    let sequences = proto.sequence_values.into_iter().map(|s| sequence(s, limits));
    let optionals = proto.optional_values.into_iter().map(|o| optional(o, limits));
    Ok(Datum::Sequence(tensors.chain(sequences).chain(optionals).collect::<Result<_, _>>()?))
}

fn optional(proto: OptionalProto, limits: &Limits) -> Result<Datum, String> {
    let inner = match (proto.tensor_value, proto.sequence_value, proto.optional_value) {
        (Some(t), _, _) => Some(tensor(t, limits)?),
        (_, Some(s), _) => Some(sequence(s, limits)?),
        (_, _, Some(o)) => Some(optional(*o, limits)?),
        _ => None,
    };
    Ok(Datum::Optional(inner.map(Box::new)))
}

/// A value as [`decode_datum`] reads it. Errors: element types that ONNX does not have, and sequences of values of different
/// kinds.
pub fn encode_datum(datum: &Datum) -> Result<Vec<u8>, String> {
    Ok(match datum {
        Datum::Sequence(items) => sequence_proto(items)?.encode_to_vec(),
        Datum::Optional(item) => optional_proto(item.as_deref())?.encode_to_vec(),
        tensor => tensor_proto(tensor)?.encode_to_vec(),
    })
}

fn tensor_proto(datum: &Datum) -> Result<TensorProto, String> {
    let dims = |shape: &[u64]| -> Result<Vec<i64>, String> {
        shape.iter().map(|d| i64::try_from(*d).map_err(|_| "an extent is too large".to_owned())).collect()
    };
    Ok(match datum {
        Datum::Tensor { dtype, shape, data } => {
            let code =
                DataType::from_name(&dtype.to_string()).ok_or_else(|| format!("ONNX has no elements {dtype}"))?;
            let raw_data = Some(data.clone());
            TensorProto { dims: dims(shape)?, data_type: code as i32, raw_data, ..TensorProto::default() }
        }
        Datum::Strings { shape, strings } => TensorProto {
            dims: dims(shape)?,
            data_type: DataType::String as i32,
            string_data: strings.iter().map(|s| Bytes::from(s.clone())).collect(),
            ..TensorProto::default()
        },
        Datum::Other(name) => return Err(format!("tensors of {name} cannot be written")),
        Datum::Sequence(_) | Datum::Optional(_) => return Err("a list where a tensor is expected".to_owned()),
    })
}

fn sequence_proto(items: &[Datum]) -> Result<SequenceProto, String> {
    let mut out = SequenceProto::default();
    for item in items {
        match item {
            Datum::Sequence(items) => out.sequence_values.push(sequence_proto(items)?),
            Datum::Optional(item) => out.optional_values.push(optional_proto(item.as_deref())?),
            tensor => out.tensor_values.push(tensor_proto(tensor)?),
        }
    }
    let kinds = [out.tensor_values.len(), out.sequence_values.len(), out.optional_values.len()];
    if kinds.iter().filter(|n| **n != 0).count() > 1 {
        return Err("a sequence has items of different kinds".to_owned());
    }
    // The kinds of the format; 1 are tensors.
    out.elem_type = kinds.iter().position(|n| *n != 0).map_or(1, |k| [1, 3, 5][k]);
    Ok(out)
}

fn optional_proto(item: Option<&Datum>) -> Result<OptionalProto, String> {
    let mut out = OptionalProto::default();
    match item {
        None => {}
        Some(Datum::Sequence(items)) => (out.elem_type, out.sequence_value) = (3, Some(sequence_proto(items)?)),
        Some(Datum::Optional(item)) => {
            (out.elem_type, out.optional_value) = (5, Some(Box::new(optional_proto(item.as_deref())?)));
        }
        Some(tensor) => (out.elem_type, out.tensor_value) = (1, Some(tensor_proto(tensor)?)),
    }
    Ok(out)
}

/// Makes an input of a graph a constant. The error is a sentence.
pub(super) fn bind(graph: &mut Graph, name: &str, value: Datum) -> Result<(), String> {
    let input = graph.inputs.iter().find(|i| i.name == name).ok_or("there is no such input")?;
    let Datum::Tensor { dtype, shape, data } = value else {
        return Err("it is not a tensor of numbers".to_owned());
    };
    let given = DataType::from_name(&dtype.to_string()).ok_or_else(|| format!("{dtype} is not an element type"))?;
    if let Some(Type::Tensor { dtype: wanted, shape: dims }) = &input.ty {
        let fits = |dims: &Vec<Dim>| {
            let same = |(d, n): (&Dim, &u64)| !matches!(d, Dim::Fixed(d) if d != n);
            dims.len() == shape.len() && dims.iter().zip(&shape).all(same)
        };
        if *wanted != given {
            return Err(format!("its elements are {}, and the input has {}", given.name(), wanted.name()));
        }
        if !dims.as_ref().is_none_or(fits) {
            return Err(format!("its shape {shape:?} is not one of the input's"));
        }
    }
    graph.initializers.retain(|(other, _)| other != name);
    graph.initializers.push((name.to_owned(), Tensor { dtype: given, shape, data, strings: Vec::new() }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f32]) -> TensorProto {
        let dims = vec![i64::try_from(values.len()).unwrap()];
        TensorProto { dims, data_type: 1, float_data: values.to_vec().into(), ..TensorProto::default() }
    }

    fn decode(bytes: Vec<u8>, kind: &DatumKind) -> Result<Datum, String> {
        decode_datum(bytes.into(), kind, &Limits::default())
    }

    #[test]
    fn kinds() {
        let wanted = Datum::Tensor {
            dtype: DType::F32,
            shape: vec![2],
            data: [1.0f32, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        let tensor = floats(&[1.0, 2.0]);
        assert_eq!(decode(tensor.encode_to_vec(), &DatumKind::Tensor), Ok(wanted.clone()));
        let sequence =
            SequenceProto { tensor_values: vec![tensor.clone(), tensor.clone()], ..SequenceProto::default() };
        let kind = DatumKind::Sequence(Box::new(DatumKind::Tensor));
        let two = Datum::Sequence(vec![wanted.clone(), wanted.clone()]);
        assert_eq!(decode(sequence.encode_to_vec(), &kind), Ok(two));
        let kind = DatumKind::Optional(Box::new(DatumKind::Tensor));
        let some = OptionalProto { tensor_value: Some(tensor), ..OptionalProto::default() };
        assert_eq!(decode(some.encode_to_vec(), &kind), Ok(Datum::Optional(Some(Box::new(wanted)))));
        assert_eq!(decode(Vec::new(), &kind), Ok(Datum::Optional(None)));
    }

    #[test]
    fn what_is_written_is_read() {
        let numbers = Datum::Tensor { dtype: DType::I4, shape: vec![3], data: vec![0x21, 0x03].into() };
        let strings = Datum::Strings { shape: vec![2], strings: vec!["ä".into(), String::new()] };
        let (tensor, list) = (DatumKind::Tensor, |k: DatumKind| DatumKind::Sequence(Box::new(k)));
        let optional = |k: DatumKind| DatumKind::Optional(Box::new(k));
        for (datum, kind) in [
            (numbers.clone(), tensor.clone()),
            (strings.clone(), tensor.clone()),
            (Datum::Sequence(vec![numbers.clone(), strings.clone()]), list(tensor.clone())),
            (Datum::Sequence(vec![Datum::Sequence(vec![strings.clone()])]), list(list(tensor.clone()))),
            (Datum::Optional(Some(Box::new(Datum::Sequence(vec![numbers.clone()])))), optional(list(tensor.clone()))),
            (Datum::Optional(Some(Box::new(numbers.clone()))), optional(tensor.clone())),
            (Datum::Optional(None), optional(tensor)),
        ] {
            assert_eq!(decode(encode_datum(&datum).unwrap(), &kind), Ok(datum));
        }
        assert!(encode_datum(&Datum::Sequence(vec![numbers, Datum::Sequence(vec![])])).is_err());
    }

    #[test]
    fn bound_inputs_are_constants() {
        let ty = |dims: Vec<Dim>| Some(Type::Tensor { dtype: DataType::Float, shape: Some(dims) });
        let mut graph = Graph {
            inputs: vec![ValueInfo { name: "x".into(), ty: ty(vec![Dim::Named("n".into())]) }],
            outputs: Vec::new(),
            initializers: Vec::new(),
            nodes: Vec::new(),
            value_info: Default::default(),
            captures: Default::default(),
        };
        let value = |n: u64| Datum::Tensor { dtype: DType::F32, shape: vec![n], data: vec![0; 4 * n as usize].into() };
        bind(&mut graph, "x", value(2)).unwrap();
        bind(&mut graph, "x", value(3)).unwrap();
        assert_eq!(graph.initializers.len(), 1);
        assert_eq!(graph.initializers[0].1.shape, [3]);
        assert!(bind(&mut graph, "y", value(1)).unwrap_err().contains("no such input"));
        let int = Datum::Tensor { dtype: DType::I32, shape: vec![1], data: vec![0; 4].into() };
        assert!(bind(&mut graph, "x", int).unwrap_err().contains("int32"));
        graph.inputs[0].ty = ty(vec![Dim::Fixed(2)]);
        assert!(bind(&mut graph, "x", value(3)).unwrap_err().contains("[3]"));
    }

    #[test]
    fn damaged_values_are_errors() {
        assert!(decode(vec![0xFF; 9], &DatumKind::Tensor).is_err());
        let short = TensorProto { dims: vec![3], ..floats(&[1.0]) };
        assert!(decode(short.encode_to_vec(), &DatumKind::Tensor).unwrap_err().contains("3"));
        assert!(decode(Vec::new(), &DatumKind::Other("map")).unwrap_err().contains("map"));
    }
}
