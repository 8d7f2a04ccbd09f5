//! `vectorize`, `unroll`, `parallel`, `annotate`

use super::edit::leaf_blocks;
use super::{LoopRV, Schedule};
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diag;
use tvm_ir::name::Name;
use tvm_ir::prim::free_vars;
use tvm_ir::tir::{ForKind, IterKind, Stmt};

impl Schedule {
    /// All iterations at once in vector lanes. Errs when a block inside uses the loop in another way than for its
    /// spatial iterators.
    pub fn vectorize(&mut self, l: &LoopRV) -> Result<(), Diag> {
        self.set_kind(l, ForKind::Vectorized)
    }

    /// The body written out.
    pub fn unroll(&mut self, l: &LoopRV) -> Result<(), Diag> {
        self.set_kind(l, ForKind::Unrolled)
    }

    /// Iterations on several threads. Errs as [`Schedule::vectorize`] does.
    pub fn parallel(&mut self, l: &LoopRV) -> Result<(), Diag> {
        self.set_kind(l, ForKind::Parallel)
    }

    /// Puts an annotation on a loop.
    pub fn annotate(&mut self, l: &LoopRV, key: impl Into<Name>, value: AttrValue) -> Result<(), Diag> {
        let key = key.into();
        self.replace_loop(l, &mut |mut f| {
            f.annotations.insert(key.clone(), value.clone());
            Ok(Stmt::For(Box::new(f)))
        })
    }

    fn set_kind(&mut self, l: &LoopRV, kind: ForKind) -> Result<(), Diag> {
        let f = self.get_loop(l)?;
        if kind != ForKind::Unrolled {
            for b in leaf_blocks(&f.body) {
                let bad = b.iters.iter().find(|i| i.kind != IterKind::Spatial && free_vars(&i.binding).contains(&l.0));
                if let Some(i) = bad {
                    return Err(self.error(format!(
                        "loop {l} cannot be {kind:?}: block {} uses it for iterator {}, which is {:?}",
                        b.name,
                        i.var.name(),
                        i.kind
                    )));
                }
            }
        }
        self.replace_loop(l, &mut |mut f| {
            f.kind = kind.clone();
            Ok(Stmt::For(Box::new(f)))
        })
    }
}
