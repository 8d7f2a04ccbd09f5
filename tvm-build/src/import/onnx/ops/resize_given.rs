//! Resize and Upsample by scales, sizes or regions that are given at run time, or along axes of varying extents: the
//! places and weights are computed by the program, in double precision.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};
use tvm_ir::relax::Leaf;

use super::resize::MAX_WIDENED;
use super::sampling::{Coordinates, Kernel, Nearest, Sampling};
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::{Value, numbers_of};

/// How all axes are resized.
pub(super) enum Target {
    /// By these factors.
    Scales(Value),
    /// To these extents; where the ratio of the extents is kept, all axes by one of the ratios.
    Sizes { sizes: Value, kept: Option<Ratio> },
}

/// Which ratio of sizes to extents all axes are resized by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ratio {
    Least,
    Greatest,
}

/// What is resized, and how.
pub(super) struct Request {
    pub(super) sampling: Sampling,
    pub(super) axes: Vec<usize>,
    pub(super) target: Target,
    /// Starts, then ends, of each axis in parts of its extent, where the coordinates ask for it.
    pub(super) region: Option<Value>,
    /// What is taken for elements outside of the input.
    pub(super) outside: f64,
}

/// One axis.
struct Axis {
    /// Its place.
    at: usize,
    /// The scale, a number.
    scale: Value,
    input: PrimExpr,
    output: PrimExpr,
    /// Start and end of the region.
    region: Option<(Value, Value)>,
}

/// Arithmetic of a type of floats.
struct Calc<'a, 'b> {
    cx: &'a mut OpCx<'b>,
    /// `float32`, as scales are, where elements are chosen: one that a place lies on but for rounding is that.
    float: DType,
}

impl Calc<'_, '_> {
    fn number(&self, value: f64) -> Result<Value, Fail> {
        self.cx.scalar(value, self.float)
    }

    fn op(&mut self, op: &str, a: &Value, b: &Value) -> Result<Value, Fail> {
        self.cx.apply(op, &[a, b])
    }

    fn with(&mut self, op: &str, a: &Value, b: f64) -> Result<Value, Fail> {
        let b = self.number(b)?;
        self.op(op, a, &b)
    }

    fn cast(&mut self, value: Value, dtype: DType) -> Result<Value, Fail> {
        if self.cx.dtype(&value, "a value")? == dtype {
            return Ok(value);
        }
        self.cx.call("astype", vec![value], vec![("dtype", AttrValue::DType(dtype))])
    }

    /// An extent as a number.
    fn extent(&mut self, extent: &PrimExpr) -> Result<Value, Fail> {
        self.cast(Value::int(extent.clone()), self.float)
    }

    /// The numbers from 0 to an extent.
    fn count(&mut self, extent: &PrimExpr) -> Result<Value, Fail> {
        let end = Leaf::Prim(extent.clone()).into();
        let count = self.cx.call("arange", vec![end], vec![("dtype", AttrValue::DType(DType::I64))])?;
        self.cast(count, self.float)
    }

    fn element(&mut self, list: &Value, at: usize) -> Result<Value, Fail> {
        let at = PrimExpr::i64(i64::try_from(at).unwrap_or(i64::MAX));
        self.cx.call("take", vec![list.clone(), Value::int(at)], vec![("axis", 0.into())])
    }

    fn choose(&mut self, cond: &Value, a: &Value, b: &Value) -> Result<Value, Fail> {
        self.cx.apply("where", &[cond, a, b])
    }

    /// `a / b`, and 0 where `b` is 0.
    fn ratio(&mut self, a: &Value, b: &Value) -> Result<Value, Fail> {
        let zero = self.number(0.0)?;
        let none = self.op("equal", b, &zero)?;
        let one = self.number(1.0)?;
        let divisor = self.choose(&none, &one, b)?;
        let ratio = self.op("divide", a, &divisor)?;
        self.choose(&none, &zero, &ratio)
    }
}

pub(super) fn resized(cx: &mut OpCx<'_>, x: Value, request: &Request) -> Outputs {
    let dims = cx.dims(&x, "X")?;
    let dtype = cx.dtype(&x, "X")?;
    let nearest = matches!(request.sampling.kernel, Kernel::Nearest(_));
    // Sums are in single precision at least.
    let wide = if nearest || dtype == DType::F32 || dtype == DType::F64 { dtype } else { DType::F32 };
    let float = if nearest { DType::F32 } else { DType::F64 };
    let mut calc = Calc { cx, float };
    let axes = calc.axes(request, &dims)?;
    let mut out = calc.cast(x, wide)?;
    let mut masks = Vec::new();
    for axis in &axes {
        let place = calc.places(request.sampling.coordinates, axis)?;
        if request.region.is_some() {
            masks.push(calc.mask(axis, &place, dims.len())?);
        }
        out = calc.along(&request.sampling, out, axis, &place, dims.len())?;
    }
    let cx = calc.cx;
    let value = cx.scalar(request.outside, wide)?;
    for mask in masks {
        out = cx.apply("where", &[&mask, &value, &out])?;
    }
    if wide != dtype {
        out = cx.call("astype", vec![out], vec![("dtype", AttrValue::DType(dtype))])?;
    }
    Ok(vec![out])
}

impl Calc<'_, '_> {
    /// The axes that change, or may.
    fn axes(&mut self, request: &Request, dims: &[PrimExpr]) -> Result<Vec<Axis>, Fail> {
        let count = request.axes.len();
        let inputs: Vec<PrimExpr> = request.axes.iter().map(|&a| dims[a].clone()).collect();
        let extents = Value::ints(inputs.clone());
        let wide = self.cast(extents.clone(), self.float)?;
        let (scales, sizes, known) = match &request.target {
            Target::Scales(scales) => {
                if self.cx.length(scales, "the scales")? != count {
                    return Err(format!("scales are given for {count} axes, and as many must be there").into());
                }
                let fixed = scales.as_const().and_then(numbers_of);
                let scales = self.cast(scales.clone(), self.float)?;
                // Extents are products in single precision.
                let (a, b) = (self.cast(scales.clone(), DType::F32)?, self.cast(extents.clone(), DType::F32)?);
                let product = self.op("multiply", &a, &b)?;
                let product = self.cx.apply("floor", &[&product])?;
                let known = inputs.iter().enumerate().map(|(i, n)| {
                    let whole = fixed.as_ref().map(|s| s[i]).filter(|s| s.fract() == 0.0 && (0.0..4096.0).contains(s));
                    whole.map(|s| PrimExpr::binary(BinOp::Mul, n.clone(), PrimExpr::i64(s as i64)))
                });
                (scales, self.cast(product, DType::I64)?, known.collect())
            }
            Target::Sizes { sizes, kept } => {
                if self.cx.length(sizes, "the sizes")? != count {
                    return Err(format!("sizes are given for {count} axes, and as many must be there").into());
                }
                let sizes = self.cast(sizes.clone(), DType::I64)?;
                let numbers = self.cast(sizes.clone(), self.float)?;
                let ratios = self.ratio(&numbers, &wide)?;
                match kept {
                    None => {
                        let known = sizes.known_ints().map_or(vec![None; count], |s| s.into_iter().map(Some).collect());
                        // Of nothing there are no elements: an extent below zero is an error.
                        let zero = self.cx.scalar(0.0, DType::I64)?;
                        let empty = self.op("equal", &extents, &zero)?;
                        let below = self.op("subtract", &zero, &sizes)?;
                        (ratios, self.choose(&empty, &below, &sizes)?, known)
                    }
                    Some(kept) => {
                        let op = if *kept == Ratio::Least { "min" } else { "max" };
                        let ratio = self.cx.call(op, vec![ratios], vec![("axis", vec![0].into())])?;
                        let whole = Value::shape(vec![PrimExpr::i64(i64::try_from(count).unwrap_or(i64::MAX))]);
                        let ratios = self.cx.call("broadcast_to", vec![ratio, whole], vec![])?;
                        let sizes = self.op("multiply", &ratios, &wide)?;
                        let sizes = self.with("add", &sizes, 0.5)?;
                        let sizes = self.cx.apply("floor", &[&sizes])?;
                        (ratios, self.cast(sizes, DType::I64)?, vec![None; count])
                    }
                }
            }
        };
        let outputs = self.cx.run_time_dims_beside(&sizes, &known)?;
        let mut axes = Vec::new();
        for (i, (input, output)) in inputs.into_iter().zip(outputs).enumerate() {
            let scale = self.element(&scales, i)?;
            let one = scale.as_const().and_then(numbers_of).is_none_or(|s| s == [1.0]);
            if input == output && request.region.is_none() && one {
                continue;
            }
            let region = match &request.region {
                None => None,
                Some(region) => {
                    let region = self.cast(region.clone(), self.float)?;
                    Some((self.element(&region, i)?, self.element(&region, i + count)?))
                }
            };
            axes.push(Axis { at: request.axes[i], scale, input, output, region });
        }
        Ok(axes)
    }
}

impl Calc<'_, '_> {
    /// What place of the input each place of the output is.
    fn places(&mut self, coordinates: Coordinates, axis: &Axis) -> Result<Value, Fail> {
        let y = self.count(&axis.output)?;
        let (input, scale) = (self.extent(&axis.input)?, &axis.scale);
        let width = self.op("multiply", scale, &input)?;
        let last = self.with("subtract", &input, 1.0)?;
        let one = self.number(1.0)?;
        let single = self.op("equal", &width, &one)?;
        // `y * factor / (width - 1)`, and something else where that divides by 0.
        let spread = |calc: &mut Self, y: &Value, single_: &Value| -> Result<Value, Fail> {
            let gaps = calc.with("subtract", &width, 1.0)?;
            let gaps = calc.choose(&single, &one, &gaps)?;
            let along = calc.op("multiply", y, &last)?;
            let along = calc.op("divide", &along, &gaps)?;
            calc.choose(&single, single_, &along)
        };
        let half_pixel = |calc: &mut Self| -> Result<Value, Fail> {
            let center = calc.with("add", &y, 0.5)?;
            calc.op("divide", &center, scale)
        };
        match coordinates {
            Coordinates::AlignCorners => {
                let zero = self.number(0.0)?;
                spread(self, &y, &zero)
            }
            Coordinates::Asymmetric => self.op("divide", &y, scale),
            Coordinates::TfHalfPixelForNn => half_pixel(self),
            Coordinates::HalfPixel => {
                let place = half_pixel(self)?;
                self.with("subtract", &place, 0.5)
            }
            Coordinates::PytorchHalfPixel => {
                let place = half_pixel(self)?;
                let place = self.with("subtract", &place, 0.5)?;
                let before = self.number(-0.5)?;
                self.choose(&single, &before, &place)
            }
            Coordinates::HalfPixelSymmetric => {
                let output = self.extent(&axis.output)?;
                let part = self.ratio(&output, &width)?;
                let rest = self.op("subtract", &one, &part)?;
                let center = self.with("divide", &input, 2.0)?;
                let offset = self.op("multiply", &center, &rest)?;
                let place = half_pixel(self)?;
                let place = self.op("add", &offset, &place)?;
                self.with("subtract", &place, 0.5)
            }
            Coordinates::TfCropAndResize => {
                let (start, end) = axis.region.as_ref().ok_or("roi is missing")?;
                let size = self.op("subtract", end, start)?;
                let middle = self.op("multiply", &size, &last)?;
                let middle = self.with("divide", &middle, 2.0)?;
                let y = self.op("multiply", &y, &size)?;
                let within = spread(self, &y, &middle)?;
                let from = self.op("multiply", start, &last)?;
                self.op("add", &within, &from)
            }
        }
    }

    /// Which places lie outside of the input, along the axis of a tensor of `rank`.
    fn mask(&mut self, axis: &Axis, place: &Value, rank: usize) -> Result<Value, Fail> {
        let last = self.extent(&axis.input)?;
        let last = self.with("subtract", &last, 1.0)?;
        let before = self.with("less", place, 0.0)?;
        let behind = self.op("greater", place, &last)?;
        let outside = self.op("logical_or", &before, &behind)?;
        let mut shape = vec![PrimExpr::i64(1); rank];
        shape[axis.at] = axis.output.clone();
        self.cx.reshape(&outside, shape)
    }

    /// Places rounded to indices within the axis.
    fn clamped(&mut self, place: &Value, axis: &Axis) -> Result<Value, Fail> {
        let last = self.extent(&axis.input)?;
        let last = self.with("subtract", &last, 1.0)?;
        let index = self.op("minimum", place, &last)?;
        let index = self.with("maximum", &index, 0.0)?;
        self.cast(index, DType::I64)
    }

    fn along(&mut self, sampling: &Sampling, x: Value, axis: &Axis, place: &Value, rank: usize) -> Result<Value, Fail> {
        let at = i64::try_from(axis.at).unwrap_or(i64::MAX);
        if let Kernel::Nearest(nearest) = sampling.kernel {
            let index = match nearest {
                Nearest::PreferFloor => {
                    let moved = self.with("subtract", place, 0.5)?;
                    self.cx.apply("ceil", &[&moved])?
                }
                Nearest::PreferCeil => {
                    let moved = self.with("add", place, 0.5)?;
                    self.cx.apply("floor", &[&moved])?
                }
                Nearest::Floor => self.cx.apply("floor", &[place])?,
                Nearest::Ceil => self.cx.apply("ceil", &[place])?,
                Nearest::Simple => {
                    let smaller = self.with("less", &axis.scale, 1.0)?;
                    let (before, behind) = (self.cx.apply("floor", &[place])?, self.cx.apply("ceil", &[place])?);
                    self.choose(&smaller, &behind, &before)?
                }
            };
            let index = self.clamped(&index, axis)?;
            return self.cx.call("take", vec![x, index], vec![("axis", at.into())]);
        }
        // The element before a place, how far behind it the place is, and the elements around: a row for each place.
        let before = self.cx.apply("ceil", &[place])?;
        let before = self.with("subtract", &before, 1.0)?;
        let ratio = self.op("subtract", place, &before)?;
        let column = vec![axis.output.clone(), PrimExpr::i64(1)];
        let (before, ratio) = (self.cx.reshape(&before, column.clone())?, self.cx.reshape(&ratio, column)?);
        let (shrink, steps, count) = self.steps(sampling, axis)?;
        let index = self.op("add", &before, &steps)?;
        let distance = self.op("subtract", &steps, &ratio)?;
        let distance = self.op("multiply", &shrink, &distance)?;
        let distance = self.cx.apply("abs", &[&distance])?;
        let mut weights = self.weights(sampling.kernel, &distance)?;
        if sampling.antialias {
            weights = self.normalized(&weights)?;
        }
        let clamped = self.clamped(&index, axis)?;
        if sampling.exclude_outside {
            let within = self.cast(clamped.clone(), self.float)?;
            let within = self.op("equal", &within, &index)?;
            let zero = self.number(0.0)?;
            weights = self.choose(&within, &weights, &zero)?;
            weights = self.normalized(&weights)?;
        }
        let around = self.cx.call("take", vec![x.clone(), clamped], vec![("axis", at.into())])?;
        let dtype = self.cx.dtype(&x, "X")?;
        let weights = self.cast(weights, dtype)?;
        let mut shape = vec![PrimExpr::i64(1); rank + 1];
        shape[axis.at] = axis.output.clone();
        shape[axis.at + 1] = count;
        let weights = self.cx.reshape(&weights, shape)?;
        let parts = self.op("multiply", &around, &weights)?;
        self.cx.call("sum", vec![parts], vec![("axis", vec![at + 1].into())])
    }

    /// By how much a kernel is wider, from which element on elements are weighed, as a row, and how many.
    fn steps(&mut self, sampling: &Sampling, axis: &Axis) -> Result<(Value, Value, PrimExpr), Fail> {
        let reach = if matches!(sampling.kernel, Kernel::Cubic(_)) { 2.0 } else { 1.0 };
        let one = self.number(1.0)?;
        let shrink = if sampling.antialias { self.op("minimum", &axis.scale, &one)? } else { one };
        // A kernel that is too wide has no count.
        let least = self.number(1.0 / MAX_WIDENED)?;
        let fits = self.op("greater_equal", &shrink, &least)?;
        let safe = self.choose(&fits, &shrink, &least)?;
        let reach = self.number(-reach)?;
        let first = self.op("divide", &reach, &safe)?;
        let first = self.cx.apply("floor", &[&first])?;
        let first = self.with("add", &first, 1.0)?;
        let twice = self.with("multiply", &first, -2.0)?;
        let count = self.with("add", &twice, 2.0)?;
        let none = self.number(-1.0)?;
        let count = self.choose(&fits, &count, &none)?;
        let count = self.cast(count, DType::I64)?;
        let count = self.cx.run_time_dims(&count, 1)?.into_iter().next().ok_or("there is no count")?;
        let steps = self.count(&count)?;
        let steps = self.op("add", &first, &steps)?;
        let row = self.cx.reshape(&steps, vec![PrimExpr::i64(1), count.clone()])?;
        Ok((shrink, row, count))
    }

    fn weights(&mut self, kernel: Kernel, distance: &Value) -> Result<Value, Fail> {
        let Kernel::Cubic(a) = kernel else {
            let one = self.number(1.0)?;
            let weight = self.op("subtract", &one, distance)?;
            return self.with("maximum", &weight, 0.0);
        };
        // ((a + 2) d - (a + 3)) d d + 1 up to 1, and ((a d - 5 a) d + 8 a) d - 4 a up to 2.
        let near = self.with("multiply", distance, a + 2.0)?;
        let near = self.with("subtract", &near, a + 3.0)?;
        let near = self.op("multiply", &near, distance)?;
        let near = self.op("multiply", &near, distance)?;
        let near = self.with("add", &near, 1.0)?;
        let far = self.with("multiply", distance, a)?;
        let far = self.with("subtract", &far, 5.0 * a)?;
        let far = self.op("multiply", &far, distance)?;
        let far = self.with("add", &far, 8.0 * a)?;
        let far = self.op("multiply", &far, distance)?;
        let far = self.with("subtract", &far, 4.0 * a)?;
        let zero = self.number(0.0)?;
        let is_far = self.with("less", distance, 2.0)?;
        let far = self.choose(&is_far, &far, &zero)?;
        let is_near = self.with("less_equal", distance, 1.0)?;
        self.choose(&is_near, &near, &far)
    }

    /// Rows that add up to 1; rows of 0 stay.
    fn normalized(&mut self, weights: &Value) -> Result<Value, Fail> {
        let attrs = vec![("axis", vec![1].into()), ("keepdims", true.into())];
        let sum = self.cx.call("sum", vec![weights.clone()], attrs)?;
        let zero = self.number(0.0)?;
        let none = self.op("equal", &sum, &zero)?;
        let one = self.number(1.0)?;
        let sum = self.choose(&none, &one, &sum)?;
        self.op("divide", weights, &sum)
    }
}
