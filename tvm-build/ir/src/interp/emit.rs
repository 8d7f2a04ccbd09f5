//! Emits scalar operations by their types.

use super::build::{Builder, Lin, Reg};
use super::instr::Op;
use crate::arith::IntBound;
use crate::diag::Diag;
use crate::dtype::{DType, TypeCode};
use crate::float;
use crate::prim::{BinOp, CmpOp, Intrinsic, wrap_int};
use crate::span::Span;

const ANY: IntBound = IntBound::EVERYTHING;
const BIT: IntBound = IntBound::new(0, 1);

/// What a register holds for a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Int,
    F32,
    F64,
}

/// The class of a scalar type. Errors for complex numbers, handles and void.
pub(super) fn class(dtype: DType, span: Span) -> Result<Class, Diag> {
    match dtype.code {
        TypeCode::Int | TypeCode::UInt | TypeCode::Bool | TypeCode::Text => Ok(Class::Int),
        TypeCode::Float if dtype.bits == 64 => Ok(Class::F64),
        _ if dtype.is_float() => Ok(Class::F32),
        _ => Err(Diag::error(span, format!("the reference interpreter has no values of type {dtype}"))),
    }
}

/// Whether values of a class-F32 type must be rounded after each operation.
fn is_narrow(dtype: DType) -> bool {
    dtype.is_float() && dtype.bits < 32
}

fn is_u64(dtype: DType) -> bool {
    dtype.is_uint() && dtype.bits == 64
}

/// A memory as elements of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemRef {
    pub(super) mem: u16,
    /// Scalar element type.
    pub(super) dtype: DType,
    /// Whether reads of elements never stored are errors.
    pub(super) watched: bool,
}

impl Builder {
    pub(super) fn int_literal(&mut self, dtype: DType, v: i64) -> Lin {
        if is_u64(dtype) && v < 0 {
            // As an `i64` it would seem negative.
            let c = self.int(v);
            return Lin::reg(self.pure(Op::Move, [c, 0, 0], 1, 1, IntBound::of_type(dtype)));
        }
        Lin::constant(wrap_int(dtype, v))
    }

    pub(super) fn float_literal(&mut self, dtype: DType, v: f64, span: Span) -> Result<Lin, Diag> {
        Ok(Lin::reg(match class(dtype, span)? {
            Class::F64 => self.constant(v.to_bits()),
            _ => {
                let v = float::round_to(dtype, v) as f32;
                self.constant(u64::from(v.to_bits()))
            }
        }))
    }

    fn float_op(&mut self, op: Op, args: [Reg; 3], regs: usize) -> Reg {
        self.pure(op, args, regs, 0, ANY)
    }

    fn narrowed(&mut self, dtype: DType, r: Reg) -> Reg {
        if !is_narrow(dtype) {
            return r;
        }
        let t = self.dtype(dtype.scalar());
        self.pure(Op::NarrowF32, [r, 0, 0], 1, t, ANY)
    }

    pub(super) fn binary(&mut self, op: BinOp, dtype: DType, x: &Lin, y: &Lin, span: Span) -> Result<Lin, Diag> {
        match class(dtype, span)? {
            Class::Int => Ok(self.int_binary(op, dtype, x, y, span)),
            c => {
                let (a, b) = (self.materialize(x), self.materialize(y));
                let f = |f32op, f64op| if c == Class::F32 { f32op } else { f64op };
                let r = match op {
                    BinOp::Add if c == Class::F32 => match self.product_in(a, b) {
                        Some(args) => self.float_op(Op::MulAddF32, args, 3),
                        None => self.float_op(Op::AddF32, [a, b, 0], 2),
                    },
                    BinOp::Add => self.float_op(Op::AddF64, [a, b, 0], 2),
                    BinOp::Sub => self.float_op(f(Op::SubF32, Op::SubF64), [a, b, 0], 2),
                    BinOp::Mul => self.float_op(f(Op::MulF32, Op::MulF64), [a, b, 0], 2),
                    BinOp::Div => self.float_op(f(Op::DivF32, Op::DivF64), [a, b, 0], 2),
                    BinOp::Mod => self.float_op(f(Op::ModF32, Op::ModF64), [a, b, 0], 2),
                    BinOp::FloorMod => self.float_op(f(Op::FloorModF32, Op::FloorModF64), [a, b, 0], 2),
                    BinOp::Min => self.float_op(f(Op::MinF32, Op::MinF64), [a, b, 0], 2),
                    BinOp::Max => self.float_op(f(Op::MaxF32, Op::MaxF64), [a, b, 0], 2),
                    BinOp::FloorDiv => {
                        let q = self.float_op(f(Op::DivF32, Op::DivF64), [a, b, 0], 2);
                        let q = self.narrowed(dtype, q);
                        let floor = self.intrinsic(Intrinsic::Floor);
                        self.float_op(f(Op::CallF32, Op::CallF64), [q, 0, floor], 1)
                    }
                    other => {
                        let message = format!("operator {other:?} is not defined for {dtype}");
                        return Err(Diag::error(span, message));
                    }
                };
                Ok(Lin::reg(self.narrowed(dtype, r)))
            }
        }
    }

    fn int_binary(&mut self, op: BinOp, dtype: DType, x: &Lin, y: &Lin, span: Span) -> Lin {
        let constants = x.as_const().zip(y.as_const());
        if let Some(v) = constants.and_then(|(a, b)| crate::prim::eval_int(op, dtype, a, b)) {
            return self.int_literal(dtype, v);
        }
        let (p, q) = (self.lin_bound(x), self.lin_bound(y));
        let all = IntBound::of_type(dtype);
        let inside = |b: IntBound| b.is_finite() && all.covers(b);
        let linear = match (op, x.as_const(), y.as_const()) {
            (BinOp::Add, ..) if inside(p.plus(q)) => x.add(y, 1),
            (BinOp::Sub, ..) if inside(p.plus(q.negate())) => x.add(y, -1),
            (BinOp::Mul, _, Some(k)) if inside(p.scale(k)) => Lin::constant(0).add(x, k),
            (BinOp::Mul, Some(k), _) if inside(q.scale(k)) => Lin::constant(0).add(y, k),
            _ => None,
        };
        if let Some(l) = linear {
            return l;
        }
        let (a, b) = (self.materialize(x), self.materialize(y));
        let unsigned = is_u64(dtype);
        let pick = |signed, uns| if unsigned { uns } else { signed };
        let ring = |s: &mut Builder, op, raw: IntBound| {
            // A bound that is not finite may have wrapped.
            let r = s.int_op(op, [a, b, 0], 2, if raw.is_finite() { raw } else { ANY });
            s.settle(r, dtype)
        };
        let r = match op {
            BinOp::Add => ring(self, Op::Add, p.plus(q)),
            BinOp::Sub => ring(self, Op::Sub, p.plus(q.negate())),
            BinOp::Mul => ring(self, Op::Mul, p.times(q)),
            BinOp::Min => self.int_op(pick(Op::Min, Op::MinU), [a, b, 0], 2, p.min_of(q)),
            BinOp::Max => self.int_op(pick(Op::Max, Op::MaxU), [a, b, 0], 2, p.max_of(q)),
            BinOp::BitAnd => {
                let b0 = if p.min >= 0 && q.min >= 0 { IntBound::new(0, p.max.min(q.max)) } else { all };
                self.int_op(Op::And, [a, b, 0], 2, b0)
            }
            BinOp::BitOr => self.int_op(Op::Or, [a, b, 0], 2, all),
            BinOp::BitXor => self.int_op(Op::Xor, [a, b, 0], 2, all),
            BinOp::Shl | BinOp::Shr => {
                let shift = y.clone();
                self.check(&shift, i64::from(dtype.bits), span, || {
                    format!("shift of {dtype} by {{}} bits, which must be at least 0 and less than {}", dtype.bits)
                });
                if op == BinOp::Shl {
                    let r = self.pure(Op::Shl, [a, b, 0], 2, 0, ANY);
                    self.settle(r, dtype)
                } else {
                    let bound = if p.min >= 0 { IntBound::new(0, p.max) } else { all };
                    self.int_op(pick(Op::Shr, Op::ShrU), [a, b, 0], 2, bound)
                }
            }
            BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod => {
                return Lin::reg(self.int_divide(op, dtype, [a, b], [p, q], span));
            }
        };
        Lin::reg(r)
    }

    fn int_divide(&mut self, op: BinOp, dtype: DType, [a, b]: [Reg; 2], [p, q]: [IntBound; 2], span: Span) -> Reg {
        let quotient = matches!(op, BinOp::Div | BinOp::FloorDiv);
        let floor = matches!(op, BinOp::FloorDiv | BinOp::FloorMod) || p.min >= 0;
        let bound = match op {
            BinOp::Div => p.truncdiv(q),
            BinOp::Mod => p.truncmod(q),
            BinOp::FloorDiv => p.floordiv(q),
            _ => p.floormod(q),
        };
        let bound = IntBound::of_type(dtype).intersect(bound);
        // By a power of two, rounding down: a shift or a mask.
        if let Some(k) = q.as_point().filter(|k| *k > 0 && k.count_ones() == 1 && floor && !is_u64(dtype)) {
            let by = self.int(if quotient { i64::from(k.trailing_zeros()) } else { k - 1 });
            return self.int_op(if quotient { Op::Shr } else { Op::And }, [a, by, 0], 2, bound);
        }
        let op = match op {
            BinOp::Div | BinOp::FloorDiv if is_u64(dtype) => Op::DivU,
            BinOp::Mod | BinOp::FloorMod if is_u64(dtype) => Op::ModU,
            BinOp::Div => Op::Div,
            BinOp::Mod => Op::Mod,
            BinOp::FloorDiv => Op::FloorDiv,
            _ => Op::FloorMod,
        };
        let r = if q.contains(0) {
            let site = self.site(span, format!("division by zero in {dtype}"));
            self.here(op, [a, b, 0], site, bound)
        } else {
            self.int_op(op, [a, b, 0], 2, bound)
        };
        // The least value by -1.
        if q.contains(-1) && quotient { self.settle(r, dtype) } else { r }
    }

    /// Wraps a result that may have left its type.
    fn settle(&mut self, r: Reg, dtype: DType) -> Reg {
        if dtype.bits >= 64 {
            if !IntBound::of_type(dtype).covers(self.bound(r)) || !self.bound(r).is_finite() {
                self.set_bound(r, IntBound::of_type(dtype));
            }
            return r;
        }
        self.wrap(r, dtype)
    }

    pub(super) fn cmp(&mut self, op: CmpOp, dtype: DType, x: &Lin, y: &Lin, span: Span) -> Result<Lin, Diag> {
        let c = class(dtype, span)?;
        let (x, y) = if matches!(op, CmpOp::Gt | CmpOp::Ge) { (y, x) } else { (x, y) };
        if c == Class::Int {
            let (p, q) = (self.lin_bound(x), self.lin_bound(y));
            let known = match op {
                CmpOp::Lt | CmpOp::Gt if p.max < q.min => Some(1),
                CmpOp::Lt | CmpOp::Gt if p.min >= q.max => Some(0),
                CmpOp::Le | CmpOp::Ge if p.max <= q.min => Some(1),
                CmpOp::Le | CmpOp::Ge if p.min > q.max => Some(0),
                CmpOp::Eq | CmpOp::Ne if p.max < q.min || q.max < p.min => Some(i64::from(op == CmpOp::Ne)),
                CmpOp::Eq | CmpOp::Ne if p.as_point().is_some() && p == q => Some(i64::from(op == CmpOp::Eq)),
                _ => None,
            };
            // Bounds of `uint64` reach infinity and then decide nothing.
            if let Some(v) = known.filter(|_| p.is_finite() && q.is_finite()) {
                return Ok(Lin::constant(v));
            }
        }
        let (a, b) = (self.materialize(x), self.materialize(y));
        let op = match (op, c) {
            (CmpOp::Eq, Class::Int) => Op::Eq,
            (CmpOp::Ne, Class::Int) => Op::Ne,
            (CmpOp::Lt | CmpOp::Gt, Class::Int) => {
                if is_u64(dtype) {
                    Op::LtU
                } else {
                    Op::Lt
                }
            }
            (CmpOp::Le | CmpOp::Ge, Class::Int) => {
                if is_u64(dtype) {
                    Op::LeU
                } else {
                    Op::Le
                }
            }
            (CmpOp::Eq, Class::F32) => Op::EqF32,
            (CmpOp::Ne, Class::F32) => Op::NeF32,
            (CmpOp::Lt | CmpOp::Gt, Class::F32) => Op::LtF32,
            (CmpOp::Le | CmpOp::Ge, Class::F32) => Op::LeF32,
            (CmpOp::Eq, Class::F64) => Op::EqF64,
            (CmpOp::Ne, Class::F64) => Op::NeF64,
            (CmpOp::Lt | CmpOp::Gt, Class::F64) => Op::LtF64,
            (CmpOp::Le | CmpOp::Ge, Class::F64) => Op::LeF64,
        };
        Ok(Lin::reg(self.pure(op, [a, b, 0], 2, 0, BIT)))
    }

    pub(super) fn not(&mut self, x: &Lin) -> Lin {
        if let Some(v) = x.as_const() {
            return Lin::constant(i64::from(v == 0));
        }
        let a = self.materialize(x);
        Lin::reg(self.pure(Op::Eq, [a, 0, 0], 2, 0, BIT))
    }

    /// `And` or `Or` of bools.
    pub(super) fn bits(&mut self, op: Op, x: &Lin, y: &Lin) -> Lin {
        let neutral = i64::from(op == Op::And);
        for (x, y) in [(x, y), (y, x)] {
            match x.as_const() {
                Some(v) if v == neutral => return y.clone(),
                Some(v) => return Lin::constant(v),
                None => {}
            }
        }
        let (a, b) = (self.materialize(x), self.materialize(y));
        Lin::reg(self.int_op(op, [a, b, 0], 2, BIT))
    }

    pub(super) fn select(&mut self, dtype: DType, c: &Lin, x: &Lin, y: &Lin) -> Lin {
        match c.as_const() {
            Some(0) => return y.clone(),
            Some(_) => return x.clone(),
            None => {}
        }
        let bound = if dtype.is_float() { ANY } else { self.lin_bound(x).union(self.lin_bound(y)) };
        let args = [self.materialize(c), self.materialize(x), self.materialize(y)];
        Lin::reg(self.pure(Op::Select, args, 3, 0, bound))
    }

    pub(super) fn cast(&mut self, from: DType, to: DType, x: &Lin, span: Span) -> Result<Lin, Diag> {
        if from == to {
            return Ok(x.clone());
        }
        let t = self.dtype(to.scalar());
        Ok(match (class(from, span)?, class(to, span)?) {
            (Class::Int, Class::Int) if to.is_bool() => {
                if IntBound::new(0, 1).covers(self.lin_bound(x)) {
                    return Ok(x.clone());
                }
                let a = self.materialize(x);
                Lin::reg(self.pure(Op::Ne, [a, 0, 0], 2, 0, BIT))
            }
            (Class::Int, Class::Int) => {
                let b = self.lin_bound(x);
                if b.is_finite() && IntBound::of_type(to).covers(b) {
                    return Ok(x.clone());
                }
                let a = self.materialize(x);
                if to.bits == 64 {
                    // Same bits, another reading of them.
                    return Ok(Lin::reg(self.pure(Op::Move, [a, 0, 0], 1, t, IntBound::of_type(to))));
                }
                Lin::reg(self.wrap(a, to))
            }
            (Class::Int, Class::F32) => {
                let a = self.materialize(x);
                if is_narrow(to) {
                    let op = if is_u64(from) { Op::U64ToF64 } else { Op::IntToF64 };
                    let wide = self.pure(op, [a, 0, 0], 1, 0, ANY);
                    return Ok(Lin::reg(self.pure(Op::Narrow, [wide, 0, 0], 1, t, ANY)));
                }
                let op = if is_u64(from) { Op::U64ToF32 } else { Op::IntToF32 };
                Lin::reg(self.pure(op, [a, 0, 0], 1, 0, ANY))
            }
            (Class::Int, Class::F64) => {
                let a = self.materialize(x);
                let op = if is_u64(from) { Op::U64ToF64 } else { Op::IntToF64 };
                Lin::reg(self.pure(op, [a, 0, 0], 1, 0, ANY))
            }
            (Class::F32, Class::Int) => {
                let a = self.materialize(x);
                Lin::reg(self.pure(Op::F32ToInt, [a, 0, 0], 1, t, IntBound::of_type(to)))
            }
            (Class::F64, Class::Int) => {
                let a = self.materialize(x);
                Lin::reg(self.pure(Op::F64ToInt, [a, 0, 0], 1, t, IntBound::of_type(to)))
            }
            (Class::F32, Class::F32) => {
                let a = self.materialize(x);
                Lin::reg(self.narrowed(to, a))
            }
            (Class::F32, Class::F64) => {
                let a = self.materialize(x);
                Lin::reg(self.pure(Op::F32ToF64, [a, 0, 0], 1, 0, ANY))
            }
            (Class::F64, Class::F32) => {
                let a = self.materialize(x);
                let r = if is_narrow(to) {
                    self.pure(Op::Narrow, [a, 0, 0], 1, t, ANY)
                } else {
                    self.pure(Op::F64ToF32, [a, 0, 0], 1, 0, ANY)
                };
                Lin::reg(r)
            }
            (Class::F64, Class::F64) => x.clone(),
        })
    }

    /// Same bits, other type; both of the same width.
    pub(super) fn reinterpret(&mut self, from: DType, to: DType, x: &Lin, span: Span) -> Result<Lin, Diag> {
        class(from, span)?;
        class(to, span)?;
        if from.bits != to.bits {
            let message = format!("reinterpret from {from} to {to}, which has another width");
            return Err(Diag::error(span, message));
        }
        let a = self.materialize(x);
        let (s, t) = (self.dtype(from.scalar()), self.dtype(to.scalar()));
        let bits = self.pure(Op::ToBits, [a, 0, 0], 1, s, ANY);
        let bound = if to.is_float() { ANY } else { IntBound::of_type(to) };
        Ok(Lin::reg(self.pure(Op::FromBits, [bits, 0, 0], 1, t, bound)))
    }

    /// An eager intrinsic of scalars; `dtypes` are those of the arguments.
    pub(super) fn call(&mut self, f: Intrinsic, args: &[Lin], dtypes: &[DType], span: Span) -> Result<Lin, Diag> {
        let missing = |d: DType| Diag::error(span, format!("intrinsic `{}` is not defined for {d}", f.name()));
        let (Some(x), Some(dtype)) = (args.first(), dtypes.first().copied()) else {
            return Err(missing(DType::VOID));
        };
        if f == Intrinsic::Likely {
            return Ok(x.clone());
        }
        let c = class(dtype, span)?;
        let index = self.intrinsic(f);
        let regs: Vec<Reg> = args.iter().map(|a| self.materialize(a)).collect();
        let arg = |i: usize| regs.get(i).copied().unwrap_or(0);
        let t = self.dtype(dtype.scalar());
        if c == Class::Int {
            if super::scalar::int_intrinsic(f, dtype, [1, 1]).is_none() {
                return Err(missing(dtype));
            }
            let bound = match f {
                Intrinsic::Clz | Intrinsic::Popcount => IntBound::new(0, i64::from(dtype.bits)),
                Intrinsic::IsFinite | Intrinsic::IsInf | Intrinsic::IsNan => BIT,
                _ => IntBound::of_type(dtype),
            };
            return Ok(Lin::reg(self.pure(Op::IntCall, [arg(0), arg(1), index], 2, t, bound)));
        }
        let pick = |f32op, f64op| if c == Class::F32 { f32op } else { f64op };
        if super::scalar::float_test(f).is_some() {
            return Ok(Lin::reg(self.pure(pick(Op::TestF32, Op::TestF64), [arg(0), 0, index], 1, 0, BIT)));
        }
        let r = if super::scalar::float_unary(f).is_some() {
            self.pure(pick(Op::CallF32, Op::CallF64), [arg(0), 0, index], 1, 0, ANY)
        } else if super::scalar::float_binary(f).is_some() {
            self.pure(pick(Op::Call2F32, Op::Call2F64), [arg(0), arg(1), index], 2, 0, ANY)
        } else {
            match f {
                Intrinsic::Fma => self.float_op(pick(Op::FmaF32, Op::FmaF64), [arg(0), arg(1), arg(2)], 3),
                Intrinsic::Ldexp | Intrinsic::Nextafter => {
                    let wide = self.cast(dtype, DType::F64, x, span)?;
                    let a = self.materialize(&wide);
                    let r = if f == Intrinsic::Ldexp {
                        self.pure(Op::Ldexp, [a, arg(1), 0], 2, 0, ANY)
                    } else {
                        let toward = self.cast(dtype, DType::F64, &Lin::reg(arg(1)), span)?;
                        let b = self.materialize(&toward);
                        self.pure(Op::NextAfter, [a, b, 0], 2, t, ANY)
                    };
                    return self.cast(DType::F64, dtype, &Lin::reg(r), span);
                }
                _ => return Err(missing(dtype)),
            }
        };
        Ok(Lin::reg(self.narrowed(dtype, r)))
    }

    pub(super) fn load(&mut self, m: MemRef, index: &Lin, span: Span, name: &str) -> Result<Lin, Diag> {
        let c = class(m.dtype, span)?;
        let (a, b) = self.split(index);
        if m.watched {
            let site = self.site(span, format!("element {{}} of buffer `{name}` is read before it is written"));
            self.effect(Op::CheckInit, 0, [a, b, m.mem], site);
        }
        let d = m.dtype;
        let op = match (d.code, d.bits) {
            (TypeCode::Float, 32) => Op::LoadF32,
            (TypeCode::Float, 64) => Op::LoadF64,
            (TypeCode::Int, 8) => Op::LoadI8,
            (TypeCode::UInt, 8) => Op::LoadU8,
            (TypeCode::Int, 32) => Op::LoadI32,
            (TypeCode::Int | TypeCode::UInt, 64) => Op::LoadI64,
            _ => Op::LoadAny,
        };
        if op == Op::LoadF32 && !m.watched {
            if let Some([x, k]) = self.made_by(Op::Mul, a, self.depth()) {
                return Ok(Lin::reg(self.here(Op::LoadScaledF32, [x, k, b], i32::from(m.mem), ANY)));
            }
        }
        let t = if op == Op::LoadAny { self.dtype(d) } else { 0 };
        let bound = if c == Class::Int { IntBound::of_type(d) } else { ANY };
        Ok(Lin::reg(self.here(op, [a, b, m.mem], t, bound)))
    }

    pub(super) fn store(&mut self, m: MemRef, index: &Lin, value: &Lin) {
        let (a, b) = self.split(index);
        let v = self.materialize(value);
        let d = m.dtype;
        let op = match (d.code, d.bits) {
            (TypeCode::Float, 32) => Op::StoreF32,
            (TypeCode::Float, 64) => Op::StoreF64,
            (TypeCode::Int | TypeCode::UInt, 8) | (TypeCode::Bool, _) => Op::Store8,
            (TypeCode::Int | TypeCode::UInt, 32) => Op::Store32,
            (TypeCode::Int | TypeCode::UInt, 64) => Op::Store64,
            _ => Op::StoreAny,
        };
        let t = if op == Op::StoreAny { self.dtype(d) } else { 0 };
        self.effect(op, v, [a, b, m.mem], t);
        if m.watched {
            self.effect(Op::MarkInit, 0, [a, b, m.mem], 0);
        }
    }
}
