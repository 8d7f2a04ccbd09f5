//! Operators on quantized tensors: computed on what they stand for, and quantized again.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;

use super::super::quantize::{centered, dequantize, quantize, to_quantized};
use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs, axes_attr};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("DequantizeLinear", 1, dequantize),
    ("DynamicQuantizeMatMul", 1, dynamic_quantize_matmul),
    ("MatMulIntegerToFloat", 1, matmul_integer_to_float),
    ("QLinearAdd", 1, |cx| binary(cx, "add")),
    ("QLinearConcat", 1, concat),
    ("QLinearGlobalAveragePool", 1, global_average_pool),
    ("QLinearLeakyRelu", 1, |cx| {
        let alpha = f64::from(cx.node.float_or("alpha", 0.01)?);
        unary(cx, |cx, x| cx.call("nn.leakyrelu", vec![x], vec![("alpha", alpha.into())]))
    }),
    ("QLinearMul", 1, |cx| binary(cx, "multiply")),
    ("QLinearSigmoid", 1, |cx| unary(cx, |cx, x| cx.apply("sigmoid", &[&x]))),
    ("QuantizeLinear", 1, quantize),
];

/// What a quantized tensor stands for, in float32; `first` is its place among the inputs, before scale and zero point.
fn real(cx: &mut OpCx<'_>, first: usize) -> Result<Value, Fail> {
    let (x, scale) = (cx.input(first, "data")?, cx.input(first + 1, "scale")?);
    let zero = cx.optional(first + 2);
    let value = centered(cx, &x, zero)?;
    let value = cx.astype(&value, DType::F32)?;
    cx.apply("multiply", &[&value, &scale])
}

/// Quantized with the scale and zero point that stand from `first` on among the inputs, to the type of another value.
fn quantized(cx: &mut OpCx<'_>, value: &Value, first: usize, like: &Value) -> Outputs {
    let (scale, zero) = (cx.input(first, "output scale")?, cx.optional(first + 1));
    let to = cx.dtype(like, "data")?;
    let ratio = cx.apply("divide", &[value, &scale])?;
    Ok(vec![to_quantized(cx, &ratio, zero.as_ref(), to, true)?])
}

fn binary(cx: &mut OpCx<'_>, op: &str) -> Outputs {
    let (a, b) = (real(cx, 0)?, real(cx, 3)?);
    let out = cx.apply(op, &[&a, &b])?;
    let like = cx.input(0, "A")?;
    quantized(cx, &out, 6, &like)
}

fn unary(cx: &mut OpCx<'_>, f: impl Fn(&mut OpCx<'_>, Value) -> Result<Value, Fail>) -> Outputs {
    let x = real(cx, 0)?;
    let out = f(cx, x)?;
    let like = cx.input(0, "X")?;
    quantized(cx, &out, 3, &like)
}

fn global_average_pool(cx: &mut OpCx<'_>) -> Outputs {
    let channels_last = cx.node.flag_or("channels_last", false)?;
    unary(cx, |cx, x| {
        let rank = cx.rank(&x, "X")?;
        let axes: Vec<usize> = if channels_last { (1..rank.saturating_sub(1)).collect() } else { (2..rank).collect() };
        cx.call("mean", vec![x], vec![("axis", axes_attr(&axes)), ("keepdims", true.into())])
    })
}

/// Output scale and zero point come first, then each part with its own.
fn concat(cx: &mut OpCx<'_>) -> Outputs {
    let axis = cx.node.int("axis")?.ok_or("attribute 'axis' is missing")?;
    let parts = cx.node.input_count().saturating_sub(2) / 3;
    let parts = (0..parts).map(|i| real(cx, 2 + 3 * i)).collect::<Result<Vec<_>, _>>()?;
    let out = cx.call("concat", vec![Value::Tuple(parts)], vec![("axis", axis.into())])?;
    let like = cx.input(2, "data")?;
    quantized(cx, &out, 0, &like)
}

/// `(A - a_zero) * (B - b_zero)` in integers, times the scales, plus a bias.
fn scaled_product(
    cx: &mut OpCx<'_>,
    [a, b]: [&Value; 2],
    [a_zero, b_zero]: [Option<Value>; 2],
    [a_scale, b_scale]: [&Value; 2],
    bias: Option<Value>,
) -> Outputs {
    let (a, b) = (centered(cx, a, a_zero)?, centered(cx, b, b_zero)?);
    let sums = cx.call("matmul", vec![a, b], vec![("out_dtype", AttrValue::DType(DType::I32))])?;
    let sums = cx.astype(&sums, DType::F32)?;
    let scale = cx.apply("multiply", &[a_scale, b_scale])?;
    let out = cx.apply("multiply", &[&sums, &scale])?;
    match bias {
        None => Ok(vec![out]),
        Some(bias) => Ok(vec![cx.apply("add", &[&out, &bias])?]),
    }
}

fn matmul_integer_to_float(cx: &mut OpCx<'_>) -> Outputs {
    let (a, b) = (cx.input(0, "A")?, cx.input(1, "B")?);
    let (a_scale, b_scale) = (cx.input(2, "a_scale")?, cx.input(3, "b_scale")?);
    let zeros = [cx.optional(4), cx.optional(5)];
    let bias = cx.optional(6);
    scaled_product(cx, [&a, &b], zeros, [&a_scale, &b_scale], bias)
}

/// A is quantized to `uint8` as DynamicQuantizeLinear does.
fn dynamic_quantize_matmul(cx: &mut OpCx<'_>) -> Outputs {
    let (a, b, b_scale) = (cx.input(0, "A")?, cx.input(1, "B")?, cx.input(2, "b_scale")?);
    let (b_zero, bias) = (cx.optional(3), cx.optional(4));
    let [a, a_scale, a_zero] = super::super::quantize::dynamically_quantized(cx, &a)?;
    scaled_product(cx, [&a, &b], [Some(a_zero), b_zero], [&a_scale, &b_scale], bias)
}
