//! Declared regions: rules 12 and 13.

use super::Verifier;
use crate::arith::Analyzer;
use crate::prim::{CmpOp, PrimExpr, Range, show_expr};
use crate::span::Span;
use crate::tir::{Block, Region, access_regions};

impl Verifier {
    pub(super) fn regions(&mut self, b: &Block) {
        for r in b.reads.iter().chain(&b.writes) {
            if !self.buffers.contains(&r.buffer) {
                let message = format!("block `{}` declares a region of unknown buffer `{}`", b.name, r.buffer.name);
                self.report(13, Span::NONE, message);
            }
            if r.ranges.len() != r.buffer.shape.len() {
                let message = format!(
                    "block `{}` declares {} ranges for buffer `{}` of rank {}",
                    b.name,
                    r.ranges.len(),
                    r.buffer.name,
                    r.buffer.shape.len()
                );
                self.report(13, Span::NONE, message);
            }
            for e in r.ranges.iter().flat_map(|r| [&r.min, &r.extent]) {
                self.expr(e);
                if !e.dtype().is_integer() || e.dtype().lanes != 1 {
                    let message = format!("a region of buffer `{}` has a bound of type {}", r.buffer.name, e.dtype());
                    self.report(13, e.span(), message);
                }
            }
        }
        if b.reads.is_empty() && b.writes.is_empty() {
            return;
        }
        let mut analyzer = Analyzer::new();
        for i in &b.iters {
            analyzer.bind_range(&i.var, i.dom.clone());
        }
        let (reads, writes) = access_regions(b.init.as_ref(), &b.body, &analyzer);
        for (what, found, declared) in [("reads", reads, &b.reads), ("writes", writes, &b.writes)] {
            for access in found.iter().filter(|a| !b.allocs.contains(&a.buffer)) {
                self.covered(b, what, access, declared, &analyzer);
            }
        }
    }

    fn covered(&mut self, b: &Block, what: &str, access: &Region, declared: &[Region], analyzer: &Analyzer) {
        let name = &access.buffer.name;
        let mut same = declared.iter().filter(|r| r.buffer == access.buffer).peekable();
        if same.peek().is_none() {
            // A reduction reads what it writes.
            if what == "reads" && b.writes.iter().any(|w| w.buffer == access.buffer) {
                return;
            }
            let message = format!("block `{}` {what} buffer `{name}`, which it does not declare", b.name);
            self.report_with(
                12,
                b.span,
                message,
                format!("add it to T.{what}, or leave T.{what} out: it is found then"),
            );
            return;
        }
        let mut outside = None;
        for region in same {
            let dims = region.ranges.iter().zip(&access.ranges).enumerate();
            match dims.into_iter().find(|(_, (r, a))| escapes(r, a, analyzer)) {
                None => return,
                Some((dim, (r, a))) => outside = Some((dim, r.clone(), a.clone())),
            }
        }
        if let Some((dim, r, a)) = outside {
            let message = format!(
                "block `{}` {what} buffer `{name}` at {} in dimension {dim}, but declares {}",
                b.name,
                shown(&a),
                shown(&r)
            );
            self.report_with(12, b.span, message, format!("correct T.{what}, or leave it out: it is found then"));
        }
    }
}

/// A range: its first index, and its extent where that is not 1.
fn shown(r: &Range) -> String {
    if r.extent.is_int(1) { show_expr(&r.min) } else { format!("{} over {}", show_expr(&r.min), show_expr(&r.extent)) }
}

/// Whether an access surely leaves a range.
fn escapes(declared: &Range, access: &Range, analyzer: &Analyzer) -> bool {
    let same = |a: &PrimExpr, b: &PrimExpr| a.dtype() == b.dtype();
    if !same(&declared.min, &access.min) || !same(&declared.extent, &access.extent) {
        return false;
    }
    let end = |r: &Range| r.min.clone() + r.extent.clone();
    let below = PrimExpr::cmp(CmpOp::Lt, access.min.clone(), declared.min.clone());
    let above = PrimExpr::cmp(CmpOp::Gt, end(access), end(declared));
    analyzer.prove(&below) || analyzer.prove(&above)
}
