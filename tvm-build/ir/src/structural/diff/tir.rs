//! PrimFuncs and statements.

use super::{Compared, Cx};
use crate::tir::{Block, Param, PrimFunc, Region, Stmt};

impl Cx {
    pub(super) fn prim_func(&mut self, a: &PrimFunc, b: &PrimFunc) -> Compared {
        if a.params.len() != b.params.len() {
            let count = |f: &PrimFunc| format!("{} parameters", f.params.len());
            return self.differ(count(a), count(b));
        }
        // Scalars first: shapes may name them, wherever they stand.
        let pairs = || a.params.iter().zip(&b.params).enumerate();
        for (i, p) in pairs() {
            match p {
                (Param::Scalar(x), Param::Scalar(y)) => self.at(format!("parameter {i}"), |cx| cx.bind(x, y))?,
                (Param::Buffer(_), Param::Buffer(_)) => {}
                (x, y) => return self.differ(format!("{x:?}"), format!("{y:?}")),
            }
        }
        let free = std::mem::replace(&mut self.free, super::FreeVars::Map);
        for (i, p) in pairs() {
            if let (Param::Buffer(x), Param::Buffer(y)) = p {
                self.at(format!("parameter {i}"), |cx| cx.bind_buffer(x, y))?;
            }
        }
        self.free = free;
        self.at("attributes", |cx| cx.attrs(&a.attrs, &b.attrs))?;
        self.at("body", |cx| cx.stmt(&a.body, &b.body))
    }

    fn stmt(&mut self, a: &Stmt, b: &Stmt) -> Compared {
        match (a, b) {
            (Stmt::Seq(x), Stmt::Seq(y)) => self.each("statement", x, y, Cx::stmt),
            (Stmt::For(x), Stmt::For(y)) => self.at(format!("for {}", x.var.name()), |cx| {
                cx.prim(&x.min, &y.min)?;
                cx.prim(&x.extent, &y.extent)?;
                cx.same("kind", &x.kind, &y.kind)?;
                cx.attrs(&x.annotations, &y.annotations)?;
                cx.bind(&x.var, &y.var)?;
                cx.stmt(&x.body, &y.body)
            }),
            (Stmt::Block(x), Stmt::Block(y)) => self.at(format!("block {}", x.name), |cx| cx.block(x, y)),
            (Stmt::Store(x), Stmt::Store(y)) => self.at(format!("store to {}", x.buffer.name), |cx| {
                cx.buffer(&x.buffer, &y.buffer)?;
                cx.each("index", &x.indices, &y.indices, Cx::prim)?;
                cx.at("value", |cx| cx.prim(&x.value, &y.value))
            }),
            (Stmt::Let(x), Stmt::Let(y)) => self.at(format!("let {}", x.var.name()), |cx| {
                cx.prim(&x.value, &y.value)?;
                cx.bind(&x.var, &y.var)?;
                cx.stmt(&x.body, &y.body)
            }),
            (Stmt::If(x), Stmt::If(y)) => self.at("if", |cx| {
                cx.prim(&x.cond, &y.cond)?;
                cx.at("then", |cx| cx.stmt(&x.then, &y.then))?;
                match (&x.otherwise, &y.otherwise) {
                    (Some(x), Some(y)) => cx.at("else", |cx| cx.stmt(x, y)),
                    (None, None) => Ok(()),
                    (x, y) => cx.differ(format!("else: {}", x.is_some()), format!("else: {}", y.is_some())),
                }
            }),
            (Stmt::While(x), Stmt::While(y)) => self.at("while", |cx| {
                cx.prim(&x.cond, &y.cond)?;
                cx.stmt(&x.body, &y.body)
            }),
            (Stmt::Assert(x), Stmt::Assert(y)) => self.at("assert", |cx| {
                cx.prim(&x.cond, &y.cond)?;
                cx.same("message", &x.message, &y.message)
            }),
            (Stmt::Evaluate(x), Stmt::Evaluate(y)) => self.at("evaluate", |cx| cx.prim(x, y)),
            (x, y) => self.differ(word(x), word(y)),
        }
    }

    fn block(&mut self, a: &Block, b: &Block) -> Compared {
        self.each("iterator", &a.iters, &b.iters, |cx, x, y| {
            cx.same("kind", &x.kind, &y.kind)?;
            cx.at("domain", |cx| cx.range(&x.dom, &y.dom))?;
            cx.at("binding", |cx| cx.prim(&x.binding, &y.binding))
        })?;
        for (x, y) in a.iters.iter().zip(&b.iters) {
            self.bind(&x.var, &y.var)?;
        }
        self.at("predicate", |cx| cx.prim(&a.predicate, &b.predicate))?;
        self.each("allocation", &a.allocs, &b.allocs, Cx::bind_buffer)?;
        self.each("read", &a.reads, &b.reads, Cx::region)?;
        self.each("write", &a.writes, &b.writes, Cx::region)?;
        self.at("annotations", |cx| cx.attrs(&a.annotations, &b.annotations))?;
        match (&a.init, &b.init) {
            (Some(x), Some(y)) => self.at("init", |cx| cx.stmt(x, y))?,
            (None, None) => {}
            (x, y) => return self.differ(format!("init: {}", x.is_some()), format!("init: {}", y.is_some())),
        }
        self.stmt(&a.body, &b.body)
    }

    fn region(&mut self, a: &Region, b: &Region) -> Compared {
        self.buffer(&a.buffer, &b.buffer)?;
        self.each("range", &a.ranges, &b.ranges, Cx::range)
    }
}

fn word(s: &Stmt) -> &'static str {
    match s {
        Stmt::Seq(_) => "a sequence",
        Stmt::For(_) => "a loop",
        Stmt::Block(_) => "a block",
        Stmt::Store(_) => "a store",
        Stmt::Let(_) => "a let",
        Stmt::If(_) => "an if",
        Stmt::While(_) => "a while",
        Stmt::Assert(_) => "an assert",
        Stmt::Evaluate(_) => "an evaluation",
    }
}
