//! Declarations from Rust syntax: signatures, `extern "C"` functions of a file, what bindgen makes of a header.

use super::show::{c_type, rust_type};
use super::{Declaration, Language, Param, ParamType, Returns};
use std::collections::BTreeMap;
use syn::ext::IdentExt;
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::span::Span;

/// Sizes of C's types on the machine that the build is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CTypes {
    /// Bits of `long`.
    pub long: u8,
    /// Bits of `size_t` and `ptrdiff_t`.
    pub pointer: u8,
}

impl CTypes {
    /// Of the target that cargo tells build scripts; elsewhere of this machine.
    pub fn from_cargo() -> CTypes {
        let var = |name: &str| std::env::var(name).ok();
        let pointer = match var("CARGO_CFG_TARGET_POINTER_WIDTH").and_then(|w| w.parse().ok()) {
            Some(width) => width,
            None if cfg!(target_pointer_width = "32") => 32,
            None => 64,
        };
        let windows = var("CARGO_CFG_TARGET_OS").map_or(cfg!(windows), |os| os == "windows");
        CTypes { long: if windows { 32 } else { pointer }, pointer }
    }
}

/// Names of types by what they stand for.
pub(super) type Aliases = BTreeMap<String, syn::Type>;

/// Longest chain of aliases.
const MAX_ALIASES: usize = 32;

impl Declaration {
    /// From a signature in Rust, as `extern "C" fn scale(x: *const f32, n: usize, y: *mut f32) -> i32`; `place` says
    /// where it was given. Errors: not such a signature.
    pub fn parse(text: &str, place: &str, types: CTypes) -> Result<Declaration, Diag> {
        let text = text.trim().trim_end_matches(';');
        let signature: syn::Signature = syn::parse_str(text).map_err(|e| {
            Diag::error(Span::NONE, format!("`{text}` is no signature of a function: {e}"))
                .help("write it as `fn scale(x: *const f32, n: usize, y: *mut f32)`")
        })?;
        let name = signature.ident.unraw().to_string();
        Ok(declaration(&signature, name, place.into(), Language::Rust, &Aliases::new(), types))
    }
}

/// The declaration of a signature under a symbol.
pub(super) fn declaration(
    signature: &syn::Signature,
    symbol: String,
    place: String,
    language: Language,
    aliases: &Aliases,
    types: CTypes,
) -> Declaration {
    let text = |ty: &syn::Type| match language {
        Language::C => c_type(ty),
        Language::Rust => rust_type(ty),
    };
    let mut params: Vec<Param> = Vec::new();
    for (i, input) in signature.inputs.iter().enumerate() {
        params.push(match input {
            syn::FnArg::Typed(p) => {
                let name = match &*p.pat {
                    syn::Pat::Ident(n) => n.ident.unraw().to_string(),
                    _ => format!("{i}"),
                };
                Param { name, ty: param_type(&p.ty, aliases, types), text: text(&p.ty) }
            }
            syn::FnArg::Receiver(_) => Param { name: "self".into(), ty: ParamType::Other, text: "self".into() },
        });
    }
    if signature.variadic.is_some() {
        params.push(Param { name: "...".into(), ty: ParamType::Other, text: "...".into() });
    }
    let returns = match &signature.output {
        syn::ReturnType::Default => Returns::Nothing,
        syn::ReturnType::Type(_, ty) => match &**ty {
            syn::Type::Tuple(t) if t.elems.is_empty() => Returns::Nothing,
            ty => match number(ty, aliases, types) {
                Some(d) if d.is_integer() => Returns::Status(d),
                _ => Returns::Other(text(ty)),
            },
        },
    };
    Declaration { name: symbol.into(), params, returns, place, language }
}

fn param_type(ty: &syn::Type, aliases: &Aliases, types: CTypes) -> ParamType {
    match resolve(ty, aliases) {
        syn::Type::Ptr(p) => {
            let writable = p.mutability.is_some();
            match (number(&p.elem, aliases, types), is_void(&p.elem)) {
                (Some(d), _) => ParamType::Pointer { element: Some(d), len: None, writable },
                (None, true) => ParamType::Pointer { element: None, len: None, writable },
                (None, false) => ParamType::Other,
            }
        }
        syn::Type::Reference(r) => match &*r.elem {
            syn::Type::Array(a) => match (number(&a.elem, aliases, types), array_len(&a.len)) {
                (Some(d), Some(len)) => {
                    ParamType::Pointer { element: Some(d), len: Some(len), writable: r.mutability.is_some() }
                }
                _ => ParamType::Other,
            },
            _ => ParamType::Other,
        },
        other => number(other, aliases, types).map_or(ParamType::Other, ParamType::Number),
    }
}

fn array_len(e: &syn::Expr) -> Option<u64> {
    match e {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(n), .. }) => n.base10_parse().ok(),
        syn::Expr::Binary(b) => {
            let (x, y) = (array_len(&b.left)?, array_len(&b.right)?);
            match b.op {
                syn::BinOp::Mul(_) => x.checked_mul(y),
                syn::BinOp::Add(_) => x.checked_add(y),
                _ => None,
            }
        }
        syn::Expr::Paren(p) => array_len(&p.expr),
        _ => None,
    }
}

/// What an alias stands for in the end.
fn resolve<'a>(mut ty: &'a syn::Type, aliases: &'a Aliases) -> &'a syn::Type {
    for _ in 0..MAX_ALIASES {
        ty = match ty {
            syn::Type::Paren(p) => &p.elem,
            syn::Type::Group(g) => &g.elem,
            syn::Type::Path(_) => match last(ty).and_then(|n| aliases.get(&n)) {
                Some(other) => other,
                None => return ty,
            },
            _ => return ty,
        };
    }
    ty
}

/// The last segment of a path without arguments.
pub(super) fn last(ty: &syn::Type) -> Option<String> {
    let syn::Type::Path(p) = ty else { return None };
    let segment = p.path.segments.last()?;
    (p.qself.is_none() && segment.arguments.is_none()).then(|| segment.ident.unraw().to_string())
}

fn is_void(ty: &syn::Type) -> bool {
    last(ty).is_some_and(|n| n == "c_void")
}

fn number(ty: &syn::Type, aliases: &Aliases, types: CTypes) -> Option<DType> {
    let int = |bits| Some(DType::new(tvm_ir::dtype::TypeCode::Int, bits));
    let uint = |bits| Some(DType::new(tvm_ir::dtype::TypeCode::UInt, bits));
    match last(resolve(ty, aliases))?.as_str() {
        "bool" => Some(DType::BOOL),
        "i8" | "c_schar" | "c_char" => int(8),
        "i16" | "c_short" => int(16),
        "i32" | "c_int" => int(32),
        "i64" | "c_longlong" => int(64),
        "u8" | "c_uchar" => uint(8),
        "u16" | "c_ushort" => uint(16),
        "u32" | "c_uint" => uint(32),
        "u64" | "c_ulonglong" => uint(64),
        "c_long" => int(types.long),
        "c_ulong" => uint(types.long),
        "isize" => int(types.pointer),
        "usize" => uint(types.pointer),
        "f32" | "c_float" => Some(DType::F32),
        "f64" | "c_double" => Some(DType::F64),
        "F16" => Some(DType::F16),
        "Bf16" => Some(DType::BF16),
        _ => None,
    }
}

/// The functions with C symbols that a Rust file defines, outside of macros; `condition` tells of attributes whether
/// what they stand on is compiled.
pub(crate) fn defined(
    items: &[syn::Item],
    file: &str,
    types: CTypes,
    condition: &dyn Fn(&[syn::Attribute]) -> bool,
    out: &mut Vec<Declaration>,
) {
    let aliases: Aliases = items
        .iter()
        .filter_map(|i| match i {
            syn::Item::Type(t) if t.generics.params.is_empty() => Some((t.ident.unraw().to_string(), (*t.ty).clone())),
            _ => None,
        })
        .collect();
    for item in items {
        match item {
            syn::Item::Mod(m) if condition(&m.attrs) => {
                let items = m.content.as_ref().map_or(&[][..], |(_, items)| items);
                defined(items, file, types, condition, out);
            }
            syn::Item::Fn(f) if condition(&f.attrs) && is_c(f.sig.abi.as_ref()) => {
                let Some(symbol) = exported(f) else { continue };
                let place = format!("{file}:{}", f.sig.ident.span().start().line);
                out.push(declaration(&f.sig, symbol, place, Language::Rust, &aliases, types));
            }
            _ => {}
        }
    }
}

fn is_c(abi: Option<&syn::Abi>) -> bool {
    abi.is_some_and(|a| a.name.as_ref().is_none_or(|n| matches!(n.value().as_str(), "C" | "C-unwind")))
}

/// The symbol of a function under `#[no_mangle]` or `#[export_name = "…"]`, or those within `unsafe(…)`.
fn exported(f: &syn::ItemFn) -> Option<String> {
    f.attrs.iter().find_map(|a| {
        let meta = match &a.meta {
            syn::Meta::List(l) if l.path.is_ident("unsafe") => l.parse_args::<syn::Meta>().ok()?,
            other => other.clone(),
        };
        match meta {
            syn::Meta::Path(p) if p.is_ident("no_mangle") => Some(f.sig.ident.unraw().to_string()),
            syn::Meta::NameValue(n) if n.path.is_ident("export_name") => match n.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. }) => Some(s.value()),
                _ => None,
            },
            _ => None,
        }
    })
}
