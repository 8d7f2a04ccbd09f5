//! Surface functions to Relax functions: signature, statements, blocks.

use super::ast::{Expr, ExprKind, FuncDef, Ident, Stmt as Surface, StmtKind};
use super::lower_prim::Lowered;
use super::lower_sinfo::{contradiction, forget};
use super::scope::{Args, Entity, Lower, consequence, suggest, suggest_in};
use crate::attrs::Attrs;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::name::Name;
use crate::relax::{Binding, Block, Body, Expr as Value, Function, Leaf, StructInfo, Var};
use crate::span::Span;
use std::collections::BTreeMap;

/// How a function is declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags {
    pub(super) private: bool,
    pub(super) pure: bool,
}

/// A function being read.
pub(super) struct RelaxLower<'c, 'a> {
    pub(super) cx: &'c mut Lower<'a>,
    /// Bindings so far inside and outside of dataflow blocks: they number the bindings of nested calls, as upstream's
    /// builder does.
    counts: [u64; 2],
    pub(super) blocks: Vec<Block>,
    pub(super) current: Vec<Binding>,
    outputs: Option<Vec<Ident>>,
    pub(super) in_dataflow: bool,
    /// In a statement that is a call alone: a PrimFunc may be called for its effect.
    pub(super) bare_call: bool,
    /// Variables of closed dataflow blocks that are not outputs.
    pub(super) hidden: BTreeMap<Name, Span>,
    attrs: Attrs,
    /// Result of the function or branch.
    pub(super) result: Option<(Leaf, Span)>,
}

/// Parameters of a signature, declared in scope; one without a legal type is `R.Object` to callers.
pub(super) fn lower_params(cx: &mut Lower<'_>, def: &FuncDef) -> (Vec<Var>, Option<StructInfo>) {
    for p in &def.type_params {
        cx.scope.type_vars.insert(p.name.clone());
    }
    def.params.iter().filter_map(|p| p.annotation.as_ref()).for_each(|a| cx.declare_symbols(a));
    let mut params = Vec::new();
    for p in &def.params {
        let info = match &p.annotation {
            Some(a) => {
                let info = cx.sinfo(a);
                cx.keep(info)
            }
            None => {
                cx.diags.push(
                    Diag::error(p.ident.span, format!("parameter `{}` has no type", p.ident.name))
                        .help("write R.Tensor(shape, dtype), R.Object, …"),
                );
                None
            }
        };
        let legal = info.is_some();
        let var = Var::at(p.ident.name.clone(), info.unwrap_or(StructInfo::Object), p.ident.span);
        // Nothing is known of a parameter whose type is wrong: its uses are not errors of their own.
        cx.define(&p.ident, if legal { Entity::Relax(var.clone()) } else { Entity::Broken });
        params.push(var);
    }
    let ret = def.ret.as_ref().and_then(|r| {
        cx.declare_symbols(r);
        let info = cx.sinfo(r);
        cx.keep(info)
    });
    (params, ret)
}

/// A function. Errors go to `cx.diags`; `None` when there is no result to return.
pub(super) fn lower_function(cx: &mut Lower<'_>, def: &FuncDef, flags: Flags) -> Option<Function> {
    cx.literal = DType::I64;
    cx.scope.push();
    let (params, ret) = lower_params(cx, def);
    let mut lower = RelaxLower::new(cx);
    lower.stmts(&def.body);
    let (body, result, mut attrs) = lower.finish();
    if result.is_none() {
        cx.diags.push(
            Diag::error(def.ident.span, format!("function `{}` returns nothing", def.ident.name))
                .help("end it with `return`"),
        );
    }
    let inferred = body.result.info().unwrap_or(StructInfo::Object);
    let why = ret.as_ref().and_then(|r| contradiction(r, &inferred));
    if let (Some(why), Some((_, at)), false) = (why, result, cx.failed || cx.diags.has_errors()) {
        let found = crate::ops::show_info(&inferred);
        let d = Diag::error(at, format!("the result is {found}; the declared type says {why}"));
        cx.diags.push(d.label(def.ret.as_ref().map_or(Span::NONE, |r| r.span), "declared here"));
    }
    if !flags.private && !attrs.contains_key("global_symbol") {
        attrs.insert("global_symbol".into(), def.ident.name.clone().into());
    }
    cx.scope.pop();
    let ret = ret.unwrap_or_else(|| visible(&inferred, &params));
    Some(Function { params, body, ret, attrs, pure: flags.pure, span: def.ident.span })
}

/// What callers know of a result: variables that only the body knows are forgotten.
fn visible(inferred: &StructInfo, params: &[Var]) -> StructInfo {
    let mut known = BTreeMap::new();
    for p in params {
        p.info()
            .visit_exprs(&mut |e| known.extend(crate::prim::free_vars(e).into_iter().map(|v| (v.clone(), v.expr()))));
    }
    forget(inferred, inferred, &known)
}

impl<'c, 'a> RelaxLower<'c, 'a> {
    fn new(cx: &'c mut Lower<'a>) -> Self {
        RelaxLower {
            cx,
            counts: [0; 2],
            blocks: Vec::new(),
            current: Vec::new(),
            outputs: None,
            in_dataflow: false,
            bare_call: false,
            hidden: BTreeMap::new(),
            attrs: Attrs::new(),
            result: None,
        }
    }

    fn finish(mut self) -> (Body, Option<(Leaf, Span)>, Attrs) {
        self.flush();
        let result = self.result.as_ref().map_or(Leaf::Tuple(Vec::new()), |(l, _)| l.clone());
        (Body { blocks: self.blocks, result }, self.result, self.attrs)
    }

    pub(super) fn flush(&mut self) {
        if !self.current.is_empty() {
            self.blocks.push(Block::Plain(std::mem::take(&mut self.current)));
        }
    }

    /// Adds a binding of a new variable; the places are those of the name and of what is at fault when the value is: the
    /// function or op that is called.
    pub(super) fn bind(&mut self, name: impl Into<Name>, value: Value, info: StructInfo, at: Span, span: Span) -> Var {
        let var = Var::at(name, info, at);
        self.current.push(Binding { var: var.clone(), value, span });
        self.counts[usize::from(self.in_dataflow)] += 1;
        var
    }

    /// Adds a binding of a nested call: `lv`, `lv1`, … in dataflow blocks, `gv`, `gv1`, … elsewhere.
    pub(super) fn bind_nested(&mut self, value: Value, info: StructInfo, span: Span) -> Var {
        let base = if self.in_dataflow { "lv" } else { "gv" };
        let name = match self.counts[usize::from(self.in_dataflow)] {
            0 => base.to_string(),
            n => format!("{base}{n}"),
        };
        self.bind(name, value, info, span, span)
    }

    /// What a name stands for.
    pub(super) fn resolve(&mut self, name: &Name, span: Span) -> Lowered<Entity> {
        let known = self.cx.scope.declared(name).is_some();
        let signatures = self.cx.signatures;
        let function = |d: Diag| match d.help {
            Some(_) => d,
            None => suggest_in(d, "cls.", name, signatures.keys().map(Name::as_str)),
        };
        self.cx.resolve(name, span).map_err(function).map_err(|d| match self.hidden.get(name) {
            Some(at) if !known => Diag::error(span, format!("`{name}` is not an output of its dataflow block"))
                .label(*at, "bound here, visible in its block alone")
                .help(format!("add it: R.output({name})")),
            _ => d,
        })
    }

    pub(super) fn stmts(&mut self, list: &[Surface]) {
        for s in list {
            if let Some((_, at)) = &self.result {
                self.cx.diags.push(Diag::error(s.span, "a statement after `return`").label(*at, "returned here"));
                return;
            }
            let done = self.stmt(s);
            if self.cx.keep(done).is_none() {
                self.recover(s);
            }
        }
    }

    /// Defines what a failed statement would have defined, so that its uses are not errors of their own.
    fn recover(&mut self, s: &Surface) {
        match &s.kind {
            StmtKind::Assign { target, annotation, .. } => {
                let info = annotation.as_ref().and_then(|a| self.cx.sinfo(a).ok());
                for t in target.items().unwrap_or(std::slice::from_ref(target)) {
                    let Some(name) = t.name() else { continue };
                    let entity = match &info {
                        Some(info) => Entity::Relax(Var::at(name.clone(), info.clone(), t.span)),
                        None => Entity::Broken,
                    };
                    self.cx.scope.define(name, entity, t.span);
                }
            }
            StmtKind::With { body, .. } => body.iter().for_each(|s| self.recover(s)),
            StmtKind::If { then, otherwise, .. } => {
                if let Some(last) = then.last().or(otherwise.last()) {
                    self.recover(last);
                }
            }
            StmtKind::Return(_) => self.result = Some((Leaf::Tuple(Vec::new()), s.span)),
            StmtKind::Def(d) => {
                self.cx.scope.define(&d.ident.name, Entity::Broken, d.ident.span);
            }
            _ => {}
        }
    }

    pub(super) fn stmt(&mut self, s: &Surface) -> Lowered<()> {
        match &s.kind {
            StmtKind::Pass => Ok(()),
            StmtKind::Expr(e) => self.expr_stmt(e),
            StmtKind::Assign { target, annotation, value: Some(value) } => {
                self.assign(target, annotation.as_ref(), value)
            }
            StmtKind::Assign { target, .. } => Err(Diag::error(target.span, "a declaration without a value")),
            StmtKind::With { value, target: None, body } if value.call().is_some_and(|(p, ..)| p == "R.dataflow") => {
                self.dataflow(body, value.span)
            }
            StmtKind::With { value, .. } => {
                let path = value.call().map(|(p, ..)| p).unwrap_or_default();
                let d = Diag::error(value.callee_span(), format!("`{path}` cannot be opened with `with`"));
                let d = suggest(d, &path, ["R.dataflow"].into_iter());
                Err(if d.help.is_some() { d } else { d.help("write `with R.dataflow():`") })
            }
            StmtKind::If { cond, then, otherwise } => self.if_stmt(cond, then, otherwise, s.span),
            StmtKind::Return(Some(e)) => {
                if self.in_dataflow {
                    return Err(Diag::error(s.span, "`return` inside a dataflow block")
                        .help("output the value with R.output and return it after the block"));
                }
                let leaf = self.leaf(e)?;
                self.result = Some((leaf, e.span));
                Ok(())
            }
            StmtKind::Return(None) => Err(Diag::error(s.span, "`return` without a value")),
            StmtKind::Def(def) => {
                let path = def.decorators.first().and_then(|d| d.call().map(|(p, ..)| p).or_else(|| d.path()));
                if path.as_deref() != Some("R.function") {
                    return Err(Diag::error(def.ident.span, "a local function needs @R.function"));
                }
                let flags = super::lower_module::flags(self.cx, &def.decorators);
                let flags = Flags { private: true, ..flags };
                let hidden = std::mem::take(&mut self.hidden);
                let f = lower_function(self.cx, def, flags);
                self.hidden = hidden;
                if let Some(f) = f {
                    let info = f.info();
                    let at = def.ident.span;
                    let var = self.bind(def.ident.name.clone(), Value::Function(Box::new(f)), info, at, at);
                    self.cx.scope.define(&def.ident.name, Entity::Relax(var), def.ident.span);
                }
                Ok(())
            }
            StmtKind::For { .. } | StmtKind::While { .. } => {
                Err(Diag::error(s.span, "Relax functions have no loops").help("write a PrimFunc, or recursion"))
            }
            StmtKind::Assert { .. } => Err(Diag::error(s.span, "use R.assert_op in a Relax function")),
            StmtKind::Class(c) => Err(Diag::error(c.ident.span, "a class inside a function")),
        }
    }

    fn expr_stmt(&mut self, e: &Expr) -> Lowered<()> {
        match e.call().as_ref().map(|(p, a, k)| (p.as_str(), *a, *k)) {
            Some(("R.func_attr", args, keywords)) => {
                let mut a = Args::new("R.func_attr", e.span, args, keywords);
                let attrs = self.cx.attrs(a.need("attrs")?)?;
                a.finish()?;
                self.attrs.extend(attrs);
                Ok(())
            }
            Some(("R.output", args, _)) => {
                if !self.in_dataflow {
                    let d = Diag::error(e.callee_span(), "R.output outside of a dataflow block");
                    return Err(d.help("remove it: outside of dataflow blocks every variable is visible"));
                }
                if self.outputs.is_some() {
                    return Err(Diag::error(e.callee_span(), "a dataflow block has one R.output"));
                }
                let mut outputs = Vec::new();
                for a in args {
                    let name = a.name().ok_or_else(|| Diag::error(a.span, "R.output takes names"))?;
                    outputs.push(Ident { name: name.clone(), span: a.span });
                }
                self.outputs = Some(outputs);
                Ok(())
            }
            Some(_) => {
                self.bare_call = true;
                let lowered = self.value(e);
                self.bare_call = false;
                let (value, info) = lowered?;
                self.bind("_", value, info, e.span, e.callee_span());
                Ok(())
            }
            None => Err(Diag::error(e.span, "this expression does nothing").help("bind it to a name, or remove it")),
        }
    }

    fn dataflow(&mut self, body: &[Surface], span: Span) -> Lowered<()> {
        if self.in_dataflow {
            return Err(Diag::error(span, "a dataflow block inside a dataflow block"));
        }
        self.flush();
        self.in_dataflow = true;
        self.cx.scope.push();
        self.stmts(body);
        self.in_dataflow = false;
        let outputs = self.outputs.take();
        let missing = outputs.is_none();
        let (mut vars, mut recovered) = (Vec::new(), Vec::new());
        for ident in outputs.unwrap_or_default() {
            match self.cx.scope.lookup(&ident.name, ident.span) {
                Some(Entity::Relax(v)) if self.current.iter().any(|b| b.var == v) => vars.push((ident, v)),
                Some(Entity::Relax(_) | Entity::Broken) if self.cx.failed => recovered.push(ident),
                _ => {
                    let d = Diag::error(ident.span, format!("`{}` is not bound in this dataflow block", ident.name));
                    let bound = self.current.iter().map(|b| b.var.name().as_str());
                    let d = super::scope::suggest(d, &ident.name, bound);
                    self.cx.diags.push(d);
                }
            }
        }
        self.cx.scope.pop();
        let bindings = std::mem::take(&mut self.current);
        let last = bindings.last().map(|b| b.var.name().clone());
        for b in &bindings {
            self.hidden.insert(b.var.name().clone(), b.var.span());
        }
        for ident in &recovered {
            self.cx.scope.define(&ident.name, Entity::Broken, ident.span);
        }
        for (ident, v) in &vars {
            self.hidden.remove(&ident.name);
            self.cx.scope.define(&ident.name, Entity::Relax(v.clone()), v.span());
        }
        let outputs = bindings.iter().map(|b| &b.var).filter(|v| vars.iter().any(|(_, o)| o == *v)).cloned().collect();
        if !bindings.is_empty() {
            self.blocks.push(Block::Dataflow { bindings, outputs });
        }
        if missing && !self.cx.failed {
            let last = last.map_or_else(|| "…".to_string(), |n| n.to_string());
            let d = Diag::error(span, "the dataflow block has no R.output: nothing of it is visible after it");
            return Err(d.help(format!("end it with R.output({last})")));
        }
        Ok(())
    }

    /// `a, b = t`: the fields of a tuple, each under a name.
    fn destructure(&mut self, targets: &[Expr], value: &Expr, span: Span) -> Lowered<()> {
        let tuple = self.leaf(value)?;
        let fields = match tuple.info() {
            Some(StructInfo::Tuple(fields)) => fields,
            other => {
                let found = other.map_or_else(|| "a function".to_string(), |i| crate::ops::show_info(&i));
                return Err(Diag::error(span, format!("{} names for {found}, which is no tuple", targets.len())));
            }
        };
        if fields.len() != targets.len() {
            return Err(Diag::error(span, format!("{} names for a tuple of {}", targets.len(), fields.len())));
        }
        for (i, (t, info)) in targets.iter().zip(fields).enumerate() {
            let Some(name) = t.name() else { return Err(Diag::error(t.span, "expected a name to assign to")) };
            let var = self.bind(name.clone(), Value::TupleGetItem(tuple.clone(), i), info, t.span, value.callee_span());
            self.hidden.remove(name);
            self.cx.scope.define(name, Entity::Relax(var), t.span);
        }
        Ok(())
    }

    fn assign(&mut self, target: &Expr, annotation: Option<&Expr>, value: &Expr) -> Lowered<()> {
        if matches!(value.kind, ExprKind::Broken) {
            return Err(consequence());
        }
        // n = T.int64(), also several at once
        match (target.items(), value.items()) {
            (Some(names), Some(values)) if names.len() == values.len() => {
                return names.iter().zip(values).try_for_each(|(n, v)| self.assign(n, None, v));
            }
            _ => {}
        }
        if let Some(targets) = target.items() {
            return self.destructure(targets, value, target.span);
        }
        let Some(name) = target.name() else { return Err(Diag::error(target.span, "expected a name to assign to")) };
        let symbol = match value.call() {
            Some((path, [], [])) => path.strip_prefix("T.").and_then(|d| d.parse::<DType>().ok()),
            _ => None,
        };
        if let Some(dtype) = symbol {
            let v = self.cx.symbol(name, dtype, target.span);
            if v.dtype() != dtype {
                return Err(Diag::error(target.span, format!("`{name}` is {} already", v.dtype())));
            }
            return Ok(());
        }
        if let Some(Entity::Module) = value.name().and_then(|n| self.cx.scope.lookup(n, value.span)) {
            self.cx.scope.define(name, Entity::Module, target.span);
            return Ok(());
        }
        let (value_, mut info) = self.value(value)?;
        if let Some(a) = annotation {
            self.cx.declare_symbols(a);
            let declared = self.cx.sinfo(a)?;
            if let Some(why) = contradiction(&declared, &info) {
                let d =
                    Diag::error(a.span, format!("the annotation of `{name}` does not fit its value: it says {why}"));
                return Err(d.label(value.span, format!("this is {}", crate::ops::show_info(&info))));
            }
            info = declared;
        }
        let var = self.bind(name.clone(), value_, info, target.span, value.callee_span());
        self.hidden.remove(name);
        self.cx.scope.define(name, Entity::Relax(var), target.span);
        Ok(())
    }
}

/// Whether an expression is `None`.
pub(super) fn is_none(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::None)
}
