//! Which variables lowered statements read, write and declare.

use std::collections::BTreeSet;
use tvm_ir::lowered::{Expr, ExprKind, Local, Stmt};

/// Sets of variables of a run of statements.
#[derive(Default)]
pub(crate) struct Uses {
    /// Named anywhere but where declared.
    pub(crate) named: BTreeSet<Local>,
    /// Pointers and arrays that are read from.
    pub(crate) loaded: BTreeSet<Local>,
    /// Pointers and arrays that are written through.
    pub(crate) stored: BTreeSet<Local>,
    /// Declared here.
    pub(crate) declared: BTreeSet<Local>,
}

impl Uses {
    /// The sets of some statements.
    pub(crate) fn of(stmts: &[Stmt]) -> Uses {
        let mut uses = Uses::default();
        uses.stmts(stmts);
        uses
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for s in stmts {
            self.stmt(s);
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::For { var, min, extent, body, .. } => {
                self.declared.insert(var.clone());
                self.expr(min);
                self.expr(extent);
                self.stmts(body);
            }
            Stmt::If { cond, then, otherwise } => {
                self.expr(cond);
                self.stmts(then);
                self.stmts(otherwise);
            }
            Stmt::While { cond, body } => {
                self.expr(cond);
                self.stmts(body);
            }
            Stmt::Let { var, value } => {
                self.declared.insert(var.clone());
                self.expr(value);
            }
            Stmt::Array { var, .. } | Stmt::Workspace { var, .. } => {
                self.declared.insert(var.clone());
            }
            Stmt::Store { pointer, index, value, .. } => {
                self.named.insert(pointer.clone());
                self.stored.insert(pointer.clone());
                self.expr(index);
                self.expr(value);
            }
            Stmt::Assert { cond, .. } => self.expr(cond),
            Stmt::Evaluate(e) => self.expr(e),
            Stmt::Barrier(_) | Stmt::Comment(_) => {}
        }
    }

    /// Adds what an expression names.
    pub(crate) fn expr(&mut self, e: &Expr) {
        each(e, &mut |e| match &e.kind {
            ExprKind::Var(v) => {
                self.named.insert(v.clone());
            }
            ExprKind::Load { pointer, .. } | ExprKind::Gather { pointer, .. } => {
                self.named.insert(pointer.clone());
                self.loaded.insert(pointer.clone());
            }
            _ => {}
        });
    }
}

/// Calls `f` on an expression and all it is made of.
pub(crate) fn each(e: &Expr, f: &mut dyn FnMut(&Expr)) {
    f(e);
    match &e.kind {
        ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_) => {}
        ExprKind::Binary(_, a, b)
        | ExprKind::Cmp(_, a, b)
        | ExprKind::And(a, b)
        | ExprKind::Or(a, b)
        | ExprKind::Ramp(a, b) => {
            each(a, f);
            each(b, f);
        }
        ExprKind::Select(a, b, c) => {
            each(a, f);
            each(b, f);
            each(c, f);
        }
        ExprKind::Not(a) | ExprKind::Cast(a) | ExprKind::Reinterpret(a) | ExprKind::Broadcast(a) => each(a, f),
        ExprKind::Load { index, .. } | ExprKind::Gather { index, .. } => each(index, f),
        ExprKind::Call(_, args) | ExprKind::CallExtern(_, args) => args.iter().for_each(|a| each(a, f)),
    }
}

/// Calls `f` on every type of a value, variable or array in statements.
pub(crate) fn each_dtype(stmts: &[Stmt], f: &mut dyn FnMut(tvm_ir::dtype::DType)) {
    let on_expr = |e: &Expr, f: &mut dyn FnMut(tvm_ir::dtype::DType)| each(e, &mut |e| f(e.dtype));
    for s in stmts {
        match s {
            Stmt::For { min, extent, body, .. } => {
                on_expr(min, f);
                on_expr(extent, f);
                each_dtype(body, f);
            }
            Stmt::If { cond, then, otherwise } => {
                on_expr(cond, f);
                each_dtype(then, f);
                each_dtype(otherwise, f);
            }
            Stmt::While { cond, body } => {
                on_expr(cond, f);
                each_dtype(body, f);
            }
            Stmt::Let { value, .. } => on_expr(value, f),
            Stmt::Array { dtype, .. } | Stmt::Workspace { dtype, .. } => f(*dtype),
            Stmt::Store { index, value, .. } => {
                on_expr(index, f);
                on_expr(value, f);
            }
            Stmt::Assert { cond, .. } => on_expr(cond, f),
            Stmt::Evaluate(e) => on_expr(e, f),
            Stmt::Barrier(_) | Stmt::Comment(_) => {}
        }
    }
}
