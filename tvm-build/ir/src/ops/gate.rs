//! What recurrent layers apply to their gates.

use crate::dtype::DType;
use crate::prim::{Intrinsic, PrimExpr};

/// An activation: its name and its numbers, `alpha` before `beta`, which are written behind it: `affine:0.5:1`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Activation {
    name: &'static str,
    numbers: Vec<f64>,
}

/// Each with the values that its numbers have when they are not written.
const ALL: &[(&str, &[f64])] = &[
    ("affine", &[1.0, 0.0]),
    ("elu", &[1.0]),
    ("hard_sigmoid", &[0.2, 0.5]),
    ("leaky_relu", &[0.01]),
    ("relu", &[]),
    ("scaled_tanh", &[1.0, 1.0]),
    ("sigmoid", &[]),
    ("softplus", &[]),
    ("softsign", &[]),
    ("tanh", &[]),
    ("thresholded_relu", &[1.0]),
];

impl Activation {
    /// `None` if there is no such activation, or it has not as many numbers.
    pub(super) fn parse(text: &str) -> Option<Activation> {
        let mut parts = text.split(':');
        let name = parts.next()?;
        let (name, defaults) = ALL.iter().find(|(n, _)| *n == name)?;
        let mut numbers = parts.map(|n| n.parse().ok()).collect::<Option<Vec<f64>>>()?;
        if numbers.len() > defaults.len() {
            return None;
        }
        numbers.extend(&defaults[numbers.len()..]);
        Some(Activation { name, numbers })
    }

    /// The names.
    pub(super) fn names() -> String {
        ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// The activation of a value.
    pub(super) fn of(&self, x: PrimExpr, dtype: DType) -> PrimExpr {
        let number = |v: f64| PrimExpr::float(dtype, v);
        let at = |i: usize| number(self.numbers.get(i).copied().unwrap_or(0.0));
        let (zero, one) = (number(0.0), number(1.0));
        let call = |f, x: PrimExpr| PrimExpr::call(f, vec![x]);
        match self.name {
            "affine" => x * at(0) + at(1),
            "elu" => {
                let below = at(0) * (call(Intrinsic::Exp, x.clone().min(zero.clone())) - one);
                PrimExpr::select(x.clone().lt(zero), below, x)
            }
            "hard_sigmoid" => (x * at(0) + at(1)).min(one).max(zero),
            "leaky_relu" => PrimExpr::select(x.clone().lt(zero), x.clone() * at(0), x),
            "relu" => x.max(zero),
            "scaled_tanh" => at(0) * call(Intrinsic::Tanh, x * at(1)),
            "sigmoid" => call(Intrinsic::Sigmoid, x),
            // log(1 + exp(-|x|)) + max(x, 0), which does not overflow.
            "softplus" => {
                let small = call(Intrinsic::Exp, zero.clone() - call(Intrinsic::Abs, x.clone()));
                call(Intrinsic::Log1p, small) + x.max(zero)
            }
            "softsign" => x.clone() / (call(Intrinsic::Abs, x) + one),
            "thresholded_relu" => PrimExpr::select(x.clone().ge(at(0)), x, zero),
            _ => call(Intrinsic::Tanh, x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let numbers = |text| Activation::parse(text).map(|a| a.numbers);
        assert_eq!(numbers("tanh"), Some(vec![]));
        assert_eq!(numbers("affine"), Some(vec![1.0, 0.0]));
        assert_eq!(numbers("affine:0.5"), Some(vec![0.5, 0.0]));
        assert_eq!(numbers("hard_sigmoid:0.25:-1"), Some(vec![0.25, -1.0]));
        for wrong in ["", "gelu", "tanh:1", "elu:x", "elu:1:2"] {
            assert_eq!(numbers(wrong), None, "{wrong}");
        }
    }
}
