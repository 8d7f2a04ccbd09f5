//! Statements and PrimFuncs as keys.

use super::{Encoder, len};
use crate::prim::Range;
use crate::tir::{Block, ForKind, Param, PrimFunc, Region, Stmt};

impl Encoder {
    pub(super) fn prim_func(&mut self, f: &PrimFunc) {
        self.int(len(f.params.len()));
        self.defining(|e| {
            for p in &f.params {
                match p {
                    Param::Buffer(b) => {
                        e.int(0);
                        e.define_buffer(b);
                    }
                    Param::Scalar(v) => {
                        e.int(1);
                        e.var(v);
                    }
                }
            }
        });
        self.attrs(&f.attrs);
        self.stmt(&f.body);
    }

    fn range(&mut self, r: &Range) {
        self.prim(&r.min);
        self.prim(&r.extent);
    }

    fn regions(&mut self, regions: &[Region]) {
        self.int(len(regions.len()));
        for r in regions {
            self.buffer(&r.buffer);
            self.int(len(r.ranges.len()));
            r.ranges.iter().for_each(|r| self.range(r));
        }
    }

    fn block(&mut self, b: &Block) {
        // The bindings stand outside of the block: they come before its variables are defined.
        self.int(len(b.iters.len()));
        for i in &b.iters {
            self.prim(&i.binding);
            self.range(&i.dom);
            self.int(i.kind as i64);
        }
        self.prim(&b.predicate);
        b.iters.iter().for_each(|i| self.define_var(&i.var));
        self.int(len(b.allocs.len()));
        b.allocs.iter().for_each(|a| self.define_buffer(a));
        self.regions(&b.reads);
        self.regions(&b.writes);
        self.attrs(&b.annotations);
        self.int(i64::from(b.init.is_some()));
        if let Some(init) = &b.init {
            self.stmt(init);
        }
        self.stmt(&b.body);
    }

    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Seq(items) => {
                self.tagged(0, len(items.len()));
                items.iter().for_each(|s| self.stmt(s));
            }
            Stmt::For(f) => {
                self.int(1);
                self.prim(&f.min);
                self.prim(&f.extent);
                match &f.kind {
                    ForKind::Serial => self.int(0),
                    ForKind::Parallel => self.int(1),
                    ForKind::Vectorized => self.int(2),
                    ForKind::Unrolled => self.int(3),
                    ForKind::ThreadBinding(axis) => {
                        self.int(4);
                        self.text(axis);
                    }
                }
                self.attrs(&f.annotations);
                self.define_var(&f.var);
                self.stmt(&f.body);
            }
            Stmt::Block(b) => {
                self.int(2);
                self.block(b);
            }
            Stmt::Store(s) => {
                self.int(3);
                self.buffer(&s.buffer);
                self.prims(&s.indices);
                self.prim(&s.value);
            }
            Stmt::Let(l) => {
                self.int(4);
                self.prim(&l.value);
                self.define_var(&l.var);
                self.stmt(&l.body);
            }
            Stmt::If(i) => {
                self.tagged(5, i64::from(i.otherwise.is_some()));
                self.prim(&i.cond);
                self.stmt(&i.then);
                if let Some(o) = &i.otherwise {
                    self.stmt(o);
                }
            }
            Stmt::While(w) => {
                self.int(6);
                self.prim(&w.cond);
                self.stmt(&w.body);
            }
            Stmt::Assert(a) => {
                self.int(7);
                self.prim(&a.cond);
                self.text(&a.message);
            }
            Stmt::Evaluate(e) => {
                self.int(8);
                self.prim(e);
            }
        }
    }
}
