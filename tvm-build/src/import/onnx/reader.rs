//! Reading one node: what a converter asks for is recorded, so that what it did not ask for is an error.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Graph, Node, Type, Value};
use super::tensor::Tensor;

/// The attributes that the caller of a function gives it: what references in the body mean.
pub(crate) type Caller = BTreeMap<String, Value>;

/// One node while it is converted. The errors are sentences about the node that do not name it.
#[derive(Debug)]
pub(crate) struct NodeReader<'a> {
    node: &'a Node,
    caller: &'a Caller,
    attributes: RefCell<BTreeSet<usize>>,
    inputs: RefCell<BTreeSet<usize>>,
}

impl<'a> NodeReader<'a> {
    /// Reads `node`; in the body of a function, `caller` has the attributes the function was given.
    pub(crate) fn new(node: &'a Node, caller: &'a Caller) -> Self {
        NodeReader { node, caller, attributes: RefCell::default(), inputs: RefCell::default() }
    }

    /// The node.
    pub(crate) fn node(&self) -> &'a Node {
        self.node
    }

    /// The number of inputs, those left out at the end not counted.
    pub(crate) fn input_count(&self) -> usize {
        self.node.inputs.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1)
    }

    /// The name of input `index`, or `None` if it is left out.
    pub(crate) fn optional_input(&self, index: usize) -> Option<&'a str> {
        self.inputs.borrow_mut().insert(index);
        self.node.inputs.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The name of input `index`, which the operator calls `role` and cannot do without.
    pub(crate) fn input(&self, index: usize, role: &str) -> Result<&'a str, String> {
        self.optional_input(index)
            .ok_or_else(|| format!("input {index} ({role}) is missing; the node has {} inputs", self.node.inputs.len()))
    }

    /// The value of an attribute, references followed; `None` if it is left out.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'a Value> {
        let index = self.node.attributes.iter().position(|a| a.name == name)?;
        self.attributes.borrow_mut().insert(index);
        match &self.node.attributes[index].value {
            Value::Reference(outer) => self.caller.get(outer),
            value => Some(value),
        }
    }

    fn typed<T>(
        &self,
        name: &str,
        wanted: &str,
        pick: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.attribute(name) else { return Ok(None) };
        let found = value.kind();
        pick(value).map(Some).ok_or_else(|| format!("attribute '{name}' must be {wanted}, not {found}"))
    }

    /// An integer.
    pub(crate) fn int(&self, name: &str) -> Result<Option<i64>, String> {
        self.typed(name, "an int", |v| if let Value::Int(i) = v { Some(*i) } else { None })
    }

    /// An integer, or what the operator says if it is left out.
    pub(crate) fn int_or(&self, name: &str, default: i64) -> Result<i64, String> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An integer that is 0 or 1.
    pub(crate) fn flag_or(&self, name: &str, default: bool) -> Result<bool, String> {
        match self.int(name)? {
            None => Ok(default),
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(other) => Err(format!("attribute '{name}' must be 0 or 1, not {other}")),
        }
    }

    /// A float.
    pub(crate) fn float(&self, name: &str) -> Result<Option<f32>, String> {
        self.typed(name, "a float", |v| if let Value::Float(f) = v { Some(*f) } else { None })
    }

    /// A float, or what the operator says if it is left out.
    pub(crate) fn float_or(&self, name: &str, default: f32) -> Result<f32, String> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// A string.
    pub(crate) fn string(&self, name: &str) -> Result<Option<&'a str>, String> {
        let bytes = self.typed(name, "a string", |v| if let Value::String(s) = v { Some(s) } else { None })?;
        bytes.map(|s| std::str::from_utf8(s).map_err(|_| format!("attribute '{name}' is not valid UTF-8"))).transpose()
    }

    /// A string, or what the operator says if it is left out.
    pub(crate) fn string_or(&self, name: &str, default: &'a str) -> Result<&'a str, String> {
        Ok(self.string(name)?.unwrap_or(default))
    }

    /// A list of integers.
    pub(crate) fn ints(&self, name: &str) -> Result<Option<&'a [i64]>, String> {
        self.typed(name, "a list of ints", |v| if let Value::Ints(i) = v { Some(i.as_slice()) } else { None })
    }

    /// A list of floats.
    pub(crate) fn floats(&self, name: &str) -> Result<Option<&'a [f32]>, String> {
        self.typed(name, "a list of floats", |v| if let Value::Floats(f) = v { Some(f.as_slice()) } else { None })
    }

    /// A list of strings.
    pub(crate) fn strings(&self, name: &str) -> Result<Option<Vec<&'a str>>, String> {
        let list = self.typed(name, "a list of strings", |v| if let Value::Strings(s) = v { Some(s) } else { None })?;
        let text = |s| std::str::from_utf8(s).map_err(|_| format!("attribute '{name}' is not valid UTF-8"));
        list.map(|list| list.iter().map(|s| text(s)).collect()).transpose()
    }

    /// A tensor.
    pub(crate) fn tensor(&self, name: &str) -> Result<Option<&'a Tensor>, String> {
        self.typed(name, "a tensor", |v| if let Value::Tensor(t) = v { Some(t) } else { None })
    }

    /// A type.
    pub(crate) fn ty(&self, name: &str) -> Result<Option<&'a Type>, String> {
        self.typed(name, "a type", |v| if let Value::Type(t) = v { Some(t) } else { None })
    }

    /// A graph.
    pub(crate) fn graph(&self, name: &str) -> Result<Option<&'a Graph>, String> {
        self.typed(name, "a graph", |v| if let Value::Graph(g) = v { Some(&**g) } else { None })
    }

    /// Sentences about the attributes and inputs that nothing has read: the conversion would ignore them.
    pub(crate) fn unread(&self) -> Vec<String> {
        let attributes = self.attributes.borrow();
        let inputs = self.inputs.borrow();
        let left = self.node.attributes.iter().enumerate().filter(|(i, _)| !attributes.contains(i));
        let mut unread: Vec<String> =
            left.map(|(_, a)| format!("attribute '{}' is not supported on this operator", a.name)).collect();
        let left = self.node.inputs.iter().enumerate().filter(|(i, name)| !name.is_empty() && !inputs.contains(i));
        unread.extend(left.map(|(i, name)| format!("input {i} ('{name}') is not supported on this operator")));
        unread
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::import::onnx::graph::{Attribute, OpName};

    fn node() -> Node {
        let attribute = |name: &str, value| Attribute { name: name.to_owned(), value };
        Node {
            op: OpName { domain: String::new(), op_type: "Test".into(), overload: String::new() },
            path: "graph/node[0] (Test)".into(),
            span: tvm_ir::span::Span::NONE,
            inputs: ["x", "", "y", ""].map(String::from).to_vec(),
            outputs: vec!["z".into()],
            attributes: vec![
                attribute("axis", Value::Int(2)),
                attribute("mode", Value::String(Bytes::from("linear"))),
                attribute("alpha", Value::Reference("a".into())),
                attribute("beta", Value::Reference("b".into())),
            ],
        }
    }

    #[test]
    fn what_is_not_read_is_reported() {
        let (node, caller) = (node(), Caller::from([("a".into(), Value::Float(0.5))]));
        let reader = NodeReader::new(&node, &caller);
        assert_eq!(reader.unread().len(), 6);
        assert_eq!(reader.int_or("axis", 0), Ok(2));
        assert_eq!(reader.input(0, "X"), Ok("x"));
        assert_eq!(reader.float("alpha"), Ok(Some(0.5)));
        assert_eq!(reader.float_or("beta", 3.0), Ok(3.0));
        assert_eq!(reader.string_or("mode", "nearest"), Ok("linear"));
        assert_eq!(reader.string_or("absent", "nearest"), Ok("nearest"));
        assert_eq!(reader.unread(), ["input 2 ('y') is not supported on this operator"]);
        assert_eq!(reader.optional_input(2), Some("y"));
        assert_eq!(reader.input_count(), 3);
        assert!(reader.unread().is_empty());
    }

    #[test]
    fn wrong_kinds_and_missing_inputs_are_errors() {
        let (node, caller) = (node(), Caller::new());
        let reader = NodeReader::new(&node, &caller);
        assert_eq!(reader.ints("axis").unwrap_err(), "attribute 'axis' must be a list of ints, not an int");
        assert!(reader.flag_or("axis", true).unwrap_err().contains("0 or 1, not 2"));
        assert!(reader.input(1, "bias").unwrap_err().contains("input 1 (bias) is missing"));
        assert!(reader.input(9, "bias").unwrap_err().contains("input 9 (bias) is missing"));
    }
}
