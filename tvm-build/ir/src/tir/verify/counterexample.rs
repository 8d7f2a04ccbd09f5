//! Counterexamples: values of the variables around an access at which it leaves its buffer.

use super::bounds::Frame;
use super::eval::eval;
use crate::arith::IntBound;
use crate::prim::{PrimExpr, Var, free_vars};
use std::collections::{BTreeMap, BTreeSet};

/// Points tried for a counterexample of one access.
const POINTS: u64 = 2048;

/// An access out of bounds.
#[derive(Clone, Debug)]
pub(super) struct Counterexample {
    /// The variables that matter and their values: symbolic extents first, then loops from the outside in.
    pub(super) at: Vec<(Var, i64)>,
    /// The index there.
    pub(super) index: i64,
    /// The extent there.
    pub(super) extent: i64,
}

/// Values of the variables around at which all conditions hold and the claim does not; `free` are those that may have
/// any value.
pub(super) fn find(
    free: &[Var],
    frames: &[Frame],
    e: &PrimExpr,
    extent: &PrimExpr,
    claim: &PrimExpr,
) -> Option<Counterexample> {
    let mut search =
        Search { free, frames, e, extent, claim, relevant: relevant(frames, claim), all: false, left: POINTS };
    if free.is_empty() {
        // The ends of loops, where accesses most often leave their buffers; then every point of small loops.
        return search.go(0, &mut BTreeMap::new()).or_else(|| {
            (search.all, search.left) = (true, 2 * POINTS);
            search.go(0, &mut BTreeMap::new())
        });
    }
    for sizes in assignments(free.len()) {
        let mut at = BTreeMap::new();
        for (v, x) in free.iter().zip(&sizes) {
            let fits = IntBound::of_type(v.dtype()).contains(*x);
            at.insert(v.clone(), if fits { *x } else { 1 });
        }
        for all in [false, sizes.iter().all(|x| *x < 9)] {
            (search.all, search.left) = (all, POINTS / 30);
            if let Some(found) = search.go(0, &mut at) {
                return Some(found);
            }
        }
    }
    None
}

/// Values to try for a number of extents, small ones first: the same for all, then mixed.
fn assignments(n: usize) -> Vec<Vec<i64>> {
    let mut out: Vec<Vec<i64>> = [1, 2, 3, 4, 5, 7, 8, 16, 31, 100].into_iter().map(|x| vec![x; n]).collect();
    if n > 1 {
        const SIZES: [i64; 6] = [1, 2, 3, 5, 8, 16];
        // The first extents take every combination, the others follow the first.
        let digits = n.min(3);
        let count = SIZES.len().pow(u32::try_from(digits).unwrap_or(0));
        for mut code in 0..count {
            let mut sizes = Vec::with_capacity(n);
            for i in 0..n {
                let x = if i < digits { SIZES[code % SIZES.len()] } else { sizes[i % digits] };
                code /= SIZES.len();
                sizes.push(x);
            }
            out.push(sizes);
        }
    }
    out
}

struct Search<'a> {
    free: &'a [Var],
    frames: &'a [Frame],
    e: &'a PrimExpr,
    extent: &'a PrimExpr,
    claim: &'a PrimExpr,
    /// The variables that decide the claim and the conditions: of the others one value is tried.
    relevant: BTreeSet<Var>,
    /// Try every value of a loop, not its ends alone.
    all: bool,
    left: u64,
}

impl Search<'_> {
    fn go(&mut self, depth: usize, at: &mut BTreeMap<Var, i64>) -> Option<Counterexample> {
        if self.left == 0 {
            return None;
        }
        match self.frames.get(depth) {
            None => {
                self.left -= 1;
                if eval(self.claim, at)? != 0 {
                    return None;
                }
                let (index, extent) = (eval(self.e, at)?, eval(self.extent, at)?);
                Some(Counterexample { at: self.shown(at), index, extent })
            }
            Some(Frame::Holds(cond)) => (eval(cond, at)? != 0).then_some(()).and_then(|()| self.go(depth + 1, at)),
            Some(Frame::Value(v, value)) => {
                // A value from memory is left open: what depends on it is not decided.
                if let Some(x) = eval(value, at) {
                    at.insert(v.clone(), x);
                }
                let found = self.go(depth + 1, at);
                at.remove(v);
                found
            }
            Some(Frame::Loop(v, range)) => {
                let (min, extent) = (eval(&range.min, at)?, eval(&range.extent, at)?);
                if extent <= 0 {
                    return None;
                }
                let last = min.checked_add(extent - 1)?;
                let ends = [min, last, min.saturating_add(1), last.saturating_sub(1), min.saturating_add(extent / 2)];
                let found = if !self.relevant.contains(v) {
                    self.at_value(depth, at, v, min)
                } else if self.all {
                    (min..=last).find_map(|x| if self.left == 0 { None } else { self.at_value(depth, at, v, x) })
                } else {
                    let first = |i: usize| ends.iter().position(|x| *x == ends[i]) == Some(i);
                    let wanted = (0..ends.len()).filter(|i| (min..=last).contains(&ends[*i]) && first(*i));
                    wanted.map(|i| ends[i]).find_map(|x| self.at_value(depth, at, v, x))
                };
                at.remove(v);
                found
            }
        }
    }

    fn at_value(&mut self, depth: usize, at: &mut BTreeMap<Var, i64>, v: &Var, x: i64) -> Option<Counterexample> {
        at.insert(v.clone(), x);
        self.go(depth + 1, at)
    }

    /// The variables that the claim depends on, with their values.
    fn shown(&self, at: &BTreeMap<Var, i64>) -> Vec<(Var, i64)> {
        let mut used: BTreeSet<Var> = free_vars(self.claim);
        depends_on(self.frames, &mut used);
        let around = self.frames.iter().filter_map(|f| match f {
            Frame::Loop(v, _) | Frame::Value(v, _) => Some(v),
            Frame::Holds(_) => None,
        });
        let all = self.free.iter().chain(around).filter(|v| used.contains(v));
        all.filter_map(|v| at.get(v).map(|x| (v.clone(), *x))).collect()
    }
}

/// Adds the variables that a set of variables depends on.
fn depends_on(frames: &[Frame], used: &mut BTreeSet<Var>) {
    for f in frames.iter().rev() {
        match f {
            Frame::Value(v, value) if used.contains(v) => used.extend(free_vars(value)),
            Frame::Loop(v, range) if used.contains(v) => {
                used.extend(free_vars(&range.min).into_iter().chain(free_vars(&range.extent)));
            }
            _ => {}
        }
    }
}

/// The variables that decide whether the claim holds and whether the access is reached.
fn relevant(frames: &[Frame], claim: &PrimExpr) -> BTreeSet<Var> {
    let mut used: BTreeSet<Var> = free_vars(claim);
    for f in frames {
        if let Frame::Holds(cond) = f {
            used.extend(free_vars(cond));
        }
    }
    depends_on(frames, &mut used);
    used
}
