//! The interface of a compiled module, before there is one: what an editor needs to check uses of it.

use super::names::{Identifiers, comment, documentation};
use crate::attrs::AttrValue;
use crate::dtype::{DType, TypeCode};
use crate::module::{Func, IRModule};
use crate::prim::{PrimExpr, Var, free_vars, visit};
use crate::relax::{Body, Dims, Expr, Function, Leaf, StructInfo, TensorInfo};
use crate::tir::{Stmt, visit_stmt};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Outputs of more bytes are not returned as arrays.
const STACK_BYTES: i64 = 64 << 10;

/// Items with the names and types of what the build script generates for a module: constants, `Module` and its entry
/// points. Whether an entry point can fail is not always known before it is compiled: it is taken to fail if its shapes
/// are symbolic, or it checks, casts or calls functions of the program. `docs` are the functions' own, line by line.
///
/// Types of the run time (`Error`, `State`, …) must be in scope. Generating code for the items is a compile error that
/// says `missing`; checking uses of them is not.
pub fn stub(module: &IRModule, docs: &BTreeMap<String, Vec<String>>, missing: &str) -> String {
    let mut ids = Identifiers::new(&["new", "try_new", "with_arena", "state", "default"]);
    let (mut methods, mut dynamic) = (String::new(), false);
    for (name, f) in module.relax_funcs().filter(|(_, f)| !f.is_private()) {
        let pair = ids.fresh_pair(name);
        let Some(s) = Signature::of(f, can_fail(module, f, &mut BTreeSet::new())) else { continue };
        dynamic |= !s.symbols.is_empty();
        s.print(&mut methods, name, pair, &mut ids, docs.get(name.as_str()).map_or(&[], Vec::as_slice));
    }
    let arena = if dynamic { "impl Into<ArenaRef<'a>>" } else { "&'a mut Arena<ARENA_BYTES>" };
    format!(
        "/// Bytes of the arena of [`Module::with_arena`].\npub const ARENA_BYTES: usize = 0;\n\
         /// Alignment of the arena and of the weights.\npub const ARENA_ALIGN: usize = ALIGN;\n\
         /// Bytes of the weights.\npub const WEIGHT_BYTES: usize = 0;\n\n\
         /// The model with its memory. Calls run on the calling thread.\n\
         pub struct Module<'a>(::core::marker::PhantomData<&'a mut ()>);\n\n\
         impl Module<'static> {{\n    /// The model, with an arena on the heap.\n    \
         pub fn new() -> Self {{\n        not_compiled::<Self>()\n    }}\n\n    \
         /// As [`Module::new`], with an error where there is no memory for the arena.\n    \
         pub fn try_new() -> Result<Self, Error> {{\n        not_compiled::<Self>()\n    }}\n}}\n\n\
         impl ::core::default::Default for Module<'static> {{\n    fn default() -> Self {{\n        Self::new()\n    }}\n}}\n\n\
         #[allow(non_snake_case, unused_variables, clippy::too_many_arguments, clippy::type_complexity, reason = \"signatures are the model's\")]\n\
         impl<'a> Module<'a> {{\n    /// The model, with an arena that the caller places.\n    \
         pub fn with_arena(arena: {arena}) -> Self {{\n        not_compiled::<Self>()\n    }}\n\n    \
         /// The state behind the typed entry points.\n    \
         pub fn state(&mut self) -> &mut State<'a> {{\n        not_compiled::<Self>()\n    }}\n{methods}}}\n\n\
         /// An error when code is generated for it, not when it is checked.\n\
         fn not_compiled<T>() -> ! {{\n    \
         struct Compiled<T>(::core::marker::PhantomData<T>);\n    impl<T> Compiled<T> {{\n        \
         const CHECK: () = ::core::panic!(\"{{}}\", {missing:?});\n    }}\n    \
         let () = Compiled::<T>::CHECK;\n    loop {{}}\n}}\n"
    )
}

/// The types of an entry point.
#[derive(Default)]
struct Signature {
    params: Vec<String>,
    symbols: Vec<String>,
    /// Names and types of outputs that callers provide, with their bytes where they are constant.
    outs: Vec<(String, Type, Option<i64>)>,
    /// Types of all results, those that the call returns as views with their text.
    results: Vec<Option<String>>,
    fallible: bool,
    /// It has strings or lists: there is one method.
    values: bool,
}

/// The type of a tensor's elements and how many there are, where that is constant.
#[derive(Clone, Copy)]
struct Type {
    element: &'static str,
    len: Option<i64>,
}

impl Signature {
    /// `None` for what has no typed entry point.
    fn of(f: &Function, can_fail: bool) -> Option<Signature> {
        let mut ids = Identifiers::new(&["args", "result", "needed", "storage", "value"]);
        let mut s = Signature { fallible: can_fail, ..Signature::default() };
        let mut params = Vec::new();
        f.params.iter().for_each(|p| flatten(p.name(), p.info(), &mut params));
        let names: Vec<String> = params.iter().map(|(name, _)| ids.fresh(name)).collect();
        let mut told: BTreeSet<Var> = BTreeSet::new();
        let mut passed: BTreeSet<Var> = BTreeSet::new();
        for (_, info) in &params {
            match info {
                StructInfo::Prim(_, Some(e)) => passed.extend(e.as_var().cloned()),
                StructInfo::Tensor(TensorInfo { dims: Dims::Known(dims), .. })
                | StructInfo::Shape(Dims::Known(dims)) => {
                    told.extend(dims.iter().filter_map(|d| d.as_var().cloned()));
                }
                _ => {}
            }
        }
        told.extend(passed.iter().cloned());
        let mut results = Vec::new();
        flatten("out", &f.ret, &mut results);
        let results: Vec<StructInfo> = results.into_iter().map(|(_, i)| i).collect();
        let is_value = |i: &StructInfo| match i {
            StructInfo::Tensor(t) => t.dtype == Some(DType::TEXT),
            other => matches!(other, StructInfo::Object),
        };
        s.values = params.iter().map(|(_, i)| i).chain(&results).any(is_value);
        s.fallible |= s.values;
        let is_given = |t: &&TensorInfo| {
            t.dtype.is_some() && t.dims.known().is_some_and(|d| d.iter().all(|d| free_vars(d).is_subset(&told)))
        };
        let given = results.iter().filter_map(StructInfo::as_tensor).filter(is_given);
        let shaped = params.iter().filter_map(|(_, i)| i.as_tensor()).chain(given);
        for v in shaped.filter_map(|t| t.dims.known()).flat_map(|d| d.iter().flat_map(in_order)) {
            if passed.insert(v.clone()) {
                s.symbols.push(format!("{}: usize", ids.fresh(v.name())));
                s.fallible = true;
            }
        }
        for ((_, info), name) in params.iter().zip(&names) {
            s.param(name, info, &mut ids)?;
        }
        s.params.extend(s.symbols.iter().cloned());
        for (i, t) in results.iter().enumerate() {
            let name = if results.len() == 1 { "out".to_string() } else { format!("out{i}") };
            let Some(t) = t.as_tensor() else {
                matches!(t, StructInfo::Object).then(|| s.results.push(Some("AnyList".into())))?;
                continue;
            };
            if t.dtype == Some(DType::TEXT) {
                let strings = "::std::vec::Vec<::std::string::String>";
                let shaped = || Some(format!("({strings}, [usize; {}])", t.dims.rank()?));
                s.results.push(Some(if is_given(&t) { strings.into() } else { shaped()? }));
                continue;
            }
            let ty = Type::of(t)?;
            if is_given(&t) {
                let bytes = ty.len.and_then(|n| n.checked_mul(i64::try_from(t.dtype?.bytes()).ok()?));
                s.fallible |= ty.len.is_none();
                s.outs.push((ids.fresh(&name), ty, bytes));
                s.results.push(None);
            } else {
                s.fallible = true;
                s.results.push(Some(format!("TensorView<'_, {}, {}>", ty.element, t.dims.rank()?)));
            }
        }
        Some(s)
    }

    fn param(&mut self, name: &str, info: &StructInfo, ids: &mut Identifiers) -> Option<()> {
        self.params.push(match info {
            StructInfo::Object => format!("{name}: &AnyList"),
            StructInfo::Tensor(t) => {
                let ty = Type::of(t)?;
                self.fallible |= ty.len.is_none();
                match (ty.len, t.dims.known()) {
                    (Some(len), _) => format!("{name}: &[{}; {len}]", ty.element),
                    (None, Some(_)) => format!("{name}: &[{}]", ty.element),
                    (None, None) => {
                        let shape = ids.fresh(&format!("{name}_shape"));
                        format!("{name}: &[{}], {shape}: &[i64]", ty.element)
                    }
                }
            }
            StructInfo::Shape(_) => {
                self.fallible = true;
                format!("{name}: &[i64]")
            }
            StructInfo::Prim(d, _) if d.is_float() => format!("{name}: f64"),
            StructInfo::Prim(d, _) if d.is_bool() => format!("{name}: bool"),
            StructInfo::Prim(_, e) => {
                self.fallible |= e.as_ref().is_some_and(|e| e.as_var().is_none());
                format!("{name}: i64")
            }
            _ => return None,
        });
        Some(())
    }

    fn print(
        &self,
        out: &mut String,
        label: &str,
        (name, into): (String, String),
        ids: &mut Identifiers,
        docs: &[String],
    ) {
        let mut method = |name: &str, what: &str, more: &[String], ret: &str| {
            out.push('\n');
            documentation(out, "    ", docs);
            let params: Vec<&str> =
                ["&mut self"].into_iter().chain(self.params.iter().chain(more).map(String::as_str)).collect();
            let ret = match (self.fallible, ret) {
                (false, "()") => String::new(),
                (false, ret) => format!(" -> {ret}"),
                (true, ret) => format!(" -> Result<{ret}, Error>"),
            };
            let _ = write!(
                out,
                "    /// Runs `{}`{what}.\n    pub fn {name}({}){ret} {{\n        not_compiled::<Self>()\n    }}\n",
                comment(label),
                params.join(", ")
            );
        };
        let outs: Vec<String> = self.outs.iter().map(|(name, ty, _)| format!("{name}: &mut {}", ty.slice())).collect();
        let views: Vec<String> = self.results.iter().flatten().cloned().collect();
        let only = self.outs.is_empty() && !views.is_empty();
        if !self.values {
            method(if only { &name } else { &into }, " into given outputs", &outs, &tuple(&views));
        }
        if self.values || !only && !self.results.is_empty() {
            let bytes = self.outs.iter().try_fold(0i64, |n, (_, _, b)| n.checked_add((*b)?));
            let small = !self.values && bytes.is_some_and(|b| b <= STACK_BYTES);
            let mut given = self.outs.iter();
            let results = self.results.iter().filter_map(|r| match r {
                Some(view) => Some(view.clone()),
                None => given
                    .next()
                    .map(|(_, ty, _)| if small { ty.slice() } else { format!("::std::vec::Vec<{}>", ty.element) }),
            });
            method(&name, "", &[], &tuple(&results.collect::<Vec<_>>()));
        }
        if !self.symbols.is_empty() {
            let _ = write!(
                out,
                "\n    /// Bytes of the arena that `{}` needs for these extents.\n    \
                 pub fn {}({}) -> usize {{\n        not_compiled::<Self>()\n    }}\n",
                comment(label),
                ids.fresh(&format!("{label}_arena_bytes")),
                self.symbols.join(", ")
            );
        }
    }
}

impl Type {
    fn of(t: &TensorInfo) -> Option<Type> {
        let dtype = t.dtype?;
        let count = t.dims.fixed().and_then(|d| d.iter().try_fold(1i64, |n, d| n.checked_mul(*d)));
        // Packed elements share bytes.
        let len = match i64::from(dtype.bits) {
            bits @ 2..8 => count.and_then(|n| n.checked_add(8 / bits - 1)).map(|n| n / (8 / bits)),
            _ => count,
        };
        let element = if dtype == DType::TEXT { "&str" } else { element(dtype)? };
        Some(Type { element, len })
    }

    /// `[f32; 4]` or `[f32]`
    fn slice(self) -> String {
        match self.len {
            Some(len) => format!("[{}; {len}]", self.element),
            None => format!("[{}]", self.element),
        }
    }
}

fn tuple(items: &[String]) -> String {
    match items {
        [one] => one.clone(),
        items => format!("({})", items.join(", ")),
    }
}

/// Tuples taken apart, as entry points take and give them.
fn flatten(name: &str, info: &StructInfo, out: &mut Vec<(String, StructInfo)>) {
    match info {
        StructInfo::Tuple(fields) => {
            fields.iter().enumerate().for_each(|(i, f)| flatten(&format!("{name}.{i}"), f, out));
        }
        other => out.push((name.to_string(), other.clone())),
    }
}

/// The variables of an expression, in order.
fn in_order(e: &PrimExpr) -> Vec<Var> {
    let mut out = Vec::new();
    visit(e, &mut |n| out.extend(n.as_var().cloned()));
    out
}

fn element(d: DType) -> Option<&'static str> {
    Some(match (d.code, d.bits, d.lanes) {
        (TypeCode::Bool, _, 1) => "bool",
        (TypeCode::Int, 8, 1) => "i8",
        (TypeCode::Int, 16, 1) => "i16",
        (TypeCode::Int, 32, 1) => "i32",
        (TypeCode::Int, 64, 1) => "i64",
        (TypeCode::UInt, 8, 1) => "u8",
        (TypeCode::UInt, 16, 1) => "u16",
        (TypeCode::UInt, 32, 1) => "u32",
        (TypeCode::UInt, 64, 1) => "u64",
        (TypeCode::Float, 16, 1) => "F16",
        (TypeCode::BFloat, 16, 1) => "Bf16",
        (TypeCode::Float, 32, 1) => "f32",
        (TypeCode::Float, 64, 1) => "f64",
        (TypeCode::Float8E4M3FN, _, 1) => "F8E4M3Fn",
        (TypeCode::Float8E4M3FNUZ, _, 1) => "F8E4M3FnUz",
        (TypeCode::Float8E5M2, _, 1) => "F8E5M2",
        (TypeCode::Float8E5M2FNUZ, _, 1) => "F8E5M2FnUz",
        (TypeCode::Float8E8M0FNU, _, 1) => "F8E8M0Fnu",
        (TypeCode::Float4E2M1FN, _, 1) => "F4E2M1x2",
        (TypeCode::Int, 4, 1) => "I4x2",
        (TypeCode::UInt, 4, 1) => "U4x2",
        (TypeCode::Int, 2, 1) => "I2x4",
        (TypeCode::UInt, 2, 1) => "U2x4",
        _ => return None,
    })
}

/// Whether a call computes or checks something that may go wrong, as far as that is known before it is compiled.
fn can_fail<'m>(module: &'m IRModule, f: &'m Function, seen: &mut BTreeSet<&'m str>) -> bool {
    let asserts = |name: &str| match module.funcs.get(name) {
        Some(Func::Prim(p)) => {
            let mut found = p.attrs.get("tir.check_bounds").and_then(AttrValue::as_bool).unwrap_or(false);
            visit_stmt(&p.body, &mut |s| found |= matches!(s, Stmt::Assert(_)));
            found
        }
        _ => false,
    };
    fn body<'m>(
        module: &'m IRModule,
        b: &'m Body,
        seen: &mut BTreeSet<&'m str>,
        asserts: &dyn Fn(&str) -> bool,
    ) -> bool {
        b.bindings().any(|b| match &b.value {
            Expr::CallDps { .. } | Expr::CallPacked { .. } | Expr::Loop(_) => true,
            Expr::MatchCast(l, info) => l.info().as_ref() != Some(info),
            Expr::CallTir(c) => asserts(&c.func.0) || !is_fixed(b.var.info()),
            Expr::CallFunc { callee: Leaf::Global(g), .. } => match module.funcs.get_key_value(&g.0) {
                Some((name, Func::Relax(f))) => seen.insert(name) && can_fail(module, f, seen),
                _ => true,
            },
            Expr::If(i) => body(module, &i.then, seen, asserts) || body(module, &i.otherwise, seen, asserts),
            Expr::Call(_) => !is_fixed(b.var.info()),
            _ => false,
        })
    }
    body(module, &f.body, seen, &asserts)
}

fn is_fixed(info: &StructInfo) -> bool {
    match info {
        StructInfo::Tensor(t) => t.dims.fixed().is_some(),
        StructInfo::Tuple(fields) => fields.iter().all(is_fixed),
        _ => false,
    }
}
