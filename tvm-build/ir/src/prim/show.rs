//! Expressions in messages.

use super::{BinOp, CmpOp, Intrinsic, PrimExpr, PrimKind};

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
