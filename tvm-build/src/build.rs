//! The API of build scripts.

#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on its standard output")]

use crate::compile::{Artifacts, Options, compile_module};
use crate::dims::{self, DimBounds};
use crate::import::onnx::{CustomOps, ImportOptions, NodeCx, NodeValue};
use crate::model::{self, Model};
use crate::pass::Step;
use crate::rust_source;
use crate::toolchain::{Toolchain, isa_levels};
use crate::vm::rust::{self, RustOptions, WeightSource};

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::render::render_all;
use tvm_ir::span::{SourceMap, Span};
use tvm_ir::target::Target;

/// Models to compile in a build script.
///
/// ```no_run
/// // In `main` of build.rs:
/// tvm_build::Build::new().onnx("digits", "models/digits.onnx").compile();
/// ```
///
/// The program then says `tvm_runtime::include_module!(digits);` and has a module `digits` with a type `Module`.
#[derive(Default)]
pub struct Build {
    models: Vec<(String, Source)>,
    rust_sources: Vec<PathBuf>,
    target: Option<String>,
    opt_level: Option<u32>,
    arena_limit: Option<u64>,
    weights_limit: Option<u64>,
    pipeline: Option<Vec<Step>>,
    without_heap: bool,
    ndarray: bool,
    bounds: DimBounds,
    ops: CustomOps,
}

enum Source {
    File(PathBuf),
    Module(Box<IRModule>),
    /// A module of `ir_module!`, with its fingerprint.
    Inline(Box<IRModule>, u64),
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

    /// Adds the modules of every `ir_module!` in a Rust file, or in all files of a folder, under their own names. The
    /// path is relative to the package. A module that is ill-formed is left to the macro, which reports it at its tokens.
    ///
    /// Errors of [`Build::compile`]: a file that cannot be read.
    #[must_use]
    pub fn rust_source(mut self, path: impl Into<PathBuf>) -> Build {
        self.rust_sources.push(path.into());
        self
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

    /// Says what the nodes of an ONNX operator mean that the standard does not define, or that is to be compiled otherwise
    /// than this crate does; see [`CustomOps`].
    #[must_use]
    pub fn onnx_op(
        mut self,
        domain: &str,
        op_type: &str,
        convert: impl Fn(&mut NodeCx<'_, '_>) -> Result<Vec<NodeValue>, Diag> + Send + Sync + 'static,
    ) -> Build {
        self.ops = self.ops.op(domain, op_type, convert);
        self
    }

    /// The range of a symbolic dimension of the models' inputs: `.bound("batch", 1..=8)`. Memory is planned for it, and a
    /// call with another extent is an error. A range of one number makes the dimension that number in the compiled code.
    ///
    /// Errors of [`Build::compile`]: no model has a dimension of this name; the range is empty or begins below 0.
    #[must_use]
    pub fn bound(mut self, name: impl Into<String>, range: RangeInclusive<i64>) -> Build {
        self.bounds.insert(name.into(), range);
        self
    }

    /// Runs these passes instead of the pipeline `default`; see [`crate::pipeline`].
    #[must_use]
    pub fn pipeline(mut self, steps: Vec<Step>) -> Build {
        self.pipeline = Some(steps);
        self
    }

    /// Functions get a second form that takes and gives ndarray's arrays (`main_nd`). The program depends on the crate
    /// `ndarray` and enables tvm-runtime's feature of that name.
    #[must_use]
    pub fn ndarray(mut self) -> Build {
        self.ndarray = true;
        self
    }

    /// Compiles and links every model. All that is wrong is reported to cargo, which then fails the build.
    pub fn compile(self) {
        let done = self.try_compile(&mut |line| println!("{line}"));
        if let Err(text) = done {
            text.lines().for_each(|line| println!("cargo::error={line}"));
        }
    }

    /// As [`Build::compile`]: hands what cargo must know to `cargo`, line by line, and gives the errors as text.
    pub fn try_compile(self, cargo: &mut dyn FnMut(&str)) -> Result<(), String> {
        self.try_compile_with(Toolchain::from_cargo(), cargo)
    }

    fn try_compile_with(self, toolchain: Result<Toolchain, Diag>, cargo: &mut dyn FnMut(&str)) -> Result<(), String> {
        let mut sources = SourceMap::default();
        self.run(toolchain, &mut sources, cargo).map_err(|diags| render_all(&diags, &sources))
    }

    fn run(
        mut self,
        toolchain: Result<Toolchain, Diag>,
        sources: &mut SourceMap,
        cargo: &mut dyn FnMut(&str),
    ) -> Result<(), Diags> {
        for (_, source) in &self.models {
            if let Source::File(path) = source {
                cargo(&format!("cargo::rerun-if-changed={}", path.display()));
            }
        }
        let mut diags = Diags::new();
        for path in std::mem::take(&mut self.rust_sources) {
            cargo(&format!("cargo::rerun-if-changed={}", path.display()));
            match rust_source::read(&path) {
                Ok(found) => self
                    .models
                    .extend(found.into_iter().map(|c| (c.name, Source::Inline(Box::new(c.module), c.fingerprint)))),
                Err(d) => diags.push(d),
            }
        }
        for variable in ["CC", "CFLAGS", "AR"] {
            cargo(&format!("cargo::rerun-if-env-changed={variable}"));
        }
        let mut toolchain = toolchain?;
        toolchain.opt_level = self.opt_level.unwrap_or(toolchain.opt_level);
        let targets = self.targets(&toolchain)?;
        let package = package_hash();
        let mut names = BTreeSet::new();
        let mut symbols = Vec::new();
        for (name, source) in std::mem::take(&mut self.models) {
            if !names.insert(name.clone()) {
                diags.push(Diag::error(Span::NONE, format!("two models are named `{name}`")));
                continue;
            }
            let fingerprint = match &source {
                Source::Inline(_, fingerprint) => Some(*fingerprint),
                Source::File(_) | Source::Module(_) => None,
            };
            let model = match source {
                Source::Module(module) | Source::Inline(module, _) => Ok(Model { module: *module, files: Vec::new() }),
                Source::File(path) => {
                    let onnx = ImportOptions { ops: self.ops.clone(), ..ImportOptions::default() };
                    model::load_with(&path, onnx, sources)
                }
            };
            let mut options = Options {
                prefix: format!("{name}_{package:08x}_"),
                targets: targets.clone(),
                arena_limit: self.arena_limit,
                weights_limit: self.weights_limit,
                files: toolchain.jobs.clamp(1, 4),
                ..Options::new(&*name, Target::default())
            };
            if let Some(steps) = &self.pipeline {
                options.pipeline.clone_from(steps);
            }
            let form = Form { heap: !self.without_heap, ndarray: self.ndarray };
            let done = model.and_then(|mut model| {
                symbols.extend(dims::symbols(&model.module));
                self.bounds.apply(&mut model.module)?;
                for file in model.files.iter().skip(1) {
                    cargo(&format!("cargo::rerun-if-changed={}", file.display()));
                }
                let artifacts = compile_module(model.module, &options)?;
                link(&artifacts, &options.prefix, fingerprint, &toolchain, form, cargo)
            });
            if let Err(found) = done {
                diags.extend(Diags(found.0.into_iter().map(|d| d.note(format!("in the model `{name}`"))).collect()));
            }
        }
        diags.extend(self.bounds.unknown(&symbols));
        diags.into_result(())
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

/// What generated modules offer.
#[derive(Clone, Copy)]
struct Form {
    heap: bool,
    ndarray: bool,
}

/// Compiles the sources of a module, writes its Rust text and tells cargo what to link.
fn link(
    artifacts: &Artifacts,
    prefix: &str,
    fingerprint: Option<u64>,
    toolchain: &Toolchain,
    form: Form,
    cargo: &mut dyn FnMut(&str),
) -> Result<(), Diags> {
    let library = format!("{prefix}kernels");
    let units = artifacts.write(toolchain)?;
    let options = RustOptions {
        name: artifacts.name.clone(),
        levels: artifacts.levels.iter().map(|l| rust::Level { level: l.level, symbols: l.symbols.clone() }).collect(),
        weights: WeightSource::Symbol(artifacts.weights_symbol.clone()),
        library: Some(library.clone()),
        heap: form.heap,
        ndarray: form.ndarray,
    };
    let mut text = rust::print(&artifacts.program, &options)?;
    if let Some(f) = fingerprint {
        text.push_str(&format!(
            "\n/// What `ir_module!` compares its own with.\npub const FINGERPRINT: u64 = {f:#018x};\n"
        ));
    }
    toolchain.write_file(&format!("{}.rs", artifacts.name), &text)?;
    toolchain.static_library(&library, &units)?;
    // The module itself says what to link: cargo would tell the package's library alone, if it has one.
    cargo(&format!("cargo::rustc-link-search=native={}", toolchain.out_dir.display()));
    if toolchain.triple.contains("linux") {
        cargo("cargo::rustc-link-lib=m");
    }
    Ok(())
}

/// Tells apart modules of one name in different packages of one program.
fn package_hash() -> u32 {
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let text = format!("{} {}", var("CARGO_PKG_NAME"), var("CARGO_PKG_VERSION"));
    text.bytes().fold(0x811c_9dc5, |h: u32, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain(name: &str) -> Toolchain {
        let dir = std::env::temp_dir().join(format!("tvm-build-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Toolchain { jobs: 2, ..Toolchain::for_host(dir) }
    }

    fn digits(model: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/digits/models").join(model)
    }

    /// Every file of a folder with its bytes.
    fn files(t: &Toolchain) -> Vec<(String, Vec<u8>)> {
        let mut all: Vec<_> = std::fs::read_dir(&t.out_dir)
            .unwrap()
            .map(|e| e.unwrap().path())
            .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(p).unwrap()))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn two_folders_get_the_same_bytes() {
        let (a, b) = (toolchain("first"), toolchain("second"));
        let mut said = Vec::new();
        for t in [&a, &b] {
            let build = Build::new().onnx("mlp", digits("mlp.onnx")).onnx("cnn", digits("cnn.onnx"));
            build.try_compile_with(Ok(t.clone()), &mut |line| said.push(line.to_owned())).unwrap();
        }
        assert!(files(&a) == files(&b));
        let names: Vec<String> = files(&a).into_iter().map(|(n, _)| n).collect();
        for wanted in ["mlp.rs", "cnn.rs", "mlp.weights.bin", "cnn.weights.bin", "tvm_runtime.h"] {
            assert!(names.iter().any(|n| n == wanted), "{names:?}");
        }
        let changed = format!("cargo::rerun-if-changed={}", digits("mlp.onnx").display());
        assert!(said.contains(&changed), "{said:?}");
        for t in [a, b] {
            std::fs::remove_dir_all(t.out_dir).unwrap();
        }
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let t = toolchain("faults");
        let build = Build::new()
            .onnx("missing", "no/such.onnx")
            .onnx("loop", digits("mlp.onnx"))
            .tvmscript("what", "model.bin")
            .onnx("mlp", digits("mlp.onnx"))
            .onnx("mlp", digits("mlp.onnx"))
            .weights_limit(1000);
        let text = build.try_compile_with(Ok(t.clone()), &mut |_| {}).unwrap_err();
        for part in [
            "no/such.onnx",
            "`loop` cannot name a Rust module",
            "the format of model.bin is not known",
            "two models are named `mlp`",
            "more than the limit of 1000",
            "in the model `missing`",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let unknown = Build::new().target("vax").try_compile_with(Ok(t.clone()), &mut |_| {}).unwrap_err();
        assert!(unknown.contains("unknown target `vax`") && unknown.contains("x86-64-v3"), "{unknown}");
        std::fs::remove_dir_all(t.out_dir).unwrap();
    }
}
