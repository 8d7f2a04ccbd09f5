//! Which regions of which buffers a block body reads and writes.

use super::{Block, Region, Stmt};
use crate::arith::Analyzer;
use crate::prim::{Buffer, PrimExpr, PrimKind, Range, Substitution, Var, free_vars};

/// The regions a block with this init and body reads and writes, in order of first access. Loops inside the body
/// are relaxed to whole ranges; where that is not possible the region is the whole dimension. Buffers that the body
/// allocates are left out, and so are, when there is an init, reads of the buffers written (a reduction's accumulator).
pub fn access_regions(init: Option<&Stmt>, body: &Stmt, analyzer: &Analyzer) -> (Vec<Region>, Vec<Region>) {
    let mut found = Accesses { reads: Vec::new(), writes: Vec::new(), loops: Vec::new(), analyzer };
    if let Some(init) = init {
        found.stmt(init);
    }
    found.stmt(body);
    let Accesses { mut reads, writes, .. } = found;
    if init.is_some() {
        reads.retain(|r| writes.iter().all(|w| w.buffer != r.buffer));
    }
    (reads, writes)
}

struct Accesses<'a> {
    reads: Vec<Region>,
    writes: Vec<Region>,
    loops: Vec<(Var, Range)>,
    analyzer: &'a Analyzer,
}

impl Accesses<'_> {
    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::For(f) => {
                self.expr(&f.min);
                self.expr(&f.extent);
                self.loops.push((f.var.clone(), Range { min: f.min.clone(), extent: f.extent.clone() }));
                self.stmt(&f.body);
                self.loops.pop();
            }
            Stmt::Store(s) => {
                let region = self.relax(&s.buffer, s.indices.iter().map(|i| Range::point(i.clone())).collect());
                merge_region(&mut self.writes, region, self.analyzer);
                self.expr(&s.value);
                s.indices.iter().for_each(|i| self.expr(i));
            }
            Stmt::Block(b) => self.nested(b),
            other => {
                other.exprs().into_iter().for_each(|e| self.expr(e));
                other.children().into_iter().for_each(|c| self.stmt(c));
            }
        }
    }

    fn nested(&mut self, b: &Block) {
        let bind = Substitution {
            vars: b.iters.iter().map(|i| (i.var.clone(), i.binding.clone())).collect(),
            ..Default::default()
        };
        let outer = |r: &Region| -> Vec<Range> {
            r.ranges.iter().map(|r| Range { min: bind.apply(&r.min), extent: bind.apply(&r.extent) }).collect()
        };
        for r in b.reads.iter().filter(|r| !b.allocs.contains(&r.buffer)) {
            let region = self.relax(&r.buffer, outer(r));
            merge_region(&mut self.reads, region, self.analyzer);
        }
        for w in b.writes.iter().filter(|r| !b.allocs.contains(&r.buffer)) {
            let region = self.relax(&w.buffer, outer(w));
            merge_region(&mut self.writes, region, self.analyzer);
        }
    }

    fn expr(&mut self, e: &PrimExpr) {
        if let PrimKind::Load(buffer, indices) = e.kind() {
            let region = self.relax(buffer, indices.iter().map(|i| Range::point(i.clone())).collect());
            merge_region(&mut self.reads, region, self.analyzer);
        }
        e.children().into_iter().for_each(|c| self.expr(c));
    }

    /// The region over all values of the inner loops.
    fn relax(&self, buffer: &Buffer, ranges: Vec<Range>) -> Region {
        let whole =
            |d: usize| buffer.shape.get(d).map_or_else(|| Range::to(PrimExpr::i64(1)), |e| Range::to(e.clone()));
        let ranges = ranges
            .into_iter()
            .enumerate()
            .map(|(d, mut r)| {
                if let PrimKind::Ramp(base, stride) = r.min.kind() {
                    let lanes = i64::from(r.min.dtype().lanes);
                    match stride.as_int() {
                        Some(s) if s > 0 => {
                            let extent = PrimExpr::int(base.dtype(), (lanes - 1) * s + 1);
                            r = Range { min: base.clone(), extent };
                        }
                        _ => return whole(d),
                    }
                }
                for (var, dom) in self.loops.iter().rev() {
                    if free_vars(&r.extent).contains(var) {
                        return whole(d);
                    }
                    if !free_vars(&r.min).contains(var) {
                        continue;
                    }
                    let Some(step) = coefficient(&r.min, var) else { return whole(d) };
                    let first = Substitution::var(var, dom.min.clone()).apply(&r.min);
                    let last = Substitution::var(var, &dom.min + (&dom.extent - 1)).apply(&r.min);
                    let (low, high) = if step >= 0 { (first, last) } else { (last, first) };
                    let span = self.analyzer.simplify(&(high - low.clone()));
                    r = Range { min: self.analyzer.simplify(&low), extent: self.analyzer.simplify(&(span + r.extent)) };
                }
                r
            })
            .collect();
        Region { buffer: buffer.clone(), ranges }
    }
}

/// Adds a region to a list that has at most one of each buffer: one that is there grows to cover both.
pub fn merge_region(list: &mut Vec<Region>, region: Region, analyzer: &Analyzer) {
    let Some(old) = list.iter_mut().find(|r| r.buffer == region.buffer) else {
        list.push(region);
        return;
    };
    for (a, b) in old.ranges.iter_mut().zip(region.ranges) {
        *a = hull(a, &b, analyzer);
    }
}

/// The least range that covers both.
fn hull(a: &Range, b: &Range, analyzer: &Analyzer) -> Range {
    if a == b || (analyzer.prove_equal(&a.min, &b.min) && analyzer.prove_equal(&a.extent, &b.extent)) {
        return a.clone();
    }
    let min = analyzer.simplify(&a.min.clone().min(b.min.clone()));
    let end = analyzer.simplify(&(&a.min + &a.extent).max(&b.min + &b.extent));
    let extent = analyzer.simplify(&(end - min.clone()));
    Range { min, extent }
}

/// The constant factor of a variable in an expression that is linear in it; `None` when it is not.
fn coefficient(e: &PrimExpr, var: &Var) -> Option<i64> {
    use crate::prim::BinOp;
    if !free_vars(e).contains(var) {
        return Some(0);
    }
    match e.kind() {
        PrimKind::Var(v) if v == var => Some(1),
        PrimKind::Binary(BinOp::Add, a, b) => coefficient(a, var)?.checked_add(coefficient(b, var)?),
        PrimKind::Binary(BinOp::Sub, a, b) => coefficient(a, var)?.checked_sub(coefficient(b, var)?),
        PrimKind::Binary(BinOp::Mul, a, b) => match (a.as_int(), b.as_int()) {
            (_, Some(f)) => coefficient(a, var)?.checked_mul(f),
            (Some(f), _) => coefficient(b, var)?.checked_mul(f),
            _ => None,
        },
        _ => None,
    }
}
