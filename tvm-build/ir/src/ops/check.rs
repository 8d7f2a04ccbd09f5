//! What holds for every call of the table: arguments and attributes are complete and of the declared kinds.

use super::show::show_info;
use crate::attrs::AttrValue;
use crate::diag::Diag;
use crate::relax::{ArgDef, ArgKind, AttrDef, AttrKind, Call, Leaf, Op, StructInfo};
use crate::span::Span;

/// A complete call: missing optional arguments become [`Leaf::Absent`], missing attributes their defaults.
/// Errors on too many or missing arguments, unknown, duplicate, missing or ill-typed attributes.
pub fn make_call(op: Op, args: Vec<Leaf>, attrs: &[(&str, AttrValue)], span: Span) -> Result<Call, Diag> {
    let def = op.def();
    let fail = |message: String| Diag::error(span, message);
    let mut args = args;
    if args.len() > def.args.len() {
        let message = format!("R.{} takes {} argument(s), {} given", def.name, def.args.len(), args.len());
        return Err(fail(message).help(signature(op)));
    }
    while args.len() < def.args.len() {
        args.push(Leaf::Absent);
    }
    for (i, (name, _)) in attrs.iter().enumerate() {
        if !def.attrs.iter().any(|a| a.name == *name) {
            return Err(fail(format!("R.{} has no attribute `{name}`", def.name)).help(signature(op)));
        }
        if attrs[..i].iter().any(|(n, _)| n == name) {
            return Err(fail(format!("R.{}: attribute `{name}` is given twice", def.name)));
        }
    }
    let mut values = Vec::with_capacity(def.attrs.len());
    for a in def.attrs {
        let given = attrs.iter().find(|(n, _)| *n == a.name).map(|(_, v)| normalize(a, v.clone()));
        match given.or_else(|| a.default.map(|d| d.value())) {
            Some(v) => values.push(v),
            None => {
                return Err(fail(format!("R.{}: attribute `{}` must be given", def.name, a.name)).help(signature(op)));
            }
        }
    }
    let mut call = Call { op, args, attrs: values, span };
    check_call(&call)?;
    (def.prepare)(&mut call).map_err(|d| d.at(span))?;
    Ok(call)
}

/// `R.name(x, y, attr=…)`, for help texts.
pub(crate) fn signature(op: Op) -> String {
    let def = op.def();
    let args = def.args.iter().map(|a| if a.optional { format!("{}=None", a.name) } else { a.name.to_string() });
    let attrs =
        def.attrs.iter().map(|a| if a.default.is_some() { format!("{}=…", a.name) } else { a.name.to_string() });
    format!("the op is R.{}({})", def.name, args.chain(attrs).collect::<Vec<_>>().join(", "))
}

/// A value in the form the row declares: one integer as a list of one, an integer as a float, a string as a dtype.
fn normalize(def: &AttrDef, value: AttrValue) -> AttrValue {
    match (def.kind, value) {
        (AttrKind::Ints | AttrKind::OptInts, AttrValue::Int(v)) => AttrValue::List(vec![AttrValue::Int(v)]),
        (AttrKind::Float, AttrValue::Int(v)) => AttrValue::Float(v as f64),
        (AttrKind::Bool, AttrValue::Int(v @ (0 | 1))) => AttrValue::Bool(v == 1),
        (AttrKind::DType, AttrValue::None) => AttrValue::DType(crate::dtype::DType::VOID),
        (AttrKind::DType, AttrValue::Str(s)) => match s.as_str() {
            "" => AttrValue::DType(crate::dtype::DType::VOID),
            text => text.parse().map_or(AttrValue::Str(s.clone()), AttrValue::DType),
        },
        (_, v) => v,
    }
}

/// Checks a call against its row.
pub(super) fn check_call(call: &Call) -> Result<(), Diag> {
    let def = call.op.def();
    let fail = |message: String| Diag::error(call.span, message).help(signature(call.op));
    if call.args.len() != def.args.len() {
        return Err(fail(format!("R.{} takes {} argument(s), {} given", def.name, def.args.len(), call.args.len())));
    }
    if call.attrs.len() != def.attrs.len() {
        let message = format!("R.{} has {} attribute(s), {} given", def.name, def.attrs.len(), call.attrs.len());
        return Err(fail(message));
    }
    for (a, leaf) in def.args.iter().zip(&call.args) {
        check_arg(a, leaf).map_err(|e| fail(format!("R.{}: argument `{}` {e}", def.name, a.name)))?;
    }
    for (a, value) in def.attrs.iter().zip(&call.attrs) {
        if !legal(a.kind, value) {
            let want = describe(a.kind);
            return Err(fail(format!("R.{}: attribute `{}` must be {want}, not {value}", def.name, a.name)));
        }
    }
    Ok(())
}

fn check_arg(def: &ArgDef, leaf: &Leaf) -> Result<(), String> {
    if matches!(leaf, Leaf::Absent) {
        return if def.optional { Ok(()) } else { Err("must be given".into()) };
    }
    let Some(info) = leaf.info() else {
        return if def.kind == ArgKind::Any {
            Ok(())
        } else {
            Err("must be a value, not a function of the module".into())
        };
    };
    let rank0 = |s: &StructInfo| s.as_tensor().is_some_and(|t| matches!(t.dims.rank(), Some(0) | None));
    let (fits, want) = match def.kind {
        ArgKind::Tensor => (matches!(info, StructInfo::Tensor(_)), "a tensor"),
        ArgKind::Operand => (matches!(info, StructInfo::Tensor(_) | StructInfo::Prim(..)), "a tensor or a scalar"),
        ArgKind::Tensors => {
            let flat = |f: &StructInfo| matches!(f, StructInfo::Tensor(_));
            (matches!(&info, StructInfo::Tuple(fields) if fields.iter().all(flat)), "a tuple of tensors")
        }
        ArgKind::Shape => (matches!(info, StructInfo::Shape(_)), "a shape"),
        ArgKind::Prim => (matches!(info, StructInfo::Prim(..)) || rank0(&info), "a scalar"),
        ArgKind::Any => (true, ""),
    };
    if fits { Ok(()) } else { Err(format!("must be {want}, not {}", show_info(&info))) }
}

/// Whether a value is of a kind.
pub(super) fn legal(kind: AttrKind, value: &AttrValue) -> bool {
    let none = matches!(value, AttrValue::None);
    let ints = |v: &AttrValue| matches!(v, AttrValue::List(_)) && v.as_ints().is_some();
    match kind {
        AttrKind::Bool => matches!(value, AttrValue::Bool(_)),
        AttrKind::Int => value.as_int().is_some(),
        AttrKind::OptInt => none || value.as_int().is_some(),
        AttrKind::Float => value.as_float().is_some(),
        AttrKind::Str => value.as_str().is_some(),
        AttrKind::DType => value.as_dtype().is_some(),
        AttrKind::Ints => ints(value),
        AttrKind::OptInts => none || ints(value),
        AttrKind::Any => true,
    }
}

fn describe(kind: AttrKind) -> &'static str {
    match kind {
        AttrKind::Bool => "True or False",
        AttrKind::Int => "an integer",
        AttrKind::OptInt => "an integer or None",
        AttrKind::Float => "a number",
        AttrKind::Str => "a string",
        AttrKind::DType => "a data type",
        AttrKind::Ints => "a list of integers",
        AttrKind::OptInts => "a list of integers or None",
        AttrKind::Any => "a value",
    }
}
