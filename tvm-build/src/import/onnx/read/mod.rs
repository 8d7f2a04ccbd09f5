//! From the bytes of a model file to a checked [`Model`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use prost::Message as _;
use tvm_ir::diag::Diags;
use tvm_ir::span::{SourceMap, Span};

use super::data_type::DataType;
use super::external::Folder;
use super::foreign;
use super::graph::{Attribute, Dim, Function, Graph, Model, Node, OpName, Type, Value, ValueInfo};
use super::limits::{Limits, check_rank};
use super::places::{Places, shown};
use super::proto::*;
use super::tensor::{Tensor, TensorCx};
use super::{order, sparse, wire};
use crate::import::file;

/// Reads and checks the model in a file. External data is looked for in its folder. Errors are all that is
/// wrong with the file, at the node, initializer or value that is at fault.
pub(crate) fn read_file(path: &Path, limits: &Limits, sources: &mut SourceMap) -> Result<Model, Diags> {
    let name = path.display().to_string();
    let mut places = Places::new(&name, sources);
    match file::read(path, limits.file_bytes) {
        Ok(bytes) => read(bytes, Folder::of_model(path), limits, places, sources),
        Err(message) => {
            let help = (!path.exists()).then(|| foreign::missing(path));
            places.fail_file(format!("{name} {message}"), help);
            Err(places.publish(sources).into_diags())
        }
    }
}

/// Reads and checks a model in memory; it can have no external data. `name` is what messages call it.
pub(crate) fn read_bytes(bytes: Bytes, name: &str, limits: &Limits, sources: &mut SourceMap) -> Result<Model, Diags> {
    let places = Places::new(name, sources);
    read(bytes, Folder::default(), limits, places, sources)
}

fn read(
    bytes: Bytes,
    folder: Folder,
    limits: &Limits,
    places: Places,
    sources: &mut SourceMap,
) -> Result<Model, Diags> {
    let mut reader = Reader { tensors: TensorCx::new(limits, folder), places };
    let decoded = wire::check(&bytes, wire::Message::Model, limits)
        .and_then(|()| ModelProto::decode(bytes.clone()).map_err(|e| e.to_string()));
    let decoded = match foreign::recognize(&bytes) {
        Some((what, help)) if decoded.as_ref().map_or(true, |m| m.graph.is_none()) => {
            Err((what.to_owned(), Some(help.to_owned())))
        }
        _ => decoded.map_err(|message| (message, None)),
    };
    let model = match decoded {
        Ok(proto) => reader.model(proto),
        Err((message, help)) => {
            reader.places.fail_file(format!("not a valid ONNX file: {message}"), help);
            None
        }
    };
    let faults = reader.places.publish(sources);
    match model {
        Some(model) if faults.is_empty() => Ok(model),
        _ => Err(faults.into_diags()),
    }
}

/// The empty domain and `ai.onnx` are the same.
fn domain(name: String) -> String {
    if name == "ai.onnx" { String::new() } else { name }
}

/// Reads everything it can and collects what is wrong.
struct Reader<'a> {
    tensors: TensorCx<'a>,
    places: Places,
}

impl Reader<'_> {
    fn fail(&mut self, place: &str, message: impl Into<String>) {
        self.places.fail(place, message);
    }

    fn fail_file(&mut self, message: impl Into<String>) {
        self.places.fail_at(self.places.file(), message);
    }

    fn model(&mut self, proto: ModelProto) -> Option<Model> {
        let Some(graph) = proto.graph else {
            self.fail_file("not a valid ONNX file: there is no graph in it");
            return None;
        };
        let opsets = self.opsets("opset_import", proto.opset_import);
        let mut functions = BTreeMap::new();
        for proto in proto.functions {
            let (name, function) = self.function(proto);
            let place = format!("function {}", shown(&name.to_string()));
            if functions.insert(name, function).is_some() {
                self.fail(&place, "is defined twice");
            }
        }
        let graph = self.graph(graph, "graph");
        let outputs: Vec<&str> = graph.outputs.iter().map(|o| o.name.as_str()).collect();
        order::report_undefined(&graph.nodes, &outputs, "graph", &graph.captures, &mut self.places);
        let files = self.tensors.folder.files().map(Path::to_owned).collect();
        let span = self.places.file();
        Some(Model { span, ir_version: proto.ir_version, opsets, functions, graph, files })
    }

    fn opsets(&mut self, place: &str, protos: Vec<OperatorSetIdProto>) -> BTreeMap<String, i64> {
        let mut opsets = BTreeMap::new();
        for OperatorSetIdProto { domain: name, version } in protos {
            let name = domain(name);
            if let Some(other) = opsets.insert(name.clone(), version).filter(|other| *other != version) {
                self.fail(place, format!("operator set '{name}' is imported in versions {other} and {version}"));
            }
        }
        opsets
    }

    fn function(&mut self, proto: FunctionProto) -> (OpName, Function) {
        let name = OpName { domain: domain(proto.domain), op_type: proto.name, overload: proto.overload };
        let place = format!("function {}", shown(&name.to_string()));
        let span = self.places.add(place.as_str());
        let opsets = self.opsets(&place, proto.opset_import);
        let defaults = self.attributes(proto.attribute_proto, &place, span);
        let mut nodes = self.nodes(proto.node, &place);
        let given = proto.input.iter().map(|i| (i.as_str(), "an input of the function"));
        order::check_definitions(given, &nodes, &place, &mut self.places);
        order::sort(&mut nodes, &mut self.places);
        let outputs: Vec<&str> = proto.output.iter().map(String::as_str).collect();
        let undefined = order::captures(proto.input.iter().map(String::as_str), &nodes, outputs.iter().copied());
        order::report_undefined(&nodes, &outputs, &place, &undefined, &mut self.places);
        let function = Function {
            opsets,
            inputs: proto.input,
            outputs: proto.output,
            attributes: proto.attribute.into_iter().collect(),
            defaults,
            nodes,
        };
        (name, function)
    }

    fn graph(&mut self, proto: GraphProto, place: &str) -> Graph {
        let mut initializers = Vec::new();
        for mut proto in proto.initializer {
            let name = std::mem::take(&mut proto.name);
            self.initializer(place, name, |cx| cx.read(proto), &mut initializers);
        }
        for mut proto in proto.sparse_initializer {
            let name = proto.values.as_mut().map(|v| std::mem::take(&mut v.name)).unwrap_or_default();
            self.initializer(place, name, |cx| sparse::read(cx, proto), &mut initializers);
        }
        let inputs = self.value_infos(proto.input, place, "input");
        let outputs = self.value_infos(proto.output, place, "output");
        let value_info = self.value_infos(proto.value_info, place, "value");
        let mut nodes = self.nodes(proto.node, place);
        order::sort(&mut nodes, &mut self.places);
        let mut graph = Graph {
            inputs,
            outputs,
            initializers,
            nodes,
            value_info: value_info.into_iter().filter_map(|v| Some((v.name, v.ty?))).collect(),
            captures: Default::default(),
        };
        order::check_definitions(order::given(&graph), &graph.nodes, place, &mut self.places);
        let outputs = graph.outputs.iter().map(|o| o.name.as_str());
        graph.captures = order::captures(order::given(&graph).map(|(name, _)| name), &graph.nodes, outputs);
        graph
    }

    fn initializer(
        &mut self,
        place: &str,
        name: String,
        read: impl FnOnce(&mut TensorCx<'_>) -> Result<Tensor, String>,
        into: &mut Vec<(String, Tensor)>,
    ) {
        if name.is_empty() {
            let index = into.len();
            self.fail(place, format!("initializer {index} has no name"));
        }
        match read(&mut self.tensors) {
            Ok(tensor) => into.push((name, tensor)),
            Err(message) => {
                self.fail(&format!("{place}/initializer '{name}'"), message);
                // The name is defined all the same: one mistake, one message.
                let empty = Tensor { dtype: DataType::Float, shape: vec![0], data: Bytes::new(), strings: Vec::new() };
                into.push((name, empty));
            }
        }
    }

    fn value_infos(&mut self, protos: Vec<ValueInfoProto>, place: &str, role: &str) -> Vec<ValueInfo> {
        let mut infos = Vec::with_capacity(protos.len());
        for (i, proto) in protos.into_iter().enumerate() {
            if proto.name.is_empty() {
                self.fail(place, format!("{role} {i} has no name"));
            }
            let ty = match proto.r#type.map(read_type).transpose() {
                Ok(ty) => ty.flatten(),
                Err(message) => {
                    self.fail(&format!("{place}/{role} '{}'", proto.name), message);
                    None
                }
            };
            infos.push(ValueInfo { name: proto.name, ty });
        }
        infos
    }

    fn nodes(&mut self, protos: Vec<NodeProto>, place: &str) -> Vec<Node> {
        protos.into_iter().enumerate().map(|(i, proto)| self.node(proto, i, place)).collect()
    }

    fn node(&mut self, proto: NodeProto, index: usize, place: &str) -> Node {
        let op = OpName { domain: domain(proto.domain), op_type: proto.op_type, overload: proto.overload };
        let name = if proto.name.is_empty() { String::new() } else { format!(" \"{}\"", shown(&proto.name)) };
        let path = format!("{place}/node[{index}]{name} ({})", shown(&op.to_string()));
        let span = self.places.add(path.as_str());
        if op.op_type.is_empty() {
            self.places.fail_at(span, "names no operator");
        }
        let attributes = self.attributes(proto.attribute, &path, span);
        Node { op, path, span, inputs: proto.input, outputs: proto.output, attributes }
    }

    fn attributes(&mut self, protos: Vec<AttributeProto>, place: &str, span: Span) -> Vec<Attribute> {
        let mut attributes: Vec<Attribute> = Vec::with_capacity(protos.len());
        let mut names = BTreeSet::new();
        for proto in protos {
            let name = proto.name.clone();
            if !names.insert(name.clone()) {
                self.places.fail_at(span, format!("attribute '{name}' is given twice"));
                continue;
            }
            let at = format!("{place}/{}", shown(&name));
            match self.value(proto, &at) {
                Ok(value) => attributes.push(Attribute { name, value }),
                Err(message) => self.places.fail_at(span, format!("attribute '{name}': {message}")),
            }
        }
        attributes
    }

    fn value(&mut self, proto: AttributeProto, place: &str) -> Result<Value, String> {
        if !proto.ref_attr_name.is_empty() {
            return Ok(Value::Reference(proto.ref_attr_name));
        }
        let absent = || "has a type and no value".to_owned();
        Ok(match attribute_kind(&proto)? {
            Kind::Float => Value::Float(proto.f.unwrap_or_default()),
            Kind::Int => Value::Int(proto.i.unwrap_or_default()),
            Kind::String => Value::String(proto.s.unwrap_or_default()),
            Kind::Tensor => Value::Tensor(self.tensors.read(*proto.t.ok_or_else(absent)?)?),
            Kind::Graph => Value::Graph(Box::new(self.graph(*proto.g.ok_or_else(absent)?, place))),
            Kind::Floats => Value::Floats(proto.floats),
            Kind::Ints => Value::Ints(proto.ints),
            Kind::Strings => Value::Strings(proto.strings),
            Kind::Tensors => {
                Value::Tensors(proto.tensors.into_iter().map(|t| self.tensors.read(t)).collect::<Result<_, _>>()?)
            }
            Kind::Graphs => {
                let each = proto.graphs.into_iter().enumerate();
                Value::Graphs(each.map(|(i, g)| self.graph(g, &format!("{place}[{i}]"))).collect())
            }
            Kind::Sparse => Value::Tensor(sparse::read(&mut self.tensors, *proto.sparse_tensor.ok_or_else(absent)?)?),
            Kind::SparseList => {
                let each = proto.sparse_tensors.into_iter();
                Value::Tensors(each.map(|t| sparse::read(&mut self.tensors, t)).collect::<Result<_, _>>()?)
            }
            Kind::Type => Value::Type(read_type(*proto.tp.ok_or_else(absent)?)?.ok_or_else(absent)?),
            Kind::Types => {
                let each = proto.type_protos.into_iter();
                Value::Types(each.map(|t| read_type(t)?.ok_or_else(absent)).collect::<Result<_, _>>()?)
            }
        })
    }
}

/// The kinds of attribute.
enum Kind {
    Float,
    Int,
    String,
    Tensor,
    Graph,
    Floats,
    Ints,
    Strings,
    Tensors,
    Graphs,
    Sparse,
    SparseList,
    Type,
    Types,
}

/// The kind an attribute states; files of the first version of the format state none, and the one field that
/// is present tells.
fn attribute_kind(proto: &AttributeProto) -> Result<Kind, String> {
    Ok(match proto.kind {
        0 if proto.f.is_some() => Kind::Float,
        0 if proto.i.is_some() => Kind::Int,
        0 if proto.s.is_some() => Kind::String,
        0 if proto.t.is_some() => Kind::Tensor,
        0 if proto.g.is_some() => Kind::Graph,
        0 if !proto.floats.is_empty() => Kind::Floats,
        0 if !proto.ints.is_empty() => Kind::Ints,
        0 if !proto.strings.is_empty() => Kind::Strings,
        0 => return Err("has neither a type nor a value".to_owned()),
        1 => Kind::Float,
        2 => Kind::Int,
        3 => Kind::String,
        4 => Kind::Tensor,
        5 => Kind::Graph,
        6 => Kind::Floats,
        7 => Kind::Ints,
        8 => Kind::Strings,
        9 => Kind::Tensors,
        10 => Kind::Graphs,
        11 => Kind::Sparse,
        12 => Kind::SparseList,
        13 => Kind::Type,
        14 => Kind::Types,
        other => return Err(format!("type {other} of attribute is unknown")),
    })
}

/// The type; `None` if the message says nothing.
fn read_type(proto: TypeProto) -> Result<Option<Type>, String> {
    let inner = |elem: Box<ElementTypeProto>| -> Result<Box<Type>, String> {
        let elem = elem.elem_type.ok_or("a sequence or optional has no element type")?;
        Ok(Box::new(read_type(*elem)?.ok_or("a sequence or optional has no element type")?))
    };
    Ok(match proto.value {
        None => None,
        Some(TypeValue::Tensor(tensor)) => {
            let dtype = DataType::from_code(tensor.elem_type)
                .ok_or_else(|| format!("element type {} is unknown", tensor.elem_type))?;
            check_rank(tensor.shape.as_ref().map_or(0, |s| s.dim.len()))?;
            let shape = tensor.shape.map(|s| s.dim.into_iter().map(read_dim).collect()).transpose()?;
            Some(Type::Tensor { dtype, shape })
        }
        Some(TypeValue::Sequence(elem)) => Some(Type::Sequence(inner(elem)?)),
        Some(TypeValue::Optional(elem)) => Some(Type::Optional(inner(elem)?)),
        Some(TypeValue::Map(_)) => Some(Type::Other("map")),
        Some(TypeValue::SparseTensor(_)) => Some(Type::Other("sparse tensor")),
        Some(TypeValue::Opaque(_)) => Some(Type::Other("opaque")),
    })
}

/// An extent; exporters write one that may vary as a name, as nothing or as −1.
fn read_dim(proto: DimensionProto) -> Result<Dim, String> {
    match proto.value {
        None | Some(DimensionValue::DimValue(-1)) => Ok(Dim::Unknown),
        Some(DimensionValue::DimParam(name)) if name.is_empty() => Ok(Dim::Unknown),
        Some(DimensionValue::DimParam(name)) => Ok(Dim::Named(name)),
        Some(DimensionValue::DimValue(value)) => u64::try_from(value)
            .map(Dim::Fixed)
            .map_err(|_| format!("dimension {value} is negative; an extent that may vary is written as a name")),
    }
}

#[cfg(test)]
mod tests;
