//! Checks at run time of what is not proven to be in bounds.

use super::bounds::{CHECK_BOUNDS, address, unproven};
use super::unproven::Unproven;
use crate::attrs::AttrValue;
use crate::diag::Diag;
use crate::tir::{AssertStmt, PrimFunc, Stmt};
use std::collections::BTreeMap;

/// In a function with [`CHECK_BOUNDS`], puts an assertion before each statement that makes an access which is not
/// proven to be in bounds; its message names buffer, index and extent. The attribute is removed: the function satisfies
/// [`super::check_bounds`] by its assertions. Other functions stay as they are.
///
/// Errs on such an access in the condition of a `while`, which is evaluated again and again.
pub fn instrument_bound_checkers(func: &PrimFunc) -> Result<PrimFunc, Diag> {
    if func.attrs.get(CHECK_BOUNDS).and_then(AttrValue::as_bool) != Some(true) {
        return Ok(func.clone());
    }
    let mut checks: BTreeMap<usize, Vec<Unproven>> = BTreeMap::new();
    for u in unproven(func) {
        checks.entry(u.stmt).or_default().push(u);
    }
    let mut out = PrimFunc { body: with_checks(&func.body, &checks)?, ..func.clone() };
    out.attrs.remove(CHECK_BOUNDS);
    Ok(out)
}

fn with_checks(s: &Stmt, checks: &BTreeMap<usize, Vec<Unproven>>) -> Result<Stmt, Diag> {
    let go = |s: &Stmt| with_checks(s, checks);
    let new = match s {
        Stmt::Seq(stmts) => Stmt::seq(stmts.iter().map(go).collect::<Result<Vec<_>, _>>()?),
        Stmt::For(f) => {
            let mut new = f.clone();
            new.body = go(&f.body)?;
            Stmt::For(new)
        }
        Stmt::Block(b) => {
            let mut new = b.clone();
            new.init = b.init.as_ref().map(go).transpose()?;
            new.body = go(&b.body)?;
            Stmt::Block(new)
        }
        Stmt::Let(l) => {
            let mut new = l.clone();
            new.body = go(&l.body)?;
            Stmt::Let(new)
        }
        Stmt::If(i) => {
            let mut new = i.clone();
            new.then = go(&i.then)?;
            new.otherwise = i.otherwise.as_ref().map(go).transpose()?;
            Stmt::If(new)
        }
        Stmt::While(w) => {
            let mut new = w.clone();
            new.body = go(&w.body)?;
            Stmt::While(new)
        }
        leaf @ (Stmt::Store(_) | Stmt::Assert(_) | Stmt::Evaluate(_)) => leaf.clone(),
    };
    let Some(found) = checks.get(&address(s)) else { return Ok(new) };
    if let (Stmt::While(_), Some(first)) = (s, found.first()) {
        let message = "an access in the condition of a `while` cannot be checked at run time";
        return Err(Diag::error(first.span, message).help("guard it, or let the body keep the value in a buffer"));
    }
    let mut out: Vec<Stmt> = Vec::new();
    for u in found {
        let assert = AssertStmt { cond: u.claim.clone(), message: u.message().into() };
        if !out.iter().any(|s| matches!(s, Stmt::Assert(a) if a.message == assert.message)) {
            out.push(Stmt::Assert(Box::new(assert)));
        }
    }
    out.push(new);
    Ok(Stmt::seq(out))
}
