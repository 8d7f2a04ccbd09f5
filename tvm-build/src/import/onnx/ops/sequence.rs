//! Operators of sequences and optionals.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::data_type::DataType;
use crate::import::onnx::emit::{Fail, scalar};
use crate::import::onnx::graph::Type;
use crate::import::onnx::list::{List, join, type_of, with_items};
use crate::import::onnx::value::{Value, dtype};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("ConcatFromSequence", 11, concat_from_sequence),
    ("Optional", 15, optional),
    ("OptionalGetElement", 15, optional_get_element),
    ("OptionalHasElement", 15, optional_has_element),
    ("SequenceAt", 11, sequence_at),
    ("SequenceConstruct", 11, sequence_construct),
    ("SequenceEmpty", 11, sequence_empty),
    ("SequenceErase", 11, sequence_erase),
    ("SequenceInsert", 11, sequence_insert),
    ("SequenceLength", 11, sequence_length),
    ("SplitToSequence", 11, split_to_sequence),
];

/// Parts of a tensor that are written out one by one; more become a list of the program.
const MAX_PARTS: usize = 256;

fn list(value: &Value, role: &str) -> Result<std::rc::Rc<List>, Fail> {
    match value {
        Value::List(list) => Ok(list.clone()),
        _ => Err(format!("{role} is not a sequence").into()),
    }
}

fn known_type(value: &Value) -> Result<Type, Fail> {
    type_of(value).ok_or_else(|| "the element type of an item is not known".into())
}

fn sequence_construct(cx: &mut OpCx<'_>) -> Outputs {
    let items = cx.variadic("an item")?;
    let mut types = items.iter().map(known_type);
    let first = types.next().ok_or("it has no items")??;
    let ty = types.try_fold(first, |all, ty| Ok::<Type, Fail>(join(&all, &ty?)?))?;
    Ok(vec![List::items(Type::Sequence(Box::new(ty)), items)])
}

fn sequence_empty(cx: &mut OpCx<'_>) -> Outputs {
    let code = cx.node.int_or("dtype", 1)?;
    let element = i32::try_from(code).ok().and_then(DataType::from_code);
    let element = element.ok_or_else(|| format!("attribute 'dtype' is {code}, which is no element type"))?;
    dtype(element)?;
    let item = Type::Tensor { dtype: element, shape: None };
    Ok(vec![List::items(Type::Sequence(Box::new(item)), Vec::new())])
}

fn sequence_at(cx: &mut OpCx<'_>) -> Outputs {
    let (sequence, position) = (list(&cx.input(0, "the sequence")?, "the input")?, cx.input(1, "position")?);
    Ok(vec![cx.emitter.item(&sequence, &position)?])
}

/// The position of a list of `count` items that a constant says.
fn known_position(position: &Option<Value>, count: usize, end: bool) -> Result<Option<usize>, Fail> {
    let last = if end { count } else { count.saturating_sub(1) };
    let Some(position) = position else { return Ok(Some(last)) };
    let Some([at]) = position.fixed_ints().as_deref().map(<[i64; 1]>::try_from).transpose().ok().flatten() else {
        return Ok(None);
    };
    let signed = i64::try_from(count).unwrap_or(i64::MAX);
    let index = if at < 0 { at.saturating_add(signed) } else { at };
    let index = usize::try_from(index).ok().filter(|&i| i <= last && (end || count > 0));
    index.map(Some).ok_or_else(|| format!("there is no position {at} in a sequence of {count}").into())
}

/// Arguments of a call of the program: what is given, and the position if there is one.
fn with_position(cx: &mut OpCx<'_>, mut args: Vec<Value>, position: &Option<Value>) -> Result<Vec<Value>, Fail> {
    if let Some(position) = position {
        args.push(cx.emitter.scalar_of(position)?);
    }
    Ok(args)
}

fn sequence_insert(cx: &mut OpCx<'_>) -> Outputs {
    let (sequence, item) = (list(&cx.input(0, "the sequence")?, "the input")?, cx.input(1, "the tensor")?);
    let position = cx.optional(2);
    let ty = with_items(&sequence, &known_type(&item)?)?;
    if let Some(items) = sequence.known() {
        if let Some(at) = known_position(&position, items.len(), true)? {
            let mut items = items.to_vec();
            items.insert(at, item);
            return Ok(vec![List::items(ty, items)]);
        }
    }
    let value = cx.emitter.list_value(&sequence)?;
    let args = with_position(cx, vec![value, item], &position)?;
    Ok(vec![List::value(ty, cx.call("list.insert", args, vec![])?)])
}

fn sequence_erase(cx: &mut OpCx<'_>) -> Outputs {
    let sequence = list(&cx.input(0, "the sequence")?, "the input")?;
    let position = cx.optional(1);
    if let Some(items) = sequence.known() {
        if items.is_empty() {
            return Err("the sequence has no items".into());
        }
        if let Some(at) = known_position(&position, items.len(), false)? {
            let mut items = items.to_vec();
            items.remove(at);
            return Ok(vec![List::items(sequence.ty.clone(), items)]);
        }
    }
    let value = cx.emitter.list_value(&sequence)?;
    let args = with_position(cx, vec![value], &position)?;
    Ok(vec![List::value(sequence.ty.clone(), cx.call("list.erase", args, vec![])?)])
}

fn sequence_length(cx: &mut OpCx<'_>) -> Outputs {
    let sequence = list(&cx.input(0, "the sequence")?, "the input")?;
    Ok(vec![cx.emitter.list_length(&sequence)?])
}

fn concat_from_sequence(cx: &mut OpCx<'_>) -> Outputs {
    let sequence = list(&cx.input(0, "the sequence")?, "the input")?;
    let axis = cx.node.int("axis")?.ok_or("attribute 'axis' is missing")?;
    let new = cx.node.flag_or("new_axis", false)?;
    if let Some(items) = sequence.known() {
        if items.is_empty() {
            return Err("the sequence has no items".into());
        }
        let op = if new { "stack" } else { "concat" };
        return Ok(vec![cx.call(op, vec![Value::Tuple(items.to_vec())], vec![("axis", axis.into())])?]);
    }
    let Type::Tensor { dtype: element, shape: Some(shape) } = sequence.item_type() else {
        return Err(Fail::limit("the rank of the items must be known when the model is imported"));
    };
    let rank = shape.len() + usize::from(new);
    cx.axis(axis, rank)?;
    let attrs = vec![
        ("axis", axis.into()),
        ("new_axis", AttrValue::Bool(new)),
        ("dtype", AttrValue::DType(dtype(*element)?)),
        ("ndim", AttrValue::Int(i64::try_from(rank).unwrap_or(i64::MAX))),
    ];
    let value = cx.emitter.list_value(&sequence)?;
    Ok(vec![cx.call("list.concat", vec![value], attrs)?])
}

fn split_to_sequence(cx: &mut OpCx<'_>) -> Outputs {
    let (x, split) = (cx.input(0, "input")?, cx.optional(1));
    let (axis, keep) = (cx.node.int_or("axis", 0)?, cx.node.flag_or("keepdims", true)?);
    let dims = cx.dims(&x, "input")?;
    let at = cx.axis(axis, dims.len())?;
    // Without lengths, the parts have one element along the axis, which they may lose.
    let keep = keep || split.is_some();
    let given = i64::try_from(at).unwrap_or(i64::MAX);
    let lengths = split.clone().unwrap_or_else(|| Value::int(PrimExpr::i64(1)));
    let rank = cx.rank(&lengths, "the lengths")?;
    if let (Some(extent), Some(lengths)) = (dims[at].as_int(), lengths.fixed_ints()) {
        let ends = ends(extent, &lengths, rank == 0)?;
        if ends.len() <= MAX_PARTS && !ends.is_empty() {
            let items = parts(cx, &x, &ends, given, keep)?;
            let mut types = items.iter().map(known_type);
            let first = types.next().ok_or("it has no parts")??;
            let ty = types.try_fold(first, |all, ty| Ok::<Type, Fail>(join(&all, &ty?)?))?;
            return Ok(vec![List::items(Type::Sequence(Box::new(ty)), items)]);
        }
    }
    let Type::Tensor { dtype, shape: Some(mut shape) } = known_type(&x)? else {
        return Err("the rank of the input must be known".into());
    };
    if keep {
        shape[at] = crate::import::onnx::graph::Dim::Unknown;
    } else {
        shape.remove(at);
    }
    let attrs = vec![("axis", given.into()), ("keepdims", AttrValue::Bool(keep))];
    let value = cx.call("list.split", vec![x, lengths], attrs)?;
    Ok(vec![List::value(Type::Sequence(Box::new(Type::Tensor { dtype, shape: Some(shape) })), value)])
}

/// Where the parts of an axis end.
fn ends(extent: i64, lengths: &[i64], one: bool) -> Result<Vec<i64>, Fail> {
    if let ([each], true) = (lengths, one) {
        if *each < 1 {
            return Err(format!("parts of length {each} are asked for").into());
        }
        let count = extent / each + i64::from(extent % each != 0);
        return Ok((1..=count).map(|i| i.saturating_mul(*each).min(extent)).collect());
    }
    let mut end = 0i64;
    let ends: Vec<i64> = lengths
        .iter()
        .map(|n| {
            end = end.saturating_add(*n);
            end
        })
        .collect();
    if lengths.iter().any(|n| *n < 0) || end != extent {
        return Err(format!("parts of {lengths:?} do not make up an axis of {extent}").into());
    }
    Ok(ends)
}

fn parts(cx: &mut OpCx<'_>, x: &Value, ends: &[i64], axis: i64, keep: bool) -> Result<Vec<Value>, Fail> {
    let mut parts = match ends {
        [_] => vec![x.clone()],
        [inner @ .., _] => {
            let sections = inner.to_vec().into();
            let attrs = vec![("indices_or_sections", sections), ("axis", axis.into())];
            let tuple = cx.call("split", vec![x.clone()], attrs)?;
            cx.emitter.fields(&tuple)?
        }
        [] => Vec::new(),
    };
    if !keep {
        for part in &mut parts {
            *part = cx.call("squeeze", vec![part.clone()], vec![("axis", vec![axis].into())])?;
        }
    }
    Ok(parts)
}

fn optional(cx: &mut OpCx<'_>) -> Outputs {
    let ty = cx.node.ty("type")?.cloned();
    if let Some(value) = cx.optional(0) {
        return Ok(vec![List::items(Type::Optional(Box::new(known_type(&value)?)), vec![value])]);
    }
    let ty = ty.ok_or("without an input, attribute 'type' must be given")?;
    Ok(vec![List::items(Type::Optional(Box::new(ty)), Vec::new())])
}

fn truth(value: bool) -> Result<Value, Fail> {
    let constant = scalar(if value { 1.0 } else { 0.0 }, DType::BOOL);
    Ok(constant.ok_or("there are no truth values")?.into())
}

fn optional_has_element(cx: &mut OpCx<'_>) -> Outputs {
    let list = match cx.optional(0) {
        None => return Ok(vec![truth(false)?]),
        Some(Value::List(list)) if matches!(list.ty, Type::Optional(_)) => list,
        Some(_) => return Ok(vec![truth(true)?]),
    };
    if let Some(items) = list.known() {
        return Ok(vec![truth(!items.is_empty())?]);
    }
    let count = cx.emitter.list_length(&list)?;
    let zero = cx.scalar(0.0, DType::I64)?;
    Ok(vec![cx.apply("greater", &[&count, &zero])?])
}

fn optional_get_element(cx: &mut OpCx<'_>) -> Outputs {
    let value = cx.input(0, "the optional")?;
    match &value {
        Value::List(list) if matches!(list.ty, Type::Optional(_)) => {
            if list.known().is_some_and(<[Value]>::is_empty) {
                return Err("the optional has no element".into());
            }
            Ok(vec![cx.emitter.item(list, &Value::int(PrimExpr::i64(0)))?])
        }
        _ => Ok(vec![value]),
    }
}
