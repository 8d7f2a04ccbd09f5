//! Declarations of C headers, as bindgen reads them.

use super::declare::{Aliases, declaration};
use super::{CTypes, Declaration, Language};
use bindgen::callbacks::{DiscoveredItem, DiscoveredItemId, ParseCallbacks, SourceLocation};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use syn::ext::IdentExt;
use tvm_ir::diag::Diag;
use tvm_ir::span::Span;

/// What bindgen tells while it reads.
#[derive(Debug, Default)]
struct Seen {
    /// Files that are included.
    files: BTreeSet<String>,
    /// Where functions are declared.
    places: BTreeMap<String, (Option<String>, usize)>,
}

#[derive(Debug, Clone, Default)]
struct Listener(Arc<Mutex<Seen>>);

impl ParseCallbacks for Listener {
    fn include_file(&self, file: &str) {
        if let Ok(mut seen) = self.0.lock() {
            seen.files.insert(file.to_string());
        }
    }

    fn new_item_found(&self, _: DiscoveredItemId, item: DiscoveredItem, at: Option<&SourceLocation>) {
        if let (DiscoveredItem::Function { final_name }, Some(at), Ok(mut seen)) = (item, at, self.0.lock()) {
            seen.places.insert(final_name, (at.file_name.clone(), at.line));
        }
    }
}

/// The functions that a header declares, those of the headers it includes too, and the files it consists of.
pub(super) fn read(path: &Path, folders: &[PathBuf], types: CTypes) -> Result<(Vec<Declaration>, Vec<PathBuf>), Diag> {
    let fail = |m: String| Diag::error(Span::NONE, format!("cannot read the header {}: {m}", path.display()));
    // bindgen panics where there is no libclang.
    if !clang_sys::is_loaded() {
        clang_sys::load().map_err(|e| {
            fail(e.to_string()).help(
                "install libclang (Debian and Ubuntu: `apt install libclang-dev`; Fedora: `dnf install clang-devel`; \
                 macOS: `xcode-select --install`), or name its folder in the environment variable LIBCLANG_PATH",
            )
        })?;
    }
    let text = path.to_str().ok_or_else(|| fail("its path is no valid text".into()))?;
    let listener = Listener::default();
    let bindings = bindgen::Builder::default()
        .header(text)
        .clang_args(folders.iter().map(|f| format!("-I{}", f.display())))
        .allowlist_function(".*")
        .layout_tests(false)
        .generate_comments(false)
        .formatter(bindgen::Formatter::None)
        .parse_callbacks(Box::new(listener.clone()))
        .generate()
        .map_err(|e| fail(e.to_string()))?;
    let items: syn::File = syn::parse_str(&bindings.to_string()).map_err(|e| fail(e.to_string()))?;
    let seen = std::mem::take(&mut *listener.0.lock().map_err(|e| fail(e.to_string()))?);
    let files = seen.files.iter().map(PathBuf::from).collect();
    Ok((declarations(&items, path, &seen, types), files))
}

fn declarations(file: &syn::File, path: &Path, seen: &Seen, types: CTypes) -> Vec<Declaration> {
    let mut aliases = Aliases::new();
    for item in &file.items {
        if let syn::Item::Type(t) = item {
            aliases.insert(t.ident.unraw().to_string(), (*t.ty).clone());
        }
    }
    let mut out = Vec::new();
    for item in &file.items {
        let syn::Item::ForeignMod(foreign) = item else { continue };
        for item in &foreign.items {
            let syn::ForeignItem::Fn(f) = item else { continue };
            let name = f.sig.ident.unraw().to_string();
            let place = match seen.places.get(&name) {
                Some((Some(file), line)) => format!("{file}:{line}"),
                Some((None, line)) => format!("{}:{line}", path.display()),
                None => path.display().to_string(),
            };
            let symbol = link_name(&f.attrs).unwrap_or(name);
            out.push(declaration(&f.sig, symbol, place, Language::C, &aliases, types));
        }
    }
    out
}

/// The symbol where it differs from the function's name.
fn link_name(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|a| match &a.meta {
        syn::Meta::NameValue(n) if n.path.is_ident("link_name") => match &n.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. }) => {
                // A leading \1 says that the symbol is not mangled further.
                Some(s.value().trim_start_matches('\u{1}').to_string())
            }
            _ => None,
        },
        _ => None,
    })
}
