//! Passes: a name, a line of documentation, parameters and a function. The manager verifies around every pass.

use tvm_ir::attrs::{AttrValue, Attrs};
use tvm_ir::diag::Diags;
use tvm_ir::module::IRModule;
use tvm_ir::relax::AttrDef;
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

    /// Runs the pass.
    pub fn run(&self, module: &mut IRModule, target: &Target) -> Result<(), Diags> {
        let mut args = self.args.clone();
        for p in self.pass.params {
            if let Some(default) = p.default {
                args.entry(p.name.into()).or_insert_with(|| default.value());
            }
        }
        (self.pass.run)(module, &PassCx { target, args })
    }
}
