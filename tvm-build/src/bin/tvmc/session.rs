//! What the commands share: reading the model, choosing the target, progress, failures.

use crate::args::{ModelArgs, TargetArgs};
use std::io::IsTerminal;
use std::time::Instant;
use tvm_build::compile::{Options, compile_module};
use tvm_build::dims::{self, DimBounds};
use tvm_build::host::HostModule;
use tvm_build::import::onnx::ImportOptions;
use tvm_build::model::{self, Model};
use tvm_build::toolchain;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::render::render_all;
use tvm_ir::span::{SourceMap, Span};
use tvm_ir::target::Target;

/// Why the program stops.
pub enum Failure {
    /// The model or the result is at fault: exit code 1.
    Model(String),
    /// The same, and what there is to say has been said.
    Reported,
    /// The command line is: exit code 2.
    Usage(String),
}

/// One run of the program.
pub struct Session {
    pub sources: SourceMap,
    /// Sizes of the module that `load_to_run` compiled.
    pub facts: Option<Facts>,
    start: Instant,
    verbose: bool,
}

/// Sizes of a compiled module.
#[derive(Clone, Default)]
pub struct Facts {
    pub arena_bytes: usize,
    pub weight_bytes: u64,
    pub code_bytes: u64,
    pub target: String,
}

impl Session {
    pub fn new() -> Session {
        Session {
            sources: SourceMap::default(),
            facts: None,
            start: Instant::now(),
            verbose: std::io::stderr().is_terminal(),
        }
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

    /// Reads the model; warnings go to the standard error output.
    pub fn load(&mut self, args: &ModelArgs) -> Result<IRModule, Failure> {
        self.progress(&format!("reading {}", args.model.display()));
        let options = ImportOptions { overridable: args.overridable.clone(), ..ImportOptions::default() };
        let loaded = model::load_with(&args.model, options, &mut self.sources);
        let Model { mut module, warnings, overridable, .. } = self.check(loaded)?;
        if let Some(name) = args.overridable.iter().find(|n| !overridable.contains(n)) {
            return Err(Diag::error(Span::NONE, format!("the model has no initializer '{name}' to override")).into());
        }
        if !warnings.0.is_empty() {
            eprintln!("{}", render_all(&warnings, &self.sources));
        }
        let mut bounds = DimBounds::default();
        args.bounds.iter().for_each(|(name, range)| bounds.insert(name.as_str(), range.clone()));
        self.check(bounds.unknown(&dims::symbols(&module)).into_result(()))?;
        self.check(bounds.apply(&mut module))?;
        Ok(module)
    }

    /// Reads a model, compiles it for this machine and loads it.
    pub fn load_to_run(&mut self, model: &ModelArgs, target: &TargetArgs) -> Result<HostModule, Failure> {
        let target = self.target(target)?;
        let module = self.load(model)?;
        self.progress("compiling");
        let options = Options::new("model", target.clone());
        let artifacts = self.check(compile_module(module, &options))?;
        self.progress("running the C compiler");
        let dir = Scratch::new().map_err(|e| Failure::Model(format!("error: no temporary folder: {e}")))?;
        let loaded = self.check(HostModule::load(&artifacts, &dir.0))?;
        let library = format!("{}model{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        self.facts = Some(Facts {
            arena_bytes: artifacts.program.arena_bytes(),
            weight_bytes: artifacts.weights.len(),
            code_bytes: std::fs::metadata(dir.0.join(library)).map_or(0, |m| m.len()),
            target: target.name,
        });
        Ok(loaded)
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

/// A folder that goes away.
pub struct Scratch(std::path::PathBuf);

impl Scratch {
    pub fn new() -> std::io::Result<Scratch> {
        let base = std::env::temp_dir();
        for n in 0..1000 {
            let dir = base.join(format!("tvmc-{}-{n}", std::process::id()));
            match std::fs::create_dir(&dir) {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                other => return other.map(|()| Scratch(dir)),
            }
        }
        Err(std::io::Error::other("every name is taken"))
    }

    pub fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaning of its temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
