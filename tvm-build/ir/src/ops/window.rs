//! What convolutions and pools share: layouts, strides, padding, output sizes, the padded input.

use crate::arith::Analyzer;
use crate::attrs::AttrValue;
use crate::diag::Diag;
use crate::prim::{Buffer, PrimExpr};
use crate::relax::{Call, InferCx, LowerCx};
use crate::te::{Axes, Te};

/// Where the axes of a tensor are: `NCHW`, or with `O` and `I` for kernels.
pub(super) struct Layout {
    /// Batch, or output channels of a kernel.
    pub(super) outer: usize,
    /// Channels, or input channels of a kernel.
    pub(super) channel: usize,
    /// Depth, height and width, those there are.
    pub(super) spatial: Vec<usize>,
}

impl Layout {
    /// Reads a layout of `dims` spatial axes with two further axes by these letters.
    pub(super) fn parse(text: &str, outer: char, channel: char, dims: usize) -> Option<Layout> {
        let letters = &["D", "H", "W"][3usize.checked_sub(dims)?..];
        let spatial: Option<Vec<usize>> = letters.iter().map(|l| text.find(l)).collect();
        let layout = Layout { outer: text.find(outer)?, channel: text.find(channel)?, spatial: spatial? };
        (text.len() == dims + 2).then_some(layout)
    }

    /// Puts values of each axis where the layout has it.
    pub(super) fn arrange<T: Clone>(&self, outer: T, channel: T, spatial: &[T]) -> Vec<T> {
        let mut out = vec![outer.clone(); spatial.len() + 2];
        out[self.outer] = outer;
        out[self.channel] = channel;
        for (at, v) in self.spatial.iter().zip(spatial) {
            out[*at] = v.clone();
        }
        out
    }

    /// The spatial ones of the values of each axis.
    pub(super) fn spatial_of<T: Clone>(&self, all: &[T]) -> Vec<T> {
        self.spatial.iter().filter_map(|a| all.get(*a).cloned()).collect()
    }
}

/// A layout attribute; an error says which ones there are.
pub(super) fn layout(cx: &InferCx<'_>, attr: &str, outer: char, channel: char, dims: usize) -> Result<Layout, Diag> {
    let text = cx.str(attr)?;
    Layout::parse(text, outer, channel, dims).ok_or_else(|| {
        let all = &"DHW"[3 - dims..];
        cx.fail(format!("attribute `{attr}` is \"{text}\""))
            .help(format!("it must be an order of the letters {outer}, {channel} and {all}"))
    })
}

/// The sliding window of a call, one entry a spatial axis.
pub(super) struct Window {
    pub(super) strides: Vec<i64>,
    pub(super) dilation: Vec<i64>,
    pub(super) before: Vec<i64>,
    pub(super) after: Vec<i64>,
}

impl Window {
    /// Reads `strides`, `dilation` and `padding`. Errors unless strides and dilations are positive and pads are not negative.
    pub(super) fn of(cx: &InferCx<'_>, dims: usize) -> Result<Window, Diag> {
        let list = |name: &str, len: usize, least: i64| -> Result<Vec<i64>, Diag> {
            let v = cx.ints(name)?;
            if v.len() != len || v.iter().any(|x| *x < least || *x > 1 << 40) {
                return Err(
                    cx.fail(format!("attribute `{name}` must be {len} integers of at least {least}, it is {v:?}"))
                );
            }
            Ok(v)
        };
        let padding = list("padding", 2 * dims, 0)?;
        Ok(Window {
            strides: list("strides", dims, 1)?,
            dilation: list("dilation", dims, 1)?,
            before: padding[..dims].to_vec(),
            after: padding[dims..].to_vec(),
        })
    }

    /// `(input + pads + extra - dilation * (kernel - 1) - 1) // stride + 1` of each axis.
    /// Errors where the kernel is known to be larger than the padded input.
    pub(super) fn out_dims(
        &self,
        cx: &InferCx<'_>,
        input: &[PrimExpr],
        kernel: &[PrimExpr],
        ceil: bool,
    ) -> Result<Vec<PrimExpr>, Diag> {
        let mut out = Vec::with_capacity(input.len());
        for (i, (x, k)) in input.iter().zip(kernel).enumerate() {
            let reach = cx.analyzer.simplify(&((k - 1) * self.dilation[i] + 1));
            let padded = x + (self.before[i] + self.after[i]);
            let room = cx.analyzer.simplify(&(padded.clone() - reach.clone()));
            if room.as_int().is_some_and(|v| v < 0) {
                return Err(cx.fail(format!(
                    "the window spans {} elements of spatial axis {i}, the padded `data` has {}",
                    super::show::show_expr(&reach),
                    super::show::show_expr(&cx.analyzer.simplify(&padded))
                )));
            }
            let room = if ceil { room + (self.strides[i] - 1) } else { room };
            out.push(cx.analyzer.simplify(&(room.floordiv(self.strides[i]) + 1)));
        }
        Ok(out)
    }
}

/// One integer for all axes, symmetric padding as both sides, and `out_layout` as the input's.
pub(super) fn prepare(call: &mut Call, dims: usize, layout: &str) -> Result<(), Diag> {
    let defs = call.op.def().attrs;
    for (def, value) in defs.iter().zip(&mut call.attrs) {
        let want = match def.name {
            "strides" | "dilation" | "pool_size" | "output_padding" | "output_size" => dims,
            "padding" => 2 * dims,
            _ => continue,
        };
        let AttrValue::List(items) = value else { continue };
        let full = match items.len() {
            1 => vec![items[0].clone(); want],
            n if n == dims && want == 2 * dims => [items.as_slice(), items.as_slice()].concat(),
            n if n == want => continue,
            n => {
                let message = format!("R.{}: attribute `{}` has {n} entries", call.op.name(), def.name);
                let legal = if want == dims { format!("1 or {dims}") } else { format!("1, {dims} or {want}") };
                return Err(Diag::error(call.span, message).help(format!("give {legal}")));
            }
        };
        *value = AttrValue::List(full);
    }
    let input = call.attr(layout).clone();
    for (def, value) in defs.iter().zip(&mut call.attrs) {
        if def.name == "out_layout" && matches!(value.as_str(), None | Some("")) {
            *value = input.clone();
        }
    }
    Ok(())
}

/// An error when `out_layout` is not the layout of the input.
pub(super) fn same_layout(cx: &InferCx<'_>, layout: &str) -> Result<(), Diag> {
    let (a, b) = (cx.str(layout)?, cx.str("out_layout")?);
    if a == b {
        return Ok(());
    }
    Err(cx.fail(format!("`out_layout` \"{b}\" is not `{layout}` \"{a}\"")).help("put R.permute_dims after it"))
}

/// A stage that copies the input into a border of `fill`; both pads are one entry an axis of the input. Negative pads
/// cut elements off.
pub(super) fn pad_stage(
    te: &mut Te,
    name: &str,
    x: &Buffer,
    (before, after): (&[i64], &[i64]),
    fill: &PrimExpr,
    axes: Axes<'_>,
) -> Buffer {
    let analyzer = Analyzer::new();
    let dims: Vec<PrimExpr> =
        x.shape.iter().zip(before.iter().zip(after)).map(|(d, (b, a))| analyzer.simplify(&(d + (b + a)))).collect();
    te.compute(name, axes, &dims, x.dtype, |index| {
        let mut inside = PrimExpr::bool(true);
        let mut at = Vec::with_capacity(index.len());
        for (d, i) in index.iter().enumerate() {
            // TVM's Python library tests both borders where there is any padding, its C++ library each by itself.
            let (low, high) = match axes {
                Axes::I => (before[d] != 0 || after[d] != 0, before[d] != 0 || after[d] != 0),
                Axes::Ax | Axes::Named(_) => (before[d] != 0, after[d] != 0),
            };
            if low {
                inside = inside.and(PrimExpr::i64(before[d]).le(i));
            }
            if high {
                inside = inside.and(i.clone().lt(analyzer.simplify(&(&x.shape[d] + before[d]))));
            }
            at.push(i - before[d]);
        }
        PrimExpr::if_then_else(inside, PrimExpr::load(x, at), fill.clone())
    })
}

/// Spatial pads as one entry an axis.
pub(super) fn pads_of(layout: &Layout, spatial: &[i64]) -> Vec<i64> {
    layout.arrange(0, 0, spatial)
}

/// A layout of a call that inference has checked.
pub(super) fn lowered_layout(
    cx: &LowerCx<'_>,
    attr: &str,
    outer: char,
    channel: char,
    dims: usize,
) -> Result<Layout, Diag> {
    cx.with_infer(|c| layout(c, attr, outer, channel, dims))
}
