//! The items of a module.

use crate::report;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use std::path::Path;
use syn::ext::IdentExt;
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::rust::{Checked, Modules, TokenSpans, check_item, stub};
use tvm_ir::syntax::{Dialect, print_module};

/// What `ir_module! { input }` becomes. `out_dir` is the build script's folder, when there is one.
pub(crate) fn ir_module(input: TokenStream, out_dir: Option<&Path>) -> TokenStream {
    let Modules(items) = match Modules::read(input) {
        Ok(modules) => modules,
        Err(e) => return e.to_compile_error(),
    };
    items.iter().map(|item| module(item, out_dir)).collect()
}

fn module(item: &syn::ItemMod, out_dir: Option<&Path>) -> TokenStream {
    let (mut sources, mut spans) = (SourceMap::default(), TokenSpans::default());
    let (body, errors) = match check_item(&mut sources, &mut spans, item) {
        Ok(checked) => (content(item, &checked, out_dir), None),
        Err(diags) => (earlier(item, out_dir), Some(report::errors(&diags, &spans))),
    };
    let (vis, ident) = (&item.vis, &item.ident);
    // Attributes of the IR are read; documentation, conditions and lints are Rust's.
    let attributes = item.attrs.iter().filter(|a| a.path().get_ident().is_some());
    quote! {
        #(#attributes)*
        #vis mod #ident { #body }
        #errors
    }
}

/// What an earlier build generated: uses of the module are no errors of their own while it is ill-formed.
fn earlier(item: &syn::ItemMod, out_dir: Option<&Path>) -> TokenStream {
    let file = format!("/{}.rs", item.ident.unraw());
    match out_dir {
        Some(dir) if dir.join(&file[1..]).is_file() => generated(&item.ident, &file),
        _ => TokenStream::new(),
    }
}

fn generated(ident: &syn::Ident, file: &str) -> TokenStream {
    quote! {
        #[allow(unreachable_pub, reason = "what is generated does not know how far the module is visible")]
        mod generated {
            include!(concat!(env!("OUT_DIR"), #file));
        }
        #[doc(inline)]
        pub use generated::#ident::*;
    }
}

/// The interface that the build script is to generate, without code behind it: uses of it are checked all the same.
fn stub_items(checked: &Checked, missing: &str) -> TokenStream {
    let items: TokenStream = stub(&checked.module, &checked.docs, missing).parse().unwrap_or_default();
    quote! {
        #[allow(unreachable_pub, reason = "what is generated does not know how far the module is visible")]
        mod generated {
            use ::tvm_runtime::*;
            #items
        }
        #[doc(inline)]
        pub use generated::*;
    }
}

/// A literal over several lines, as a reader of the expansion wants it.
fn raw_string(text: &str) -> TokenStream {
    let hashes = (1..).map(|n| "#".repeat(n)).find(|h| !text.contains(&format!("\"{h}"))).unwrap_or_default();
    format!("r{hashes}\"{text}\"{hashes}").parse().unwrap_or_else(|_| quote! { #text })
}

/// The items inside of the module.
fn content(item: &syn::ItemMod, checked: &Checked, out_dir: Option<&Path>) -> TokenStream {
    let text = raw_string(&print_module(&checked.module, Dialect::Tutorial));
    let fingerprint = checked.fingerprint;
    let own = quote! {
        /// The module as TVMScript text.
        pub const TVMSCRIPT: &str = #text;
        /// A hash of what the module says; the build script's must be the same.
        pub const FINGERPRINT: u64 = #fingerprint;
    };
    let (name, span) = (item.ident.unraw().to_string(), item.ident.span());
    let file = format!("/{name}.rs");
    let Some(out_dir) = out_dir else {
        // An editor before the build script ran, or a package without one.
        let missing = format!(
            "the module `{name}` is not compiled: the package has no build script\n\
             help: write build.rs: fn main() {{ tvm_build::Build::new().rust_source(\"src\").compile(); }}"
        );
        let stub = stub_items(checked, &missing);
        return quote! { #own #stub };
    };
    if !out_dir.join(&file[1..]).is_file() {
        let text = format!(
            "the build script did not compile the module `{name}`\n\
             help: name this file in build.rs: tvm_build::Build::new().rust_source(\"src/main.rs\").compile()"
        );
        let (stub, missing) = (stub_items(checked, &text), report::at(span, span, &text));
        return quote! { #own #stub #missing };
    }
    let generated = generated(&item.ident, &file);
    let stale = format!(
        "the build script compiled another version of the module `{name}`: is it in two files, or under two conditions?"
    );
    let check = quote_spanned! {span=>
        const _: () = ::core::assert!(generated::FINGERPRINT == FINGERPRINT, #stale);
    };
    quote! {
        #own
        #generated
        #check
    }
}

#[cfg(test)]
mod tests;
