//! The modules of `ir_module!` in Rust source files.

use crate::toolchain::io_error;
use std::path::{Path, PathBuf};
use tvm_ir::diag::Diag;
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::rust::{Checked, Modules, TokenSpans, check_item};

/// Deepest nesting of folders.
const MAX_FOLDERS: usize = 32;

/// The well-formed modules of a file, or of every `.rs` file of a folder, in the order of the paths. What rustc or the
/// macro will report is left to them. Errors: a file or folder that cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<Checked>, Diag> {
    let mut files = Vec::new();
    collect(path, MAX_FOLDERS, &mut files)?;
    let mut out = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|e| io_error("read", &file, &e))?;
        out.extend(modules(&text));
    }
    Ok(out)
}

fn collect(path: &Path, depth: usize, out: &mut Vec<PathBuf>) -> Result<(), Diag> {
    if !path.is_dir() {
        out.push(path.to_owned());
        return Ok(());
    }
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|e| io_error("read", path, &e))? {
        entries.push(entry.map_err(|e| io_error("read", path, &e))?.path());
    }
    entries.sort();
    for entry in entries {
        if entry.is_dir() || entry.extension().is_some_and(|e| e == "rs") {
            collect(&entry, depth, out)?;
        }
    }
    Ok(())
}

/// The well-formed modules of a text.
fn modules(text: &str) -> Vec<Checked> {
    let mut out = Vec::new();
    if let Ok(file) = syn::parse_file(text) {
        items(&file.items, &mut out);
    }
    out
}

fn items(list: &[syn::Item], out: &mut Vec<Checked>) {
    for item in list {
        match item {
            syn::Item::Mod(m) => items(m.content.as_ref().map_or(&[], |(_, items)| items), out),
            syn::Item::Macro(m) if m.mac.path.segments.last().is_some_and(|s| s.ident == "ir_module") => {
                let Ok(Modules(found)) = m.mac.parse_body::<Modules>() else { continue };
                for item in found {
                    let (mut sources, mut spans) = (SourceMap::default(), TokenSpans::default());
                    out.extend(check_item(&mut sources, &mut spans, &item).ok());
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_wherever_they_stand() {
        let text = r#"
            use tvm_macros::ir_module;
            ir_module! {
                mod a { #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> { R::nn::relu(x) } }
                mod wrong { #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> { R::nn::rellu(x) } }
            }
            mod inner {
                #[cfg(feature = "b")]
                tvm_macros::ir_module! {
                    pub mod b { #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> { x + x } }
                }
            }
            ir_module! { this is no module }
        "#;
        let names: Vec<String> = modules(text).into_iter().map(|c| c.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(modules("fn broken( {").is_empty());
    }

    #[test]
    fn fingerprints_follow_the_meaning() {
        let one = |body: &str| {
            let text = format!(
                "ir_module! {{ mod m {{ #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {{ {body} }} }} }}"
            );
            modules(&text).remove(0).fingerprint
        };
        assert_eq!(one("x + x"), one("/* a comment */ (x + x)"));
        assert_ne!(one("x + x"), one("x * x"));
        assert_ne!(one("x * R::constant(1.0, f32)"), one("x * R::constant(2.0, f32)"));
    }
}
