//! Typed entry points.

use super::RustOptions;
use super::expr::extent;
use super::facts::{calls_functions, can_fail, places_at_run_time, symbols_of};
use super::values;
use crate::vm::dtype::element_type;
use crate::vm::program::{EmittedProgram, Entry, EntryKind, EntryOut, OutShape};
use std::collections::BTreeMap;
use std::fmt::Write;
use tvm_ir::diag::Diag;
use tvm_ir::ops::show_dims;
use tvm_ir::prim::{PrimExpr, Var};
use tvm_ir::span::Span;
use tvm_ir::syntax::rust::names::{Identifiers, comment, documentation};
use tvm_runtime::{DType, Function};

/// Outputs of more bytes are not returned as arrays, which lie on the stack.
const STACK_BYTES: i64 = 64 << 10;

/// The methods of one public function.
pub(super) fn print(
    entry: &Entry,
    program: &EmittedProgram,
    options: &RustOptions,
    ids: &mut Identifiers,
) -> Result<String, Diag> {
    let (name, into) = ids.fresh_pair(&entry.name);
    let functions = program.tables().functions;
    let Some(function) = functions.get(entry.function) else {
        return Err(Diag::error(Span::NONE, format!("the program has no function {}", entry.name)));
    };
    let values = options.heap && values::has(entry);
    let mut s = Signature::new(entry, values)?;
    s.about = options.docs.get(&entry.name).cloned().unwrap_or_default();
    s.fallible |= !program.tables().messages.is_empty() || can_fail(functions, function);
    let dynamic = grows(entry, program);
    let grows = options.heap && dynamic;
    let mut text = String::new();
    if values {
        let forget = !program.entries.iter().any(values::has_lists);
        s.values_method(&mut text, &name, entry, function, grows, forget);
        if dynamic && !calls_functions(function) {
            s.bytes_method(&mut text, &ids.fresh(&format!("{}_arena_bytes", entry.name)), entry, function);
        }
        return Ok(text);
    }
    // Without outputs to provide there is one method.
    let only = s.outs.is_empty() && !s.returned.is_empty();
    s.method_into(&mut text, if only { &name } else { &into }, entry, function, grows);
    if dynamic && !calls_functions(function) {
        s.bytes_method(&mut text, &ids.fresh(&format!("{}_arena_bytes", entry.name)), entry, function);
    }
    // An array of packed elements would be one of bytes, without the shape.
    if options.ndarray && !has_packed(entry) {
        let name = ids.fresh(&format!("{}_nd", entry.name));
        super::nd::print(&mut text, &name, entry, function, grows, &s.about)?;
    }
    let small = s.outs.iter().map(|o| o.bytes).try_fold(0i64, |n, b| n.checked_add(b?));
    if only {
        return Ok(text);
    }
    if small.is_some_and(|b| b <= STACK_BYTES) {
        s.array_method(&mut text, &name, &into, entry);
    } else if options.heap {
        s.vec_method(&mut text, &name, entry, function, grows);
    }
    Ok(text)
}

/// Whether calls may need a larger arena than the constant one.
pub(super) fn grows(entry: &Entry, program: &EmittedProgram) -> bool {
    let functions = program.tables().functions;
    functions.get(entry.function).is_some_and(|f| places_at_run_time(functions, f))
}

/// A tensor that the caller provides room for.
pub(super) struct Out {
    pub(super) name: String,
    label: String,
    pub(super) rust: &'static str,
    zero: &'static str,
    /// Values of the Rust type, where fixed.
    len: Option<i64>,
    bytes: Option<i64>,
    shape: String,
}

/// A tensor that the call returns.
pub(super) struct Returned {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) rust: &'static str,
    pub(super) rank: usize,
    /// It is a list.
    pub(super) list: bool,
}

pub(super) struct Signature {
    /// `x: &[f32; 4]`
    pub(super) params: Vec<String>,
    /// Names of `params`, to pass them on.
    names: Vec<String>,
    /// `Arg::input(x, &[4])`
    pub(super) args: Vec<String>,
    /// Lines before the call.
    pub(super) prepare: String,
    /// Strings and lists are taken and given as Rust has them.
    values: bool,
    pub(super) outs: Vec<Out>,
    returned: Vec<Returned>,
    fallible: bool,
    /// The function's own documentation.
    about: Vec<String>,
    /// A line about each parameter and output.
    pub(super) docs: Vec<String>,
    out_docs: Vec<String>,
    /// Rust expressions of symbolic variables.
    vars: BTreeMap<Var, String>,
    /// Names of the extents.
    symbols: Vec<String>,
}

impl Signature {
    fn new(entry: &Entry, natural: bool) -> Result<Signature, Diag> {
        let mut ids = Identifiers::new(&["args", "result", "needed", "storage", "value"]);
        let mut s = Signature {
            params: Vec::new(),
            names: Vec::new(),
            args: Vec::new(),
            prepare: String::new(),
            values: natural,
            outs: Vec::new(),
            returned: Vec::new(),
            fallible: natural,
            about: Vec::new(),
            docs: Vec::new(),
            out_docs: Vec::new(),
            vars: BTreeMap::new(),
            symbols: Vec::new(),
        };
        let names: Vec<String> = entry.params.iter().map(|p| ids.fresh(&p.name)).collect();
        for (p, name) in entry.params.iter().zip(&names) {
            if let EntryKind::Int(Some(e)) = &p.kind {
                if let Some(v) = e.as_var() {
                    s.vars.insert(v.clone(), name.clone());
                }
            }
        }
        let mut symbols = Vec::new();
        for v in symbols_of(entry) {
            if !s.vars.contains_key(&v) {
                let name = ids.fresh(v.name());
                s.vars.insert(v.clone(), format!("dim({name})"));
                symbols.push((name, v));
            }
        }
        for (p, name) in entry.params.iter().zip(names) {
            s.param(&p.name, name, &p.kind, &mut ids)?;
        }
        for (name, v) in symbols {
            s.docs.push(format!("`{name}`: the extent {} of these shapes", comment(v.name())));
            s.params.push(format!("{name}: usize"));
            s.symbols.push(name.clone());
            s.names.push(name);
            s.fallible = true;
        }
        for o in &entry.outs {
            if natural && matches!(o.shape, OutShape::List) {
                s.list(o, &mut ids);
                continue;
            }
            let (rust, zero) = element(o.dtype, &o.name)?;
            let dims = match &o.shape {
                OutShape::Given(dims) => dims,
                OutShape::List => return Err(no_list(&o.name)),
                OutShape::Returned(rank) => {
                    s.fallible = true;
                    s.returned(o, *rank, rust, &mut ids)?;
                    continue;
                }
            };
            let len = values(o.dtype, dims);
            let bytes = len.and_then(|n| n.checked_mul(i64::try_from(o.dtype.bytes()).ok()?));
            s.fallible |= len.is_none();
            let (name, shape) = (ids.fresh(&o.name), s.shape(&o.name, dims)?);
            s.out_docs.push(format!("`{}`: {} {}", comment(&o.name), show_dims(dims), described(o.dtype)));
            s.outs.push(Out { name, label: o.name.clone(), rust, zero, len, bytes, shape });
        }
        Ok(s)
    }

    fn returned(
        &mut self,
        o: &EntryOut,
        rank: Option<usize>,
        rust: &'static str,
        ids: &mut Identifiers,
    ) -> Result<(), Diag> {
        let Some(rank) = rank else {
            let m = format!("the rank of {} is not known", o.name);
            return Err(Diag::error(Span::NONE, m).help("give it a rank with R.match_cast"));
        };
        self.out_docs.push(format!(
            "`{}`: {} of rank {rank} in the module's memory, whose shape the call tells",
            comment(&o.name),
            described(o.dtype)
        ));
        self.returned.push(Returned { name: ids.fresh(&o.name), label: o.name.clone(), rust, rank, list: false });
        Ok(())
    }

    fn list(&mut self, o: &EntryOut, ids: &mut Identifiers) {
        self.out_docs.push(format!("`{}`: a list, or an optional as a list of no or one item", comment(&o.name)));
        let (name, label) = (ids.fresh(&o.name), o.name.clone());
        self.returned.push(Returned { name, label, rust: "", rank: 0, list: true });
    }

    /// Types and names of all results in order; `given` says the types of those that are not returned.
    fn results(&self, entry: &Entry, given: &dyn Fn(&Out) -> String) -> (Vec<String>, Vec<String>) {
        let (mut outs, mut returned) = (self.outs.iter(), self.returned.iter());
        let each = entry.outs.iter().filter_map(|o| match o.shape {
            OutShape::Given(_) => outs.next().map(|o| (given(o), o.name.clone())),
            OutShape::Returned(_) => returned.next().map(|r| (view_type(r), r.name.clone())),
            OutShape::List => returned.next().map(|r| (view_type(r), r.name.clone())),
        });
        each.unzip()
    }

    /// After a call with `storage`: the tensors that it returned, by their names.
    fn views(&self, out: &mut String) {
        out.push_str("            let value = result?;\n");
        for (i, r) in self.returned.iter().enumerate() {
            let _ = writeln!(
                out,
                "            // SAFETY: the call gave it, in memory that the module owns and that `self` borrows.\n            \
                 let {}: {} = unsafe {{ storage.{}(value, {i}, {:?}) }}?;",
                r.name,
                view_type(r),
                if r.list { "list" } else { "view" },
                r.label
            );
        }
    }

    fn param(&mut self, label: &str, name: String, kind: &EntryKind, ids: &mut Identifiers) -> Result<(), Diag> {
        if self.values && values::param(self, label, &name, kind, ids)? {
            self.names.push(name);
            return Ok(());
        }
        let what = match kind {
            EntryKind::Tensor(None, _) => {
                let m = format!("the dtype of parameter {label} is not known");
                return Err(Diag::error(Span::NONE, m).help("declare it in the function's signature"));
            }
            EntryKind::Tensor(Some(d), Some(dims)) => {
                let (rust, _) = element(*d, label)?;
                let len = values(*d, dims);
                self.params.push(match len {
                    Some(len) => format!("{name}: &[{rust}; {len}]"),
                    None => format!("{name}: &[{rust}]"),
                });
                self.args.push(format!("Arg::input({name}, {})", self.shape(label, dims)?));
                self.fallible |= len.is_none();
                format!("{} {}", show_dims(dims), described(*d))
            }
            EntryKind::Tensor(Some(d), None) => {
                let (rust, _) = element(*d, label)?;
                let shape = ids.fresh(&format!("{name}_shape"));
                self.params.push(format!("{name}: &[{rust}], {shape}: &[i64]"));
                self.args.push(format!("Arg::input({name}, {shape})"));
                self.names.push(name.clone());
                self.names.push(shape.clone());
                self.docs.push(format!("`{name}`: {} in the shape `{shape}`", described(*d)));
                self.fallible = true;
                return Ok(());
            }
            EntryKind::List => return Err(no_list(label)),
            EntryKind::Shape(dims) => {
                self.params.push(format!("{name}: &[i64]"));
                self.args.push(format!("Arg::shape({name})"));
                self.fallible = true;
                dims.as_ref().map_or("a shape".into(), |d| format!("the shape {}", show_dims(d)))
            }
            EntryKind::Int(e) => {
                self.params.push(format!("{name}: i64"));
                self.args.push(format!("Arg::int({name})"));
                self.fallible |= e.as_ref().is_some_and(|e| e.as_var().is_none());
                "an integer".into()
            }
            EntryKind::Float => {
                self.params.push(format!("{name}: f64"));
                self.args.push(format!("Arg::float({name})"));
                "a number".into()
            }
            EntryKind::Bool => {
                self.params.push(format!("{name}: bool"));
                self.args.push(format!("Arg::bool({name})"));
                "a truth value".into()
            }
        };
        self.docs.push(format!("`{name}`: {what}"));
        self.names.push(name);
        Ok(())
    }

    /// `&[dim(n), 4]`
    pub(super) fn shape(&self, label: &str, dims: &[PrimExpr]) -> Result<String, Diag> {
        let dims = dims.iter().map(|d| {
            extent(d, &self.vars).ok_or_else(|| {
                let m = format!("an extent of {label} in {} cannot be computed by an entry point", show_dims(dims));
                Diag::error(Span::NONE, m).help("use +, -, *, and // or % by a positive constant")
            })
        });
        Ok(format!("&[{}]", dims.collect::<Result<Vec<_>, _>>()?.join(", ")))
    }

    fn doc(&self, out: &mut String, first: &str, outs: &[String]) {
        out.push('\n');
        documentation(out, "        ", &self.about);
        let _ = writeln!(out, "        /// {first}\n        ///");
        for line in self.docs.iter().chain(outs) {
            let _ = writeln!(out, "        /// - {line}");
        }
        if self.fallible {
            let _ = writeln!(
                out,
                "        ///\n        /// # Errors\n        ///\n        /// Lengths or extents that do not fit each \
                 other, and what the model itself checks; see [`Error`]."
            );
        }
    }

    /// The call itself, with what is due in the place of outputs.
    fn call(&self, out: &mut String, entry: &Entry, f: &Function, outs: &[String], grows: bool) {
        let args: Vec<String> = self.args.iter().chain(outs).cloned().collect();
        call(out, entry, f, &args, grows.then_some(&self.vars), !self.returned.is_empty());
    }

    fn bytes_method(&self, out: &mut String, name: &str, entry: &Entry, f: &Function) {
        let Some(bytes) = arena_bytes(entry, f, &self.vars) else { return };
        let symbols: Vec<String> = self.symbols.iter().map(|n| format!("{n}: usize")).collect();
        let _ = write!(
            out,
            "\n        /// Bytes of the arena that `{}` needs for these extents.\n        \
             pub fn {name}({}) -> usize {{\n            \
             usize::try_from({bytes}).unwrap_or(usize::MAX)\n        }}\n",
            comment(&entry.name),
            symbols.join(", ")
        );
    }

    fn finish(&self, out: &mut String, value: &str) {
        match (self.fallible, value) {
            (true, "") => out.push_str("            result.map(|_| ())\n"),
            (true, value) => {
                let _ = writeln!(out, "            result.map(|_| {value})");
            }
            (false, value) => {
                out.push_str("            debug_assert!(result.is_ok(), \"{result:?}\");\n");
                if !value.is_empty() {
                    let _ = writeln!(out, "            {value}");
                }
            }
        }
        out.push_str("        }\n");
    }

    fn method_into(&self, out: &mut String, name: &str, entry: &Entry, f: &Function, grows: bool) {
        self.doc(out, &format!("Runs `{}` into given outputs.", comment(&entry.name)), &self.out_docs);
        let outs = self.outs.iter().map(|o| match o.len {
            Some(len) => format!("{}: &mut [{}; {len}]", o.name, o.rust),
            None => format!("{}: &mut [{}]", o.name, o.rust),
        });
        let params: Vec<String> = self.params.iter().cloned().chain(outs).collect();
        let types: Vec<String> = self.returned.iter().map(view_type).collect();
        let ret =
            if self.fallible { format!(" -> Result<{}, Error>", Signature::tuple(&types)) } else { String::new() };
        let _ = writeln!(out, "        pub fn {name}({}){ret} {{", with_self(&params));
        let outs: Vec<String> =
            self.outs.iter().map(|o| format!("Arg::output(&mut *{}, {})", o.name, o.shape)).collect();
        self.call(out, entry, f, &outs, grows);
        if self.returned.is_empty() {
            return self.finish(out, "");
        }
        self.views(out);
        let names: Vec<String> = self.returned.iter().map(|r| r.name.clone()).collect();
        let _ = writeln!(out, "            Ok({})\n        }}", Signature::tuple(&names));
    }

    /// `(T, T)`, `T` or nothing.
    fn tuple(items: &[String]) -> String {
        match items {
            [one] => one.clone(),
            items => format!("({})", items.join(", ")),
        }
    }

    fn returning(&self, out: &mut String, name: &str, entry: &Entry, types: &[String]) {
        let first = format!("Runs `{}`; gives {}.", comment(&entry.name), self.out_docs.join(" and "));
        self.doc(out, &first, &[]);
        let ret = match (Signature::tuple(types), self.fallible) {
            (t, false) => t,
            (t, true) => format!("Result<{t}, Error>"),
        };
        let _ = writeln!(out, "        pub fn {name}({}) -> {ret} {{", with_self(&self.params));
    }

    fn array_method(&self, out: &mut String, name: &str, into: &str, entry: &Entry) {
        if self.outs.is_empty() {
            return;
        }
        let (types, names) = self.results(entry, &|o| format!("[{}; {}]", o.rust, o.len.unwrap_or_default()));
        self.returning(out, name, entry, &types);
        for o in &self.outs {
            let _ = writeln!(out, "            let mut {} = [{}; {}];", o.name, o.zero, o.len.unwrap_or_default());
        }
        let outs = self.outs.iter().map(|o| format!("&mut {}", o.name));
        let args: Vec<String> = self.names.iter().cloned().chain(outs).collect();
        let question = if self.fallible { "?" } else { "" };
        let views: Vec<String> = self.returned.iter().map(|r| r.name.clone()).collect();
        let bind = if views.is_empty() { String::new() } else { format!("let {} = ", Signature::tuple(&views)) };
        let _ = writeln!(out, "            {bind}self.{into}({}){question};", args.join(", "));
        let value = Signature::tuple(&names);
        let value = if self.fallible { format!("Ok({value})") } else { value };
        let _ = writeln!(out, "            {value}\n        }}");
    }

    fn vec_method(&self, out: &mut String, name: &str, entry: &Entry, f: &Function, grows: bool) {
        let (types, names) = self.results(entry, &|o| format!("::std::vec::Vec<{}>", o.rust));
        self.returning(out, name, entry, &types);
        self.vec_body(out, entry, f, grows, &names);
    }

    /// As [`Self::vec_method`], of strings and lists. Strings of earlier calls go where nothing can hold them (`forget`).
    fn values_method(&self, out: &mut String, name: &str, entry: &Entry, f: &Function, grows: bool, forget: bool) {
        let (mut outs, mut returned) = (self.outs.iter(), self.returned.iter());
        let each = entry.outs.iter().filter_map(|o| match o.shape {
            OutShape::Given(_) => outs.next().map(values::given),
            OutShape::Returned(_) | OutShape::List => returned.next().map(values::returned),
        });
        let (types, values): (Vec<String>, Vec<String>) = each.unzip();
        self.returning(out, name, entry, &types);
        if forget {
            out.push_str("            self.state.forget_texts();\n");
        }
        out.push_str(&self.prepare);
        self.vec_body(out, entry, f, grows, &values);
    }

    /// Makes the outputs, calls, and gives `names`.
    fn vec_body(&self, out: &mut String, entry: &Entry, f: &Function, grows: bool, names: &[String]) {
        for o in &self.outs {
            let made = match o.len {
                Some(len) => format!("::std::vec![{}; {len}]", o.zero),
                None => format!("zeros({:?}, {}, {})?", o.label, o.zero, o.shape),
            };
            let _ = writeln!(out, "            let mut {} = {made};", o.name);
        }
        let outs: Vec<String> =
            self.outs.iter().map(|o| format!("Arg::output(&mut {}, {})", o.name, o.shape)).collect();
        self.call(out, entry, f, &outs, grows);
        if self.returned.is_empty() {
            return self.finish(out, &Signature::tuple(names));
        }
        self.views(out);
        let _ = writeln!(out, "            Ok({})\n        }}", Signature::tuple(names));
    }
}

/// `TensorView<'_, f32, 2>`
fn view_type(r: &Returned) -> String {
    if r.list {
        return "AnyList".into();
    }
    format!("TensorView<'_, {}, {}>", r.rust, r.rank)
}

/// Bytes of the arena that a call needs, an `i64`; `None` where that is constant or not known before.
fn arena_bytes(entry: &Entry, f: &Function, vars: &BTreeMap<Var, String>) -> Option<String> {
    let planned = extent(entry.dynamic_bytes.as_ref()?, vars)?;
    match f.frame.arena.saturating_sub(f.arena_bytes.next_multiple_of(tvm_runtime::ALIGN)) {
        0 => Some(planned),
        behind => Some(format!("{planned}.saturating_add({behind})")),
    }
}

/// The call itself, with a variable for its storage if `named`. One that may need a larger arena than there is grows it, by the expressions of its extents.
pub(super) fn call(
    out: &mut String,
    entry: &Entry,
    f: &Function,
    args: &[String],
    growth: Option<&BTreeMap<Var, String>>,
    named: bool,
) {
    let mut storage = format!("Storage::<{}, {}, {}>::new()", f.frame.registers, f.frame.ints, f.frame.pointers);
    if named {
        let _ = writeln!(out, "            let mut storage = {storage};");
        storage = "storage".into();
    }
    let mut call = format!("self.state.call(\n                {},\n                &[\n", entry.function);
    for a in args {
        let _ = writeln!(call, "                    {a},");
    }
    let _ = write!(call, "                ],\n                &mut {storage},\n            )");
    let Some(vars) = growth else {
        let _ = writeln!(out, "            let result = {call};");
        return;
    };
    let needed = match arena_bytes(entry, f, vars) {
        Some(bytes) => format!("needed.max(usize::try_from({bytes}).unwrap_or(0))"),
        None => "needed".to_string(),
    };
    let call = call.replace('\n', "\n    ");
    let _ = write!(
        out,
        "            let result = loop {{\n                let result = {call};\n                \
         // As much as is planned for these extents, at least what was asked for.\n                \
         let Err(Error::ArenaTooSmall {{ needed, .. }}) = result else {{ break result }};\n                \
         if let Err(error) = self.state.reserve({needed}) {{\n                    break Err(error);\n                }}\n            }};\n"
    );
}

fn with_self(params: &[String]) -> String {
    let mut all = vec!["&mut self".to_string()];
    all.extend_from_slice(params);
    all.join(", ")
}

/// Typed entry points without a heap have no form for lists.
pub(super) fn no_list(label: &str) -> Diag {
    let m = format!(
        "{label} is a sequence or an optional, which needs a heap: entry points without one do not take or give it"
    );
    Diag::error(Span::NONE, m).help("take and give its items as tensors, or do not turn the heap off")
}

/// The Rust type of an element and its zero.
pub(super) fn element(d: DType, label: &str) -> Result<(&'static str, &'static str), Diag> {
    match element_type(d) {
        Some(e) => Ok((e.rust, e.zero)),
        None => {
            let m = format!("{label} has dtype {d}, which entry points cannot take");
            Err(Diag::error(Span::NONE, m).help("cast it inside of the model"))
        }
    }
}

fn has_packed(entry: &Entry) -> bool {
    let params = entry.params.iter().filter_map(|p| match &p.kind {
        EntryKind::Tensor(d, _) => *d,
        _ => None,
    });
    params.chain(entry.outs.iter().map(|o| o.dtype)).any(|d| d.per_byte() > 1)
}

/// What documentation says of an element type: of packed ones, how they lie in their bytes.
fn described(d: DType) -> String {
    match d.per_byte() {
        _ if d == DType::TEXT => "strings".into(),
        1 => d.to_string(),
        n => format!("{d}, {n} elements a byte, the first in the lowest bits"),
    }
}

/// As many values of an element's Rust type as hold a tensor of fixed dimensions.
pub(super) fn values(d: DType, dims: &[PrimExpr]) -> Option<i64> {
    let count = fixed(dims)?.iter().try_fold(1i64, |n, d| n.checked_mul(*d))?;
    i64::try_from(d.units(usize::try_from(count).ok()?)).ok()
}

fn fixed(dims: &[PrimExpr]) -> Option<Vec<i64>> {
    dims.iter().map(PrimExpr::as_int).collect()
}
