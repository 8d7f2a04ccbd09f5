//! From a lowered module to the VM's program: static memory planning, instructions, and the generated Rust module.
//!
//! Relax functions are taken apart into steps over storages (`build`), storages get places in one arena (`plan`),
//! steps become instructions (`emit`). Functions take tensors, shapes and scalars, tuples flattened; they write their
//! results into outputs that the caller provides (destination passing), at every level, and return those whose shape
//! is known only when they have run.
//!
//! Only public functions and what they call are in the program, callees first.

mod build;
mod build_call;
mod build_list;
mod build_loop;
mod dtype;
mod emit;
mod emit_loop;
mod linear;
mod order;
mod place;
mod plan;
mod program;
mod results;
mod reuse;
pub mod rust;
mod scalar;
mod signature;
mod size;
mod table;
#[cfg(test)]
mod tests;

pub use dtype::run_dtype;
pub use plan::{Place, Plan, Planned};
pub use program::{EmittedProgram, Entry, EntryKind, EntryOut, EntryParam, OutShape};

use crate::external::Externals;
use crate::lower::LoweredFunc;
use crate::weights::Weights;
use build::{FunctionEntry, KernelEntry, Program, linearize};
use linear::{Linear, Step};
use reuse::KernelFacts;
use std::collections::BTreeMap;
use table::Constants;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::lowered::Param;
use tvm_ir::module::IRModule;
use tvm_ir::name::Name;
use tvm_ir::span::Span;

/// How programs are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Kernels may overwrite an argument that dies with the call, where their PrimFunc proves it safe.
    pub reuse_in_place: bool,
    /// Memory is filled with `0xCB` bytes as soon as the plan calls it free: results that change show a fault in the plan.
    pub poison: bool,
}

impl Default for Options {
    /// Reuse, no poison.
    fn default() -> Options {
        Options { reuse_in_place: true, poison: false }
    }
}

/// A program and what belongs to it.
pub struct Compiled {
    /// The tables.
    pub program: EmittedProgram,
    /// The memory of each function, in the program's order.
    pub plans: Vec<Plan>,
    /// The constants, at the offsets that the program names.
    pub weights: Weights,
}

/// A module whose PrimFuncs are scheduled for one target, and the kernels they became, in the module's order.
pub struct Level {
    /// The module.
    pub module: IRModule,
    /// One kernel for each PrimFunc.
    pub kernels: Vec<LoweredFunc>,
}

/// Compiles the public Relax functions of a module whose bindings are `call_tir`, tuples, casts, conditionals and
/// calls of Relax functions.
///
/// External functions are not known here: see [`compile_levels`].
///
/// `kernels` are the module's PrimFuncs, lowered, in the order in which kernels are numbered. Where the plan lets two
/// buffers of a kernel share memory, their pointers lose `noalias`: print the kernels afterwards.
///
/// Errors, each at its binding: function values and recursion, ops that are not lowered, results whose size is not
/// known before the call, types that entry points cannot take.
pub fn compile(module: &IRModule, kernels: &mut [LoweredFunc], options: &Options) -> Result<Compiled, Diags> {
    let (compiled, aliased) = compile_with(module, kernels, facts_of(module), &Externals::default(), options)?;
    drop_noalias(kernels, &aliased);
    Ok(compiled)
}

/// As [`compile`], one program for the kernels of several targets, which calls the external functions of `externals`. The Relax functions of all levels are the same; what
/// the plan takes for granted of a kernel holds at every level.
pub fn compile_levels(levels: &mut [Level], externals: &Externals, options: &Options) -> Result<Compiled, Diags> {
    let Some((first, others)) = levels.split_first_mut() else {
        return Err(Diag::error(Span::NONE, "there is no target to compile for").into());
    };
    let mut facts = facts_of(&first.module);
    for other in others.iter() {
        let mut theirs = facts_of(&other.module);
        facts.iter_mut().for_each(|(name, f)| f.intersect(&theirs.remove(name).unwrap_or_default()));
        let same = |a: &LoweredFunc, b: &LoweredFunc| a.name == b.name && a.scalars == b.scalars;
        let all = first.kernels.iter().zip(&other.kernels).all(|(a, b)| same(a, b));
        if !all || first.kernels.len() != other.kernels.len() {
            return Err(Diag::error(Span::NONE, "the kernels of two targets are not called alike").into());
        }
        for (mine, theirs) in first.kernels.iter_mut().zip(&other.kernels) {
            mine.kernel.workspace = mine.kernel.workspace.max(theirs.kernel.workspace);
        }
    }
    let (compiled, aliased) = compile_with(&first.module, &first.kernels, facts, externals, options)?;
    levels.iter_mut().for_each(|l| drop_noalias(&mut l.kernels, &aliased));
    Ok(compiled)
}

fn facts_of(module: &IRModule) -> BTreeMap<Name, KernelFacts> {
    module.prim_funcs().map(|(name, f)| (name.clone(), KernelFacts::of(f))).collect()
}

/// A program, and the buffers of kernels that may share memory: `(kernel, buffer)`.
fn compile_with(
    module: &IRModule,
    kernels: &[LoweredFunc],
    facts: BTreeMap<Name, KernelFacts>,
    externals: &Externals,
    options: &Options,
) -> Result<(Compiled, Vec<(u16, usize)>), Diags> {
    let functions = order::callees_first(module)?;
    let mut program = Program {
        kernels: BTreeMap::new(),
        functions: BTreeMap::new(),
        externs: Vec::new(),
        declared: externals,
        weights: Weights::new(),
    };
    for (i, lowered) in kernels.iter().enumerate() {
        let index = u16::try_from(i).map_err(|_| Diag::error(Span::NONE, "a program has at most 65536 kernels"))?;
        let facts = facts.get(&lowered.name).cloned().unwrap_or_default();
        program.kernels.insert(&lowered.name, KernelEntry { index, lowered, facts });
    }
    let mut diags = Diags::new();
    let mut constants = Constants::default();
    let (mut done, mut plans, mut entries, mut aliased) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, f, called) in functions {
        let made = linearize(&mut program, name, f, called).and_then(|lin| {
            let placement = plan::plan(&lin, options)?;
            let workspace = workspace(&lin, kernels)?;
            let function = emit::emit(&lin, &placement, &mut constants, &done, workspace, options.poison)?;
            Ok((lin, placement, function))
        });
        let Some((lin, placement, function)) = diags.ok(made.map_err(|d| d.at(f.span))) else { continue };
        let index = u16::try_from(done.len()).map_err(|_| Diag::error(f.span, "too many functions"))?;
        program.functions.insert(name, FunctionEntry::new(index, &lin));
        if !f.is_private() {
            entries.extend(diags.ok(Entry::of(&lin, &placement.plan, usize::from(index))));
        }
        aliased.extend(placement.aliased);
        plans.push(placement.plan);
        done.push(function);
    }
    diags.into_result(())?;
    let Program { externs, weights, .. } = program;
    let program = EmittedProgram::new(done, constants, kernels, externs, &weights, entries)?;
    Ok((Compiled { program, plans, weights }, aliased))
}

/// The most scratch memory of the kernels a function calls.
fn workspace(lin: &Linear, kernels: &[LoweredFunc]) -> Result<usize, Diag> {
    let mut most = 0;
    lin.visit_steps(&mut |_, step| {
        if let Step::Kernel { kernel, .. } = step {
            most = most.max(kernels.get(usize::from(*kernel)).map_or(0, |k| k.kernel.workspace));
        }
    });
    usize::try_from(most).map_err(|_| Diag::error(lin.span, "a kernel needs more scratch memory than there can be"))
}

/// Other pointers may reach what these do: `(kernel, buffer)`.
fn drop_noalias(kernels: &mut [LoweredFunc], aliased: &[(u16, usize)]) {
    for (kernel, buffer) in aliased {
        let param = kernels.get_mut(usize::from(*kernel)).and_then(|k| k.kernel.params.get_mut(*buffer));
        if let Some(Param::Pointer { noalias, .. }) = param {
            *noalias = false;
        }
    }
}
