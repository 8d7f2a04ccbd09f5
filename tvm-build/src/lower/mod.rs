//! From scheduled TensorIR to lowered kernels: the end of the tree world.

mod expr;
mod hoist;
mod kernel;
pub mod names;
pub mod storage;

pub use kernel::to_kernel;

use crate::passes::tir::LOWERING;
use crate::schedule::rules::SCHEDULE_PLAN;
use crate::tir_tools::symbolic_vars;
use names::{Identifiers, Role};
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::lowered::Kernel;
use tvm_ir::module::IRModule;
use tvm_ir::name::Name;
use tvm_ir::target::Target;
use tvm_ir::tir::{Param, PrimFunc};

/// A PrimFunc of a module as a kernel, and how its scalar arguments are obtained.
#[derive(Clone, PartialEq, Debug)]
pub struct LoweredFunc {
    /// Name of the PrimFunc in the module.
    pub name: Name,
    /// The kernel: pointers of the buffer parameters in their order, then the scalars.
    pub kernel: Kernel,
    /// One source for each scalar parameter of the kernel, in their order: the symbolic variables of the buffers'
    /// shapes in order of first appearance (always `int64` or `int32`), then the scalar parameters in their order.
    pub scalars: Vec<ScalarSource>,
}

/// Where a caller gets the value of a kernel's scalar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScalarSource {
    /// Extent `axis` of the buffer argument `buffer` (counted among the buffers alone).
    Dim {
        /// Index among the buffer parameters.
        buffer: usize,
        /// The axis.
        axis: usize,
    },
    /// Scalar parameter of the PrimFunc, counted among the scalars alone: an element of `call_tir`'s `tir_vars`.
    Param(usize),
}

/// Lowers every PrimFunc of a module, in the module's order. Each function is lowered by itself: the result does not
/// depend on the others, names of kernels aside. All errors are collected; each names its function.
pub fn lower_to_kernels(module: &IRModule, target: &Target) -> Result<Vec<LoweredFunc>, Diags> {
    let mut diags = Diags::new();
    let mut ids = Identifiers::new();
    let mut out = Vec::new();
    for (name, func) in module.prim_funcs() {
        let symbol = ids.fresh(Role::Kernel, name);
        let lowered = lower_prim_func(func, name, symbol, target);
        out.extend(diags.ok(lowered.map_err(|d| d.at(func.span).note(format!("in PrimFunc {name}")))));
    }
    diags.into_result(out)
}

/// Lowers one function: the TIR lowering passes in order, then to a kernel.
pub fn lower_prim_func(f: &PrimFunc, name: &Name, symbol: Name, target: &Target) -> Result<LoweredFunc, Diag> {
    let scalars = scalar_sources(f)?;
    let mut flat = f.clone();
    for (_, pass) in LOWERING {
        flat = pass(flat, target)?;
    }
    let plan = f.attrs.get(SCHEDULE_PLAN).and_then(AttrValue::as_str).filter(|p| !p.is_empty());
    let origin = plan.map_or_else(|| name.to_string(), |p| format!("{name}: {p}"));
    let kernel = to_kernel(&flat, symbol, &origin)?;
    Ok(LoweredFunc { name: name.clone(), kernel, scalars })
}

fn scalar_sources(f: &PrimFunc) -> Result<Vec<ScalarSource>, Diag> {
    let mut out = Vec::new();
    for s in symbolic_vars(f) {
        let Some((buffer, axis)) = s.source else {
            return Err(Diag::error(
                s.var.span(),
                format!("the value of symbolic variable {} cannot be read off the arguments", s.var.name()),
            )
            .help("let it stand alone as an extent of a parameter, or make it a scalar parameter"));
        };
        out.push(ScalarSource::Dim { buffer, axis });
    }
    let scalars = f.params.iter().filter(|p| matches!(p, Param::Scalar(_))).count();
    out.extend((0..scalars).map(ScalarSource::Param));
    Ok(out)
}

#[cfg(test)]
mod tests;
