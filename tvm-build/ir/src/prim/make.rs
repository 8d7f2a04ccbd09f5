//! Constructors. They fold constants and identities the way TVM's operators do, so that printed IR agrees with upstream's.

use super::{BinOp, Buffer, CmpOp, Intrinsic, PrimExpr, PrimKind};
use crate::dtype::DType;
use crate::name::Name;

/// An integer wrapped to the width of its type.
pub fn wrap_int(dtype: DType, v: i64) -> i64 {
    if dtype.is_bool() {
        return i64::from(v != 0);
    }
    let bits = u32::from(dtype.bits);
    if bits == 0 || bits >= 64 {
        return v;
    }
    let shift = 64 - bits;
    if dtype.is_uint() { (((v as u64) << shift) >> shift) as i64 } else { (v << shift) >> shift }
}

impl PrimExpr {
    /// An integer or bool literal (a vector type gives a broadcast), wrapped to its width.
    pub fn int(dtype: DType, v: i64) -> PrimExpr {
        let scalar = PrimExpr::new(PrimKind::Int(wrap_int(dtype, v)), dtype.scalar());
        if dtype.lanes > 1 { scalar.broadcast(dtype.lanes) } else { scalar }
    }

    /// An `int64` literal.
    pub fn i64(v: i64) -> PrimExpr {
        PrimExpr::int(DType::I64, v)
    }

    /// An `int32` literal.
    pub fn i32(v: i32) -> PrimExpr {
        PrimExpr::int(DType::I32, i64::from(v))
    }

    /// A bool literal.
    pub fn bool(v: bool) -> PrimExpr {
        PrimExpr::int(DType::BOOL, i64::from(v))
    }

    /// A float literal. The number is kept as given, so that it prints as written; its value is that number rounded to
    /// the type.
    pub fn float(dtype: DType, v: f64) -> PrimExpr {
        let scalar = PrimExpr::new(PrimKind::Float(v), dtype.scalar());
        if dtype.lanes > 1 { scalar.broadcast(dtype.lanes) } else { scalar }
    }

    /// A number of any arithmetic type.
    pub fn number(dtype: DType, v: f64) -> PrimExpr {
        if dtype.is_float() { PrimExpr::float(dtype, v) } else { PrimExpr::int(dtype, v as i64) }
    }

    /// Zero of any arithmetic type.
    pub fn zero(dtype: DType) -> PrimExpr {
        PrimExpr::number(dtype, 0.0)
    }

    /// A string argument.
    pub fn str(v: impl Into<Name>) -> PrimExpr {
        PrimExpr::new(PrimKind::Str(v.into()), DType::HANDLE)
    }

    /// Literal as the other operand's type, scalar as the other's lanes.
    fn matched(a: PrimExpr, b: PrimExpr) -> (PrimExpr, PrimExpr) {
        let (a, b) = match (a.dtype().lanes, b.dtype().lanes) {
            (1, n) if n > 1 => (a.broadcast(n), b),
            (n, 1) if n > 1 => (a, b.broadcast(n)),
            _ => (a, b),
        };
        let (da, db) = (a.dtype(), b.dtype());
        if da == db {
            (a, b)
        } else if da.is_float() != db.is_float() {
            if da.is_float() { (a, b.cast(da)) } else { (a.cast(db), b) }
        } else if matches!(a.kind(), PrimKind::Int(_)) && !matches!(b.kind(), PrimKind::Int(_)) && !db.is_bool() {
            (a.cast(db), b)
        } else if matches!(b.kind(), PrimKind::Int(_)) && !matches!(a.kind(), PrimKind::Int(_)) && !da.is_bool() {
            let b = b.cast(da);
            (a, b)
        } else if da.is_bool() || (db.bits > da.bits && !db.is_bool()) || (db.bits == da.bits && db.is_uint()) {
            (a.cast(db), b)
        } else {
            (a, b.cast(da))
        }
    }

    /// An operator; operands of unlike types are promoted, constants and identities folded.
    pub fn binary(op: BinOp, a: PrimExpr, b: PrimExpr) -> PrimExpr {
        let (a, b) = PrimExpr::matched(a, b);
        let dtype = a.dtype();
        if let Some(folded) = fold_binary(op, &a, &b) {
            return folded;
        }
        PrimExpr::new(PrimKind::Binary(op, a, b), dtype)
    }

    /// A comparison; operands of unlike types are promoted, constants folded.
    pub fn cmp(op: CmpOp, a: PrimExpr, b: PrimExpr) -> PrimExpr {
        let (a, b) = PrimExpr::matched(a, b);
        let dtype = DType::BOOL.with_lanes(a.dtype().lanes);
        let ordering = match (a.kind(), b.kind()) {
            (PrimKind::Int(x), PrimKind::Int(y)) if a.dtype().is_uint() => Some((*x as u64).cmp(&(*y as u64))),
            (PrimKind::Int(x), PrimKind::Int(y)) => Some(x.cmp(y)),
            (PrimKind::Float(x), PrimKind::Float(y)) => match (rounded(a.dtype(), *x), rounded(b.dtype(), *y)) {
                (Some(x), Some(y)) => x.partial_cmp(&y),
                _ => None,
            },
            _ => None,
        };
        if let Some(o) = ordering {
            let v = match op {
                CmpOp::Eq => o.is_eq(),
                CmpOp::Ne => o.is_ne(),
                CmpOp::Lt => o.is_lt(),
                CmpOp::Le => o.is_le(),
                CmpOp::Gt => o.is_gt(),
                CmpOp::Ge => o.is_ge(),
            };
            return PrimExpr::bool(v);
        }
        PrimExpr::new(PrimKind::Cmp(op, a, b), dtype)
    }

    /// Logical and of bools, constants folded.
    pub fn and(self, b: PrimExpr) -> PrimExpr {
        match (self.as_int(), b.as_int()) {
            (Some(0), _) | (_, Some(1)) => self,
            (Some(_), _) | (_, Some(_)) => b,
            _ => {
                let dtype = self.dtype();
                PrimExpr::new(PrimKind::And(self, b), dtype)
            }
        }
    }

    /// Logical or of bools, constants folded.
    pub fn or(self, b: PrimExpr) -> PrimExpr {
        match (self.as_int(), b.as_int()) {
            (Some(0), _) => b,
            (Some(_), _) => self,
            (_, Some(0)) => self,
            (_, Some(_)) => b,
            _ => {
                let dtype = self.dtype();
                PrimExpr::new(PrimKind::Or(self, b), dtype)
            }
        }
    }

    /// Logical not of a bool, constants folded.
    pub fn logical_not(self) -> PrimExpr {
        match self.as_int() {
            Some(v) => PrimExpr::int(self.dtype(), i64::from(v == 0)),
            None => {
                let dtype = self.dtype();
                PrimExpr::new(PrimKind::Not(self), dtype)
            }
        }
    }

    /// `cond ? self : other`, both sides evaluated; the operands are promoted to one type.
    pub fn select(cond: PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr {
        let (a, b) = PrimExpr::matched(a, b);
        match cond.as_int() {
            Some(0) => b,
            Some(_) => a,
            None => {
                let dtype = a.dtype();
                PrimExpr::new(PrimKind::Select(cond, a, b), dtype)
            }
        }
    }

    /// `cond ? a : b` where only the chosen side is evaluated (`T.if_then_else`).
    pub fn if_then_else(cond: PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr {
        let (a, b) = PrimExpr::matched(a, b);
        match cond.as_int() {
            Some(0) => b,
            Some(_) => a,
            None => PrimExpr::call(Intrinsic::IfThenElse, vec![cond, a, b]),
        }
    }

    /// Conversion; a literal is converted now where that is exact.
    pub fn cast(&self, dtype: DType) -> PrimExpr {
        let from = self.dtype();
        if from == dtype {
            return self.clone();
        }
        if from.lanes == 1 && dtype.lanes > 1 {
            return self.cast(dtype.scalar()).broadcast(dtype.lanes);
        }
        match self.kind() {
            PrimKind::Int(v) if dtype.is_integer() || dtype.is_bool() => PrimExpr::int(dtype, *v),
            PrimKind::Int(v) if dtype.is_float() && !(from.is_uint() && *v < 0) => PrimExpr::float(dtype, *v as f64),
            PrimKind::Float(v) if dtype == DType::F32 || dtype == DType::F64 => match rounded(from, *v) {
                Some(v) => PrimExpr::float(dtype, v),
                None => PrimExpr::new(PrimKind::Cast(self.clone()), dtype),
            },
            _ => PrimExpr::new(PrimKind::Cast(self.clone()), dtype),
        }
    }

    /// One scalar in `lanes` lanes.
    pub fn broadcast(&self, lanes: u16) -> PrimExpr {
        if lanes <= 1 {
            return self.clone();
        }
        PrimExpr::new(PrimKind::Broadcast(self.clone()), self.dtype().with_lanes(lanes))
    }

    /// `base + stride * lane`
    pub fn ramp(base: PrimExpr, stride: PrimExpr, lanes: u16) -> PrimExpr {
        let dtype = base.dtype().with_lanes(lanes);
        PrimExpr::new(PrimKind::Ramp(base, stride), dtype)
    }

    /// A call of the intrinsic table; the result type follows its row.
    pub fn call(f: Intrinsic, args: Vec<PrimExpr>) -> PrimExpr {
        let dtype = f.result_type(&args);
        PrimExpr::new(PrimKind::Call(f, args), dtype)
    }

    /// An element of a buffer.
    pub fn load(buffer: &Buffer, indices: Vec<PrimExpr>) -> PrimExpr {
        let lanes = indices.last().map_or(1, |i| i.dtype().lanes);
        let dtype = buffer.dtype.with_lanes(buffer.dtype.lanes.saturating_mul(lanes));
        PrimExpr::new(PrimKind::Load(buffer.clone(), indices), dtype)
    }

    /// The lesser.
    pub fn min(self, b: impl Into<PrimExpr>) -> PrimExpr {
        PrimExpr::binary(BinOp::Min, self, b.into())
    }

    /// The greater.
    pub fn max(self, b: impl Into<PrimExpr>) -> PrimExpr {
        PrimExpr::binary(BinOp::Max, self, b.into())
    }

    /// Quotient rounded toward negative infinity.
    pub fn floordiv(self, b: impl Into<PrimExpr>) -> PrimExpr {
        PrimExpr::binary(BinOp::FloorDiv, self, b.into())
    }

    /// Remainder of [`PrimExpr::floordiv`].
    pub fn floormod(self, b: impl Into<PrimExpr>) -> PrimExpr {
        PrimExpr::binary(BinOp::FloorMod, self, b.into())
    }

    /// `==`
    pub fn eq(self, b: impl Into<PrimExpr>) -> PrimExpr {
        PrimExpr::cmp(CmpOp::Eq, self, b.into())
    }

    /// `<`
    pub fn lt(self, b: impl Into<PrimExpr>) -> PrimExpr {
        PrimExpr::cmp(CmpOp::Lt, self, b.into())
    }

    /// `<=`
    pub fn le(self, b: impl Into<PrimExpr>) -> PrimExpr {
        PrimExpr::cmp(CmpOp::Le, self, b.into())
    }

    /// `>`
    pub fn gt(self, b: impl Into<PrimExpr>) -> PrimExpr {
        PrimExpr::cmp(CmpOp::Gt, self, b.into())
    }

    /// `>=`
    pub fn ge(self, b: impl Into<PrimExpr>) -> PrimExpr {
        PrimExpr::cmp(CmpOp::Ge, self, b.into())
    }
}

/// Value of an integer operator, wrapped to the type's width; `None` for division by zero and shifts out of range.
pub fn eval_int(op: BinOp, dtype: DType, a: i64, b: i64) -> Option<i64> {
    let unsigned = dtype.is_uint();
    let (ua, ub) = (a as u64, b as u64);
    let v = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::Div | BinOp::FloorDiv | BinOp::Mod | BinOp::FloorMod if b == 0 => return None,
        BinOp::Div | BinOp::FloorDiv if unsigned => (ua / ub) as i64,
        BinOp::Mod | BinOp::FloorMod if unsigned => (ua % ub) as i64,
        BinOp::Div => a.wrapping_div(b),
        BinOp::Mod => a.wrapping_rem(b),
        BinOp::FloorDiv => {
            let q = a.wrapping_div(b);
            if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { q.wrapping_sub(1) } else { q }
        }
        BinOp::FloorMod => {
            let r = a.wrapping_rem(b);
            if r != 0 && (r < 0) != (b < 0) { r.wrapping_add(b) } else { r }
        }
        BinOp::Min if unsigned => ua.min(ub) as i64,
        BinOp::Max if unsigned => ua.max(ub) as i64,
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
        BinOp::BitAnd => a & b,
        BinOp::BitOr => a | b,
        BinOp::BitXor => a ^ b,
        BinOp::Shl | BinOp::Shr if b < 0 || b >= i64::from(dtype.bits) => return None,
        BinOp::Shl => a.wrapping_shl(u32::try_from(b).ok()?),
        BinOp::Shr if unsigned => (ua >> b) as i64,
        BinOp::Shr => a >> b,
    };
    Some(wrap_int(dtype, v))
}

fn fold_binary(op: BinOp, a: &PrimExpr, b: &PrimExpr) -> Option<PrimExpr> {
    let dtype = a.dtype();
    if dtype.is_float() {
        return fold_float(op, a, b);
    }
    if let (PrimKind::Int(x), PrimKind::Int(y)) = (a.kind(), b.kind()) {
        return eval_int(op, dtype, *x, *y).map(|v| PrimExpr::int(dtype, v));
    }
    let (x, y) = (a.as_int(), b.as_int());
    match op {
        BinOp::Add if x == Some(0) => Some(b.clone()),
        BinOp::Add | BinOp::Sub | BinOp::Shl | BinOp::Shr if y == Some(0) => Some(a.clone()),
        BinOp::Mul if x == Some(1) => Some(b.clone()),
        BinOp::Mul | BinOp::Div | BinOp::FloorDiv if y == Some(1) => Some(a.clone()),
        BinOp::Mul if x == Some(0) => Some(a.clone()),
        BinOp::Mul if y == Some(0) => Some(b.clone()),
        BinOp::Div | BinOp::FloorDiv | BinOp::Mod | BinOp::FloorMod if x == Some(0) && y != Some(0) => Some(a.clone()),
        BinOp::Mod | BinOp::FloorMod if y == Some(1) => Some(PrimExpr::int(dtype, 0)),
        BinOp::Min | BinOp::Max if a == b => Some(a.clone()),
        _ => None,
    }
}

fn fold_float(op: BinOp, a: &PrimExpr, b: &PrimExpr) -> Option<PrimExpr> {
    let dtype = a.dtype();
    // Only types whose arithmetic this machine does exactly as IEEE says.
    if dtype != DType::F32 && dtype != DType::F64 {
        return None;
    }
    let (PrimKind::Float(x), PrimKind::Float(y)) = (a.kind(), b.kind()) else {
        // Identities that hold for every value, NaN, infinities and signed zeros included.
        return match op {
            BinOp::Mul if a.as_float() == Some(1.0) => Some(b.clone()),
            BinOp::Mul | BinOp::Div if b.as_float() == Some(1.0) => Some(a.clone()),
            BinOp::Sub if b.as_float().is_some_and(|v| v.to_bits() == 0) => Some(a.clone()),
            _ => None,
        };
    };
    let (x, y) = (rounded(dtype, *x)?, rounded(dtype, *y)?);
    let v = match op {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        BinOp::Mul => x * y,
        BinOp::Div if y != 0.0 => x / y,
        BinOp::Min if !x.is_nan() && !y.is_nan() => x.min(y),
        BinOp::Max if !x.is_nan() && !y.is_nan() => x.max(y),
        _ => return None,
    };
    Some(PrimExpr::float(dtype, rounded(dtype, v)?))
}

/// The value of a literal of a type; `None` for types that are rounded when evaluated.
fn rounded(dtype: DType, v: f64) -> Option<f64> {
    match dtype.scalar() {
        DType::F64 => Some(v),
        DType::F32 => Some(f64::from(v as f32)),
        _ => None,
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $op:ident) => {
        impl<T: Into<PrimExpr>> std::ops::$trait<T> for PrimExpr {
            type Output = PrimExpr;
            fn $method(self, b: T) -> PrimExpr {
                PrimExpr::binary(BinOp::$op, self, b.into())
            }
        }
        impl<T: Into<PrimExpr>> std::ops::$trait<T> for &PrimExpr {
            type Output = PrimExpr;
            fn $method(self, b: T) -> PrimExpr {
                PrimExpr::binary(BinOp::$op, self.clone(), b.into())
            }
        }
    };
}
operator!(Add, add, Add);
operator!(Sub, sub, Sub);
operator!(Mul, mul, Mul);
operator!(Div, div, Div);

impl From<&PrimExpr> for PrimExpr {
    fn from(e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

/// A literal whose type the other operand decides (`int64` alone).
impl From<i64> for PrimExpr {
    fn from(v: i64) -> PrimExpr {
        PrimExpr::i64(v)
    }
}

impl From<&super::Var> for PrimExpr {
    fn from(v: &super::Var) -> PrimExpr {
        v.expr()
    }
}

impl From<super::Var> for PrimExpr {
    fn from(v: super::Var) -> PrimExpr {
        v.expr()
    }
}
