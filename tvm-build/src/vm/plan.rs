//! Static memory planning, in the spirit of TVM's StaticPlanBlockMemory: every tensor a function makes gets a byte
//! offset in its part of the arena, outputs go to the caller's memory.
//!
//! Liveness is over the linear order of steps: the branches of a conditional stand one after the other, which is
//! conservative and, without loops, exact enough. Sizes that depend on symbolic variables are planned by the upper
//! bounds the function declares (`tir_var_upper_bound`) or that ops state (`R.at_most`); without a number as a bound the
//! tensor lies behind the planned ones, at an offset computed at run time ([`Place::Dynamic`]) from what parameters tell.
//! A size that is known only when something has run, and has no bound that parameters tell, is not in the arena: the
//! tensor is a block of the run time's overflow store, given back after its last use ([`Place::Overflow`]).

use super::linear::{Linear, Origin, Step, StorageId};
use super::place::{Interval, best_fit, lower_bound};
use super::results::{moves_in, sources};
use super::size::{Size, bounds_of, size_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tvm_ir::arith::Analyzer;
use tvm_ir::diag::Diag;
use tvm_ir::ops::show_dims;
use tvm_ir::prim::{PrimExpr, free_vars};

/// The memory of one function, as data for reports and tests.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The Relax function.
    pub function: String,
    /// What lies in the function's part of the arena or in its outputs, in order of first use.
    pub tensors: Vec<Planned>,
    /// Bytes of the part of the arena whose size is known.
    pub arena_bytes: u64,
    /// The most bytes live at one step, after reuse in place: no placement needs fewer.
    pub lower_bound: u64,
    /// Bytes if nothing were shared.
    pub naive_bytes: u64,
    /// Sizes, in elements of a byte, of the regions placed at run time, in order; each begins at the next multiple of 64.
    pub regions: Vec<PrimExpr>,
}

/// A tensor (or several that are the same memory) in a [`Plan`].
#[derive(Clone, PartialEq, Debug)]
pub struct Planned {
    /// Name of the Relax variable that made it.
    pub name: String,
    /// Shape and dtype, as text.
    pub ty: String,
    /// Bytes; the bound where the size is symbolic and bounded, `None` where it is not.
    pub bytes: Option<u64>,
    /// Where it lies.
    pub place: Place,
    /// Step that writes it first.
    pub first: usize,
    /// Step that reads or writes it last.
    pub last: usize,
    /// Index, in the table, of the tensor whose memory it overwrites.
    pub in_place_of: Option<usize>,
}

/// Where a tensor lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the caller's output of this number.
    Out(u16),
    /// At a byte offset in the function's part of the arena.
    Arena(u64),
    /// In a region placed at run time: index into [`Plan::regions`].
    Dynamic(usize),
    /// In a block of the run time's overflow store, by number.
    Overflow(usize),
}

impl Plan {
    /// The byte offset of a region placed at run time; of the number of regions, the end of the last one.
    pub(super) fn region_offset(&self, region: usize) -> PrimExpr {
        let align = tvm_runtime::ALIGN as i64;
        let start = i64::try_from(self.arena_bytes.next_multiple_of(tvm_runtime::ALIGN as u64)).unwrap_or(i64::MAX);
        self.regions
            .iter()
            .take(region)
            .fold(PrimExpr::i64(start), |at, bytes| at + (bytes.clone() + (align - 1)).floordiv(align) * align)
    }
}

impl fmt::Display for Plan {
    /// A table, one line a tensor.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (arena, bound, naive) = (self.arena_bytes, self.lower_bound, self.naive_bytes);
        writeln!(f, "@{}: arena {arena} bytes (lower bound {bound}, unshared {naive})", self.function)?;
        for t in &self.tensors {
            let place = match t.place {
                Place::Out(i) => format!("out[{i}]"),
                Place::Arena(offset) => format!("+{offset}"),
                Place::Dynamic(i) => format!("dyn[{i}]"),
                Place::Overflow(i) => format!("heap[{i}]"),
            };
            let bytes = t.bytes.map_or_else(|| "?".to_string(), |b| b.to_string());
            write!(f, "  {place:<8} {bytes:>10}  {:>3}..{:<3} {}: {}", t.first, t.last, t.name, t.ty)?;
            if let Some(of) = t.in_place_of {
                write!(f, "  (in place of {})", self.tensors[of].name)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A plan, and where it puts the storages of the function.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) plan: Plan,
    /// Place of each root storage that is planned.
    pub(super) places: BTreeMap<StorageId, Place>,
    /// For each step, the storages whose memory is free after it.
    pub(super) freed: BTreeMap<usize, Vec<StorageId>>,
    /// The storage that each block of the overflow store is taken for.
    pub(super) blocks: Vec<StorageId>,
    /// First and last step at which a storage is named.
    pub(super) spans: BTreeMap<StorageId, (usize, usize)>,
    /// `(kernel, buffer)`: parameters that share memory with another one in some call.
    pub(super) aliased: Vec<(u16, usize)>,
}

/// Plans a function. Errors when a size is not known, or larger than memory can be.
pub(super) fn plan(lin: &Linear, options: &super::Options) -> Result<Placement, Diag> {
    let analyzer = bounds_of(lin);
    let live = Liveness::of(lin);
    let mut groups = Groups::new(lin, &live, &analyzer)?;
    let mut aliased = Vec::new();
    if options.reuse_in_place {
        lin.visit_steps(&mut |at, step| groups.join_in_place(lin, at, step, &analyzer, &mut aliased));
    }
    Ok(groups.place(lin, &live, &analyzer, aliased))
}

/// First write and last use of each root storage.
pub(super) struct Liveness {
    spans: BTreeMap<StorageId, (usize, usize)>,
    /// The same without the uses under another name.
    own: BTreeMap<StorageId, (usize, usize)>,
    /// Storages that are used under another name, after a move.
    moved: BTreeSet<StorageId>,
}

impl Liveness {
    pub(super) fn of(lin: &Linear) -> Liveness {
        let mut spans: BTreeMap<StorageId, (usize, usize)> = BTreeMap::new();
        lin.visit_steps(&mut |at, step| {
            for t in step.reads().iter().chain(&step.writes()) {
                let span = spans.entry(lin.storage_of(*t)).or_insert((at, at));
                *span = (span.0.min(at), span.1.max(at));
            }
        });
        let own = spans.clone();
        let mut moves = Vec::new();
        moves_in(lin, &lin.steps, &mut moves);
        // What moves on later comes first.
        for (from, to) in moves.iter().rev() {
            let last = spans.get(to).map_or(0, |s| s.1);
            if let Some(span) = spans.get_mut(from) {
                span.1 = span.1.max(last);
            }
        }
        Liveness { spans, own, moved: moves.into_iter().map(|(from, _)| from).collect() }
    }
}

/// Values that are all that uses their memory: what functions return to this one, and copies.
fn owned(lin: &Linear) -> BTreeSet<StorageId> {
    let mut found = BTreeSet::new();
    lin.visit_steps(&mut |_, step| match step {
        Step::Function { returned, .. } => found.extend(returned.iter().map(|t| lin.storage_of(*t))),
        Step::Clone { to, .. } => {
            found.insert(lin.storage_of(*to));
        }
        Step::Loop(_) => {
            let values = step.writes().into_iter().map(|t| lin.storage_of(t));
            found.extend(values.filter(|s| lin.storages[*s].origin == Origin::Value));
        }
        _ => {}
    });
    found
}

/// Memory whose offset is computed at run time, used by storages one after the other.
struct Region {
    bases: Vec<StorageId>,
    bytes: PrimExpr,
    last: usize,
}

/// Storages that share memory by being written in place, joined.
struct Groups {
    /// Storages whose contents outlive the function's part of the arena.
    outlive: BTreeSet<StorageId>,
    /// Root storages to be planned, by first use.
    storages: Vec<StorageId>,
    sizes: BTreeMap<StorageId, Size>,
    spans: BTreeMap<StorageId, (usize, usize)>,
    /// The storage a storage overwrites.
    over: BTreeMap<StorageId, StorageId>,
}

impl Groups {
    fn new(lin: &Linear, live: &Liveness, analyzer: &Analyzer) -> Result<Groups, Diag> {
        let planned = |s: StorageId| matches!(lin.storages[s].origin, Origin::Made | Origin::Out(_));
        let mut storages: Vec<StorageId> = live.spans.keys().copied().filter(|s| planned(*s)).collect();
        storages.sort_by_key(|s| (live.spans[s], *s));
        let mut sizes = BTreeMap::new();
        for s in &storages {
            sizes.insert(*s, size_of(lin, lin.storages[*s].tensor, analyzer)?);
        }
        let mut outlive = BTreeSet::new();
        for r in lin.steps.iter().filter(|_| lin.called) {
            if let Step::Return { tensors } = r {
                outlive.extend(tensors.iter().flat_map(|t| sources(lin, &lin.steps, lin.storage_of(*t))));
            }
        }
        Ok(Groups { outlive, storages, sizes, spans: live.spans.clone(), over: BTreeMap::new() })
    }

    /// Lets outputs of a kernel overwrite arguments that die there.
    fn join_in_place(
        &mut self,
        lin: &Linear,
        at: usize,
        step: &Step,
        analyzer: &Analyzer,
        aliased: &mut Vec<(u16, usize)>,
    ) {
        let Step::Kernel { kernel, args, outs, inplace, .. } = step else { return };
        for (out, arg) in inplace {
            let (Some(o), Some(a)) = (outs.get(*out), args.get(*arg)) else { continue };
            let (target, source) = (lin.storage_of(*o), lin.storage_of(*a));
            let made = |s: StorageId| lin.storages[s].origin == Origin::Made;
            let uses = args.iter().filter(|t| lin.storage_of(**t) == source).count();
            let dies = self.spans.get(&source).is_some_and(|s| s.1 == at);
            let born = self.spans.get(&target).is_some_and(|s| s.0 == at);
            let free = !self.over.contains_key(&target) && !self.over.values().any(|s| *s == source);
            if made(target) && made(source) && target != source && uses == 1 && dies && born && free {
                let (x, y) = (&self.sizes[&source], &self.sizes[&target]);
                let kind = |s: &Size| (s.most.is_some(), s.before.is_some());
                let alike = kind(x) == kind(y) && !self.outlive.contains(&target);
                if alike && analyzer.prove_equal(&x.expr, &y.expr) {
                    self.over.insert(target, source);
                    for buffer in [*arg, args.len() + *out] {
                        if !aliased.contains(&(*kernel, buffer)) {
                            aliased.push((*kernel, buffer));
                        }
                    }
                }
            }
        }
    }

    /// The storage whose memory it is in the end.
    fn base(&self, mut s: StorageId) -> StorageId {
        while let Some(next) = self.over.get(&s) {
            s = *next;
        }
        s
    }

    /// Puts a storage of unbounded size into a region that is free by then and provably large enough, or can be made
    /// so without symbols that are not known where the region is first used; else into a new region.
    fn region(
        &self,
        base: StorageId,
        storage: StorageId,
        (first, last): (usize, usize),
        analyzer: &Analyzer,
        regions: &mut Vec<Region>,
    ) {
        let Some(bytes) = &self.sizes[&storage].before else { return };
        let at_most = |a: &PrimExpr, b: &PrimExpr| a == b || analyzer.prove(&a.clone().le(b.clone()));
        let grows = |r: &Region| free_vars(bytes).is_subset(&free_vars(&r.bytes)) && at_most(&r.bytes, bytes);
        let free = |r: &Region| r.last < first;
        let found = regions
            .iter()
            .position(|r| r.bases.contains(&base))
            .or_else(|| regions.iter().position(|r| free(r) && at_most(bytes, &r.bytes)))
            .or_else(|| regions.iter().position(|r| free(r) && grows(r)));
        match found.and_then(|i| regions.get_mut(i)) {
            Some(r) => {
                if !at_most(bytes, &r.bytes) {
                    r.bytes = bytes.clone();
                }
                r.bases.push(base);
                r.last = r.last.max(last);
            }
            None => regions.push(Region { bases: vec![base], bytes: bytes.clone(), last }),
        }
    }

    fn place(&self, lin: &Linear, live: &Liveness, analyzer: &Analyzer, mut aliased: Vec<(u16, usize)>) -> Placement {
        let in_arena: Vec<StorageId> =
            self.storages.iter().copied().filter(|s| lin.storages[*s].origin == Origin::Made).collect();
        let mut intervals: BTreeMap<StorageId, Interval> = BTreeMap::new();
        let mut regions: Vec<Region> = Vec::new();
        let mut blocks: Vec<StorageId> = Vec::new();
        for s in &in_arena {
            let (base, (first, last)) = (self.base(*s), live.spans[s]);
            let size = &self.sizes[s];
            match size.most {
                _ if self.outlive.contains(s) || size.most.is_none() && size.before.is_none() => {
                    if !blocks.contains(&base) {
                        blocks.push(base);
                    }
                }
                Some(bytes) => {
                    let i = intervals.entry(base).or_insert(Interval { bytes, first, last });
                    *i = Interval { bytes: i.bytes.max(bytes), first: i.first.min(first), last: i.last.max(last) };
                }
                None => self.region(base, *s, (first, last), analyzer, &mut regions),
            }
        }
        let bases: Vec<StorageId> = intervals.keys().copied().collect();
        let spans: Vec<Interval> = intervals.values().copied().collect();
        let (offsets, arena_bytes) = best_fit(&spans);
        let mut places = BTreeMap::new();
        for s in &self.storages {
            let base = self.base(*s);
            let region = regions.iter().position(|r| r.bases.contains(&base));
            let block = blocks.iter().position(|b| *b == base);
            let place = match (lin.storages[*s].origin, bases.iter().position(|b| *b == base), region, block) {
                (Origin::Out(i), ..) => Place::Out(i),
                (_, _, _, Some(block)) => Place::Overflow(block),
                (_, Some(k), ..) => Place::Arena(offsets[k]),
                (_, None, region, _) => Place::Dynamic(region.unwrap_or_default()),
            };
            places.insert(*s, place);
        }
        let mut freed: BTreeMap<usize, Vec<StorageId>> = BTreeMap::new();
        // What is used under another name is not known to be what that name means in this run.
        let ends = |s: &&StorageId| !self.over.values().any(|x| x == *s) && !live.moved.contains(s);
        for s in in_arena.iter().filter(ends) {
            freed.entry(live.spans[s].1).or_default().push(*s);
        }
        for s in owned(lin).into_iter().filter(|s| !live.moved.contains(s)) {
            freed.entry(live.spans[&s].1).or_default().push(s);
        }
        let each: Vec<Interval> = in_arena
            .iter()
            .filter(|s| !matches!(places[s], Place::Overflow(_)))
            .filter_map(|s| self.sizes[s].most.map(|bytes| (s, bytes)))
            .map(|(s, bytes)| Interval { bytes, first: live.spans[s].0, last: live.spans[s].1 })
            .collect();
        let tensors = self.storages.iter().map(|s| self.row(lin, live, *s, places[s])).collect();
        aliased.sort_unstable();
        let plan = Plan {
            function: lin.name.to_string(),
            tensors,
            arena_bytes,
            lower_bound: lower_bound(&spans),
            naive_bytes: each.iter().map(Interval::padded).sum(),
            regions: regions.into_iter().map(|r| r.bytes).collect(),
        };
        Placement { plan, places, freed, blocks, spans: live.own.clone(), aliased }
    }

    fn row(&self, lin: &Linear, live: &Liveness, s: StorageId, place: Place) -> Planned {
        let tensor = &lin.tensors[lin.storages[s].tensor];
        let dims = tensor.dims.as_deref().map(show_dims).unwrap_or_default();
        let (first, last) = live.spans[&s];
        Planned {
            name: tensor.name.to_string(),
            ty: format!("{dims} {}", tensor.dtype.map(|d| d.to_string()).unwrap_or_default()),
            bytes: self.sizes[&s].most,
            place,
            first,
            last,
            in_place_of: self.over.get(&s).and_then(|o| self.storages.iter().position(|x| x == o)),
        }
    }
}
