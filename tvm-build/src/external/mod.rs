//! External functions: what `R.call_dps_packed` calls, linked directly.
//!
//! A call passes tensors and numbers and names its outputs; a function of the C ABI has read-only pointers, writable
//! pointers and numbers. Each kind is matched on its own, in order:
//!
//! | of the call | parameters of the function |
//! |---|---|
//! | tensors among the arguments, tuples taken apart | `const T *`, `*const T`, `&[T; N]` |
//! | outputs | `T *`, `*mut T`, `&mut [T; N]` |
//! | integers, floats, truth values; the extents of `R.shape` | integers, `float`, `double`, `bool` |
//!
//! So `cblas_sgemm(order, transA, …, A, lda, B, ldb, beta, C, ldc)` can be called as it is declared. Tensors are
//! row-major and contiguous; an output is not initialised. An integer is converted to the parameter's type and checked
//! to fit. A function gives nothing, or a status of which 0 is success and all else fails the call.
//!
//! Declarations come from C headers (`header`), from `extern "C"` functions in the user's Rust sources, or from
//! signatures given to the build ([`Declaration::parse`]).

mod bind;
mod declare;
#[cfg(feature = "bindgen")]
mod header;
mod show;
#[cfg(test)]
mod tests;

pub use bind::bind;
pub use declare::CTypes;
pub(crate) use declare::defined;
pub(crate) use show::rust_number;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::dtype::DType;
use tvm_ir::module::IRModule;
use tvm_ir::name::Name;
use tvm_ir::relax::{Body, Expr, Leaf, StructInfo};
use tvm_ir::span::Span;

/// A declared function of the C ABI.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// C symbol.
    pub name: Name,
    /// Parameters.
    pub params: Vec<Param>,
    /// What it returns.
    pub returns: Returns,
    /// Where it is declared, as `include/blas_like.h:12`.
    pub place: String,
    /// The language of the declaration, in which its types are shown.
    pub language: Language,
}

/// A parameter of a declared function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Name.
    pub name: String,
    /// What a call may give.
    pub ty: ParamType,
    /// The type as it is declared.
    pub text: String,
}

/// What a call may give to a parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParamType {
    /// The elements of a tensor.
    Pointer {
        /// Their type; `None`: any (`void *`).
        element: Option<DType>,
        /// How many there are, where the type says so (`&[f32; 16]`).
        len: Option<u64>,
        /// The function writes them: an output.
        writable: bool,
    },
    /// A number of this type.
    Number(DType),
    /// Nothing: structures by value, function pointers and the like.
    Other,
}

/// What a declared function returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Returns {
    /// Nothing.
    Nothing,
    /// An integer of this type; 0 is success.
    Status(DType),
    /// Something that calls have no use for, as it is declared.
    Other(String),
}

/// The language of a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Language {
    C,
    Rust,
}

/// The functions that a build declares, and what links them.
#[derive(Clone, Debug, Default)]
pub struct Externals {
    /// By symbol; several where declarations differ, which is an error of calls.
    functions: BTreeMap<Name, Vec<Declaration>>,
    /// Libraries that hold them, as `#[link]` names them, and whether they are static.
    pub libraries: Vec<(String, bool)>,
}

impl Externals {
    /// Adds a declaration. The same again changes nothing.
    pub fn add(&mut self, d: Declaration) {
        let all = self.functions.entry(d.name.clone()).or_default();
        let same = |o: &Declaration| {
            o.returns == d.returns && o.params.iter().map(|p| &p.ty).eq(d.params.iter().map(|p| &p.ty))
        };
        if !all.iter().any(same) {
            all.push(d);
        }
    }

    /// The declaration that a call refers to. Errors, at `span`: there is none, or there are several that differ.
    pub fn lookup(&self, symbol: &Name, args: &[Leaf], out: &StructInfo, span: Span) -> Result<&Declaration, Diag> {
        match self.functions.get(symbol).map(Vec::as_slice) {
            Some([one]) => Ok(one),
            Some([first, second, ..]) => {
                let m = format!("the external function `{symbol}` is declared twice, differently");
                Err(Diag::error(span, m)
                    .note(format!("{}: {}", first.place, show::prototype(first)))
                    .note(format!("{}: {}", second.place, show::prototype(second)))
                    .help("remove one of the declarations"))
            }
            _ => Err(self.undeclared(symbol, args, out, span)),
        }
    }

    fn undeclared(&self, symbol: &Name, args: &[Leaf], out: &StructInfo, span: Span) -> Diag {
        let d = Diag::error(span, format!("the external function `{symbol}` is not declared"));
        let d = match show::wanted(symbol, args, out) {
            Some((c, rust)) => {
                d.note(format!("in C, the call fits `{c}`")).note(format!("in Rust, the call fits `{rust}`"))
            }
            None => d,
        };
        match nearest(symbol, self.functions.keys()) {
            Some(name) => d.help(format!("did you mean `{name}`, declared at {}?", self.place(name))),
            None => d.help(
                "in build.rs, name the header that declares it with Build::c_header, or the Rust file that defines it \
                 with Build::rust_source, or give its signature to Build::extern_fn",
            ),
        }
    }

    fn place(&self, name: &Name) -> &str {
        self.functions.get(name).and_then(|all| all.first()).map_or("?", |d| &d.place)
    }

    /// Compares every `R.call_dps_packed` of a module with the function it calls. Errors are all that were found.
    pub fn check(&self, module: &IRModule) -> Result<(), Diags> {
        let mut diags = Diags::new();
        for (_, f) in module.relax_funcs() {
            self.body(&f.body, &mut diags);
        }
        diags.into_result(())
    }

    fn body(&self, body: &Body, diags: &mut Diags) {
        for b in body.bindings() {
            match &b.value {
                // Builtins of the VM check their operands themselves.
                Expr::CallDps { symbol, .. } if symbol.starts_with("vm.builtin.") => {}
                Expr::CallDps { symbol, args, out } => {
                    let done = self.lookup(symbol, args, out, b.span).map_err(Diags::from);
                    diags.extend(done.and_then(|d| bind(d, args, out, b.span)).err().unwrap_or_default());
                }
                Expr::If(i) => {
                    self.body(&i.then, diags);
                    self.body(&i.otherwise, diags);
                }
                Expr::Function(f) => self.body(&f.body, diags),
                _ => {}
            }
        }
    }

    /// Declares the functions of a C header and gives the files it consists of. `path` is as the user wrote it.
    /// Errors: the header cannot be read, or tvm-build was built without its feature `bindgen`.
    pub fn read_header(&mut self, path: &Path, folders: &[PathBuf], types: CTypes) -> Result<Vec<PathBuf>, Diag> {
        #[cfg(feature = "bindgen")]
        return header::read(path, folders, types).map(|(found, files)| {
            found.into_iter().for_each(|d| self.add(d));
            files
        });
        #[cfg(not(feature = "bindgen"))]
        {
            let _ = (folders, types);
            let m = format!("{} cannot be read: tvm-build is built without its feature `bindgen`", path.display());
            Err(Diag::error(Span::NONE, m).help(
                "in Cargo.toml write tvm-build = { version = \"…\", features = [\"bindgen\"] }, or give the signatures \
                 to Build::extern_fn",
            ))
        }
    }
}

/// The name nearest to a wrong one, if any is near.
fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a Name>) -> Option<&'a Name> {
    let wrong: Vec<char> = wrong.chars().collect();
    let distance = |name: &str| {
        let name: Vec<char> = name.chars().collect();
        let mut row: Vec<usize> = (0..=name.len()).collect();
        for (i, x) in wrong.iter().enumerate() {
            let mut left = i + 1;
            let mut next = vec![left];
            for (y, pair) in name.iter().zip(row.windows(2)) {
                left = (pair[0] + usize::from(x != y)).min(pair[1] + 1).min(left + 1);
                next.push(left);
            }
            row = next;
        }
        row.last().copied().unwrap_or(usize::MAX)
    };
    let (least, name) = names.map(|n| (distance(n), n)).min()?;
    (least <= (wrong.len() / 4).max(1)).then_some(name)
}
