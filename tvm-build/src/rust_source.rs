//! What Rust source files hold for the compiler: the modules of `ir_module!`, and functions with C symbols.

use crate::cfg::Cfg;
use crate::external::{CTypes, Declaration, defined};
use crate::toolchain::io_error;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::span::{SourceId, SourceKind, SourceMap, Span};
use tvm_ir::syntax::rust::{Checked, Modules, TokenSpans, check_item, respelled, text_span};

/// Deepest nesting of folders.
const MAX_FOLDERS: usize = 32;

/// A well-formed module.
pub(crate) struct Found {
    pub(crate) checked: Checked,
    /// Its name in the file.
    pub(crate) place: Span,
    spans: TokenSpans,
    text: SourceId,
}

impl Found {
    /// What the compiler says of the module, at the places of the file and in its spelling.
    pub(crate) fn locate(&self, diags: Diags) -> Diags {
        respelled(self.spans.in_text(diags, self.text))
    }
}

/// What the files hold, in the order of their paths.
#[derive(Default)]
pub(crate) struct RustSources {
    pub(crate) modules: Vec<Found>,
    pub(crate) functions: Vec<Declaration>,
    /// Files read so far.
    files: BTreeSet<PathBuf>,
}

impl RustSources {
    /// Reads a file, or every `.rs` file of a folder. What is known not to be compiled is left out; what rustc or the
    /// macro will report is left to them. Errors: a file or folder that cannot be read.
    pub(crate) fn read(&mut self, path: &Path, cfg: &Cfg, sources: &mut SourceMap) -> Result<(), Diag> {
        let mut files = Vec::new();
        collect(path, MAX_FOLDERS, &mut files)?;
        for file in files {
            let text = std::fs::read_to_string(&file).map_err(|e| io_error("read", &file, &e))?;
            // A file that is named twice, or is in a folder that is named too, is one file.
            if self.files.insert(std::fs::canonicalize(&file).unwrap_or_else(|_| file.clone())) {
                self.text(&file.display().to_string(), text, cfg, sources);
            }
        }
        Ok(())
    }

    fn text(&mut self, name: &str, text: String, cfg: &Cfg, sources: &mut SourceMap) {
        let Ok(file) = syn::parse_file(&text) else { return };
        if !cfg.allows(&file.attrs) {
            return;
        }
        let text = sources.add(name, SourceKind::Text(text));
        self.items(&file.items, cfg, sources, text);
        defined(&file.items, name, CTypes::from_cargo(), &|attrs| cfg.allows(attrs), &mut self.functions);
    }

    fn items(&mut self, list: &[syn::Item], cfg: &Cfg, sources: &mut SourceMap, text: SourceId) {
        for item in list {
            match item {
                syn::Item::Mod(m) if cfg.allows(&m.attrs) => {
                    self.items(m.content.as_ref().map_or(&[], |(_, items)| items), cfg, sources, text);
                }
                syn::Item::Macro(m) if m.mac.path.segments.last().is_some_and(|s| s.ident == "ir_module") => {
                    let Ok(Modules(found)) = Modules::read(m.mac.tokens.clone()) else { continue };
                    let found = found.iter().filter(|i| cfg.allows(&m.attrs) && cfg.allows(&i.attrs));
                    self.modules.extend(found.filter_map(|i| module(i, sources, text)));
                }
                _ => {}
            }
        }
    }
}

fn module(item: &syn::ItemMod, sources: &mut SourceMap, text: SourceId) -> Option<Found> {
    let mut spans = TokenSpans::default();
    let checked = check_item(sources, &mut spans, item).ok()?;
    let place = text_span(text, item.ident.span(), item.ident.span());
    Some(Found { checked, place, spans, text })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, cfg: &Cfg) -> (RustSources, SourceMap) {
        let (mut found, mut sources) = (RustSources::default(), SourceMap::default());
        found.text("src/main.rs", text.into(), cfg, &mut sources);
        (found, sources)
    }

    fn names(text: &str, cfg: &Cfg) -> Vec<String> {
        read(text, cfg).0.modules.into_iter().map(|f| f.checked.name).collect()
    }

    const FILE: &str = r#"
        use tvm_macros::ir_module;
        ir_module! {
            mod a {
                /// The first.
                #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> { R::nn::relu(x) }
            }
            mod wrong { #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> { R::nn::rellu(x) } }
        }
        mod inner {
            #[cfg(feature = "b")]
            tvm_macros::ir_module! {
                pub mod b { #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> { x + x } }
            }
            #[unsafe(no_mangle)]
            pub extern "C" fn scale(x: *const f32, n: usize, y: *mut f32) {}
        }
        ir_module! { this is no module }
    "#;

    #[test]
    fn what_stands_where_is_found() {
        assert_eq!(names(FILE, &Cfg::default()), ["a", "b"]);
        let without = Cfg::new([("CARGO_FEATURE_OTHER".to_string(), String::new())].into_iter());
        assert_eq!(names(FILE, &without), ["a"]);
        assert!(names("fn broken( {", &Cfg::default()).is_empty());
        let (found, sources) = read(FILE, &Cfg::default());
        assert_eq!(found.modules[0].checked.docs["main"], [" The first."]);
        assert_eq!(found.functions[0].place, "src/main.rs:16");
        // What later phases say is shown in the file, in its spelling.
        let binding = found.modules[1].checked.module.relax_funcs().next().unwrap().1.span;
        let diags = found.modules[1].locate(Diag::error(binding, "R.call_tir is wrong").into());
        let text = tvm_ir::render::render_all(&diags, &sources);
        assert!(text.contains("R::call_tir is wrong") && text.contains("src/main.rs:13:"), "{text}");
    }

    #[test]
    fn fingerprints_follow_the_meaning() {
        let one = |body: &str| {
            let text = format!(
                "ir_module! {{ mod m {{ #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {{ {body} }} }} }}"
            );
            read(&text, &Cfg::default()).0.modules.remove(0).checked.fingerprint
        };
        assert_eq!(one("x + x"), one("/* a comment */ (x + x)"));
        assert_ne!(one("x + x"), one("x * x"));
        assert_ne!(one("x * R::constant(1.0, f32)"), one("x * R::constant(2.0, f32)"));
    }
}
