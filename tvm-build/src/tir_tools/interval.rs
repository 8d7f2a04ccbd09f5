//! The loops of a statement and what indices cover while they run.

use super::func::bind_loops;
use std::collections::BTreeMap;
use tvm_ir::arith::Analyzer;
use tvm_ir::prim::{PrimExpr, Range, Var};
use tvm_ir::tir::{Stmt, visit_stmt};

/// Loops that run, with their ranges, and an analyzer that knows them and the loops around.
#[derive(Clone, Debug)]
pub struct RunningLoops {
    ranges: BTreeMap<Var, Range>,
    analyzer: Analyzer,
}

impl RunningLoops {
    /// Every loop of a statement; `around` knows the loops around it.
    pub fn of_stmt(s: &Stmt, around: &Analyzer) -> RunningLoops {
        let mut ranges = BTreeMap::new();
        visit_stmt(s, &mut |s| {
            if let Stmt::For(f) = s {
                ranges.insert(f.var.clone(), Range { min: f.min.clone(), extent: f.extent.clone() });
            }
        });
        let mut analyzer = around.clone();
        bind_loops(s, &mut analyzer);
        RunningLoops { ranges, analyzer }
    }

    /// The range that covers an index while the loops run; `None` when an end is not known.
    pub fn cover(&self, index: &PrimExpr) -> Option<Range> {
        self.analyzer.cover(index, &self.ranges)
    }
}
