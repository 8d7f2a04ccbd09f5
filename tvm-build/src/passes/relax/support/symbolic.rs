//! Symbolic variables of Relax functions.

use std::collections::{BTreeMap, BTreeSet};
use tvm_ir::attrs::AttrValue;
use tvm_ir::prim::{PrimExpr, Var, free_vars, substitute};
use tvm_ir::relax::{
    Binding, Block, Body, CallTir, Expr, Function, Leaf, StructInfo, Var as RelaxVar, map_expr_leaves,
};

/// The variables that a parameter or `match_cast` defines: those that are a whole dimension or value.
pub(crate) fn definable(info: &StructInfo, out: &mut Vec<Var>) {
    info.visit_exprs(&mut |e| {
        if let Some(v) = e.as_var() {
            if !out.contains(v) {
                out.push(v.clone());
            }
        }
    });
}

/// Maps every scalar expression of a function; parameters and bound variables whose struct info changes become new ones.
pub(crate) fn map_function_exprs(f: &Function, map: &BTreeMap<Var, PrimExpr>) -> Function {
    let mut m = Mapper { map, vars: BTreeMap::new() };
    let params = f.params.iter().map(|p| m.bind(p)).collect();
    let body = m.body(&f.body);
    let ret = f.ret.substitute(map);
    Function { params, body, ret, ..f.clone() }
}

struct Mapper<'a> {
    map: &'a BTreeMap<Var, PrimExpr>,
    vars: BTreeMap<RelaxVar, RelaxVar>,
}

impl Mapper<'_> {
    fn bind(&mut self, v: &RelaxVar) -> RelaxVar {
        let info = v.info().substitute(self.map);
        if info == *v.info() {
            return v.clone();
        }
        let new = RelaxVar::at(v.name(), info, v.span());
        self.vars.insert(v.clone(), new.clone());
        new
    }

    fn prim(&self, e: &PrimExpr) -> PrimExpr {
        substitute(e, self.map)
    }

    fn attr(&self, a: &AttrValue) -> AttrValue {
        match a {
            AttrValue::Prim(e) => AttrValue::Prim(self.prim(e)),
            AttrValue::List(items) => AttrValue::List(items.iter().map(|i| self.attr(i)).collect()),
            other => other.clone(),
        }
    }

    fn leaf(&self, l: &Leaf) -> Leaf {
        l.map(&mut |l| match l {
            Leaf::Var(v) => Leaf::Var(self.vars.get(v).unwrap_or(v).clone()),
            Leaf::Prim(e) => Leaf::Prim(self.prim(e)),
            Leaf::Shape(dims) => Leaf::Shape(dims.iter().map(|d| self.prim(d)).collect()),
            other => other.clone(),
        })
    }

    fn body(&mut self, b: &Body) -> Body {
        let mut blocks = Vec::new();
        for block in &b.blocks {
            let bindings: Vec<Binding> = block.bindings().iter().map(|b| self.binding(b)).collect();
            blocks.push(match block {
                Block::Plain(_) => Block::Plain(bindings),
                Block::Dataflow { outputs, .. } => Block::Dataflow {
                    bindings,
                    outputs: outputs.iter().map(|v| self.vars.get(v).unwrap_or(v).clone()).collect(),
                },
            });
        }
        Body { blocks, result: self.leaf(&b.result) }
    }

    fn binding(&mut self, b: &Binding) -> Binding {
        let value = match &b.value {
            Expr::If(i) => {
                let mut i = i.clone();
                i.cond = self.leaf(&i.cond);
                i.then = self.body(&i.then);
                i.otherwise = self.body(&i.otherwise);
                Expr::If(i)
            }
            Expr::Function(f) => {
                let mut f = f.clone();
                f.params = f.params.iter().map(|p| self.bind(p)).collect();
                f.ret = f.ret.substitute(self.map);
                f.body = self.body(&f.body);
                Expr::Function(f)
            }
            other => match map_expr_leaves(other, &mut |l| self.leaf(l)) {
                Expr::Call(mut c) => {
                    c.attrs = c.attrs.iter().map(|a| self.attr(a)).collect();
                    Expr::Call(c)
                }
                Expr::CallTir(c) => Expr::CallTir(CallTir {
                    out: c.out.substitute(self.map),
                    tir_vars: c.tir_vars.iter().map(|e| self.prim(e)).collect(),
                    ..c
                }),
                Expr::CallDps { symbol, args, out } => Expr::CallDps { symbol, args, out: out.substitute(self.map) },
                Expr::CallPacked { symbol, args, ret, pure } => {
                    Expr::CallPacked { symbol, args, ret: ret.substitute(self.map), pure }
                }
                Expr::MatchCast(l, info) => Expr::MatchCast(l, info.substitute(self.map)),
                Expr::Loop(mut l) => {
                    l.out = l.out.iter().map(|info| info.substitute(self.map)).collect();
                    Expr::Loop(l)
                }
                other => other,
            },
        };
        Binding { var: self.bind(&b.var), value, span: b.span }
    }
}

/// The symbolic variables that a function uses and neither its parameters nor a `match_cast` in it define, in the order
/// met.
pub(crate) fn free_symbolic(f: &Function) -> Vec<Var> {
    let mut c = Collector::default();
    for p in &f.params {
        definable(p.info(), &mut c.defined);
        c.info(p.info());
    }
    c.body(&f.body);
    c.info(&f.ret);
    c.used.into_iter().filter(|v| !c.defined.contains(v)).collect()
}

/// The symbolic variables that a binding uses, and those that it can define.
pub(crate) fn symbols_of(b: &Binding) -> (BTreeSet<Var>, Vec<Var>) {
    let mut c = Collector::default();
    c.binding(b);
    (c.seen, c.defined)
}

#[derive(Default)]
struct Collector {
    defined: Vec<Var>,
    used: Vec<Var>,
    seen: BTreeSet<Var>,
}

impl Collector {
    fn prim(&mut self, e: &PrimExpr) {
        for v in free_vars(e) {
            if self.seen.insert(v.clone()) {
                self.used.push(v);
            }
        }
    }

    fn info(&mut self, s: &StructInfo) {
        s.visit_exprs(&mut |e| self.prim(e));
    }

    fn leaf(&mut self, l: &Leaf) {
        match l {
            Leaf::Prim(e) => self.prim(e),
            Leaf::Shape(dims) => dims.iter().for_each(|d| self.prim(d)),
            _ => {}
        }
    }

    fn body(&mut self, b: &Body) {
        b.bindings().for_each(|b| self.binding(b));
        let _ = b.result.map(&mut |l| {
            self.leaf(l);
            l.clone()
        });
    }

    fn binding(&mut self, binding: &Binding) {
        match &binding.value {
            Expr::If(i) => {
                self.leaf(&i.cond);
                self.body(&i.then);
                self.body(&i.otherwise);
            }
            Expr::Function(f) => {
                for p in &f.params {
                    definable(p.info(), &mut self.defined);
                }
                self.body(&f.body);
            }
            other => {
                tvm_ir::relax::visit_leaves(other, &mut |l| self.leaf(l));
                match other {
                    Expr::CallTir(c) => {
                        self.info(&c.out);
                        c.tir_vars.iter().for_each(|e| self.prim(e));
                    }
                    Expr::CallDps { out, .. } => self.info(out),
                    Expr::CallPacked { ret, .. } => self.info(ret),
                    Expr::Loop(l) => {
                        self.defined.extend(l.defines().cloned());
                        l.out.iter().for_each(|info| self.info(info));
                    }
                    Expr::MatchCast(_, info) => {
                        definable(info, &mut self.defined);
                        self.info(info);
                    }
                    _ => {}
                }
            }
        }
        self.info(binding.var.info());
    }
}

/// The function over new symbolic variables of the same names.
pub(crate) fn renew_symbolic(f: &Function) -> Function {
    let mut vars = Vec::new();
    f.params.iter().for_each(|p| definable(p.info(), &mut vars));
    let map = vars.into_iter().map(|v| (v.clone(), v.copy().expr())).collect();
    map_function_exprs(f, &map)
}

/// What the parameters' symbolic variables stand for in a call; dimensions that do not fit are left to the verifier.
pub(crate) fn match_info(param: &StructInfo, arg: &StructInfo, out: &mut BTreeMap<Var, PrimExpr>) {
    fn all(p: &[PrimExpr], a: &[PrimExpr], out: &mut BTreeMap<Var, PrimExpr>) {
        for (p, a) in p.iter().zip(a) {
            if let Some(v) = p.as_var() {
                out.entry(v.clone()).or_insert_with(|| a.clone());
            }
        }
    }
    match (param, arg) {
        (StructInfo::Tensor(p), StructInfo::Tensor(a)) => {
            all(p.dims.known().unwrap_or(&[]), a.dims.known().unwrap_or(&[]), out);
        }
        (StructInfo::Shape(p), StructInfo::Shape(a)) => {
            all(p.known().unwrap_or(&[]), a.known().unwrap_or(&[]), out);
        }
        (StructInfo::Prim(_, Some(p)), StructInfo::Prim(_, Some(a))) => {
            all(std::slice::from_ref(p), std::slice::from_ref(a), out);
        }
        (StructInfo::Tuple(p), StructInfo::Tuple(a)) => p.iter().zip(a).for_each(|(p, a)| match_info(p, a, out)),
        _ => {}
    }
}
