//! The walk over one function.

use super::fit::{Callee, bind, call_tir_faults, conflict, knows_more, misfit};
use crate::arith::Analyzer;
use crate::diag::{Diag, Diags};
use crate::dtype::DType;
use crate::module::{Func, IRModule};
use crate::name::Name;
use crate::ops::{self, show_info};
use crate::prim::{self, PrimExpr, free_vars};
use crate::relax::{
    Binding, Block, Body, Call, CallTir, Effects, Expr, Function, If, Leaf, StructInfo, TensorInfo, Var, visit_leaves,
};
use crate::span::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Checks one function; findings go to `diags`.
pub(super) fn verify(module: &IRModule, name: &Name, func: &Function, diags: &mut Diags) {
    let mut v = Verifier {
        module,
        name,
        analyzer: Analyzer::new(),
        bound: BTreeSet::new(),
        scope: BTreeSet::new(),
        symbols: BTreeSet::new(),
        missing: BTreeSet::new(),
        pure: func.pure,
        dataflow: false,
        span: func.span,
        diags,
    };
    v.function(func);
}

pub(super) struct Verifier<'a> {
    pub(super) module: &'a IRModule,
    name: &'a Name,
    pub(super) analyzer: Analyzer,
    /// Every variable bound so far, anywhere.
    bound: BTreeSet<Var>,
    /// The variables that may be used here.
    scope: BTreeSet<Var>,
    /// The symbolic variables defined so far.
    pub(super) symbols: BTreeSet<prim::Var>,
    /// Symbolic variables reported as undefined.
    missing: BTreeSet<prim::Var>,
    pure: bool,
    dataflow: bool,
    span: Span,
    diags: &'a mut Diags,
}

/// The variables that stand alone in struct info: what a parameter or match_cast of it defines.
fn defined(info: &StructInfo, out: &mut BTreeSet<prim::Var>) {
    info.visit_exprs(&mut |e| out.extend(e.as_var().cloned()));
}

impl Verifier<'_> {
    pub(super) fn report(&mut self, message: impl std::fmt::Display) {
        let place = if self.span.is_none() { format!(" (in the function `{}`)", self.name) } else { String::new() };
        self.fail(Diag::error(self.span, format!("{message}{place}")));
    }

    pub(super) fn fail(&mut self, diag: Diag) {
        self.diags.push(diag.at(self.span));
    }

    fn function(&mut self, func: &Function) {
        for p in &func.params {
            self.define(p);
            defined(p.info(), &mut self.symbols);
        }
        for p in &func.params {
            self.symbols_in(p.info(), &format!("parameter `{}`", p.name()));
        }
        let params = self.symbols.clone();
        self.body(&func.body);
        self.span = func.span;
        self.symbols = params;
        self.symbols_in(&func.ret, "what is returned");
        self.result(&func.body.result, &func.ret, "the function");
    }

    fn define(&mut self, var: &Var) {
        if !self.bound.insert(var.clone()) {
            self.report(format!("the variable `{}` is bound twice", var.name()));
        }
        self.scope.insert(var.clone());
    }

    fn symbols_in(&mut self, info: &StructInfo, what: &str) {
        let mut free = BTreeSet::new();
        info.visit_exprs(&mut |e| free.extend(free_vars(e)));
        self.undefined(&free, what);
    }

    fn undefined(&mut self, free: &BTreeSet<prim::Var>, what: &str) {
        for v in free.difference(&self.symbols.clone()) {
            let message = format!("the symbolic variable `{}` of {what} is not defined", v.name());
            let help = "let it stand alone as a dimension of a parameter, or define it with R.match_cast";
            if self.missing.insert(v.clone()) {
                self.fail(Diag::error(v.span().or(self.span), message).help(help));
            }
        }
    }

    /// A body in a scope of its own; what it binds is not visible after it.
    fn body(&mut self, body: &Body) {
        for block in &body.blocks {
            match block {
                Block::Plain(bindings) => bindings.iter().for_each(|b| self.binding(b)),
                Block::Dataflow { bindings, outputs } => self.dataflow_block(bindings, outputs),
            }
        }
        self.leaf(&body.result);
    }

    fn dataflow_block(&mut self, bindings: &[Binding], outputs: &[Var]) {
        let outer = std::mem::replace(&mut self.dataflow, true);
        bindings.iter().for_each(|b| self.binding(b));
        self.dataflow = outer;
        let own: BTreeSet<&Var> = bindings.iter().map(|b| &b.var).collect();
        for o in outputs.iter().filter(|o| !own.contains(o)) {
            self.report(format!("the dataflow block outputs `{}`, which it does not bind", o.name()));
        }
        for v in own.into_iter().filter(|v| !outputs.contains(v)) {
            self.scope.remove(v);
        }
    }

    fn leaf(&mut self, leaf: &Leaf) {
        match leaf {
            Leaf::Var(v) if !self.scope.contains(v) => {
                let what = if self.bound.contains(v) {
                    "is not visible here: it is bound in another body, or in a dataflow block that does not output it"
                } else {
                    "is used before it is bound"
                };
                self.report(format!("the variable `{}` {what}", v.name()));
            }
            Leaf::Global(g) if self.module.get(&g.0).is_none() => {
                self.report(format!("the module has no function `{}`", g.0));
            }
            Leaf::Prim(e) => self.undefined(&free_vars(e), "a scalar"),
            Leaf::Shape(dims) => {
                let free = dims.iter().flat_map(free_vars).collect();
                self.undefined(&free, "a shape");
            }
            Leaf::Tuple(items) => items.iter().for_each(|l| self.leaf(l)),
            Leaf::Var(_) | Leaf::Global(_) | Leaf::Const(_) | Leaf::Str(_) | Leaf::DType(_) | Leaf::Absent => {}
        }
    }

    fn binding(&mut self, b: &Binding) {
        let outer = self.span;
        self.span = b.span.or(outer);
        if !matches!(b.value, Expr::If(_) | Expr::Function(_)) {
            let mut leaves = Vec::new();
            visit_leaves(&b.value, &mut |l| leaves.push(l.clone()));
            leaves.iter().for_each(|l| self.leaf(l));
        }
        if let Some(info) = self.value(&b.value) {
            let (declared, name) = (b.var.info(), b.var.name());
            if conflict(declared, &info, &self.analyzer) {
                self.report(format!("`{name}` is declared {}, its value is {}", show_info(declared), show_info(&info)));
            } else if knows_more(declared, &info) && !matches!(b.value, Expr::MatchCast(..)) {
                let message =
                    format!("`{name}` is declared {}, its value is only {}", show_info(declared), show_info(&info));
                self.fail(Diag::error(self.span, message).help("state what is known with R.match_cast"));
            }
        }
        if let Expr::If(i) = &b.value {
            self.branches(i, b.var.info(), b.var.name());
        }
        self.symbols_in(b.var.info(), &format!("`{}`", b.var.name()));
        self.define(&b.var);
        self.span = outer;
    }

    /// Branches may differ in what they give, as far as the declared info leaves it open.
    fn branches(&mut self, i: &If, declared: &StructInfo, name: &Name) {
        for info in [&i.then, &i.otherwise].into_iter().filter_map(|branch| branch.result.info()) {
            if conflict(declared, &info, &self.analyzer) {
                let (declared, given) = (show_info(declared), show_info(&info));
                self.report(format!("`{name}` is declared {declared}, a branch gives {given}"));
            }
        }
    }

    pub(super) fn effect(&mut self, what: &str) {
        if self.dataflow {
            self.report(format!("{what} must not stand in a dataflow block"));
        }
        if self.pure && what != "a conditional" {
            self.fail(
                Diag::error(self.span, format!("{what} in `{}`, which is marked pure", self.name))
                    .help("mark it with @R.function(pure=False)"),
            );
        }
    }

    /// Struct info of a value, where it can be told; checks what is inside.
    fn value(&mut self, value: &Expr) -> Option<StructInfo> {
        match value {
            Expr::Leaf(l) => self.leaf_info(l),
            Expr::Call(c) => self.call(c),
            Expr::CallTir(c) => {
                self.call_tir(c);
                Some(c.out.clone())
            }
            Expr::CallDps { out, .. } => Some(out.clone()),
            Expr::CallPacked { symbol, ret, pure, .. } => {
                if !pure {
                    self.effect(&format!("the call of \"{symbol}\""));
                }
                Some(ret.clone())
            }
            Expr::CallFunc { callee, args } => self.call_func(callee, args),
            Expr::Tuple(items) => items.iter().map(|l| self.leaf_info(l)).collect::<Option<_>>().map(StructInfo::Tuple),
            Expr::TupleGetItem(l, i) => match self.leaf_info(l)? {
                StructInfo::Tuple(fields) if *i < fields.len() => Some(fields[*i].clone()),
                StructInfo::Object => Some(StructInfo::Object),
                other => {
                    self.report(format!("there is no field {i} of {}", show_info(&other)));
                    None
                }
            },
            Expr::MatchCast(l, info) => {
                let from = self.leaf_info(l);
                defined(info, &mut self.symbols);
                if let Some(from) = from.filter(|f| conflict(f, info, &self.analyzer)) {
                    self.report(format!("R.match_cast of {} can never be {}", show_info(&from), show_info(info)));
                }
                Some(info.clone())
            }
            Expr::If(i) => {
                self.effect("a conditional");
                self.leaf(&i.cond);
                let cond = self.leaf_info(&i.cond);
                let scalar = StructInfo::tensor(Vec::new(), DType::BOOL);
                if let Some(info) = cond.filter(|c| conflict(c, &scalar, &self.analyzer)) {
                    self.report(format!("a condition must be a bool scalar, it is {}", show_info(&info)));
                }
                for branch in [&i.then, &i.otherwise] {
                    let (scope, symbols) = (self.scope.clone(), self.symbols.clone());
                    self.body(branch);
                    (self.scope, self.symbols) = (scope, symbols);
                }
                None
            }
            Expr::Loop(l) => self.while_loop(l),
            Expr::Function(f) => {
                let (scope, symbols) = (self.scope.clone(), self.symbols.clone());
                let (pure, dataflow) = (self.pure, self.dataflow);
                (self.pure, self.dataflow) = (f.pure, false);
                self.function(f);
                (self.scope, self.symbols, self.pure, self.dataflow) = (scope, symbols, pure, dataflow);
                Some(f.info())
            }
        }
    }

    pub(super) fn leaf_info(&self, leaf: &Leaf) -> Option<StructInfo> {
        match leaf {
            Leaf::Global(g) => match self.module.get(&g.0)? {
                Func::Relax(f) => Some(f.info()),
                Func::Prim(_) | Func::Extern(_) => Some(StructInfo::Object),
            },
            other => other.info(),
        }
    }

    fn call(&mut self, c: &Call) -> Option<StructInfo> {
        if c.op.def().effects == Effects::Impure {
            self.effect(&format!("R.{}", c.op.name()));
        }
        match ops::infer(c, &self.analyzer) {
            Ok(info) => Some(info),
            Err(d) => {
                self.fail(d);
                None
            }
        }
    }

    fn call_tir(&mut self, c: &CallTir) {
        let name = &c.func.0;
        let func = match self.module.get(name) {
            Some(Func::Prim(f)) => f,
            Some(_) => return self.report(format!("R.call_tir calls `{name}`, which is not a PrimFunc")),
            None => return self.report(format!("R.call_tir calls `{name}`, which the module does not have")),
        };
        let Some(outputs) = c.out.tensors() else {
            return self.report(format!("R.call_tir gives tensors, not {}", show_info(&c.out)));
        };
        let outputs: Vec<TensorInfo> = outputs.into_iter().cloned().collect();
        // An output that overwrites an argument has no parameter of its own.
        let fresh: Vec<&TensorInfo> = outputs
            .iter()
            .enumerate()
            .filter(|(i, _)| c.inplace.get(*i).is_none_or(|v| *v < 0))
            .map(|(_, t)| t)
            .collect();
        let args: Vec<Option<StructInfo>> = c.args.iter().map(|l| self.leaf_info(l)).collect();
        let callee = Callee::of(func);
        for (_, fault) in call_tir_faults(name, &callee, &args, &fresh, &c.tir_vars, &c.inplace, &self.analyzer) {
            self.report(format!("R.call_tir: {fault}"));
        }
        let free: BTreeSet<prim::Var> = c.tir_vars.iter().flat_map(free_vars).collect();
        self.undefined(&free, "a scalar argument");
    }

    fn call_func(&mut self, callee: &Leaf, args: &[Leaf]) -> Option<StructInfo> {
        let info = self.leaf_info(callee)?;
        let StructInfo::Func(func) = info else {
            if info != StructInfo::Object {
                self.report(format!("{} is called, which is no function", show_info(&info)));
            }
            return None;
        };
        if !func.pure {
            self.effect("a call of an impure function");
        }
        let Some(params) = &func.params else { return Some(func.ret.clone()) };
        if params.len() != args.len() {
            let (n, m) = (params.len(), args.len());
            self.report(format!("a function of {n} parameters is called with {m} arguments"));
            return None;
        }
        let mut map = BTreeMap::new();
        let infos: Vec<Option<StructInfo>> = args.iter().map(|l| self.leaf_info(l)).collect();
        for (p, a) in params.iter().zip(&infos) {
            if let Some(a) = a {
                bind(p, a, &mut map);
            }
        }
        for (i, (p, a)) in params.iter().zip(&infos).enumerate() {
            if let Some(wrong) = a.as_ref().and_then(|a| misfit(p, a, &map, &self.analyzer)) {
                self.report(format!("argument {i} of the call {wrong}"));
            }
        }
        // A closure's own variables may stay free: they are those around it.
        let ret = func.ret.substitute(&map);
        let mut free = BTreeSet::new();
        ret.visit_exprs(&mut |e: &PrimExpr| free.extend(free_vars(e)));
        if free.is_subset(&self.symbols) { Some(ret) } else { None }
    }

    fn result(&mut self, leaf: &Leaf, declared: &StructInfo, what: &str) {
        if let Some(info) = self.leaf_info(leaf) {
            if conflict(declared, &info, &self.analyzer) {
                let (a, b) = (show_info(declared), show_info(&info));
                self.report(format!("{what} is declared to give {a}, it gives {b}"));
            }
        }
    }
}
