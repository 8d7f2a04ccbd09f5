//! A module read and checked, and what tells two of them apart.

use super::{TokenSpans, lower_item, respelled};
use crate::check::check_module;
use crate::diag::Diags;
use crate::module::IRModule;
use crate::span::{SourceMap, Span};
use crate::syntax::{ParseOptions, print_rust};
use std::collections::BTreeMap;

/// A module of `ir_module!` that is well-formed.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// The module.
    pub module: IRModule,
    /// A hash of what the module says, not of how it is written: the macro and the build script compare theirs.
    pub fingerprint: u64,
    /// The documentation of its functions, line by line.
    pub docs: BTreeMap<String, Vec<String>>,
}

/// Reads and verifies one module. Errors are all that were found; those without a place of their own are at its name.
pub fn check_item(sources: &mut SourceMap, spans: &mut TokenSpans, item: &syn::ItemMod) -> Result<Checked, Diags> {
    let name = syn::ext::IdentExt::unraw(&item.ident).to_string();
    let checked = lower_item(sources, spans, item, &ParseOptions::default()).and_then(|module| {
        check_module(&module).map_err(respelled)?;
        let fingerprint = fingerprint(&module)?;
        Ok(Checked { name, module, fingerprint, docs: documentation(item) })
    });
    checked.map_err(|diags| {
        let at: Span = spans.add(quote::ToTokens::to_token_stream(&item.ident));
        Diags(diags.0.into_iter().map(|d| d.at(at)).collect())
    })
}

/// The lines of `///` of each function that has some.
fn documentation(item: &syn::ItemMod) -> BTreeMap<String, Vec<String>> {
    let items = item.content.as_ref().map_or(&[][..], |(_, items)| items);
    let docs = items.iter().filter_map(|i| match i {
        syn::Item::Fn(f) => Some((syn::ext::IdentExt::unraw(&f.sig.ident).to_string(), lines(&f.attrs))),
        _ => None,
    });
    docs.filter(|(_, lines)| !lines.is_empty()).collect()
}

fn lines(attributes: &[syn::Attribute]) -> Vec<String> {
    let text = attributes.iter().filter_map(|a| match &a.meta {
        syn::Meta::NameValue(n) if n.path.is_ident("doc") => match &n.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. }) => Some(s.value()),
            _ => None,
        },
        _ => None,
    });
    text.flat_map(|t| t.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// FNV-1a over the module's text and the bytes of the constants that the text does not hold.
fn fingerprint(module: &IRModule) -> Result<u64, Diags> {
    let (text, constants) = print_rust(module, "module")?;
    let hash = |h: u64, bytes: &[u8]| bytes.iter().fold(h, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    let seed = hash(0xcbf2_9ce4_8422_2325, env!("CARGO_PKG_VERSION").as_bytes());
    Ok(constants.iter().fold(hash(seed, text.as_bytes()), |h, c| hash(h, c.data())))
}
