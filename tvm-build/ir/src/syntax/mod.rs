//! TVMScript text and the Rust spelling to IR and back.
//!
//! ```text
//! Rust ─ rust/ ──────────────────────────────→ ast (feature `rust`)
//! text ─ text.rs ─→ tokens ─ grammar*.rs ─→ ast ─┬ lower_module ┬ lower_relax, lower_value … ─→ relax::Function
//!                                               │              └ lower_tir, lower_block … ──→ tir::PrimFunc
//!                                               └ scope.rs: names, arguments, suggestions
//! IR ─ print/ ─→ text ─ print/rust ─→ Rust spelling
//! ```
//!
//! The grammar knows no op: names resolve in [`crate::ops`], functions of `T` in [`crate::prim::INTRINSICS`].
//! Both dialects are read always; the printer writes either. `parse(print(m))` is structurally equal to `m`.

mod ast;
mod grammar;
mod grammar_expr;
mod literal;
mod lower_attr;
mod lower_block;
mod lower_call;
mod lower_if;
mod lower_module;
mod lower_prim;
mod lower_relax;
mod lower_sinfo;
mod lower_special;
mod lower_tir;
mod lower_value;
mod print;
#[cfg(feature = "rust")]
pub mod rust;
mod rust_words;
mod scope;
mod text;
mod token;
mod type_args;

#[cfg(test)]
mod tests;

pub use print::rust::print_rust;
pub use print::{print_func, print_module, print_prim_expr, print_struct_info, print_with_constants};

use crate::constant::Constant;
use crate::diag::Diags;
use crate::module::IRModule;
use crate::span::{SourceKind, SourceMap};

/// A spelling of TVMScript.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Dialect {
    /// TVM 0.20's, the tutorial's: `T.block`, `out_sinfo=`, `"tir.noalias": T.bool(True)`.
    #[default]
    Tutorial,
    /// TVM 0.27's: `T.sblock`, `out_ty=`, `"tirx.noalias": True`, `s_tir=True`.
    V0_27,
}

/// What a text needs besides itself.
#[derive(Clone, Debug, Default)]
pub struct ParseOptions {
    /// What `metadata["relax.expr.Constant"][i]` stands for.
    pub constants: Vec<Constant>,
}

/// Reads a module: a class of functions, or functions alone. The text is added to `sources` under `name`.
///
/// Errors are all that were found, located in the text; later ones do not follow from earlier ones.
pub fn parse_module(sources: &mut SourceMap, name: &str, text: &str, options: ParseOptions) -> Result<IRModule, Diags> {
    let source = sources.add(name, SourceKind::Text(text.to_string()));
    let surface = grammar::parse(source, text)?;
    lower_module::lower_text(source, &surface, &options)
}
