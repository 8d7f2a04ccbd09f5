//! The API of build scripts.

#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on its standard output")]

use crate::compile::{Artifacts, Options, compile_module};
use crate::model::{self, Model};
use crate::toolchain::{Toolchain, isa_levels};
use crate::vm::rust::{self, RustOptions, WeightSource};

use std::path::PathBuf;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::render::render_all;
use tvm_ir::span::{SourceMap, Span};
use tvm_ir::target::Target;

/// Models to compile in a build script.
///
/// ```no_run
/// // build.rs
/// fn main() {
///     tvm_build::Build::new().onnx("digits", "models/digits.onnx").compile();
/// }
/// ```
///
/// The program then says `tvm_runtime::include_module!(digits);` and has a module `digits` with a type `Module`.
#[derive(Default)]
pub struct Build {
    models: Vec<(String, Source)>,
    target: Option<String>,
    opt_level: Option<u32>,
    arena_limit: Option<u64>,
    weights_limit: Option<u64>,
    without_heap: bool,
}

enum Source {
    File(PathBuf),
    Module(Box<IRModule>),
}

impl Build {
    /// Without models.
    pub fn new() -> Build {
        Build::default()
    }

    /// Adds an ONNX model under the name of its Rust module. The path is relative to the package.
    #[must_use]
    pub fn onnx(self, name: impl Into<String>, path: impl Into<PathBuf>) -> Build {
        self.file(name, path)
    }

    /// Adds a module in TVMScript text (`.py` or `.tvm`).
    #[must_use]
    pub fn tvmscript(self, name: impl Into<String>, path: impl Into<PathBuf>) -> Build {
        self.file(name, path)
    }

    fn file(mut self, name: impl Into<String>, path: impl Into<PathBuf>) -> Build {
        self.models.push((name.into(), Source::File(path.into())));
        self
    }

    /// Adds a module made in Rust.
    #[must_use]
    pub fn module(mut self, name: impl Into<String>, module: IRModule) -> Build {
        self.models.push((name.into(), Source::Module(Box::new(module))));
        self
    }

    /// Compiles kernels for this target alone, as `x86-64-v3`. Without it, on x86-64, there is a copy for each level of
    /// the instruction set that the program does not take for granted, and the run time chooses once.
    #[must_use]
    pub fn target(mut self, name: impl Into<String>) -> Build {
        self.target = Some(name.into());
        self
    }

    /// `-O` level of the C compiler, 0 to 3; it is 3 otherwise, in debug builds too.
    #[must_use]
    pub fn opt_level(mut self, level: u32) -> Build {
        self.opt_level = Some(level);
        self
    }

    /// The build fails when a module's arena takes more bytes.
    #[must_use]
    pub fn arena_limit(mut self, bytes: u64) -> Build {
        self.arena_limit = Some(bytes);
        self
    }

    /// The build fails when a module's weights take more bytes.
    #[must_use]
    pub fn weights_limit(mut self, bytes: u64) -> Build {
        self.weights_limit = Some(bytes);
        self
    }

    /// The modules have no `new`, which takes its arena from the heap: they are made with `with_arena`.
    #[must_use]
    pub fn without_heap(mut self) -> Build {
        self.without_heap = true;
        self
    }

    /// Compiles and links every model. All that is wrong is reported to cargo, which then fails the build.
    pub fn compile(self) {
        if let Err(text) = self.try_compile() {
            for line in text.lines() {
                println!("cargo::error={line}");
            }
        }
    }

    /// As [`Build::compile`], with the errors as text.
    pub fn try_compile(self) -> Result<(), String> {
        let mut sources = SourceMap::default();
        let mut diags = Diags::new();
        match self.run(&mut sources, &mut diags) {
            Some(()) if !diags.has_errors() => Ok(()),
            _ => Err(render_all(&diags, &sources)),
        }
    }

    fn run(self, sources: &mut SourceMap, diags: &mut Diags) -> Option<()> {
        for (_, source) in &self.models {
            if let Source::File(path) = source {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
        for variable in ["CC", "CFLAGS", "AR"] {
            println!("cargo::rerun-if-env-changed={variable}");
        }
        let mut toolchain = diags.ok(Toolchain::from_cargo())?;
        toolchain.opt_level = self.opt_level.unwrap_or(toolchain.opt_level);
        let targets = diags.ok(self.targets(&toolchain))?;
        let package = package_hash();
        for (name, source) in self.models {
            let model = match source {
                Source::Module(module) => Ok(Model { module: *module, files: Vec::new() }),
                Source::File(path) => model::load_with_files(&path, sources),
            };
            let options = Options {
                prefix: format!("{name}_{package:08x}_"),
                targets: targets.clone(),
                arena_limit: self.arena_limit,
                weights_limit: self.weights_limit,
                files: toolchain.jobs.clamp(1, 4),
                ..Options::new(&*name, Target::default())
            };
            let done = model.and_then(|model| {
                for file in model.files.iter().skip(1) {
                    println!("cargo::rerun-if-changed={}", file.display());
                }
                let artifacts = compile_module(model.module, &options)?;
                link(&artifacts, &options.prefix, &toolchain, !self.without_heap)
            });
            if let Err(found) = done {
                diags.extend(Diags(found.0.into_iter().map(|d| d.note(format!("in the model `{name}`"))).collect()));
            }
        }
        Some(())
    }

    fn targets(&self, toolchain: &Toolchain) -> Result<Vec<Target>, Diag> {
        let Some(name) = &self.target else {
            let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
            return Ok(isa_levels(&toolchain.triple, &features));
        };
        Target::named(name).map(|t| vec![t]).ok_or_else(|| {
            let known: Vec<String> = Target::all().into_iter().map(|t| t.name).collect();
            Diag::error(Span::NONE, format!("unknown target `{name}`")).help(format!("known are {}", known.join(", ")))
        })
    }
}

/// Compiles the sources of a module, writes its Rust text and tells cargo what to link.
fn link(artifacts: &Artifacts, prefix: &str, toolchain: &Toolchain, heap: bool) -> Result<(), Diags> {
    let units = artifacts.write(toolchain)?;
    let options = RustOptions {
        name: artifacts.name.clone(),
        levels: artifacts.levels.iter().map(|l| rust::Level { level: l.level, symbols: l.symbols.clone() }).collect(),
        weights: WeightSource::Symbol(artifacts.weights_symbol.clone()),
        heap,
        ndarray: false,
    };
    let text = rust::print(&artifacts.program, &options)?;
    toolchain.write_file(&format!("{}.rs", artifacts.name), &text)?;
    let library = format!("{prefix}kernels");
    toolchain.static_library(&library, &units)?;
    println!("cargo::rustc-link-search=native={}", toolchain.out_dir.display());
    println!("cargo::rustc-link-lib=static={library}");
    if toolchain.triple.contains("linux") {
        println!("cargo::rustc-link-lib=m");
    }
    Ok(())
}

/// Tells apart modules of one name in different packages of one program.
fn package_hash() -> u32 {
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let text = format!("{} {}", var("CARGO_PKG_NAME"), var("CARGO_PKG_VERSION"));
    text.bytes().fold(0x811c_9dc5, |h: u32, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}
