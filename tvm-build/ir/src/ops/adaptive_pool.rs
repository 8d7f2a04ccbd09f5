//! Pools whose windows follow from the size of the result.

use super::row::{attr, op, tensor};
use super::window::{Layout, layout, lowered_layout, prepare, same_layout};
use crate::arith::Analyzer;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr};
use crate::relax::{AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, ReduceAxis, Reducer, Te};
use crate::tir::PrimFunc;

const fn attrs(layout: &'static str) -> [AttrDef; 3] {
    [
        attr("output_size", AttrKind::OptInts, AttrDefault::None),
        attr("layout", AttrKind::Str, AttrDefault::Str(layout)),
        attr("out_layout", AttrKind::Str, AttrDefault::Str("")),
    ]
}

static ATTRS1: [AttrDef; 3] = attrs("NCW");
static ATTRS2: [AttrDef; 3] = attrs("NCHW");
static ATTRS3: [AttrDef; 3] = attrs("NCDHW");

macro_rules! adaptive {
    ($($name:literal $hint:literal $dims:literal $attrs:ident $doc:literal;)*) => {
        pub(super) static OPS: &[OpDef] = &[$(
            op($name, $doc, &[tensor("data")], &$attrs, |cx| infer(cx, $dims), Lower::Tir($hint, |cx| lower(cx, $dims)), Pattern::OutEWiseFusable)
                .prepared(|c| prepare(c, $dims, "layout")),
        )*];
    };
}

adaptive! {
    "nn.adaptive_avg_pool1d" "adaptive_avg_pool1d" 1 ATTRS1 "means of as many windows along one spatial axis as asked for";
    "nn.adaptive_avg_pool2d" "adaptive_avg_pool2d" 2 ATTRS2 "means of as many windows along two spatial axes as asked for";
    "nn.adaptive_avg_pool3d" "adaptive_avg_pool3d" 3 ATTRS3 "means of as many windows along three spatial axes as asked for";
}

fn infer(cx: &InferCx<'_>, dims: usize) -> Result<StructInfo, Diag> {
    let x = cx.tensor(0)?;
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    cx.expect_rank(0, &x, dims + 2)?;
    let data = layout(cx, "layout", 'N', 'C', dims)?;
    same_layout(cx, "layout")?;
    let size = cx.opt_ints("output_size");
    if size.as_ref().is_some_and(|s| s.len() != dims || s.iter().any(|v| *v < 1)) {
        return Err(cx.fail(format!("attribute `output_size` must be {dims} positive integers, it is {size:?}")));
    }
    let Some(d) = x.dims.known() else { return cx.result(Dims::Rank(dims + 2), x.dtype) };
    let Some(size) = size else { return cx.result(x.dims.clone(), x.dtype) };
    let mut out = d.to_vec();
    for (axis, n) in data.spatial.iter().zip(size) {
        out[*axis] = PrimExpr::i64(n);
    }
    cx.result(Dims::Known(out), x.dtype)
}

/// First and last-but-one element of window `i` of `out` over `n` elements: `floor(i n / out)`, `ceil((i + 1) n / out)`.
fn start(i: &PrimExpr, n: &PrimExpr, out: &PrimExpr) -> PrimExpr {
    (i * n).floordiv(out.clone())
}

fn end(i: &PrimExpr, n: &PrimExpr, out: &PrimExpr) -> PrimExpr {
    ((i + 1) * n + (out - 1)).floordiv(out.clone())
}

/// Whether all windows of an axis have one extent: `n` is a multiple of `out`.
fn even(n: &PrimExpr, out: &PrimExpr) -> bool {
    out.is_int(1) || matches!((n.as_int(), out.as_int()), (Some(n), Some(o)) if o > 0 && n % o == 0)
}

fn lower(cx: &LowerCx<'_>, dims: usize) -> Result<PrimFunc, Diag> {
    let x = cx.buffer(0)?;
    let data = lowered_layout(cx, "layout", 'N', 'C', dims)?;
    let out_dims = cx.out_dims()?;
    let mut te = Te::new();
    let sum = sum_stage(&mut te, x, &data, out_dims);
    te.annotate("schedule_rule", "meta_schedule.adaptive_pool_avg");
    let out = te.compute("adaptive_pool_avg", Axes::Ax, out_dims, x.dtype, |i| {
        let count = data.spatial.iter().fold(PrimExpr::float(x.dtype, 1.0), |count, a| {
            let (n, o) = (&x.shape[*a], &out_dims[*a]);
            let own = if even(n, o) { n.clone().floordiv(o) } else { end(&i[*a], n, o) - start(&i[*a], n, o) };
            count * own.cast(DType::I32).cast(x.dtype)
        });
        PrimExpr::load(&sum, i.to_vec()) / count
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// Sums of the windows. Where windows of an axis differ in extent, the loop runs to the longest and what lies past the
/// end of a window adds nothing.
fn sum_stage(te: &mut Te, x: &Buffer, data: &Layout, out_dims: &[PrimExpr]) -> Buffer {
    let analyzer = Analyzer::new();
    let reduced: Vec<ReduceAxis> = ["rv0", "rv1", "rv2"]
        .into_iter()
        .zip(&data.spatial)
        .map(|(name, a)| {
            let (n, o) = (&x.shape[*a], &out_dims[*a]);
            let whole = n.clone().floordiv(o);
            let longest = if even(n, o) { whole } else { (n - 1).floordiv(o.clone()) + 2 };
            (name, analyzer.simplify(&longest))
        })
        .collect();
    te.reduce("adaptive_pool_sum", Axes::Ax, out_dims, &reduced, Reducer::Sum, x.dtype, |i, r| {
        let mut at = i.to_vec();
        let mut inside = PrimExpr::bool(true);
        for (a, v) in data.spatial.iter().zip(r) {
            let (n, o) = (&x.shape[*a], &out_dims[*a]);
            if even(n, o) {
                at[*a] = &i[*a] * n.clone().floordiv(o) + v;
            } else {
                at[*a] = start(&i[*a], n, o) + v;
                inside = inside.clone().and(at[*a].clone().lt(end(&i[*a], n, o)));
            }
        }
        PrimExpr::if_then_else(inside, PrimExpr::load(x, at), PrimExpr::zero(x.dtype))
    })
}
