//! Attributes: a closed value type and an ordered map.

use crate::dtype::DType;
use crate::name::Name;
use crate::prim::PrimExpr;
use std::collections::BTreeMap;

/// The value of an attribute of a function, loop, block or call.
#[derive(Clone, PartialEq, Debug)]
pub enum AttrValue {
    /// `None`
    None,
    /// `True`, `False`, printed `T.bool(True)` in the tutorial's dialect where upstream does.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(Name),
    /// A data type, written as a string.
    DType(DType),
    /// A list or tuple.
    List(Vec<AttrValue>),
    /// A symbolic integer.
    Prim(PrimExpr),
    /// A dictionary, sorted by key.
    Map(Attrs),
}

/// As TVMScript writes it, types of literals aside.
impl std::fmt::Display for AttrValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AttrValue::None => f.write_str("None"),
            AttrValue::Bool(v) => f.write_str(if *v { "True" } else { "False" }),
            AttrValue::Int(v) => write!(f, "{v}"),
            AttrValue::Float(v) => write!(f, "{v:?}"),
            AttrValue::Str(s) => write!(f, "\"{s}\""),
            AttrValue::DType(d) => write!(f, "{d}"),
            AttrValue::List(items) => {
                f.write_str("[")?;
                for (i, v) in items.iter().enumerate() {
                    write!(f, "{}{v}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            AttrValue::Prim(e) => f.write_str(&crate::prim::show_expr(e)),
            AttrValue::Map(_) => f.write_str("a dictionary"),
        }
    }
}

impl AttrValue {
    /// The integer of an `Int`, or of a constant `Prim`.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            AttrValue::Int(v) => Some(*v),
            AttrValue::Prim(e) => e.as_int(),
            _ => None,
        }
    }

    /// The truth value of a `Bool` (or an integer 0 or 1).
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            AttrValue::Bool(v) => Some(*v),
            AttrValue::Int(v @ (0 | 1)) => Some(*v == 1),
            _ => None,
        }
    }

    /// The number of a `Float` or `Int`.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            AttrValue::Float(v) => Some(*v),
            AttrValue::Int(v) => Some(*v as f64),
            _ => None,
        }
    }

    /// The text of a `Str`.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            AttrValue::Str(v) => Some(v),
            _ => None,
        }
    }

    /// The type of a `DType`; `VOID` for `None`.
    pub fn as_dtype(&self) -> Option<DType> {
        match self {
            AttrValue::DType(v) => Some(*v),
            AttrValue::None => Some(DType::VOID),
            _ => None,
        }
    }

    /// The integers of a `List` of them, or of one integer.
    pub fn as_ints(&self) -> Option<Vec<i64>> {
        match self {
            AttrValue::List(items) => items.iter().map(AttrValue::as_int).collect(),
            other => other.as_int().map(|v| vec![v]),
        }
    }
}

impl From<bool> for AttrValue {
    fn from(v: bool) -> Self {
        AttrValue::Bool(v)
    }
}
impl From<i64> for AttrValue {
    fn from(v: i64) -> Self {
        AttrValue::Int(v)
    }
}
impl From<f64> for AttrValue {
    fn from(v: f64) -> Self {
        AttrValue::Float(v)
    }
}
impl From<&str> for AttrValue {
    fn from(v: &str) -> Self {
        AttrValue::Str(v.into())
    }
}
impl From<Name> for AttrValue {
    fn from(v: Name) -> Self {
        AttrValue::Str(v)
    }
}
impl From<DType> for AttrValue {
    fn from(v: DType) -> Self {
        AttrValue::DType(v)
    }
}
impl From<Vec<i64>> for AttrValue {
    fn from(v: Vec<i64>) -> Self {
        AttrValue::List(v.into_iter().map(AttrValue::Int).collect())
    }
}

/// Attributes by name, sorted.
pub type Attrs = BTreeMap<Name, AttrValue>;
