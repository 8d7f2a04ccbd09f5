//! Short forms for models, and for what comes of them.

use prost::Message as _;
use tvm_ir::module::{Func, IRModule};
use tvm_ir::ops::show_info;
use tvm_ir::relax::{Block, Expr, Function, Leaf};
use tvm_ir::span::{SourceKind, SourceMap};

use super::super::proto::*;
use super::super::{Limits, load_bytes};

/// A node of the standard operators.
pub(in super::super) fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: op.to_owned(),
        input: inputs.iter().map(|&s| s.to_owned()).collect(),
        output: outputs.iter().map(|&s| s.to_owned()).collect(),
        ..Default::default()
    }
}

impl NodeProto {
    pub(in super::super) fn int(mut self, name: &str, value: i64) -> NodeProto {
        self.attribute.push(AttributeProto { name: name.into(), kind: 2, i: Some(value), ..Default::default() });
        self
    }

    pub(in super::super) fn float(mut self, name: &str, value: f32) -> NodeProto {
        self.attribute.push(AttributeProto { name: name.into(), kind: 1, f: Some(value), ..Default::default() });
        self
    }

    pub(in super::super) fn ints(mut self, name: &str, values: &[i64]) -> NodeProto {
        self.attribute.push(AttributeProto { name: name.into(), kind: 7, ints: values.to_vec(), ..Default::default() });
        self
    }

    pub(in super::super) fn string(mut self, name: &str, value: &str) -> NodeProto {
        let s = Some(value.to_owned().into());
        self.attribute.push(AttributeProto { name: name.into(), kind: 3, s, ..Default::default() });
        self
    }

    pub(in super::super) fn reference(mut self, name: &str, kind: i32, outer: &str) -> NodeProto {
        let attribute = AttributeProto { name: name.into(), kind, ref_attr_name: outer.into(), ..Default::default() };
        self.attribute.push(attribute);
        self
    }

    pub(in super::super) fn named(mut self, name: &str) -> NodeProto {
        self.name = name.into();
        self
    }

    pub(in super::super) fn domain(mut self, domain: &str) -> NodeProto {
        self.domain = domain.into();
        self
    }
}

/// A float32 value; `?` is an extent that is not known, and what is not a number is a name.
pub(in super::super) fn value(name: &str, dims: &str) -> ValueInfoProto {
    let dim = |text: &str| DimensionProto {
        value: match (text, text.parse()) {
            ("?", _) => None,
            (_, Ok(number)) => Some(DimensionValue::DimValue(number)),
            (name, Err(_)) => Some(DimensionValue::DimParam(name.to_owned())),
        },
    };
    let shape = TensorShapeProto { dim: dims.split_terminator(',').map(str::trim).map(dim).collect() };
    let ty = TypeProto { value: Some(TypeValue::Tensor(TensorTypeProto { elem_type: 1, shape: Some(shape) })) };
    ValueInfoProto { name: name.to_owned(), r#type: Some(ty) }
}

/// An int64 value; see [`value`].
pub(in super::super) fn int_value(name: &str, dims: &str) -> ValueInfoProto {
    let mut value = value(name, dims);
    if let Some(TypeProto { value: Some(TypeValue::Tensor(ty)) }) = &mut value.r#type {
        ty.elem_type = 7;
    }
    value
}

/// A float32 initializer of ones.
pub(in super::super) fn weight(name: &str, dims: &[i64]) -> TensorProto {
    let count = dims.iter().product::<i64>() as usize;
    TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: 1,
        float_data: vec![1.0; count].into(),
        ..Default::default()
    }
}

/// An int64 initializer of rank 1.
pub(in super::super) fn list(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: vec![values.len() as i64],
        data_type: 7,
        int64_data: values.to_vec(),
        ..Default::default()
    }
}

/// A model of operator set `opset` with an input `x` of float32 and an output `y`.
pub(in super::super) fn model(
    opset: i64,
    x: &str,
    initializers: Vec<TensorProto>,
    nodes: Vec<NodeProto>,
) -> ModelProto {
    ModelProto {
        ir_version: 8,
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: opset }],
        graph: Some(GraphProto {
            input: vec![value("x", x)],
            output: vec![value("y", "")],
            initializer: initializers,
            node: nodes,
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The module of a model; errors as `place: message | notes | help`, a line each.
pub(in super::super) fn import(model: &ModelProto) -> Result<IRModule, String> {
    let mut sources = SourceMap::default();
    match load_bytes(model.encode_to_vec(), "m.onnx", &Limits::default(), &mut sources) {
        Ok(loaded) => Ok(loaded.module),
        Err(diags) => {
            let line = |d: &tvm_ir::diag::Diag| {
                let place = match sources.get(d.span().source).map(|s| &s.kind) {
                    Some(SourceKind::Nodes(places)) => places[d.span().start as usize].as_str(),
                    _ => "nowhere",
                };
                let more: Vec<&str> = d.notes.iter().map(String::as_str).chain(d.help.as_deref()).collect();
                format!("{place}: {} | {}", d.message, more.join(" | "))
            };
            Err(diags.0.iter().map(line).collect::<Vec<_>>().join("\n"))
        }
    }
}

/// The function `main`.
pub(in super::super) fn main(module: &IRModule) -> &Function {
    match &module["main"] {
        Func::Relax(function) => function,
        other => panic!("{other:?}"),
    }
}

/// The bindings of a model's `main`, a line each: `lv = add(x, float32[3]) -> float32 (3,)`, without attributes.
pub(in super::super) fn bindings(model: &ModelProto) -> Vec<String> {
    bindings_of(&import(model).unwrap())
}

/// As [`bindings`], of a module.
pub(in super::super) fn bindings_of(module: &IRModule) -> Vec<String> {
    let function = main(module);
    let [Block::Dataflow { bindings, .. }] = &function.body.blocks[..] else { panic!("one dataflow block") };
    let line = |b: &tvm_ir::relax::Binding| {
        let value = match &b.value {
            Expr::Call(call) => {
                let given = call.args.iter().filter(|a| !matches!(a, Leaf::Absent));
                let args: Vec<String> = given.map(leaf).collect();
                format!("{}({})", call.op.name(), args.join(", "))
            }
            Expr::Leaf(only) => leaf(only),
            Expr::Tuple(items) => leaf(&Leaf::Tuple(items.clone())),
            Expr::TupleGetItem(tuple, index) => format!("{}[{index}]", leaf(tuple)),
            other => format!("{other:?}"),
        };
        format!("{} = {value}", b.var.name())
    };
    bindings.iter().map(line).collect()
}

fn leaf(leaf_: &Leaf) -> String {
    match leaf_ {
        Leaf::Var(var) => var.name().to_string(),
        Leaf::Const(constant) => format!("{}{:?}", constant.dtype(), constant.shape()),
        Leaf::Shape(dims) => format!("{dims:?}"),
        Leaf::Tuple(items) => format!("({})", items.iter().map(leaf).collect::<Vec<_>>().join(", ")),
        Leaf::Prim(expr) => format!("{expr:?}"),
        other => format!("{other:?}"),
    }
}

/// What `main` returns, as text.
pub(in super::super) fn result(model: &ModelProto) -> String {
    show_info(&main(&import(model).unwrap()).ret)
}
