//! The API of build scripts.

#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on its standard output")]

mod run;
mod stamp;

use crate::dims::DimBounds;
use crate::import::onnx::{CustomOps, NodeCx, NodeValue};
use crate::pass::Step;
use crate::toolchain::Toolchain;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tvm_ir::diag::Diag;
use tvm_ir::module::IRModule;

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
    without_weights: bool,
    ndarray: bool,
    bounds: DimBounds,
    ops: CustomOps,
    overridable: Vec<String>,
    /// Signatures of external functions.
    extern_fns: Vec<String>,
    c_headers: Vec<PathBuf>,
    c_sources: Vec<PathBuf>,
    c_libraries: Vec<String>,
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

    /// Adds the modules of every `ir_module!` in a Rust file, or in all files of a folder, under their own names, and
    /// declares the `extern "C"` functions with C symbols (`#[no_mangle]`) that are defined there. The path is relative
    /// to the package. A module that is ill-formed is left to the macro, which reports it at its tokens; what stands
    /// under a `#[cfg(…)]` that does not hold is left out.
    ///
    /// Errors of [`Build::compile`]: a file that cannot be read.
    #[must_use]
    pub fn rust_source(mut self, path: impl Into<PathBuf>) -> Build {
        self.rust_sources.push(path.into());
        self
    }

    /// Declares an external function of the C ABI by its signature in Rust, for `R.call_dps_packed`:
    /// `fn scale(x: *const f32, n: usize, y: *mut f32) -> i32`. See [`crate::external`] for what goes where.
    ///
    /// Errors of [`Build::compile`]: not a signature.
    #[must_use]
    pub fn extern_fn(mut self, signature: impl Into<String>) -> Build {
        self.extern_fns.push(signature.into());
        self
    }

    /// Declares the functions of a C header, for `R.call_dps_packed`. Needs the feature `bindgen` of this crate, and
    /// libclang where the build script runs. The path is relative to the package.
    ///
    /// Errors of [`Build::compile`]: a header that cannot be read.
    #[must_use]
    pub fn c_header(mut self, path: impl Into<PathBuf>) -> Build {
        self.c_headers.push(path.into());
        self
    }

    /// Compiles a C source file that defines external functions, and links it into the modules. Folders of headers
    /// ([`Build::c_header`]) are searched for what it includes. The path is relative to the package.
    ///
    /// Its symbols are global: two versions of a package in one program must not both define them.
    #[must_use]
    pub fn c_source(mut self, path: impl Into<PathBuf>) -> Build {
        self.c_sources.push(path.into());
        self
    }

    /// Links a library that defines external functions, as `openblas`. Where it lies is for
    /// `cargo::rustc-link-search`.
    #[must_use]
    pub fn c_library(mut self, name: impl Into<String>) -> Build {
        self.c_libraries.push(name.into());
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

    /// Programs hold no weights: constructors are `unsafe` and take them as a slice, in memory that the program loads or maps.
    /// They are the content of `NAME.weights.bin` in `OUT_DIR`. For weights that several programs share, or that are more
    /// than can be linked.
    #[must_use]
    pub fn without_weights(mut self) -> Build {
        self.without_weights = true;
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

    /// Leaves an initializer of the ONNX models, which must be an input of the graph too, to callers: it is a parameter of `main`,
    /// at its place among the inputs. A function `main_defaults` gives the initializers' own values, all that are named here, in the
    /// order of the inputs. Initializers that are inputs and not named are constants, as ever.
    ///
    /// Errors of [`Build::compile`]: no model has an initializer of this name; it is no input of the graph.
    #[must_use]
    pub fn overridable(mut self, initializer: impl Into<String>) -> Build {
        self.overridable.push(initializer.into());
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

    /// Compiles and links every model. All that is wrong is reported to cargo, which then fails the build; so are warnings,
    /// with which it goes on.
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
}

#[cfg(test)]
mod tests;
