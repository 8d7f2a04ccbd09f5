//! From a checked model to a Relax module.

use std::collections::{BTreeMap, BTreeSet};

use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::prim::Var;
use tvm_ir::relax::{Dims, Function, Leaf, StructInfo, TensorInfo};
use tvm_ir::span::Span;

use super::arms::{Decision, Frame, Made, Reached, Split};
use super::custom::{self, CustomOps};
use super::cx::{OpCx, Outputs};
use super::dims::{Symbols, identifier};
use super::emit::{Emitter, Fail};
use super::graph::{self, Graph, Model, Node, Type, ValueInfo};
use super::limits::Limits;
use super::list::typed;
use super::ops::{self, Found};
use super::places::{Faults, MAX_SHOWN, shown};
use super::reader::{Caller, NodeReader};
use super::value::{Value, dtype};

/// Deepest nesting of functions of the model that use functions.
const MAX_FUNCTION_DEPTH: u32 = 32;

/// Nodes that functions and nested graphs may unfold to: so many, and so many for each node of the file.
const MAX_UNFOLDED: (u64, u64) = (1 << 14, 256);

/// The nodes that a file holds, in its graph, its functions and the graphs in them.
fn nodes_of(model: &Model) -> u64 {
    fn count(nodes: &[Node]) -> u64 {
        let inner = nodes.iter().flat_map(|n| &n.attributes).flat_map(|a| a.value.graphs());
        nodes.len() as u64 + inner.map(|g| count(&g.nodes)).sum::<u64>()
    }
    count(&model.graph.nodes) + model.functions.values().map(|f| count(&f.nodes)).sum::<u64>()
}

/// The module of a model: one function, `main`; and warnings. Errors are all nodes that cannot be converted.
pub(super) fn convert(model: &Model, limits: &Limits, custom: &CustomOps) -> Result<(IRModule, Diags), Diags> {
    let graph = &model.graph;
    let mut converter = Converter {
        model,
        custom,
        symbols: Symbols::of_inputs(graph.inputs.iter()),
        emitter: Emitter::new(limits.tensor_elements),
        declared: &graph.value_info,
        entry: BTreeSet::new(),
        faults: Faults::default(),
        limits: Faults::default(),
        warnings: Vec::new(),
        arms: 0,
        copies: 0,
        decided: Vec::new(),
        unsupported: Vec::new(),
        inlined: 0,
        max_inlined: limits.items.min(MAX_UNFOLDED.0 + MAX_UNFOLDED.1 * nodes_of(model)),
    };
    let function = converter.main(graph);
    converter.report_unsupported();
    let function = match function {
        Some(function) if converter.faults.is_empty() && converter.limits.is_empty() => function,
        _ => {
            let mut found = converter.faults;
            found.extend(converter.limits);
            return Err(found.into_diags());
        }
    };
    let mut module = IRModule::new();
    module.funcs = std::mem::take(&mut converter.emitter.functions);
    module.funcs.insert("main".into(), Func::Relax(function));
    Ok((module, Diags(converter.warnings)))
}

/// Values by their names in a graph or function.
pub(super) type Scope = BTreeMap<String, Value>;

/// Where a node stands: what its operator names mean and what its references mean.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) opsets: &'a BTreeMap<String, i64>,
    pub(super) caller: &'a Caller,
    pub(super) depth: u32,
}

/// Converts a model; in `control` the nodes that hold graphs.
pub(super) struct Converter<'a> {
    pub(super) model: &'a Model,
    pub(super) custom: &'a CustomOps,
    pub(super) symbols: Symbols,
    pub(super) emitter: Emitter,
    /// Types that the main graph states for its values.
    pub(super) declared: &'a BTreeMap<String, Type>,
    /// Symbolic variables that inputs tell.
    pub(super) entry: BTreeSet<Var>,
    pub(super) faults: Faults,
    /// Errors in branches that are errors of the model, taken or not.
    pub(super) limits: Faults,
    pub(super) warnings: Vec<Diag>,
    /// How many branches of conditionals the one that is built is in.
    pub(super) arms: usize,
    /// Nodes that were converted again for another branch.
    pub(super) copies: usize,
    /// What the conditions of these branches are.
    pub(super) decided: Vec<(Decision, bool)>,
    /// Node and the sentence that says what it is.
    unsupported: Vec<(Span, String, String)>,
    inlined: u64,
    max_inlined: u64,
}

impl<'a> Converter<'a> {
    /// The function of the main graph; `None` with at least one diagnostic if it has no result.
    fn main(&mut self, graph: &'a Graph) -> Option<Function> {
        let mut scope = Scope::new();
        for (name, tensor) in &graph.initializers {
            let value = match ops::tensor_value(&mut self.emitter, tensor) {
                Ok(value) => value,
                Err(fail) => {
                    let message = fail.diag.message;
                    self.faults.push(Diag::error(self.model.span, format!("initializer '{name}': {message}")));
                    Value::Poison(None)
                }
            };
            scope.insert(name.clone(), value);
        }
        let mut params = 0i64;
        self.emitter.function.set_span(self.model.span);
        // An input that an initializer names too is that constant: the value to use unless the caller has another.
        let constants: BTreeSet<&str> = graph.initializers.iter().map(|(name, _)| name.as_str()).collect();
        for input in graph.inputs.iter().filter(|i| !constants.contains(i.name.as_str())) {
            let name = identifier(&input.name, "input_");
            match self.param_info(input) {
                Ok(info) => {
                    let param = self.emitter.function.param(&name, info).into();
                    scope.insert(input.name.clone(), typed(param, input.ty.as_ref()));
                    params += 1;
                }
                Err(message) => {
                    self.faults.push(Diag::error(self.model.span, format!("input '{}': {message}", input.name)));
                    scope.insert(input.name.clone(), Value::Poison(None));
                }
            }
        }
        let caller = Caller::new();
        let place = Place { opsets: &self.model.opsets, caller: &caller, depth: 0 };
        let wanted = graph.outputs.iter().map(|o| o.name.as_str()).collect();
        self.nodes(&graph.nodes, wanted, &mut scope, place);
        let outputs: Vec<(&ValueInfo, Value)> =
            graph.outputs.iter().filter_map(|o| Some((o, scope.get(&o.name).cloned()?))).collect();
        if outputs.is_empty() {
            self.faults.push(Diag::error(self.model.span, "the model has no outputs"));
        }
        if !self.faults.is_empty() || !self.limits.is_empty() || !self.unsupported.is_empty() {
            return None;
        }
        self.emitter.span = self.model.span;
        let outputs: Result<Vec<Value>, Fail> =
            outputs.into_iter().map(|(output, value)| self.declared_output(output, value)).collect();
        let result = match outputs.and_then(|outputs| self.emitter.output(&outputs)) {
            Ok(result) => result,
            Err(fail) => {
                self.fault(fail, self.model.span);
                return None;
            }
        };
        let mut function = std::mem::take(&mut self.emitter.function);
        function.set_span(self.model.span);
        function.attr("global_symbol", "main");
        function.attr("num_input", params);
        function.finish_bound(Leaf::Var(result)).map_err(|diag| self.faults.push(diag)).ok()
    }

    fn param_info(&mut self, input: &ValueInfo) -> Result<StructInfo, String> {
        let ty = input.ty.as_ref().ok_or("an input of the model must have a type")?;
        let info = self.struct_info(ty)?;
        self.emitter.check_size(&info)?;
        info.visit_exprs(&mut |dim| {
            if let Some(var) = dim.as_var() {
                self.entry.insert(var.clone());
                self.emitter.function.bindings().analyzer.assume_nonnegative(var);
            }
        });
        Ok(info)
    }

    fn struct_info(&mut self, ty: &Type) -> Result<StructInfo, String> {
        match ty {
            Type::Tensor { dtype: element, shape } => {
                let dims = match shape {
                    Some(dims) => Dims::Known(dims.iter().map(|d| self.symbols.dim(d)).collect::<Result<_, _>>()?),
                    None => Dims::Unknown,
                };
                Ok(StructInfo::Tensor(TensorInfo { dims, dtype: Some(dtype(*element)?) }))
            }
            Type::Sequence(_) | Type::Optional(_) => Ok(StructInfo::Object),
            Type::Other(kind) => Err(format!("values of the kind '{kind}' are not supported")),
        }
    }

    /// Notes why something cannot be converted.
    pub(super) fn fault(&mut self, Fail { diag, limit }: Fail, span: Span) {
        let diag = diag.at(span);
        if limit && self.arms > 0 {
            self.limits.push_once(diag);
        } else {
            self.faults.push(diag);
        }
    }

    /// Converts nodes in order; of their outputs those that others use, or that are wanted, are added to the scope.
    pub(super) fn nodes(&mut self, nodes: &[Node], wanted: Vec<&str>, scope: &mut Scope, place: Place<'_>) {
        let frame = Frame { nodes, wanted, place, open: false };
        let mut reached = Reached { scope: std::mem::take(scope), ..Reached::default() };
        if let Some(split) = self.list(&frame, &mut reached) {
            self.join(*split, &frame.wanted, &mut reached.scope);
        }
        *scope = reached.scope;
    }

    /// Converts one node; its outputs are added to the scope, unless it opens branches.
    pub(super) fn step(&mut self, frame: &Frame<'_>, at: usize, reached: &mut Reached) -> Option<Box<Split>> {
        let node = &frame.nodes[at];
        reached.done.insert(at);
        self.emitter.span = node.span;
        self.emitter.function.bindings().cast_name = called(node);
        let scope = &mut reached.scope;
        let values: Vec<Option<Value>> =
            node.inputs.iter().map(|name| scope.get(name).map(|v| self.emitter.told(v.clone()))).collect();
        match self.node(node, values, scope, frame.place) {
            Some(Made::Split(split)) => return Some(split),
            Some(Made::Values(values)) => self.define_outputs(node, values, scope),
            None => self.define_outputs(node, Vec::new(), scope),
        }
        None
    }

    /// Gives values names; those without a value are not known.
    pub(super) fn define<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
        values: Vec<Value>,
        span: Span,
        scope: &mut Scope,
    ) {
        let mut values = values.into_iter();
        for name in names {
            let value = values.next().unwrap_or_else(|| Value::Poison(self.declared_info(name)));
            let value = match self.with_extents(name, value) {
                Ok(value) => value,
                Err(fail) => {
                    self.fault(fail, span);
                    Value::Poison(None)
                }
            };
            scope.insert(name.to_owned(), value);
        }
    }

    /// What the file says of a value, to go on when the node that makes it cannot be converted.
    pub(super) fn declared_info(&mut self, name: &str) -> Option<StructInfo> {
        let ty = self.declared.get(name)?;
        self.struct_info(ty).ok()
    }

    /// The outputs of a node, or `None` if it or what it depends on cannot be converted; then there is a
    /// diagnostic, or an operator is on the list of those not supported.
    fn node(&mut self, node: &Node, values: Vec<Option<Value>>, scope: &Scope, place: Place<'_>) -> Option<Made> {
        let custom = self.custom.get(&node.op);
        if let (Some(function), None) = (self.model.functions.get(&node.op), &custom) {
            return self.function(node, function, values, place);
        }
        if custom.is_none() && node.op.domain.is_empty() {
            match node.op.op_type.as_str() {
                "If" => return self.if_node(node, scope, place),
                "Loop" => return self.loop_node(node, scope, place).map(Made::Values),
                "Scan" => return self.scan_node(node, scope, place).map(Made::Values),
                "SequenceMap" => return self.sequence_map(node, scope, place).map(Made::Values),
                _ => {}
            }
        }
        if custom.is_none() && node.op.domain == "ai.onnx.preview" && node.op.op_type == "FlexAttention" {
            return self.flex_attention(node, scope, place).map(Made::Values);
        }
        let seen = describe(&values);
        // Files of the first versions of the format do not say which operators they use.
        let unstated = (self.model.ir_version < 3 && self.model.opsets.is_empty()).then_some(1);
        let opset = place.opsets.get(&node.op.domain).copied().or(unstated);
        let (users, ours);
        let converter: &dyn Fn(&mut OpCx<'_>) -> Outputs = if let Some(custom) = &custom {
            users = |cx: &mut OpCx<'_>| custom::convert(&**custom, cx);
            &users
        } else {
            match ops::find(&node.op, opset) {
                Found::Converter(converter) => {
                    ours = converter;
                    &ours
                }
                Found::Nothing(reason) => {
                    let sentence = format!("{}: {reason}, inputs {seen}", node.path);
                    if !self.unsupported.iter().any(|(span, ..)| *span == node.span) {
                        self.unsupported.push((node.span, node.op.to_string(), sentence));
                    }
                    return None;
                }
            }
        };
        if values.iter().flatten().any(|v| matches!(v, Value::Poison(None))) {
            return None;
        }
        let mut cx = OpCx {
            node: NodeReader::new(node, place.caller),
            opset: opset.unwrap_or(1),
            values,
            emitter: &mut self.emitter,
        };
        let failed = match converter(&mut cx) {
            Ok(outputs) => match finish(&mut cx, &outputs) {
                Ok(()) => return Some(Made::Values(outputs)),
                Err(fails) => fails,
            },
            Err(fail) => vec![fail],
        };
        let opset = cx.opset;
        for Fail { diag, limit } in failed {
            let diag = diag.note(format!("inputs {seen}; operator set {opset}"));
            self.refuse::<()>(node, Fail { diag: Box::new(diag), limit });
        }
        None
    }

    /// Notes nodes of a graph or function that is converted, perhaps not for the first time; `false` if these are more than
    /// allowed, which is reported once.
    pub(super) fn unfold(&mut self, nodes: usize, span: Span) -> bool {
        let before = self.inlined <= self.max_inlined;
        self.inlined = self.inlined.saturating_add(1 + nodes as u64);
        let fits = self.inlined <= self.max_inlined;
        if before && !fits {
            let most = self.max_inlined;
            let message = format!("functions and nested graphs unfold to more than {most} nodes");
            self.fault(Fail::limit(message), span);
        }
        fits
    }

    /// Inlines a function of the model.
    fn function(
        &mut self,
        node: &Node,
        function: &graph::Function,
        values: Vec<Option<Value>>,
        place: Place<'_>,
    ) -> Option<Made> {
        if !self.unfold(function.nodes.len(), node.span) {
            return None;
        }
        let mut fail = |message: String| self.refuse(node, Fail::limit(message));
        if place.depth >= MAX_FUNCTION_DEPTH {
            return fail(format!("functions use functions deeper than {MAX_FUNCTION_DEPTH} levels"));
        }
        if values.len() > function.inputs.len() {
            return fail(format!("{} inputs are given, and the function has {}", values.len(), function.inputs.len()));
        }
        if node.outputs.len() > function.outputs.len() {
            return fail(format!(
                "{} outputs are taken, and the function has {}",
                node.outputs.len(),
                function.outputs.len()
            ));
        }
        let mut caller: Caller = function.defaults.iter().map(|a| (a.name.clone(), a.value.clone())).collect();
        for attribute in &node.attributes {
            if !function.attributes.contains(&attribute.name) && !caller.contains_key(&attribute.name) {
                return fail(format!("the function has no attribute '{}'", attribute.name));
            }
            let value = match &attribute.value {
                graph::Value::Reference(outer) => place.caller.get(outer).cloned(),
                value => Some(value.clone()),
            };
            match value {
                Some(value) => caller.insert(attribute.name.clone(), value),
                None => caller.remove(&attribute.name),
            };
        }
        let mut scope = Scope::new();
        for (name, value) in function.inputs.iter().zip(values) {
            if let Some(value) = value {
                scope.insert(name.clone(), value);
            }
        }
        let inner = Place { opsets: &function.opsets, caller: &caller, depth: place.depth + 1 };
        let outputs: Vec<&str> = function.outputs.iter().take(node.outputs.len()).map(String::as_str).collect();
        let span = self.emitter.span;
        self.open_list(&function.nodes, &outputs, node, scope, inner, span)
    }

    /// One diagnostic for all operators without a converter.
    fn report_unsupported(&mut self) {
        let Some((first, ..)) = self.unsupported.first() else { return };
        let count = self.unsupported.len();
        let mut names: Vec<&str> = self.unsupported.iter().map(|(_, name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let names: Vec<String> = names.into_iter().take(MAX_SHOWN).map(shown).collect();
        let nodes = if count == 1 { "1 node has".to_owned() } else { format!("{count} nodes have") };
        let mut diag = Diag::error(*first, format!("{nodes} an operator that is not supported: {}", names.join(", ")));
        for (span, _, sentence) in self.unsupported.iter().take(MAX_SHOWN) {
            diag = diag.note(sentence.clone());
            if span != first {
                diag = diag.label(*span, String::new());
            }
        }
        let help = "export the model with standard operators, define these as functions of the model, or say in the build \
                    script what they mean (Build::onnx_op)";
        self.faults.push(diag.help(help));
    }
}

/// Checks what a converter has left behind, and binds what its outputs depend on.
fn finish(cx: &mut OpCx<'_>, outputs: &[Value]) -> Result<(), Vec<Fail>> {
    let mut fails: Vec<Fail> = cx.node.unread().into_iter().map(Fail::limit).collect();
    if cx.output_count() > outputs.len() {
        fails.push(Fail::limit(format!("output {} is not supported", outputs.len())));
    }
    for output in outputs {
        fails.extend(cx.emitter.normalize(output).err());
    }
    if fails.is_empty() { Ok(()) } else { Err(fails) }
}

/// The types of the inputs of a node, for messages: `(float32[1, 784], absent)`.
fn describe(values: &[Option<Value>]) -> String {
    let each = values.iter().map(|value| match value {
        None => "absent".to_owned(),
        Some(Value::Poison(None)) => "not known".to_owned(),
        Some(Value::List(list)) => match list.ty {
            Type::Optional(_) => "optional".to_owned(),
            _ => "sequence".to_owned(),
        },
        Some(value) => match value.tensor_info() {
            None => "not a tensor".to_owned(),
            Some(info) => {
                let dtype = info.dtype.map_or("?".to_owned(), |d| d.to_string());
                match info.dims {
                    Dims::Known(dims) => format!("{dtype}{dims:?}"),
                    Dims::Rank(rank) => format!("{dtype} of rank {rank}"),
                    Dims::Unknown => format!("{dtype} of unknown rank"),
                }
            }
        },
    });
    format!("({})", each.collect::<Vec<_>>().join(", "))
}

/// What errors at run time call a node: its name, else its operator and what it gives.
fn called(node: &Node) -> String {
    match node.path.split('"').nth(1) {
        Some(name) => identifier(name, "node_"),
        None => {
            let output = node.outputs.iter().find(|o| !o.is_empty()).map_or("", String::as_str);
            identifier(&format!("{}_{output}", node.op.op_type), "node_")
        }
    }
}
