//! Extents as Rust expressions of type `i64`.

use std::collections::BTreeMap;
use tvm_ir::prim::{BinOp, CmpOp, PrimExpr, PrimKind, Var};

/// The expression over the Rust expressions of its variables; arithmetic saturates, what is too large is refused by the
/// call. `None` for what has no such form.
pub(super) fn extent(e: &PrimExpr, vars: &BTreeMap<Var, String>) -> Option<String> {
    if let Some(v) = e.as_int() {
        return Some(v.to_string());
    }
    match e.kind() {
        PrimKind::Var(v) => vars.get(v).cloned(),
        PrimKind::Cast(a) if a.dtype().is_integer() => extent(a, vars),
        PrimKind::Binary(op, a, b) => {
            let (x, y) = (extent(a, vars)?, extent(b, vars)?);
            let x = if a.as_int().is_some() { format!("{x}_i64") } else { x };
            let x = if x.starts_with('-') { format!("({x})") } else { x };
            let positive = b.as_int().is_some_and(|v| v > 0);
            Some(match op {
                BinOp::Add => format!("{x}.saturating_add({y})"),
                BinOp::Sub => format!("{x}.saturating_sub({y})"),
                BinOp::Mul => format!("{x}.saturating_mul({y})"),
                BinOp::FloorDiv if positive => format!("{x}.div_euclid({y})"),
                BinOp::FloorMod if positive => format!("{x}.rem_euclid({y})"),
                BinOp::Div if positive => format!("({x} / {y})"),
                BinOp::Mod if positive => format!("({x} % {y})"),
                BinOp::Min => format!("{x}.min({y})"),
                BinOp::Max => format!("{x}.max({y})"),
                _ => return None,
            })
        }
        PrimKind::Select(c, a, b) => {
            Some(format!("if {} {{ {} }} else {{ {} }}", condition(c, vars)?, extent(a, vars)?, extent(b, vars)?))
                .map(|text| format!("({text})"))
        }
        _ => None,
    }
}

/// A condition on extents as a Rust expression of type `bool`.
fn condition(e: &PrimExpr, vars: &BTreeMap<Var, String>) -> Option<String> {
    let pair = |op: &str, x: String, y: String| Some(format!("({x} {op} {y})"));
    match e.kind() {
        PrimKind::Cmp(op, a, b) => {
            let op = match op {
                CmpOp::Eq => "==",
                CmpOp::Ne => "!=",
                CmpOp::Lt => "<",
                CmpOp::Le => "<=",
                CmpOp::Gt => ">",
                CmpOp::Ge => ">=",
            };
            pair(op, extent(a, vars)?, extent(b, vars)?)
        }
        PrimKind::And(a, b) => pair("&&", condition(a, vars)?, condition(b, vars)?),
        PrimKind::Or(a, b) => pair("||", condition(a, vars)?, condition(b, vars)?),
        PrimKind::Not(a) => Some(format!("!{}", condition(a, vars)?)),
        _ => None,
    }
}
