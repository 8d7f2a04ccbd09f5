//! Accesses that are not proven to be in bounds: what is said of them.

use super::counterexample::Counterexample;
use crate::diag::Diag;
use crate::prim::{Buffer, PrimExpr, PrimKind, show_expr};
use crate::span::Span;

/// An access that is not proven to be in bounds.
pub(super) struct Unproven {
    /// The address of the statement that makes it.
    pub(super) stmt: usize,
    /// What has to hold where the statement stands.
    pub(super) claim: PrimExpr,
    pub(super) what: What,
    pub(super) index: PrimExpr,
    pub(super) min: PrimExpr,
    pub(super) extent: PrimExpr,
    /// Whether it is known that the index is not below, and not above.
    pub(super) proven: [bool; 2],
    pub(super) span: Span,
    pub(super) counterexample: Option<Counterexample>,
}

/// What has an index.
#[derive(Clone)]
pub(super) enum What {
    /// A dimension of a buffer.
    Dimension(Buffer, usize),
    /// An iterator of a block.
    Iterator(String, String),
}

impl Unproven {
    /// What a check at run time says: the buffer, the index and the extent.
    pub(super) fn message(&self) -> String {
        let (index, extent) = (show_expr(&self.index), show_expr(&self.extent));
        match &self.what {
            What::Dimension(b, d) => format!(
                "index `{index}` of dimension {d} of buffer `{}` is out of bounds: the extent is {extent}",
                b.name
            ),
            What::Iterator(v, block) => {
                let (first, end) = (show_expr(&self.min), show_expr(&self.end()));
                format!("iterator `{v}` of block `{block}`, bound to `{index}`, leaves its domain {first} to {end}")
            }
        }
    }

    fn end(&self) -> PrimExpr {
        if self.min.is_int(0) { self.extent.clone() } else { self.min.clone() + self.extent.clone() }
    }

    pub(super) fn diag(&self) -> Diag {
        let index = show_expr(&self.index);
        let subject = match &self.what {
            What::Dimension(b, _) => format!("index `{index}` of buffer `{}`", b.name),
            What::Iterator(v, block) => format!("iterator `{v}` of block `{block}`, bound to `{index}`,"),
        };
        let range = match &self.what {
            What::Dimension(_, d) => format!("dimension {d} has extent {}", show_expr(&self.extent)),
            What::Iterator(..) => format!("its domain is {} to {}", show_expr(&self.min), show_expr(&self.end())),
        };
        let diag = match &self.counterexample {
            Some(c) => {
                let at: Vec<String> = c.at.iter().map(|(v, x)| format!("{} = {x}", v.name())).collect();
                let at = if at.is_empty() { String::new() } else { format!(" where {}", at.join(", ")) };
                let extent = if self.extent.as_int().is_none() { format!(" = {}", c.extent) } else { String::new() };
                let leaves = match &self.what {
                    What::Dimension(..) => "is out of bounds",
                    What::Iterator(..) => "leaves its domain",
                };
                let value =
                    if self.index.as_int().is_some() { String::new() } else { format!("it is {}{at}, ", c.index) };
                let between = if value.is_empty() { "" } else { "and " };
                Diag::error(self.span, format!("{subject} {leaves}: {value}{between}{range}{extent}"))
            }
            None => {
                let why = match &self.what {
                    _ if reads_memory(&self.index) => "depends on data",
                    What::Dimension(..) => "is not proven to be in bounds",
                    What::Iterator(..) => "is not proven to stay in its domain",
                };
                Diag::warning(self.span, format!("{subject} {why}: {range}"))
            }
        };
        let diag = match &self.what {
            What::Dimension(b, _) if b.span != self.span => diag.label(b.span, "the buffer is declared here"),
            _ => diag,
        };
        diag.help(self.advice())
    }

    /// How to make it right: a condition that would prove it, or a check.
    fn advice(&self) -> String {
        let check = "have it checked at run time: T.func_attr({\"tir.check_bounds\": True})";
        let (low, high) = match &self.counterexample {
            Some(c) => (c.index < 0, c.index >= 0),
            None => (!self.proven[0], !self.proven[1]),
        };
        if self.index.as_int().is_some() {
            return match self.extent.as_int() {
                Some(n) if n > 0 => format!("the indices of this dimension are 0 to {}", n - 1),
                _ => check.to_string(),
            };
        }
        let index = show_expr(&self.index);
        let mut parts = Vec::new();
        if low {
            parts.push(format!("{index} >= {}", show_expr(&self.min)));
        }
        if high {
            parts.push(format!("{index} < {}", show_expr(&self.end())));
        }
        let guard = parts.join(" and ");
        match &self.what {
            What::Dimension(..) => format!("put it under `if {guard}`; or {check}"),
            What::Iterator(..) => format!("guard the block: T.where({guard}); or {check}"),
        }
    }
}

/// Whether the value of an expression is read from memory.
pub(super) fn reads_memory(e: &PrimExpr) -> bool {
    let mut found = false;
    crate::prim::visit(e, &mut |n| found |= matches!(n.kind(), PrimKind::Load(..) | PrimKind::CallExtern(..)));
    found
}
