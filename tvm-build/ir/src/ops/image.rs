//! Ops on images.

use super::row::{attr, op, tensor};
use super::show::show_tensor;
use super::window::{Layout, layout};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr};
use crate::relax::{AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo};
use crate::te::{Axes, Te};
use crate::tir::PrimFunc;

pub(super) static OPS: &[OpDef] = &[op(
    "image.grid_sample",
    "the elements of data at the places of a grid (batch, axes, …), whose places are the last axis of data first, from \
     -1 to 1; `method` is \"bilinear\", \"nearest\" or \"bicubic\", `padding_mode` what is outside: \"zeros\", \"border\" or \
     \"reflection\"; with `align_corners` -1 and 1 are the middles of the outermost elements, else their outer edges",
    &[tensor("data"), tensor("grid")],
    &[
        attr("method", AttrKind::Str, AttrDefault::Str("bilinear")),
        attr("layout", AttrKind::Str, AttrDefault::Str("NCHW")),
        attr("padding_mode", AttrKind::Str, AttrDefault::Str("zeros")),
        attr("align_corners", AttrKind::Bool, AttrDefault::Bool(true)),
    ],
    infer,
    Lower::Tir("grid_sample", lower),
    Pattern::Opaque,
)];

/// Where the axes of data are: batch and channels first.
fn axes(cx: &InferCx<'_>) -> Result<Layout, Diag> {
    let text = cx.str("layout")?;
    if !matches!(text, "NCHW" | "NCDHW") {
        return Err(cx.fail(format!("attribute `layout` is \"{text}\"")).help("it is \"NCHW\" or \"NCDHW\""));
    }
    layout(cx, "layout", 'N', 'C', text.len() - 2)
}

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    cx.expect_dtype(1, "floating point", DType::is_float)?;
    let rank = axes(cx)?.spatial.len() + 2;
    for (name, legal) in
        [("method", ["bicubic", "bilinear", "nearest"]), ("padding_mode", ["border", "reflection", "zeros"])]
    {
        let given = cx.str(name)?;
        if !legal.contains(&given) {
            let message = format!("attribute `{name}` is \"{given}\"");
            return Err(cx.fail(message).help(format!("it is one of {}", legal.join(", "))));
        }
    }
    let (x, grid) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.expect_rank(0, &x, rank)?;
    cx.expect_rank(1, &grid, rank)?;
    let (Some(d), Some(g)) = (x.dims.known(), grid.dims.known()) else { return cx.result(Dims::Rank(rank), x.dtype) };
    let places = PrimExpr::i64(i64::try_from(rank - 2).unwrap_or(i64::MAX));
    if cx.differ(&d[0], &g[0]) || g[1] != places {
        let (x, grid) = (show_tensor(&x), show_tensor(&grid));
        return Err(cx.fail(format!("`grid` {grid} does not fit `data` {x}")).help("its shape is (batch, axes, …)"));
    }
    let dims = d[..2].iter().chain(&g[2..]).cloned().collect();
    cx.result(Dims::Known(dims), x.dtype)
}

/// How places outside of the input are read.
struct Border<'a> {
    mode: &'a str,
    align: bool,
    dtype: DType,
}

impl Border<'_> {
    fn number(&self, v: f64) -> PrimExpr {
        PrimExpr::float(self.dtype, v)
    }

    /// The least and greatest place before it is reflected.
    fn ends(&self, extent: &PrimExpr) -> (PrimExpr, PrimExpr) {
        let edge = if self.align { 0.0 } else { -0.5 };
        (self.number(edge), extent.cast(self.dtype) - self.number(1.0 + edge))
    }

    /// A place mirrored at both ends until it is between them.
    fn reflected(&self, x: PrimExpr, extent: &PrimExpr) -> PrimExpr {
        let (low, high) = self.ends(extent);
        let one = self.number(1.0);
        let size = (high.clone() - low.clone()).max(one.clone());
        let beyond = PrimExpr::call(Intrinsic::Abs, vec![x - low.clone()]);
        let turns = PrimExpr::call(Intrinsic::Floor, vec![beyond.clone() / size.clone()]);
        let rest = beyond - turns.clone() * size;
        let halves = turns.clone() * self.number(0.5);
        let even = PrimExpr::call(Intrinsic::Floor, vec![halves.clone()]).eq(halves);
        PrimExpr::select(even, low + rest.clone(), high - rest)
    }

    /// A place in elements.
    fn place(&self, n: PrimExpr, extent: &PrimExpr, nearest: bool) -> PrimExpr {
        let (one, half, length) = (self.number(1.0), self.number(0.5), extent.cast(self.dtype));
        let x = if self.align {
            (n + one.clone()) * half * (length - one)
        } else {
            ((n + one.clone()) * length - one) * half
        };
        let x = if nearest { PrimExpr::call(Intrinsic::Nearbyint, vec![x]) } else { x };
        match self.mode {
            "border" => x.min(extent.cast(self.dtype) - self.number(1.0)).max(self.number(0.0)),
            "reflection" => self.reflected(x, extent),
            _ => x,
        }
    }

    /// An element's number made one of the input's, and whether it was one, where that matters.
    fn index(&self, i: PrimExpr, extent: &PrimExpr) -> (PrimExpr, Option<PrimExpr>) {
        let within = (self.mode == "zeros").then(|| {
            let last = extent.cast(self.dtype) - self.number(1.0);
            i.clone().ge(self.number(0.0)).and(i.clone().le(last))
        });
        let i = if self.mode == "reflection" { self.reflected(i, extent) } else { i };
        let last = extent.cast(self.dtype) - self.number(1.0);
        let inside = i.min(last).max(self.number(0.0)).cast(DType::I64);
        (inside.min(extent.clone() - 1).max(PrimExpr::i64(0)), within)
    }
}

/// The weights of the elements around a place that is `t` behind one, and how far the first is from that one.
fn weights(method: &str, t: &PrimExpr, dtype: DType) -> (i64, Vec<PrimExpr>) {
    let number = |v: f64| PrimExpr::float(dtype, v);
    let a = -0.75;
    match method {
        "nearest" => (0, vec![number(1.0)]),
        "bilinear" => (0, vec![number(1.0) - t.clone(), t.clone()]),
        _ => {
            let far = |x: PrimExpr| {
                ((number(a) * x.clone() - number(5.0 * a)) * x.clone() + number(8.0 * a)) * x - number(4.0 * a)
            };
            let near = |x: PrimExpr| (number(a + 2.0) * x.clone() - number(a + 3.0)) * x.clone() * x + number(1.0);
            let rest = number(1.0) - t.clone();
            let all = vec![far(t.clone() + number(1.0)), near(t.clone()), near(rest.clone()), far(rest + number(1.0))];
            (-1, all)
        }
    }
}

fn lower(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (x, grid) = (cx.buffer(0)?, cx.buffer(1)?);
    let method = cx.with_infer(|c| Ok(c.str("method")?.to_owned()))?;
    let mode = cx.with_infer(|c| Ok(c.str("padding_mode")?.to_owned()))?;
    // Places and sums are in single precision at least.
    let dtype = if x.dtype.bits.max(grid.dtype.bits) > 32 { DType::F64 } else { DType::F32 };
    let align = cx.call.attr("align_corners").as_bool() == Some(true);
    let border = Border { mode: &mode, align, dtype };
    let extents = &x.shape[2..];
    let last = grid.shape.len() - 3;
    let mut te = Te::new();
    // The places, the first axis of data first.
    let places = te.compute("places", Axes::Ax, &grid.shape, dtype, |i| {
        let mut at = i.to_vec();
        at[1] = PrimExpr::i64(i64::try_from(last).unwrap_or(i64::MAX)) - i[1].clone();
        let n = PrimExpr::load(grid, at).cast(dtype);
        let mut place = border.place(n.clone(), &extents[last], method == "nearest");
        for axis in (0..last).rev() {
            let of_axis = border.place(n.clone(), &extents[axis], method == "nearest");
            place = PrimExpr::select(i[1].clone().eq(PrimExpr::i64(i64::try_from(axis).unwrap_or(0))), of_axis, place);
        }
        place
    });
    let out = te.compute("grid_sample", Axes::Ax, cx.out_dims()?, x.dtype, |i| sample(x, &places, &border, &method, i));
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}

/// The sum over the elements around the place of output element `i`.
fn sample(x: &Buffer, places: &Buffer, border: &Border<'_>, method: &str, i: &[PrimExpr]) -> PrimExpr {
    let dtype = border.dtype;
    // Index, condition and weight of the elements around, axis by axis.
    let mut terms: Vec<(Vec<PrimExpr>, Option<PrimExpr>, Option<PrimExpr>)> = vec![(i[..2].to_vec(), None, None)];
    for (axis, extent) in (0i64..).zip(&x.shape[2..]) {
        let mut at = vec![i[0].clone(), PrimExpr::i64(axis)];
        at.extend_from_slice(&i[2..]);
        let place = PrimExpr::load(places, at);
        let below = PrimExpr::call(Intrinsic::Floor, vec![place.clone()]);
        let (first, weights) = weights(method, &(place - below.clone()), dtype);
        let mut grown = Vec::new();
        for (index, within, weight) in terms {
            for (k, own) in (first..).zip(&weights) {
                let element = below.clone() + PrimExpr::float(dtype, k as f64);
                let (element, inside) = border.index(element, extent);
                let both = match (within.clone(), inside) {
                    (Some(a), Some(b)) => Some(a.and(b)),
                    (a, b) => a.or(b),
                };
                let weight = match &weight {
                    None => own.clone(),
                    Some(w) => w.clone() * own.clone(),
                };
                let mut index = index.clone();
                index.push(element);
                grown.push((index, both, Some(weight)));
            }
        }
        terms = grown;
    }
    let value = |(index, within, weight): (Vec<PrimExpr>, Option<PrimExpr>, Option<PrimExpr>)| {
        let element = PrimExpr::load(x, index).cast(dtype);
        let element = match within {
            None => element,
            Some(within) => PrimExpr::if_then_else(within, element, PrimExpr::float(dtype, 0.0)),
        };
        match weight {
            Some(weight) if method != "nearest" => weight * element,
            _ => element,
        }
    };
    let sum = terms.into_iter().map(value).reduce(|a, b| a + b);
    sum.unwrap_or_else(|| PrimExpr::float(dtype, 0.0)).cast(x.dtype)
}
