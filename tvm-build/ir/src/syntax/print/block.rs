//! Blocks of TensorIR.

use super::Printer;
use super::doc::quoted;
use super::tir::domain;
use crate::tir::{Block, IterKind, IterVar, Region};

impl Printer {
    pub(super) fn block(&mut self, b: &Block) {
        let word = self.block_word();
        self.line(format!("with T.{word}({}):", quoted(&b.name)));
        self.indent += 1;
        self.names.push();
        self.iters(&b.iters);
        if !b.predicate.is_int(1) {
            let cond = self.prim(&b.predicate);
            self.line(format!("T.where({cond})"));
        }
        // Regions may name the buffers of this block, which come later in the text: they are named here.
        let allocs = self.captured(|p| p.allocs(&b.allocs));
        self.regions("reads", &b.reads);
        self.regions("writes", &b.writes);
        if !b.annotations.is_empty() {
            let attrs = self.attrs(&b.annotations);
            self.line(format!("T.{word}_attr({attrs})"));
        }
        self.lines.extend(allocs);
        if let Some(init) = &b.init {
            self.line("with T.init():");
            self.nested(init);
        }
        let before = self.lines.len();
        self.stmt(&b.body);
        if self.lines.len() == before {
            self.line("pass");
        }
        self.names.pop();
        self.indent -= 1;
    }

    fn regions(&mut self, word: &str, regions: &[Region]) {
        let docs: Vec<String> = regions.iter().map(|r| self.region(&r.buffer, &r.ranges)).collect();
        self.line(format!("T.{word}({})", docs.join(", ")));
    }

    /// Iterators bound to a loop of their own domain are written together as `T.axis.remap`.
    fn iters(&mut self, iters: &[IterVar]) {
        let mut run: Vec<&IterVar> = Vec::new();
        for i in iters {
            if self.is_remap(i) {
                run.push(i);
            } else {
                self.remap(&mut run);
                self.axis(i);
            }
        }
        self.remap(&mut run);
    }

    fn is_remap(&self, i: &IterVar) -> bool {
        matches!(i.kind, IterKind::Spatial | IterKind::Reduce)
            && i.binding.as_var().is_some_and(|v| {
                let of = self.open_loops.iter().rev().find(|(l, ..)| l == v);
                of.is_some_and(|(_, min, extent)| *min == i.dom.min && *extent == i.dom.extent)
            })
    }

    fn remap(&mut self, run: &mut Vec<&IterVar>) {
        match run.as_slice() {
            [] => {}
            [one] => self.axis(one),
            many => {
                let bindings: Vec<String> = many.iter().map(|i| self.prim(&i.binding)).collect();
                let names: Vec<String> = many.iter().map(|i| self.names.define_prim(&i.var).to_string()).collect();
                let kinds: String = many.iter().map(|i| if i.kind == IterKind::Reduce { 'R' } else { 'S' }).collect();
                self.line(format!("{} = T.axis.remap(\"{kinds}\", [{}])", names.join(", "), bindings.join(", ")));
            }
        }
        run.clear();
    }

    fn axis(&mut self, i: &IterVar) {
        let kind = match i.kind {
            IterKind::Spatial => "spatial",
            IterKind::Reduce => "reduce",
            IterKind::Ordered => "scan",
            IterKind::Opaque => "opaque",
        };
        let dom = domain(self, &i.dom.min, &i.dom.extent);
        let binding = self.prim(&i.binding);
        let name = self.names.define_prim(&i.var);
        self.line(format!("{name} = T.axis.{kind}({dom}, {binding})"));
    }
}
