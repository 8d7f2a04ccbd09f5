//! Nodes that hold graphs.

use tvm_ir::diag::Diag;
use tvm_ir::relax::{Body, Dims, Leaf, StructInfo, TensorInfo};

use super::convert::{Converter, Place, Scope};
use super::emit::Fail;
use super::graph::{Dim, Graph, Node, Type};
use super::list::{self, List, type_of};
use super::reader::NodeReader;
use super::value::Value;

impl<'a> Converter<'a> {
    /// A conditional. If the condition is a constant, only the branch that is taken.
    pub(super) fn if_node(&mut self, node: &Node, scope: &Scope, place: Place<'_>) -> Option<Vec<Value>> {
        let reader = NodeReader::new(node, place.caller);
        let operands = || -> Result<(Value, &Graph, &Graph), String> {
            let cond = scope.get(reader.input(0, "cond")?).cloned().ok_or("the condition is not known")?;
            let branch = |name| reader.graph(name)?.ok_or_else(|| format!("attribute '{name}' is missing"));
            Ok((cond, branch("then_branch")?, branch("else_branch")?))
        };
        let (cond, then, otherwise) = match operands() {
            Ok(operands) => operands,
            Err(message) => return self.refuse(node, message.into()),
        };
        for message in reader.unread() {
            self.refuse::<()>(node, message.into());
        }
        let count = node.outputs.len();
        for (name, branch) in [("then_branch", then), ("else_branch", otherwise)] {
            if branch.outputs.len() < count || !branch.inputs.is_empty() {
                return self.refuse(node, format!("{name} must have {count} outputs and no inputs").into());
            }
        }
        if let Some(constant) = cond.as_const().filter(|c| c.dtype().is_bool() && c.len() == 1) {
            let taken = if constant.data().first() == Some(&0) { otherwise } else { then };
            return self.branch(taken, count, scope, place);
        }
        match self.conditional(cond, [then, otherwise], count, scope, place) {
            Ok(outputs) => outputs,
            Err(fail) => self.refuse(node, fail),
        }
    }

    pub(super) fn refuse<T>(&mut self, node: &Node, Fail(diag): Fail) -> Option<T> {
        let diag = diag.at(node.span);
        self.faults.push(Diag { message: format!("{}: {}", node.op, diag.message), ..diag });
        None
    }

    /// The outputs of a graph over the values that it captures; `None` if one of them cannot be converted.
    fn branch(&mut self, graph: &Graph, count: usize, outer: &Scope, place: Place<'_>) -> Option<Vec<Value>> {
        let captured = graph.captures.iter().filter_map(|name| Some((name.clone(), outer.get(name)?.clone())));
        self.graph(graph, Vec::new(), count, captured.collect(), place)
    }

    /// The first `count` outputs of a graph over its inputs and what it captures; `None` if one of them cannot be
    /// converted.
    pub(super) fn graph(
        &mut self,
        graph: &Graph,
        inputs: Vec<Value>,
        count: usize,
        mut scope: Scope,
        place: Place<'_>,
    ) -> Option<Vec<Value>> {
        let span = self.emitter.span;
        if !self.unfold(graph.nodes.len()) {
            self.faults.push(Diag::error(span, "the graphs in this node unfold to more nodes than Limits::items"));
            return None;
        }
        scope.extend(graph.inputs.iter().map(|i| i.name.clone()).zip(inputs));
        for (name, tensor) in &graph.initializers {
            match super::ops::tensor_value(&mut self.emitter, tensor) {
                Ok(value) => scope.insert(name.clone(), value),
                Err(fail) => {
                    let message = fail.0.message;
                    self.faults.push(Diag::error(span, format!("initializer '{name}': {message}")));
                    scope.insert(name.clone(), Value::Poison(None))
                }
            };
        }
        self.nodes(&graph.nodes, &mut scope, place);
        self.emitter.span = span;
        let outputs: Vec<Value> =
            graph.outputs.iter().take(count).filter_map(|o| scope.get(&o.name).cloned()).collect();
        let whole = outputs.len() == count && !outputs.iter().any(|v| matches!(v, Value::Poison(_)));
        whole.then_some(outputs)
    }

    fn conditional(
        &mut self,
        cond: Value,
        branches: [&Graph; 2],
        count: usize,
        scope: &Scope,
        place: Place<'_>,
    ) -> Result<Option<Vec<Value>>, Fail> {
        let span = self.emitter.span;
        let cond = self.emitter.scalar_of(&cond)?;
        let cond = self.emitter.bind(&cond)?;
        // What a branch uses is bound before it: a value bound in one branch is not there in the other.
        for name in branches.iter().flat_map(|graph| &graph.captures) {
            if let Some(value) = scope.get(name) {
                self.emitter.bind(value)?;
            }
        }
        let mut bodies: Vec<Body> = Vec::new();
        let mut infos: Vec<Vec<StructInfo>> = Vec::new();
        let mut types: Vec<Vec<Option<Type>>> = Vec::new();
        let mut whole = true;
        for graph in branches {
            let fork = self.emitter.function.fork();
            let outer = std::mem::replace(&mut self.emitter.function, fork);
            let elements = self.emitter.elements.scope(true);
            let outputs = self.branch(graph, count, scope, place);
            self.emitter.span = span;
            let leaves: Result<Vec<Leaf>, Fail> =
                outputs.iter().flatten().map(|output| self.emitter.bind(output)).collect();
            let fork = std::mem::replace(&mut self.emitter.function, outer);
            self.emitter.elements = elements;
            let leaves = leaves?;
            whole &= outputs.is_some();
            types.push(outputs.iter().flatten().map(type_of).collect());
            infos.push(leaves.iter().map(|leaf| leaf.info().unwrap_or(StructInfo::Object)).collect());
            let result = match <[Leaf; 1]>::try_from(leaves) {
                Ok([only]) => only,
                Err(leaves) => Leaf::Tuple(leaves),
            };
            bodies.push(self.emitter.function.join(fork, result));
        }
        let (Some(otherwise), Some(then), true) = (bodies.pop(), bodies.pop(), whole) else { return Ok(None) };
        let joined = infos[0].iter().zip(&infos[1]).map(|(a, b)| join(a, b)).collect::<Result<Vec<_>, _>>()?;
        self.emitter.function.set_span(span);
        let values = if let [info] = &joined[..] {
            vec![self.emitter.function.if_else(cond, then, otherwise, info.clone()).into()]
        } else {
            let tuple = self.emitter.function.if_else(cond, then, otherwise, StructInfo::Tuple(joined));
            self.emitter.fields(&tuple.into())?
        };
        let mut known = Vec::with_capacity(values.len());
        for (value, (a, b)) in values.into_iter().zip(infos[0].iter().zip(&infos[1])) {
            known.push(self.alike(value, a, b)?);
        }
        let typed = known.into_iter().zip(types[0].iter().zip(&types[1])).map(|(value, ty)| match ty {
            (Some(a @ (Type::Sequence(_) | Type::Optional(_))), Some(b)) => Ok(List::value(list::join(a, b)?, value)),
            _ => Ok(value),
        });
        Ok(Some(typed.collect::<Result<_, String>>()?))
    }
}

impl Converter<'_> {
    /// A tensor that is one or the other, of the same rank: the extents that both have are known, the others get new
    /// symbolic variables.
    fn alike(&mut self, value: Value, a: &StructInfo, b: &StructInfo) -> Result<Value, Fail> {
        let dims = |info: &StructInfo| info.as_tensor().and_then(|t| Some(t.dims.known()?.to_vec()));
        let (Some(a), Some(b)) = (dims(a), dims(b)) else { return Ok(value) };
        if a == b || a.len() != b.len() || !a.iter().zip(&b).any(|(a, b)| a == b) {
            return Ok(value);
        }
        let mut joined = Vec::with_capacity(a.len());
        for (a, b) in a.into_iter().zip(b) {
            joined.push(if a == b { a } else { self.symbols.dim(&Dim::Unknown)? });
        }
        self.emitter.cast_dims(&value, joined, "lv")
    }
}

/// What is known of a value that is one or the other.
fn join(a: &StructInfo, b: &StructInfo) -> Result<StructInfo, String> {
    if a == b {
        return Ok(a.clone());
    }
    match (a, b) {
        (StructInfo::Tensor(a), StructInfo::Tensor(b)) if a.dtype == b.dtype => {
            let dims = match (a.dims.rank(), b.dims.rank()) {
                (Some(m), Some(n)) if m == n => Dims::Rank(m),
                _ => Dims::Unknown,
            };
            Ok(StructInfo::Tensor(TensorInfo { dims, dtype: a.dtype }))
        }
        _ => Err("the branches give values of different types".to_owned()),
    }
}
