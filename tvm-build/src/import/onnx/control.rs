//! Nodes that hold graphs.

use tvm_ir::relax::Leaf;

use super::arms::{Arm, Decision, End, Frame, Made, Reached, Split, names};
use super::convert::{Converter, Place, Scope};
use super::emit::Fail;
use super::fold::Known;
use super::graph::{Graph, Node};
use super::reader::NodeReader;
use super::value::Value;

impl<'a> Converter<'a> {
    /// A conditional. If it is known which branch is taken, only that one.
    pub(super) fn if_node(&mut self, node: &Node, scope: &Scope, place: Place<'_>) -> Option<Made> {
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
            self.refuse::<()>(node, Fail::limit(message));
        }
        let count = node.outputs.len();
        for (name, branch) in [("then_branch", then), ("else_branch", otherwise)] {
            if branch.outputs.len() < count || !branch.inputs.is_empty() {
                return self.refuse(node, format!("{name} must have {count} outputs and no inputs").into());
            }
        }
        if let Some(constant) = cond.as_const().filter(|c| c.dtype().is_bool() && c.len() == 1) {
            let taken = if constant.data().first() == Some(&0) { otherwise } else { then };
            return self.branch(taken, node, scope, place);
        }
        let decision = self.decision(&cond);
        if let Some(taken) = decision.as_ref().and_then(|decision| self.decided(decision)) {
            return self.branch(if taken { then } else { otherwise }, node, scope, place);
        }
        match self.branches(cond, decision, [then, otherwise], node, scope, place) {
            Ok(split) => Some(Made::Split(Box::new(split))),
            Err(fail) => self.refuse(node, fail),
        }
    }

    pub(super) fn refuse<T>(&mut self, node: &Node, mut fail: Fail) -> Option<T> {
        fail.diag.message = format!("{}: {}", node.op, fail.diag.message);
        self.fault(fail, node.span);
        None
    }

    /// What a condition is, if two of them can be told to be one.
    fn decision(&mut self, cond: &Value) -> Option<Decision> {
        if let Some(Known::Exprs(tensor)) = self.emitter.elements.known(cond) {
            let [e] = &tensor.elements[..] else { return None };
            let e = self.emitter.function.bindings().analyzer.simplify(e);
            return e.dtype().is_bool().then_some(Decision::Expr(e));
        }
        match cond {
            Value::Leaf(leaf @ Leaf::Var(_)) => Some(Decision::Value(leaf.clone())),
            Value::Call(call) => Some(Decision::Value(call.bound.get()?.clone())),
            _ => None,
        }
    }

    /// Which branch is taken, if that follows from what extents are, or from the branches that this one is in.
    fn decided(&mut self, decision: &Decision) -> Option<bool> {
        let before =
            |wanted: &Decision| self.decided.iter().find(|(known, _)| known == wanted).map(|(_, taken)| *taken);
        if let Some(taken) = before(decision) {
            return Some(taken);
        }
        let Decision::Expr(e) = decision else { return None };
        let analyzer = &self.emitter.function.bindings().analyzer;
        let contrary = analyzer.simplify(&e.clone().logical_not());
        if let Some(taken) = before(&Decision::Expr(contrary.clone())) {
            return Some(!taken);
        }
        if analyzer.prove(e) { Some(true) } else { analyzer.prove(&contrary).then_some(false) }
    }

    /// The outputs that the node takes of a graph without inputs, over the values that it captures.
    fn branch(&mut self, graph: &Graph, node: &Node, outer: &Scope, place: Place<'_>) -> Option<Made> {
        let captured = graph.captures.iter().filter_map(|name| Some((name.clone(), outer.get(name)?.clone())));
        let span = self.emitter.span;
        let scope = self.enter(graph, Vec::new(), captured.collect())?;
        let outputs: Vec<&str> = graph.outputs.iter().take(node.outputs.len()).map(|o| o.name.as_str()).collect();
        self.open_list(&graph.nodes, &outputs, node, scope, place, span)
    }

    /// The values of a list of nodes under these names, which are the outputs of a node.
    pub(super) fn open_list(
        &mut self,
        nodes: &[Node],
        outputs: &[&str],
        node: &Node,
        scope: Scope,
        place: Place<'_>,
        span: tvm_ir::span::Span,
    ) -> Option<Made> {
        let frame = Frame { nodes, wanted: outputs.to_vec(), place, open: true };
        let mut reached = Reached { scope, ..Reached::default() };
        let split = self.list(&frame, &mut reached);
        self.emitter.span = span;
        match split {
            None => {
                let value = |name: &&str| reached.scope.get(*name).cloned().unwrap_or(Value::Poison(None));
                Some(Made::Values(outputs.iter().map(value).collect()))
            }
            Some(mut split) => {
                self.renamed(&mut split, outputs, node);
                Some(Made::Split(split))
            }
        }
    }

    /// Has the values of these names in branches be the outputs of a node.
    fn renamed(&mut self, split: &mut Split, outputs: &[&str], node: &Node) {
        for arm in &mut split.arms {
            match &mut arm.end {
                End::Dead(_) => {}
                End::Split(inner) => {
                    self.inside(&mut arm.state, |c| c.renamed(inner, outputs, node));
                }
                End::Open(reached) => {
                    let inner = std::mem::take(reached);
                    let value = |name: &&str| inner.scope.get(*name).cloned().unwrap_or(Value::Poison(None));
                    let values = outputs.iter().map(value).collect();
                    let mut scope = Scope::new();
                    let (_, found) = self.inside(&mut arm.state, |c| {
                        c.define_outputs(node, values, &mut scope);
                    });
                    let open = End::Open(Reached { scope, ..Reached::default() });
                    arm.end = if found.is_empty() { open } else { End::Dead(found) };
                }
            }
        }
    }

    /// The start of a graph over its inputs and what it captures; `None`, with an error, if there are too many nodes.
    fn enter(&mut self, graph: &Graph, inputs: Vec<Value>, mut scope: Scope) -> Option<Scope> {
        let span = self.emitter.span;
        if !self.unfold(graph.nodes.len(), span) {
            return None;
        }
        scope.extend(graph.inputs.iter().map(|i| i.name.clone()).zip(inputs));
        for (name, tensor) in &graph.initializers {
            match super::ops::tensor_value(&mut self.emitter, tensor) {
                Ok(value) => scope.insert(name.clone(), value),
                Err(fail) => {
                    let message = fail.diag.message;
                    self.fault(Fail::limit(format!("initializer '{name}': {message}")), span);
                    scope.insert(name.clone(), Value::Poison(None))
                }
            };
        }
        Some(scope)
    }

    /// The first `count` outputs of a graph over its inputs and what it captures; `None` if one of them cannot be
    /// converted.
    pub(super) fn graph(
        &mut self,
        graph: &Graph,
        inputs: Vec<Value>,
        count: usize,
        scope: Scope,
        place: Place<'_>,
    ) -> Option<Vec<Value>> {
        let span = self.emitter.span;
        let mut scope = self.enter(graph, inputs, scope)?;
        let wanted = graph.outputs.iter().take(count).map(|o| o.name.as_str()).collect();
        self.nodes(&graph.nodes, wanted, &mut scope, place);
        self.emitter.span = span;
        let outputs: Vec<Value> =
            graph.outputs.iter().take(count).filter_map(|o| scope.get(&o.name).cloned()).collect();
        let whole = outputs.len() == count && !outputs.iter().any(|v| matches!(v, Value::Poison(_)));
        whole.then_some(outputs)
    }

    /// The branches of a conditional, side by side.
    fn branches(
        &mut self,
        cond: Value,
        decision: Option<Decision>,
        graphs: [&Graph; 2],
        node: &Node,
        scope: &Scope,
        place: Place<'_>,
    ) -> Result<Split, Fail> {
        let cond = self.emitter.scalar_of(&cond)?;
        let cond = self.emitter.bind(&cond)?;
        for name in graphs.iter().flat_map(|graph| &graph.captures) {
            if let Some(value) = scope.get(name) {
                self.bind_ahead(value);
            }
        }
        let mut arms: Vec<Arm> = Vec::new();
        for (name, graph, taken) in [("then_branch", graphs[0], true), ("else_branch", graphs[1], false)] {
            let decided = decision.clone().map(|decision| (decision, taken));
            let mut arm = self.arm(name, decided);
            let (made, found) = self.inside(&mut arm.state, |c| match c.branch(graph, node, scope, place) {
                Some(Made::Split(split)) => End::Split(split),
                other => {
                    let values = match other {
                        Some(Made::Values(values)) => values,
                        _ => Vec::new(),
                    };
                    let mut reached = Reached::default();
                    c.define_outputs(node, values, &mut reached.scope);
                    End::Open(reached)
                }
            });
            arm.end = if found.is_empty() { made } else { End::Dead(found) };
            arms.push(arm);
        }
        Ok(Split { path: node.path.clone(), span: node.span, cond, arms })
    }

    /// The values of a node under its outputs' names.
    pub(super) fn define_outputs(&mut self, node: &Node, values: Vec<Value>, scope: &mut Scope) {
        let mut values = values.into_iter();
        let mut given = Vec::new();
        for name in &node.outputs {
            let value = values.next();
            if !name.is_empty() {
                given.extend(value.or_else(|| Some(Value::Poison(self.declared_info(name)))));
            }
        }
        self.define(names(&node.outputs), given, node.span, scope);
    }
}
