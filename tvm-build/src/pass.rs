//! Passes: a name, a line of documentation, parameters and a function. The manager verifies around every pass.

use std::time::{Duration, Instant};
use tvm_ir::attrs::{AttrValue, Attrs};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::relax::AttrDef;
use tvm_ir::span::Span;
use tvm_ir::target::Target;

/// A module pass.
pub struct Pass {
    /// TVM's name, as `FuseOps`; also the `--pass` flag.
    pub name: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// Its parameters with their defaults.
    pub params: &'static [AttrDef],
    /// The pass. What the verifier accepts it handles with `Ok` or located diagnostics.
    pub run: fn(&mut IRModule, &PassCx<'_>) -> Result<(), Diags>,
}

/// What a pass sees besides the module.
pub struct PassCx<'a> {
    /// What is compiled for.
    pub target: &'a Target,
    /// The pass's parameters, complete with defaults.
    pub args: Attrs,
}

impl PassCx<'_> {
    /// A parameter; `None` when the pass declares no such parameter.
    pub fn arg(&self, name: &str) -> &AttrValue {
        self.args.get(name).unwrap_or(&AttrValue::None)
    }
}

/// A pass with its arguments: an entry of a pipeline.
#[derive(Clone)]
pub struct Step {
    /// The pass.
    pub pass: &'static Pass,
    /// Arguments given; the others take their defaults.
    pub args: Attrs,
}

impl Step {
    /// A pass with its defaults.
    pub fn new(pass: &'static Pass) -> Step {
        Step { pass, args: Attrs::new() }
    }

    /// Runs the pass. Errors when an argument given is not one of the pass's.
    pub fn run(&self, module: &mut IRModule, target: &Target) -> Result<(), Diags> {
        if let Some(name) = self.args.keys().find(|k| !self.pass.params.iter().any(|p| p.name == &***k)) {
            let params: Vec<&str> = self.pass.params.iter().map(|p| p.name).collect();
            let what =
                if params.is_empty() { "it takes none".into() } else { format!("it takes {}", params.join(", ")) };
            return Err(Diag::error(Span::NONE, format!("{} has no parameter {name}", self.pass.name))
                .help(what)
                .into());
        }
        let mut args = self.args.clone();
        for p in self.pass.params {
            if let Some(default) = p.default {
                args.entry(p.name.into()).or_insert_with(|| default.value());
            }
        }
        (self.pass.run)(module, &PassCx { target, args })
    }
}

/// Checks a module; errors say what is ill-formed.
pub type Verifier = fn(&IRModule) -> Result<(), Diags>;

/// Sees a module after a pass.
pub type After<'a> = dyn FnMut(&Step, &IRModule) + 'a;

/// Checks every function of a module: the rules of `tvm_ir::relax::verify` and `tvm_ir::tir::verify`.
pub fn verify(module: &IRModule) -> Result<(), Diags> {
    let mut diags = Diags::new();
    if let Err(e) = tvm_ir::relax::verify::verify_module(module) {
        diags.extend(e);
    }
    for (name, func) in module.prim_funcs() {
        if let Err(e) = tvm_ir::tir::verify::verify(func) {
            diags.extend(Diags(e.0.into_iter().map(|d| d.note(format!("in the PrimFunc {name}"))).collect()));
        }
    }
    diags.into_result(())
}

/// What happens around the passes of a run. The default verifies in builds with debug assertions.
pub struct Instrument<'a> {
    /// Runs before the first pass and after each.
    pub verify: Option<Verifier>,
    /// Sees the module after each pass: to print it, as text or as a summary.
    pub after: Option<&'a mut After<'a>>,
    /// How long each pass took, in order.
    pub times: Vec<(&'static str, Duration)>,
}

impl Default for Instrument<'_> {
    fn default() -> Self {
        Instrument { verify: cfg!(debug_assertions).then_some(verify as Verifier), after: None, times: Vec::new() }
    }
}

impl Instrument<'_> {
    /// Runs a phase that is no pass, and notes how long it took.
    pub fn timed<T>(&mut self, name: &'static str, phase: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = phase();
        self.times.push((name, start.elapsed()));
        result
    }
}

/// Runs passes in order; stops at the first with errors. What the verifier finds after a pass is reported with the
/// pass's name: it is the pass that is at fault then.
pub fn run_steps(
    steps: &[Step],
    module: &mut IRModule,
    target: &Target,
    instrument: &mut Instrument<'_>,
) -> Result<(), Diags> {
    if let Some(verify) = instrument.verify {
        verify(module)?;
    }
    for step in steps {
        let start = Instant::now();
        step.run(module, target)?;
        instrument.times.push((step.pass.name, start.elapsed()));
        if let Some(verify) = instrument.verify {
            verify(module).map_err(|diags| {
                Diags(diags.0.into_iter().map(|d| d.note(format!("after the pass {}", step.pass.name))).collect())
            })?;
        }
        if let Some(after) = &mut instrument.after {
            after(step, module);
        }
    }
    Ok(())
}
