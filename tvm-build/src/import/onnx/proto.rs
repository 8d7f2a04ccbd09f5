//! The ONNX messages this reader uses, as `prost` messages declared from the format's field numbers.
//!
//! Fields that say nothing about the computation (documentation strings, metadata, device placement,
//! training) are not declared: the decoder steps over them. `raw_data` and other byte fields are
//! [`Bytes`]: decoded from a `Bytes` that owns a mapped file, they are views of that file, so weights are
//! never copied.

use bytes::Bytes;
use prost::{Message, Oneof};

pub(super) use super::tensor_proto::TensorProto;

/// A model: one graph, the operator sets it uses, and the functions it defines.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelProto {
    #[prost(int64, tag = "1")]
    pub(super) ir_version: i64,
    #[prost(string, tag = "2")]
    pub(super) producer_name: String,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<OperatorSetIdProto>,
    #[prost(message, repeated, tag = "25")]
    pub(super) functions: Vec<FunctionProto>,
}

/// The version of the operator set of one domain.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OperatorSetIdProto {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(int64, tag = "2")]
    pub(super) version: i64,
}

/// A function: an operator defined by the model itself.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FunctionProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, repeated, tag = "4")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub(super) output: Vec<String>,
    #[prost(string, repeated, tag = "6")]
    pub(super) attribute: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    pub(super) node: Vec<NodeProto>,
    #[prost(message, repeated, tag = "9")]
    pub(super) opset_import: Vec<OperatorSetIdProto>,
    #[prost(string, tag = "10")]
    pub(super) domain: String,
    #[prost(message, repeated, tag = "11")]
    pub(super) attribute_proto: Vec<AttributeProto>,
    #[prost(message, repeated, tag = "12")]
    pub(super) value_info: Vec<ValueInfoProto>,
    #[prost(string, tag = "13")]
    pub(super) overload: String,
}

/// A graph: nodes in topological order over named values.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub(super) output: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "13")]
    pub(super) value_info: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "15")]
    pub(super) sparse_initializer: Vec<SparseTensorProto>,
}

/// One application of an operator.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) attribute: Vec<AttributeProto>,
    #[prost(string, tag = "7")]
    pub(super) domain: String,
    #[prost(string, tag = "8")]
    pub(super) overload: String,
}

/// A named attribute; `kind` says which of the value fields holds it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributeProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(float, optional, tag = "2")]
    pub(super) f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub(super) i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(super) s: Option<Bytes>,
    #[prost(message, optional, boxed, tag = "5")]
    pub(super) t: Option<Box<TensorProto>>,
    #[prost(message, optional, boxed, tag = "6")]
    pub(super) g: Option<Box<GraphProto>>,
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub(super) floats: Vec<f32>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(super) ints: Vec<i64>,
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub(super) strings: Vec<Bytes>,
    #[prost(message, repeated, tag = "10")]
    pub(super) tensors: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub(super) graphs: Vec<GraphProto>,
    #[prost(message, optional, boxed, tag = "14")]
    pub(super) tp: Option<Box<TypeProto>>,
    #[prost(message, repeated, tag = "15")]
    pub(super) type_protos: Vec<TypeProto>,
    #[prost(int32, tag = "20")]
    pub(super) kind: i32,
    #[prost(string, tag = "21")]
    pub(super) ref_attr_name: String,
    #[prost(message, optional, boxed, tag = "22")]
    pub(super) sparse_tensor: Option<Box<SparseTensorProto>>,
    #[prost(message, repeated, tag = "23")]
    pub(super) sparse_tensors: Vec<SparseTensorProto>,
}

/// A part of a larger tensor. Declared to be refused: a part read as the whole would be wrong.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Segment {
    #[prost(int64, tag = "1")]
    pub(super) begin: i64,
    #[prost(int64, tag = "2")]
    pub(super) end: i64,
}

/// A sequence of values; only the list of its kind of element is in use. Beside a model, never in one.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SequenceProto {
    #[prost(int32, tag = "2")]
    pub(super) elem_type: i32,
    #[prost(message, repeated, tag = "3")]
    pub(super) tensor_values: Vec<TensorProto>,
    #[prost(message, repeated, tag = "5")]
    pub(super) sequence_values: Vec<SequenceProto>,
    #[prost(message, repeated, tag = "7")]
    pub(super) optional_values: Vec<OptionalProto>,
}

/// A value that may be absent. Beside a model, never in one.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OptionalProto {
    #[prost(int32, tag = "2")]
    pub(super) elem_type: i32,
    #[prost(message, optional, tag = "3")]
    pub(super) tensor_value: Option<TensorProto>,
    #[prost(message, optional, tag = "5")]
    pub(super) sequence_value: Option<SequenceProto>,
    #[prost(message, optional, boxed, tag = "7")]
    pub(super) optional_value: Option<Box<OptionalProto>>,
}

/// A tensor given by its values that are not zero.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SparseTensorProto {
    #[prost(message, optional, tag = "1")]
    pub(super) values: Option<TensorProto>,
    #[prost(message, optional, tag = "2")]
    pub(super) indices: Option<TensorProto>,
    #[prost(int64, repeated, packed = "false", tag = "3")]
    pub(super) dims: Vec<i64>,
}

/// A key and its value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StringStringEntryProto {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// The name and type of a value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueInfoProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) r#type: Option<TypeProto>,
}

/// The type of a value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeProto {
    #[prost(oneof = "TypeValue", tags = "1, 4, 5, 7, 8, 9")]
    pub(super) value: Option<TypeValue>,
}

/// The kinds of type.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum TypeValue {
    /// A dense tensor.
    #[prost(message, tag = "1")]
    Tensor(TensorTypeProto),
    /// A sequence of values of one type.
    #[prost(message, tag = "4")]
    Sequence(Box<ElementTypeProto>),
    /// A map from scalars to values of one type.
    #[prost(message, tag = "5")]
    Map(Box<MapTypeProto>),
    /// A type the format does not describe.
    #[prost(message, tag = "7")]
    Opaque(OpaqueTypeProto),
    /// A tensor given by its values that are not zero.
    #[prost(message, tag = "8")]
    SparseTensor(TensorTypeProto),
    /// A value that may be absent.
    #[prost(message, tag = "9")]
    Optional(Box<ElementTypeProto>),
}

/// Element type and shape of a tensor; no shape means that not even the rank is known.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorTypeProto {
    #[prost(int32, tag = "1")]
    pub(super) elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<TensorShapeProto>,
}

/// The element type of a sequence or an optional.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ElementTypeProto {
    #[prost(message, optional, boxed, tag = "1")]
    pub(super) elem_type: Option<Box<TypeProto>>,
}

/// Key and value type of a map.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MapTypeProto {
    #[prost(int32, tag = "1")]
    pub(super) key_type: i32,
    #[prost(message, optional, boxed, tag = "2")]
    pub(super) value_type: Option<Box<TypeProto>>,
}

/// Names of a type the format does not describe.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OpaqueTypeProto {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

/// A shape, one entry per axis.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) dim: Vec<DimensionProto>,
}

/// One axis of a shape; no value means an extent that is not known and has no name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DimensionProto {
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub(super) value: Option<DimensionValue>,
}

/// A fixed or a named extent.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum DimensionValue {
    /// A fixed extent.
    #[prost(int64, tag = "1")]
    DimValue(i64),
    /// A named extent: equal names are equal extents.
    #[prost(string, tag = "2")]
    DimParam(String),
}
