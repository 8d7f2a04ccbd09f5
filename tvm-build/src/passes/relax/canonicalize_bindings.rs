//! CanonicalizeBindings: names for other names go away.

use super::support::{map_functions, rewrite::drop_empty_blocks, symbolic};
use crate::pass::{Pass, PassCx};
use std::collections::{BTreeMap, BTreeSet};
use tvm_ir::diag::Diags;
use tvm_ir::module::IRModule;
use tvm_ir::prim;
use tvm_ir::relax::{Binding, Block, Body, Expr, Function, Leaf, StructInfo, Var, map_expr_leaves, visit_leaves};

/// Removes `x = y`, fields of known tuples, tuples of all fields of a tuple and `match_cast` to what is known, puts
/// constants where they are used, and replaces symbolic variables of `match_cast` by what they are known to be.
/// Where an output of a dataflow block is such a name, the output's own variable stays.
pub(super) static CANONICALIZE_BINDINGS: Pass =
    Pass { name: "CanonicalizeBindings", doc: "removes bindings that only rename", params: &[], run };

fn run(module: &mut IRModule, _cx: &PassCx<'_>) -> Result<(), Diags> {
    map_functions(module, |_, _, f| Ok(canonicalize(f)))
}

/// The pass on one function.
pub(crate) fn canonicalize(f: &Function) -> Function {
    let f = canonicalize_symbolic(f);
    let plan = Plan::of(&f);
    let mut body = plan.body(&f.body);
    drop_empty_blocks(&mut body);
    Function { body, ..f }
}

/// Replaces the symbolic variables that a `match_cast` binds to known dimensions.
fn canonicalize_symbolic(f: &Function) -> Function {
    let mut params = Vec::new();
    f.params.iter().for_each(|p| symbolic::definable(p.info(), &mut params));
    let mut map: BTreeMap<prim::Var, prim::PrimExpr> = BTreeMap::new();
    super::support::visit_bodies(&f.body, &mut |b| {
        for binding in b.bindings() {
            if let Expr::MatchCast(leaf, info) = &binding.value {
                let mut found = BTreeMap::new();
                if let Some(known) = leaf.info() {
                    symbolic::match_info(info, &known, &mut found);
                }
                for (var, value) in found {
                    let value = prim::substitute(&value, &map);
                    if !params.contains(&var) && !prim::free_vars(&value).contains(&var) {
                        map.entry(var).or_insert(value);
                    }
                }
            }
        }
    });
    if map.is_empty() { f.clone() } else { symbolic::map_function_exprs(f, &map) }
}

/// What to do; see TVM's `CanonicalizationPlan`.
#[derive(Default)]
struct Plan {
    usage: BTreeMap<Var, Leaf>,
    binding: BTreeMap<Var, Var>,
    remove: BTreeSet<Var>,
}

/// What is known of variables while bindings are met in order.
#[derive(Default)]
struct Facts {
    known: BTreeMap<Var, Expr>,
    /// `x = y`, in order.
    trivial: Vec<(Var, Var)>,
    constants: Vec<(Var, Leaf)>,
    /// Number of the block a variable is bound in.
    home: BTreeMap<Var, usize>,
    /// Bound in a dataflow block and no output of it.
    dataflow: BTreeSet<Var>,
    used_outside: BTreeSet<Var>,
    blocks: usize,
}

impl Facts {
    fn body(&mut self, body: &Body) {
        for block in &body.blocks {
            self.blocks += 1;
            let here = self.blocks;
            let is_dataflow = matches!(block, Block::Dataflow { .. });
            for b in block.bindings() {
                self.home.insert(b.var.clone(), here);
                if let Block::Dataflow { outputs, .. } = block {
                    if !outputs.contains(&b.var) {
                        self.dataflow.insert(b.var.clone());
                    }
                }
                self.binding(b);
                match &b.value {
                    Expr::If(i) => {
                        self.outside(&i.cond);
                        self.body(&i.then);
                        self.body(&i.otherwise);
                    }
                    Expr::Function(f) => {
                        // What a local function captures is used outside of its block.
                        visit_leaves(&b.value, &mut |l| self.outside(l));
                        self.body(&f.body);
                    }
                    value => visit_leaves(value, &mut |l| {
                        if let Leaf::Var(v) = l {
                            if !is_dataflow || self.home.get(v).is_some_and(|h| *h != here) {
                                self.used_outside.insert(v.clone());
                            }
                        }
                    }),
                }
            }
        }
        self.outside(&body.result);
    }

    fn outside(&mut self, l: &Leaf) {
        match l {
            Leaf::Var(v) => {
                self.used_outside.insert(v.clone());
            }
            Leaf::Tuple(items) => items.iter().for_each(|l| self.outside(l)),
            _ => {}
        }
    }

    fn binding(&mut self, b: &Binding) {
        let value = self.unwrap(&b.value).unwrap_or_else(|| b.value.clone());
        let same_info = !matches!(b.value, Expr::MatchCast(..))
            || matches!(&value, Expr::MatchCast(l, info) if l.info().as_ref() == Some(info));
        match &value {
            Expr::Leaf(Leaf::Var(y)) | Expr::MatchCast(Leaf::Var(y), _) if same_info => {
                self.trivial.push((b.var.clone(), y.clone()));
            }
            Expr::Leaf(l @ Leaf::Const(_)) => self.constants.push((b.var.clone(), l.clone())),
            _ => {}
        }
        self.known.insert(b.var.clone(), value);
    }

    /// The value a variable stands for, through other names.
    fn resolve(&self, l: &Leaf) -> Option<&Expr> {
        let mut value = self.known.get(l.as_var()?)?;
        while let Expr::Leaf(Leaf::Var(v)) = value {
            match self.known.get(v) {
                Some(next) => value = next,
                None => break,
            }
        }
        Some(value)
    }

    /// The variable a variable stands for, through other names.
    fn resolve_var(&self, l: &Leaf) -> Option<Var> {
        let mut var = l.as_var()?.clone();
        while let Some(Expr::Leaf(Leaf::Var(v))) = self.known.get(&var) {
            var = v.clone();
        }
        Some(var)
    }

    fn unwrap(&self, e: &Expr) -> Option<Expr> {
        match e {
            Expr::TupleGetItem(Leaf::Tuple(fields), i) => fields.get(*i).cloned().map(Expr::Leaf),
            Expr::TupleGetItem(tuple, i) => match self.resolve(tuple)? {
                Expr::Tuple(fields) | Expr::Leaf(Leaf::Tuple(fields)) => fields.get(*i).cloned().map(Expr::Leaf),
                _ => None,
            },
            Expr::Tuple(fields) if !fields.is_empty() => {
                let mut source = None;
                for (i, field) in fields.iter().enumerate() {
                    let Expr::TupleGetItem(tuple, index) = self.resolve(field)? else { return None };
                    let tuple = self.resolve_var(tuple)?;
                    if *index != i || source.as_ref().is_some_and(|s| *s != tuple) {
                        return None;
                    }
                    source = Some(tuple);
                }
                let source = source?;
                matches!(source.info(), StructInfo::Tuple(f) if f.len() == fields.len())
                    .then_some(Expr::Leaf(Leaf::Var(source)))
            }
            _ => None,
        }
    }
}

impl Plan {
    fn of(f: &Function) -> Plan {
        let mut facts = Facts::default();
        facts.body(&f.body);
        let mut plan = Plan::default();
        let trivial: BTreeMap<&Var, &Var> = facts.trivial.iter().map(|(x, y)| (x, y)).collect();
        for (bound, to) in &facts.trivial {
            let mut to = to;
            while let Some(next) = trivial.get(to) {
                to = next;
            }
            let mut to = to.clone();
            while let Some(next) = plan.binding.get(&to) {
                to = next.clone();
            }
            plan.remove.insert(bound.clone());
            if facts.dataflow.contains(bound) || !facts.dataflow.contains(&to) || !facts.used_outside.contains(bound) {
                plan.usage.insert(bound.clone(), Leaf::Var(to));
            } else {
                // An output named after a variable of the block: the block binds the output itself.
                plan.binding.insert(to.clone(), bound.clone());
                plan.usage.insert(to, Leaf::Var(bound.clone()));
            }
        }
        plan.usage.extend(facts.constants);
        plan
    }

    fn leaf(&self, l: &Leaf) -> Leaf {
        l.map(&mut |l| {
            let mut l = l.clone();
            while let Some(next) = l.as_var().and_then(|v| self.usage.get(v)) {
                l = next.clone();
            }
            l
        })
    }

    fn body(&self, body: &Body) -> Body {
        let mut blocks = Vec::new();
        for block in &body.blocks {
            let bindings: Vec<Binding> = block
                .bindings()
                .iter()
                .filter(|b| !self.remove.contains(&b.var))
                .map(|b| Binding {
                    var: self.binding.get(&b.var).unwrap_or(&b.var).clone(),
                    value: self.value(&b.value),
                    span: b.span,
                })
                .collect();
            blocks.push(match block {
                Block::Plain(_) => Block::Plain(bindings),
                Block::Dataflow { outputs, .. } => {
                    let outputs = bindings.iter().map(|b| &b.var).filter(|v| outputs.contains(v)).cloned().collect();
                    Block::Dataflow { bindings, outputs }
                }
            });
        }
        Body { blocks, result: self.leaf(&body.result) }
    }

    fn value(&self, e: &Expr) -> Expr {
        match e {
            Expr::If(i) => {
                let mut i = i.clone();
                i.cond = self.leaf(&i.cond);
                i.then = self.body(&i.then);
                i.otherwise = self.body(&i.otherwise);
                Expr::If(i)
            }
            Expr::Function(f) => {
                let mut f = f.clone();
                f.body = self.body(&f.body);
                Expr::Function(f)
            }
            other => map_expr_leaves(other, &mut |l| self.leaf(l)),
        }
    }
}
