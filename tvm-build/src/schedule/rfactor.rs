//! `rfactor`

use super::edit::leaf_blocks;
use super::split::serial;
use super::{BlockRV, LoopRV, Schedule};
use tvm_ir::arith::{Analyzer, IntBound};
use tvm_ir::diag::Diag;
use tvm_ir::name::Name;
use tvm_ir::prim::{BinOp, Buffer, BufferNode, PrimExpr, PrimKind, Range, Scope, Substitution, Var, free_vars, visit};
use tvm_ir::te::{highest, lowest};
use tvm_ir::tir::{Block, For, IterKind, IterVar, Stmt, Store, access_regions, substitute_stmt};

/// A block of the form `out[…] = out[…] op value`, with an associative and commutative `op`.
pub(crate) struct Update<'a> {
    /// The operation.
    pub(crate) op: BinOp,
    /// The store.
    pub(crate) store: &'a Store,
    /// What is combined with the element.
    pub(crate) value: &'a PrimExpr,
}

impl Update<'_> {
    /// The update that a block makes; `None` when it is of another form, or when its init is not neutral.
    pub(crate) fn of(b: &Block) -> Option<Update<'_>> {
        let Stmt::Store(store) = &b.body else { return None };
        let PrimKind::Binary(op, first, second) = store.value.kind() else { return None };
        let dtype = store.value.dtype();
        let known = dtype.lanes == 1 && (dtype.is_float() || dtype.is_integer());
        if !matches!(op, BinOp::Add | BinOp::Mul | BinOp::Max | BinOp::Min) || !known || store.buffer.dtype != dtype {
            return None;
        }
        let own = |e: &PrimExpr| matches!(e.kind(), PrimKind::Load(x, i) if *x == store.buffer && *i == store.indices);
        let value = match (own(first), own(second)) {
            (true, false) => second,
            (false, true) => first,
            _ => return None,
        };
        let mut again = false;
        visit(value, &mut |e| again |= matches!(e.kind(), PrimKind::Load(x, _) if *x == store.buffer));
        let update = Update { op: *op, store, value };
        (!again && b.init.as_ref().is_none_or(|i| update.starts_neutral(i))).then_some(update)
    }

    /// Whether it does not matter how often an init's value is combined.
    fn starts_neutral(&self, init: &Stmt) -> bool {
        let Stmt::Store(init) = init else { return false };
        let same = init.buffer == self.store.buffer && init.indices == self.store.indices;
        let is = |v: f64| {
            init.value.as_float() == Some(v) || (v == 0.0 && init.value.is_int(0)) || (v == 1.0 && init.value.is_int(1))
        };
        same && match self.op {
            BinOp::Add => is(0.0),
            BinOp::Mul => is(1.0),
            _ => init.value.as_float().is_some() || init.value.as_int().is_some(),
        }
    }

    /// Whether the order of the operations can change the result.
    pub(crate) fn rounds(&self) -> bool {
        self.store.value.dtype().is_float() && matches!(self.op, BinOp::Add | BinOp::Mul)
    }

    /// What changes no value that it is combined with.
    fn neutral(&self) -> PrimExpr {
        let dtype = self.store.value.dtype();
        match self.op {
            BinOp::Mul => PrimExpr::number(dtype, 1.0),
            BinOp::Max => lowest(dtype),
            BinOp::Min => highest(dtype),
            _ => PrimExpr::zero(dtype),
        }
    }
}

/// The loops of a block from a certain one inwards, and what they do.
struct Part {
    block: Block,
    /// Loops over the result, with their extents.
    spatial: Vec<(Var, PrimExpr)>,
    /// Loops that reduce.
    reduce: Vec<For>,
    /// Loops further out that reduce.
    outside: Vec<For>,
}

impl Schedule {
    /// Reduces what the loops from `at` inwards reduce in a buffer of its own, and combines that with the result after
    /// `at`: a sum of sums. A reduction loop `apart` among them becomes spatial there: each of its iterations has an
    /// element of its own, in a last dimension of the buffer, so that it can be vectorized.
    ///
    /// The block keeps its name where it combines; the blocks returned are the one that sets the new buffer to what is
    /// neutral, before `at`, and the one that reduces. Errs unless the block combines its result with a value by `+`,
    /// `*`, `max` or `min`, starting from what is neutral, alone inside of `at` and without predicate; and when the
    /// extent of `apart` has no bound or one of a spatial loop depends on a reduction loop.
    pub fn rfactor(&mut self, block: &BlockRV, at: &LoopRV, apart: Option<&LoopRV>) -> Result<[BlockRV; 2], Diag> {
        let analyzer = self.analyzer();
        let part = self.part(block, at, apart)?;
        let b = &part.block;
        let Some(update) = Update::of(b) else {
            return Err(self.error(format!("block {block} does not combine its result with a value from neutral on")));
        };
        let lanes = match apart {
            Some(l) => {
                let most = analyzer.bounds(&self.get_loop(l)?.extent).max;
                if most == IntBound::POS_INF {
                    return Err(self.error(format!("the extent of loop {l} has no bound")));
                }
                Some((l, PrimExpr::int(l.0.dtype(), most.max(1))))
            }
            None => None,
        };
        let out = &update.store.buffer;
        let shape = out.shape.iter().cloned().chain(lanes.iter().map(|(_, n)| n.clone())).collect();
        let rf_name = self.names.fresh_underscore(&format!("{}_rf", b.name));
        let init_name = self.names.fresh_underscore(&format!("{rf_name}_init"));
        let rf = Buffer::from_node(BufferNode {
            name: rf_name.clone(),
            shape,
            scope: Scope::Global,
            strides: Vec::new(),
            elem_offset: None,
            ..out.node().clone()
        });

        let factoring = Factoring { update, part: &part, rf: &rf, lanes, analyzer: &analyzer };
        let factored = factoring.factored(rf_name.clone());
        let init = factoring.neutral_nest(init_name.clone());
        let merge = factoring.merge_nest();
        self.replace_block(block, &mut |_| Ok(Stmt::Block(Box::new(factored.clone()))))?;
        self.replace_loop(at, &mut |l| Ok(Stmt::seq([init.clone(), Stmt::For(Box::new(l)), merge.clone()])))?;
        self.allocate(rf)?;
        Ok([BlockRV(init_name), BlockRV(rf_name)])
    }

    fn part(&self, block: &BlockRV, at: &LoopRV, apart: Option<&LoopRV>) -> Result<Part, Diag> {
        let (b, loops) = self.block_and_loops(block)?;
        let Some(start) = loops.iter().position(|l| l.var == at.0) else {
            return Err(self.error(format!("loop {at} is not around block {block}")));
        };
        let alone = leaf_blocks(&loops[start].body).len() == 1;
        if !alone
            || !b.predicate.is_int(1)
            || b.iters.iter().any(|i| !matches!(i.kind, IterKind::Spatial | IterKind::Reduce))
        {
            return Err(self.error(format!("block {block} is not alone in loop {at}, or runs under a condition")));
        }
        let used =
            |l: &For, kind: IterKind| b.iters.iter().any(|i| i.kind == kind && free_vars(&i.binding).contains(&l.var));
        let (mut spatial, mut reduce) = (Vec::new(), Vec::new());
        for l in &loops[start..] {
            match (used(l, IterKind::Spatial), used(l, IterKind::Reduce)) {
                (true, false) if l.min.is_int(0) => spatial.push((l.var.clone(), l.extent.clone())),
                (false, true) => reduce.push((*l).clone()),
                _ => return Err(self.error(format!("loop {} is neither spatial nor reduces alone", l.var.name()))),
            }
        }
        let outside = loops[..start].iter().filter(|l| used(l, IterKind::Reduce)).map(|l| (*l).clone()).collect();
        let depends = |e: &PrimExpr| free_vars(e).iter().any(|v| reduce.iter().any(|l| l.var == *v));
        if let Some((v, _)) = spatial.iter().find(|(_, e)| depends(e)) {
            return Err(self.error(format!("the extent of loop {} depends on a reduction loop", v.name())));
        }
        match apart {
            Some(l) if reduce.iter().all(|r| r.var != l.0 || !r.min.is_int(0)) => {
                Err(self.error(format!("loop {l} does not reduce for block {block} inside of loop {at}")))
            }
            _ => Ok(Part { block: b.clone(), spatial, reduce, outside }),
        }
    }
}

/// A block and the buffer that a part of its reduction goes to.
struct Factoring<'a> {
    update: Update<'a>,
    part: &'a Part,
    /// The new buffer.
    rf: &'a Buffer,
    /// The loop whose iterations have elements of their own, and how many there are at most.
    lanes: Option<(&'a LoopRV, PrimExpr)>,
    analyzer: &'a Analyzer,
}

impl Factoring<'_> {
    /// The block that reduces into the new buffer: one iterator a reduction loop, that of the lanes spatial.
    fn factored(&self, name: Name) -> Block {
        let Factoring { update, part, rf, analyzer, .. } = self;
        let b = &part.block;
        let mut iters: Vec<IterVar> = b.iters.iter().filter(|i| i.kind == IterKind::Spatial).cloned().collect();
        let mut of_loops = Substitution::default();
        let mut lane = None;
        for l in part.outside.iter().chain(&part.reduce) {
            let mut iter = self.reduce_iter(l);
            of_loops.vars.insert(l.var.clone(), iter.var.expr());
            if let Some((_, n)) = self.lanes.as_ref().filter(|(x, _)| x.0 == l.var) {
                (iter.kind, iter.dom) = (IterKind::Spatial, Range::to(n.clone()));
                lane = Some(iter.var.expr());
            }
            iters.push(iter);
        }
        // Reduction iterators in terms of the loops' own.
        let mut sub = Substitution::default();
        for i in b.iters.iter().filter(|i| i.kind == IterKind::Reduce) {
            sub.vars.insert(i.var.clone(), of_loops.apply(&i.binding));
        }
        let at: Vec<PrimExpr> = update.store.indices.iter().cloned().chain(lane).collect();
        let value = PrimExpr::binary(update.op, PrimExpr::load(rf, at.clone()), update.value.clone());
        let body = substitute_stmt(Stmt::store(rf, at, value), &sub);
        let (reads, writes) = access_regions(None, &body, analyzer);
        Block { name, iters, reads, writes, init: None, body, ..b.clone() }
    }

    /// A reduction iterator for a loop, over all that the loop may run over.
    fn reduce_iter(&self, l: &For) -> IterVar {
        let var = Var::new(format!("v_{}", l.var.name()), l.var.dtype());
        let inner = |v: &Var| self.part.outside.iter().chain(&self.part.reduce).any(|o| o.var == *v);
        let most = self.analyzer.bounds(&l.extent).max;
        let extent = match free_vars(&l.extent).iter().any(inner) && most != IntBound::POS_INF {
            true => PrimExpr::int(l.var.dtype(), most),
            false => l.extent.clone(),
        };
        let dom = Range { min: l.min.clone(), extent };
        IterVar { var, dom, kind: IterKind::Reduce, binding: l.var.expr() }
    }

    /// Copies of the spatial iterators of a block and of the loops of a part that drive them.
    fn copies(&self) -> (Vec<(Var, PrimExpr)>, Vec<IterVar>, Substitution) {
        let mut loop_vars = Substitution::default();
        let mut loops = Vec::new();
        for (v, extent) in &self.part.spatial {
            let var = v.copy();
            let extent = loop_vars.apply(extent);
            loop_vars.vars.insert(v.clone(), var.expr());
            loops.push((var, extent));
        }
        let mut iter_vars = Substitution::default();
        let iters = self.part.block.iters.iter().filter(|i| i.kind == IterKind::Spatial).map(|i| {
            let var = i.var.copy();
            iter_vars.vars.insert(i.var.clone(), var.expr());
            IterVar { var, dom: i.dom.clone(), kind: i.kind, binding: loop_vars.apply(&i.binding) }
        });
        let iters = iters.collect();
        (loops, iters, iter_vars)
    }

    /// The loop over the lanes and an iterator of this kind that it drives, put behind the others; gives the last index of the
    /// new buffer.
    fn lane(&self, kind: IterKind, loops: &mut Vec<(Var, PrimExpr)>, iters: &mut Vec<IterVar>) -> Option<PrimExpr> {
        let (l, n) = self.lanes.as_ref()?;
        let (var, iter) = (l.0.copy(), Var::new(format!("v_{}", l.0.name()), l.0.dtype()));
        iters.push(IterVar { var: iter.clone(), dom: Range::to(n.clone()), kind, binding: var.expr() });
        loops.push((var, n.clone()));
        Some(iter.expr())
    }

    /// `rf[…, lane] = neutral`
    fn neutral_nest(&self, name: Name) -> Stmt {
        let Factoring { update, rf, analyzer, .. } = self;
        let (mut loops, mut iters, sub) = self.copies();
        let mut at: Vec<PrimExpr> = update.store.indices.iter().map(|i| sub.apply(i)).collect();
        at.extend(self.lane(IterKind::Spatial, &mut loops, &mut iters));
        let body = Stmt::store(rf, at, update.neutral());
        let (reads, writes) = access_regions(None, &body, analyzer);
        nest(Block { name, iters, reads, writes, ..Block::root(Vec::new(), body) }, loops)
    }

    /// `out[…] = out[…] op rf[…, lane]`, with the block's init.
    fn merge_nest(&self) -> Stmt {
        let Factoring { update, part, rf, analyzer, .. } = self;
        let b = &part.block;
        let (mut loops, mut iters, sub) = self.copies();
        iters.extend(part.outside.iter().map(|l| self.reduce_iter(l)));
        let own: Vec<PrimExpr> = update.store.indices.iter().map(|i| sub.apply(i)).collect();
        let mut at = own.clone();
        at.extend(self.lane(IterKind::Reduce, &mut loops, &mut iters));
        let out = &update.store.buffer;
        let value = PrimExpr::binary(update.op, PrimExpr::load(out, own.clone()), PrimExpr::load(rf, at));
        let body = Stmt::store(out, own, value);
        let init = b.init.as_ref().map(|i| substitute_stmt(crate::tir_tools::freshen(i), &sub));
        let (reads, writes) = access_regions(init.as_ref(), &body, analyzer);
        nest(Block { iters, reads, writes, init, body, ..b.clone() }, loops)
    }
}

fn nest(block: Block, loops: Vec<(Var, PrimExpr)>) -> Stmt {
    loops.into_iter().rev().fold(Stmt::Block(Box::new(block)), |body, (var, extent)| {
        Stmt::For(Box::new(For { body, ..serial(&var, extent) }))
    })
}
