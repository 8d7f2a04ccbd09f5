//! A model as converters see it: checked, and without a message of the file format.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use bytes::Bytes;

use tvm_ir::span::Span;

use super::data_type::DataType;
use super::tensor::Tensor;

/// A model that keeps the format's rules of naming and order.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// The file as a whole, in the source map.
    pub(crate) span: Span,
    /// Version of the format.
    pub(crate) ir_version: i64,
    /// Version of the operator set of each domain; `ai.onnx` is written as the empty domain.
    pub(crate) opsets: BTreeMap<String, i64>,
    /// The operators that the model defines itself.
    pub(crate) functions: BTreeMap<OpName, Function>,
    /// The main graph.
    pub(crate) graph: Graph,
    /// The files of external data that were read.
    pub(crate) files: Vec<PathBuf>,
}

/// The full name of an operator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpName {
    /// The domain, empty for the standard operators.
    pub(crate) domain: String,
    /// The operator.
    pub(crate) op_type: String,
    /// Which of the functions of that name; empty for the only one.
    pub(crate) overload: String,
}

impl fmt::Display for OpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.domain.is_empty() {
            write!(f, "{}:", self.domain)?;
        }
        f.write_str(&self.op_type)?;
        if self.overload.is_empty() { Ok(()) } else { write!(f, ":{}", self.overload) }
    }
}

/// An operator defined by a model: its body is inlined where it is used.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// Operator sets that the body uses.
    pub(crate) opsets: BTreeMap<String, i64>,
    /// Names of the inputs in the body.
    pub(crate) inputs: Vec<String>,
    /// Names of the outputs in the body.
    pub(crate) outputs: Vec<String>,
    /// Attributes without a default.
    pub(crate) attributes: BTreeSet<String>,
    /// Attributes with a default.
    pub(crate) defaults: Vec<Attribute>,
    /// The body, in topological order.
    pub(crate) nodes: Vec<Node>,
}

/// A graph. Every name that is used is an input, an initializer, an output of an earlier node or a capture,
/// and no name is defined twice.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    /// Inputs in order. One that an initializer names too has that as its default.
    pub(crate) inputs: Vec<ValueInfo>,
    /// Outputs in order.
    pub(crate) outputs: Vec<ValueInfo>,
    /// Constant values by name, in the order of the file.
    pub(crate) initializers: Vec<(String, Tensor)>,
    /// Nodes in topological order; the order of the file if it is one.
    pub(crate) nodes: Vec<Node>,
    /// Types that the file states for values between nodes.
    pub(crate) value_info: BTreeMap<String, Type>,
    /// Names of values of enclosing graphs that this graph uses. Empty for the main graph.
    pub(crate) captures: BTreeSet<String>,
}

/// A named value and its type; the type may be left out in nested graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueInfo {
    pub(crate) name: String,
    pub(crate) ty: Option<Type>,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A tensor; without a shape not even the rank is known.
    Tensor { dtype: DataType, shape: Option<Vec<Dim>> },
    /// A sequence of values of one type.
    Sequence(Box<Type>),
    /// A value that may be absent.
    Optional(Box<Type>),
    /// A kind of value that no operator here takes; its name.
    Other(&'static str),
}

/// The extent of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dim {
    /// A fixed extent.
    Fixed(u64),
    /// A named extent: equal names are equal extents.
    Named(String),
    /// An extent that is not known.
    Unknown,
}

/// One application of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The operator.
    pub(crate) op: OpName,
    /// Where it stands, as messages name it: `graph/node[3] "conv1" (Conv)`.
    pub(crate) path: String,
    /// The place of `path` in the source map.
    pub(crate) span: Span,
    /// Names of the inputs; an empty name is an input left out.
    pub(crate) inputs: Vec<String>,
    /// Names of the outputs; an empty name is an output nobody uses.
    pub(crate) outputs: Vec<String>,
    /// Attributes, each name once.
    pub(crate) attributes: Vec<Attribute>,
}

impl Node {
    /// The names of values that must exist before the node runs: its inputs and what its graphs capture.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &str> {
        let captured = self.attributes.iter().flat_map(|a| a.value.graphs()).flat_map(|g| &g.captures);
        self.inputs.iter().filter(|n| !n.is_empty()).chain(captured).map(String::as_str)
    }
}

/// A named attribute.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
#[expect(dead_code, reason = "the operators that read lists of tensors and of types have no converter")]
pub(crate) enum Value {
    Float(f32),
    Int(i64),
    String(Bytes),
    Tensor(Tensor),
    Graph(Box<Graph>),
    Type(Type),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Strings(Vec<Bytes>),
    Tensors(Vec<Tensor>),
    Graphs(Vec<Graph>),
    Types(Vec<Type>),
    /// In the body of a function: the value that the caller gives for the attribute of this name.
    Reference(String),
}

impl Value {
    /// What kind of value it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Float(_) => "a float",
            Value::Int(_) => "an int",
            Value::String(_) => "a string",
            Value::Tensor(_) => "a tensor",
            Value::Graph(_) => "a graph",
            Value::Type(_) => "a type",
            Value::Floats(_) => "a list of floats",
            Value::Ints(_) => "a list of ints",
            Value::Strings(_) => "a list of strings",
            Value::Tensors(_) => "a list of tensors",
            Value::Graphs(_) => "a list of graphs",
            Value::Types(_) => "a list of types",
            Value::Reference(_) => "a reference to an attribute of the function",
        }
    }

    /// The graphs in it.
    pub(crate) fn graphs(&self) -> &[Graph] {
        match self {
            Value::Graph(graph) => std::slice::from_ref(graph),
            Value::Graphs(graphs) => graphs,
            _ => &[],
        }
    }
}
