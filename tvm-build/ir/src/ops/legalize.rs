//! Lowering a call: buffers for its arguments, the row's lowering, and the result packed for the module.

use super::show::show_info;
use crate::attrs::AttrValue;
use crate::constant::Constant;
use crate::diag::Diag;
use crate::dtype::{DType, TypeCode};
use crate::name::Name;
use crate::prim::{Buffer, CmpOp, Intrinsic, PrimExpr, PrimKind, Var, free_vars, substitute};
use crate::relax::build::BindingBuilder;
use crate::relax::{ArgKind, Call, Dims, Expr, Leaf, Legalized, Lower, LowerCx, RewriteCx, StructInfo, TensorInfo};
use crate::tir::{Param, PrimFunc, visit_exprs};
use std::collections::{BTreeMap, BTreeSet};

/// Makes a call simpler. `out` is its struct info. The bindings of [`Legalized::Bindings`] may hold calls that are
/// to be legalized in turn. Errors when the shape or type of an argument or of the result is not known.
pub fn legalize(call: &Call, out: &StructInfo) -> Result<Legalized, Diag> {
    let located = |d: Diag| d.at(call.span);
    match &call.op.def().lower {
        Lower::Builtin(_) => Ok(Legalized::Keep),
        Lower::Ops(f) => {
            let mut builder = BindingBuilder { span: call.span, ..BindingBuilder::new() };
            let result = f(&mut RewriteCx { call, out, builder: &mut builder }).map_err(located)?;
            Ok(Legalized::Bindings { bindings: builder.bindings, result })
        }
        Lower::Tir(hint, f) => {
            if let Some(opened) = open_tuples(call, out)? {
                return Ok(opened);
            }
            to_tir(call, out, hint, *f).map_err(located)
        }
    }
}

fn to_tir(
    call: &Call,
    out: &StructInfo,
    hint: &str,
    lower: fn(&LowerCx<'_>) -> Result<PrimFunc, Diag>,
) -> Result<Legalized, Diag> {
    let fresh = fresh_vars(call, out);
    let map: BTreeMap<Var, PrimExpr> = fresh.iter().map(|(old, new)| (old.clone(), new.expr())).collect();
    let literal = literal_operand(call);
    let mut args = Vec::new();
    let mut inputs = Vec::new();
    for (i, (leaf, def)) in call.args.iter().zip(call.op.def().args).enumerate() {
        let mut buffers = Vec::new();
        let leaves = match leaf {
            Leaf::Tuple(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for l in leaves {
            let constant = matches!(l, Leaf::Const(c) if c.shape().is_empty());
            if literal == Some(i) || (def.kind == ArgKind::Prim && constant) {
                continue;
            }
            if let Some(StructInfo::Tensor(t)) = l.info() {
                let letter = u8::try_from(args.len()).ok().filter(|n| *n < 26).map_or('T', |n| char::from(b'A' + n));
                buffers.push(buffer(call, def.name, l, &t, letter, &map)?);
                args.push(l.clone());
            }
        }
        inputs.push(buffers);
    }
    complete(call, out)?;
    let inner = Call {
        args: call.args.iter().map(|l| leaf_substituted(l, &map)).collect(),
        attrs: call.attrs.iter().map(|a| attr_substituted(a, &map)).collect(),
        ..call.clone()
    };
    let inner_out = out.substitute(&map);
    let mut func = lower(&LowerCx { call: &inner, out: &inner_out, inputs: &inputs })?;
    strings_only_move(call, &func)?;
    // What a lowering does not read (the shape-giving tensor of `zeros_like`) is no argument.
    let passed: Vec<Leaf> = inputs
        .iter()
        .flatten()
        .zip(args)
        .filter(|(b, _)| func.buffers().any(|p| p == *b))
        .map(|(_, leaf)| leaf)
        .collect();
    let unbound = unbound_vars(&func);
    let mut tir_vars = Vec::new();
    for (old, new) in &fresh {
        if unbound.contains(new) {
            func.params.push(Param::Scalar(new.clone()));
            tir_vars.push(old.expr());
        }
    }
    Ok(Legalized::Tir { name: hint.into(), func, args: passed, tir_vars })
}

/// An error if a function computes with strings: as elements they are numbers of texts, which mean nothing but equality.
fn strings_only_move(call: &Call, func: &PrimFunc) -> Result<(), Diag> {
    if func.buffers().all(|b| b.dtype != DType::TEXT) {
        return Ok(());
    }
    let text = |e: &PrimExpr| e.dtype().scalar() == DType::TEXT;
    let mut computes = false;
    visit_exprs(&func.body, &mut |e| {
        computes |= match e.kind() {
            PrimKind::Var(_)
            | PrimKind::Load(..)
            | PrimKind::Select(..)
            | PrimKind::Let(..)
            | PrimKind::Broadcast(_) => false,
            PrimKind::Call(Intrinsic::IfThenElse, _) | PrimKind::Cmp(CmpOp::Eq | CmpOp::Ne, ..) => false,
            _ => text(e) || e.children().into_iter().any(text),
        };
    });
    if computes {
        let message =
            format!("R.{} is not defined for strings, which can be moved and compared for equality", call.op.name());
        return Err(Diag::error(call.span, message));
    }
    Ok(())
}

/// An error unless the result is known in full.
fn complete(call: &Call, out: &StructInfo) -> Result<(), Diag> {
    let known = |t: &&TensorInfo| t.dims.known().is_some() && t.dtype.is_some();
    match out.tensors() {
        Some(t) if t.iter().all(known) => Ok(()),
        _ => {
            let name = call.op.name();
            let message = format!("R.{name}: the result is {}, which is not known in full", show_info(out));
            Err(Diag::error(call.span, message).help("state shape and data type before it with R.match_cast"))
        }
    }
}

/// The operand that becomes a literal of the PrimFunc: the last constant of rank 0 of several operands.
fn literal_operand(call: &Call) -> Option<usize> {
    let scalar = |l: &Leaf| matches!(l, Leaf::Const(c) if scalar_constant(c).is_some());
    let defs = call.op.def().args;
    if defs.iter().filter(|d| d.kind == ArgKind::Operand).count() < 2 {
        return None;
    }
    (0..defs.len()).rev().find(|i| defs[*i].kind == ArgKind::Operand && call.args.get(*i).is_some_and(scalar))
}

/// When an argument is a variable holding a tuple of tensors: its fields as bindings, and the call of them.
fn open_tuples(call: &Call, out: &StructInfo) -> Result<Option<Legalized>, Diag> {
    let mut builder = BindingBuilder { span: call.span, ..BindingBuilder::new() };
    let mut changed = call.clone();
    for arg in &mut changed.args {
        let Leaf::Var(v) = &*arg else { continue };
        let StructInfo::Tuple(fields) = v.info() else { continue };
        let mut items = Vec::new();
        for (i, info) in fields.iter().enumerate() {
            let value = Expr::TupleGetItem(Leaf::Var(v.clone()), i);
            items.push(Leaf::Var(builder.emit_as("lv", value, info.clone())));
        }
        *arg = Leaf::Tuple(items);
    }
    if builder.bindings.is_empty() {
        return Ok(None);
    }
    let result = Leaf::Var(builder.emit_as("lv", Expr::Call(changed), out.clone()));
    Ok(Some(Legalized::Bindings { bindings: builder.bindings, result }))
}

/// An input buffer, named after the argument's variable, or by a letter.
fn buffer(
    call: &Call,
    arg: &str,
    leaf: &Leaf,
    t: &TensorInfo,
    letter: char,
    map: &BTreeMap<Var, PrimExpr>,
) -> Result<Buffer, Diag> {
    let name = match leaf {
        Leaf::Var(v) => sanitized(v.name()),
        _ => letter.to_string().into(),
    };
    match (&t.dims, t.dtype) {
        (Dims::Known(dims), Some(dtype)) => {
            Ok(Buffer::new(name, dims.iter().map(|d| substitute(d, map)).collect(), dtype))
        }
        _ => {
            let what = show_info(&StructInfo::Tensor(t.clone()));
            let message = format!("R.{}: argument `{arg}` is {what}, which is not known in full", call.op.name());
            Err(Diag::error(call.span, message).help("state its shape and data type with R.match_cast"))
        }
    }
}

/// A name of letters, digits and underscores that does not begin with a digit.
fn sanitized(name: &Name) -> Name {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(legal) && name.chars().next().is_some_and(|c| !c.is_ascii_digit()) {
        return name.clone();
    }
    let mut out: String = name.chars().map(|c| if legal(c) { c } else { '_' }).collect();
    if out.chars().next().is_none_or(|c| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out.into()
}

/// The symbolic variables of a call and its result, in order, each with a new one for the PrimFunc.
fn fresh_vars(call: &Call, out: &StructInfo) -> Vec<(Var, Var)> {
    let mut found: Vec<(Var, Var)> = Vec::new();
    let mut add = |e: &PrimExpr| {
        for v in free_vars(e) {
            if !found.iter().any(|(old, _)| *old == v) {
                let copy = v.copy();
                found.push((v, copy));
            }
        }
    };
    for info in call.args.iter().filter_map(Leaf::info) {
        info.visit_exprs(&mut add);
    }
    call.attrs.iter().for_each(|a| attr_exprs(a, &mut add));
    out.visit_exprs(&mut add);
    found
}

fn attr_exprs(a: &AttrValue, f: &mut dyn FnMut(&PrimExpr)) {
    match a {
        AttrValue::Prim(e) => f(e),
        AttrValue::List(items) => items.iter().for_each(|i| attr_exprs(i, f)),
        AttrValue::Map(m) => m.values().for_each(|v| attr_exprs(v, f)),
        _ => {}
    }
}

fn attr_substituted(a: &AttrValue, map: &BTreeMap<Var, PrimExpr>) -> AttrValue {
    match a {
        AttrValue::Prim(e) => AttrValue::Prim(substitute(e, map)),
        AttrValue::List(items) => AttrValue::List(items.iter().map(|i| attr_substituted(i, map)).collect()),
        other => other.clone(),
    }
}

fn leaf_substituted(leaf: &Leaf, map: &BTreeMap<Var, PrimExpr>) -> Leaf {
    match leaf {
        Leaf::Var(v) => Leaf::Var(crate::relax::Var::at(v.name().clone(), v.info().substitute(map), v.span())),
        Leaf::Prim(e) => Leaf::Prim(substitute(e, map)),
        Leaf::Shape(dims) => Leaf::Shape(dims.iter().map(|d| substitute(d, map)).collect()),
        Leaf::Tuple(items) => Leaf::Tuple(items.iter().map(|l| leaf_substituted(l, map)).collect()),
        other => other.clone(),
    }
}

/// The variables a PrimFunc reads that no parameter binds.
fn unbound_vars(func: &PrimFunc) -> BTreeSet<Var> {
    let mut used = crate::tir::stmt_free_vars(&func.body);
    let mut add = |e: &PrimExpr| used.extend(free_vars(e));
    func.buffers().flat_map(|b| &b.shape).for_each(&mut add);
    if let Some(root) = func.root() {
        root.allocs.iter().flat_map(|b| &b.shape).for_each(&mut add);
    }
    for b in func.buffers() {
        for v in b.shape.iter().filter_map(PrimExpr::as_var) {
            used.remove(v);
        }
    }
    used
}

/// The literal of a constant of rank 0; `None` for other ranks and for types without literals.
pub(super) fn scalar_constant(c: &Constant) -> Option<PrimExpr> {
    if !c.shape().is_empty() {
        return None;
    }
    let dtype = c.dtype();
    let mut bytes = [0u8; 8];
    let data: &[u8] = c.data();
    bytes.get_mut(..data.len())?.copy_from_slice(data);
    let raw = u64::from_le_bytes(bytes);
    let low32 = u32::try_from(raw & 0xffff_ffff).ok()?;
    let low16 = u16::try_from(raw & 0xffff).ok()?;
    match dtype {
        DType::F64 => Some(PrimExpr::float(dtype, f64::from_bits(raw))),
        DType::F32 => Some(PrimExpr::float(dtype, f64::from(f32::from_bits(low32)))),
        DType::F16 => Some(PrimExpr::float(dtype, half_to_f64(low16))),
        DType::BF16 => Some(PrimExpr::float(dtype, f64::from(f32::from_bits(u32::from(low16) << 16)))),
        _ if matches!(dtype.code, TypeCode::Int | TypeCode::UInt | TypeCode::Bool) => {
            Some(PrimExpr::int(dtype, i64::from_le_bytes(bytes)))
        }
        _ => None,
    }
}

/// The value of an IEEE half.
fn half_to_f64(h: u16) -> f64 {
    let sign = if h & 0x8000 != 0 { -1.0 } else { 1.0 };
    let mantissa = f64::from(h & 0x3ff);
    match (h >> 10) & 0x1f {
        0 => sign * mantissa * 2f64.powi(-24),
        31 if h & 0x3ff == 0 => sign * f64::INFINITY,
        31 => f64::NAN,
        e => sign * (1.0 + mantissa / 1024.0) * 2f64.powi(i32::from(e) - 15),
    }
}
