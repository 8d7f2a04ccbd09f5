//! Statements and bodies.

use super::{Parsed, Reader, call};
use crate::diag::Diag;
use crate::name::Name;
use crate::relax::Effects;
use crate::span::Span;
use crate::syntax::ast::{Expr, ExprKind, Ident, Stmt, StmtKind};

/// Whether the last expression of a function can only be meant as its value: an operator, a name or a call of an op.
fn is_value(e: &syn::Expr) -> bool {
    match e {
        syn::Expr::Path(_) | syn::Expr::Binary(_) | syn::Expr::Tuple(_) | syn::Expr::Paren(_) => {
            !matches!(e, syn::Expr::Binary(b) if Reader::assignment_operator(&b.op).is_some())
        }
        syn::Expr::Call(c) => match &*c.func {
            syn::Expr::Path(p) => super::expr::path_text(&p.path)
                .strip_prefix("R.")
                .is_some_and(|op| crate::ops::lookup(op).is_some_and(|op| op.def().effects == Effects::Pure)),
            _ => false,
        },
        _ => false,
    }
}

impl Reader<'_> {
    /// Statements; errors are recorded and reading goes on.
    pub(super) fn block_into(&mut self, list: &[syn::Stmt], out: &mut Vec<Stmt>) {
        for s in list {
            let done = self.stmt(s);
            match self.keep(done) {
                Some(done) => out.extend(done),
                None => out.extend(self.broken_stmt(s)),
            }
        }
    }

    /// What stands for a binding that could not be read.
    fn broken_stmt(&mut self, s: &syn::Stmt) -> Option<Stmt> {
        let pat = match s {
            syn::Stmt::Local(l) => match &l.pat {
                syn::Pat::Type(t) => &*t.pat,
                other => other,
            },
            _ => return None,
        };
        let names: Vec<&syn::Ident> = match pat {
            syn::Pat::Ident(i) => vec![&i.ident],
            syn::Pat::Tuple(t) => t
                .elems
                .iter()
                .filter_map(|p| match p {
                    syn::Pat::Ident(i) => Some(&i.ident),
                    _ => None,
                })
                .collect(),
            _ => return None,
        };
        let mut targets = Vec::new();
        for name in names {
            let ident = self.ident(name);
            self.locals.insert(ident.name.clone());
            targets.push(Expr::new(ExprKind::Name(ident.name), ident.span));
        }
        let span = targets.first()?.span;
        Some(match targets.len() {
            1 => Self::broken(targets.pop()?, span),
            _ => Self::broken(Expr::new(ExprKind::Tuple(targets), span), span),
        })
    }

    fn block(&mut self, b: &syn::Block) -> Parsed<Vec<Stmt>> {
        self.nested(b, |r| {
            let mut out = Vec::new();
            r.block_into(&b.stmts, &mut out);
            Ok(out)
        })
    }

    /// The body of a Relax function: it ends with its value.
    pub(super) fn relax_body(&mut self, b: &syn::Block, out: &mut Vec<Stmt>) {
        let (last, before) = match b.stmts.split_last() {
            Some((syn::Stmt::Expr(last, None), before)) => (last, before),
            Some((syn::Stmt::Expr(dropped, Some(semi)), before)) if is_value(dropped) => {
                let d = self.error(semi, "this semicolon drops the value: the function returns nothing");
                self.diags.push(d.help("remove it"));
                (dropped, before)
            }
            _ => return self.block_into(&b.stmts, out),
        };
        self.block_into(before, out);
        let done = self.result(last, out);
        if self.keep(done).is_none() {
            let span = self.span(last);
            let value = Some(Expr::new(ExprKind::Broken, span));
            out.push(Stmt { kind: StmtKind::Return(value), span });
        }
    }

    fn result(&mut self, e: &syn::Expr, out: &mut Vec<Stmt>) -> Parsed<()> {
        let span = self.span(e);
        let value = match e {
            syn::Expr::Return(r) => match &r.expr {
                Some(e) => return self.result(e, out),
                None => None,
            },
            syn::Expr::If(i) => {
                let ident = Ident { name: self.fresh("result"), span };
                out.push(self.conditional(i, Some(&ident))?);
                Some(Expr::new(ExprKind::Name(ident.name), span))
            }
            other => Some(self.expr(other)?),
        };
        out.push(Stmt { kind: StmtKind::Return(value), span });
        Ok(())
    }

    /// A name that nothing is bound to.
    fn fresh(&mut self, hint: &str) -> Name {
        let mut name = Name::from(hint);
        let mut i = 0u64;
        while self.locals.contains(&name) || self.functions.contains(&name) {
            i += 1;
            name = Name::from(format!("{hint}_{i}"));
        }
        self.locals.insert(name.clone());
        name
    }

    fn stmt(&mut self, s: &syn::Stmt) -> Parsed<Option<Stmt>> {
        match s {
            syn::Stmt::Local(l) => self.local(l).map(Some),
            syn::Stmt::Item(syn::Item::Fn(f)) => {
                let s = self.function(f)?;
                if let StmtKind::Def(d) = &s.kind {
                    self.locals.insert(d.ident.name.clone());
                }
                Ok(Some(s))
            }
            syn::Stmt::Item(syn::Item::Use(u)) => {
                Err(self.error(&u.use_token, "`use` inside an IR function").help("remove it"))
            }
            syn::Stmt::Item(i) => Err(self.error(i, "expected a statement")),
            syn::Stmt::Expr(e, _) => self.nested(e, |r| r.expr_stmt(e)),
            syn::Stmt::Macro(m) => self.assertion(&m.mac).map(Some),
        }
    }

    fn local(&mut self, l: &syn::Local) -> Parsed<Stmt> {
        let (pat, annotation) = match &l.pat {
            syn::Pat::Type(t) => (&*t.pat, Some(&*t.ty)),
            other => (other, None),
        };
        let Some(init) = &l.init else {
            return Err(self.error(pat, "a declaration without a value").help("write `let name = value;`"));
        };
        if let Some((t, _)) = &init.diverge {
            return Err(self.error(t, "`let … else` says nothing here").help("remove the `else`"));
        }
        let span = self.span(pat);
        if let (syn::Expr::If(i), syn::Pat::Ident(p), true) = (&*init.expr, pat, self.relax) {
            if let Some(a) = annotation {
                return Err(self.error(a, "the type of a conditional is found from its branches").help("remove it"));
            }
            let ident = self.bindable(&p.ident)?;
            let s = self.conditional(i, Some(&ident))?;
            self.locals.insert(ident.name);
            return Ok(s);
        }
        // The value is read before its name is in scope.
        let value = self.expr(&init.expr)?;
        let annotation = annotation.map(|t| self.ty(t)).transpose()?;
        let target = self.pattern(pat)?;
        Ok(Stmt { kind: StmtKind::Assign { target, annotation, value: Some(value) }, span })
    }

    /// A name, or names in parentheses; they are in scope from here on.
    fn pattern(&mut self, p: &syn::Pat) -> Parsed<Expr> {
        let span = self.span(p);
        match p {
            syn::Pat::Ident(i) => {
                if let Some(m) = &i.mutability {
                    let d = self.error(m, "`mut` says nothing here");
                    return Err(d.help("remove it: variables are never assigned twice, buffers always can be"));
                }
                let ident = self.bindable(&i.ident)?;
                self.locals.insert(ident.name.clone());
                Ok(Expr::new(ExprKind::Name(ident.name), ident.span))
            }
            syn::Pat::Wild(_) => Ok(Expr::new(ExprKind::Name("_".into()), span)),
            syn::Pat::Paren(p) => self.pattern(&p.pat),
            syn::Pat::Tuple(t) => {
                let items = t.elems.iter().map(|p| self.pattern(p)).collect::<Parsed<Vec<_>>>()?;
                self.node(ExprKind::Tuple(items), span)
            }
            _ => Err(Diag::error(span, "expected a name, or names in parentheses")),
        }
    }

    fn expr_stmt(&mut self, e: &syn::Expr) -> Parsed<Option<Stmt>> {
        match e {
            syn::Expr::Assign(a) => {
                let target = self.expr(&a.left)?;
                if let ExprKind::Name(n) = &target.kind {
                    return Err(Diag::error(target.span, format!("`{n}` is assigned again"))
                        .help(format!("bind a new variable: `let {n} = …;`")));
                }
                let value = self.expr(&a.right)?;
                let span = target.span.to(value.span);
                Ok(Some(Stmt { kind: StmtKind::Assign { target, annotation: None, value: Some(value) }, span }))
            }
            syn::Expr::Binary(b) if Self::assignment_operator(&b.op).is_some() => {
                let Some(op) = Self::assignment_operator(&b.op) else { return Ok(None) };
                let (target, right) = (self.expr(&b.left)?, self.expr(&b.right)?);
                let span = target.span.to(right.span);
                if let ExprKind::Name(n) = &target.kind {
                    return Err(Diag::error(target.span, format!("`{n}` is assigned again"))
                        .help(format!("bind a new variable: `let {n} = …;`")));
                }
                let value = self.node(ExprKind::Binary(op, Box::new(target.clone()), Box::new(right)), span)?;
                Ok(Some(Stmt { kind: StmtKind::Assign { target, annotation: None, value: Some(value) }, span }))
            }
            syn::Expr::ForLoop(f) => self.for_loop(f).map(Some),
            syn::Expr::While(w) => {
                let span = self.span(&w.while_token);
                let cond = self.condition(&w.cond)?;
                let body = self.block(&w.body)?;
                Ok(Some(Stmt { kind: StmtKind::While { cond, body }, span }))
            }
            syn::Expr::Loop(l) => {
                Err(self.error(&l.loop_token, "there is no `loop` in the IR").help("write `for` or `while`"))
            }
            syn::Expr::If(i) => {
                if self.relax {
                    return Err(self
                        .error(&i.if_token, "the value of this `if` is not used")
                        .help("bind it: `let x = if … { … } else { … };`"));
                }
                self.conditional(i, None).map(Some)
            }
            syn::Expr::Call(c) if matches!(c.args.last(), Some(syn::Expr::Block(_))) => self.scope(c).map(Some),
            syn::Expr::Return(r) => {
                let span = self.span(&r.return_token);
                let value = r.expr.as_ref().map(|e| self.expr(e)).transpose()?;
                Ok(Some(Stmt { kind: StmtKind::Return(value), span }))
            }
            syn::Expr::Block(b) => self.let_scope(b),
            syn::Expr::Macro(m) => self.assertion(&m.mac).map(Some),
            syn::Expr::Break(b) => Err(self.error(&b.break_token, "there is no `break` in the IR")),
            syn::Expr::Continue(c) => Err(self.error(&c.continue_token, "there is no `continue` in the IR")),
            other => {
                let e = self.expr(other)?;
                let span = e.span;
                Ok(Some(Stmt { kind: StmtKind::Expr(e), span }))
            }
        }
    }

    fn for_loop(&mut self, f: &syn::ExprForLoop) -> Parsed<Stmt> {
        let span = self.span(&f.for_token);
        let iter = match &*f.expr {
            syn::Expr::Range(r) => {
                let at = self.span(r);
                if let syn::RangeLimits::Closed(t) = &r.limits {
                    return Err(self.error(t, "a loop excludes its end").help("write `start..stop`"));
                }
                let (Some(start), Some(stop)) = (&r.start, &r.end) else {
                    return Err(Diag::error(at, "a loop needs a start and an end").help("write `0..n`"));
                };
                let (start, stop) = (self.expr(start)?, self.expr(stop)?);
                let args = if matches!(start.kind, ExprKind::Int(0)) { vec![stop] } else { vec![start, stop] };
                call("range", args, at)
            }
            other => self.expr(other)?,
        };
        let target = self.pattern(&f.pat)?;
        let body = self.block(&f.body)?;
        Ok(Stmt { kind: StmtKind::For { target, iter, body }, span })
    }

    fn condition(&mut self, e: &syn::Expr) -> Parsed<Expr> {
        if let syn::Expr::Let(l) = e {
            return Err(self.error(&l.let_token, "`let` is no condition"));
        }
        self.expr(e)
    }

    /// An `if`; with a name, each branch ends with the value that the name is bound to.
    fn conditional(&mut self, i: &syn::ExprIf, bind: Option<&Ident>) -> Parsed<Stmt> {
        let span = self.span(&i.if_token);
        let cond = self.condition(&i.cond)?;
        let then = self.branch(&i.then_branch, bind, span)?;
        let otherwise = match &i.else_branch {
            None if bind.is_some() => {
                return Err(Diag::error(span, "`if` without `else`: both branches must give the value"));
            }
            None => Vec::new(),
            Some((_, e)) => match &**e {
                syn::Expr::If(inner) => {
                    let inner = self.nested(inner, |r| r.conditional(inner, bind))?;
                    vec![inner]
                }
                syn::Expr::Block(b) => {
                    let body = self.branch(&b.block, bind, span)?;
                    // An empty `else` of a statement is no `else`.
                    body
                }
                other => return Err(self.error(other, "expected a block")),
            },
        };
        Ok(Stmt { kind: StmtKind::If { cond, then, otherwise }, span })
    }

    fn branch(&mut self, b: &syn::Block, bind: Option<&Ident>, at: Span) -> Parsed<Vec<Stmt>> {
        let Some(ident) = bind else {
            let body = self.block(b)?;
            let pass = Stmt { kind: StmtKind::Pass, span: at };
            return Ok(if body.is_empty() { vec![pass] } else { body });
        };
        let Some((syn::Stmt::Expr(last, None), before)) = b.stmts.split_last() else {
            let end = match b.stmts.last() {
                Some(last) => self.span(last),
                None => self.span(b),
            };
            return Err(Diag::error(end, "the branch has no value").help("end it with the value, without a semicolon"));
        };
        let locals = self.locals.clone();
        let mut out = Vec::new();
        self.block_into(before, &mut out);
        let span = self.span(last);
        match last {
            syn::Expr::If(i) => {
                let s = self.nested(i, |r| r.conditional(i, bind))?;
                out.push(s);
            }
            other => {
                let value = self.expr(other)?;
                let target = Expr::new(ExprKind::Name(ident.name.clone()), ident.span);
                out.push(Stmt { kind: StmtKind::Assign { target, annotation: None, value: Some(value) }, span });
            }
        }
        self.locals = locals;
        Ok(out)
    }

    /// `T::block("name", { … })`, `T::init({ … })`, `R::dataflow({ … })`
    fn scope(&mut self, c: &syn::ExprCall) -> Parsed<Stmt> {
        let mut args: Vec<&syn::Expr> = c.args.iter().collect();
        let Some(syn::Expr::Block(b)) = args.pop() else { return Err(self.error(c, "expected a block")) };
        let span = self.span(&c.func);
        let value = self.call_with(&c.func, &args, span)?;
        let body = self.block(&b.block)?;
        Ok(Stmt { kind: StmtKind::With { value, target: None, body }, span })
    }

    /// `{ let x = v; … }`: a variable for these statements alone.
    fn let_scope(&mut self, b: &syn::ExprBlock) -> Parsed<Option<Stmt>> {
        let span = self.span(b);
        let Some((syn::Stmt::Local(l), rest)) = b.block.stmts.split_first() else {
            return Err(Diag::error(span, "a block that opens no scope").help(if self.relax {
                "write R::dataflow({ … }), or remove the braces"
            } else {
                "write T::block(\"name\", { … }), or start it with `let`"
            }));
        };
        let (syn::Pat::Ident(_), Some(init)) = (&l.pat, &l.init) else {
            return Err(self.error(&l.pat, "expected a name and its value").help("remove the braces"));
        };
        let value = self.expr(&init.expr)?;
        let target = self.pattern(&l.pat)?;
        let mut body = Vec::new();
        self.block_into(rest, &mut body);
        let value = call("T.LetStmt", vec![value], span);
        Ok(Some(Stmt { kind: StmtKind::With { value, target: Some(target), body }, span }))
    }

    /// `assert!(condition, "message")`
    fn assertion(&mut self, m: &syn::Macro) -> Parsed<Stmt> {
        let span = self.span(&m.path);
        if !m.path.is_ident("assert") {
            return Err(Diag::error(span, "macros cannot be called in the IR, `assert!` aside"));
        }
        let parser = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        let args = m.parse_body_with(parser).map_err(|e| Diag::error(span, format!("{e}, in `assert!`")))?;
        let args: Vec<&syn::Expr> = args.iter().collect();
        let (cond, message) = match args.as_slice() {
            [cond] => (self.condition(cond)?, None),
            [cond, message] => (self.condition(cond)?, Some(self.expr(message)?)),
            _ => return Err(Diag::error(span, "assert! takes a condition and a message")),
        };
        Ok(Stmt { kind: StmtKind::Assert { cond, message }, span })
    }
}
