//! Types and prototypes as text, in C and in Rust.

use super::{Declaration, Language, Returns};
use quote::ToTokens;
use tvm_ir::dtype::{DType, TypeCode};
use tvm_ir::name::Name;
use tvm_ir::relax::{Leaf, StructInfo};

/// A type of bindgen's output, as C spells it.
pub(super) fn c_type(ty: &syn::Type) -> String {
    match ty {
        syn::Type::Ptr(p) => {
            let inner = c_type(&p.elem);
            let star = if inner.ends_with('*') { "*" } else { " *" };
            match p.mutability {
                Some(_) => format!("{inner}{star}"),
                None => format!("const {inner}{star}"),
            }
        }
        _ => match super::declare::last(ty) {
            Some(name) => c_word(&name).map_or(name, str::to_owned),
            None => rust_type(ty),
        },
    }
}

fn c_word(name: &str) -> Option<&'static str> {
    Some(match name {
        "c_void" => "void",
        "c_char" => "char",
        "c_schar" => "signed char",
        "c_uchar" => "unsigned char",
        "c_short" => "short",
        "c_ushort" => "unsigned short",
        "c_int" => "int",
        "c_uint" => "unsigned int",
        "c_long" => "long",
        "c_ulong" => "unsigned long",
        "c_longlong" => "long long",
        "c_ulonglong" => "unsigned long long",
        "f32" => "float",
        "f64" => "double",
        "i8" => "int8_t",
        "i16" => "int16_t",
        "i32" => "int32_t",
        "i64" => "int64_t",
        "u8" => "uint8_t",
        "u16" => "uint16_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "isize" => "ptrdiff_t",
        _ => return None,
    })
}

/// A type as Rust spells it.
pub(super) fn rust_type(ty: &syn::Type) -> String {
    match ty {
        syn::Type::Ptr(p) => {
            let word = if p.mutability.is_some() { "*mut" } else { "*const" };
            format!("{word} {}", rust_type(&p.elem))
        }
        syn::Type::Reference(r) => {
            format!("&{}{}", if r.mutability.is_some() { "mut " } else { "" }, rust_type(&r.elem))
        }
        syn::Type::Array(a) => format!("[{}; {}]", rust_type(&a.elem), a.len.to_token_stream()),
        other => other.to_token_stream().to_string().replace(" :: ", "::"),
    }
}

/// The Rust type of a number, and of an element in memory: types that Rust has not are their bits.
pub(crate) fn rust_number(d: DType) -> &'static str {
    match (d.code, d.bits) {
        (TypeCode::Bool, _) => "bool",
        (TypeCode::Int, 8) => "i8",
        (TypeCode::Int, 9..=16) => "i16",
        (TypeCode::Int, 17..=32) => "i32",
        (TypeCode::Int, _) => "i64",
        (TypeCode::Float, 32) => "f32",
        (TypeCode::Float, 64) => "f64",
        (_, 0..=8) => "u8",
        (_, 9..=16) => "u16",
        (_, 17..=32) => "u32",
        _ => "u64",
    }
}

fn c_number(d: DType) -> &'static str {
    c_word(rust_number(d)).unwrap_or("bool")
}

/// The type of a pointer in the language of a declaration.
pub(super) fn pointer(d: DType, writable: bool, language: Language) -> String {
    match (language, writable) {
        (Language::C, true) => format!("{} *", c_number(d)),
        (Language::C, false) => format!("const {} *", c_number(d)),
        (Language::Rust, true) => format!("*mut {}", rust_number(d)),
        (Language::Rust, false) => format!("*const {}", rust_number(d)),
    }
}

/// The type of a number in the language of a declaration.
pub(super) fn number(d: DType, language: Language) -> &'static str {
    match language {
        Language::C => c_number(d),
        Language::Rust => rust_number(d),
    }
}

/// A declaration in one line.
pub(super) fn prototype(d: &Declaration) -> String {
    let params: Vec<(String, String)> = d.params.iter().map(|p| (p.name.clone(), p.text.clone())).collect();
    let returns = match &d.returns {
        Returns::Nothing => None,
        Returns::Status(t) => Some(number(*t, d.language).to_string()),
        Returns::Other(text) => Some(text.clone()),
    };
    line(&d.name, &params, returns.as_deref(), d.language)
}

fn line(name: &str, params: &[(String, String)], returns: Option<&str>, language: Language) -> String {
    let param = |(name, ty): &(String, String)| match language {
        Language::C if ty.ends_with('*') => format!("{ty}{name}"),
        Language::C => format!("{ty} {name}"),
        Language::Rust => format!("{name}: {ty}"),
    };
    let params = params.iter().map(param).collect::<Vec<_>>().join(", ");
    match (language, returns) {
        (Language::C, returns) => format!("{} {name}({params});", returns.unwrap_or("void")),
        (Language::Rust, None) => format!("extern \"C\" fn {name}({params})"),
        (Language::Rust, Some(r)) => format!("extern \"C\" fn {name}({params}) -> {r}"),
    }
}

/// Prototypes in C and Rust that fit a call; `None` where the call itself is at fault.
pub(super) fn wanted(symbol: &Name, args: &[Leaf], out: &StructInfo) -> Option<(String, String)> {
    let passed = super::bind::passed(args).ok()?;
    let text = |language| -> Option<String> {
        let mut params = Vec::new();
        for p in &passed {
            let ty = match &p.tensor {
                Some(t) => pointer(t.dtype?, false, language),
                None => number(p.dtype, language).to_string(),
            };
            params.push((word(&p.label, params.len()), ty));
        }
        let outs = out.tensors()?;
        for (i, t) in outs.iter().enumerate() {
            let name = if outs.len() == 1 { "out".to_string() } else { format!("out{i}") };
            params.push((name, pointer(t.dtype?, true, language)));
        }
        Some(line(symbol, &params, None, language))
    };
    Some((text(Language::C)?, text(Language::Rust)?))
}

/// A label as the name of a parameter.
fn word(label: &str, index: usize) -> String {
    let good = label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let starts = label.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    if good && starts { label.to_string() } else { format!("p{index}") }
}
