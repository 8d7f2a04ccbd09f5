//! Attribute values and dictionaries.

use super::ast::{Expr, ExprKind, UnaryOp};
use super::lower_prim::Lowered;
use super::scope::Lower;
use crate::attrs::{AttrValue, Attrs};
use crate::diag::Diag;
use crate::name::Name;
use crate::prim::PrimKind;

impl Lower<'_> {
    /// The value of an attribute.
    pub(super) fn attr(&mut self, e: &Expr) -> Lowered<AttrValue> {
        let int = |v: i128| {
            i64::try_from(v)
                .map(AttrValue::Int)
                .map_err(|_| Diag::error(e.span, format!("the integer {v} does not fit int64")))
        };
        Ok(match &e.kind {
            ExprKind::None => AttrValue::None,
            ExprKind::Bool(v) => AttrValue::Bool(*v),
            ExprKind::Int(v) => return int(*v),
            ExprKind::Float(v) => AttrValue::Float(*v),
            ExprKind::Unary(UnaryOp::Neg, x) if matches!(x.kind, ExprKind::Int(_) | ExprKind::Float(_)) => {
                match &x.kind {
                    ExprKind::Int(v) => return int(-*v),
                    ExprKind::Float(v) => AttrValue::Float(-*v),
                    _ => AttrValue::None,
                }
            }
            ExprKind::Str(s) => AttrValue::Str(s.clone()),
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                AttrValue::List(items.iter().map(|i| self.attr(i)).collect::<Result<_, _>>()?)
            }
            ExprKind::Dict(_) => AttrValue::Map(self.attrs(e)?),
            _ => {
                if let Some(dtype) = e.path().and_then(|p| p.strip_prefix("T.").and_then(|d| d.parse().ok())) {
                    return Ok(AttrValue::DType(dtype));
                }
                if let Some(("R.dtype", [dtype], [])) = e.call().as_ref().map(|(p, a, k)| (p.as_str(), *a, *k)) {
                    return Ok(AttrValue::DType(self.dtype(dtype)?));
                }
                let v = self.prim(e)?;
                match v.kind() {
                    PrimKind::Int(x) if v.dtype().is_bool() => AttrValue::Bool(*x != 0),
                    PrimKind::Int(x) => AttrValue::Int(*x),
                    PrimKind::Float(x) => AttrValue::Float(*x),
                    _ => AttrValue::Prim(v),
                }
            }
        })
    }

    /// A dictionary of attributes. Keys of today's dialect (`tirx.`) are read as the tutorial's (`tir.`).
    pub(super) fn attrs(&mut self, e: &Expr) -> Lowered<Attrs> {
        let ExprKind::Dict(items) = &e.kind else {
            return Err(Diag::error(e.span, "expected a dictionary, as {\"name\": value}"));
        };
        let mut out = Attrs::new();
        for (key, value) in items {
            let Some(name) = key.str() else { return Err(Diag::error(key.span, "a key must be a string")) };
            let name = match name.strip_prefix("tirx.") {
                Some(rest) => Name::from(format!("tir.{rest}")),
                None => name.clone(),
            };
            let value = self.attr(value)?;
            if out.insert(name.clone(), value).is_some() {
                return Err(Diag::error(key.span, format!("the key \"{name}\" is given twice")));
            }
        }
        Ok(out)
    }
}
