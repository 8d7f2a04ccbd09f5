//! `SequenceMap`.

use tvm_ir::prim::PrimExpr;

use super::convert::{Converter, Place, Scope};
use super::emit::Fail;
use super::graph::{Graph, Node, Type};
use super::iterate::{Inside, Iterations, Outcome};
use super::list::{List, join, type_of};
use super::reader::NodeReader;
use super::scan::captures;
use super::value::Value;

impl<'a> Converter<'a> {
    /// The body for each item of the first input; sequences among the others go along with it. With known items, one
    /// after the other; else as a loop that appends to lists.
    pub(super) fn sequence_map(&mut self, node: &Node, scope: &Scope, place: Place<'_>) -> Option<Vec<Value>> {
        let reader = NodeReader::new(node, place.caller);
        match self.mapped(&reader, scope, place) {
            Ok(outputs) => outputs,
            Err(fail) => self.refuse(node, fail),
        }
    }

    fn mapped(&mut self, reader: &NodeReader<'_>, scope: &Scope, place: Place<'_>) -> Result<Option<Vec<Value>>, Fail> {
        let get = |name: &str| scope.get(name).cloned().ok_or_else(|| format!("'{name}' is not known"));
        let body = reader.graph("body")?.ok_or("attribute 'body' is missing")?;
        let inputs =
            (0..reader.input_count()).map(|i| get(reader.input(i, "an input")?)).collect::<Result<Vec<_>, _>>()?;
        self.read_all(reader.node(), reader);
        if body.inputs.len() != inputs.len() || body.outputs.len() < reader.node().outputs.len() {
            let (n, m) = (body.inputs.len(), body.outputs.len());
            return Err(format!("the body has {n} inputs and {m} outputs, which are not those of the node").into());
        }
        let Some(Value::List(first)) = inputs.first().cloned() else {
            return Err("the first input is not a sequence".into());
        };
        let lengths = inputs.iter().filter_map(|v| match v {
            Value::List(list) if matches!(list.ty, Type::Sequence(_)) => Some(list.known().map(<[Value]>::len)),
            _ => None,
        });
        match lengths.collect::<Option<Vec<usize>>>() {
            Some(lengths) if !lengths.contains(&0) => {
                if lengths.iter().any(|n| *n != lengths[0]) {
                    return Err(format!("sequences of {lengths:?} items are mapped together").into());
                }
                self.each(body, &inputs, lengths[0], scope, place)
            }
            _ => self.each_at_run_time(body, &first, inputs, scope, place),
        }
    }

    fn each(
        &mut self,
        body: &Graph,
        inputs: &[Value],
        count: usize,
        scope: &Scope,
        place: Place<'_>,
    ) -> Result<Option<Vec<Value>>, Fail> {
        let mut outputs: Vec<Vec<Value>> = vec![Vec::new(); body.outputs.len()];
        for i in 0..count {
            let position = Value::int(PrimExpr::i64(i64::try_from(i).unwrap_or(i64::MAX)));
            let own = inputs.iter().map(|v| self.item_of(v, &position)).collect::<Result<_, _>>()?;
            let inner = captures(body, scope);
            let inner = inner.0.into_iter().zip(inner.1).collect();
            let Some(results) = self.graph(body, own, outputs.len(), inner, place) else { return Ok(None) };
            outputs.iter_mut().zip(results).for_each(|(all, one)| all.push(one));
        }
        let list = |items: Vec<Value>| {
            let mut types = items.iter().map(|v| type_of(v).ok_or("the element type of an item is not known"));
            let first = types.next().ok_or("there are no items")??;
            let ty = types.try_fold(first, |all, ty| join(&all, &ty?))?;
            Ok::<Value, Fail>(List::items(Type::Sequence(Box::new(ty)), items))
        };
        outputs.into_iter().map(list).collect::<Result<_, _>>().map(Some)
    }

    fn each_at_run_time(
        &mut self,
        body: &Graph,
        first: &List,
        inputs: Vec<Value>,
        scope: &Scope,
        place: Place<'_>,
    ) -> Result<Option<Vec<Value>>, Fail> {
        let trip_count = Some(self.emitter.list_length(first)?);
        let (names, mut captured) = captures(body, scope);
        let count = captured.len();
        captured.extend(inputs);
        let empty = body.outputs.iter().map(|o| match &o.ty {
            Some(ty @ Type::Tensor { .. }) => Ok(List::items(Type::Sequence(Box::new(ty.clone())), Vec::new())),
            _ => Err(format!("the type of the output '{}' of the body is not stated", o.name)),
        });
        let carried = empty.collect::<Result<Vec<_>, _>>()?;
        let given =
            Iterations { name: "sequence_map_body", trip_count, cond: None, captured, carried, stated: Vec::new() };
        self.iterate(&given, &mut |converter: &mut Converter<'a>, mut inside: Inside| {
            let inputs = inside.captured.split_off(count);
            let own = inputs.iter().map(|v| converter.item_of(v, &inside.index)).collect::<Result<_, _>>()?;
            let inner = names.iter().cloned().zip(inside.captured).collect();
            let Some(results) = converter.graph(body, own, body.outputs.len(), inner, place) else { return Ok(None) };
            let mut carried = Vec::new();
            for (list, item) in inside.carried.iter().zip(results) {
                let Value::List(list) = list else { return Err("a list is handed on".into()) };
                let ty = type_of(&item).ok_or("the element type of an item is not known")?;
                let value = converter.emitter.list_value(list)?;
                let longer = converter.emitter.call("list.insert", vec![value, item], vec![])?;
                carried.push(List::value(Type::Sequence(Box::new(ty)), longer));
            }
            Ok(Some(Outcome { cond: None, carried, rows: Vec::new() }))
        })
    }

    /// The item of a sequence; any other value as it is.
    fn item_of(&mut self, value: &Value, position: &Value) -> Result<Value, Fail> {
        match value {
            Value::List(list) if matches!(list.ty, Type::Sequence(_)) => self.emitter.item(list, position),
            other => Ok(other.clone()),
        }
    }
}
