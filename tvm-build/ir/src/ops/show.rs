//! Struct info in error messages.

use crate::prim::{BinOp, PrimExpr, PrimKind};
use crate::relax::{Dims, StructInfo, TensorInfo};

/// An expression as a user writes it: `n * 4 + 1`.
pub(super) fn show_expr(e: &PrimExpr) -> String {
    fn operand(e: &PrimExpr) -> String {
        match e.kind() {
            PrimKind::Binary(BinOp::Min | BinOp::Max, ..) => show_expr(e),
            PrimKind::Binary(..) | PrimKind::Cmp(..) => format!("({})", show_expr(e)),
            _ => show_expr(e),
        }
    }
    match e.kind() {
        PrimKind::Binary(op, a, b) => {
            let sign = match op {
                BinOp::Add => return format!("{} + {}", show_expr(a), operand(b)),
                BinOp::Min => return format!("min({}, {})", show_expr(a), show_expr(b)),
                BinOp::Max => return format!("max({}, {})", show_expr(a), show_expr(b)),
                BinOp::Sub => "-",
                BinOp::Mul => "*",
                BinOp::Div => "/",
                BinOp::FloorDiv => "//",
                BinOp::Mod | BinOp::FloorMod => "%",
                BinOp::BitAnd => "&",
                BinOp::BitOr => "|",
                BinOp::BitXor => "^",
                BinOp::Shl => "<<",
                BinOp::Shr => ">>",
            };
            format!("{} {sign} {}", operand(a), operand(b))
        }
        _ => format!("{e:?}"),
    }
}

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
