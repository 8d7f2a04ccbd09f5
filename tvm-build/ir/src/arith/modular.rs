//! Modular sets: every value of an expression is `base + coeff * k` for some integer `k`.

use super::session::Session;
use crate::prim::{BinOp, PrimExpr, PrimKind};

/// The set `{ base + coeff * k }`; `coeff` 0 is the single value `base`, `coeff` 1 is every integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Modular {
    /// Step, not negative.
    pub coeff: i64,
    /// A member; `0 <= base < coeff` unless `coeff` is 0.
    pub base: i64,
}

impl Modular {
    /// Every integer.
    pub const EVERYTHING: Modular = Modular { coeff: 1, base: 0 };

    /// The set of a step and a member, normalised.
    pub fn new(coeff: i64, base: i64) -> Modular {
        match coeff.checked_abs() {
            Some(0) => Modular { coeff: 0, base },
            Some(c) => Modular { coeff: c, base: base.rem_euclid(c) },
            None => Modular::EVERYTHING,
        }
    }

    /// Whether a value is a member.
    pub fn contains(self, v: i64) -> bool {
        if self.coeff == 0 { v == self.base } else { v.rem_euclid(self.coeff) == self.base }
    }

    fn add(self, o: Modular, sign: i64) -> Modular {
        let base = o.base.checked_mul(sign).and_then(|b| self.base.checked_add(b));
        base.map_or(Modular::EVERYTHING, |base| Modular::new(gcd(self.coeff, o.coeff), base))
    }

    fn mul(self, o: Modular) -> Option<Modular> {
        let coeff = gcd(
            gcd(self.coeff.checked_mul(o.coeff)?, self.coeff.checked_mul(o.base)?),
            o.coeff.checked_mul(self.base)?,
        );
        Some(Modular::new(coeff, self.base.checked_mul(o.base)?))
    }

    pub(super) fn union(self, o: Modular) -> Modular {
        let Some(apart) = self.base.checked_sub(o.base) else { return Modular::EVERYTHING };
        Modular::new(gcd(gcd(self.coeff, o.coeff), apart), self.base)
    }
}

/// Greatest common divisor; 0 only of two zeros.
pub(super) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

impl Session<'_> {
    /// The modular set of a scalar integer expression.
    pub(super) fn modular(&mut self, e: &PrimExpr) -> Modular {
        match e.kind() {
            PrimKind::Int(v) => return Modular::new(0, *v),
            PrimKind::Var(v) => return self.facts.var_modular(v),
            _ if !e.dtype().is_integer() => return Modular::EVERYTHING,
            _ => {}
        }
        if let Some(m) = self.modular_memo.get(e) {
            return m;
        }
        let m = self.modular_of_node(e).unwrap_or(Modular::EVERYTHING);
        self.modular_memo.put(e, m);
        m
    }

    fn modular_of_node(&mut self, e: &PrimExpr) -> Option<Modular> {
        let m = match e.kind() {
            PrimKind::Binary(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), a, b) => {
                // Wrapping keeps residues only of powers of two.
                let exact = self.exact(e);
                let (x, y) = (self.modular(a), self.modular(b));
                let m = match op {
                    BinOp::Add => x.add(y, 1),
                    BinOp::Sub => x.add(y, -1),
                    _ => x.mul(y)?,
                };
                if exact {
                    m
                } else {
                    Modular::new(1i64 << m.coeff.trailing_zeros().min(31).min(u32::from(e.dtype().bits)), m.base)
                }
            }
            PrimKind::Binary(BinOp::FloorDiv, a, b) => {
                let (x, y) = (self.modular(a), b.as_int().filter(|c| *c > 0)?);
                if x.coeff % y != 0 || x.coeff == 0 && x.base % y != 0 {
                    return None;
                }
                Modular::new(x.coeff / y, x.base.div_euclid(y))
            }
            PrimKind::Binary(BinOp::Div, a, b) => {
                let (x, y) = (self.modular(a), b.as_int().filter(|c| *c > 0)?);
                if x.coeff % y != 0 || x.base % y != 0 {
                    return None;
                }
                Modular::new(x.coeff / y, x.base / y)
            }
            PrimKind::Binary(BinOp::FloorMod, a, b) => {
                let (x, y) = (self.modular(a), b.as_int().filter(|c| *c > 0)?);
                if x.coeff % y == 0 {
                    Modular::new(0, x.base.rem_euclid(y))
                } else {
                    Modular::new(gcd(x.coeff, y), x.base)
                }
            }
            PrimKind::Binary(BinOp::Min | BinOp::Max, a, b) | PrimKind::Select(_, a, b) => {
                self.modular(a).union(self.modular(b))
            }
            PrimKind::Binary(BinOp::Shl, a, b) => {
                let k = b.as_int().filter(|k| (0..32).contains(k))?;
                if !self.exact(e) {
                    return Some(Modular::new(1i64 << k.min(i64::from(e.dtype().bits)), 0));
                }
                self.modular(a).mul(Modular::new(0, 1i64 << k))?
            }
            PrimKind::Cast(a) if a.dtype().is_integer() => {
                let inner = self.bounds(a);
                let fits = super::bounds::IntBound::of_type(e.dtype()).covers(inner);
                if !fits || a.dtype().is_uint() && !inner.is_finite() {
                    return None;
                }
                self.modular(a)
            }
            _ => return None,
        };
        Some(m)
    }
}
