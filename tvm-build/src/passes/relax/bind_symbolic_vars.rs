//! BindSymbolicVars: symbolic variables become numbers. (It takes a map, so it is a function, not an entry of the pass
//! list.)

use super::support::symbolic;
use std::collections::BTreeMap;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::name::Name;
use tvm_ir::prim::{PrimExpr, Var};
use tvm_ir::relax::Function;

/// The symbolic variables that the parameters of a function define, by name; two variables of one name are both there.
pub fn symbolic_vars(f: &Function) -> Vec<Var> {
    let mut vars = Vec::new();
    f.params.iter().for_each(|p| symbolic::definable(p.info(), &mut vars));
    vars
}

/// Puts numbers in for symbolic variables, by name, in every public Relax function that has them in its parameters.
///
/// Errors, all at once: a name that is no symbolic variable of any of those functions, a negative number.
pub fn bind_symbolic_vars(module: &mut IRModule, values: &BTreeMap<Name, i64>) -> Result<(), Diags> {
    let mut diags = Diags::new();
    let mut found: Vec<&Name> = Vec::new();
    let mut known: Vec<Name> = Vec::new();
    let mut bound: Vec<(Name, Function)> = Vec::new();
    for (name, func) in &module.funcs {
        let Func::Relax(f) = func else { continue };
        if f.is_private() {
            continue;
        }
        let vars = symbolic_vars(f);
        known.extend(vars.iter().map(|v| v.name().clone()));
        let map: BTreeMap<Var, PrimExpr> =
            vars.iter().filter_map(|v| Some((v.clone(), PrimExpr::i64(*values.get(v.name())?)))).collect();
        found.extend(values.keys().filter(|n| map.keys().any(|v| v.name() == *n)));
        if !map.is_empty() {
            bound.push((name.clone(), symbolic::map_function_exprs(f, &map)));
        }
    }
    for (name, value) in values {
        if !found.contains(&name) {
            diags.push(unknown_symbol(name, known.clone()));
        }
        if *value < 0 {
            diags.push(Diag::error(tvm_ir::span::Span::NONE, format!("the dimension {name} cannot be {value}")));
        }
    }
    for (name, f) in bound {
        module.funcs.insert(name, Func::Relax(f));
    }
    diags.into_result(())
}

/// The error of a name that is no symbolic dimension; `known` are those there are.
pub fn unknown_symbol(name: &str, mut known: Vec<Name>) -> Diag {
    known.sort();
    known.dedup();
    let diag = Diag::error(tvm_ir::span::Span::NONE, format!("there is no symbolic dimension `{name}`"));
    let names: Vec<&str> = known.iter().map(Name::as_str).collect();
    match names.as_slice() {
        [] => diag.help("every dimension of the parameters is a number"),
        _ => diag.help(format!("the symbolic dimensions are {}", names.join(", "))),
    }
}
