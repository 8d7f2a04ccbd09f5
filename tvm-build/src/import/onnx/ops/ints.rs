//! Arithmetic on known integers: what models compute shapes with.

use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr};

use crate::import::onnx::value::Value;

/// Most elements that are computed here; longer tensors are data and not shapes.
const MAX_LENGTH: usize = 64;

/// The elements and whether the rank is 0, of an `int64` tensor of rank at most 1 that is short and known.
pub(super) fn known(value: &Value) -> Option<(Vec<PrimExpr>, bool)> {
    let info = value.tensor_info()?;
    if info.dtype != Some(DType::I64) {
        return None;
    }
    let scalar = info.dims.rank()? == 0;
    let count = info.dims.known()?.first().map_or(Some(1), PrimExpr::as_int)?;
    if usize::try_from(count).ok()? > MAX_LENGTH {
        return None;
    }
    Some((value.known_ints()?, scalar))
}

/// An operator on two known tensors; `None` if they are not known or do not broadcast.
pub(super) fn binary(op: BinOp, a: &Value, b: &Value) -> Option<Value> {
    let ((a, a_scalar), (b, b_scalar)) = (known(a)?, known(b)?);
    let count = match (a.len(), b.len()) {
        (1, n) | (n, 1) => n,
        (m, n) if m == n => n,
        _ => return None,
    };
    let at = |v: &[PrimExpr], i: usize| v.get(if v.len() == 1 { 0 } else { i }).cloned();
    let values = (0..count)
        .map(|i| {
            let (x, y) = (at(&a, i)?, at(&b, i)?);
            let divides = matches!(op, BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod);
            (!divides || y.as_int().is_some_and(|y| y != 0)).then(|| PrimExpr::binary(op, x, y))
        })
        .collect::<Option<Vec<_>>>()?;
    Some(Value::Ints { values, scalar: a_scalar && b_scalar })
}

/// The product of expressions; 1 for none.
pub(super) fn product<'a>(values: impl IntoIterator<Item = &'a PrimExpr>) -> PrimExpr {
    values.into_iter().fold(PrimExpr::i64(1), |product, v| PrimExpr::binary(BinOp::Mul, product, v.clone()))
}

/// The extent that, with the extents `others`, makes as many elements as `whole`. Equal factors cancel, so that
/// an extent that is only carried along stays out of it. `None` if the numbers show that there is none.
pub(super) fn quotient(whole: &[PrimExpr], others: &[PrimExpr]) -> Option<PrimExpr> {
    let mut left: Vec<PrimExpr> = Vec::new();
    let mut numerator = 1i64;
    for extent in whole {
        match extent.as_int() {
            Some(n) => numerator = numerator.checked_mul(n)?,
            None => left.push(extent.clone()),
        }
    }
    let mut rest: Vec<PrimExpr> = Vec::new();
    let mut denominator = 1i64;
    for extent in others {
        match (extent.as_int(), left.iter().position(|e| e == extent)) {
            (Some(n), _) => denominator = denominator.checked_mul(n)?,
            (None, Some(at)) => {
                left.remove(at);
            }
            (None, None) => rest.push(extent.clone()),
        }
    }
    if denominator == 0 {
        return None;
    }
    if numerator % denominator == 0 {
        numerator /= denominator;
        denominator = 1;
    } else if left.is_empty() && rest.is_empty() {
        return None;
    }
    let number = |n: i64| (n != 1).then(|| PrimExpr::i64(n));
    let top = product(left.iter().chain(number(numerator).as_ref()));
    let bottom = product(rest.iter().chain(number(denominator).as_ref()));
    Some(if bottom.is_int(1) { top } else { PrimExpr::binary(BinOp::FloorDiv, top, bottom) })
}

#[cfg(test)]
mod tests {
    use tvm_ir::prim::Var;

    use super::*;

    #[test]
    fn quotients_cancel() {
        let n = Var::new("n", DType::I64).expr();
        let i = |v: i64| PrimExpr::i64(v);
        let text = |whole: &[PrimExpr], others: &[PrimExpr]| quotient(whole, others).map(|e| format!("{e:?}"));
        assert_eq!(text(&[i(2), i(6)], &[i(3)]).unwrap(), "4");
        assert_eq!(text(&[i(2), i(6)], &[i(5)]), None);
        assert_eq!(text(&[i(2), i(6)], &[i(0)]), None);
        assert_eq!(text(&[n.clone(), i(32), i(7)], std::slice::from_ref(&n)).unwrap(), "224");
        assert_eq!(text(&[n.clone(), i(32)], &[i(16)]).unwrap(), "Mul(n, 2)");
        assert_eq!(text(&[n.clone(), i(3)], &[i(2)]).unwrap(), "FloorDiv(Mul(n, 3), 2)");
        assert_eq!(text(&[i(i64::MAX), i(i64::MAX)], &[]), None);
    }

    #[test]
    fn arithmetic_broadcasts() {
        let ints = |v: &[i64]| Value::ints(v.iter().map(|&i| PrimExpr::i64(i)).collect());
        let scalar = Value::Ints { values: vec![PrimExpr::i64(3)], scalar: true };
        let sum = binary(BinOp::Add, &ints(&[1, 2]), &scalar).unwrap();
        assert_eq!(sum.fixed_ints(), Some(vec![4, 5]));
        assert!(matches!(binary(BinOp::Mul, &scalar, &scalar), Some(Value::Ints { scalar: true, .. })));
        assert!(binary(BinOp::Add, &ints(&[1, 2]), &ints(&[1, 2, 3])).is_none());
        assert!(binary(BinOp::Div, &ints(&[1]), &ints(&[0])).is_none());
    }
}
