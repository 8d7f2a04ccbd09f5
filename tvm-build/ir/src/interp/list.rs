//! Lists.

use super::TensorBuf;
use super::relax::Value;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::relax::Call;
use std::rc::Rc;

/// A call of an op of lists; `None` when it is of another op.
pub(super) fn call(c: &Call, args: &[Value]) -> Option<Result<Value, Diag>> {
    let name = c.op.name().strip_prefix("list.")?;
    Some(run(name, c, args).map_err(|message| Diag::error(c.span, format!("R.{}: {message}", c.op.name()))))
}

fn run(name: &str, c: &Call, args: &[Value]) -> Result<Value, String> {
    let list = || match args.first() {
        Some(Value::List(items)) => Ok(items.as_ref().clone()),
        _ => Err("this is no list".to_owned()),
    };
    let position = |i: usize, len: usize, end: bool| -> Result<Option<usize>, String> {
        let Some(given) = args.get(i).and_then(integer) else { return Ok(None) };
        let count = i64::try_from(len).unwrap_or(i64::MAX);
        let at = if given < 0 { given + count } else { given };
        let found = usize::try_from(at).ok().filter(|&at| at < len || end && at == len);
        found.map(Some).ok_or_else(|| format!("there is no position {given} in a list of {len}"))
    };
    match name {
        "make" => match args.first() {
            Some(Value::Tuple(items)) => Ok(Value::List(Rc::new(items.iter().map(copied).collect()))),
            _ => Err("the items are no tuple".into()),
        },
        "insert" => {
            let mut items = list()?;
            let at = position(2, items.len(), true)?.unwrap_or(items.len());
            items.insert(at, args.get(1).map(copied).ok_or("there is no item")?);
            Ok(Value::List(Rc::new(items)))
        }
        "erase" => {
            let mut items = list()?;
            let last = items.len().checked_sub(1).ok_or("the list has no items")?;
            items.remove(position(1, items.len(), false)?.unwrap_or(last));
            Ok(Value::List(Rc::new(items)))
        }
        "at" => {
            let items = list()?;
            let at = position(1, items.len(), false)?.ok_or("the position is no integer")?;
            items.get(at).cloned().ok_or_else(|| "there is no such item".into())
        }
        "length" => {
            let count = i64::try_from(list()?.len()).unwrap_or(i64::MAX);
            TensorBuf::scalar_i64(DType::I64, count).map(Value::tensor).map_err(|d| d.message)
        }
        "concat" => {
            let tensors: Vec<TensorBuf> = list()?.iter().filter_map(Value::as_tensor).collect();
            let axis = c.attr("axis").as_int().unwrap_or(0);
            let new = matches!(c.attr("new_axis"), crate::attrs::AttrValue::Bool(true));
            concat(tensors, axis, new).map(Value::tensor)
        }
        "split" => {
            let (x, lengths) = (args.first().and_then(Value::as_tensor), args.get(1).and_then(Value::as_tensor));
            let (Some(x), Some(lengths)) = (x, lengths) else { return Err("a tensor is split".into()) };
            let keep = !matches!(c.attr("keepdims"), crate::attrs::AttrValue::Bool(false));
            let parts = split(&x, &lengths, c.attr("axis").as_int().unwrap_or(0), keep)?;
            Ok(Value::List(Rc::new(parts.into_iter().map(Value::tensor).collect())))
        }
        _ => Err("the interpreter does not know it".into()),
    }
}

/// Items are copies: what they were made of may be written again.
fn copied(v: &Value) -> Value {
    v.as_tensor().map_or_else(|| v.clone(), Value::tensor)
}

fn integer(v: &Value) -> Option<i64> {
    match v {
        Value::Tensor(t) if t.borrow().len() == 1 => Some(t.borrow().get_i64(0)),
        Value::Prim(e) => e.as_int(),
        _ => None,
    }
}

fn normal(axis: i64, rank: usize) -> Result<usize, String> {
    let at = if axis < 0 { axis + i64::try_from(rank).unwrap_or(i64::MAX) } else { axis };
    usize::try_from(at).ok().filter(|a| *a < rank).ok_or_else(|| format!("there is no axis {axis}"))
}

/// Elements before and bytes behind an axis.
fn around(t: &TensorBuf, at: usize) -> (usize, usize) {
    let count = |dims: &[i64]| dims.iter().map(|d| usize::try_from(*d).unwrap_or(0)).product::<usize>();
    let width = usize::from(t.dtype.bits.max(8)) / 8;
    (count(&t.shape[..at]), count(&t.shape[at + 1..]) * width)
}

fn concat(mut tensors: Vec<TensorBuf>, axis: i64, new: bool) -> Result<TensorBuf, String> {
    let rank = tensors.first().ok_or("the list has no items")?.shape.len() + usize::from(new);
    let at = normal(axis, rank)?;
    if new {
        tensors.iter_mut().for_each(|t| t.shape.insert(at.min(t.shape.len()), 1));
    }
    let first = &tensors[0];
    let like = |t: &TensorBuf| {
        let same = |d: usize| d == at || t.shape.get(d) == first.shape.get(d);
        t.dtype == first.dtype && t.shape.len() == rank && (0..rank).all(same)
    };
    if !tensors.iter().all(like) {
        return Err("the items differ in shape or type".into());
    }
    let (outer, inner) = around(first, at);
    let mut shape = first.shape.clone();
    shape[at] = tensors.iter().map(|t| t.shape[at]).sum();
    let mut data = Vec::new();
    for o in 0..outer {
        for t in &tensors {
            let row = usize::try_from(t.shape[at]).unwrap_or(0) * inner;
            data.extend_from_slice(t.data.get(o * row..(o + 1) * row).unwrap_or_default());
        }
    }
    TensorBuf::from_bytes(first.dtype, &shape, data).map_err(|d| d.message)
}

fn split(x: &TensorBuf, lengths: &TensorBuf, axis: i64, keep: bool) -> Result<Vec<TensorBuf>, String> {
    let at = normal(axis, x.shape.len())?;
    let extent = x.shape[at];
    let parts: Vec<i64> = if lengths.shape.is_empty() {
        let each = lengths.get_i64(0);
        if each < 1 {
            return Err(format!("parts of length {each}"));
        }
        (0..extent).step_by(usize::try_from(each).unwrap_or(1)).map(|from| each.min(extent - from)).collect()
    } else {
        (0..lengths.len()).map(|i| lengths.get_i64(i)).collect()
    };
    if parts.iter().sum::<i64>() != extent || parts.iter().any(|p| *p < 0 || !keep && *p != 1) {
        return Err(format!("parts of {parts:?} do not make up an axis of {extent}"));
    }
    let (outer, inner) = around(x, at);
    let (mut out, mut from) = (Vec::new(), 0);
    for part in parts {
        let mut shape = x.shape.clone();
        shape[at] = part;
        let mut data = Vec::new();
        let index = |v: i64| usize::try_from(v).unwrap_or(0);
        for o in 0..outer {
            let start = (o * index(extent) + index(from)) * inner;
            data.extend_from_slice(x.data.get(start..start + index(part) * inner).unwrap_or_default());
        }
        if !keep {
            shape.remove(at);
        }
        out.push(TensorBuf::from_bytes(x.dtype, &shape, data).map_err(|d| d.message)?);
        from += part;
    }
    Ok(out)
}
