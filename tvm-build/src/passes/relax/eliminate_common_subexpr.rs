//! EliminateCommonSubexpr: equal values are computed once.

use super::support::{is_impure, map_functions};
use crate::pass::{Pass, PassCx};
use std::collections::BTreeMap;
use tvm_ir::diag::Diags;
use tvm_ir::module::IRModule;
use tvm_ir::relax::{
    AttrDef, AttrDefault, AttrKind, Binding, Block, Body, Effects, Expr, Function, Leaf, Var, map_expr_leaves,
};
use tvm_ir::structural::Key;

/// A binding whose value was bound before, in a place that it sees, becomes a name for the earlier variable, and uses
/// of it use that one. Calls with effects, random ops and allocations are left alone; with `call_only` so is all that
/// is no call.
pub(super) static ELIMINATE_COMMON_SUBEXPR: Pass = Pass {
    name: "EliminateCommonSubexpr",
    doc: "computes equal values once",
    params: &[AttrDef { name: "call_only", kind: AttrKind::Bool, default: Some(AttrDefault::Bool(false)) }],
    run,
};

fn run(module: &mut IRModule, cx: &PassCx<'_>) -> Result<(), Diags> {
    let call_only = cx.arg("call_only").as_bool() == Some(true);
    map_functions(module, |module, _, f| Ok(eliminate(module, f, call_only)))
}

fn eliminate(module: &IRModule, f: &Function, call_only: bool) -> Function {
    let mut e = Eliminator { module, call_only, seen: Vec::new(), index: BTreeMap::new(), map: BTreeMap::new() };
    Function { body: e.body(&f.body), ..f.clone() }
}

struct Eliminator<'a> {
    module: &'a IRModule,
    call_only: bool,
    /// Values bound so far that are visible, each with its variable; scopes end by truncation.
    seen: Vec<(u64, Key, Var)>,
    /// Positions in `seen` by hash.
    index: BTreeMap<u64, Vec<usize>>,
    map: BTreeMap<Var, Leaf>,
}

impl Eliminator<'_> {
    fn leaf(&self, l: &Leaf) -> Leaf {
        l.map(&mut |l| l.as_var().and_then(|v| self.map.get(v)).unwrap_or(l).clone())
    }

    /// A body whose values are not visible after it.
    fn inner(&mut self, body: &Body) -> Body {
        let before = self.seen.len();
        let out = self.body(body);
        self.forget(before, |_| true);
        out
    }

    /// Drops the values from a position on that `gone` says are not visible any more.
    fn forget(&mut self, from: usize, gone: impl Fn(&Var) -> bool) {
        let tail = self.seen.split_off(from);
        for (hash, ..) in &tail {
            if let Some(positions) = self.index.get_mut(hash) {
                positions.retain(|p| *p < from);
            }
        }
        for (hash, key, var) in tail {
            if !gone(&var) {
                self.push(hash, key, var);
            }
        }
    }

    fn push(&mut self, hash: u64, key: Key, var: Var) {
        self.index.entry(hash).or_default().push(self.seen.len());
        self.seen.push((hash, key, var));
    }

    fn body(&mut self, body: &Body) -> Body {
        let mut blocks = Vec::new();
        for block in &body.blocks {
            let before = self.seen.len();
            let bindings: Vec<Binding> = block.bindings().iter().map(|b| self.binding(b)).collect();
            blocks.push(match block {
                Block::Plain(_) => Block::Plain(bindings),
                Block::Dataflow { outputs, .. } => {
                    self.forget(before, |v| !outputs.contains(v));
                    // What is used after the block must be an output of it: uses of outputs keep their own names.
                    self.map.retain(|v, to| !outputs.contains(v) || to.as_var().is_none_or(|t| outputs.contains(t)));
                    Block::Dataflow { bindings, outputs: outputs.clone() }
                }
            });
        }
        Body { blocks, result: self.leaf(&body.result) }
    }

    fn binding(&mut self, b: &Binding) -> Binding {
        let value = match &b.value {
            Expr::If(i) => {
                let mut i = i.clone();
                i.cond = self.leaf(&i.cond);
                i.then = self.inner(&i.then);
                i.otherwise = self.inner(&i.otherwise);
                Expr::If(i)
            }
            Expr::Function(f) => Expr::Function(Box::new(eliminate(self.module, f, self.call_only))),
            other => map_expr_leaves(other, &mut |l| self.leaf(l)),
        };
        if !self.may_merge(&value) {
            return Binding { value, ..b.clone() };
        }
        let key = Key::expr(&value);
        let hash = key.hash();
        let earlier = self.index.get(&hash).into_iter().flatten().filter_map(|p| self.seen.get(*p));
        match earlier.into_iter().find(|(_, k, v)| *k == key && v.info() == b.var.info()) {
            Some((_, _, var)) => {
                let leaf = Leaf::Var(var.clone());
                self.map.insert(b.var.clone(), leaf.clone());
                Binding { value: Expr::Leaf(leaf), ..b.clone() }
            }
            None => {
                self.push(hash, key, b.var.clone());
                Binding { value, ..b.clone() }
            }
        }
    }

    fn may_merge(&self, value: &Expr) -> bool {
        let is_call = match value {
            Expr::Call(c) => {
                // Random values and allocations differ each time.
                if c.op.def().effects != Effects::Pure {
                    return false;
                }
                true
            }
            Expr::CallTir(_)
            | Expr::CallDps { .. }
            | Expr::CallFunc { .. }
            | Expr::CallPacked { .. }
            | Expr::Loop(_) => true,
            Expr::Leaf(Leaf::Var(_)) | Expr::If(_) | Expr::Function(_) => return false,
            _ => false,
        };
        (is_call || !self.call_only) && !is_impure(self.module, value)
    }
}
