//! Sequences and optionals. Where the items are known at import, there is no list in the program; else it is a value of
//! the program, an object whose type is known here.

use std::rc::Rc;

use tvm_ir::attrs::AttrValue;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::Dims;

use super::data_type::DataType;
use super::emit::{Emitter, Fail};
use super::graph::{Dim, Type};
use super::value::{Value, dtype};

/// A sequence or an optional.
#[derive(Clone, Debug)]
pub(crate) struct List {
    /// A sequence or an optional.
    pub(crate) ty: Type,
    pub(crate) content: Content,
    /// The type of the items is not known: it is that of the first item inserted.
    pub(crate) open: bool,
}

/// Where the items of a list are.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// They are known; of an optional, no or one.
    Items(Vec<Value>),
    /// In a list of the program.
    Value(Value),
}

impl List {
    /// A list of these items.
    pub(crate) fn items(ty: Type, items: Vec<Value>) -> Value {
        Value::List(Rc::new(List { ty, open: items.is_empty(), content: Content::Items(items) }))
    }

    /// A list of the program.
    pub(crate) fn value(ty: Type, value: Value) -> Value {
        Value::List(Rc::new(List { ty, content: Content::Value(value), open: false }))
    }

    /// The type of its items.
    pub(crate) fn item_type(&self) -> &Type {
        match &self.ty {
            Type::Sequence(item) | Type::Optional(item) => item,
            other => other,
        }
    }

    /// The items, if they are known.
    pub(crate) fn known(&self) -> Option<&[Value]> {
        match &self.content {
            Content::Items(items) => Some(items),
            Content::Value(_) => None,
        }
    }
}

/// A value of a type: lists of the program know theirs.
pub(super) fn typed(value: Value, ty: Option<&Type>) -> Value {
    match (ty, value) {
        (Some(ty @ (Type::Sequence(_) | Type::Optional(_))), value @ (Value::Leaf(_) | Value::Call(_))) => {
            List::value(ty.clone(), value)
        }
        (_, value) => value,
    }
}

/// What is known of the type of a value; `None` for what has none in the format.
pub(crate) fn type_of(value: &Value) -> Option<Type> {
    if let Value::List(list) = value {
        return Some(list.ty.clone());
    }
    let info = value.tensor_info()?;
    let dtype = DataType::from_name(&info.dtype?.to_string())?;
    let fixed = |d: &PrimExpr| d.as_int().and_then(|n| u64::try_from(n).ok());
    let shape = match &info.dims {
        Dims::Known(dims) => Some(dims.iter().map(|d| fixed(d).map_or(Dim::Unknown, Dim::Fixed)).collect()),
        Dims::Rank(rank) => Some(vec![Dim::Unknown; *rank]),
        Dims::Unknown => None,
    };
    Some(Type::Tensor { dtype, shape })
}

/// The type of what is of one type or the other. The error is a sentence.
pub(crate) fn join(a: &Type, b: &Type) -> Result<Type, String> {
    match (a, b) {
        (Type::Tensor { dtype: x, shape: s }, Type::Tensor { dtype: y, shape: t }) if x == y => {
            let shape = match (s, t) {
                (Some(s), Some(t)) if s.len() == t.len() => {
                    let same = |(a, b): (&Dim, &Dim)| if a == b { a.clone() } else { Dim::Unknown };
                    Some(s.iter().zip(t).map(same).collect())
                }
                _ => None,
            };
            Ok(Type::Tensor { dtype: *x, shape })
        }
        (Type::Tensor { dtype: x, .. }, Type::Tensor { dtype: y, .. }) => {
            Err(format!("a list holds tensors of {} and of {}", x.name(), y.name()))
        }
        (Type::Sequence(x), Type::Sequence(y)) => Ok(Type::Sequence(Box::new(join(x, y)?))),
        (Type::Optional(x), Type::Optional(y)) => Ok(Type::Optional(Box::new(join(x, y)?))),
        _ => Err("a tensor, a sequence and an optional are not of one type".to_owned()),
    }
}

/// The type of a list with an item of a type more. The error is a sentence.
pub(crate) fn with_items(list: &List, item: &Type) -> Result<Type, String> {
    let item = if list.open { item.clone() } else { join(list.item_type(), item)? };
    Ok(match list.ty {
        Type::Optional(_) => Type::Optional(Box::new(item)),
        _ => Type::Sequence(Box::new(item)),
    })
}

impl Emitter {
    /// The list as a value of the program.
    pub(crate) fn list_value(&mut self, list: &List) -> Result<Value, Fail> {
        match &list.content {
            Content::Value(value) => Ok(value.clone()),
            Content::Items(items) => self.call("list.make", vec![Value::Tuple(items.clone())], vec![]),
        }
    }

    /// The item at a position, an integer scalar. Extents of a tensor that are not known have variables of their own.
    pub(crate) fn item(&mut self, list: &List, position: &Value) -> Result<Value, Fail> {
        if let (Some(items), Some([at])) = (list.known(), position.fixed_ints().as_deref()) {
            let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let index = if *at < 0 { at.saturating_add(count) } else { *at };
            let found = usize::try_from(index).ok().and_then(|i| items.get(i)).cloned();
            return found.ok_or_else(|| format!("there is no position {at} in a list of {count}").into());
        }
        let value = self.list_value(list)?;
        let position = self.scalar_of(position)?;
        let Type::Tensor { dtype: element, shape } = list.item_type() else {
            let item = self.call("list.at", vec![value, position], vec![])?;
            return Ok(List::value(list.item_type().clone(), item));
        };
        let mut attrs = vec![("dtype", AttrValue::DType(dtype(*element)?))];
        if let Some(shape) = shape {
            attrs.push(("ndim", AttrValue::Int(i64::try_from(shape.len()).unwrap_or(i64::MAX))));
        }
        let item = self.call("list.at", vec![value, position], attrs)?;
        let Some(shape) = shape else { return Ok(item) };
        let dims = shape.iter().map(|d| match d {
            Dim::Fixed(n) => i64::try_from(*n).map(PrimExpr::i64).map_err(|_| "an extent is too large".into()),
            Dim::Named(_) | Dim::Unknown => Ok(self.fresh_extent("extent")),
        });
        let dims = dims.collect::<Result<Vec<_>, Fail>>()?;
        self.cast_dims(&item, dims, "lv")
    }

    /// The number of items, an integer scalar.
    pub(crate) fn list_length(&mut self, list: &List) -> Result<Value, Fail> {
        if let Some(items) = list.known() {
            return Ok(Value::int(PrimExpr::i64(i64::try_from(items.len()).unwrap_or(i64::MAX))));
        }
        let value = self.list_value(list)?;
        self.call("list.length", vec![value], vec![])
    }

    /// A value as one of an optional type, if `ty` is one and the value is not: as its item.
    pub(crate) fn as_optional(&self, value: Value, ty: &Type) -> (Value, bool) {
        match (ty, type_of(&value)) {
            (Type::Optional(_), Some(Type::Optional(_)) | None) => (value, false),
            (Type::Optional(_), Some(item)) => (List::items(Type::Optional(Box::new(item)), vec![value]), true),
            _ => (value, false),
        }
    }
}
