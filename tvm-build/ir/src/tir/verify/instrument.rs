//! Checks at run time of what is not proven to be in bounds.

use super::bounds::{CHECK_BOUNDS, Unproven, address, unproven};
use crate::attrs::AttrValue;
use crate::diag::{Diag, Diags};
use crate::tir::{AssertStmt, PrimFunc, Stmt};
use std::collections::BTreeMap;

/// In a function with [`CHECK_BOUNDS`], puts an assertion before each statement that makes an access which is not
/// proven to be in bounds; its message names buffer, index and extent. The attribute is removed: the function satisfies
/// [`super::check_bounds`] by its assertions. Other functions stay as they are.
///
/// Errs on such an access in the condition of a `while`, which is evaluated again and again.
pub fn instrument_bound_checkers(func: &PrimFunc) -> Result<PrimFunc, Diags> {
    if func.attrs.get(CHECK_BOUNDS).and_then(AttrValue::as_bool) != Some(true) {
        return Ok(func.clone());
    }
    let mut checks: BTreeMap<usize, Vec<Unproven>> = BTreeMap::new();
    for u in unproven(func) {
        checks.entry(u.stmt).or_default().push(u);
    }
    let mut diags = Diags::new();
    let body = with_checks(&func.body, &checks, &mut diags);
    let mut out = PrimFunc { body, ..func.clone() };
    out.attrs.remove(CHECK_BOUNDS);
    diags.into_result(out)
}

fn with_checks(s: &Stmt, checks: &BTreeMap<usize, Vec<Unproven>>, diags: &mut Diags) -> Stmt {
    let mut go = |s: &Stmt| with_checks(s, checks, diags);
    let new = match s {
        Stmt::Seq(stmts) => Stmt::seq(stmts.iter().map(go).collect::<Vec<_>>()),
        Stmt::For(f) => {
            let mut f = f.clone();
            f.body = go(&f.body);
            Stmt::For(f)
        }
        Stmt::Block(b) => {
            let mut new = b.clone();
            new.init = b.init.as_ref().map(&mut go);
            new.body = go(&b.body);
            Stmt::Block(new)
        }
        Stmt::Let(l) => {
            let mut new = l.clone();
            new.body = go(&l.body);
            Stmt::Let(new)
        }
        Stmt::If(i) => {
            let mut new = i.clone();
            new.then = go(&i.then);
            new.otherwise = i.otherwise.as_ref().map(&mut go);
            Stmt::If(new)
        }
        Stmt::While(w) => {
            let mut new = w.clone();
            new.body = go(&w.body);
            Stmt::While(new)
        }
        leaf @ (Stmt::Store(_) | Stmt::Assert(_) | Stmt::Evaluate(_)) => leaf.clone(),
    };
    let Some(found) = checks.get(&address(s)) else { return new };
    if let Stmt::While(_) = s {
        let message = "an access in the condition of a `while` cannot be checked at run time";
        diags.extend(Diags(found.iter().map(|u| Diag::error(u.span(), message).help("guard it, or bind it in the body")).collect()));
        return new;
    }
    let mut out: Vec<Stmt> = Vec::new();
    for u in found {
        let assert = AssertStmt { cond: u.claim.clone(), message: u.message().into() };
        if !out.iter().any(|s| matches!(s, Stmt::Assert(a) if a.message == assert.message)) {
            out.push(Stmt::Assert(Box::new(assert)));
        }
    }
    out.push(new);
    Stmt::seq(out)
}
