//! Relax functions and expressions as keys.

use super::{Encoder, Token, len};
use crate::relax::{Block, Body, Dims, Expr, Function, Leaf, StructInfo, Var};

impl Encoder {
    pub(super) fn function(&mut self, f: &Function) {
        self.int(len(f.params.len()));
        self.defining(|e| f.params.iter().for_each(|p| e.define_relax_var(p)));
        self.attrs(&f.attrs);
        self.int(i64::from(f.pure));
        self.body(&f.body);
        self.struct_info(&f.ret);
    }

    fn define_relax_var(&mut self, v: &Var) {
        self.struct_info(v.info());
        let n = self.number();
        self.relax_vars.insert(v.clone(), n);
    }

    fn body(&mut self, b: &Body) {
        self.int(len(b.blocks.len()));
        for block in &b.blocks {
            match block {
                Block::Plain(bindings) => self.tagged(0, len(bindings.len())),
                Block::Dataflow { bindings, .. } => self.tagged(1, len(bindings.len())),
            }
            for binding in block.bindings() {
                self.relax_expr(&binding.value);
                self.define_relax_var(&binding.var);
            }
            if let Block::Dataflow { bindings, outputs } = block {
                bindings.iter().for_each(|b| self.int(i64::from(outputs.contains(&b.var))));
            }
        }
        self.leaf(&b.result);
    }

    fn leaves(&mut self, leaves: &[Leaf]) {
        self.int(len(leaves.len()));
        leaves.iter().for_each(|l| self.leaf(l));
    }

    fn leaf(&mut self, l: &Leaf) {
        match l {
            Leaf::Var(v) => {
                self.int(0);
                match self.relax_vars.get(v) {
                    Some(n) => self.int(*n),
                    None => self.tokens.push(Token::FreeRelaxVar(v.clone())),
                }
            }
            Leaf::Const(c) => {
                self.int(1);
                self.tokens.push(Token::Constant(c.clone()));
            }
            Leaf::Global(g) => {
                self.int(2);
                self.text(&g.0);
            }
            Leaf::Prim(e) => {
                self.int(3);
                self.prim(e);
            }
            Leaf::Shape(dims) => {
                self.int(4);
                self.prims(dims);
            }
            Leaf::Str(s) => {
                self.int(5);
                self.text(s);
            }
            Leaf::DType(d) => {
                self.int(6);
                self.dtype(*d);
            }
            Leaf::Tuple(items) => {
                self.int(7);
                self.leaves(items);
            }
            Leaf::Absent => self.int(8),
        }
    }

    fn dims(&mut self, d: &Dims) {
        match d {
            Dims::Unknown => self.int(-1),
            Dims::Rank(n) => self.tagged(-2, len(*n)),
            Dims::Known(dims) => self.prims(dims),
        }
    }

    pub(super) fn struct_info(&mut self, s: &StructInfo) {
        match s {
            StructInfo::Object => self.int(0),
            StructInfo::Prim(d, v) => {
                self.int(1);
                self.dtype(*d);
                self.prims(v.as_slice());
            }
            StructInfo::Shape(d) => {
                self.int(2);
                self.dims(d);
            }
            StructInfo::Tensor(t) => {
                self.int(3);
                self.dims(&t.dims);
                self.int(i64::from(t.dtype.is_some()));
                if let Some(d) = t.dtype {
                    self.dtype(d);
                }
            }
            StructInfo::Tuple(fields) => {
                self.tagged(4, len(fields.len()));
                fields.iter().for_each(|f| self.struct_info(f));
            }
            StructInfo::Func(f) => {
                self.tagged(5, i64::from(f.pure));
                self.int(f.params.as_ref().map_or(-1, |p| len(p.len())));
                self.defining(|e| f.params.iter().flatten().for_each(|p| e.struct_info(p)));
                self.struct_info(&f.ret);
            }
        }
    }

    pub(super) fn relax_expr(&mut self, e: &Expr) {
        match e {
            Expr::Leaf(l) => {
                self.int(0);
                self.leaf(l);
            }
            Expr::Call(c) => {
                self.int(1);
                self.text(c.op.name());
                self.leaves(&c.args);
                self.int(len(c.attrs.len()));
                c.attrs.iter().for_each(|a| self.attr(a));
            }
            Expr::CallTir(c) => {
                self.int(2);
                self.text(&c.func.0);
                self.leaves(&c.args);
                self.struct_info(&c.out);
                self.prims(&c.tir_vars);
                self.int(len(c.inplace.len()));
                c.inplace.iter().for_each(|i| self.int(*i));
            }
            Expr::CallDps { symbol, args, out } => {
                self.int(3);
                self.text(symbol);
                self.leaves(args);
                self.struct_info(out);
            }
            Expr::CallFunc { callee, args } => {
                self.int(4);
                self.leaf(callee);
                self.leaves(args);
            }
            Expr::CallPacked { symbol, args, ret, pure } => {
                self.tagged(5, i64::from(*pure));
                self.text(symbol);
                self.leaves(args);
                self.struct_info(ret);
            }
            Expr::Tuple(items) => {
                self.int(6);
                self.leaves(items);
            }
            Expr::TupleGetItem(l, i) => {
                self.tagged(7, len(*i));
                self.leaf(l);
            }
            Expr::MatchCast(l, info) => {
                self.int(8);
                self.leaf(l);
                self.defining(|e| e.struct_info(info));
            }
            Expr::If(i) => {
                self.int(9);
                self.leaf(&i.cond);
                self.body(&i.then);
                self.body(&i.otherwise);
            }
            Expr::Function(f) => {
                self.int(10);
                self.function(f);
            }
            Expr::Loop(l) => {
                self.int(11);
                [&l.body, &l.trip_count, &l.cond].into_iter().for_each(|x| self.leaf(x));
                self.leaves(&l.captured);
                self.leaves(&l.carried);
                self.int(len(l.out.len()));
                self.defining(|e| l.out.iter().for_each(|s| e.struct_info(s)));
            }
        }
    }
}
