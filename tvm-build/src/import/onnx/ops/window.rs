//! What convolutions and pools share: the attributes of their windows.

use tvm_ir::prim::PrimExpr;

use crate::import::onnx::cx::OpCx;
use crate::import::onnx::emit::Fail;

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
                    return Err(format!(
                        "'auto_pad' with stride {stride} along an axis of the varying extent {extent:?} is not supported; \
                         export the model with 'pads'"
                    )
                    .into());
                }
            });
        }
        Ok(divide(&totals, self.auto_pad == AutoPad::SameLower))
    }
}

/// Total padding of each axis as padding before each and after each; an odd one goes before if `lower`.
pub(super) fn divide(totals: &[i64], lower: bool) -> Vec<i64> {
    let before = |&total: &i64| if lower { total - total / 2 } else { total / 2 };
    totals.iter().map(before).chain(totals.iter().map(|t| t - before(t))).collect()
}
