//! Operators that choose elements by index or by mask.

use tvm_ir::attrs::AttrValue;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::Leaf;

use super::Row;
use super::select::first;
use super::slice::along;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::{Value, ints_of, numbers_of};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("Gather", 1, gather),
    ("GatherElements", 11, gather_elements),
    ("GatherND", 11, gather_nd),
    ("OneHot", 9, one_hot),
    ("Scatter", 9, scatter_elements),
    ("ScatterElements", 11, scatter_elements),
    ("ScatterND", 11, scatter_nd),
    ("TopK", 1, top_k_1),
    ("TopK", 10, top_k),
    ("Where", 9, where_),
];

/// Indices that count from the start. Constant ones are checked against `extent` and rewritten; others are checked and
/// rewritten when the model runs.
pub(in super::super) fn from_the_start(cx: &mut OpCx<'_>, indices: Value, extent: &PrimExpr) -> Result<Value, Fail> {
    let dtype = cx.dtype(&indices, "the indices")?;
    if !dtype.is_integer() {
        return Err(format!("the indices must be integers, not {dtype}").into());
    }
    if let (Some(constant), Some(n)) = (indices.as_const(), extent.as_int()) {
        let values = ints_of(constant).ok_or_else(|| Fail::limit(format!("indices of {dtype} are not supported")))?;
        if let Some(bad) = values.iter().find(|&&v| v < -n || v >= n) {
            return Err(format!("index {bad} is out of range for an axis of {n}").into());
        }
        if values.iter().all(|&v| v >= 0) {
            return Ok(indices);
        }
        let width = usize::from(dtype.bits / 8);
        let moved = values.iter().map(|&v| if v < 0 { v + n } else { v });
        let bytes: Vec<u8> = moved.flat_map(|v| v.to_le_bytes().into_iter().take(width)).collect();
        let constant = Constant::new(dtype, constant.shape().to_vec(), Bytes::new(bytes));
        return Ok(constant.map_err(|_| "the indices are malformed")?.into());
    }
    let extent = cx.emitter.materialize(std::slice::from_ref(extent), true)?;
    let checked = cx.apply("checked_index", &[&indices, &extent])?;
    cx.emitter.normalize(&checked)?;
    Ok(checked)
}

fn gather(cx: &mut OpCx<'_>) -> Outputs {
    let (data, indices) = (cx.input(0, "data")?, cx.input(1, "indices")?);
    let axis = cx.node.int_or("axis", 0)?;
    let dims = cx.dims(&data, "data")?;
    let at = cx.axis(axis, dims.len())?;
    let indices = from_the_start(cx, indices, &dims[at])?;
    Ok(vec![cx.call("take", vec![data, indices], vec![("axis", axis.into())])?])
}

fn gather_elements(cx: &mut OpCx<'_>) -> Outputs {
    let (data, indices) = (cx.input(0, "data")?, cx.input(1, "indices")?);
    let axis = cx.node.int_or("axis", 0)?;
    let dims = cx.dims(&data, "data")?;
    let at = cx.axis(axis, dims.len())?;
    let indices = from_the_start(cx, indices, &dims[at])?;
    Ok(vec![cx.call("gather_elements", vec![data, indices], vec![("axis", axis.into())])?])
}

/// The last axis of the indices holds coordinates, each with its own extent; they are checked when the model runs.
fn coordinates(cx: &mut OpCx<'_>, indices: Value, extents: &[PrimExpr]) -> Result<Value, Fail> {
    let dims = cx.dims(&indices, "the indices")?;
    let last = dims.last().ok_or("the indices have no axis of coordinates")?;
    let depth = last.as_int().ok_or_else(|| {
        Fail::limit(format!("the number of coordinates, the last extent of the indices {dims:?}, must be fixed"))
    })?;
    let extents = usize::try_from(depth).ok().and_then(|n| extents.get(..n));
    let extents = extents.ok_or("the indices have more coordinates than the data axes")?;
    let fixed: Option<Vec<i64>> = extents.iter().map(PrimExpr::as_int).collect();
    if let (Some(values), Some(fixed)) = (indices.as_const().and_then(ints_of), fixed) {
        let inside = |(v, n): (&i64, &i64)| (0..*n).contains(v);
        if values.iter().zip(fixed.iter().cycle()).all(inside) {
            return Ok(indices);
        }
    }
    let extents = cx.emitter.materialize(extents, false)?;
    cx.apply("checked_index", &[&indices, &extents])
}

fn gather_nd(cx: &mut OpCx<'_>) -> Outputs {
    let (data, indices) = (cx.input(0, "data")?, cx.input(1, "indices")?);
    let batch = cx.node.int_or("batch_dims", 0)?;
    let dims = cx.dims(&data, "data")?;
    let start = usize::try_from(batch).ok().filter(|&b| b < dims.len());
    let start = start.ok_or_else(|| format!("attribute 'batch_dims' cannot be {batch}"))?;
    let indices = coordinates(cx, indices, &dims[start..])?;
    Ok(vec![cx.call("gather_nd", vec![data, indices], vec![("batch_dims", batch.into())])?])
}

/// How elements that meet are combined; upstream's names differ from those of ONNX.
fn reduction(cx: &OpCx<'_>) -> Result<AttrValue, Fail> {
    Ok(match cx.node.string_or("reduction", "none")? {
        "none" => "update",
        "add" => "add",
        "mul" => "mul",
        "max" => "max",
        "min" => "min",
        other => return Err(format!("attribute 'reduction' cannot be '{other}'").into()),
    }
    .into())
}

fn scatter_elements(cx: &mut OpCx<'_>) -> Outputs {
    let (data, indices, updates) = (cx.input(0, "data")?, cx.input(1, "indices")?, cx.input(2, "updates")?);
    let axis = cx.node.int_or("axis", 0)?;
    let reduction = reduction(cx)?;
    let dims = cx.dims(&data, "data")?;
    let at = cx.axis(axis, dims.len())?;
    let indices = from_the_start(cx, indices, &dims[at])?;
    let attrs = vec![("axis", axis.into()), ("reduction", reduction)];
    Ok(vec![cx.call("scatter_elements", vec![data, indices, updates], attrs)?])
}

fn scatter_nd(cx: &mut OpCx<'_>) -> Outputs {
    let (data, indices, updates) = (cx.input(0, "data")?, cx.input(1, "indices")?, cx.input(2, "updates")?);
    let reduction = reduction(cx)?;
    let dims = cx.dims(&data, "data")?;
    let indices = coordinates(cx, indices, &dims)?;
    Ok(vec![cx.call("scatter_nd", vec![data, indices, updates], vec![("reduction", reduction)])?])
}

/// `values` holds what is off and what is on. Indices out of range leave every element off.
fn one_hot(cx: &mut OpCx<'_>) -> Outputs {
    let (indices, depth, values) = (cx.input(0, "indices")?, cx.input(1, "depth")?, cx.input(2, "values")?);
    let axis = cx.node.int_or("axis", -1)?;
    let whole = |cx: &mut OpCx<'_>, v: Value| -> Result<Value, Fail> {
        if cx.dtype(&v, "a number")? == DType::I64 {
            return Ok(v);
        }
        cx.call("astype", vec![v], vec![("dtype", AttrValue::DType(DType::I64))])
    };
    let indices = whole(cx, indices)?;
    let depth = match depth.as_const().and_then(numbers_of).as_deref() {
        Some([depth]) => PrimExpr::i64(*depth as i64),
        _ => {
            let depth = whole(cx, depth)?;
            cx.run_time_dims(&depth, 1)?.into_iter().next().ok_or("the depth must be one integer")?
        }
    };
    if depth.as_int().is_some_and(|n| n < 0) {
        return Err(format!("the depth cannot be {depth:?}").into());
    }
    let mut dims = cx.dims(&indices, "the indices")?;
    let axis = cx.axis(axis, dims.len() + 1)?;
    let extent = cx.emitter.materialize(std::slice::from_ref(&depth), true)?;
    let zero = cx.scalar(0.0, DType::I64)?;
    let negative = cx.apply("less", &[&indices, &zero])?;
    let moved = cx.apply("add", &[&indices, &extent])?;
    let indices = cx.apply("where", &[&negative, &moved, &indices])?;
    let both = values.as_const().and_then(|c| Some((c.dtype(), numbers_of(c)?)));
    if let (Some(depth @ 1..), Some((dtype, both))) = (depth.as_int(), both) {
        let [off, on] = both[..] else { return Err("the values must be two numbers".into()) };
        let prim = |v: f64| Value::Leaf(Leaf::Prim(PrimExpr::number(dtype, v)));
        let attrs = vec![("depth", AttrValue::Int(depth)), ("axis", i64::try_from(axis).unwrap_or(i64::MAX).into())];
        return Ok(vec![cx.call("one_hot", vec![indices, prim(on), prim(off)], attrs)?]);
    }
    if cx.length(&values, "the values")? != 2 {
        return Err("the values must be two numbers".into());
    }
    let number = |cx: &mut OpCx<'_>, at: i64| -> Result<Value, Fail> {
        let one = along(cx, &values, 0, at, at + 1)?;
        cx.reshape(&one, Vec::new())
    };
    let (off, on) = (number(cx, 0)?, number(cx, 1)?);
    let classes = cx.call("arange", vec![Leaf::Prim(depth.clone()).into()], vec![])?;
    let trailing = std::iter::repeat_n(PrimExpr::i64(1), dims.len() - axis);
    let classes = cx.reshape(&classes, std::iter::once(depth).chain(trailing).collect())?;
    dims.insert(axis, PrimExpr::i64(1));
    let indices = cx.reshape(&indices, dims)?;
    let here = cx.apply("equal", &[&indices, &classes])?;
    Ok(vec![cx.apply("where", &[&here, &on, &off])?])
}

fn top_k_1(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let k = cx.node.int("k")?.ok_or("attribute 'k' is missing")?;
    top(cx, x, Some(k), true)
}

fn top_k(cx: &mut OpCx<'_>) -> Outputs {
    let (x, k) = (cx.input(0, "X")?, cx.input(1, "K")?);
    let largest = cx.node.flag_or("largest", true)?;
    // Sorted results are right when any order will do.
    cx.node.flag_or("sorted", true)?;
    if let Some([k]) = k.fixed_ints().as_deref() {
        return top(cx, x, Some(*k), largest);
    }
    // All in order, of which the first are taken.
    let axis = cx.node.int_or("axis", -1)?;
    let dims = cx.dims(&x, "X")?;
    let at = cx.axis(axis, dims.len())?;
    let k = match k.known_ints() {
        Some(values) if values.len() == 1 => values,
        Some(_) => return Err("K must be one integer".into()),
        None => {
            let k = cx.reshape(&k, vec![PrimExpr::i64(1)])?;
            cx.emitter.bounded_dims(&k, vec![dims[at].clone()], &["k"])?
        }
    };
    let all = top(cx, x, None, largest)?;
    all.iter().map(|sorted| first(cx, sorted, i64::try_from(at).unwrap_or(i64::MAX), k.clone())).collect()
}

/// Values and indices; all of them without `k`.
fn top(cx: &mut OpCx<'_>, x: Value, k: Option<i64>, largest: bool) -> Outputs {
    if let Some(k @ ..=0) = k {
        // R.topk means all by that.
        let dims = cx.dims(&x, "X")?;
        let at = cx.axis(cx.node.int_or("axis", -1)?, dims.len())?;
        if k < 0 {
            return Err(format!("K cannot be {k}").into());
        }
        let all = top(cx, x, None, largest)?;
        let none = vec![PrimExpr::i64(0)];
        return all.iter().map(|x| first(cx, x, i64::try_from(at).unwrap_or(i64::MAX), none.clone())).collect();
    }
    let axis = cx.node.int_or("axis", -1)?;
    let rank = cx.rank(&x, "X")?;
    cx.axis(axis, rank)?;
    let attrs = vec![
        ("k", k.unwrap_or(0).into()),
        ("axis", axis.into()),
        ("ret_type", "both".into()),
        ("largest", largest.into()),
        ("dtype", AttrValue::DType(DType::I64)),
    ];
    let both = cx.call("topk", vec![x], attrs)?;
    cx.emitter.fields(&both)
}

fn where_(cx: &mut OpCx<'_>) -> Outputs {
    let (condition, x, y) = (cx.input(0, "condition")?, cx.input(1, "X")?, cx.input(2, "Y")?);
    Ok(vec![cx.apply("where", &[&condition, &x, &y])?])
}
