//! The items of a module.

use crate::report;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use std::path::Path;
use syn::ext::IdentExt;
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::rust::{Checked, Modules, TokenSpans, check_item};
use tvm_ir::syntax::{Dialect, print_module};

/// What `ir_module! { input }` becomes. `out_dir` is the build script's folder, when there is one.
pub(crate) fn ir_module(input: TokenStream, out_dir: Option<&Path>) -> TokenStream {
    let Modules(items) = match syn::parse2(input) {
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
        mod generated {
            include!(concat!(env!("OUT_DIR"), #file));
        }
        #[doc(inline)]
        pub use generated::#ident::*;
    }
}

/// The items inside of the module.
fn content(item: &syn::ItemMod, checked: &Checked, out_dir: Option<&Path>) -> TokenStream {
    let text = print_module(&checked.module, Dialect::Tutorial);
    let fingerprint = checked.fingerprint;
    let own = quote! {
        /// The module as TVMScript text.
        pub const TVMSCRIPT: &str = #text;
        /// A hash of what the module says; the build script's must be the same.
        pub const FINGERPRINT: u64 = #fingerprint;
    };
    // Without a build script, as in an editor before it ran, the module has these two alone.
    let Some(out_dir) = out_dir else { return own };
    let (name, span) = (item.ident.unraw().to_string(), item.ident.span());
    let file = format!("/{name}.rs");
    if !out_dir.join(&file[1..]).is_file() {
        let text = format!(
            "the build script did not compile the module `{name}`\n\
             help: name this file in build.rs: tvm_build::Build::new().rust_source(\"src/main.rs\").compile()"
        );
        let missing = report::at(span, span, &text);
        return quote! { #own #missing };
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
mod tests {
    use super::*;

    const RELU: &str = "/// A model.\n pub mod m { #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> { R::nn::relu(x) } }";

    fn expanded(text: &str, out_dir: Option<&Path>) -> String {
        ir_module(text.parse().unwrap(), out_dir).to_string()
    }

    #[test]
    fn a_module_without_a_build_script() {
        let text = expanded(RELU, None);
        for part in
            ["# [doc = \" A model.\"]", "pub mod m", "pub const TVMSCRIPT", "R.nn.relu(x)", "pub const FINGERPRINT"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("include") && !text.contains("compile_error"), "{text}");
        assert!(syn::parse_str::<syn::File>(&text).is_ok(), "{text}");
    }

    #[test]
    fn a_module_that_was_not_compiled() {
        let text = expanded(RELU, Some(Path::new("/nonexistent")));
        assert!(text.contains("the build script did not compile the module `m`"), "{text}");
    }

    #[test]
    fn every_error_is_reported() {
        let text = expanded(
            "mod m { #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Object { let a = R::rellu(x); let b = R::ad(x, y); a } }",
            None,
        );
        assert_eq!(text.matches("compile_error").count(), 2, "{text}");
        assert!(text.contains("mod m { }"), "{text}");
    }

    #[test]
    fn no_token_soup_panics() {
        let words = [
            "mod",
            "m",
            "{",
            "}",
            "fn",
            "f",
            "(",
            ")",
            "#[R::function]",
            "#[T::prim_func]",
            "pub",
            "x",
            ":",
            "R::Tensor",
            "<",
            ">",
            "f32",
            "1",
            ",",
            "let",
            "=",
            ";",
            "if",
            "else",
            "for",
            "in",
            "..",
            "T::block",
            "\"a\"",
            "+",
            "[",
            "]",
            "->",
            "R::add",
            "static",
            "&",
            "!",
            "1.5f32",
            "as",
            "T::Buffer",
            "_",
            "return",
            "'a",
            "=>",
            "I::dict",
            "{ N + 1 }",
        ];
        let mut state = 7u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let base: Vec<&str> = "mod m { #[R::function] pub fn f ( x : R::Tensor < f32 , N > ) -> R::Tensor < f32 , N > { let y = R::add ( x , x ) ; if y { x } else { y } } #[T::prim_func] fn g ( a : T::Buffer < f32 , N > ) { for i in 0 .. N { T::block ( \"b\" , { let v = T::axis::spatial ( N , i ) ; a [ v ] = a [ v ] + 1.0f32 ; } ) ; } } }"
            .split(' ')
            .collect();
        for _ in 0..3000 {
            let mut soup = base.clone();
            for _ in 0..1 + next(4) {
                let at = next(soup.len());
                match next(3) {
                    0 => soup[at] = words[next(words.len())],
                    1 => soup.insert(at, words[next(words.len())]),
                    _ => {
                        soup.remove(at);
                    }
                }
            }
            if let Ok(tokens) = soup.join(" ").parse() {
                let _ = ir_module(tokens, None);
            }
        }
    }
}
