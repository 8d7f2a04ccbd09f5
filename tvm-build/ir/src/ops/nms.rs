//! Suppression of boxes that overlap better ones.

use super::extents::assert;
use super::row::{attr, op, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr, Var};
use crate::relax::{AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo, TensorInfo};
use crate::te::{Axes, Te};
use crate::tir::{IfStmt, PrimFunc, Stmt};

pub(super) static OPS: &[OpDef] = &[op(
    "vision.all_class_non_max_suppression",
    "for each batch and class the boxes with the best scores above a threshold, best first, without those that overlap \
     a better one by more than a threshold of intersection over union, at most so many: rows of batch, class and box, \
     and how many there are, a vector of one; zeros behind. Of equal scores the first box is better. Boxes are two \
     corners, in any order, or with `center_point_box` a center and a size",
    &[
        tensor("boxes"),
        tensor("scores"),
        tensor("max_output_boxes_per_class"),
        tensor("iou_threshold"),
        tensor("score_threshold"),
    ],
    &[
        attr("output_format", AttrKind::Str, AttrDefault::Str("onnx")),
        attr("center_point_box", AttrKind::Bool, AttrDefault::Bool(false)),
    ],
    infer,
    Lower::Tir("all_class_non_max_suppression", lower),
    Pattern::Opaque,
)];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    if cx.str("output_format")? != "onnx" {
        return Err(cx.fail("attribute `output_format` must be \"onnx\""));
    }
    let (boxes, scores) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.expect_rank(0, &boxes, 3)?;
    cx.expect_rank(1, &scores, 3)?;
    cx.common_dtype(0, 1)?;
    cx.expect_dtype(0, "a float type", DType::is_float)?;
    cx.expect_dtype(2, "an integer type", DType::is_integer)?;
    for i in 2..5 {
        let t = cx.tensor(i)?;
        cx.expect_rank(i, &t, 0)?;
        if i > 2 {
            cx.common_dtype(0, i)?;
        }
    }
    let mut rows = Dims::Rank(2);
    if let (Some(b), Some(s)) = (boxes.dims.known(), scores.dims.known()) {
        if !b[2].is_int(4) {
            return Err(cx.fail(format!("the last axis of `boxes` must have 4 coordinates, it has {:?}", b[2])));
        }
        for (what, x, y) in [("batches", &b[0], &s[0]), ("boxes", &b[1], &s[2])] {
            if cx.differ(x, y) {
                return Err(cx.fail(format!("there are {x:?} {what} in `boxes`, and not {y:?}")));
            }
        }
        rows = Dims::Known(vec![super::run_time::count(s), PrimExpr::i64(3)]);
    }
    let ints = |dims| StructInfo::Tensor(TensorInfo { dims, dtype: Some(DType::I64) });
    Ok(StructInfo::Tuple(vec![ints(rows), ints(Dims::Known(vec![PrimExpr::i64(1)]))]))
}

fn when(cond: PrimExpr, then: Stmt) -> Stmt {
    Stmt::If(Box::new(IfStmt { cond, then, otherwise: None }))
}

fn each(name: &str, extent: &PrimExpr, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let var = Var::new(name, DType::I64);
    let body = body(var.expr());
    Stmt::serial(var, extent.clone(), body)
}

/// Low and high ends of two axes.
struct Corners([PrimExpr; 2], [PrimExpr; 2]);

impl Corners {
    fn of(boxes: &Buffer, batch: &PrimExpr, at: &PrimExpr, center: bool) -> Corners {
        let [a, b, c, d] =
            [0, 1, 2, 3].map(|t| PrimExpr::load(boxes, vec![batch.clone(), at.clone(), PrimExpr::i64(t)]));
        let ends = |p: PrimExpr, q: PrimExpr| {
            if center {
                let half = q / PrimExpr::number(boxes.dtype, 2.0);
                (p.clone() - half.clone(), p + half)
            } else {
                (p.clone().min(q.clone()), p.max(q))
            }
        };
        let ((y0, y1), (x0, x1)) = (ends(a, c), ends(b, d));
        Corners([y0, x0], [y1, x1])
    }

    fn area(&self) -> PrimExpr {
        (self.1[0].clone() - self.0[0].clone()) * (self.1[1].clone() - self.0[1].clone())
    }

    /// Whether both overlap by more than the threshold. Boxes without area overlap nothing.
    fn overlaps(&self, other: &Corners, threshold: &PrimExpr) -> PrimExpr {
        let zero = PrimExpr::zero(threshold.dtype());
        let side = |a: usize| self.1[a].clone().min(other.1[a].clone()) - self.0[a].clone().max(other.0[a].clone());
        let (h, w) = (side(0), side(1));
        let common = h.clone() * w.clone();
        let (own, theirs) = (self.area(), other.area());
        let all = own.clone() + theirs.clone() - common.clone();
        let real = [&h, &w, &own, &theirs, &all]
            .into_iter()
            .fold(PrimExpr::bool(true), |c, e| c.and(zero.clone().lt(e.clone())));
        let ratio = common / PrimExpr::select(zero.lt(all.clone()), all.clone(), PrimExpr::number(all.dtype(), 1.0));
        real.and(threshold.clone().lt(ratio))
    }
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (boxes, scores) = (cx.buffer(0)?, cx.buffer(1)?);
    let most = cx.scalar(2)?.cast(DType::I64);
    let (overlap, least) = (cx.scalar(3)?, cx.scalar(4)?);
    let center = cx.call.attr("center_point_box").as_bool() == Some(true);
    let infos = cx.out.tensors().unwrap_or_default();
    let Some(dims) = infos.first().and_then(|t| t.dims.known()) else {
        return Err(cx.fail("the shape of the result is not known"));
    };
    let one = || vec![PrimExpr::i64(1)];
    let (rows, number) = (Buffer::new("selected", dims.to_vec(), DType::I64), Buffer::new("number", one(), DType::I64));
    let [batches, classes, n] = &scores.shape[..] else { return Err(cx.fail("`scores` must have 3 axes")) };
    let open = Buffer::new("open", vec![n.clone()], DType::BOOL);
    let state = |name: &str| Buffer::new(name, one(), DType::I64);
    let (best, taken) = (state("best"), state("taken"));
    let zero = PrimExpr::i64(0);
    let get = |b: &Buffer| PrimExpr::load(b, vec![zero.clone()]);
    let set = |b: &Buffer, e: PrimExpr| Stmt::store(b, vec![zero.clone()], e);
    let mut te = Te::new();
    let written = [&rows, &number, &open, &best, &taken].map(Clone::clone);
    te.block("all_class_non_max_suppression", Axes::Ax, &[], &[], &written, |_, _| {
        let clear = each("r", &rows.shape[0], |r| {
            Stmt::seq((0..3).map(|c| Stmt::store(&rows, vec![r.clone(), PrimExpr::i64(c)], zero.clone())))
        });
        let all = each("b", batches, |b| {
            each("c", classes, |c| {
                let score = |i: &PrimExpr| PrimExpr::load(scores, vec![b.clone(), c.clone(), i.clone()]);
                let start = each("i", n, |i| Stmt::store(&open, vec![i.clone()], least.clone().lt(score(&i))));
                let look = each("i", n, |i| {
                    let better = score(&get(&best).max(0).min(n.clone() - 1)).lt(score(&i));
                    let better = get(&best).lt(0).or(better);
                    when(PrimExpr::load(&open, vec![i.clone()]).and(better), set(&best, i))
                });
                let take = {
                    let chosen = get(&best).max(0).min(n.clone() - 1);
                    let at = get(&number);
                    let row = [&b, &c, &chosen].into_iter().zip(0..);
                    let write = row.map(|(v, t)| Stmt::store(&rows, vec![at.clone(), PrimExpr::i64(t)], v.clone()));
                    let fits = zero.clone().le(at.clone()).and(at.clone().lt(rows.shape[0].clone()));
                    let write = when(fits, Stmt::seq(write));
                    let count = [&number, &taken].map(|b| set(b, get(b) + 1));
                    let own = Corners::of(boxes, &b, &chosen, center);
                    let close = each("i", n, |i| {
                        let over = own.overlaps(&Corners::of(boxes, &b, &i, center), &overlap);
                        let still = PrimExpr::load(&open, vec![i.clone()]);
                        when(
                            still.and(over.or(i.clone().eq(&chosen))),
                            Stmt::store(&open, vec![i], PrimExpr::bool(false)),
                        )
                    });
                    Stmt::seq([write].into_iter().chain(count).chain([close]))
                };
                let step = Stmt::seq([set(&best, PrimExpr::i64(-1)), look, when(zero.clone().le(get(&best)), take)]);
                // `best` stays below zero when nothing is left.
                let going = get(&taken).lt(most.clone()).and(zero.clone().le(get(&best)));
                let steps = each("s", n, |_| when(going, step));
                Stmt::seq([set(&taken, zero.clone()), set(&best, zero.clone()), start, steps])
            })
        });
        // Extents that are not known to be equal.
        let same = |x: &PrimExpr, y: &PrimExpr, m: &str| (x != y).then(|| assert(x.clone().eq(y), m));
        let checks = [
            same(&boxes.shape[0], batches, "boxes and scores differ in batches"),
            same(&boxes.shape[1], n, "there are not as many boxes as scores"),
        ];
        (None, Stmt::seq(checks.into_iter().flatten().chain([set(&number, zero.clone()), clear, all])))
    });
    Ok(te.finish(cx.inputs, &[rows, number], cx.call.span))
}
