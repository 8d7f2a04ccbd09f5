//! Arithmetic on extents.

use tvm_ir::prim::{BinOp, PrimExpr};

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
    use tvm_ir::dtype::DType;
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
}
