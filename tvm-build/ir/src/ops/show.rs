//! Struct info in error messages.

pub(super) use crate::prim::show_expr;

use crate::prim::PrimExpr;
use crate::relax::{Dims, StructInfo, TensorInfo};

/// A list of dimensions: `(n, 4)`, `(256,)`, `()`.
pub fn show_dims(dims: &[PrimExpr]) -> String {
    let items: Vec<String> = dims.iter().map(show_expr).collect();
    match items.as_slice() {
        [one] => format!("({one},)"),
        _ => format!("({})", items.join(", ")),
    }
}

fn show_any_dims(d: &Dims) -> String {
    match d {
        Dims::Unknown => "of unknown rank".into(),
        Dims::Rank(n) => format!("of rank {n}"),
        Dims::Known(d) => show_dims(d),
    }
}

/// A tensor: `(n, 4) float32`.
pub(super) fn show_tensor(t: &TensorInfo) -> String {
    match t.dtype {
        Some(d) => format!("{} {d}", show_any_dims(&t.dims)),
        None => format!("{} of unknown dtype", show_any_dims(&t.dims)),
    }
}

/// Struct info in a few words.
pub fn show_info(s: &StructInfo) -> String {
    match s {
        StructInfo::Object => "an object".into(),
        StructInfo::Prim(d, _) => format!("a scalar {d}"),
        StructInfo::Shape(d) => format!("a shape {}", show_any_dims(d)),
        StructInfo::Tensor(t) => format!("a tensor {}", show_tensor(t)),
        StructInfo::Tuple(fields) => {
            format!("a tuple of ({})", fields.iter().map(show_info).collect::<Vec<_>>().join(", "))
        }
        StructInfo::Func(_) => "a function".into(),
    }
}
