//! Struct info in error messages.

use crate::prim::{BinOp, CmpOp, Intrinsic, PrimExpr, PrimKind};
use crate::relax::{Dims, StructInfo, TensorInfo};

/// An expression as a user writes it, without the types of literals: `n * 4 + 1`.
pub(crate) fn show_expr(e: &PrimExpr) -> String {
    fn operand(e: &PrimExpr) -> String {
        match e.kind() {
            PrimKind::Binary(BinOp::Min | BinOp::Max, ..) => show_expr(e),
            PrimKind::Binary(..) | PrimKind::Cmp(..) | PrimKind::And(..) | PrimKind::Or(..) => {
                format!("({})", show_expr(e))
            }
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
        PrimKind::Cmp(op, a, b) => {
            let sign = match op {
                CmpOp::Eq => "==",
                CmpOp::Ne => "!=",
                CmpOp::Lt => "<",
                CmpOp::Le => "<=",
                CmpOp::Gt => ">",
                CmpOp::Ge => ">=",
            };
            format!("{} {sign} {}", operand(a), operand(b))
        }
        PrimKind::And(a, b) => format!("{} and {}", operand(a), operand(b)),
        PrimKind::Or(a, b) => format!("{} or {}", operand(a), operand(b)),
        PrimKind::Float(v) => format!("{v:?}"),
        PrimKind::Not(a) => format!("not {}", operand(a)),
        PrimKind::Load(b, indices) if indices.is_empty() => format!("{}[()]", b.name),
        PrimKind::Load(b, indices) => format!("{}[{}]", b.name, list(indices)),
        PrimKind::Cast(a) => format!("T.Cast(\"{}\", {})", e.dtype(), show_expr(a)),
        PrimKind::Select(c, a, b) => format!("T.Select({}, {}, {})", show_expr(c), show_expr(a), show_expr(b)),
        PrimKind::Call(Intrinsic::Likely, args) => args.first().map_or_else(String::new, show_expr),
        PrimKind::Call(f, args) => format!("T.{}({})", f.def().name, list(args)),
        _ => format!("{e:?}"),
    }
}

fn list(items: &[PrimExpr]) -> String {
    items.iter().map(show_expr).collect::<Vec<_>>().join(", ")
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
