//! Element-wise operators of two or more inputs, which broadcast.

use tvm_ir::attrs::AttrValue;
use tvm_ir::prim::PrimExpr;

use super::{Row, views};
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::{Value, numbers_of};

/// By operator and version. Before version 7 the second input broadcasts only where an attribute says so.
pub(super) static ROWS: &[Row] = &[
    ("Add", 1, |cx| legacy(cx, "add")),
    ("Add", 7, |cx| two(cx, "add")),
    ("And", 1, |cx| legacy(cx, "logical_and")),
    ("And", 7, |cx| two(cx, "logical_and")),
    ("BitShift", 11, bit_shift),
    ("BitwiseAnd", 18, |cx| two(cx, "bitwise_and")),
    ("BitwiseOr", 18, |cx| two(cx, "bitwise_or")),
    ("BitwiseXor", 18, |cx| two(cx, "bitwise_xor")),
    ("Div", 1, |cx| legacy(cx, "divide")),
    ("Div", 7, div),
    ("Equal", 1, |cx| legacy(cx, "equal")),
    ("Equal", 7, |cx| two(cx, "equal")),
    ("Greater", 1, |cx| legacy(cx, "greater")),
    ("Greater", 7, |cx| two(cx, "greater")),
    ("GreaterOrEqual", 12, |cx| two(cx, "greater_equal")),
    ("Less", 1, |cx| legacy(cx, "less")),
    ("Less", 7, |cx| two(cx, "less")),
    ("LessOrEqual", 12, |cx| two(cx, "less_equal")),
    ("Max", 8, |cx| Ok(vec![many(cx, "maximum")?])),
    ("Mean", 8, mean),
    ("Min", 8, |cx| Ok(vec![many(cx, "minimum")?])),
    ("Mod", 10, modulo),
    ("Mul", 1, |cx| legacy(cx, "multiply")),
    ("Mul", 7, |cx| two(cx, "multiply")),
    ("Or", 1, |cx| legacy(cx, "logical_or")),
    ("Or", 7, |cx| two(cx, "logical_or")),
    ("Pow", 7, pow),
    ("Sub", 1, |cx| legacy(cx, "subtract")),
    ("Sub", 7, |cx| two(cx, "subtract")),
    ("Sum", 8, |cx| Ok(vec![many(cx, "add")?])),
    ("Xor", 1, |cx| legacy(cx, "logical_xor")),
    ("Xor", 7, |cx| two(cx, "logical_xor")),
];

fn two(cx: &mut OpCx<'_>, name: &str) -> Outputs {
    let (a, b) = (cx.input(0, "A")?, cx.input(1, "B")?);
    Ok(vec![pair(cx, name, &a, &b)?])
}

/// Both operands broadcast to each other. Where it is not known which of two extents is 1, if one is, that is seen at run
/// time.
fn pair(cx: &mut OpCx<'_>, name: &str, a: &Value, b: &Value) -> Result<Value, Fail> {
    let value = cx.apply(name, &[a, b])?;
    let known = |v: &Value| v.tensor_info().and_then(|t| t.dims.known().map(<[_]>::to_vec));
    if let (None, Some(_), Some(dims)) = (known(&value), known(a), known(b)) {
        let a = views::expanded(cx, a.clone(), &Value::ints(dims))?.remove(0);
        let dims = cx.dims(&a, "A")?;
        let b = views::expanded(cx, b.clone(), &Value::ints(dims))?.remove(0);
        return cx.apply(name, &[&a, &b]);
    }
    Ok(value)
}

/// With `broadcast`, the axes of the second input are those of the first from `axis` on; without `axis`, the last.
fn legacy(cx: &mut OpCx<'_>, name: &str) -> Outputs {
    let (a, mut b) = (cx.input(0, "A")?, cx.input(1, "B")?);
    // A hint about memory, of the first version.
    cx.node.ints("consumed_inputs")?;
    let broadcast = cx.node.flag_or("broadcast", false)?;
    let axis = cx.node.int("axis")?;
    if let (true, Some(axis)) = (broadcast, axis) {
        let rank = cx.rank(&a, "A")?;
        let axis = cx.axis(axis, rank)?;
        let mut dims = cx.dims(&b, "B")?;
        while axis + dims.len() < rank {
            dims.push(PrimExpr::i64(1));
        }
        b = cx.reshape(&b, dims)?;
    }
    Ok(vec![cx.apply(name, &[&a, &b])?])
}

/// A shift by less than nothing or by all bits leaves what extending the sign does: nothing, or -1 of a negative
/// number that is shifted to the right.
fn bit_shift(cx: &mut OpCx<'_>) -> Outputs {
    let (x, y) = (cx.input(0, "X")?, cx.input(1, "Y")?);
    let right = match cx.node.string("direction")? {
        Some("LEFT") => false,
        Some("RIGHT") => true,
        _ => return Err("attribute 'direction' must be 'LEFT' or 'RIGHT'".into()),
    };
    let dtype = cx.dtype(&x, "X")?;
    let op = if right { "right_shift" } else { "left_shift" };
    let bits = f64::from(dtype.bits);
    if y.as_const().and_then(numbers_of).is_some_and(|shifts| shifts.iter().all(|s| (0.0..bits).contains(s))) {
        return Ok(vec![cx.apply(op, &[&x, &y])?]);
    }
    let (zero, last) = (cx.scalar(0.0, dtype)?, cx.scalar(bits - 1.0, dtype)?);
    let low = cx.apply("greater_equal", &[&y, &zero])?;
    let high = cx.apply("less_equal", &[&y, &last])?;
    let within = cx.apply("logical_and", &[&low, &high])?;
    let safe = cx.apply("where", &[&within, &y, &zero])?;
    let shifted = cx.apply(op, &[&x, &safe])?;
    let rest = if right && dtype.is_int() { cx.apply("right_shift", &[&x, &last])? } else { zero };
    Ok(vec![cx.apply("where", &[&within, &shifted, &rest])?])
}

/// An error if `divisor` is a constant of integers with a zero in it.
fn refuse_zero(cx: &OpCx<'_>, divisor: &Value) -> Result<(), Fail> {
    let integers = cx.dtype(divisor, "B")?.is_integer();
    let zero = divisor.as_const().and_then(numbers_of).is_some_and(|numbers| numbers.contains(&0.0));
    if integers && zero { Err("integers are divided by a constant that is 0".into()) } else { Ok(()) }
}

fn div(cx: &mut OpCx<'_>) -> Outputs {
    let b = cx.input(1, "B")?;
    refuse_zero(cx, &b)?;
    two(cx, "divide")
}

fn modulo(cx: &mut OpCx<'_>) -> Outputs {
    let (a, b) = (cx.input(0, "A")?, cx.input(1, "B")?);
    refuse_zero(cx, &b)?;
    let c = cx.node.flag_or("fmod", false)?;
    if !c && cx.opset < 28 && cx.dtype(&a, "A")?.is_float() {
        return Err("attribute 'fmod' must be 1 for floats".into());
    }
    if !c && cx.dtype(&a, "A")?.is_float() {
        return float_modulo(cx, &a, &b);
    }
    two(cx, if c { "mod" } else { "floor_mod" })
}

/// C's remainder, moved by the divisor where their signs differ.
fn float_modulo(cx: &mut OpCx<'_>, a: &Value, b: &Value) -> Outputs {
    let dtype = cx.dtype(a, "A")?;
    let zero = cx.scalar(0.0, dtype)?;
    let rest = cx.apply("mod", &[a, b])?;
    let some = cx.apply("not_equal", &[&rest, &zero])?;
    let below = cx.apply("less", &[&rest, &zero])?;
    let divisor_below = cx.apply("less", &[b, &zero])?;
    let differ = cx.apply("not_equal", &[&below, &divisor_below])?;
    let moves = cx.apply("logical_and", &[&some, &differ])?;
    let moved = cx.apply("add", &[&rest, b])?;
    Ok(vec![cx.apply("where", &[&moves, &moved, &rest])?])
}

/// All inputs, combined from the left.
fn many(cx: &mut OpCx<'_>, name: &str) -> Result<Value, Fail> {
    let mut values = cx.variadic("data")?.into_iter();
    let first = values.next().ok_or("there must be an input")?;
    values.try_fold(first, |sum, value| pair(cx, name, &sum, &value))
}

fn mean(cx: &mut OpCx<'_>) -> Outputs {
    let sum = many(cx, "add")?;
    let dtype = cx.dtype(&sum, "data")?;
    let count = cx.scalar(cx.node.input_count() as f64, dtype)?;
    Ok(vec![cx.apply("divide", &[&sum, &count])?])
}

/// The result has the type of the base. A power of an integer by a float is computed in floats.
fn pow(cx: &mut OpCx<'_>) -> Outputs {
    let (x, y) = (cx.input(0, "X")?, cx.input(1, "Y")?);
    let (base, exponent) = (cx.dtype(&x, "X")?, cx.dtype(&y, "Y")?);
    let cast = |cx: &mut OpCx<'_>, value: Value, dtype| -> Result<Value, Fail> {
        cx.call("astype", vec![value], vec![("dtype", AttrValue::DType(dtype))])
    };
    if base == exponent {
        return two(cx, "power");
    }
    if base.is_integer() && exponent.is_float() {
        let x = cast(cx, x, exponent)?;
        let power = cx.apply("power", &[&x, &y])?;
        return Ok(vec![cast(cx, power, base)?]);
    }
    let y = cast(cx, y, base)?;
    Ok(vec![cx.apply("power", &[&x, &y])?])
}
