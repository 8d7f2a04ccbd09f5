//! What the commands share: reading the model, choosing the target, progress, failures.

use crate::args::{ModelArgs, TargetArgs};
use std::io::IsTerminal;
use std::time::Instant;
use tvm_build::{model, toolchain};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::render::render_all;
use tvm_ir::span::SourceMap;
use tvm_ir::target::Target;

/// Why the program stops.
pub enum Failure {
    /// The model or the result is at fault: exit code 1.
    Model(String),
    /// The command line is: exit code 2.
    Usage(String),
}

/// One run of the program.
pub struct Session {
    pub sources: SourceMap,
    start: Instant,
    verbose: bool,
}

impl Session {
    pub fn new() -> Session {
        Session { sources: SourceMap::default(), start: Instant::now(), verbose: std::io::stderr().is_terminal() }
    }

    /// Says on a terminal what is being done.
    pub fn progress(&self, what: &str) {
        if self.verbose {
            eprintln!("[{:6.2} s] {what}", self.start.elapsed().as_secs_f64());
        }
    }

    /// Diagnostics as the user sees them.
    pub fn fail(&self, diags: &Diags) -> Failure {
        Failure::Model(render_all(diags, &self.sources))
    }

    /// A result whose diagnostics end the program.
    pub fn check<T>(&self, result: Result<T, Diags>) -> Result<T, Failure> {
        result.map_err(|d| self.fail(&d))
    }

    /// Reads the model.
    pub fn load(&mut self, args: &ModelArgs) -> Result<IRModule, Failure> {
        self.progress(&format!("reading {}", args.model.display()));
        let loaded = model::load(&args.model, &mut self.sources);
        self.check(loaded)
    }

    /// The target asked for, or this machine.
    pub fn target(&self, args: &TargetArgs) -> Result<Target, Failure> {
        match &args.target {
            None => Ok(toolchain::host_target()),
            Some(name) => Target::named(name).ok_or_else(|| {
                let known: Vec<String> = Target::all().into_iter().map(|t| t.name).collect();
                Failure::Usage(format!("unknown target '{name}'; known are {}", known.join(", ")))
            }),
        }
    }
}

impl From<Diag> for Failure {
    fn from(diag: Diag) -> Failure {
        Failure::Model(format!("error: {diag}"))
    }
}
