//! What convolutions and pools share: the attributes of their windows.

use tvm_ir::prim::PrimExpr;

use crate::import::onnx::cx::OpCx;
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// The windows of a node over `spatial` axes.
pub(super) struct Window {
    /// Extent of the window along each axis.
    pub(super) kernel: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) dilations: Vec<i64>,
    pub(super) auto_pad: AutoPad,
    /// Padding before each axis, then after each axis; zeros with `auto_pad`.
    pub(super) pads: Vec<i64>,
}

/// How padding follows from the extents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AutoPad {
    /// It is given.
    NotSet,
    /// There is none.
    Valid,
    /// As many windows as strides fit; an odd one goes after.
    SameUpper,
    /// As many windows as strides fit; an odd one goes before.
    SameLower,
}

impl Window {
    /// Reads the attributes. `kernel` is the extent of the window that the weights show, which the attribute must
    /// repeat if it is given.
    pub(super) fn read(cx: &OpCx<'_>, spatial: usize, kernel: Option<Vec<i64>>) -> Result<Window, Fail> {
        let given = cx.node.ints("kernel_shape")?.map(<[i64]>::to_vec);
        let kernel = match (kernel, given) {
            (Some(weights), Some(given)) if weights != given => {
                return Err(format!("attribute 'kernel_shape' is {given:?}, and the weights have {weights:?}").into());
            }
            (Some(kernel), _) | (None, Some(kernel)) => kernel,
            (None, None) => return Err("attribute 'kernel_shape' is missing".into()),
        };
        let list = |name: &str, count: usize, default: i64, least: i64| -> Result<Vec<i64>, Fail> {
            let values = cx.node.ints(name)?.map_or_else(|| vec![default; count], <[i64]>::to_vec);
            if values.len() != count {
                return Err(format!("attribute '{name}' must have {count} numbers, not {values:?}").into());
            }
            match values.iter().find(|&&v| v < least || v > i64::from(i32::MAX)) {
                Some(bad) => Err(format!("attribute '{name}' cannot be {bad}").into()),
                None => Ok(values),
            }
        };
        if kernel.len() != spatial || kernel.iter().any(|&k| k < 1 || k > i64::from(i32::MAX)) {
            return Err(format!("a window of {kernel:?} does not fit {spatial} spatial axes").into());
        }
        let auto_pad = match cx.node.string_or("auto_pad", "NOTSET")? {
            "NOTSET" | "" => AutoPad::NotSet,
            "VALID" => AutoPad::Valid,
            "SAME_UPPER" => AutoPad::SameUpper,
            "SAME_LOWER" => AutoPad::SameLower,
            other => return Err(format!("attribute 'auto_pad' cannot be '{other}'").into()),
        };
        let mut pads = list("pads", 2 * spatial, 0, 0)?;
        if auto_pad != AutoPad::NotSet {
            pads = vec![0; 2 * spatial];
        }
        let (strides, dilations) = (list("strides", spatial, 1, 1)?, list("dilations", spatial, 1, 1)?);
        Ok(Window { kernel, strides, dilations, auto_pad, pads })
    }

    /// The extent that the window spans along an axis.
    pub(super) fn span(&self, axis: usize) -> i64 {
        (self.kernel[axis] - 1).saturating_mul(self.dilations[axis]).saturating_add(1)
    }

    /// The padding of windows that slide over an input with these spatial extents.
    pub(super) fn padding(&self, extents: &[PrimExpr]) -> Result<Vec<i64>, Fail> {
        if matches!(self.auto_pad, AutoPad::NotSet | AutoPad::Valid) {
            return Ok(self.pads.clone());
        }
        let mut totals = Vec::with_capacity(extents.len());
        for (axis, extent) in extents.iter().enumerate() {
            let (stride, span) = (self.strides[axis], self.span(axis));
            totals.push(match extent.as_int() {
                Some(n) => {
                    let windows = n / stride + i64::from(n % stride != 0);
                    ((windows - 1).saturating_mul(stride).saturating_add(span) - n).max(0)
                }
                // With a stride of 1 the padding does not depend on the extent.
                None if stride == 1 => span - 1,
                None => {
                    return Err(Fail::limit(format!(
                        "'auto_pad' with stride {stride} along an axis of the varying extent {extent:?} is not supported; \
                         export the model with 'pads'"
                    )));
                }
            });
        }
        Ok(divide(&totals, self.auto_pad == AutoPad::SameLower))
    }

    /// Whether the padding depends on extents that vary.
    pub(super) fn varies(&self, extents: &[PrimExpr]) -> bool {
        matches!(self.auto_pad, AutoPad::SameUpper | AutoPad::SameLower)
            && extents.iter().zip(&self.strides).any(|(extent, stride)| extent.as_int().is_none() && *stride != 1)
    }

    /// The data with its padding around it, where that depends on extents that vary: the window has none then. `value`
    /// is what is put there.
    pub(super) fn padded(&mut self, cx: &mut OpCx<'_>, x: Value, value: Value) -> Result<Value, Fail> {
        let dims = cx.dims(&x, "X")?;
        let extents = &dims[2..];
        if !self.varies(extents) {
            return Ok(x);
        }
        let none = || vec![PrimExpr::i64(0); 2];
        let (mut before, mut after, mut whole) = (none(), none(), dims[..2].to_vec());
        for (axis, extent) in extents.iter().enumerate() {
            let (stride, span) = (self.strides[axis], self.span(axis));
            let windows = (extent.clone() + (stride - 1)).floordiv(stride);
            let reach = (windows - 1) * stride + span;
            // Windows that overlap or touch leave nothing of the input out.
            let reach = if span >= stride { reach } else { reach.max(extent.clone()) };
            let total = reach.clone() - extent.clone();
            let less = total.clone().floordiv(2);
            let more = total - less.clone();
            let (first, last) = if self.auto_pad == AutoPad::SameLower { (more, less) } else { (less, more) };
            before.push(first);
            after.push(last);
            whole.push(reach);
        }
        self.auto_pad = AutoPad::Valid;
        let args = vec![x, Value::ints(before), Value::ints(after), value, Value::shape(whole)];
        cx.call("dynamic_pad", args, vec![("pad_mode", "constant".into())])
    }

    /// What `ceil_mode` comes to over an input with these spatial extents and the given padding.
    pub(super) fn round_up(&self, padding: &[i64], extents: &[PrimExpr]) -> Result<RoundUp, Fail> {
        let axes = extents.len();
        let mut out = RoundUp { padding: padding.to_vec(), windows: Vec::new(), beyond: false, plain: true };
        for (axis, extent) in extents.iter().enumerate() {
            let (before, after) = (padding[axis], padding[axis + axes]);
            let (stride, span) = (self.strides[axis], self.span(axis));
            let Some(n) = extent.as_int() else {
                // No window can lie behind the input.
                if after.saturating_add(stride) <= span {
                    continue;
                }
                return Err(Fail::limit(format!(
                    "'ceil_mode' along an axis of the varying extent {extent:?} is not supported"
                )));
            };
            let whole = n.saturating_add(before).saturating_add(after);
            if whole < span {
                return Err(format!("a window that spans {span} does not fit an extent of {n} with its padding").into());
            }
            let rest = (whole - span) % stride;
            let rounded = (whole - span) / stride + i64::from(rest != 0) + 1;
            // A window that begins in the padding behind the input is left out.
            let starts_behind = (rounded - 1).saturating_mul(stride) >= n.saturating_add(before);
            let windows = if starts_behind { rounded - 1 } else { rounded };
            let reach = (windows - 1).saturating_mul(stride).saturating_add(span);
            out.padding[axis + axes] = (reach - n.saturating_add(before)).max(0);
            out.beyond |= reach > whole;
            out.plain &= windows == rounded;
            out.windows.push(windows);
        }
        Ok(out)
    }

    /// How many elements of each window lie within the input and the given padding, in row-major order.
    pub(super) fn counts(&self, windows: &[i64], padding: &[i64], extents: &[i64]) -> Vec<f64> {
        let axes = windows.len();
        let mut counts = vec![1.0];
        for axis in 0..axes {
            let whole = extents[axis].saturating_add(padding[axis]).saturating_add(padding[axis + axes]);
            let within = |window: i64| {
                let left = whole.saturating_sub(window.saturating_mul(self.strides[axis]));
                let fit = left / self.dilations[axis] + i64::from(left % self.dilations[axis] != 0);
                fit.clamp(1, self.kernel[axis]) as f64
            };
            counts = counts.iter().flat_map(|c| (0..windows[axis]).map(move |w| c * within(w))).collect();
        }
        counts
    }
}

/// Windows rounded up: those that are begun count.
pub(super) struct RoundUp {
    /// Padding that gives these windows without rounding.
    pub(super) padding: Vec<i64>,
    /// Number of windows along each axis; not all of them if an extent varies.
    pub(super) windows: Vec<i64>,
    /// Whether a window reaches beyond the padding.
    pub(super) beyond: bool,
    /// Whether rounding up the number of windows is all there is to it.
    pub(super) plain: bool,
}

/// Total padding of each axis as padding before each and after each; of an odd total, the larger part goes before if
/// `lower`. Totals below zero round down as others do.
pub(super) fn divide(totals: &[i64], lower: bool) -> Vec<i64> {
    let before = |&total: &i64| if lower { total - total.div_euclid(2) } else { total.div_euclid(2) };
    totals.iter().map(before).chain(totals.iter().map(|t| t - before(t))).collect()
}
