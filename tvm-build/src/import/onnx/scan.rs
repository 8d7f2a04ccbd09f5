//! `Scan` and `Loop`.

use std::rc::Rc;

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};
use tvm_ir::relax::{Leaf, StructInfo};

use super::convert::{Converter, Place, Scope};
use super::emit::{Fail, scalar};
use super::graph::{Dim, Graph, Node, Type};
use super::iterate::{Inside, Iterations, Outcome};
use super::list::{List, join};
use super::reader::NodeReader;
use super::value::{Value, known_dims};

/// The attributes of a `Scan`.
struct ScanAttrs<'a> {
    body: &'a Graph,
    reverse_in: Vec<bool>,
    reverse_out: Vec<bool>,
    axes_in: Vec<i64>,
    axes_out: Vec<i64>,
}

impl<'a> Converter<'a> {
    /// `Loop`, of any version: they differ in the types that may be carried.
    pub(super) fn loop_node(&mut self, node: &Node, scope: &Scope, place: Place<'_>) -> Option<Vec<Value>> {
        let reader = NodeReader::new(node, place.caller);
        match self.loop_outputs(&reader, scope, place) {
            Ok(outputs) => outputs,
            Err(fail) => self.refuse(node, fail),
        }
    }

    fn loop_outputs(
        &mut self,
        reader: &NodeReader<'_>,
        scope: &Scope,
        place: Place<'_>,
    ) -> Result<Option<Vec<Value>>, Fail> {
        let node = reader.node();
        let get = |name: &str| scope.get(name).cloned().ok_or_else(|| format!("'{name}' is not known"));
        let body = reader.graph("body")?.ok_or("attribute 'body' is missing")?;
        let trip_count = reader.optional_input(0).map(get).transpose()?;
        let cond = reader.optional_input(1).map(get).transpose()?;
        let count = reader.input_count().saturating_sub(2);
        let carried =
            (0..count).map(|k| get(reader.input(k + 2, "a carried value")?)).collect::<Result<Vec<_>, _>>()?;
        self.read_all(node, reader);
        let rows = (body.outputs.len()).checked_sub(1 + count).filter(|_| body.inputs.len() == 2 + count);
        let Some(rows) = rows.filter(|rows| node.outputs.len() <= count + rows) else {
            return Err(format!(
                "the body has {} inputs and {} outputs; the node gives {count} values to carry and takes {} results",
                body.inputs.len(),
                body.outputs.len(),
                node.outputs.len()
            )
            .into());
        };
        let types = body.inputs.iter().skip(2).map(|i| i.ty.as_ref());
        let carried = carried.into_iter().zip(types).map(|(value, ty)| refined(value, ty)).collect();
        let (names, captured) = captures(body, scope);
        let stated = body.outputs.iter().skip(1).take(count).map(|o| fixed(o.ty.as_ref())).collect();
        let given = Iterations { name: "loop_body", trip_count, cond, captured, carried, stated };
        let index_rank = body.inputs.first().and_then(|i| fixed(i.ty.as_ref())).map_or(0, |dims| dims.len());
        let first = node.outputs.len().saturating_sub(count).min(rows);
        self.iterate(&given, &mut |converter: &mut Converter<'a>, inside: Inside| {
            let index = match inside.index.known_ints() {
                Some(values) if index_rank == 1 => Value::ints(values),
                _ => inside.index,
            };
            // An iteration runs only if the condition holds.
            let holds = scalar(1.0, DType::BOOL).ok_or("there are no truth values")?;
            let inputs = [index, holds.into()].into_iter().chain(inside.carried).collect();
            let scope = names.iter().cloned().zip(inside.captured).collect();
            let Some(mut outputs) = converter.graph(body, inputs, 1 + count + first, scope, place) else {
                return Ok(None);
            };
            let rows = outputs.split_off(1 + count);
            let carried = outputs.split_off(1);
            Ok(Some(Outcome { cond: outputs.pop(), carried, rows }))
        })
    }

    /// `Scan` of version 9 and later, and the batched one of version 8.
    pub(super) fn scan_node(&mut self, node: &Node, scope: &Scope, place: Place<'_>) -> Option<Vec<Value>> {
        let reader = NodeReader::new(node, place.caller);
        let batched = place.opsets.get("").is_some_and(|v| *v < 9);
        let outputs = if batched { self.scan_batched(&reader, scope, place) } else { self.scan(&reader, scope, place) };
        match outputs {
            Ok(outputs) => outputs,
            Err(fail) => self.refuse(node, fail),
        }
    }

    fn scan(&mut self, reader: &NodeReader<'_>, scope: &Scope, place: Place<'_>) -> Result<Option<Vec<Value>>, Fail> {
        let get = |name: &str| scope.get(name).cloned().ok_or_else(|| format!("'{name}' is not known"));
        let values =
            (0..reader.input_count()).map(|i| get(reader.input(i, "an input")?)).collect::<Result<Vec<_>, _>>()?;
        let directions = |name, count| flags(reader.ints(name)?, name, count);
        let (body, inputs, states, rows) = scan_body(reader, values.len())?;
        let axes = |name: &str, count: usize| match reader.ints(name)? {
            None => Ok(vec![0; count]),
            Some(axes) if axes.len() == count => Ok(axes.to_vec()),
            Some(axes) => Err(format!("attribute '{name}' has {} elements, expected {count}", axes.len())),
        };
        let attrs = ScanAttrs {
            body,
            reverse_in: directions("scan_input_directions", inputs)?,
            reverse_out: directions("scan_output_directions", rows)?,
            axes_in: axes("scan_input_axes", inputs)?,
            axes_out: axes("scan_output_axes", rows)?,
        };
        self.read_all(reader.node(), reader);
        let (initial, scanned) = values.split_at(states);
        let (names, captured) = captures(body, scope);
        self.scan_over(&attrs, (initial, scanned, None), (&names, captured), place)
    }

    /// The states after the last step, then the stacks. After as many steps as `steps` says, an integer scalar, states stay
    /// and rows are zeros.
    fn scan_over(
        &mut self,
        attrs: &ScanAttrs<'_>,
        (initial, scanned, steps): (&[Value], &[Value], Option<Value>),
        (names, mut captured): (&[String], Vec<Value>),
        place: Place<'_>,
    ) -> Result<Option<Vec<Value>>, Fail> {
        let (count, states) = (captured.len(), initial.len());
        let mut axes = Vec::new();
        let mut length: Option<PrimExpr> = None;
        for (x, axis) in scanned.iter().zip(&attrs.axes_in) {
            if let Value::Poison(_) = x {
                return Ok(None);
            }
            let dims = known_dims(x, "a scanned input")?;
            let at = normal(*axis, dims.len())?;
            let extent = &dims[at];
            match &length {
                None => length = Some(extent.clone()),
                Some(n) if extent == n => {}
                Some(n) => {
                    if let (Some(a), Some(b)) = (n.as_int(), extent.as_int()) {
                        return Err(format!("the inputs are scanned for {a} and for {b} steps").into());
                    }
                    if !self.emitter.function.bindings().analyzer.prove_equal(n, extent) {
                        let message = "the inputs are scanned for numbers of steps that are not known to be the same";
                        return Err(Fail::limit(message));
                    }
                }
            }
            axes.push(i64::try_from(at).unwrap_or(i64::MAX));
        }
        let length = length.ok_or("there is no scanned input")?;
        captured.extend(scanned.iter().cloned());
        let bounded = steps.is_some();
        if let Some(steps) = steps {
            captured.push(self.checked_steps(steps, &length)?);
        }
        let given = Iterations {
            name: "scan_body",
            trip_count: Some(Value::int(length.clone())),
            cond: None,
            captured,
            carried: initial.to_vec(),
            stated: attrs.body.outputs.iter().take(states).map(|o| fixed(o.ty.as_ref())).collect(),
        };
        let outputs = self.iterate(&given, &mut |converter: &mut Converter<'a>, mut inside: Inside| {
            let mut scanned = inside.captured.split_off(count);
            let steps = if bounded { scanned.pop() } else { None };
            let index = index_of(&inside.index)?;
            let runs = match &steps {
                Some(steps) => {
                    Some(converter.emitter.call("less", vec![inside.index.clone(), steps.clone()], vec![])?)
                }
                None => None,
            };
            let before = inside.carried.clone();
            let mut inputs = inside.carried;
            for ((x, axis), reverse) in scanned.into_iter().zip(&axes).zip(&attrs.reverse_in) {
                let last = || PrimExpr::binary(BinOp::Sub, length.clone() - 1, index.clone());
                let at = if *reverse { last() } else { index.clone() };
                let at = match (&steps, &runs) {
                    // From the last of these steps on; what is behind them is not used.
                    (Some(steps), Some(runs)) if *reverse => {
                        let one = scalar(1.0, DType::I64).ok_or("there are no integers")?;
                        let mut at = steps.clone();
                        for less in [&inside.index, &one.into()] {
                            at = converter.emitter.call("subtract", vec![at, less.clone()], vec![])?;
                        }
                        let none = scalar(0.0, DType::I64).ok_or("there are no integers")?;
                        converter.emitter.call("where", vec![runs.clone(), at, none.into()], vec![])?
                    }
                    _ => Value::Leaf(Leaf::Prim(at)),
                };
                inputs.push(converter.emitter.call("take", vec![x, at], vec![("axis", (*axis).into())])?);
            }
            let scope = names.iter().cloned().zip(inside.captured).collect();
            let all = attrs.body.outputs.len();
            let Some(mut outputs) = converter.graph(attrs.body, inputs, all, scope, place) else { return Ok(None) };
            let mut rows = outputs.split_off(states);
            if let Some(runs) = runs {
                for (new, old) in outputs.iter_mut().zip(before) {
                    *new = converter.emitter.call("where", vec![runs.clone(), new.clone(), old], vec![])?;
                }
                for row in &mut rows {
                    let dtype = row.tensor_info().and_then(|t| t.dtype).ok_or("the type of a row is not known")?;
                    let zero = scalar(0.0, dtype).ok_or_else(|| format!("there are no zeros of {dtype}"))?;
                    *row = converter.emitter.call("where", vec![runs.clone(), row.clone(), zero.into()], vec![])?;
                }
            }
            Ok(Some(Outcome { cond: None, carried: outputs, rows }))
        })?;
        let Some(mut outputs) = outputs else { return Ok(None) };
        for (k, stack) in outputs.iter_mut().skip(states).enumerate() {
            if attrs.reverse_out[k] {
                *stack = self.emitter.call("flip", vec![stack.clone()], vec![("axis", 0i64.into())])?;
            }
            let rank = stack.tensor_info().and_then(|t| t.dims.rank()).ok_or("the rank of a stack is not known")?;
            let axis = normal(attrs.axes_out[k], rank)?;
            if axis != 0 {
                let to = |a: usize| {
                    i64::try_from(if a < axis {
                        a + 1
                    } else if a == axis {
                        0
                    } else {
                        a
                    })
                };
                let order = (0..rank).map(to).collect::<Result<Vec<_>, _>>().map_err(|_| "the rank is too large")?;
                *stack = self.emitter.call("permute_dims", vec![stack.clone()], vec![("axes", order.into())])?;
            }
        }
        Ok(Some(outputs))
    }

    /// Inputs are `[batch, step, …]`: a loop over the batch around the one over the steps.
    fn scan_batched(
        &mut self,
        reader: &NodeReader<'_>,
        scope: &Scope,
        place: Place<'_>,
    ) -> Result<Option<Vec<Value>>, Fail> {
        let get = |name: &str| scope.get(name).cloned().ok_or_else(|| format!("'{name}' is not known"));
        let lengths = reader.optional_input(0).map(get).transpose()?;
        let values =
            (1..reader.input_count()).map(|i| get(reader.input(i, "an input")?)).collect::<Result<Vec<_>, _>>()?;
        let (body, inputs, states, rows) = scan_body(reader, values.len())?;
        let attrs = ScanAttrs {
            body,
            reverse_in: flags(reader.ints("directions")?, "directions", inputs)?,
            reverse_out: vec![false; rows],
            axes_in: vec![0; inputs],
            axes_out: vec![0; rows],
        };
        self.read_all(reader.node(), reader);
        if values.iter().any(|v| matches!(v, Value::Poison(_))) {
            return Ok(None);
        }
        let batch = known_dims(values.first().ok_or("it has no inputs")?, "an input")?.first().cloned();
        let batch = batch.ok_or("the inputs have no batch axis")?;
        let (names, mut captured) = captures(body, scope);
        let count = captured.len();
        let bounded = lengths.is_some();
        for value in values.into_iter().chain(lengths) {
            captured.push(self.of_batch(value, &batch)?);
        }
        let given = Iterations {
            name: "scan_batch",
            trip_count: Some(Value::int(batch)),
            cond: None,
            captured,
            carried: Vec::new(),
            stated: Vec::new(),
        };
        self.iterate(&given, &mut |converter: &mut Converter<'a>, mut inside: Inside| {
            let values = inside.captured.split_off(count);
            let at = Value::Leaf(Leaf::Prim(index_of(&inside.index)?));
            let mut own = Vec::new();
            for x in values {
                own.push(converter.emitter.call("take", vec![x, at.clone()], vec![("axis", 0i64.into())])?);
            }
            let steps = if bounded { own.pop() } else { None };
            let (initial, scanned) = own.split_at(states);
            let given = (initial, scanned, steps);
            let results = converter.scan_over(&attrs, given, (&names, inside.captured), place)?;
            Ok(results.map(|rows| Outcome { cond: None, carried: Vec::new(), rows }))
        })
    }

    /// A value whose first axis is the batch: compared at run time where that is not known.
    fn of_batch(&mut self, value: Value, batch: &PrimExpr) -> Result<Value, Fail> {
        let mut dims = known_dims(&value, "an input")?;
        let dtype = value.tensor_info().and_then(|t| t.dtype).ok_or("the type of an input is not known")?;
        let own = dims.first_mut().ok_or("an input has no batch axis")?;
        if self.emitter.function.bindings().analyzer.prove_equal(own, batch) {
            return Ok(value);
        }
        if let (Some(a), Some(b)) = (own.as_int(), batch.as_int()) {
            return Err(format!("the batch axes of the inputs are {b} and {a} long").into());
        }
        *own = batch.clone();
        let leaf = self.emitter.bind(&value)?;
        Ok(self.emitter.function.bindings().match_cast(leaf, StructInfo::tensor(dims, dtype)).into())
    }

    /// An element of `sequence_lens` as `int64`, which must be from 0 to `length`: else an error at run time.
    fn checked_steps(&mut self, steps: Value, length: &PrimExpr) -> Result<Value, Fail> {
        let emitter = &mut self.emitter;
        let steps = emitter.call("astype", vec![steps], vec![("dtype", AttrValue::DType(DType::I64))])?;
        // Numbers below zero must not be counted from the end.
        let (zero, beyond) = (scalar(0.0, DType::I64).ok_or("there are no integers")?, length.clone() + 1);
        let negative = emitter.call("less", vec![steps.clone(), zero.into()], vec![])?;
        let beyond = Value::int(beyond);
        let steps = emitter.call("where", vec![negative, beyond.clone(), steps], vec![])?;
        emitter.call("checked_index", vec![steps, beyond], vec![])
    }

    /// Diagnostics for what nothing has read.
    pub(super) fn read_all(&mut self, node: &Node, reader: &NodeReader<'_>) {
        for message in reader.unread() {
            self.refuse::<()>(node, message.into());
        }
    }
}

/// Body, scanned inputs, states and stacks of a `Scan` with this many values.
fn scan_body<'n>(reader: &NodeReader<'n>, values: usize) -> Result<(&'n Graph, usize, usize, usize), String> {
    let body = reader.graph("body")?.ok_or("attribute 'body' is missing")?;
    let inputs = reader.int("num_scan_inputs")?.ok_or("attribute 'num_scan_inputs' is missing")?;
    let inputs = usize::try_from(inputs).ok().filter(|n| (1..=values).contains(n));
    let inputs = inputs.ok_or_else(|| format!("attribute 'num_scan_inputs' must be from 1 to {values}"))?;
    let states = values - inputs;
    let rows = body.outputs.len().checked_sub(states).filter(|_| body.inputs.len() == values);
    let rows = rows.ok_or_else(|| {
        let (n, m) = (body.inputs.len(), body.outputs.len());
        format!("the body has {n} inputs and {m} outputs; the node gives {states} states and {inputs} scanned values")
    })?;
    Ok((body, inputs, states, rows))
}

/// Names and values of what a graph uses of outside.
pub(super) fn captures(graph: &Graph, scope: &Scope) -> (Vec<String>, Vec<Value>) {
    graph.captures.iter().filter_map(|name| Some((name.clone(), scope.get(name)?.clone()))).unzip()
}

/// A list of no known items with the type that the body states for it.
fn refined(value: Value, ty: Option<&Type>) -> Value {
    match (&value, ty) {
        (Value::List(list), Some(ty)) if list.known().is_none_or(<[Value]>::is_empty) => match join(&list.ty, ty) {
            Ok(_) => Value::List(Rc::new(List { ty: ty.clone(), content: list.content.clone(), open: list.open })),
            Err(_) => value,
        },
        _ => value,
    }
}

/// The extents that a type states.
fn fixed(ty: Option<&Type>) -> Option<Vec<Option<i64>>> {
    let Some(Type::Tensor { shape: Some(dims), .. }) = ty else { return None };
    let extent = |d: &Dim| match d {
        Dim::Fixed(n) => i64::try_from(*n).ok(),
        Dim::Named(_) | Dim::Unknown => None,
    };
    Some(dims.iter().map(extent).collect())
}

fn flags(values: Option<&[i64]>, name: &str, count: usize) -> Result<Vec<bool>, String> {
    let Some(values) = values else { return Ok(vec![false; count]) };
    if values.len() != count || values.iter().any(|v| !(0..=1).contains(v)) {
        return Err(format!("attribute '{name}' must be {count} numbers that are 0 or 1, not {values:?}"));
    }
    Ok(values.iter().map(|v| *v == 1).collect())
}

fn normal(axis: i64, rank: usize) -> Result<usize, String> {
    let n = i64::try_from(rank).unwrap_or(i64::MAX);
    let at = if axis < 0 { axis.saturating_add(n) } else { axis };
    let at = usize::try_from(at).ok().filter(|a| *a < rank);
    at.ok_or_else(|| format!("axis {axis} is out of range for rank {rank}"))
}

fn index_of(index: &Value) -> Result<PrimExpr, Fail> {
    index.known_ints().and_then(|mut values| values.pop()).ok_or_else(|| "there is no index".into())
}
