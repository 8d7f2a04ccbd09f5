//! What Relax passes share.

pub(crate) mod evaluate;
pub(crate) mod fused_function;
pub(crate) mod ops;
pub(crate) mod partition;
pub(crate) mod pattern_kind;
pub(crate) mod renew;
pub(crate) mod rewrite;
pub(crate) mod symbolic;

use std::collections::BTreeSet;
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::name::{Name, NameSupply};
use tvm_ir::relax::{Body, Expr, Function, GlobalVar};
use tvm_ir::structural::{Key, KeyMap};

/// Replaces every Relax function by what `f` makes of it (given its name); `f` may add functions to the module. Errors of all functions
/// are collected; after an error the module holds the functions as they were.
pub(crate) fn map_functions(
    module: &mut IRModule,
    mut f: impl FnMut(&mut IRModule, &str, &Function) -> Result<Function, Diags>,
) -> Result<(), Diags> {
    let mut diags = Diags::new();
    let functions: Vec<(Name, Function)> = module.relax_funcs().map(|(n, f)| (n.clone(), f.clone())).collect();
    for (name, function) in functions {
        match f(module, &name, &function) {
            Ok(new) => {
                module.funcs.insert(name, Func::Relax(new));
            }
            Err(e) => diags.extend(e),
        }
    }
    diags.into_result(())
}

/// Whether a function attribute is set to something else than 0 or false.
pub(crate) fn has_nonzero(attrs: &tvm_ir::attrs::Attrs, name: &str) -> bool {
    attrs.get(name).is_some_and(|v| match v {
        AttrValue::Bool(v) => *v,
        AttrValue::None => false,
        other => other.as_int() != Some(0),
    })
}

/// Whether a function is one that fusion made (`Primitive`).
pub(crate) fn is_primitive(f: &Function) -> bool {
    has_nonzero(&f.attrs, "Primitive")
}

/// Adds functions to a module under fresh names; a function that is structurally equal to one of the module is not
/// added again (TVM's `BlockBuilder::AddFunction`).
pub(crate) struct FunctionAdder {
    keys: KeyMap<GlobalVar>,
    names: NameSupply,
}

impl FunctionAdder {
    /// Knows the functions of a module, sorted by name: of equal ones the first is used.
    pub(crate) fn new(module: &IRModule) -> FunctionAdder {
        let mut keys = KeyMap::new();
        let mut names = NameSupply::new();
        for (name, func) in &module.funcs {
            names.reserve(name.clone());
            keys.insert_if_new(Key::func(func), GlobalVar(name.clone()));
        }
        FunctionAdder { keys, names }
    }

    /// The name of a function that is structurally equal, or of the function itself, added after the hint.
    pub(crate) fn add(&mut self, module: &mut IRModule, hint: &str, func: Func) -> GlobalVar {
        let key = Key::func(&func);
        if let Some(known) = self.keys.get(&key) {
            return known.clone();
        }
        let name = self.names.fresh(hint);
        module.funcs.insert(name.clone(), func);
        self.keys.insert_if_new(key, GlobalVar(name.clone()));
        GlobalVar(name)
    }
}

/// Calls `f` on every body: the function's own, those of branches and of local functions; parents first.
pub(crate) fn visit_bodies(body: &Body, f: &mut dyn FnMut(&Body)) {
    f(body);
    for b in body.bindings() {
        match &b.value {
            Expr::If(i) => {
                visit_bodies(&i.then, f);
                visit_bodies(&i.otherwise, f);
            }
            Expr::Function(func) => visit_bodies(&func.body, f),
            _ => {}
        }
    }
}

/// The functions of the module that a body refers to.
pub(crate) fn callees(body: &Body) -> BTreeSet<GlobalVar> {
    let mut out = BTreeSet::new();
    visit_bodies(body, &mut |b| {
        let mut leaf = |l: &tvm_ir::relax::Leaf| {
            if let tvm_ir::relax::Leaf::Global(g) = l {
                out.insert(g.clone());
            }
        };
        for binding in b.bindings() {
            tvm_ir::relax::visit_leaves(&binding.value, &mut leaf);
        }
        let _ = b.result.map(&mut |l| {
            leaf(l);
            l.clone()
        });
        for binding in b.bindings() {
            if let Expr::CallTir(c) = &binding.value {
                out.insert(c.func.clone());
            }
        }
    });
    out
}

/// Whether a value has an effect besides its result, so that it may not be removed, merged or moved.
pub(crate) fn is_impure(module: &IRModule, value: &Expr) -> bool {
    let body_impure = |b: &Body| b.bindings().any(|x| is_impure(module, &x.value));
    match value {
        Expr::Call(c) => c.op.def().effects == tvm_ir::relax::Effects::Impure,
        Expr::CallPacked { pure, .. } => !pure,
        Expr::CallTir(c) => !c.inplace.is_empty() && c.inplace.iter().any(|i| *i >= 0),
        Expr::CallFunc { callee, .. } => match callee {
            tvm_ir::relax::Leaf::Global(g) => match module.get(&g.0) {
                Some(Func::Relax(f)) => !f.pure,
                _ => true,
            },
            other => match other.info() {
                Some(tvm_ir::relax::StructInfo::Func(f)) => !f.pure,
                _ => true,
            },
        },
        Expr::If(i) => body_impure(&i.then) || body_impure(&i.otherwise),
        Expr::Loop(l) => match &l.body {
            tvm_ir::relax::Leaf::Global(g) => !matches!(module.get(&g.0), Some(Func::Relax(f)) if f.pure),
            _ => true,
        },
        _ => false,
    }
}

/// The PrimFunc that a `call_tir` calls, or a diagnostic at the call.
pub(crate) fn prim_func<'a>(
    module: &'a IRModule,
    gv: &GlobalVar,
    span: tvm_ir::span::Span,
) -> Result<&'a tvm_ir::tir::PrimFunc, Diag> {
    match module.get(&gv.0) {
        Some(Func::Prim(f)) => Ok(f),
        Some(_) => Err(Diag::error(span, format!("R.call_tir of {}, which is not a PrimFunc", gv.0))),
        None => Err(Diag::error(span, format!("R.call_tir of {}, which the module does not have", gv.0))),
    }
}
