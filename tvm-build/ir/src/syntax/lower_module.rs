//! Surface statements of a text to an IRModule.

use super::ParseOptions;
use super::ast::{ClassDef, Expr, ExprKind, FuncDef, Stmt as Surface, StmtKind};
use super::lower_relax::{Flags, lower_function, lower_params};
use super::lower_tir::lower_prim_func;
use super::scope::{Args, Entity, Lower, Scope, Signature, is_consequence};
use crate::arith::Analyzer;
use crate::diag::{Diag, Diags};
use crate::dtype::DType;
use crate::module::{Func, IRModule};
use crate::name::Name;
use crate::relax::verify::Callee;
use crate::span::{SourceId, Span};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Relax,
    Prim,
}

fn decorator_path(e: &Expr) -> String {
    e.call().map(|(p, ..)| p).or_else(|| e.path()).unwrap_or_default()
}

fn kind(def: &FuncDef) -> Result<Kind, Diag> {
    for d in &def.decorators {
        match decorator_path(d).as_str() {
            "R.function" | "relax.function" => return Ok(Kind::Relax),
            "T.prim_func" | "tir.prim_func" => return Ok(Kind::Prim),
            _ => {}
        }
    }
    let at = def.decorators.first().map_or(def.ident.span, |d| d.span);
    Err(Diag::error(at, format!("`{}` is neither @R.function nor @T.prim_func", def.ident.name)))
}

/// The keywords of a function's decorator.
pub(super) fn flags(cx: &mut Lower<'_>, decorators: &[Expr]) -> Flags {
    let mut flags = Flags { private: false, pure: true };
    for d in decorators {
        let Some((path, args, keywords)) = d.call() else { continue };
        let mut a = Args::new(&path, d.span, args, keywords);
        let mut flag = |name: &'static str, default: bool| match a.keyword(name) {
            None => Ok(default),
            Some(Expr { kind: ExprKind::Bool(b), .. }) => Ok(*b),
            Some(e) => Err(Diag::error(e.span, format!("{name} is True or False"))),
        };
        let result = (|| {
            flags.private = flag("private", false)?;
            flags.pure = flag("pure", true)?;
            flag("s_tir", true)?;
            flag("check_well_formed", true)?;
            Ok(())
        })();
        let result = result.and_then(|()| a.finish());
        cx.keep(result);
    }
    flags
}

/// The module of a text: one class, or one or more functions at the top.
pub(super) fn lower_text(source: SourceId, text: &[Surface], options: &ParseOptions) -> Result<IRModule, Diags> {
    let mut diags = Diags::new();
    let mut type_vars = BTreeSet::new();
    let mut class: Option<&ClassDef> = None;
    let mut top = Vec::new();
    for s in text {
        match &s.kind {
            StmtKind::Class(c) if class.is_none() => class = Some(c),
            StmtKind::Class(c) => diags.push(Diag::error(c.ident.span, "a text has one module")),
            StmtKind::Def(_) => top.push(s.clone()),
            StmtKind::Assign { target, value: Some(value), .. }
                if value.call().is_some_and(|(p, ..)| p == "TypeVar" || p == "typing.TypeVar") =>
            {
                if let Some(n) = target.name() {
                    type_vars.insert(n.clone());
                }
            }
            _ => diags.push(Diag::error(s.span, "expected a class or a function")),
        }
    }
    let (name, body) = match class {
        Some(c) => (c.ident.name.clone(), c.body.as_slice()),
        None => (Name::from("Module"), top.as_slice()),
    };
    if let (Some(_), Some(s)) = (class, top.first()) {
        diags.push(Diag::error(s.span, "a function beside the module").help("move it into the class"));
    }
    let mut decorators = class.iter().flat_map(|c| &c.decorators);
    if let Some(d) = decorators.find(|d| !decorator_path(d).ends_with("ir_module")) {
        diags.push(Diag::error(d.span, "expected @I.ir_module"));
    }
    if class.is_none() && top.is_empty() && !diags.has_errors() {
        let end = text.last().map_or(Span::new(source, 0, 0), |s| s.span);
        diags.push(Diag::error(end, "the text holds no module and no function"));
    }
    let mut m = ModuleLower { source, options, name, type_vars, signatures: BTreeMap::new(), module: IRModule::new() };
    m.lower(body, &mut diags);
    let module = m.module;
    diags.into_result(module)
}

struct ModuleLower<'a> {
    source: SourceId,
    options: &'a ParseOptions,
    name: Name,
    type_vars: BTreeSet<Name>,
    signatures: BTreeMap<Name, Signature>,
    module: IRModule,
}

impl ModuleLower<'_> {
    fn cx<'s>(&'s self, signatures: &'s BTreeMap<Name, Signature>) -> Lower<'s> {
        let mut scope = Scope::default();
        scope.type_vars.clone_from(&self.type_vars);
        scope.push();
        scope.define(&self.name, Entity::Module, Span::NONE);
        Lower {
            source: self.source,
            options: self.options,
            signatures,
            diags: Diags::new(),
            failed: false,
            scope,
            literal: DType::I64,
            analyzer: Analyzer::new(),
        }
    }

    fn lower(&mut self, body: &[Surface], diags: &mut Diags) {
        let mut places = BTreeMap::new();
        let mut defs = Vec::new();
        for s in body {
            match &s.kind {
                StmtKind::Pass => {}
                StmtKind::Def(def) => {
                    let Some(kind) = diags.ok(kind(def)) else { continue };
                    if let Some(first) = places.insert(def.ident.name.clone(), def.ident.span) {
                        let d = format!("function `{}` is defined twice", def.ident.name);
                        diags.push(Diag::error(def.ident.span, d).label(first, "first defined"));
                        continue;
                    }
                    let signature = self.signature(def, &kind);
                    self.signatures.insert(def.ident.name.clone(), signature);
                    defs.push((def, kind));
                }
                _ => {
                    let r = self.member(s);
                    diags.extend(Diags(r.err().into_iter().filter(|d| !is_consequence(d)).collect()));
                }
            }
        }
        // PrimFuncs first: their parameters are what calls must fit. What is wrong is told in the order of the text.
        let mut found: Vec<Diags> = defs.iter().map(|_| Diags::new()).collect();
        for wanted in [Kind::Prim, Kind::Relax] {
            for ((def, kind), found) in defs.iter().zip(&mut found).filter(|((_, kind), _)| *kind == wanted) {
                let mut cx = self.cx(&self.signatures);
                let flags = flags(&mut cx, &def.decorators);
                let func = match kind {
                    Kind::Relax => lower_function(&mut cx, def, flags).map(Func::Relax),
                    Kind::Prim => Some(Func::Prim(lower_prim_func(&mut cx, def, flags.private))),
                };
                found.extend(cx.diags);
                if let (Some(Func::Prim(f)), false) = (&func, found.has_errors()) {
                    self.signatures.insert(def.ident.name.clone(), Signature::Prim(Some(Callee::of(f))));
                }
                if let Some(f) = func {
                    self.module.funcs.insert(def.ident.name.clone(), f);
                }
            }
        }
        found.into_iter().for_each(|d| diags.extend(d));
    }

    fn signature(&self, def: &FuncDef, kind: &Kind) -> Signature {
        match kind {
            Kind::Prim => Signature::Prim(None),
            Kind::Relax => {
                // Errors of signatures are reported when the function itself is lowered.
                let empty = BTreeMap::new();
                let mut cx = self.cx(&empty);
                cx.scope.push();
                let (params, ret) = lower_params(&mut cx, def);
                Signature::Relax { params: params.iter().map(|p| p.info().clone()).collect(), ret }
            }
        }
    }

    /// `I.module_attrs({…})`, `name = R.ExternFunc("symbol")`
    fn member(&mut self, s: &Surface) -> Result<(), Diag> {
        match &s.kind {
            StmtKind::Expr(e) => match e.call() {
                Some((path, [attrs], [])) if path == "I.module_attrs" => {
                    let empty = BTreeMap::new();
                    let attrs = self.cx(&empty).attrs(attrs)?;
                    self.module.attrs.extend(attrs);
                    Ok(())
                }
                Some((path, ..)) => Err(Diag::error(e.span, format!("{path} is not supported in a module"))),
                None => Err(Diag::error(e.span, "expected a function")),
            },
            StmtKind::Assign { target, value: Some(Expr { kind: ExprKind::Broken, .. }), .. } => {
                // A function in error: calls of it are not.
                self.signatures.extend(target.name().map(|n| (n.clone(), Signature::Broken)));
                Ok(())
            }
            StmtKind::Assign { target, value: Some(value), .. } => match (target.name(), value.call()) {
                (Some(name), Some((path, [symbol], []))) if path == "R.ExternFunc" && symbol.str().is_some() => {
                    let symbol = symbol.str().cloned().unwrap_or_else(|| name.clone());
                    self.signatures.insert(name.clone(), Signature::Extern(symbol.clone()));
                    self.module.funcs.insert(name.clone(), Func::Extern(symbol));
                    Ok(())
                }
                _ => Err(Diag::error(s.span, "expected a function")),
            },
            _ => Err(Diag::error(s.span, "expected a function")),
        }
    }
}
