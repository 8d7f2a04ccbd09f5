//! The reference interpreter: runs [`PrimFunc`]s and lowered [`Kernel`]s on tensors.
//!
//! It defines what programs mean (see [`crate::prim::BinOp`] and [`crate::prim::PrimKind`]): passes and back ends are
//! checked against it, and constants are folded with it. A function is compiled, for the shapes at hand, to a register
//! machine. Loops of every kind run in order. Errors are located: accesses out of bounds, division by zero, failed
//! assertions, and, when watched, reads of memory never written.
//!
//! - A block's `init` runs where all of its reduction iterators are at the start of their domains.
//! - `Select`, `And` and `Or` of scalars skip a side that is not chosen and could fail.
//! - Thread-bound loops run one thread after another; a barrier inside them is an error.
//! - Functions of floats are computed in double precision and rounded once.

mod buf;
mod build;
mod dead;
mod emit;
mod erf;
mod flow;
mod instr;
mod layout;
mod list;
mod loops;
mod lowered;
#[cfg(test)]
mod lowered_tests;
mod memory;
pub mod relax;
mod scalar;
mod symbolic;
#[cfg(test)]
mod tests;
mod tir;
mod vm;

pub use buf::TensorBuf;
pub use symbolic::{ExprTensor, run_symbolic};

use crate::constant::Constant;
use crate::diag::Diag;
use crate::lowered::Kernel;
use crate::span::Span;
use crate::tir::{Param, PrimFunc};
use std::borrow::Cow;

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Reading an element of an allocated buffer that was never written is an error.
    pub poison: bool,
    /// With `poison`: arguments whose elements count as never written, by position.
    pub uninitialised: Vec<usize>,
    /// Loop iterations, of all loops together, after which the run is given up.
    pub max_iterations: u64,
    /// Bytes that one allocated buffer may take.
    pub max_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { poison: false, uninitialised: Vec::new(), max_iterations: u64::MAX, max_bytes: 1 << 34 }
    }
}

/// Runs a function. `args` are its parameters in order, a scalar as a tensor of rank 0; symbolic extents are bound from
/// their shapes.
///
/// Errors: arguments that do not fit, and everything the module documentation lists. The arguments then hold what was
/// written so far.
pub fn run(func: &PrimFunc, args: &mut [TensorBuf]) -> Result<(), Diag> {
    run_with(func, args, &Options::default())
}

/// [`run`] with options.
pub fn run_with(func: &PrimFunc, args: &mut [TensorBuf], options: &Options) -> Result<(), Diag> {
    let compiled = tir::compile(func, args, options)?;
    layout::check_sizes(func, args)?;
    execute(&compiled.code, &compiled.sites, compiled.memory, args, &param_names(func), options)
}

/// [`run_with`] of a function whose first parameters are constants, which are read where they lie; `rest` are the other
/// arguments, and what is given back. A constant that the function stores to is copied before.
pub fn run_on_constants(
    func: &PrimFunc,
    constants: &[&Constant],
    rest: Vec<TensorBuf>,
    options: &Options,
) -> Result<Vec<TensorBuf>, Diag> {
    let mut args = constants.iter().map(|c| header(c)).collect::<Result<Vec<_>, _>>()?;
    args.extend(rest);
    let tir::Compiled { code, sites, memory } = tir::compile(func, &args, options)?;
    let mut rest = args.split_off(constants.len());
    layout::check_sizes(func, &rest)?;
    let mut memory: memory::Memory<'_> = memory;
    let middle = constants.len().min(memory.data.len());
    let (first, others) = memory.data.split_at_mut(middle);
    first.iter_mut().zip(constants).for_each(|(slot, c)| *slot = Cow::Borrowed(c.data()));
    others.iter_mut().zip(&mut rest).for_each(|(slot, arg)| *slot = std::mem::take(&mut arg.data).into());
    let result = code.run(&mut memory, options.max_iterations);
    for (arg, slot) in rest.iter_mut().zip(memory.data.into_iter().skip(constants.len())) {
        arg.data = slot.into_owned();
    }
    located(result, &sites, &param_names(func), options).map(|()| rest)
}

/// Type and shape of a constant; its element, if there is but one, which may be a scalar.
fn header(c: &Constant) -> Result<TensorBuf, Diag> {
    let shape = c.shape().iter().map(|d| i64::try_from(*d)).collect::<Result<Vec<_>, _>>();
    let shape = shape.map_err(|_| Diag::error(Span::NONE, format!("{c:?} has too large an extent")))?;
    let data = if c.len() == 1 { c.data().to_vec() } else { Vec::new() };
    Ok(TensorBuf { dtype: c.dtype(), shape, data })
}

fn param_names(func: &PrimFunc) -> Vec<String> {
    let name = |p: &Param| match p {
        Param::Buffer(b) => b.name.to_string(),
        Param::Scalar(v) => v.name().to_string(),
    };
    func.params.iter().map(name).collect()
}

/// Runs a lowered kernel. `args` are its parameters in order: pointers as tensors of the pointer's element type and any
/// shape, scalars as tensors of rank 0. Base addresses count as aligned to 64 bytes.
///
/// Errors: arguments that do not fit, accesses outside of a tensor, an array or the workspace, stores through pointers
/// not declared written, aligned accesses that are not, failed assertions, and all errors of the operators.
pub fn run_kernel(kernel: &Kernel, args: &mut [TensorBuf]) -> Result<(), Diag> {
    run_kernel_with(kernel, args, &Options::default())
}

/// [`run_kernel`] with options.
pub fn run_kernel_with(kernel: &Kernel, args: &mut [TensorBuf], options: &Options) -> Result<(), Diag> {
    let compiled = lowered::compile(kernel, args, options)?;
    let names: Vec<String> = kernel.params.iter().map(|p| lowered::param_name(p).to_string()).collect();
    execute(&compiled.code, &compiled.sites, compiled.memory, args, &names, options)
}

fn execute(
    code: &instr::Code,
    sites: &[build::Site],
    mut memory: memory::Memory<'_>,
    args: &mut [TensorBuf],
    names: &[String],
    options: &Options,
) -> Result<(), Diag> {
    for (slot, arg) in memory.data.iter_mut().zip(args.iter_mut()) {
        *slot = std::mem::take(&mut arg.data).into();
    }
    let result = code.run(&mut memory, options.max_iterations);
    for (slot, arg) in memory.data.into_iter().zip(args.iter_mut()) {
        arg.data = slot.into_owned();
    }
    located(result, sites, names, options)
}

/// The error of a run, at its place.
fn located(
    result: Result<(), vm::Stop>,
    sites: &[build::Site],
    names: &[String],
    options: &Options,
) -> Result<(), Diag> {
    result.map_err(|stop| match stop {
        vm::Stop::Site(i, value) => match usize::try_from(i).ok().and_then(|i| sites.get(i)) {
            Some(site) => Diag::error(site.span, site.message.replace("{}", &value.to_string())),
            None => Diag::error(Span::NONE, "a check failed"),
        },
        vm::Stop::Memory(mem, at) => {
            let name = names.get(usize::from(mem)).map_or("a local buffer", String::as_str);
            Diag::error(Span::NONE, format!("element {at} of {name} is out of bounds"))
        }
        vm::Stop::Limit => Diag::error(Span::NONE, format!("gave up after {} loop iterations", options.max_iterations)),
    })
}
