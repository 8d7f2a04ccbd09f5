//! The program as a Rust module: what the build script writes to `OUT_DIR/NAME.rs` for `include_module!`.

mod entry;
mod expr;
mod externs;
mod facts;
mod nd;
mod table;
mod values;

use super::program::EmittedProgram;
use std::collections::BTreeMap;
use std::fmt::Write;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::span::Span;
use tvm_ir::syntax::rust::names::Identifiers;
use tvm_runtime::IsaLevel;

/// How a program becomes Rust text.
#[derive(Clone, Debug)]
pub struct RustOptions {
    /// Name of the module.
    pub name: String,
    /// The kernels for each instruction set level, ascending, the first for every machine.
    pub levels: Vec<Level>,
    /// Where weights come from.
    pub weights: WeightSource,
    /// Static library that holds kernels and weights; every crate that includes the module links it. `None`: the
    /// program is linked by other means.
    pub library: Option<String>,
    /// Libraries of external functions, and whether they are static.
    pub libraries: Vec<(String, bool)>,
    /// The arena of `new()` lies on the heap, and entry points may return vectors: for programs with `std`.
    pub heap: bool,
    /// Entry points that take and return arrays of ndarray. Needs `heap`.
    pub ndarray: bool,
    /// Documentation of functions, line by line, by their names.
    pub docs: BTreeMap<String, Vec<String>>,
}

/// The kernels of one instruction set level.
#[derive(Clone, Debug)]
pub struct Level {
    /// The level.
    pub level: IsaLevel,
    /// C symbols of the kernels by number, C identifiers.
    pub symbols: Vec<String>,
}

/// Where the weights of a module come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WeightSource {
    /// From this C symbol, linked into the program.
    Symbol(String),
    /// From the caller: constructors take a slice and are `unsafe`.
    Caller,
}

/// The text of the module. The same input gives the same bytes.
///
/// Errors: parameters that typed entry points cannot take, extents they cannot compute, a list of symbols that is not
/// as long as the list of kernels.
pub fn print(program: &EmittedProgram, options: &RustOptions) -> Result<String, Diags> {
    let mut diags = Diags::new();
    let tables = program.tables();
    if options.levels.iter().any(|l| l.symbols.len() != tables.kernel_names.len()) {
        let m = format!("the program has {} kernels, but not as many symbols", tables.kernel_names.len());
        diags.push(Diag::error(Span::NONE, m));
    }
    let mut out = String::new();
    header(&mut out, program, options);
    table::program(&mut out, tables, &options.levels, &program.externs);
    externs::print(&mut out, &program.externs, options);
    module_struct(&mut out, program, options);
    let mut ids = Identifiers::new(&["new", "try_new", "with_arena", "state", "default"]);
    let mut methods = String::new();
    for e in &program.entries {
        if let Some(text) = diags.ok(entry::print(e, program, options, &mut ids)) {
            methods.push_str(&text);
        }
    }
    if methods.contains(" zeros(") {
        out.push_str(ZEROS);
    }
    let _ = write!(out, "\n    impl<'a> Module<'a> {{\n{}    }}\n}}\n", methods.strip_prefix('\n').unwrap_or(&methods));
    diags.into_result(out)
}

/// Room for an output of a shape that a caller names.
const ZEROS: &str = "
    /// As many zeros as hold a tensor of this shape.
    fn zeros<T: Element>(argument: &'static str, zero: T, shape: &[i64]) -> Result<::std::vec::Vec<T>, Error> {
        let len = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?));
        let mut out = ::std::vec::Vec::new();
        match len {
            Some(len) if out.try_reserve_exact(T::DTYPE.units(len)).is_ok() => out.resize(T::DTYPE.units(len), zero),
            _ => return Err(Error::BadShape { argument }),
        }
        Ok(out)
    }
";

fn header(out: &mut String, program: &EmittedProgram, options: &RustOptions) {
    let tables = program.tables();
    let (arena, weights) = (program.arena_bytes(), tables.weight_bytes);
    let _ = write!(
        out,
        "/// Compiled model: {} bytes of arena, {weights} bytes of weights, {} kernels.\n\
         #[allow(dead_code, unsafe_code, reason = \"what is used is the user's choice; kernels are C functions\")]\n\
         #[allow(non_snake_case, clippy::too_many_arguments, clippy::type_complexity, clippy::wildcard_imports, \
         reason = \"signatures are the model's\")]\n\
         pub mod {} {{\n    use ::tvm_runtime::*;\n\n",
        arena,
        tables.kernel_names.len(),
        Identifiers::new(&[]).fresh(&options.name),
    );
    let _ = write!(
        out,
        "    /// Bytes of the arena of [`Module::with_arena`].\n    pub const ARENA_BYTES: usize = {arena};\n    \
         /// Alignment of the arena and of the weights.\n    pub const ARENA_ALIGN: usize = {};\n    \
         /// Bytes of the weights.\n    pub const WEIGHT_BYTES: usize = {weights};\n\n",
        tvm_runtime::ALIGN,
    );
    let linked = matches!(&options.weights, WeightSource::Symbol(_)) && weights != 0;
    if linked || !tables.kernel_names.is_empty() {
        if let Some(library) = &options.library {
            let _ = writeln!(out, "    #[link(name = {library:?}, kind = \"static\")]");
        }
        out.push_str("    unsafe extern \"C\" {\n");
        if let (WeightSource::Symbol(symbol), true) = (&options.weights, linked) {
            let _ = writeln!(out, "        #[link_name = {symbol:?}]\n        static WEIGHTS: [u8; WEIGHT_BYTES];");
        }
        for symbol in options.levels.iter().flat_map(|l| &l.symbols) {
            let _ = writeln!(
                out,
                "        fn {symbol}(args: *const *mut ::core::ffi::c_void, dims: *const i64, ctx: *const Context) -> i32;"
            );
        }
        out.push_str("    }\n\n");
    }
}

fn module_struct(out: &mut String, program: &EmittedProgram, options: &RustOptions) {
    let linked = matches!(&options.weights, WeightSource::Symbol(_));
    let (weights, given, unsafety, safety) = if !linked {
        let safety = "\n        ///\n        /// # Safety\n        ///\n        /// `weights` are those the model was compiled with, at an \
                      address that is a multiple of [`ARENA_ALIGN`].";
        ("weights", "weights: &'a [u8]", "unsafe ", safety)
    } else if program.tables().weight_bytes == 0 {
        ("&[]", "", "", "")
    } else {
        ("&WEIGHTS", "", "", "")
    };
    let comma = if given.is_empty() { "" } else { ", " };
    out.push_str(
        "\n    /// The model with its memory. Calls run on the calling thread.\n    pub struct Module<'a> {\n        \
         state: State<'a>,\n    }\n",
    );
    if options.heap {
        let (lifetime, target) = if given.is_empty() { ("", "Module<'static>") } else { ("<'a>", "Module<'a>") };
        let _ = write!(
            out,
            "\n    impl{lifetime} {target} {{\n        /// The model, with an arena on the heap. Without memory for it the program \
             ends, as it does for a `Vec`.{safety}\n        \
             pub {unsafety}fn new({given}) -> Self {{\n            \
             // SAFETY: program, kernels and weights come from one compilation.\n            \
             Module {{ state: unsafe {{ State::new(&PROGRAM, {weights}, ArenaRef::heap(ARENA_BYTES)) }} }}\n        }}\n\n        \
             /// As [`Module::new`], with an error where there is no memory for the arena.{safety}\n        ///\n        \
             /// # Errors\n        ///\n        /// [`Error::ArenaMemory`].\n        \
             pub {unsafety}fn try_new({given}) -> Result<Self, Error> {{\n            \
             let arena = ArenaRef::try_heap(ARENA_BYTES)?;\n            \
             // SAFETY: program, kernels and weights come from one compilation.\n            \
             Ok(Module {{ state: unsafe {{ State::new(&PROGRAM, {weights}, arena) }} }})\n        }}\n    }}\n"
        );
        if given.is_empty() {
            out.push_str(
                "\n    impl Default for Module<'static> {\n        fn default() -> Self {\n            Self::new()\n        }\n    }\n",
            );
        }
    }
    let arena = if program.entries.iter().any(|e| entry::grows(e, program)) {
        "impl Into<ArenaRef<'a>>"
    } else {
        "&'a mut Arena<ARENA_BYTES>"
    };
    let _ = write!(
        out,
        "\n    impl<'a> Module<'a> {{\n        /// The model, with an arena that the caller places.{safety}\n        \
         pub {unsafety}fn with_arena(arena: {arena}{comma}{given}) -> Self {{\n            \
         // SAFETY: program, kernels and weights come from one compilation.\n            \
         Module {{ state: unsafe {{ State::new(&PROGRAM, {weights}, arena) }} }}\n        }}\n\n        \
         /// The state behind the typed entry points.\n        \
         pub fn state(&mut self) -> &mut State<'a> {{\n            &mut self.state\n        }}\n    }}\n"
    );
}
