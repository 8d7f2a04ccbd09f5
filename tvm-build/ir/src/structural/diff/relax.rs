//! Relax functions.

use super::{Compared, Cx, FreeVars};
use crate::relax::{Block, Body, Dims, Expr, Function, Leaf, StructInfo, Var};

impl Cx {
    fn bind_relax(&mut self, a: &Var, b: &Var) -> Compared {
        self.at(a.name().as_str(), |cx| cx.info(a.info(), b.info()))?;
        self.relaxes.insert(a.clone(), b.clone());
        self.relaxes_back.insert(b.clone(), a.clone());
        Ok(())
    }

    fn relax_var(&mut self, a: &Var, b: &Var) -> Compared {
        match (self.relaxes.get(a), self.relaxes_back.get(b)) {
            (Some(x), Some(y)) if x == b && y == a => Ok(()),
            (None, None) if a == b || self.free == FreeVars::Map => self.bind_relax(a, b),
            _ => self.differ(format!("variable {a:?}"), format!("variable {b:?}")),
        }
    }

    pub(super) fn function(&mut self, a: &Function, b: &Function) -> Compared {
        // A signature binds its symbolic variables.
        let free = std::mem::replace(&mut self.free, FreeVars::Map);
        self.each("parameter", &a.params, &b.params, Cx::bind_relax)?;
        self.at("result type", |cx| cx.info(&a.ret, &b.ret))?;
        self.free = free;
        self.same("pure", &a.pure, &b.pure)?;
        self.at("attributes", |cx| cx.attrs(&a.attrs, &b.attrs))?;
        self.body(&a.body, &b.body)
    }

    fn body(&mut self, a: &Body, b: &Body) -> Compared {
        self.each("block", &a.blocks, &b.blocks, |cx, x, y| {
            let kind = |b: &Block| if matches!(b, Block::Dataflow { .. }) { "a dataflow block" } else { "bindings" };
            cx.same("kind", &kind(x), &kind(y))?;
            cx.each("binding", x.bindings(), y.bindings(), |cx, x, y| {
                cx.expr(&x.value, &y.value)?;
                // `match_cast` and annotations may bring new symbolic variables.
                let free = std::mem::replace(&mut cx.free, FreeVars::Map);
                let r = cx.bind_relax(&x.var, &y.var);
                cx.free = free;
                r
            })?;
            match (x, y) {
                (Block::Dataflow { outputs: x, .. }, Block::Dataflow { outputs: y, .. }) => {
                    cx.each("output", x, y, Cx::relax_var)
                }
                _ => Ok(()),
            }
        })?;
        self.at("result", |cx| cx.leaf(&a.result, &b.result))
    }

    fn leaf(&mut self, a: &Leaf, b: &Leaf) -> Compared {
        match (a, b) {
            (Leaf::Var(x), Leaf::Var(y)) => self.relax_var(x, y),
            (Leaf::Prim(x), Leaf::Prim(y)) => self.prim(x, y),
            (Leaf::Shape(x), Leaf::Shape(y)) => self.each("dimension", x, y, Cx::prim),
            (Leaf::Tuple(x), Leaf::Tuple(y)) => self.each("field", x, y, Cx::leaf),
            _ if a == b => Ok(()),
            _ => self.differ(format!("{a:?}"), format!("{b:?}")),
        }
    }

    fn expr(&mut self, a: &Expr, b: &Expr) -> Compared {
        match (a, b) {
            // A tuple written in place is the same value either way.
            (Expr::Leaf(Leaf::Tuple(x)) | Expr::Tuple(x), Expr::Leaf(Leaf::Tuple(y)) | Expr::Tuple(y)) => {
                self.each("field", x, y, Cx::leaf)
            }
            (Expr::Leaf(x), Expr::Leaf(y)) => self.leaf(x, y),
            (Expr::Call(x), Expr::Call(y)) => {
                self.same("op", &x.op, &y.op)?;
                self.at(x.op.name(), |cx| {
                    cx.each("argument", &x.args, &y.args, Cx::leaf)?;
                    cx.each("attribute", &x.attrs, &y.attrs, Cx::attr)
                })
            }
            (Expr::CallTir(x), Expr::CallTir(y)) => {
                self.same("function", &x.func, &y.func)?;
                self.each("argument", &x.args, &y.args, Cx::leaf)?;
                self.at("out", |cx| cx.info(&x.out, &y.out))?;
                self.each("tir_vars", &x.tir_vars, &y.tir_vars, Cx::prim)?;
                self.same("inplace_indices", &x.inplace, &y.inplace)
            }
            (Expr::CallDps { symbol, args, out }, Expr::CallDps { symbol: s, args: a, out: o }) => {
                self.same("symbol", symbol, s)?;
                self.each("argument", args, a, Cx::leaf)?;
                self.at("out", |cx| cx.info(out, o))
            }
            (Expr::CallFunc { callee, args }, Expr::CallFunc { callee: c, args: a }) => {
                self.at("callee", |cx| cx.leaf(callee, c))?;
                self.each("argument", args, a, Cx::leaf)
            }
            (
                Expr::CallPacked { symbol, args, ret, pure },
                Expr::CallPacked { symbol: s, args: a, ret: r, pure: p },
            ) => {
                self.same("symbol", symbol, s)?;
                self.same("pure", pure, p)?;
                self.each("argument", args, a, Cx::leaf)?;
                self.info(ret, r)
            }
            (Expr::TupleGetItem(x, i), Expr::TupleGetItem(y, j)) => {
                self.same("field", i, j)?;
                self.leaf(x, y)
            }
            (Expr::MatchCast(x, i), Expr::MatchCast(y, j)) => {
                self.leaf(x, y)?;
                let free = std::mem::replace(&mut self.free, FreeVars::Map);
                let r = self.info(i, j);
                self.free = free;
                r
            }
            (Expr::If(x), Expr::If(y)) => {
                self.at("condition", |cx| cx.leaf(&x.cond, &y.cond))?;
                self.at("then", |cx| cx.body(&x.then, &y.then))?;
                self.at("else", |cx| cx.body(&x.otherwise, &y.otherwise))
            }
            (Expr::Loop(x), Expr::Loop(y)) => {
                self.at("body", |cx| cx.leaf(&x.body, &y.body))?;
                self.at("trip count", |cx| cx.leaf(&x.trip_count, &y.trip_count))?;
                self.at("condition", |cx| cx.leaf(&x.cond, &y.cond))?;
                self.each("captured value", &x.captured, &y.captured, Cx::leaf)?;
                self.each("carried value", &x.carried, &y.carried, Cx::leaf)?;
                let free = std::mem::replace(&mut self.free, FreeVars::Map);
                let r = self.each("result", &x.out, &y.out, Cx::info);
                self.free = free;
                r
            }
            (Expr::Function(x), Expr::Function(y)) => self.function(x, y),
            (x, y) => self.differ(word(x), word(y)),
        }
    }

    fn dims(&mut self, a: &Dims, b: &Dims) -> Compared {
        match (a, b) {
            (Dims::Known(x), Dims::Known(y)) => self.each("dimension", x, y, Cx::prim),
            (x, y) => self.same("shape", x, y),
        }
    }

    pub(super) fn info(&mut self, a: &StructInfo, b: &StructInfo) -> Compared {
        match (a, b) {
            (StructInfo::Object, StructInfo::Object) => Ok(()),
            (StructInfo::Prim(d, v), StructInfo::Prim(e, w)) => {
                self.same("dtype", d, e)?;
                match (v, w) {
                    (Some(v), Some(w)) => self.prim(v, w),
                    (v, w) => self.same("value", v, w),
                }
            }
            (StructInfo::Shape(x), StructInfo::Shape(y)) => self.dims(x, y),
            (StructInfo::Tensor(x), StructInfo::Tensor(y)) => {
                self.same("dtype", &x.dtype, &y.dtype)?;
                self.dims(&x.dims, &y.dims)
            }
            (StructInfo::Tuple(x), StructInfo::Tuple(y)) => self.each("field", x, y, Cx::info),
            (StructInfo::Func(x), StructInfo::Func(y)) => {
                self.same("pure", &x.pure, &y.pure)?;
                match (&x.params, &y.params) {
                    (Some(p), Some(q)) => self.each("parameter", p, q, Cx::info)?,
                    (p, q) => self.same("parameters", p, q)?,
                }
                self.info(&x.ret, &y.ret)
            }
            (x, y) => self.differ(crate::ops::show_info(x), crate::ops::show_info(y)),
        }
    }
}

fn word(e: &Expr) -> &'static str {
    match e {
        Expr::Leaf(_) => "a leaf",
        Expr::Call(_) => "a call of an op",
        Expr::CallTir(_) => "call_tir",
        Expr::CallDps { .. } => "call_dps_packed",
        Expr::CallFunc { .. } => "a call of a function",
        Expr::CallPacked { .. } => "call_packed",
        Expr::Tuple(_) => "a tuple",
        Expr::TupleGetItem(..) => "a field of a tuple",
        Expr::MatchCast(..) => "match_cast",
        Expr::If(_) => "an if",
        Expr::Loop(_) => "a loop",
        Expr::Function(_) => "a local function",
    }
}
