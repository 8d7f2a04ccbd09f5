//! Sizes of tensors and what is known of them before a call.

use super::linear::{Linear, TensorId, elements};
use std::collections::BTreeMap;
use tvm_ir::arith::{Analyzer, IntBound};
use tvm_ir::diag::Diag;
use tvm_ir::prim::{BinOp, PrimExpr, PrimKind, Var, free_vars, substitute};

/// A size in bytes.
#[derive(Clone, Debug)]
pub(super) struct Size {
    pub(super) expr: PrimExpr,
    /// The number, or an upper bound of it.
    pub(super) most: Option<u64>,
    /// The size or an upper bound of it, over symbols that parameters tell; `None` where something must run before.
    pub(super) before: Option<PrimExpr>,
}

/// What is known of the symbolic variables of a function.
pub(super) fn bounds_of(lin: &Linear) -> Analyzer {
    let mut vars: Vec<Var> = lin.entry.iter().cloned().collect();
    let dims = lin.tensors.iter().flat_map(|t| t.dims.iter().flatten());
    dims.for_each(|d| vars.extend(free_vars(d)));
    vars.retain(|v| !lin.most.iter().any(|m| m.var == *v));
    let mut analyzer = Analyzer::new();
    let natural = IntBound { min: 0, max: IntBound::POS_INF };
    let declared = |v: &Var| lin.bounds.get(v.name()).copied().unwrap_or(natural);
    for v in &vars {
        analyzer.assume_bounds(v, declared(v));
    }
    // In the order in which they are bound: a bound is over symbols before it.
    for m in &lin.most {
        let IntBound { min, max } = declared(&m.var);
        let max = most_of(&analyzer, &m.most).unwrap_or(IntBound::POS_INF).min(max);
        analyzer.assume_bounds(&m.var, IntBound { min, max });
    }
    analyzer
}

/// Greatest bound that is believed of an expression over variables without bounds, as `min(n, 5)`. Above it stand the
/// ranges of element types and what is cut off at them, which say nothing of sizes that occur.
const MOST_UNTOLD: i64 = 1 << 24;

/// The upper bound of an expression that memory may be planned for.
fn most_of(analyzer: &Analyzer, e: &PrimExpr) -> Option<i64> {
    let most = analyzer.bounds(e).max;
    let told = || free_vars(e).iter().all(|v| analyzer.bounds(&v.expr()).max != IntBound::POS_INF);
    (most != IntBound::POS_INF && (most <= MOST_UNTOLD || told())).then_some(most)
}

/// The size of a tensor. Errors when its type is not known, or it is larger than memory can be.
pub(super) fn size_of(lin: &Linear, t: TensorId, analyzer: &Analyzer) -> Result<Size, Diag> {
    let tensor = &lin.tensors[t];
    let (Some(dims), Some(dtype)) = (&tensor.dims, tensor.dtype) else {
        return Err(Diag::error(lin.span, format!("the size of {} is not known", tensor.name)));
    };
    let too_large = || Diag::error(lin.span, format!("{} has more bytes than memory can address", tensor.name));
    let fixed: Option<Vec<i64>> = dims.iter().map(PrimExpr::as_int).collect();
    if let Some(dims) = fixed {
        let count = dims.iter().try_fold(1u64, |n, d| n.checked_mul(u64::try_from(*d).ok()?));
        let bytes = count.and_then(|n| dtype.storage_bytes(n)).and_then(|b| i64::try_from(b).ok());
        let bytes = bytes.filter(|b| *b <= i64::MAX / 4).ok_or_else(too_large)?;
        let expr = PrimExpr::i64(bytes);
        return Ok(Size { before: Some(expr.clone()), expr, most: u64::try_from(bytes).ok() });
    }
    let count = elements(dims);
    let [width, per] = [dtype.bytes(), dtype.per_byte()].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    let bytes = if per > 1 { (count + (per - 1)).floordiv(per) } else { count * PrimExpr::i64(width) };
    let expr = analyzer.simplify(&bytes);
    let most = most_of(analyzer, &expr).filter(|most| *most <= i64::MAX / 4);
    let most = most.and_then(|most| u64::try_from(most).ok());
    let before = before_call(lin, &expr, analyzer).map(|e| analyzer.simplify(&e));
    Ok(Size { expr, most, before })
}

/// An upper bound over the symbols that parameters tell.
fn before_call(lin: &Linear, e: &PrimExpr, analyzer: &Analyzer) -> Option<PrimExpr> {
    let mut e = e.clone();
    for m in lin.most.iter().rev() {
        if free_vars(&e).contains(&m.var) {
            if !grows(&e, &m.var, analyzer) {
                return None;
            }
            e = substitute(&e, &BTreeMap::from([(m.var.clone(), m.most.clone())]));
        }
    }
    free_vars(&e).is_subset(&lin.entry).then_some(e)
}

/// Whether an expression is known not to fall when the variable rises.
fn grows(e: &PrimExpr, v: &Var, analyzer: &Analyzer) -> bool {
    let has = |e: &PrimExpr| free_vars(e).contains(v);
    let natural = |e: &PrimExpr| analyzer.bounds(e).min >= 0;
    match e.kind() {
        _ if !has(e) => true,
        PrimKind::Var(_) => true,
        PrimKind::Cast(a) => grows(a, v, analyzer),
        PrimKind::Binary(op, a, b) => match op {
            BinOp::Add | BinOp::Min | BinOp::Max => grows(a, v, analyzer) && grows(b, v, analyzer),
            BinOp::Mul => natural(a) && natural(b) && grows(a, v, analyzer) && grows(b, v, analyzer),
            BinOp::Sub => grows(a, v, analyzer) && !has(b),
            BinOp::FloorDiv | BinOp::Div => grows(a, v, analyzer) && b.as_int().is_some_and(|b| b > 0),
            _ => false,
        },
        _ => false,
    }
}

/// A symbol that no parameter and no bound tells of, for messages.
pub(super) fn unknown_symbol(lin: &Linear, e: &PrimExpr) -> String {
    let vars = free_vars(e);
    let inner = vars.iter().find(|v| !lin.entry.contains(v) && !lin.most.iter().any(|m| m.var == **v));
    let inner = inner.or_else(|| vars.iter().find(|v| !lin.entry.contains(v)));
    inner.or_else(|| vars.first()).map_or_else(|| "data".to_string(), |v| v.name().to_string())
}
