//! Source text of lowered kernels: one printer for C-like languages, a dialect for each.

mod bounds;
mod c;
mod c_like;
mod ctype;
mod dialect;
mod expr;
mod prelude;
mod scalarize;
#[cfg(test)]
mod tests;
mod visit;

pub use c::C99;
pub use dialect::Dialect;

use std::collections::BTreeMap;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::lowered::{Kernel, Param};
use tvm_ir::target::Target;

/// A generated file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// File name.
    pub name: String,
    /// Content.
    pub text: String,
}

/// How kernels become files.
#[derive(Clone, Debug)]
pub struct EmitOptions<'a> {
    /// What file names begin with.
    pub stem: &'a str,
    /// What symbols begin with: `{prefix}{kernel}{suffix}`.
    pub prefix: &'a str,
    /// What symbols and file stems end with, as `_v3`.
    pub suffix: &'a str,
    /// Most files to write (several can be compiled at once).
    pub files: usize,
}

/// The C symbol of a kernel.
pub fn symbol(kernel: &Kernel, options: &EmitOptions<'_>) -> String {
    let name: String = kernel.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{}{name}{}", options.prefix, options.suffix)
}

/// Messages of the assertions of all kernels, in order: code `n` of a generated kernel is message `n - 1`.
pub fn messages(kernels: &[Kernel]) -> Vec<String> {
    kernels.iter().flat_map(|k| k.messages.iter().cloned()).collect()
}

/// Source files that define every kernel. The bytes depend on nothing but the arguments. Errors: everything that the
/// dialect cannot say, all at once.
pub fn emit(
    kernels: &[Kernel],
    target: &Target,
    dialect: &dyn Dialect,
    options: &EmitOptions<'_>,
) -> Result<Vec<SourceFile>, Diags> {
    let mut diags = Diags::new();
    let mut texts = Vec::new();
    let mut symbols = BTreeMap::new();
    let mut base = 0u32;
    for kernel in kernels {
        let symbol = symbol(kernel, options);
        if let Some(other) = symbols.insert(symbol.clone(), &kernel.name) {
            let message = format!("kernels `{other}` and `{}` have the same C symbol `{symbol}`", kernel.name);
            diags.push(Diag::error(tvm_ir::span::Span::NONE, message).help("rename one of the functions"));
        }
        let scalar;
        let kernel = if target.vector_bytes > 0 && dialect.has_vectors() && whole_vectors(kernel) {
            kernel
        } else {
            scalar = scalarize::scalarize(kernel);
            &scalar
        };
        let mut externs = BTreeMap::new();
        let text = c_like::print_kernel(kernel, &symbol, dialect, base, &mut externs);
        if let Some(text) = diags.ok(text) {
            texts.push((text, externs));
        }
        base = base.saturating_add(u32::try_from(kernel.messages.len()).unwrap_or(u32::MAX));
    }
    let total: usize = texts.iter().map(|(t, _)| t.len()).sum();
    let count = options.files.clamp(1, texts.len().max(1));
    let share = total.div_ceil(count);
    let mut files = Vec::new();
    let mut group = Vec::new();
    let mut size = 0;
    for item in texts {
        size += item.0.len();
        group.push(item);
        if size >= share {
            diags.ok(file(&group, dialect, options, files.len())).into_iter().for_each(|f| files.push(f));
            group.clear();
            size = 0;
        }
    }
    if !group.is_empty() {
        diags.ok(file(&group, dialect, options, files.len())).into_iter().for_each(|f| files.push(f));
    }
    diags.into_result(files)
}

fn file(
    kernels: &[(String, BTreeMap<tvm_ir::name::Name, String>)],
    dialect: &dyn Dialect,
    options: &EmitOptions<'_>,
    number: usize,
) -> Result<SourceFile, Diag> {
    let mut externs = BTreeMap::new();
    for (_, e) in kernels {
        for (name, prototype) in e {
            let known = externs.entry(name.clone()).or_insert_with(|| prototype.clone());
            if known != prototype {
                let message = format!("C function `{name}` is called as `{known}` and as `{prototype}`");
                return Err(Diag::error(tvm_ir::span::Span::NONE, message));
            }
        }
    }
    let body = kernels.iter().map(|(t, _)| t.as_str()).collect::<Vec<_>>().join("\n");
    let helpers = dialect.helpers(&body)?;
    let prototypes: String = externs.values().map(|p| format!("{p}\n")).collect();
    Ok(SourceFile {
        name: format!("{}{}_{number}.{}", options.stem, options.suffix, dialect.extension()),
        text: format!("{}{helpers}\n{prototypes}\n{body}", dialect.head()),
    })
}

/// Whether every vector has a number of lanes that C's vectors can have.
fn whole_vectors(kernel: &Kernel) -> bool {
    let mut whole = true;
    visit::each_dtype(&kernel.body, &mut |d| whole &= d.lanes.is_power_of_two());
    kernel.params.iter().for_each(|p| {
        if let Param::Pointer { dtype, .. } = p {
            whole &= dtype.lanes.is_power_of_two();
        }
    });
    whole
}
