//! Whether struct info of one place fits another.

use crate::arith::Analyzer;
use crate::dtype::DType;
use crate::ops::{show_dims, show_info};
use crate::prim::{PrimExpr, Var, substitute};
use crate::relax::{Dims, StructInfo, TensorInfo};
use crate::tir::{Param, PrimFunc, Stmt, visit_stmt};
use std::collections::BTreeMap;

/// Whether two dimensions are known to differ.
pub(super) fn differ(a: &PrimExpr, b: &PrimExpr, analyzer: &Analyzer) -> bool {
    let distance = a.cast(DType::I64) - b.cast(DType::I64);
    analyzer.simplify(&distance).as_int().is_some_and(|v| v != 0)
}

fn dims_conflict(a: &Dims, b: &Dims, analyzer: &Analyzer) -> bool {
    if let (Some(x), Some(y)) = (a.rank(), b.rank()) {
        if x != y {
            return true;
        }
    }
    match (a.known(), b.known()) {
        (Some(x), Some(y)) => x.iter().zip(y).any(|(x, y)| differ(x, y, analyzer)),
        _ => false,
    }
}

fn tensor_conflict(a: &TensorInfo, b: &TensorInfo, analyzer: &Analyzer) -> bool {
    matches!((a.dtype, b.dtype), (Some(x), Some(y)) if x != y) || dims_conflict(&a.dims, &b.dims, analyzer)
}

/// Whether no value is of both: the kinds, types, ranks or dimensions contradict each other.
pub(crate) fn conflict(a: &StructInfo, b: &StructInfo, analyzer: &Analyzer) -> bool {
    use StructInfo as S;
    match (a, b) {
        (S::Object, _) | (_, S::Object) => false,
        (S::Tensor(x), S::Tensor(y)) => tensor_conflict(x, y, analyzer),
        (S::Shape(x), S::Shape(y)) => dims_conflict(x, y, analyzer),
        (S::Prim(d, x), S::Prim(e, y)) => {
            d != e || matches!((x, y), (Some(x), Some(y)) if x.dtype().is_integer() && differ(x, y, analyzer))
        }
        (S::Tuple(x), S::Tuple(y)) => x.len() != y.len() || x.iter().zip(y).any(|(x, y)| conflict(x, y, analyzer)),
        (S::Func(x), S::Func(y)) => {
            conflict(&x.ret, &y.ret, analyzer)
                || matches!((&x.params, &y.params), (Some(p), Some(q)) if p.len() != q.len())
        }
        // A scalar may stand for a tensor of rank 0.
        (S::Prim(d, _), S::Tensor(t)) | (S::Tensor(t), S::Prim(d, _)) => {
            t.dtype.is_some_and(|e| e != *d) || matches!(t.dims.rank(), Some(r) if r != 0)
        }
        _ => true,
    }
}

/// Whether `declared` knows a dimension, rank or type that `value` does not tell.
pub(super) fn knows_more(declared: &StructInfo, value: &StructInfo) -> bool {
    use StructInfo as S;
    let dims =
        |a: &Dims, b: &Dims| (a.known().is_some() && b.known().is_none()) || (a.rank().is_some() && b.rank().is_none());
    match (declared, value) {
        (S::Tensor(a), S::Tensor(b)) => dims(&a.dims, &b.dims) || (a.dtype.is_some() && b.dtype.is_none()),
        (S::Shape(a), S::Shape(b)) => dims(a, b),
        (S::Tuple(a), S::Tuple(b)) => a.iter().zip(b).any(|(a, b)| knows_more(a, b)),
        (S::Object, _) => false,
        (_, S::Object) => true,
        _ => false,
    }
}

/// Binds the variables that stand alone in `param` to what `arg` has there. Bound ones are kept.
pub(super) fn bind(param: &StructInfo, arg: &StructInfo, map: &mut BTreeMap<Var, PrimExpr>) {
    use StructInfo as S;
    match (param, arg) {
        (S::Tensor(TensorInfo { dims: Dims::Known(p), .. }), S::Tensor(TensorInfo { dims: Dims::Known(a), .. }))
        | (S::Shape(Dims::Known(p)), S::Shape(Dims::Known(a))) => bind_dims(p, a, map),
        (S::Prim(_, Some(p)), S::Prim(_, Some(a))) => bind_dims(std::slice::from_ref(p), std::slice::from_ref(a), map),
        (S::Tuple(p), S::Tuple(a)) => p.iter().zip(a).for_each(|(p, a)| bind(p, a, map)),
        _ => {}
    }
}

/// As [`bind`], of dimensions.
fn bind_dims(param: &[PrimExpr], arg: &[PrimExpr], map: &mut BTreeMap<Var, PrimExpr>) {
    for (p, a) in param.iter().zip(arg) {
        if let Some(v) = p.as_var() {
            map.entry(v.clone()).or_insert_with(|| a.cast(v.dtype()));
        }
    }
}

/// What is wrong when `arg` is given for a parameter, whose variables are bound by `map`.
pub(crate) fn misfit(
    param: &StructInfo,
    arg: &StructInfo,
    map: &BTreeMap<Var, PrimExpr>,
    analyzer: &Analyzer,
) -> Option<String> {
    let want = param.substitute(map);
    conflict(&want, arg, analyzer).then(|| format!("must be {}, it is {}", show_info(&want), show_info(arg)))
}

/// What is wrong when a tensor is given for a buffer of a PrimFunc.
fn buffer_misfit(
    buffer: &crate::prim::Buffer,
    arg: &TensorInfo,
    map: &BTreeMap<Var, PrimExpr>,
    analyzer: &Analyzer,
) -> Option<String> {
    if arg.dtype.is_some_and(|d| d != buffer.dtype) || arg.dims.rank().is_some_and(|r| r != buffer.shape.len()) {
        return Some(format!(
            "must be {} {}, it is {}",
            show_dims(&buffer.shape),
            buffer.dtype,
            show_info(&StructInfo::Tensor(arg.clone()))
        ));
    }
    let own: Vec<PrimExpr> = buffer.shape.iter().map(|e| substitute(e, map)).collect();
    let wrong = arg.dims.known()?.iter().zip(&own).any(|(a, b)| differ(a, b, analyzer));
    wrong.then(|| format!("must be {}, it is {}", show_dims(&own), show_info(&StructInfo::Tensor(arg.clone()))))
}

/// Part of a call of a PrimFunc.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallPart {
    /// The call as a whole.
    Call,
    /// An argument.
    Argument(usize),
    /// An output, counted among those that have a parameter of their own.
    Output(usize),
    /// A scalar argument.
    Scalar(usize),
}

/// What a call of a PrimFunc sees of it.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    /// Its parameters.
    pub(crate) params: Vec<Param>,
    /// For each parameter whether the body stores to it.
    pub(crate) written: Vec<bool>,
}

impl Callee {
    /// Of a function.
    pub(crate) fn of(func: &PrimFunc) -> Callee {
        let mut written = vec![false; func.params.len()];
        visit_stmt(&func.body, &mut |s| {
            if let Stmt::Store(s) = s {
                for (w, p) in written.iter_mut().zip(&func.params) {
                    *w |= matches!(p, Param::Buffer(b) if *b == s.buffer);
                }
            }
        });
        Callee { params: func.params.clone(), written }
    }
}

/// What is wrong when a PrimFunc is called with arguments, outputs of its own and scalars, in this order: their number,
/// kinds, types, ranks and dimensions must fit, and of the arguments those alone are written that an output overwrites
/// (`inplace`).
pub(crate) fn call_tir_faults(
    name: &str,
    callee: &Callee,
    args: &[Option<StructInfo>],
    outputs: &[&TensorInfo],
    tir_vars: &[PrimExpr],
    inplace: &[i64],
    analyzer: &Analyzer,
) -> Vec<(CallPart, String)> {
    let params = callee.params.as_slice();
    let (a, o, t) = (args.len(), outputs.len(), tir_vars.len());
    if a + o + t != params.len() {
        let takes = params.len();
        let s = |n: usize| if n == 1 { "" } else { "s" };
        let scalars = if t == 0 { String::new() } else { format!(" and {t} scalar{}", s(t)) };
        let given = format!("{a} argument{}, {o} output{}{scalars}", s(a), s(o));
        let names: Vec<&str> = params.iter().map(Param::name).collect();
        let message = format!("`{name}` takes {takes} parameter{} ({}); {given} given", s(takes), names.join(", "));
        return vec![(CallPart::Call, message)];
    }
    let arguments = args.iter().enumerate().map(|(i, info)| (CallPart::Argument(i), info.clone()));
    let outputs =
        outputs.iter().enumerate().map(|(i, t)| (CallPart::Output(i), Some(StructInfo::Tensor((*t).clone()))));
    let scalars = tir_vars.iter().enumerate();
    let scalars = scalars.map(|(i, e)| (CallPart::Scalar(i), Some(StructInfo::Prim(e.dtype(), Some(e.clone())))));
    let given: Vec<(CallPart, Option<StructInfo>)> = arguments.chain(outputs).chain(scalars).collect();
    let mut map = BTreeMap::new();
    for (p, (_, info)) in params.iter().zip(&given) {
        match (p, info) {
            (Param::Buffer(b), Some(StructInfo::Tensor(TensorInfo { dims: Dims::Known(d), .. }))) => {
                bind_dims(&b.shape, d, &mut map);
            }
            (Param::Scalar(v), Some(StructInfo::Prim(_, Some(e)))) => {
                map.entry(v.clone()).or_insert_with(|| e.clone());
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    for (i, (p, written)) in params.iter().zip(&callee.written).take(args.len()).enumerate() {
        if *written && !inplace.iter().any(|v| usize::try_from(*v) == Ok(i)) {
            let message = format!(
                "`{name}` writes its parameter `{}`, which is an input here: outputs are the parameters after the inputs",
                p.name()
            );
            out.push((CallPart::Argument(i), message));
        }
    }
    for (p, (part, info)) in params.iter().zip(&given) {
        let Some(info) = info else { continue };
        let wrong = match (p, info) {
            (Param::Buffer(b), StructInfo::Tensor(t)) => buffer_misfit(b, t, &map, analyzer),
            (Param::Buffer(_), StructInfo::Object) | (Param::Scalar(_), StructInfo::Prim(..)) => continue,
            (Param::Buffer(_), other) => Some(format!("must be a tensor, it is {}", show_info(other))),
            (Param::Scalar(_), other) => Some(format!("must be a scalar, it is {}", show_info(other))),
        };
        let what = match part {
            CallPart::Call | CallPart::Argument(_) => "the argument",
            CallPart::Output(_) => "the output",
            CallPart::Scalar(_) => "the scalar",
        };
        out.extend(wrong.map(|w| (*part, format!("{what} for parameter `{}` of `{name}` {w}", p.name()))));
    }
    out
}
