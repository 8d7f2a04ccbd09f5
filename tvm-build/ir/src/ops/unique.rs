//! The different elements or slices of a tensor.

use super::row::{attr, op, tensor};
use super::run_time::{bind_extents, count, first};
use super::sort::less;
use crate::attrs::AttrValue;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr, Var};
use crate::relax::{
    AttrDefault, AttrKind, Dims, Expr, InferCx, Leaf, Lower, LowerCx, OpDef, Pattern, RewriteCx, StructInfo, TensorInfo,
};
use crate::te::{Axes, Te};
use crate::tir::{IfStmt, PrimFunc, Stmt};

const NO: AttrDefault = AttrDefault::Bool(false);

pub(super) static OPS: &[OpDef] = &[
    op(
        "unique",
        "the different elements of the flattened tensor, or the different slices along an axis, in order (NaN last) or \
         as they come first; then what is asked for: where each comes first, which of them each element is, how often \
         each is there",
        &[tensor("x")],
        &[
            attr("sorted", AttrKind::Bool, AttrDefault::Bool(true)),
            attr("return_index", AttrKind::Bool, NO),
            attr("return_inverse", AttrKind::Bool, NO),
            attr("return_counts", AttrKind::Bool, NO),
            attr("axis", AttrKind::OptInt, AttrDefault::None),
        ],
        infer,
        Lower::Ops(rewrite),
        Pattern::Opaque,
    ),
    op(
        "unique_rows",
        "for the rows of a matrix as R.unique has them: where each different row comes first, which of them each row is, \
         how often each is there, and how many there are, a vector of one. Behind so many places there are zeros",
        &[tensor("x")],
        &[attr("sorted", AttrKind::Bool, AttrDefault::Bool(true))],
        infer_rows,
        Lower::Tir("unique_rows", lower_rows),
        Pattern::Opaque,
    ),
];

fn ints(dims: Dims) -> StructInfo {
    StructInfo::Tensor(TensorInfo { dims, dtype: Some(DType::I64) })
}

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    let axis = match (cx.call.attr("axis").as_int(), x.dims.rank()) {
        (Some(axis), Some(rank)) => Some(cx.axis("axis", axis, rank)?),
        _ => None,
    };
    let flat = cx.call.attr("axis").as_int().is_none();
    let values = match x.dims.rank() {
        _ if flat => Dims::Rank(1),
        Some(rank) => Dims::Rank(rank),
        None => Dims::Unknown,
    };
    let inverse = match (x.dims.known(), axis) {
        (Some(dims), Some(axis)) => Dims::Known(vec![dims[axis].clone()]),
        (Some(dims), None) if flat => Dims::Known(vec![count(dims)]),
        _ => Dims::Rank(1),
    };
    let mut fields = vec![StructInfo::Tensor(TensorInfo { dims: values, dtype: x.dtype })];
    let more = [("return_index", Dims::Rank(1)), ("return_inverse", inverse), ("return_counts", Dims::Rank(1))];
    fields
        .extend(more.into_iter().filter(|(name, _)| cx.call.attr(name).as_bool() == Some(true)).map(|(_, d)| ints(d)));
    Ok(match <[StructInfo; 1]>::try_from(fields) {
        Ok([one]) => one,
        Err(many) => StructInfo::Tuple(many),
    })
}

fn infer_rows(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    cx.expect_rank(0, &x, 2)?;
    let rows = match x.dims.known() {
        Some(dims) => Dims::Known(dims[..1].to_vec()),
        None => Dims::Rank(1),
    };
    let one = Dims::Known(vec![PrimExpr::i64(1)]);
    Ok(StructInfo::Tuple([rows.clone(), rows.clone(), rows, one].map(ints).to_vec()))
}

fn rewrite(cx: &mut RewriteCx<'_>) -> Result<Leaf, Diag> {
    let call = cx.call;
    let fail = |m: &str| Diag::error(call.span, format!("R.unique: {m}"));
    let x = call.args.first().cloned().unwrap_or(Leaf::Absent);
    let Some(StructInfo::Tensor(info)) = x.info() else { return Err(fail("`x` must be a tensor")) };
    let dims = info.dims.known().ok_or_else(|| fail("the shape of `x` is not known"))?.to_vec();
    let b = &mut *cx.builder;
    let axis = call.attr("axis").as_int();
    let (x, rows, along) = match axis {
        None => {
            let n = count(&dims);
            let flat = b.call("reshape", vec![x.clone(), Leaf::Shape(vec![n.clone()])], &[])?;
            let rows = b.call("reshape", vec![flat.clone(), Leaf::Shape(vec![n.clone(), PrimExpr::i64(1)])], &[])?;
            (flat, rows, n)
        }
        Some(axis) => {
            let rank = i64::try_from(dims.len()).map_err(|_| fail("`x` has too many axes"))?;
            let at = if axis < 0 { axis + rank } else { axis };
            let order: Vec<i64> = std::iter::once(at).chain((0..rank).filter(|a| *a != at)).collect();
            let moved = b.call("permute_dims", vec![x.clone()], &[("axes", AttrValue::from(order))])?;
            let at = usize::try_from(at).map_err(|_| fail("the axis is out of range"))?;
            let n = dims.get(at).cloned().ok_or_else(|| fail("the axis is out of range"))?;
            let others: Vec<PrimExpr> =
                dims.iter().enumerate().filter(|(a, _)| *a != at).map(|(_, d)| d.clone()).collect();
            let rows = b.call("reshape", vec![moved, Leaf::Shape(vec![n.clone(), count(&others)])], &[])?;
            (x, rows, n)
        }
    };
    let parts = b.call("unique_rows", vec![rows], &[("sorted", call.attr("sorted").clone())])?;
    let [index, inverse, counts, number] = [0, 1, 2, 3].map(|i| b.tuple_get(&parts, i));
    let k = bind_extents(b, number?, vec![along], &["unique"])?;
    let k = k.into_iter().next().ok_or_else(|| fail("there is no number of results"))?;
    let index = first(b, index?, &k)?;
    let values = b.call("take", vec![x, index.clone()], &[("axis", axis.unwrap_or(0).into())])?;
    let counts = first(b, counts?, &k)?;
    let mut results = vec![values];
    let more = [("return_index", index), ("return_inverse", inverse?), ("return_counts", counts)];
    results.extend(more.into_iter().filter(|(name, _)| call.attr(name).as_bool() == Some(true)).map(|(_, l)| l));
    match <[Leaf; 1]>::try_from(results) {
        Ok([one]) => Ok(one),
        Err(many) => {
            let infos = many.iter().map(Leaf::info).collect::<Option<Vec<_>>>();
            let info = infos.ok_or_else(|| fail("a result is not known"))?;
            Ok(Leaf::Var(b.emit_as("lv", Expr::Tuple(many), StructInfo::Tuple(info))))
        }
    }
}

fn when(cond: PrimExpr, then: Stmt) -> Stmt {
    Stmt::If(Box::new(IfStmt { cond, then, otherwise: None }))
}

fn each(name: &str, extent: &PrimExpr, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let var = Var::new(name, DType::I64);
    let body = body(var.expr());
    Stmt::serial(var, extent.clone(), body)
}

/// What the statements of the kernel use.
struct Rows<'a> {
    x: &'a Buffer,
    /// -1, 0 or 1: how two rows compare so far.
    order: Buffer,
}

impl Rows<'_> {
    fn order(&self) -> PrimExpr {
        PrimExpr::load(&self.order, vec![PrimExpr::i64(0)])
    }

    /// Compares row `i` with row `j`, column by column; NaN is greater than every number.
    fn compare(&self, i: &PrimExpr, j: &PrimExpr) -> Stmt {
        let set = |e: PrimExpr| Stmt::store(&self.order, vec![PrimExpr::i64(0)], e);
        let columns = each("t", &self.x.shape[1], |t| {
            let (a, b) =
                (PrimExpr::load(self.x, vec![i.clone(), t.clone()]), PrimExpr::load(self.x, vec![j.clone(), t]));
            let after = PrimExpr::select(less(&b, &a), PrimExpr::i64(1), PrimExpr::i64(0));
            when(self.order().eq(0), set(PrimExpr::select(less(&a, &b), PrimExpr::i64(-1), after)))
        });
        Stmt::seq([set(PrimExpr::i64(0)), columns])
    }
}

fn lower_rows(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let sorted = cx.call.attr("sorted").as_bool() == Some(true);
    let n = x.shape[0].clone();
    let vector = |name: &str, n: &PrimExpr| Buffer::new(name, vec![n.clone()], DType::I64);
    let one = PrimExpr::i64(1);
    let outs = [vector("index", &n), vector("inverse", &n), vector("counts", &n), vector("number", &one)];
    let [index, inverse, counts, number] = &outs;
    // The first row that is equal, and the place of a first row among those.
    let (same, place) = (vector("same", &n), vector("place", &n));
    let rows = Rows { x, order: vector("order", &one) };
    let load = |b: &Buffer, i: &PrimExpr| PrimExpr::load(b, vec![i.clone()]);
    let store = |b: &Buffer, i: &PrimExpr, e: PrimExpr| Stmt::store(b, vec![i.clone()], e);
    let zero = PrimExpr::i64(0);
    let more = |b: &Buffer, i: &PrimExpr| store(b, i, load(b, i) + 1);
    let is_first = |i: &PrimExpr| load(&same, i).eq(i);
    let inside = |e: &PrimExpr| zero.clone().le(e.clone()).and(e.clone().lt(n.clone()));
    let mut te = Te::new();
    let written = [&outs[..], &[same.clone(), place.clone(), rows.order.clone()]].concat();
    te.block("unique_rows", Axes::Ax, &[], &[], &written, |_, _| {
        let start = each("i", &n, |i| {
            Stmt::seq([index, counts, inverse, &place].map(|b| store(b, &i, zero.clone())).into_iter().chain([store(
                &same,
                &i,
                i.clone(),
            )]))
        });
        let find = each("i", &n, |i| {
            let equal = each("j", &i, |j| {
                let hit = when(rows.order().eq(0), store(&same, &i, j.clone()));
                when(is_first(&i).and(is_first(&j)), Stmt::seq([rows.compare(&i, &j), hit]))
            });
            Stmt::seq([equal, when(is_first(&i), more(number, &zero))])
        });
        let order = each("i", &n, |i| {
            let before = each("j", &n, |j| {
                let body = if sorted {
                    Stmt::seq([rows.compare(&j, &i), when(rows.order().lt(0), more(&place, &i))])
                } else {
                    when(j.clone().lt(i.clone()), more(&place, &i))
                };
                when(is_first(&j), body)
            });
            let to = load(&place, &i);
            when(is_first(&i), Stmt::seq([before, when(inside(&to), store(index, &to, i.clone()))]))
        });
        let number_all = each("i", &n, |i| {
            let from = load(&same, &i).max(0).min(n.clone() - 1);
            let to = load(inverse, &i);
            Stmt::seq([store(inverse, &i, load(&place, &from)), when(inside(&to), more(counts, &to))])
        });
        (None, Stmt::seq([store(number, &zero, zero.clone()), start, find, order, number_all]))
    });
    Ok(te.finish(cx.inputs, &outs, cx.call.span))
}
