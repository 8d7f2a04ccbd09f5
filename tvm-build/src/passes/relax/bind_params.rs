//! BindParams: parameters become constants. (It takes tensors, so it is a function, not an entry of the pass list.)

use super::support::symbolic;
use std::collections::BTreeMap;
use tvm_ir::constant::Constant;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::name::Name;
use tvm_ir::ops::show_info;
use tvm_ir::prim;
use tvm_ir::relax::{Dims, Function, Leaf, StructInfo, Var, substitute_body};
use tvm_ir::span::Span;

/// Binds parameters of a function to constants: they leave its signature, and symbolic dimensions that their shapes fix
/// are put in everywhere.
///
/// Errors, all at once: a function or parameter that does not exist, and constants whose type or shape is not the
/// parameter's.
pub fn bind_params(module: &mut IRModule, func_name: &str, constants: &BTreeMap<Name, Constant>) -> Result<(), Diags> {
    let Some(Func::Relax(f)) = module.get(func_name) else {
        return Err(Diag::error(Span::NONE, format!("the module has no Relax function {func_name}")).into());
    };
    let new = bind(f, constants)?;
    module.funcs.insert(func_name.into(), Func::Relax(new));
    Ok(())
}

fn bind(f: &Function, constants: &BTreeMap<Name, Constant>) -> Result<Function, Diags> {
    let mut diags = Diags::new();
    let mut map: BTreeMap<Var, Leaf> = BTreeMap::new();
    let mut dims: BTreeMap<prim::Var, prim::PrimExpr> = BTreeMap::new();
    for (name, constant) in constants {
        let Some(p) = f.params.iter().find(|p| p.name() == name) else {
            let names: Vec<&str> = f.params.iter().map(|p| p.name().as_str()).collect();
            diags.push(
                Diag::error(f.span, format!("there is no parameter {name}"))
                    .help(format!("the parameters are {}", names.join(", "))),
            );
            continue;
        };
        let leaf = Leaf::Const(constant.clone());
        let Some(info) = leaf.info() else { continue };
        symbolic::match_info(p.info(), &info, &mut dims);
        if !fits(&p.info().substitute(&dims), &info) {
            let what =
                format!("the constant {} does not fit parameter {name} {}", show_info(&info), show_info(p.info()));
            diags.push(Diag::error(p.span(), what));
            continue;
        }
        map.insert(p.clone(), leaf);
    }
    let params = f.params.iter().filter(|p| !map.contains_key(p)).cloned().collect();
    let bound = Function { params, body: substitute_body(&f.body, &map), ..f.clone() };
    diags.into_result(symbolic::map_function_exprs(&bound, &dims))
}

fn fits(param: &StructInfo, constant: &StructInfo) -> bool {
    match (param, constant) {
        (StructInfo::Tensor(p), StructInfo::Tensor(c)) => {
            let same_dims = match &p.dims {
                Dims::Unknown => true,
                Dims::Rank(n) => c.dims.rank() == Some(*n),
                known => *known == c.dims,
            };
            same_dims && p.dtype.is_none_or(|d| c.dtype == Some(d))
        }
        (StructInfo::Object, _) => true,
        _ => false,
    }
}
