//! Statements.

use super::{Writer, quoted};
use crate::name::Name;
use crate::syntax::ast::{Expr, ExprKind, Stmt, StmtKind};

impl Writer {
    pub(super) fn stmts(&mut self, list: &[Stmt]) {
        for s in list {
            self.stmt(s);
        }
    }

    fn nested(&mut self, list: &[Stmt]) {
        self.indent += 1;
        self.stmts(list);
        self.indent -= 1;
    }

    fn stmt(&mut self, s: &Stmt) {
        match &s.kind {
            StmtKind::Pass => {}
            StmtKind::Expr(e) => {
                let text = self.expr(e);
                self.line(format!("{text};"));
            }
            StmtKind::Assign { target, annotation, value } => {
                self.assign(target, annotation.as_ref(), value.as_ref());
            }
            StmtKind::For { target, iter, body } => {
                let head = self.loop_head(iter);
                let target = self.pattern(target);
                self.line(format!("for {target} in {head} {{"));
                self.nested(body);
                self.line("}");
            }
            StmtKind::While { cond, body } => {
                let cond = self.expr(cond);
                self.line(format!("while {cond} {{"));
                self.nested(body);
                self.line("}");
            }
            StmtKind::If { cond, then, otherwise } => match bound(s).filter(|_| self.relax).cloned() {
                Some(name) => {
                    let name = self.name(&name);
                    self.branches(&format!("let {name} = "), Some("};"), cond, then, otherwise);
                }
                None => self.branches("", None, cond, then, otherwise),
            },
            StmtKind::With { value, target: Some(target), body } => {
                let value = match value.call() {
                    Some((_, [v], _)) => self.expr(v),
                    _ => self.expr(value),
                };
                let target = self.pattern(target);
                self.line("{");
                self.indent += 1;
                self.line(format!("let {target} = {value};"));
                self.stmts(body);
                self.indent -= 1;
                self.line("}");
            }
            StmtKind::With { value, target: None, body } => {
                let call = self.expr(value);
                let open = call.strip_suffix(')').unwrap_or(&call);
                let comma = if open.ends_with('(') { "" } else { ", " };
                self.line(format!("{open}{comma}{{"));
                self.nested(body);
                self.line("});");
            }
            StmtKind::Assert { cond, message } => {
                let cond = self.expr(cond);
                let message = message.as_ref().and_then(|m| m.str().cloned());
                self.line(format!("assert!({cond}, {});", quoted(message.as_ref().map_or("", Name::as_str))));
            }
            StmtKind::Return(value) => {
                let text = value.as_ref().map_or(String::new(), |v| self.expr(v));
                self.line(text);
            }
            StmtKind::Def(d) => {
                let relax = self.relax;
                self.function(d, true);
                self.relax = relax;
            }
            StmtKind::Class(_) => {}
        }
    }

    fn assign(&mut self, target: &Expr, annotation: Option<&Expr>, value: Option<&Expr>) {
        let Some(value) = value else { return };
        // The module needs no name of its own.
        if target.name().is_some_and(|n| n == "cls") && value.name().is_some() {
            return;
        }
        let text = self.expr(value);
        if matches!(target.kind, ExprKind::Index(..)) {
            let target = self.expr(target);
            return self.line(format!("{target} = {text};"));
        }
        let annotation = annotation.map_or(String::new(), |a| format!(": {}", self.ty(a)));
        let target = self.pattern(target);
        self.line(format!("let {target}{annotation} = {text};"));
    }

    fn pattern(&mut self, e: &Expr) -> String {
        match e.items() {
            Some(items) => super::super::doc::tuple(&items.iter().map(|i| self.pattern(i)).collect::<Vec<_>>()),
            None => self.expr(e),
        }
    }

    /// `0..n` for `range(n)`.
    fn loop_head(&mut self, iter: &Expr) -> String {
        match iter.call() {
            Some((path, [stop], [])) if path == "range" => format!("0..{}", self.expr(stop)),
            Some((path, [start, stop], [])) if path == "range" => format!("{}..{}", self.expr(start), self.expr(stop)),
            _ => self.expr(iter),
        }
    }

    /// `if c { … } else if d { … } else { … }`; with `end`, the whole is a value and so is each branch.
    fn branches(&mut self, head: &str, end: Option<&str>, cond: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        let binds = end.is_some();
        let cond = self.expr(cond);
        self.line(format!("{head}if {cond} {{"));
        self.branch(then, binds);
        let mut rest = otherwise;
        while let [Stmt { kind: StmtKind::If { cond, then, otherwise }, .. }] = rest {
            let cond = self.expr(cond);
            self.line(format!("}} else if {cond} {{"));
            self.branch(then, binds);
            rest = otherwise;
        }
        if !rest.is_empty() {
            self.line("} else {");
            self.branch(rest, binds);
        }
        self.line(end.unwrap_or("}"));
    }

    fn branch(&mut self, list: &[Stmt], binds: bool) {
        let Some((last, before)) = list.split_last().filter(|_| binds) else { return self.nested(list) };
        self.nested(before);
        self.indent += 1;
        match &last.kind {
            StmtKind::Assign { value: Some(value), .. } => {
                let text = self.expr(value);
                self.line(text);
            }
            StmtKind::If { cond, then, otherwise } => {
                self.branches("", Some("}"), cond, then, otherwise);
            }
            _ => self.stmt(last),
        }
        self.indent -= 1;
    }
}

/// The name that a conditional binds, which the last statement of its branches assigns.
pub(super) fn bound(s: &Stmt) -> Option<&Name> {
    match &s.kind {
        StmtKind::If { then, .. } => bound(then.last()?),
        StmtKind::Assign { target, .. } => target.name(),
        _ => None,
    }
}
