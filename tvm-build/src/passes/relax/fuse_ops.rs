//! FuseOps: bindings that one kernel can compute become one private function.

use super::support::{
    FunctionAdder,
    fused_function::{Arg, Members},
    is_primitive,
    partition::{Groups, Limits, Node, partition},
    prim_func,
    symbolic::symbols_of,
};
use crate::pass::{Pass, PassCx};
use std::collections::{BTreeMap, BTreeSet};
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::name::{Name, NameSupply};
use tvm_ir::prim::Var as PrimVar;
use tvm_ir::relax::{
    AttrDef, AttrDefault, AttrKind, Binding, Block, Body, Expr, Function, Leaf, Pattern, Var, leaf_vars,
    map_expr_leaves,
};

/// Groups `call_tir` bindings of dataflow blocks by the `op_pattern` of their PrimFuncs (along the post-dominator tree)
/// and makes each group a private function `fused_a_b` with the attribute `Primitive`. Structurally equal groups share
/// one function. `fuse_opt_level` 0 fuses nothing; `max_depth` bounds the bindings of a group.
pub(super) static FUSE_OPS: Pass = Pass {
    name: "FuseOps",
    doc: "groups bindings that one kernel can compute into private Primitive functions",
    params: &[
        AttrDef { name: "fuse_opt_level", kind: AttrKind::Int, default: Some(AttrDefault::Int(-1)) },
        AttrDef { name: "max_depth", kind: AttrKind::Int, default: Some(AttrDefault::Int(256)) },
    ],
    run,
};

fn run(module: &mut IRModule, cx: &PassCx<'_>) -> Result<(), Diags> {
    let limits = Limits {
        opt_level: cx.arg("fuse_opt_level").as_int().unwrap_or(-1),
        max_depth: cx.arg("max_depth").as_int().and_then(|v| usize::try_from(v).ok()).unwrap_or(256),
    };
    let mut diags = Diags::new();
    let functions: Vec<(Name, Function)> = module
        .relax_funcs()
        .filter(|(_, f)| !is_primitive(f) && !f.attrs.contains_key("Codegen"))
        .map(|(n, f)| (n.clone(), f.clone()))
        .collect();
    let mut adder = FunctionAdder::new(module);
    let mut names = NameSupply::new();
    for (name, f) in functions {
        let Some(graph) = diags.ok(Graph::of(module, &f)) else { continue };
        let groups = partition(&graph.nodes, limits);
        let mut fuser = Fuser { module, adder: &mut adder, names: &mut names, graph, groups, map: BTreeMap::new() };
        if let Some(body) = diags.ok(fuser.body(&f.body)) {
            module.funcs.insert(name, Func::Relax(Function { body, ..f }));
        }
    }
    diags.into_result(())
}

/// The bindings of a function as nodes of the fusion graph. (Parameters and constants are never fused: they are left
/// out.)
struct Graph {
    nodes: Vec<Node>,
    index: BTreeMap<Var, usize>,
    /// The `match_cast` that defines a symbolic variable.
    symbols: BTreeMap<PrimVar, usize>,
    /// Symbolic variables that parameters tell.
    told: BTreeSet<PrimVar>,
    /// Parameters from `num_input` on: weights.
    weights: Vec<Var>,
}

impl Graph {
    fn of(module: &IRModule, f: &Function) -> Result<Graph, Diag> {
        let inputs = f.attrs.get("num_input").and_then(AttrValue::as_int).and_then(|n| usize::try_from(n).ok());
        let weights = inputs.map_or(Vec::new(), |n| f.params.iter().skip(n).cloned().collect());
        let told = f.params.iter().flat_map(|p| p.info().told_vars()).collect();
        let mut g = Graph { nodes: Vec::new(), index: BTreeMap::new(), symbols: BTreeMap::new(), told, weights };
        g.body(module, &f.body)?;
        Ok(g)
    }

    fn body(&mut self, module: &IRModule, body: &Body) -> Result<(), Diag> {
        for block in &body.blocks {
            for b in block.bindings() {
                match &b.value {
                    Expr::If(i) => {
                        self.body(module, &i.then)?;
                        self.body(module, &i.otherwise)?;
                    }
                    Expr::Function(f) => self.body(module, &f.body)?,
                    _ => {}
                }
                let external = match block {
                    Block::Plain(_) => true,
                    Block::Dataflow { outputs, .. } => outputs.contains(&b.var),
                };
                let pattern = self.pattern(module, b)?;
                let node = self.nodes.len();
                for used in self.needed(b) {
                    if let Some(n) = self.nodes.get_mut(used) {
                        n.outputs.push((node, pattern));
                    }
                }
                if let Expr::MatchCast(_, info) = &b.value {
                    for v in info.told_vars().difference(&self.told) {
                        self.symbols.entry(v.clone()).or_insert(node);
                    }
                }
                self.nodes.push(Node { pattern, external, outputs: Vec::new() });
                self.index.insert(b.var.clone(), node);
            }
        }
        Ok(())
    }

    /// The bindings whose values a binding uses, and those that define its symbolic variables.
    fn needed(&self, b: &Binding) -> Vec<usize> {
        let mut needed: Vec<usize> = leaf_vars(&b.value).iter().filter_map(|v| self.index.get(v).copied()).collect();
        if !self.symbols.is_empty() {
            needed.extend(symbols_of(b).0.iter().filter_map(|v| self.symbols.get(v).copied()));
        }
        needed.retain(|n| self.index.get(&b.var) != Some(n));
        needed
    }

    fn pattern(&self, module: &IRModule, b: &Binding) -> Result<Pattern, Diag> {
        Ok(match &b.value {
            Expr::CallTir(c) => {
                let f = prim_func(module, &c.func, b.span)?;
                match f.attrs.get("op_pattern").and_then(AttrValue::as_int) {
                    Some(0) => Pattern::ElemWise,
                    Some(1) => Pattern::Broadcast,
                    Some(2) => Pattern::Injective,
                    Some(3) => Pattern::CommReduce,
                    Some(4) => Pattern::OutEWiseFusable,
                    Some(7) => Pattern::Tuple,
                    _ => Pattern::Opaque,
                }
            }
            // Fields of the tuple of weights are fetched at the start: fusing them would change all groups.
            Expr::TupleGetItem(t, _) if !t.as_var().is_some_and(|v| self.weights.contains(v)) => Pattern::Injective,
            _ => Pattern::Opaque,
        })
    }
}

struct Fuser<'a> {
    module: &'a mut IRModule,
    adder: &'a mut FunctionAdder,
    names: &'a mut NameSupply,
    graph: Graph,
    groups: Groups,
    map: BTreeMap<Var, Leaf>,
}

/// The group of a variable of this function's bindings.
fn group_of(graph: &Graph, groups: &Groups, v: &Var) -> Option<usize> {
    graph.index.get(v).map(|n| groups.root(*n))
}

impl Fuser<'_> {
    fn leaf(&self, l: &Leaf) -> Leaf {
        l.map(&mut |l| l.as_var().and_then(|v| self.map.get(v)).unwrap_or(l).clone())
    }

    fn body(&mut self, body: &Body) -> Result<Body, Diag> {
        let mut blocks = Vec::new();
        for block in &body.blocks {
            blocks.push(match block {
                Block::Plain(bindings) => {
                    Block::Plain(bindings.iter().map(|b| self.keep(b)).collect::<Result<_, _>>()?)
                }
                Block::Dataflow { bindings, outputs } => self.dataflow(bindings, outputs)?,
            });
        }
        Ok(Body { blocks, result: self.leaf(&body.result) })
    }

    /// A binding that is not fused, over the new variables.
    fn keep(&mut self, b: &Binding) -> Result<Binding, Diag> {
        let value = match &b.value {
            Expr::If(i) => {
                let mut i = i.clone();
                i.cond = self.leaf(&i.cond);
                i.then = self.body(&i.then)?;
                i.otherwise = self.body(&i.otherwise)?;
                Expr::If(i)
            }
            Expr::Function(f) => {
                let mut f = f.clone();
                f.body = self.body(&f.body)?;
                Expr::Function(f)
            }
            other => map_expr_leaves(other, &mut |l| self.leaf(l)),
        };
        Ok(Binding { value, ..b.clone() })
    }

    fn dataflow(&mut self, bindings: &[Binding], outputs: &[Var]) -> Result<Block, Diag> {
        // What each group computes, then what of it is seen outside of the group.
        let mut members: BTreeMap<usize, Members> = BTreeMap::new();
        for b in bindings {
            if let Some(group) = group_of(&self.graph, &self.groups, &b.var).filter(|g| self.groups.size(*g) > 1) {
                members.entry(group).or_default().append(b, outputs.contains(&b.var));
            }
        }
        let mut deps: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for b in bindings {
            let Some(group) = group_of(&self.graph, &self.groups, &b.var) else { continue };
            let needed = self.graph.needed(b).into_iter().map(|n| self.groups.root(n));
            deps.entry(group).or_default().extend(needed.filter(|g| *g != group));
            for used in leaf_vars(&b.value) {
                let Some(producer) = group_of(&self.graph, &self.groups, &used).filter(|p| *p != group) else {
                    continue;
                };
                if let Some(m) = members.get_mut(&producer).filter(|m| m.binds(&used)) {
                    m.output(&used);
                }
            }
        }
        let mut new = Vec::new();
        let mut new_outputs = Vec::new();
        for b in self.sorted(bindings, &deps)? {
            let group = group_of(&self.graph, &self.groups, &b.var);
            let Some(m) = group.and_then(|g| members.get(&g)) else {
                if outputs.contains(&b.var) {
                    new_outputs.push(b.var.clone());
                }
                let kept = self.keep(b)?;
                new.push(kept);
                continue;
            };
            // The call stands where the group's last binding stood; a group that nothing uses is dropped.
            if m.bindings.last().is_some_and(|last| last.var == b.var) && !m.outputs.is_empty() {
                self.call(m, outputs, &mut new, &mut new_outputs)?;
            }
        }
        new_outputs.sort_by_key(|o| new.iter().position(|b: &Binding| b.var == *o));
        Ok(Block::Dataflow { bindings: new, outputs: new_outputs })
    }

    /// Adds the group's function to the module and emits its call.
    fn call(
        &mut self,
        m: &Members,
        outputs: &[Var],
        out: &mut Vec<Binding>,
        out_outputs: &mut Vec<Var>,
    ) -> Result<(), Diag> {
        let span = m.bindings.last().map(|b| b.span).unwrap_or_default();
        let (function, args) = m.function(span)?;
        let ret = function.ret.clone();
        let callee = self.adder.add(self.module, &m.name(), Func::Relax(function));
        let mut leaves = Vec::new();
        for arg in args {
            leaves.push(match arg {
                Arg::Leaf(l) => self.leaf(&l),
                Arg::Field(tuple, index, info) => {
                    let var = Var::at(self.names.fresh("lv"), info, span);
                    out.push(Binding { var: var.clone(), value: Expr::TupleGetItem(self.leaf(&tuple), index), span });
                    Leaf::Var(var)
                }
            });
        }
        let value = Expr::CallFunc { callee: Leaf::Global(callee), args: leaves };
        if let [only] = m.outputs.as_slice() {
            let is_output = outputs.contains(only);
            let hint = if is_output { "gv" } else { "lv" };
            let var = Var::at(self.names.fresh(hint), only.info().clone(), span);
            out.push(Binding { var: var.clone(), value, span });
            if is_output {
                out_outputs.push(var.clone());
            }
            self.map.insert(only.clone(), Leaf::Var(var));
            return Ok(());
        }
        let tuple = Var::at(self.names.fresh("lv"), ret, span);
        out.push(Binding { var: tuple.clone(), value, span });
        for b in m.bindings.iter().filter(|b| m.outputs.contains(&b.var)) {
            let Some(index) = m.outputs.iter().position(|o| *o == b.var) else { continue };
            let is_output = outputs.contains(&b.var);
            let hint = if is_output { "gv" } else { "lv" };
            let var = Var::at(self.names.fresh(hint), b.var.info().clone(), span);
            out.push(Binding { var: var.clone(), value: Expr::TupleGetItem(Leaf::Var(tuple.clone()), index), span });
            if is_output {
                out_outputs.push(var.clone());
            }
            self.map.insert(b.var.clone(), Leaf::Var(var));
        }
        Ok(())
    }

    /// The bindings, group by group where groups depend on each other, else in their order.
    fn sorted<'b>(
        &self,
        bindings: &'b [Binding],
        deps: &BTreeMap<usize, Vec<usize>>,
    ) -> Result<Vec<&'b Binding>, Diag> {
        let mut by_group: BTreeMap<usize, Vec<&Binding>> = BTreeMap::new();
        for b in bindings {
            if let Some(g) = group_of(&self.graph, &self.groups, &b.var) {
                by_group.entry(g).or_default().push(b);
            }
        }
        // 1: on the way, 2: done.
        let mut state: BTreeMap<usize, u8> = BTreeMap::new();
        let mut sorted = Vec::with_capacity(bindings.len());
        for b in bindings {
            let mut stack: Vec<(usize, usize)> =
                group_of(&self.graph, &self.groups, &b.var).map(|g| (g, 0)).into_iter().collect();
            while let Some((g, next)) = stack.pop() {
                if next == 0 {
                    match state.insert(g, 1) {
                        Some(2) => {
                            state.insert(g, 2);
                            continue;
                        }
                        Some(_) => {
                            return Err(Diag::error(b.span, "FuseOps made groups that depend on each other")
                                .note(format!("at the binding of {}", b.var.name())));
                        }
                        None => {}
                    }
                }
                match deps.get(&g).and_then(|d| d.get(next)) {
                    Some(dep) => {
                        stack.push((g, next + 1));
                        if state.get(dep) != Some(&2) {
                            stack.push((*dep, 0));
                        }
                    }
                    None => {
                        state.insert(g, 2);
                        sorted.extend(by_group.get(&g).into_iter().flatten().copied());
                    }
                }
            }
        }
        Ok(sorted)
    }
}
