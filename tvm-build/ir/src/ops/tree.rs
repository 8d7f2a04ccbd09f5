//! Decision trees.

use super::row::{attr, op, required, tensor};
use super::show::show_tensor;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr, Var};
use crate::relax::{AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te, max_value, min_value};
use crate::tir::{IfStmt, PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[op(
    "tree_ensemble",
    "for each row of x the weights of the leaves it comes to in every tree, put together for each target by \"sum\", \
     \"average\", \"min\" or \"max\". A tree begins at a root; a node compares a feature with its split by mode 0 to 5 (<=, <, >=, \
     >, ==, !=), a missing one (NaN) holds where `missing` is not 0, and goes to one of two nodes; numbers below 0 are leaves: \
     -1 is leaf 0. `depth` is the most nodes on a way; numbers out of range mean the nearest node or leaf",
    &[
        tensor("x"),
        tensor("roots"),
        tensor("features"),
        tensor("modes"),
        tensor("splits"),
        tensor("missing"),
        tensor("if_true"),
        tensor("if_false"),
        tensor("targets"),
        tensor("weights"),
    ],
    &[
        required("n_targets", AttrKind::Int),
        required("depth", AttrKind::Int),
        attr("aggregate", AttrKind::Str, AttrDefault::Str("sum")),
    ],
    infer,
    Lower::Tir("tree_ensemble", lower),
    Pattern::Opaque,
)];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    cx.expect_rank(0, &x, 2)?;
    for i in 1..10 {
        let t = cx.tensor(i)?;
        cx.expect_rank(i, &t, 1)?;
        if [4, 9].contains(&i) {
            cx.common_dtype(0, i)?;
        } else {
            cx.expect_dtype(i, "an integer type", DType::is_integer)?;
        }
        if t.dims.known().is_some_and(|d| d[0].is_int(0)) {
            return Err(cx.fail(format!("`{}` {} is empty", cx.arg_name(i), show_tensor(&t))));
        }
    }
    let aggregate = cx.str("aggregate")?;
    if !matches!(aggregate, "sum" | "average" | "min" | "max") {
        return Err(cx
            .fail(format!("attribute `aggregate` is \"{aggregate}\""))
            .help("it is \"sum\", \"average\", \"min\" or \"max\""));
    }
    let (targets, depth) = (cx.int("n_targets")?, cx.int("depth")?);
    if targets < 1 || depth < 0 {
        return Err(cx.fail("`n_targets` must be positive, and `depth` not negative"));
    }
    let Some([rows, _]) = x.dims.known() else { return cx.result(Dims::Rank(2), x.dtype) };
    cx.result(Dims::Known(vec![rows.clone(), PrimExpr::i64(targets)]), x.dtype)
}

/// The element of a table that a number names; the nearest one if there is none.
fn entry(table: &Buffer, at: &PrimExpr) -> PrimExpr {
    PrimExpr::load(table, vec![at.clone().min(table.shape[0].clone() - 1).max(0)])
}

fn holds(mode: &PrimExpr, x: &PrimExpr, split: &PrimExpr) -> PrimExpr {
    let ways = [
        x.clone().le(split.clone()),
        x.clone().lt(split.clone()),
        x.clone().ge(split.clone()),
        x.clone().gt(split.clone()),
        x.clone().eq(split.clone()),
    ];
    let last = x.clone().eq(split.clone()).logical_not();
    (0i64..).zip(ways).fold(last, |others, (number, way)| PrimExpr::select(mode.clone().eq(number), way, others))
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let table = |i: usize| cx.buffer(i);
    let (roots, features, modes, splits, missing) = (table(1)?, table(2)?, table(3)?, table(4)?, table(5)?);
    let (if_true, if_false, targets, weights) = (table(6)?, table(7)?, table(8)?, table(9)?);
    let (depth, aggregate) = cx.with_infer(|c| Ok((c.int("depth")?, c.str("aggregate")?.to_string())))?;
    let dims = cx.out_dims()?;
    let (out, node) =
        (Buffer::new("tree_ensemble", dims.to_vec(), x.dtype), Buffer::new("node", dims[..1].to_vec(), DType::I64));
    let int = |e: PrimExpr| e.cast(DType::I64);
    let mut te = Te::new();
    te.block("tree_ensemble", Axes::Ax, &dims[..1], &[], &[out.clone(), node.clone()], |row, _| {
        let here = || PrimExpr::load(&node, row.to_vec());
        let go = |to: PrimExpr| Stmt::store(&node, row.to_vec(), to);
        let serial = |name: &str, extent: PrimExpr, body: &dyn Fn(PrimExpr) -> Stmt| {
            let var = Var::new(name, DType::I64);
            let body = body(var.expr());
            Stmt::serial(var, extent, body)
        };
        let cell = |j: PrimExpr| vec![row[0].clone(), j];
        let start = match aggregate.as_str() {
            "min" => max_value(x.dtype),
            "max" => min_value(x.dtype),
            _ => PrimExpr::zero(x.dtype),
        };
        let init = serial("j", dims[1].clone(), &|j| Stmt::store(&out, cell(j), start.clone()));
        let step = serial("s", PrimExpr::i64(depth), &|_| {
            let feature = int(entry(features, &here())).min(x.shape[1].clone() - 1).max(0);
            let value = PrimExpr::load(x, vec![row[0].clone(), feature]);
            let mut holds = holds(&int(entry(modes, &here())), &value, &entry(splits, &here()));
            if x.dtype.is_float() {
                let nan = PrimExpr::call(Intrinsic::IsNan, vec![value]);
                holds = holds.or(nan.and(int(entry(missing, &here())).eq(0).logical_not()));
            }
            let next = PrimExpr::select(holds, int(entry(if_true, &here())), int(entry(if_false, &here())));
            Stmt::If(Box::new(IfStmt { cond: here().ge(0), then: go(next), otherwise: None }))
        });
        let leaf = || PrimExpr::i64(-1) - here();
        let add = serial("j", dims[1].clone(), &|j| {
            let (old, weight) = (PrimExpr::load(&out, cell(j.clone())), entry(weights, &leaf()));
            let new = match aggregate.as_str() {
                "min" => old.min(weight),
                "max" => old.max(weight),
                "average" => old + weight / roots.shape[0].cast(x.dtype),
                _ => old + weight,
            };
            let cond = int(entry(targets, &leaf())).eq(j.clone());
            Stmt::If(Box::new(IfStmt { cond, then: Stmt::store(&out, cell(j), new), otherwise: None }))
        });
        let each = serial("t", roots.shape[0].clone(), &|t| {
            Stmt::seq([go(int(PrimExpr::load(roots, vec![t]))), step.clone(), add.clone()])
        });
        (None, Stmt::seq([init, each]))
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
