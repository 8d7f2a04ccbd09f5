//! Walking and rewriting expressions. Passes use these; they write no recursion of their own.

use super::{Buffer, PrimExpr, PrimKind, Var};
use std::collections::{BTreeMap, BTreeSet};

impl PrimExpr {
    /// The operands, in evaluation order.
    pub fn children(&self) -> Vec<&PrimExpr> {
        match self.kind() {
            PrimKind::Var(_) | PrimKind::Int(_) | PrimKind::Float(_) | PrimKind::Str(_) => Vec::new(),
            PrimKind::Binary(_, a, b)
            | PrimKind::Cmp(_, a, b)
            | PrimKind::And(a, b)
            | PrimKind::Or(a, b)
            | PrimKind::Ramp(a, b)
            | PrimKind::Let(_, a, b) => vec![a, b],
            PrimKind::Not(a) | PrimKind::Cast(a) | PrimKind::Broadcast(a) => vec![a],
            PrimKind::Select(a, b, c) => vec![a, b, c],
            PrimKind::Load(_, args) | PrimKind::Call(_, args) | PrimKind::CallExtern(_, args) => args.iter().collect(),
        }
    }

    /// The same node over mapped operands; the node itself when no operand changed. Types are kept, nothing is folded.
    #[must_use]
    pub fn map_children(&self, f: &mut dyn FnMut(&PrimExpr) -> PrimExpr) -> PrimExpr {
        let mut changed = false;
        let mut map = |e: &PrimExpr| {
            let n = f(e);
            changed |= !n.same_as(e);
            n
        };
        let kind = match self.kind() {
            PrimKind::Var(_) | PrimKind::Int(_) | PrimKind::Float(_) | PrimKind::Str(_) => return self.clone(),
            PrimKind::Binary(op, a, b) => PrimKind::Binary(*op, map(a), map(b)),
            PrimKind::Cmp(op, a, b) => PrimKind::Cmp(*op, map(a), map(b)),
            PrimKind::And(a, b) => PrimKind::And(map(a), map(b)),
            PrimKind::Or(a, b) => PrimKind::Or(map(a), map(b)),
            PrimKind::Ramp(a, b) => PrimKind::Ramp(map(a), map(b)),
            PrimKind::Let(v, a, b) => PrimKind::Let(v.clone(), map(a), map(b)),
            PrimKind::Not(a) => PrimKind::Not(map(a)),
            PrimKind::Cast(a) => PrimKind::Cast(map(a)),
            PrimKind::Broadcast(a) => PrimKind::Broadcast(map(a)),
            PrimKind::Select(a, b, c) => PrimKind::Select(map(a), map(b), map(c)),
            PrimKind::Load(b, args) => PrimKind::Load(b.clone(), args.iter().map(map).collect()),
            PrimKind::Call(i, args) => PrimKind::Call(*i, args.iter().map(map).collect()),
            PrimKind::CallExtern(n, args) => PrimKind::CallExtern(n.clone(), args.iter().map(map).collect()),
        };
        if changed { PrimExpr::new(kind, self.dtype()).with_span(self.span()) } else { self.clone() }
    }

    /// Builds the node anew through the folding constructors (types of operators follow their operands).
    #[must_use]
    pub fn refold(&self) -> PrimExpr {
        let folded = match self.kind() {
            PrimKind::Binary(op, a, b) => PrimExpr::binary(*op, a.clone(), b.clone()),
            PrimKind::Cmp(op, a, b) => PrimExpr::cmp(*op, a.clone(), b.clone()),
            PrimKind::And(a, b) => a.clone().and(b.clone()),
            PrimKind::Or(a, b) => a.clone().or(b.clone()),
            PrimKind::Not(a) => a.clone().logical_not(),
            PrimKind::Select(c, a, b) => PrimExpr::select(c.clone(), a.clone(), b.clone()),
            PrimKind::Cast(a) => a.cast(self.dtype()),
            _ => return self.clone(),
        };
        if folded.span().is_none() && !self.span().is_none() { folded.with_span(self.span()) } else { folded }
    }
}

/// Calls `f` on every node, parents first.
pub fn visit(e: &PrimExpr, f: &mut dyn FnMut(&PrimExpr)) {
    f(e);
    for child in e.children() {
        visit(child, f);
    }
}

/// Rewrites bottom-up: `f` sees each node with its operands rewritten (and refolded) and may replace it.
pub fn rewrite(e: &PrimExpr, f: &mut dyn FnMut(&PrimExpr) -> Option<PrimExpr>) -> PrimExpr {
    let mapped = e.map_children(&mut |c| rewrite(c, f));
    let folded = if mapped.same_as(e) { mapped } else { mapped.refold() };
    f(&folded).unwrap_or(folded)
}

/// What to put for variables and buffers.
#[derive(Clone, Debug, Default)]
pub struct Substitution {
    /// Values of variables.
    pub vars: BTreeMap<Var, PrimExpr>,
    /// Buffers for buffers, indices unchanged.
    pub buffers: Vec<(Buffer, Buffer)>,
}

impl Substitution {
    /// Replaces one variable.
    pub fn var(var: &Var, value: PrimExpr) -> Substitution {
        Substitution { vars: BTreeMap::from([(var.clone(), value)]), buffers: Vec::new() }
    }

    /// The buffer to use in a buffer's place.
    pub fn buffer(&self, b: &Buffer) -> Buffer {
        self.buffers.iter().find(|(from, _)| from == b).map_or_else(|| b.clone(), |(_, to)| to.clone())
    }

    /// Applies to an expression.
    pub fn apply(&self, e: &PrimExpr) -> PrimExpr {
        rewrite(e, &mut |n| match n.kind() {
            PrimKind::Var(v) => self.vars.get(v).cloned(),
            PrimKind::Load(b, i) => {
                let to = self.buffer(b);
                (to != *b).then(|| PrimExpr::load(&to, i.clone()).with_span(n.span()))
            }
            _ => None,
        })
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.vars.is_empty() && self.buffers.is_empty()
    }
}

/// Puts expressions for variables.
pub fn substitute(e: &PrimExpr, vars: &BTreeMap<Var, PrimExpr>) -> PrimExpr {
    if vars.is_empty() {
        return e.clone();
    }
    rewrite(e, &mut |n| n.as_var().and_then(|v| vars.get(v)).cloned())
}

/// The variables an expression reads and does not bind.
pub fn free_vars(e: &PrimExpr) -> BTreeSet<Var> {
    fn go(e: &PrimExpr, bound: &mut Vec<Var>, out: &mut BTreeSet<Var>) {
        match e.kind() {
            PrimKind::Var(v) if !bound.contains(v) => {
                out.insert(v.clone());
            }
            PrimKind::Let(v, value, body) => {
                go(value, bound, out);
                bound.push(v.clone());
                go(body, bound, out);
                bound.pop();
            }
            _ => e.children().into_iter().for_each(|c| go(c, bound, out)),
        }
    }
    let mut out = BTreeSet::new();
    go(e, &mut Vec::new(), &mut out);
    out
}
