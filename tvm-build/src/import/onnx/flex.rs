//! `FlexAttention`: attention whose scores and weights pass through graphs of the model.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;

use super::convert::{Converter, Place, Scope};
use super::cx::OpCx;
use super::emit::Fail;
use super::graph::{Graph, Node};
use super::ops::attention::{head_scale, scores, shared_heads};
use super::ops::create::element_type;
use super::reader::NodeReader;
use super::value::Value;

impl<'a> Converter<'a> {
    /// The version of `ai.onnx.preview`.
    pub(super) fn flex_attention(&mut self, node: &Node, scope: &Scope, place: Place<'_>) -> Option<Vec<Value>> {
        match self.flex(node, scope, place) {
            Ok(outputs) => outputs,
            Err(fail) => self.refuse(node, fail),
        }
    }

    fn flex(&mut self, node: &Node, scope: &Scope, place: Place<'_>) -> Result<Option<Vec<Value>>, Fail> {
        let values: Vec<Option<Value>> = node.inputs.iter().map(|name| scope.get(name).cloned()).collect();
        if values.iter().flatten().any(|v| matches!(v, Value::Poison(None))) {
            return Ok(None);
        }
        let reader = NodeReader::new(node, place.caller);
        let (score_mod, prob_mod) = (reader.graph("score_mod")?, reader.graph("prob_mod")?);
        let mut cx = OpCx { node: reader, opset: 1, values, emitter: &mut self.emitter };
        let (q, k, v) = (cx.input(0, "Q")?, cx.input(1, "K")?, cx.input(2, "V")?);
        for (x, role) in [(&q, "Q"), (&k, "K"), (&v, "V")] {
            let rank = cx.rank(x, role)?;
            if rank != 4 {
                return Err(format!("{role} must have 4 axes, and its rank is {rank}").into());
            }
        }
        let dtype = cx.dtype(&q, "Q")?;
        let usual = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let precision = cx.node.int("softmax_precision")?.map(element_type).transpose()?.unwrap_or(usual);
        let size = cx.dims(&q, "Q")?[3].as_int();
        let scale = head_scale(cx.node.float("scale")?, size)?;
        if let Some(message) = cx.node.unread().first() {
            return Err(message.clone().into());
        }
        let v = shared_heads(&mut cx, &q, v)?;
        let raw = scores(&mut cx, q, k, scale)?;
        let mut value = cx.astype(&raw, precision)?;
        if let Some(graph) = score_mod {
            let Some(modified) = self.modified("score_mod", graph, value, scope, place)? else { return Ok(None) };
            value = modified;
        }
        value = self.emitter.call("nn.softmax", vec![value], vec![("axis", (-1).into())])?;
        if let Some(graph) = prob_mod {
            let Some(modified) = self.modified("prob_mod", graph, value, scope, place)? else { return Ok(None) };
            value = modified;
        }
        let as_type = |to: DType| vec![("dtype", AttrValue::DType(to))];
        let v = self.emitter.call("astype", vec![v], as_type(precision))?;
        let out = self.emitter.call("matmul", vec![value, v], vec![])?;
        let out = self.emitter.call("astype", vec![out], as_type(dtype))?;
        self.emitter.normalize(&out)?;
        Ok(Some(vec![out]))
    }

    /// What a graph of one input and one output makes of a value; `None` if it cannot be converted.
    fn modified(
        &mut self,
        name: &str,
        graph: &Graph,
        value: Value,
        scope: &Scope,
        place: Place<'_>,
    ) -> Result<Option<Value>, Fail> {
        if graph.inputs.len() != 1 || graph.outputs.len() != 1 {
            let (inputs, outputs) = (graph.inputs.len(), graph.outputs.len());
            return Err(format!("{name} must have one input and one output, not {inputs} and {outputs}").into());
        }
        let captured = graph.captures.iter().filter_map(|name| Some((name.clone(), scope.get(name)?.clone())));
        let before = value.info();
        let Some(outputs) = self.graph(graph, vec![value], 1, captured.collect(), place) else { return Ok(None) };
        let out = outputs.into_iter().next().ok_or_else(|| format!("{name} gives nothing"))?;
        if out.info() != before {
            return Err(format!("{name} must keep the shape and element type of what it is given").into());
        }
        Ok(Some(out))
    }
}
