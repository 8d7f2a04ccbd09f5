//! Linear algebra beyond products.

use super::row::{op, tensor};
use super::scatter::nest;
use super::show::show_tensor;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr, Var};
use crate::relax::{Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::{IfStmt, LetStmt, PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[op(
    "linalg.det",
    "determinants of the square matrices in the last two axes",
    &[tensor("x")],
    &[],
    infer,
    Lower::Tir("det", lower),
    Pattern::Opaque,
)];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    let x = cx.tensor(0)?;
    match (x.dims.rank(), x.dims.known()) {
        (Some(0 | 1), _) => Err(cx.fail(format!("`x` {} must have two axes or more", show_tensor(&x)))),
        (_, Some([.., n, m])) if cx.differ(n, m) => {
            Err(cx.fail(format!("the matrices of `x` {} must be square", show_tensor(&x))))
        }
        (_, Some([batch @ .., _, _])) => cx.result(Dims::Known(batch.to_vec()), x.dtype),
        (rank, _) => cx.result(rank.map_or(Dims::Unknown, |r| Dims::Rank(r - 2)), x.dtype),
    }
}

fn serial(name: &str, extent: PrimExpr, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let var = Var::new(name, DType::I64);
    let body = body(var.expr());
    Stmt::serial(var, extent, body)
}

fn given(cond: PrimExpr, then: Stmt) -> Stmt {
    Stmt::If(Box::new(IfStmt { cond, then, otherwise: None }))
}

fn with(name: &str, value: PrimExpr, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let var = Var::new(name, value.dtype());
    let body = body(var.expr());
    Stmt::Let(Box::new(LetStmt { var, value, body }))
}

/// Gaussian elimination; the row with the largest element of a column moves up before the column is cleared.
fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let dtype = if x.dtype.bits > 32 { DType::F64 } else { DType::F32 };
    let (batch, n) = (x.shape[..x.shape.len() - 2].to_vec(), x.shape[x.shape.len() - 1].clone());
    let matrix = Buffer::new("matrix", x.shape.clone(), dtype);
    let product = Buffer::new("product", batch.clone(), dtype);
    let mut te = Te::new();
    te.block("eliminate", Axes::Ax, &batch, &[], &[matrix.clone(), product.clone()], |b, _| {
        let at = |i: &PrimExpr, j: &PrimExpr| [b, &[i.clone(), j.clone()]].concat();
        let load = |i: &PrimExpr, j: &PrimExpr| PrimExpr::load(&matrix, at(i, j));
        let store = |i: &PrimExpr, j: &PrimExpr, v: PrimExpr| Stmt::store(&matrix, at(i, j), v);
        let det = || PrimExpr::load(&product, b.to_vec());
        let set = |v: PrimExpr| Stmt::store(&product, b.to_vec(), v);
        let size = |e: PrimExpr| PrimExpr::call(Intrinsic::Abs, vec![e]);
        let copy = nest(&[n.clone(), n.clone()], "c", |i| {
            store(&i[0], &i[1], PrimExpr::load(x, at(&i[0], &i[1])).cast(dtype))
        });
        let columns = serial("k", n.clone(), |k| {
            let below = |name: &str, body: &dyn Fn(PrimExpr) -> Stmt| {
                serial(name, n.clone() - 1 - k.clone(), |r| body(r + k.clone() + 1))
            };
            let swap = below("r", &|r| {
                let rows = serial("j", n.clone(), |j| {
                    with("old", load(&r, &j), |old| Stmt::seq([store(&r, &j, load(&k, &j)), store(&k, &j, old)]))
                });
                let turn = set(PrimExpr::zero(dtype) - det());
                given(size(load(&k, &k)).lt(size(load(&r, &k))), Stmt::seq([rows, turn]))
            });
            let clear = below("s", &|r| {
                with("factor", load(&r, &k) / load(&k, &k), |factor| {
                    serial("j", n.clone(), |j| store(&r, &j, load(&r, &j) - factor.clone() * load(&k, &j)))
                })
            });
            let pivot = load(&k, &k).eq(PrimExpr::zero(dtype)).logical_not();
            Stmt::seq([swap, set(det() * load(&k, &k)), given(pivot, clear)])
        });
        (None, Stmt::seq([copy, set(PrimExpr::number(dtype, 1.0)), columns]))
    });
    let out = te.compute("det", Axes::Ax, &batch, x.dtype, |i| PrimExpr::load(&product, i.to_vec()));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
