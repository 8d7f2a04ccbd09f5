//! Rewriting bodies binding by binding (TVM's `ExprMutator`).

use std::collections::BTreeMap;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::relax::{Binding, Block, Body, Expr, Function, Leaf, Var, map_expr_leaves};

/// Where a binding stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// In a dataflow block.
    pub(crate) dataflow: bool,
    /// Visible after its block (always outside of dataflow blocks).
    pub(crate) output: bool,
}

/// What becomes of a binding.
pub(crate) enum Step {
    /// These bindings take its place; one of them binds its variable.
    Bind(Vec<Binding>),
    /// These bindings, then the leaf wherever the variable stood. (An output keeps a binding of its own.)
    Replace(Vec<Binding>, Leaf),
    /// These bindings take its place, one of them binds its variable, and the leaf (visible everywhere) wherever the
    /// variable stood.
    Alias(Vec<Binding>, Leaf),
}

impl Step {
    /// It stays as it is.
    pub(crate) fn keep(b: Binding) -> Step {
        Step::Bind(vec![b])
    }
}

/// Rewrites the bindings of a function, of its branches and its local functions in order. `f` sees each binding with
/// the leaves of earlier replacements put in, and its nested bodies rewritten.
pub(crate) fn rewrite_function(
    function: &Function,
    f: &mut dyn FnMut(Binding, Place) -> Result<Step, Diag>,
) -> Result<Function, Diags> {
    let mut r = Rewriter { map: BTreeMap::new(), f, diags: Diags::new() };
    let body = r.body(&function.body);
    r.diags.into_result(Function { body, ..function.clone() })
}

struct Rewriter<'a> {
    map: BTreeMap<Var, Leaf>,
    f: &'a mut dyn FnMut(Binding, Place) -> Result<Step, Diag>,
    diags: Diags,
}

impl Rewriter<'_> {
    fn leaf(&self, l: &Leaf) -> Leaf {
        l.map(&mut |l| l.as_var().and_then(|v| self.map.get(v)).unwrap_or(l).clone())
    }

    fn body(&mut self, body: &Body) -> Body {
        let mut blocks = Vec::with_capacity(body.blocks.len());
        for block in &body.blocks {
            let new = match block {
                Block::Plain(bindings) => Block::Plain(self.bindings(bindings, None)),
                Block::Dataflow { bindings, outputs } => {
                    Block::Dataflow { bindings: self.bindings(bindings, Some(outputs)), outputs: outputs.clone() }
                }
            };
            blocks.push(new);
        }
        Body { blocks, result: self.leaf(&body.result) }
    }

    fn bindings(&mut self, bindings: &[Binding], outputs: Option<&Vec<Var>>) -> Vec<Binding> {
        let mut out = Vec::with_capacity(bindings.len());
        for b in bindings {
            let place = Place { dataflow: outputs.is_some(), output: outputs.is_none_or(|o| o.contains(&b.var)) };
            let value = match &b.value {
                Expr::If(i) => {
                    let mut i = i.clone();
                    i.cond = self.leaf(&i.cond);
                    i.then = self.body(&i.then);
                    i.otherwise = self.body(&i.otherwise);
                    Expr::If(i)
                }
                Expr::Function(func) => {
                    let mut func = func.clone();
                    func.body = self.body(&func.body);
                    Expr::Function(func)
                }
                other if self.map.is_empty() => other.clone(),
                other => map_expr_leaves(other, &mut |l| l.as_var().and_then(|v| self.map.get(v)).unwrap_or(l).clone()),
            };
            match (self.f)(Binding { var: b.var.clone(), value, span: b.span }, place) {
                Ok(Step::Bind(new)) => out.extend(new),
                Ok(Step::Alias(new, leaf)) => {
                    out.extend(new);
                    self.map.insert(b.var.clone(), leaf);
                }
                Ok(Step::Replace(new, leaf)) => {
                    out.extend(new);
                    if place.output {
                        out.push(Binding { var: b.var.clone(), value: Expr::Leaf(leaf), span: b.span });
                    } else {
                        self.map.insert(b.var.clone(), leaf);
                    }
                }
                Err(d) => self.diags.push(d.at(b.span)),
            }
        }
        out
    }
}

/// Drops blocks without bindings.
pub(crate) fn drop_empty_blocks(body: &mut Body) {
    body.blocks.retain(|b| !b.bindings().is_empty());
    for block in &mut body.blocks {
        for b in block.bindings_mut() {
            match &mut b.value {
                Expr::If(i) => {
                    drop_empty_blocks(&mut i.then);
                    drop_empty_blocks(&mut i.otherwise);
                }
                Expr::Function(f) => drop_empty_blocks(&mut f.body),
                _ => {}
            }
        }
    }
}
