//! Which argument of a call goes to which parameter of the function it calls.

use super::show::{number, pointer};
use super::{Declaration, Param, ParamType, Returns};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::dtype::{DType, TypeCode};
use tvm_ir::ops::show_info;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Dims, Leaf, StructInfo, TensorInfo};
use tvm_ir::span::Span;

/// An argument of a call: tuples and shapes are taken apart.
pub(super) struct Passed {
    /// Name, for messages.
    pub(super) label: String,
    /// A tensor.
    pub(super) tensor: Option<TensorInfo>,
    /// The type of a number.
    pub(super) dtype: DType,
    /// Its value, where known.
    value: Option<PrimExpr>,
}

/// What a call passes, in order.
pub(super) fn passed(args: &[Leaf]) -> Result<Vec<Passed>, String> {
    let mut out = Vec::new();
    for (i, a) in args.iter().enumerate() {
        let label = a.as_var().map_or_else(|| format!("{}", i + 1), |v| v.name().to_string());
        let info = a.info().ok_or_else(|| format!("argument {label} is no value"))?;
        flatten(&label, &info, &mut out)?;
    }
    Ok(out)
}

fn flatten(label: &str, info: &StructInfo, out: &mut Vec<Passed>) -> Result<(), String> {
    let scalar = |label: String, dtype, value: Option<PrimExpr>| Passed { label, tensor: None, dtype, value };
    match info {
        StructInfo::Tensor(t) => {
            out.push(Passed { label: label.into(), tensor: Some(t.clone()), dtype: DType::VOID, value: None });
        }
        StructInfo::Prim(d, value) => out.push(scalar(label.into(), *d, value.clone())),
        StructInfo::Shape(Dims::Known(dims)) => {
            for (i, d) in dims.iter().enumerate() {
                out.push(scalar(format!("{label}[{i}]"), DType::I64, Some(d.clone())));
            }
        }
        StructInfo::Tuple(fields) => {
            for (i, f) in fields.iter().enumerate() {
                flatten(&format!("{label}.{i}"), f, out)?;
            }
        }
        other => return Err(format!("argument {label} is {}, which has no form in C", show_info(other))),
    }
    Ok(())
}

/// For each parameter that a call gives a value to (not its outputs), in their order, the index of the argument:
/// tensors and numbers, tuples and shapes taken apart.
///
/// Errors, at `span`: all that keeps the call from fitting, each with the place of the declaration, the parameter, both
/// types and what to do.
pub fn bind(d: &Declaration, args: &[Leaf], out: &StructInfo, span: Span) -> Result<Vec<usize>, Diags> {
    let check = Check { d, span };
    let passed = passed(args).map_err(|m| {
        check.fault(&m).help("give tensors, numbers, shapes whose extents are known, and tuples of them")
    })?;
    let outs = out.tensors().unwrap_or_default();
    let mut diags = Diags::new();
    check.declaration(&mut diags);
    let of = |f: &dyn Fn(&ParamType) -> bool| d.params.iter().filter(|p| f(&p.ty)).collect::<Vec<&Param>>();
    let reads = of(&|t| matches!(t, ParamType::Pointer { writable: false, .. }));
    let writes = of(&|t| matches!(t, ParamType::Pointer { writable: true, .. }));
    let numbers = of(&|t| matches!(t, ParamType::Number(_)));
    let (tensors, scalars): (Vec<_>, Vec<_>) = passed.iter().enumerate().partition(|(_, p)| p.tensor.is_some());
    check.counts(&mut diags, [&reads, &writes, &numbers], [tensors.len(), outs.len(), scalars.len()]);
    diags = diags.into_result(Diags::new())?;
    for (p, (_, t)) in reads.iter().zip(&tensors) {
        check.pointer(&mut diags, p, &format!("argument {}", t.label), t.tensor.as_ref());
    }
    for (i, (p, t)) in writes.iter().zip(&outs).enumerate() {
        check.pointer(&mut diags, p, &format!("output {i}"), Some(t));
    }
    for (p, (_, s)) in numbers.iter().zip(&scalars) {
        check.number(&mut diags, p, s);
    }
    let (mut tensors, mut scalars) = (tensors.iter(), scalars.iter());
    let inputs = d.params.iter().filter_map(|p| match p.ty {
        ParamType::Pointer { writable: false, .. } => tensors.next(),
        ParamType::Number(_) => scalars.next(),
        _ => None,
    });
    let inputs = inputs.map(|(i, _)| *i).collect();
    diags.into_result(inputs)
}

struct Check<'a> {
    d: &'a Declaration,
    span: Span,
}

impl Check<'_> {
    fn fault(&self, message: &str) -> Diag {
        Diag::error(self.span, format!("external function `{}`: {message}", self.d.name)).note(format!(
            "{}: `{}`",
            self.d.place,
            super::show::prototype(self.d)
        ))
    }

    /// What no call of the function can fit.
    fn declaration(&self, diags: &mut Diags) {
        for p in self.d.params.iter().filter(|p| p.ty == ParamType::Other) {
            let m = format!("parameter `{}` is `{}`, which a call cannot give", p.name, p.text);
            let help = "write a function around it that takes pointers to numbers and numbers";
            diags.push(self.fault(&m).help(help));
        }
        if let Returns::Other(text) = &self.d.returns {
            let m = format!("it returns `{text}`, which a call cannot take");
            let help = "return nothing, or an integer of which 0 is success; write results through pointers";
            diags.push(self.fault(&m).help(help));
        }
    }

    /// As many values of each kind as parameters: read-only pointers, writable pointers, numbers.
    fn counts(&self, diags: &mut Diags, params: [&[&Param]; 3], given: [usize; 3]) {
        let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let named = |params: &[&Param], what: &str| {
            let names: Vec<String> = params.iter().map(|p| format!("`{}`", p.name)).collect();
            let list = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
            format!("{}{list}", many(params.len(), what))
        };
        let ([reads, writes, numbers], [tensors, outs, scalars]) = (params, given);
        if (reads.len(), writes.len()) != (tensors, outs) {
            let has = [named(reads, "read-only pointer"), named(writes, "writable pointer")].join(" and ");
            let gives = [many(tensors, "tensor"), many(outs, "output")].join(" and ");
            let help = if reads.len() + writes.len() == tensors + outs {
                "declare what the function only reads as `const T *` (Rust: `*const T`); what it writes is an output of \
                 the call"
            } else {
                "tensors among the arguments go to `const T *` (Rust: `*const T`), outputs to `T *` (`*mut T`), in order"
            };
            diags.push(self.fault(&format!("it has {has}, the call gives {gives}")).help(help));
        }
        if numbers.len() != scalars {
            let m = format!("it has {}, the call gives {}", named(numbers, "number"), many(scalars, "number"));
            let help = "give numbers and symbolic extents among the arguments, or several at once as R.shape([n, m])";
            diags.push(self.fault(&m).help(help));
        }
    }

    fn pointer(&self, diags: &mut Diags, p: &Param, what: &str, tensor: Option<&TensorInfo>) {
        let (ParamType::Pointer { element, len, writable }, Some(t)) = (&p.ty, tensor) else { return };
        let Some(dtype) = t.dtype else {
            let m = format!("the element type of {what} is not known");
            diags.push(self.fault(&m).help("declare it, or state it with R.match_cast"));
            return;
        };
        let info = show_info(&StructInfo::Tensor(t.clone()));
        if element.is_some_and(|e| !same_memory(dtype, e)) {
            let m = format!("parameter `{}` is `{}`, {what} is {info}", p.name, p.text);
            let wanted = pointer(dtype, *writable, self.d.language);
            let convert = match (element, writable) {
                (Some(e), false) => format!(", or convert the argument to {e} with R.astype"),
                (Some(e), true) => format!(", or let the output be a tensor of {e}"),
                (None, _) => String::new(),
            };
            diags.push(self.fault(&m).help(format!("declare `{}` as `{wanted}`{convert}", p.name)));
        }
        let count = t.dims.fixed().and_then(|d| d.iter().try_fold(1u64, |n, d| n.checked_mul(u64::try_from(*d).ok()?)));
        // Packed elements are seen as their bytes.
        let elements =
            if dtype.bits < 8 && !dtype.is_bool() { count.and_then(|n| dtype.storage_bytes(n)) } else { count };
        if let Some(len) = len.filter(|n| Some(*n) != elements) {
            let m = format!("parameter `{}` is `{}`, {what} is {info}", p.name, p.text);
            let help = match elements {
                Some(n) => format!("the tensor has {n} elements, the array {len}"),
                None => "a tensor whose size is known at run time goes to a pointer and extents".to_string(),
            };
            diags.push(self.fault(&m).help(help));
        }
    }

    fn number(&self, diags: &mut Diags, p: &Param, s: &Passed) {
        let ParamType::Number(wanted) = p.ty else { return };
        let kind = |d: DType| {
            if d.is_bool() {
                "bool"
            } else if d.is_float() {
                "float"
            } else {
                "integer"
            }
        };
        // Truth values are integers in C.
        let fits = kind(wanted) == kind(s.dtype) || (wanted.is_integer() && s.dtype.is_bool());
        if !fits {
            let m = format!("parameter `{}` is `{}`, argument {} is a scalar of {}", p.name, p.text, s.label, s.dtype);
            let help = match s.value.as_ref().and_then(PrimExpr::as_int) {
                Some(v) if wanted.is_float() => format!("write {v}.0"),
                _ => {
                    let wanted_c = number(s.dtype, self.d.language);
                    format!("declare `{}` as `{wanted_c}`, or give a number of {wanted}", p.name)
                }
            };
            diags.push(self.fault(&m).help(help));
            return;
        }
        let Some(value) = s.value.as_ref().and_then(PrimExpr::as_int) else { return };
        let (Some(least), Some(most)) = (wanted.min_int(), wanted.max_int()) else { return };
        if !(least..=most).contains(&value) {
            let m = format!("parameter `{}` is `{}`, which does not hold {value}", p.name, p.text);
            diags.push(self.fault(&m).help(format!("it holds {least} to {most}")));
        }
    }
}

/// Whether memory of one type may be seen as the other: types that C has not are their bits.
fn same_memory(tensor: DType, c: DType) -> bool {
    let bits = match (tensor.code, tensor.bits) {
        (TypeCode::Bool, _) | (_, 0..=8) => DType::U8,
        _ => DType::U16,
    };
    let native = matches!(tensor.code, TypeCode::Int | TypeCode::UInt) && tensor.bits >= 8
        || matches!((tensor.code, tensor.bits), (TypeCode::Float, 32 | 64));
    tensor == c || (!native && c == bits)
}
