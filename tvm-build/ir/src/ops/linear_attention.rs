//! Linear attention: a state that each key and value is written to and each query read from.

use super::row::{attr, op, optional, tensor};
use super::show::show_tensor;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr, Var};
use crate::relax::{ArgKind, AttrDefault, AttrKind, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo, TensorInfo};
use crate::te::{Axes, Te};
use crate::tir::{PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[op(
    "nn.linear_attention",
    "for one time after the other the state S (batch, head, key, value), from `past` or zeros: S *= exp(decay) where it is \
     given, with beta v = beta (v - k S), S += k v, and the result scale * q S. query, key and value are (batch, time, head, \
     element), with a multiple of heads for the queries; decay is (batch, time, head, key or 1), beta (batch, time, head or 1). \
     Gives the results, as query, and the last state",
    &[
        tensor("query"),
        tensor("key"),
        tensor("value"),
        optional("past", ArgKind::Tensor),
        optional("decay", ArgKind::Tensor),
        optional("beta", ArgKind::Tensor),
    ],
    &[attr("scale", AttrKind::Float, AttrDefault::Float(1.0))],
    infer,
    Lower::Tir("linear_attention", lower),
    Pattern::Opaque,
)];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    for (i, rank) in [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4), (5, 3)] {
        if cx.is_given(i) {
            cx.expect_rank(i, &cx.tensor(i)?, rank)?;
            cx.expect_dtype(i, "floating point", DType::is_float)?;
        }
    }
    let dtype = cx.common_dtype(0, 1)?;
    cx.common_dtype(0, 2)?;
    let dims = |i: usize| -> Result<Vec<PrimExpr>, Diag> {
        let t = cx.tensor(i)?;
        let dims = t.dims.known().map(<[_]>::to_vec);
        dims.ok_or_else(|| cx.fail(format!("the shape of `{}` {} must be known", cx.arg_name(i), show_tensor(&t))))
    };
    let (q, k, v) = (dims(0)?, dims(1)?, dims(2)?);
    let misfit = |i: usize| -> Result<(), Diag> {
        let t = cx.tensor(i)?;
        Err(cx.fail(format!(
            "`{}` {} does not fit `query` {}",
            cx.arg_name(i),
            show_tensor(&t),
            show_tensor(&cx.tensor(0)?)
        )))
    };
    let heads = |d: &PrimExpr| d.as_int().filter(|n| *n > 0);
    match (heads(&q[2]), heads(&k[2])) {
        (Some(q), Some(k)) if q % k == 0 => {}
        _ => return misfit(1).map(|()| StructInfo::Object),
    }
    let batch_and_time = |d: &[PrimExpr]| cx.differ(&d[0], &q[0]) || cx.differ(&d[1], &q[1]);
    if batch_and_time(&k) || cx.differ(&k[3], &q[3]) {
        misfit(1)?;
    }
    if batch_and_time(&v) || cx.differ(&v[2], &k[2]) {
        misfit(2)?;
    }
    let state = vec![q[0].clone(), k[2].clone(), q[3].clone(), v[3].clone()];
    if cx.is_given(3) && dims(3)?.iter().zip(&state).any(|(a, b)| cx.differ(a, b)) {
        misfit(3)?;
    }
    let or_one = |a: &PrimExpr, b: &PrimExpr| a.is_int(1) || !cx.differ(a, b);
    if cx.is_given(4) {
        let d = dims(4)?;
        if batch_and_time(&d) || cx.differ(&d[2], &k[2]) || !or_one(&d[3], &q[3]) {
            misfit(4)?;
        }
    }
    if cx.is_given(5) {
        let d = dims(5)?;
        if batch_and_time(&d) || !or_one(&d[2], &k[2]) {
            misfit(5)?;
        }
    }
    let out = vec![q[0].clone(), q[1].clone(), q[2].clone(), v[3].clone()];
    let of_state = if cx.is_given(3) { cx.tensor(3)?.dtype } else { dtype };
    let tensor = |dims: Vec<PrimExpr>, dtype: Option<DType>| {
        StructInfo::Tensor(TensorInfo { dims: crate::relax::Dims::Known(dims), dtype })
    };
    Ok(StructInfo::Tuple(vec![tensor(out, dtype), tensor(state, of_state)]))
}

fn serial(name: &str, extent: &PrimExpr, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let var = Var::new(name, DType::I64);
    let body = body(var.expr());
    Stmt::serial(var, extent.clone(), body)
}

/// An element whose last axis may be of extent 1.
fn at(b: &Buffer, index: &[PrimExpr], last: PrimExpr, dtype: DType) -> PrimExpr {
    let one = b.shape.last().is_some_and(|d| d.is_int(1));
    let last = if one { PrimExpr::i64(0) } else { last };
    PrimExpr::load(b, [index, &[last]].concat()).cast(dtype)
}

/// The columns of the state do not depend on each other.
fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (q, k, v) = (cx.buffer(0)?, cx.buffer(1)?, cx.buffer(2)?);
    let given = |i: usize| cx.inputs.get(i).and_then(|b| b.first());
    let (past, decay, beta) = (given(3), given(4), given(5));
    let scale = cx.call.attr("scale").as_float().ok_or_else(|| cx.fail("`scale` must be a number"))?;
    let dtype = if q.dtype.bits > 32 { DType::F64 } else { DType::F32 };
    let infos = cx.out.tensors().unwrap_or_default();
    let [(Some(out_dims), Some(out_type)), (Some(state_dims), Some(state_type))] =
        [0, 1].map(|i| infos.get(i).map_or((None, None), |t| (t.dims.known(), t.dtype)))
    else {
        return Err(cx.fail("the results are not known in full"));
    };
    let heads = q.shape[2].as_int().zip(k.shape[2].as_int()).filter(|(_, k)| *k > 0);
    let group = heads.map(|(q, k)| q / k).ok_or_else(|| cx.fail("the numbers of heads must be fixed"))?;
    let sum = Buffer::new("read", out_dims.to_vec(), dtype);
    let state = Buffer::new("state", state_dims.to_vec(), dtype);
    let columns = [k.shape[0].clone(), k.shape[2].clone(), v.shape[3].clone()];
    let recalled = Buffer::new("recalled", columns.to_vec(), dtype);
    let (times, keys) = (&k.shape[1], &k.shape[3]);
    let mut te = Te::new();
    let outputs = [sum.clone(), state.clone(), recalled.clone()];
    te.block("linear_attention", Axes::Ax, &columns, &[], &outputs, |i, _| {
        let (n, h, m) = (&i[0], &i[1], &i[2]);
        let cell = |d: &PrimExpr| vec![n.clone(), h.clone(), d.clone(), m.clone()];
        let held = |d: &PrimExpr| PrimExpr::load(&state, cell(d));
        let hold = |d: &PrimExpr, e: PrimExpr| Stmt::store(&state, cell(d), e);
        let old = || PrimExpr::load(&recalled, i.to_vec());
        let recall = |e: PrimExpr| Stmt::store(&recalled, i.to_vec(), e);
        let start = serial("d", keys, |d| {
            hold(&d, past.map_or(PrimExpr::zero(dtype), |p| PrimExpr::load(p, cell(&d)).cast(dtype)))
        });
        let steps = serial("t", times, |t| {
            let here = [n.clone(), t.clone(), h.clone()];
            let key = |d: &PrimExpr| at(k, &here, d.clone(), dtype);
            let own = at(v, &here, m.clone(), dtype);
            let mut body = Vec::new();
            if let Some(decay) = decay {
                body.push(serial("d", keys, |d| {
                    let factor = PrimExpr::call(Intrinsic::Exp, vec![at(decay, &here, d.clone(), dtype)]);
                    hold(&d, held(&d) * factor)
                }));
            }
            let written = match beta {
                None => own,
                Some(beta) => {
                    let rate = at(beta, &here[..2], h.clone(), dtype);
                    body.push(recall(PrimExpr::zero(dtype)));
                    body.push(serial("d", keys, |d| recall(old() + held(&d) * key(&d))));
                    body.push(recall(rate * (own - old())));
                    old()
                }
            };
            body.push(serial("d", keys, |d| hold(&d, held(&d) + key(&d) * written.clone())));
            body.push(serial("g", &PrimExpr::i64(group), |g| {
                let head = h.clone() * group + g;
                let to = vec![n.clone(), t.clone(), head.clone(), m.clone()];
                let query =
                    |d: &PrimExpr| PrimExpr::load(q, vec![n.clone(), t.clone(), head.clone(), d.clone()]).cast(dtype);
                let read = || PrimExpr::load(&sum, to.clone());
                let zero = Stmt::store(&sum, to.clone(), PrimExpr::zero(dtype));
                let add = serial("d", keys, |d| Stmt::store(&sum, to.clone(), read() + query(&d) * held(&d)));
                Stmt::seq([zero, add])
            }));
            Stmt::seq(body)
        });
        // Nothing is recalled without beta; the scratch is written all the same.
        (None, Stmt::seq([recall(PrimExpr::zero(dtype)), start, steps]))
    });
    let out = te.compute("output", Axes::Ax, out_dims, out_type, |i| {
        PrimExpr::load(&sum, i.to_vec()) * PrimExpr::number(dtype, scale)
    });
    let last = te.compute("last_state", Axes::Ax, state_dims, state_type, |i| PrimExpr::load(&state, i.to_vec()));
    Ok(te.finish(cx.inputs, &[out, last], cx.call.span))
}
