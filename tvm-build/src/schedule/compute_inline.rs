//! `compute_inline`

use super::edit::leaf_blocks;
use super::{BlockRV, Schedule};
use crate::tir_tools::{accesses, buffers_accessed, touches};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{Buffer, PrimExpr, PrimKind, Substitution, Var, rewrite};
use tvm_ir::tir::{Block, IterKind, Stmt, access_regions, map_exprs, rewrite_stmt};

/// A block as the value of a buffer's element.
struct Definition {
    buffer: Buffer,
    /// For each dimension the iterator that indexes it; `None` for a constant index of a dimension of extent 1.
    dims: Vec<Option<Var>>,
    /// Values of iterators that index no dimension: their only value.
    fixed: Substitution,
    value: PrimExpr,
}

impl Schedule {
    /// Puts the value that a block stores in the place of every load of its buffer, and removes block and buffer.
    /// Errs unless the block stores one element of an allocated buffer at its spatial iterators, is its only writer,
    /// and what it reads is not written after it.
    pub fn compute_inline(&mut self, block: &BlockRV) -> Result<(), Diag> {
        let def = self.definition(block)?;
        let analyzer = self.analyzer();
        let mut body = self.removed_nest(block)?;
        let inline = |e: &PrimExpr| {
            rewrite(e, &mut |n| match n.kind() {
                PrimKind::Load(b, indices) if *b == def.buffer => Some(def.at(indices)),
                _ => None,
            })
        };
        body = rewrite_stmt(body, &mut |s| match s {
            // Regions are computed anew below, not rewritten.
            Stmt::Block(mut b) => {
                b.predicate = inline(&b.predicate);
                if b.reads.iter().any(|r| r.buffer == def.buffer) && !b.iters.is_empty() {
                    let (reads, writes) = access_regions(b.init.as_ref(), &b.body, &analyzer);
                    (b.reads, b.writes) = (reads, writes);
                }
                b.allocs.retain(|a| *a != def.buffer);
                Stmt::Block(b)
            }
            other => map_exprs(other, &mut |e| inline(e)),
        });
        if touches(&body, &def.buffer) {
            return Err(self.error(format!("buffer {} of block {block} is still used elsewhere", def.buffer.name)));
        }
        self.func.body = body;
        Ok(())
    }

    fn definition(&self, block: &BlockRV) -> Result<Definition, Diag> {
        let b = self.block(block)?;
        let no = |why: &str| self.error(format!("block {block} cannot be inlined: {why}"));
        let Stmt::Store(store) = &b.body else { return Err(no("it is not one store")) };
        if b.init.is_some() || b.iters.iter().any(|i| i.kind != IterKind::Spatial) {
            return Err(no("it reduces"));
        }
        if !b.predicate.is_int(1) || !b.allocs.is_empty() {
            return Err(no("it has a predicate or allocates"));
        }
        let buffer = store.buffer.clone();
        if self.func.buffers().any(|p| *p == buffer) {
            return Err(no("it writes a parameter"));
        }
        if accesses(&b.body).iter().any(|a| !a.write && a.buffer == buffer) {
            return Err(no("it reads what it writes"));
        }
        let mut left: Vec<_> = b.iters.iter().collect();
        let mut dims = Vec::new();
        for (i, extent) in store.indices.iter().zip(&buffer.shape) {
            if let Some(at) = left.iter().position(|v| i.as_var() == Some(&v.var) && v.dom.extent == *extent) {
                dims.push(Some(left.remove(at).var.clone()));
            } else if i.is_int(0) && extent.is_int(1) {
                dims.push(None);
            } else {
                return Err(no("its store is not at plain iterators"));
            }
        }
        let mut fixed = Substitution::default();
        for i in left {
            if !i.dom.extent.is_int(1) {
                return Err(no("an iterator does not index its store"));
            }
            fixed.vars.insert(i.var.clone(), i.dom.min.clone());
        }
        self.check_writers(block, b, &buffer)?;
        Ok(Definition { buffer, dims, fixed, value: store.value.clone() })
    }

    /// The buffer has no other writer, and nothing that the block reads is written after it.
    fn check_writers(&self, block: &BlockRV, b: &Block, buffer: &Buffer) -> Result<(), Diag> {
        let inputs: Vec<Buffer> = buffers_accessed(&b.body).into_iter().filter(|x| x != buffer).collect();
        let mut after = false;
        for other in leaf_blocks(&self.func.body) {
            if other.name == b.name {
                after = true;
                continue;
            }
            for w in &other.writes {
                if w.buffer == *buffer {
                    return Err(self.error(format!("block {} writes the buffer of block {block} too", other.name)));
                }
                if after && inputs.contains(&w.buffer) {
                    return Err(self.error(format!(
                        "block {} writes {}, which block {block} reads before",
                        other.name, w.buffer.name
                    )));
                }
            }
        }
        Ok(())
    }

    /// The body without a block and the loops that hold nothing else.
    pub(super) fn removed_nest(&self, block: &BlockRV) -> Result<Stmt, Diag> {
        self.block(block)?;
        fn go(s: Stmt, name: &str) -> Stmt {
            match s {
                Stmt::Block(b) if &*b.name == name => Stmt::Seq(Vec::new()),
                Stmt::For(mut f) => {
                    f.body = go(f.body, name);
                    if matches!(&f.body, Stmt::Seq(v) if v.is_empty()) { f.body } else { Stmt::For(f) }
                }
                other => other.map_children(&mut |c| go(c, name)),
            }
        }
        Ok(go(self.func.body.clone(), &block.0))
    }
}

impl Definition {
    /// The value of the element at some indices.
    fn at(&self, indices: &[PrimExpr]) -> PrimExpr {
        let mut sub = self.fixed.clone();
        for (dim, index) in self.dims.iter().zip(indices) {
            if let Some(v) = dim {
                sub.vars.insert(v.clone(), index.cast(v.dtype()));
            }
        }
        sub.apply(&self.value)
    }
}
