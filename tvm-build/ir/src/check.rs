//! What a module of a user's must satisfy before it is compiled.

use crate::diag::{Diag, Diags};
use crate::module::IRModule;
use crate::relax::verify::verify_module;
use crate::tir::verify::{check_bounds, verify};

/// Checks every function: the rules of [`crate::relax::verify`] and [`crate::tir::verify`], and that every access of a
/// well-formed PrimFunc is in bounds ([`check_bounds`]). Errors: all that were found, Relax functions first.
pub fn check_module(module: &IRModule) -> Result<(), Diags> {
    let mut diags = verify_module(module).err().unwrap_or_default();
    for (name, func) in module.prim_funcs() {
        let found = verify(func).and_then(|()| check_bounds(func)).err().unwrap_or_default();
        let at = |d: Diag| if d.labels.is_empty() { d.note(format!("in the PrimFunc {name}")) } else { d };
        diags.extend(Diags(found.0.into_iter().map(|d| at(d).at(func.span)).collect()));
    }
    diags.into_result(())
}
