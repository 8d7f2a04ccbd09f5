//! Fourier transforms and windows.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};
use tvm_ir::relax::Leaf;

use super::Row;
use super::create::element_type;
use super::slice::tuple;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("BlackmanWindow", 17, |cx| window(cx, [0.42, 0.5, 0.08])),
    ("DFT", 17, dft_attribute),
    ("DFT", 20, dft),
    ("HammingWindow", 17, |cx| window(cx, [25.0 / 46.0, 21.0 / 46.0, 0.0])),
    ("HannWindow", 17, |cx| window(cx, [0.5, 0.5, 0.0])),
    ("MelWeightMatrix", 17, mel_weight_matrix),
    ("STFT", 17, stft),
];

/// One integer that becomes part of a shape.
fn count(cx: &mut OpCx<'_>, value: &Value, role: &str) -> Result<PrimExpr, Fail> {
    if cx.length(value, role)? != 1 {
        return Err(format!("{role} must be one integer").into());
    }
    cx.run_time_dims(value, 1)?.pop().ok_or_else(|| format!("{role} must be one integer").into())
}

fn prim(value: PrimExpr) -> Value {
    Leaf::Prim(value).into()
}

fn dft_attribute(cx: &mut OpCx<'_>) -> Outputs {
    let axis = cx.node.int_or("axis", 1)?;
    transformed(cx, Ok(axis))
}

fn dft(cx: &mut OpCx<'_>) -> Outputs {
    let axis = match cx.optional(2) {
        None => Ok(-2),
        Some(axis) => match axis.fixed_ints().as_deref() {
            Some([axis]) => Ok(*axis),
            Some(_) => return Err("the axis must be one integer".into()),
            None => Err(axis),
        },
    };
    transformed(cx, axis)
}

/// Along an axis that is known, or one that a tensor gives at run time.
fn transformed(cx: &mut OpCx<'_>, axis: Result<i64, Value>) -> Outputs {
    let (x, length) = (cx.input(0, "input")?, cx.optional(1));
    let (inverse, onesided) = (cx.node.flag_or("inverse", false)?, cx.node.flag_or("onesided", false)?);
    let length = length.map(|v| count(cx, &v, "dft_length")).transpose()?;
    let dims = cx.dims(&x, "input")?;
    // Half of the elements follow from the others.
    let whole = |n: &PrimExpr| {
        if inverse && onesided {
            let two = PrimExpr::i64(2);
            PrimExpr::binary(BinOp::Mul, PrimExpr::binary(BinOp::Sub, n.clone(), PrimExpr::i64(1)), two)
        } else {
            n.clone()
        }
    };
    let attrs = |axis: i64| vec![("axis", axis.into()), ("inverse", inverse.into()), ("onesided", onesided.into())];
    let axis = match axis {
        Ok(axis) => {
            let at = cx.axis(axis, dims.len())?;
            let length = length.unwrap_or_else(|| whole(&dims[at]));
            return Ok(vec![cx.call("dft", vec![x, prim(length)], attrs(axis))?]);
        }
        Err(axis) => cx.reshape(&axis, Vec::new())?,
    };
    let [signal @ .., parts] = &dims[..] else { return Err("the input must have two axes or more".into()) };
    // The last axis is none to transform along; it counts as one when axes are counted from the end.
    let ones = [signal, &[PrimExpr::i64(1)]].concat();
    let extents = cx.emitter.materialize(&ones, false)?;
    let around = cx.apply("axis_parts", &[&extents, &axis])?;
    let around = cx.run_time_dims(&around, 3)?;
    let length = length.unwrap_or_else(|| whole(&around[1]));
    let folded = cx.reshape(&x, [&around[..], std::slice::from_ref(parts)].concat())?;
    let out = cx.call("dft", vec![folded, prim(length)], attrs(1))?;
    let out_dims = cx.dims(&out, "the transform")?;
    let [_, along, _, out_parts] = &out_dims[..] else { return Err("the transform must have four axes".into()) };
    let mut result = if *along == around[1] { signal.to_vec() } else { replaced(cx, signal, &axis, along)? };
    result.push(out_parts.clone());
    Ok(vec![cx.reshape(&out, result)?])
}

/// Extents, with another one for the axis that a tensor gives, which counts one axis more.
fn replaced(cx: &mut OpCx<'_>, dims: &[PrimExpr], axis: &Value, extent: &PrimExpr) -> Result<Vec<PrimExpr>, Fail> {
    let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
    let dtype = cx.dtype(axis, "the axis")?;
    let axis = if dtype == DType::I64 {
        axis.clone()
    } else {
        cx.call("astype", vec![axis.clone()], vec![("dtype", AttrValue::DType(DType::I64))])?
    };
    let numbers: Vec<PrimExpr> = (0..rank).map(PrimExpr::i64).collect();
    let (numbers, all) = (cx.emitter.materialize(&numbers, false)?, cx.scalar((rank + 1) as f64, DType::I64)?);
    let from_end = cx.apply("add", &[&axis, &all])?;
    let (front, back) = (cx.apply("equal", &[&numbers, &axis])?, cx.apply("equal", &[&numbers, &from_end])?);
    let here = cx.apply("logical_or", &[&front, &back])?;
    let extent = cx.emitter.materialize(std::slice::from_ref(extent), true)?;
    let old = cx.emitter.materialize(dims, false)?;
    let new = cx.apply("where", &[&here, &extent, &old])?;
    cx.run_time_dims(&new, dims.len())
}

fn stft(cx: &mut OpCx<'_>) -> Outputs {
    let (mut signal, step) = (cx.input(0, "signal")?, cx.input(1, "frame_step")?);
    let (window, length) = (cx.optional(2), cx.optional(3));
    let onesided = cx.node.flag_or("onesided", true)?;
    let step = count(cx, &step, "frame_step")?;
    let length = match (&length, &window) {
        (Some(length), _) => count(cx, length, "frame_length")?,
        (None, Some(window)) => {
            cx.dims(window, "window")?.pop().ok_or("the window must be a list of numbers, not one")?
        }
        (None, None) => return Err("one of window and frame_length must be given".into()),
    };
    if cx.rank(&signal, "signal")? == 2 {
        signal = cx.call("expand_dims", vec![signal], vec![("axis", vec![2].into())])?;
    }
    let window = window.unwrap_or(Value::Leaf(Leaf::Absent));
    let args = vec![signal, window, prim(length), prim(step)];
    Ok(vec![cx.call("stft", args, vec![("onesided", onesided.into())])?])
}

/// `a0 - a1 cos(2πi / n) + a2 cos(4πi / n)`, where `n` is the size, or one less in a symmetric window.
fn window(cx: &mut OpCx<'_>, [a0, a1, a2]: [f64; 3]) -> Outputs {
    let size = cx.input(0, "size")?;
    let periodic = cx.node.flag_or("periodic", true)?;
    let to = element_type(cx.node.int_or("output_datatype", 1)?)?;
    let size = count(cx, &size, "size")?;
    let wide = if to == DType::F64 { DType::F64 } else { DType::F32 };
    let cast = |cx: &mut OpCx<'_>, v: Value, dtype: DType| {
        cx.call("astype", vec![v], vec![("dtype", AttrValue::DType(dtype))])
    };
    let turns = if periodic { size.clone() } else { PrimExpr::binary(BinOp::Sub, size.clone(), PrimExpr::i64(1)) };
    let turns = cx.emitter.materialize(&[turns], true)?;
    let turns = cast(cx, turns, wide)?;
    let circle = cx.scalar(std::f64::consts::TAU, wide)?;
    let step = cx.apply("divide", &[&circle, &turns])?;
    let places = cx.call("arange", vec![prim(size)], vec![])?;
    let places = cast(cx, places, wide)?;
    let angle = cx.apply("multiply", &[&places, &step])?;
    let (a0, a1) = (cx.scalar(a0, wide)?, cx.scalar(a1, wide)?);
    let cos = cx.apply("cos", &[&angle])?;
    let wave = cx.apply("multiply", &[&a1, &cos])?;
    let mut out = cx.apply("subtract", &[&a0, &wave])?;
    if a2 != 0.0 {
        let (two, a2) = (cx.scalar(2.0, wide)?, cx.scalar(a2, wide)?);
        let twice = cx.apply("multiply", &[&angle, &two])?;
        let cos = cx.apply("cos", &[&twice])?;
        let wave = cx.apply("multiply", &[&a2, &cos])?;
        out = cx.apply("add", &[&out, &wave])?;
    }
    Ok(vec![if to == wide { out } else { cast(cx, out, to)? }])
}

/// Arithmetic in double precision.
struct Wide<'a, 'b>(&'a mut OpCx<'b>);

impl Wide<'_, '_> {
    fn number(&self, v: f64) -> Result<Value, Fail> {
        self.0.scalar(v, DType::F64)
    }

    /// A tensor of one number of any type, as one of rank 0.
    fn one(&mut self, v: &Value) -> Result<Value, Fail> {
        let v = self.0.reshape(v, Vec::new())?;
        self.cast(v, DType::F64)
    }

    fn cast(&mut self, v: Value, to: DType) -> Result<Value, Fail> {
        self.0.call("astype", vec![v], vec![("dtype", AttrValue::DType(to))])
    }

    fn op(&mut self, op: &str, a: &Value, b: &Value) -> Result<Value, Fail> {
        self.0.apply(op, &[a, b])
    }

    fn with(&mut self, op: &str, a: &Value, b: f64) -> Result<Value, Fail> {
        let b = self.number(b)?;
        self.op(op, a, &b)
    }

    /// A frequency in mels.
    fn mels(&mut self, hertz: &Value) -> Result<Value, Fail> {
        let part = self.with("divide", hertz, 700.0)?;
        let part = self.with("add", &part, 1.0)?;
        let log = self.0.apply("log", &[&part])?;
        self.with("multiply", &log, 2595.0 / std::f64::consts::LN_10)
    }

    /// The bin of each of so many bands and two more: their edges, at equal distances in mels.
    fn bins(&mut self, bands: &PrimExpr, [length, rate, low, high]: &[Value; 4]) -> Result<Value, Fail> {
        let (length, rate) = (self.one(length)?, self.one(rate)?);
        let (low, high) = (self.one(low)?, self.one(high)?);
        let (low, high) = (self.mels(&low)?, self.mels(&high)?);
        let count = PrimExpr::binary(BinOp::Add, bands.clone(), PrimExpr::i64(2));
        let places = self.0.call("arange", vec![prim(count.clone())], vec![])?;
        let count = self.0.emitter.materialize(&[count], true)?;
        let (places, count) = (self.cast(places, DType::F64)?, self.cast(count, DType::F64)?);
        let range = self.op("subtract", &high, &low)?;
        let step = self.op("divide", &range, &count)?;
        let mels = self.op("multiply", &places, &step)?;
        let mels = self.op("add", &mels, &low)?;
        let power = self.with("multiply", &mels, std::f64::consts::LN_10 / 2595.0)?;
        let power = self.0.apply("exp", &[&power])?;
        let hertz = self.with("subtract", &power, 1.0)?;
        let hertz = self.with("multiply", &hertz, 700.0)?;
        let more = self.with("add", &length, 1.0)?;
        let bins = self.op("multiply", &more, &hertz)?;
        let bins = self.op("divide", &bins, &rate)?;
        self.0.apply("floor", &[&bins])
    }
}

/// For each band a triangle over the bins from its lower to its upper edge, 1 in the middle.
fn mel_weight_matrix(cx: &mut OpCx<'_>) -> Outputs {
    let bands = cx.input(0, "num_mel_bins")?;
    let rest = [
        cx.input(1, "dft_length")?,
        cx.input(2, "sample_rate")?,
        cx.input(3, "lower_edge_hertz")?,
        cx.input(4, "upper_edge_hertz")?,
    ];
    let to = element_type(cx.node.int_or("output_datatype", 1)?)?;
    let (bands, length) = (count(cx, &bands, "num_mel_bins")?, count(cx, &rest[0], "dft_length")?);
    let half = PrimExpr::binary(BinOp::FloorDiv, length, PrimExpr::i64(2));
    let rows = PrimExpr::binary(BinOp::Add, half, PrimExpr::i64(1));
    let mut wide = Wide(cx);
    let bins = wide.bins(&bands, &rest)?;
    let mut edge = |first: i64| {
        let last = PrimExpr::binary(BinOp::Add, bands.clone(), PrimExpr::i64(first));
        let args =
            vec![bins.clone(), tuple(vec![PrimExpr::i64(0)]), tuple(vec![PrimExpr::i64(first)]), tuple(vec![last])];
        wide.0.call("strided_slice", args, vec![("assume_inbound", true.into())])
    };
    let (low, middle, high) = (edge(0)?, edge(1)?, edge(2)?);
    let here = wide.0.call("arange", vec![prim(rows.clone())], vec![])?;
    let here = wide.cast(here, DType::F64)?;
    let here = wide.0.reshape(&here, vec![rows, PrimExpr::i64(1)])?;
    let (zero, one) = (wide.number(0.0)?, wide.number(1.0)?);
    let (up, down) = (wide.op("subtract", &middle, &low)?, wide.op("subtract", &high, &middle)?);
    // Rising; a band that begins in its middle is 1 there alone.
    let (from_low, to_middle) = (wide.op("subtract", &here, &low)?, wide.op("less_equal", &here, &middle)?);
    let begun = wide.op("greater_equal", &from_low, &zero)?;
    let rises = wide.op("logical_and", &begun, &to_middle)?;
    let flat = wide.op("equal", &up, &zero)?;
    let slope = wide.op("divide", &from_low, &up)?;
    let rising = wide.0.apply("where", &[&flat, &one, &slope])?;
    let rising = wide.0.apply("where", &[&rises, &rising, &zero])?;
    let (after, left) = (wide.op("greater_equal", &here, &middle)?, wide.op("subtract", &high, &here)?);
    let before = wide.op("greater", &left, &zero)?;
    let falls = wide.op("logical_and", &after, &before)?;
    let falling = wide.op("divide", &left, &down)?;
    let out = wide.0.apply("where", &[&falls, &falling, &rising])?;
    Ok(vec![wide.cast(out, to)?])
}
