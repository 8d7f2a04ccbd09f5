//! Walking and rewriting bodies.

use super::{Binding, Block, Body, CallTir, Expr, Leaf, Var};
use std::collections::BTreeMap;

impl Leaf {
    /// Maps the leaf, or the leaves of a tuple (innermost first, then the tuple itself is kept).
    #[must_use]
    pub fn map(&self, f: &mut dyn FnMut(&Leaf) -> Leaf) -> Leaf {
        match self {
            Leaf::Tuple(items) => Leaf::Tuple(items.iter().map(|i| i.map(f)).collect()),
            other => f(other),
        }
    }
}

/// Calls `f` on every leaf of an expression, those of nested bodies included; tuples are opened.
pub fn visit_leaves(e: &Expr, f: &mut dyn FnMut(&Leaf)) {
    let _ = map_expr_leaves(e, &mut |l| {
        f(l);
        l.clone()
    });
}

/// Maps every leaf of an expression, those of nested bodies included.
pub fn map_expr_leaves(e: &Expr, f: &mut dyn FnMut(&Leaf) -> Leaf) -> Expr {
    fn all(leaves: &[Leaf], f: &mut dyn FnMut(&Leaf) -> Leaf) -> Vec<Leaf> {
        leaves.iter().map(|l| l.map(f)).collect()
    }
    match e {
        Expr::Leaf(l) => Expr::Leaf(l.map(f)),
        Expr::Call(c) => {
            let mut c = c.clone();
            c.args = all(&c.args, f);
            Expr::Call(c)
        }
        Expr::CallTir(c) => Expr::CallTir(CallTir { args: all(&c.args, f), ..c.clone() }),
        Expr::CallDps { symbol, args, out } => {
            Expr::CallDps { symbol: symbol.clone(), args: all(args, f), out: out.clone() }
        }
        Expr::CallFunc { callee, args } => Expr::CallFunc { callee: callee.map(f), args: all(args, f) },
        Expr::CallPacked { symbol, args, ret, pure } => {
            Expr::CallPacked { symbol: symbol.clone(), args: all(args, f), ret: ret.clone(), pure: *pure }
        }
        Expr::Tuple(items) => Expr::Tuple(all(items, f)),
        Expr::TupleGetItem(l, i) => Expr::TupleGetItem(l.map(f), *i),
        Expr::MatchCast(l, info) => Expr::MatchCast(l.map(f), info.clone()),
        Expr::If(i) => {
            let mut i = i.clone();
            i.cond = i.cond.map(f);
            i.then = map_body(&i.then, f);
            i.otherwise = map_body(&i.otherwise, f);
            Expr::If(i)
        }
        Expr::Loop(l) => Expr::Loop(Box::new(l.map_leaves(f))),
        Expr::Function(func) => {
            let mut func = func.clone();
            func.body = map_body(&func.body, f);
            Expr::Function(func)
        }
    }
}

fn map_body(body: &Body, f: &mut dyn FnMut(&Leaf) -> Leaf) -> Body {
    rewrite_body(body, &mut |b| Binding { var: b.var.clone(), value: map_expr_leaves(&b.value, f), span: b.span })
        .with_result(f)
}

impl Body {
    fn with_result(mut self, f: &mut dyn FnMut(&Leaf) -> Leaf) -> Body {
        self.result = self.result.map(f);
        self
    }

    /// All bindings in order, not those of nested bodies.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.blocks.iter().flat_map(|b| b.bindings())
    }
}

/// The body with each of its own bindings replaced (block structure and outputs kept).
pub fn rewrite_body(body: &Body, f: &mut dyn FnMut(&Binding) -> Binding) -> Body {
    let blocks = body
        .blocks
        .iter()
        .map(|b| match b {
            Block::Dataflow { bindings, outputs } => {
                Block::Dataflow { bindings: bindings.iter().map(&mut *f).collect(), outputs: outputs.clone() }
            }
            Block::Plain(bindings) => Block::Plain(bindings.iter().map(&mut *f).collect()),
        })
        .collect();
    Body { blocks, result: body.result.clone() }
}

/// Puts leaves for variables, nested bodies included. Binders are kept.
pub fn substitute_body(body: &Body, map: &BTreeMap<Var, Leaf>) -> Body {
    map_body(body, &mut |l| l.as_var().and_then(|v| map.get(v)).cloned().unwrap_or_else(|| l.clone()))
}

/// The variables among the leaves of an expression, in order, nested bodies included.
pub fn leaf_vars(e: &Expr) -> Vec<Var> {
    let mut out = Vec::new();
    visit_leaves(e, &mut |l| {
        if let Leaf::Var(v) = l {
            out.push(v.clone());
        }
    });
    out
}
