//! Lowered expressions as text of a C-like language.
//!
//! Integer operators wrap: what [`Bounds`] proves not to wrap is written plainly, the rest through unsigned types or
//! helpers. Inside an index of a load or store, 64-bit arithmetic over anything but loaded values does not wrap
//! (element indices are in bounds), so it is written plainly too.

use super::c_like::Printer;
use super::ctype::{ctype, is_narrow_float, mask_type, suffix, unsigned};
use super::prelude::scalar_cast;
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::lowered::{Expr, ExprKind, Local};
use tvm_ir::prim::{BinOp, CmpOp, Intrinsic};
use tvm_ir::span::Span;

/// How tightly a text binds: a smaller number binds tighter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Prec {
    Atom,
    Unary,
    Mul,
    Add,
    Other,
}

/// A printed expression.
pub(crate) struct Text {
    pub(crate) s: String,
    prec: Prec,
}

impl Text {
    fn new(prec: Prec, s: impl Into<String>) -> Text {
        Text { s: s.into(), prec }
    }

    pub(crate) fn atom(s: impl Into<String>) -> Text {
        Text::new(Prec::Atom, s)
    }

    /// The text, in parentheses unless it binds at least as tightly.
    pub(crate) fn within(self, prec: Prec) -> String {
        if self.prec <= prec { self.s } else { format!("({})", self.s) }
    }
}

/// Where an expression stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its value is data: integers wrap.
    Value,
    /// It is an element index or a loop bound.
    Index,
}

impl Printer<'_> {
    /// An expression. Errors: what this language cannot say.
    pub(crate) fn expr(&mut self, e: &Expr, place: Place) -> Result<Text, Diag> {
        match &e.kind {
            ExprKind::Var(v) => Ok(Text::atom(self.name(v)?)),
            ExprKind::Int(v) => Ok(int_literal(e.dtype, *v)),
            ExprKind::Float(v) => float_literal(e.dtype, *v),
            ExprKind::Binary(op, a, b) => self.binary(e, *op, a, b, place),
            ExprKind::Cmp(..) | ExprKind::And(..) | ExprKind::Or(..) | ExprKind::Not(..) => {
                if e.dtype.lanes == 1 {
                    return self.condition(e, place);
                }
                let narrow = mask_type(e.dtype);
                let mask = self.mask(e, narrow)?;
                Ok(Text::new(Prec::Unary, format!("({})({mask} & 1)", ctype(e.dtype)?)))
            }
            ExprKind::Select(c, a, b) => self.select(e, c, a, b, place),
            ExprKind::Cast(x) => self.cast(x, e.dtype, place),
            ExprKind::Reinterpret(x) => self.reinterpret(x, e.dtype),
            ExprKind::Load { pointer, index, aligned } => self.load(e.dtype, pointer, index, *aligned),
            ExprKind::Gather { pointer, index } => {
                if let Some(base) = every_second(index) {
                    let at = self.expr(base, Place::Index)?.s;
                    return Ok(Text::atom(format!("tvm_every2_{}(&{}[{at}])", suffix(e.dtype)?, self.name(pointer)?)));
                }
                let at = self.expr(index, Place::Index)?.s;
                let helper = format!("tvm_gather_{}_{}", suffix(e.dtype)?, suffix(index.dtype)?);
                Ok(Text::atom(format!("{helper}({}, {at})", self.name(pointer)?)))
            }
            ExprKind::Broadcast(x) => {
                let x = self.expr(x, place)?.s;
                Ok(Text::atom(format!("tvm_broadcast_{}({x})", suffix(e.dtype)?)))
            }
            ExprKind::Ramp(base, stride) => {
                let (b, s) = (self.expr(base, place)?.s, self.expr(stride, place)?.s);
                Ok(Text::atom(format!("tvm_ramp_{}({b}, {s})", suffix(e.dtype)?)))
            }
            ExprKind::Call(f, args) => self.call(e, *f, args, place),
            ExprKind::CallExtern(f, args) => self.call_extern(e.dtype, f, args),
        }
    }

    /// Reads one element or consecutive ones.
    fn load(&mut self, dtype: DType, pointer: &Local, index: &Expr, aligned: bool) -> Result<Text, Diag> {
        let at = self.expr(index, Place::Index)?;
        let (name, element) = (self.name(pointer)?, self.element(pointer)?);
        if element.lanes == dtype.lanes {
            return Ok(Text::atom(format!("{name}[{}]", at.s)));
        }
        let mode = if aligned { 'a' } else { 'u' };
        Ok(Text::new(Prec::Unary, format!("*(const {}{mode} *)&{name}[{}]", ctype(dtype)?, at.s)))
    }

    fn binary(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr, place: Place) -> Result<Text, Diag> {
        let dtype = e.dtype;
        if dtype.is_bool() {
            return self.binary_bool(e, op, a, b, place);
        }
        let (x, y) = (self.expr(a, place)?, self.operand(b, a, place)?);
        if dtype.is_float() {
            return binary_float(dtype, op, x, y, not_nan(b));
        }
        let plain_index = place == Place::Index && dtype.scalar() == DType::I64 && !reads_memory(e);
        let fits = plain_index || self.bounds.fits(e);
        let divisor = self.bounds.interval(b);
        let c_division = self.bounds.interval(a).lo >= 0 && divisor.lo > 0;
        // Operands narrower than `int` are promoted: the result must be brought back.
        let back = |s: String| -> Result<Text, Diag> {
            Ok(if dtype.bits < 32 && dtype.lanes == 1 {
                Text::new(Prec::Unary, format!("({})({s})", ctype(dtype)?))
            } else {
                Text::atom(format!("({s})"))
            })
        };
        match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul if fits => Ok(infix(op, x, y)),
            BinOp::Add | BinOp::Sub | BinOp::Mul => self.wrapping(dtype, op, x, y),
            BinOp::Div | BinOp::FloorDiv if c_division && dtype.lanes == 1 => Ok(infix(BinOp::Div, x, y)),
            BinOp::Mod | BinOp::FloorMod if c_division && dtype.lanes == 1 => Ok(infix(BinOp::Mod, x, y)),
            BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod | BinOp::Min | BinOp::Max => {
                let helper = match op {
                    BinOp::Div => "div",
                    BinOp::Mod => "mod",
                    BinOp::FloorDiv => "floordiv",
                    BinOp::FloorMod => "floormod",
                    BinOp::Min => "min",
                    _ => "max",
                };
                Ok(Text::atom(format!("tvm_{helper}_{}({}, {})", suffix(dtype)?, x.s, y.s)))
            }
            BinOp::BitAnd => back(format!("{} & {}", x.within(Prec::Unary), y.within(Prec::Unary))),
            BinOp::BitOr => back(format!("{} | {}", x.within(Prec::Unary), y.within(Prec::Unary))),
            BinOp::BitXor => back(format!("{} ^ {}", x.within(Prec::Unary), y.within(Prec::Unary))),
            BinOp::Shl | BinOp::Shr => {
                // Counts outside of the width are taken modulo the width.
                let count = format!("({} & {})", y.within(Prec::Unary), dtype.bits - 1);
                if op == BinOp::Shr {
                    return back(format!("{} >> {count}", x.within(Prec::Unary)));
                }
                let u = ctype(unsigned(wide(dtype)))?;
                let x = x.within(Prec::Unary);
                Ok(Text::new(Prec::Unary, format!("({})(({u}){x} << {})", ctype(dtype)?, cast_count(dtype, count)?)))
            }
        }
    }

    /// The second operand: a literal whose first operand is a literal too is typed, since C would compute in `int`.
    fn operand(&mut self, b: &Expr, a: &Expr, place: Place) -> Result<Text, Diag> {
        let literal = |e: &Expr| matches!(e.kind, ExprKind::Int(_));
        if literal(a) && literal(b) && b.dtype.bits == 64 {
            return Ok(Text::new(
                Prec::Unary,
                format!("({}){}", ctype(b.dtype)?, self.expr(b, place)?.within(Prec::Unary)),
            ));
        }
        self.expr(b, place)
    }

    fn wrapping(&mut self, dtype: DType, op: BinOp, x: Text, y: Text) -> Result<Text, Diag> {
        let u = ctype(unsigned(wide(dtype)))?;
        if dtype.is_uint() && dtype.bits >= 32 {
            return Ok(infix(op, x, y));
        }
        let (x, y) = (x.within(Prec::Unary), y.within(Prec::Unary));
        let sum = infix(op, Text::new(Prec::Unary, format!("({u}){x}")), Text::new(Prec::Unary, format!("({u}){y}")));
        Ok(Text::new(Prec::Unary, format!("({})({})", ctype(dtype)?, sum.s)))
    }

    fn binary_bool(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr, place: Place) -> Result<Text, Diag> {
        let sign = match op {
            BinOp::BitAnd | BinOp::Mul | BinOp::Min => "&",
            BinOp::BitOr | BinOp::Add | BinOp::Max => "|",
            BinOp::BitXor | BinOp::Sub => "^",
            _ => return Err(Diag::error(Span::NONE, format!("{op:?} has no meaning for bools"))),
        };
        let (x, y) = (self.expr(a, place)?.within(Prec::Unary), self.expr(b, place)?.within(Prec::Unary));
        let s = format!("({x} {sign} {y})");
        Ok(if e.dtype.lanes > 1 { Text::new(Prec::Unary, format!("({}){s}", ctype(e.dtype)?)) } else { Text::atom(s) })
    }

    /// A scalar bool.
    fn condition(&mut self, e: &Expr, place: Place) -> Result<Text, Diag> {
        let (sign, a, b) = match &e.kind {
            ExprKind::Cmp(op, a, b) => (cmp_sign(*op), a, b),
            ExprKind::And(a, b) => ("&&", a, b),
            ExprKind::Or(a, b) => ("||", a, b),
            ExprKind::Not(x) => {
                let x = self.expr(x, place)?;
                return Ok(Text::new(Prec::Other, format!("!{}", x.within(Prec::Atom))));
            }
            _ => return self.expr(e, place),
        };
        if let Some(known) = self.decided(e) {
            return Ok(Text::atom(if known { "1" } else { "0" }));
        }
        let (x, y) = (self.comparable(a, place)?, self.comparable(b, place)?);
        Ok(Text::new(Prec::Other, format!("{x} {sign} {y}")))
    }

    /// The outcome of a comparison of integers where it is known; compilers warn of comparisons that decide nothing.
    fn decided(&self, e: &Expr) -> Option<bool> {
        let ExprKind::Cmp(op, a, b) = &e.kind else { return None };
        if a.dtype.is_float() {
            return None;
        }
        let (x, y) = (self.bounds.interval(a), self.bounds.interval(b));
        let (less, equal, greater) =
            if a == b { (false, true, false) } else { (x.lo < y.hi, x.lo <= y.hi && y.lo <= x.hi, x.hi > y.lo) };
        let (holds, fails) = match op {
            CmpOp::Eq => (equal, less || greater),
            CmpOp::Ne => (less || greater, equal),
            CmpOp::Lt => (less, equal || greater),
            CmpOp::Le => (less || equal, greater),
            CmpOp::Gt => (greater, less || equal),
            CmpOp::Ge => (greater || equal, less),
        };
        (holds != fails).then_some(holds)
    }

    /// An operand of a comparison: narrow floats compare as `float`.
    fn comparable(&mut self, e: &Expr, place: Place) -> Result<String, Diag> {
        let x = self.expr(e, place)?;
        if is_narrow_float(e.dtype) { scalar_cast(&x.s, e.dtype, DType::F32) } else { Ok(x.within(Prec::Add)) }
    }

    /// A vector bool as a mask: lanes of `to` (a signed integer) that are all ones or zero.
    fn mask(&mut self, e: &Expr, to: DType) -> Result<String, Diag> {
        let t = ctype(to)?;
        match &e.kind {
            ExprKind::Cmp(op, a, b) => {
                let wide = if is_narrow_float(a.dtype) { DType::F32.with_lanes(a.dtype.lanes) } else { a.dtype };
                let (x, y) = (self.cast(a, wide, Place::Value)?, self.cast(b, wide, Place::Value)?);
                let s = format!("({} {} {})", x.within(Prec::Add), cmp_sign(*op), y.within(Prec::Add));
                let m = mask_type(wide);
                let s = format!("({}){s}", ctype(m)?);
                Ok(if m == to { s } else { format!("__builtin_convertvector({s}, {t})") })
            }
            ExprKind::And(a, b) => Ok(format!("({} & {})", self.mask(a, to)?, self.mask(b, to)?)),
            ExprKind::Or(a, b) => Ok(format!("({} | {})", self.mask(a, to)?, self.mask(b, to)?)),
            ExprKind::Not(x) => Ok(format!("(~{})", self.mask(x, to)?)),
            _ => {
                let x = self.expr(e, Place::Value)?;
                Ok(format!("(__builtin_convertvector({}, {t}) != 0)", x.s))
            }
        }
    }

    fn select(&mut self, e: &Expr, c: &Expr, a: &Expr, b: &Expr, place: Place) -> Result<Text, Diag> {
        let (x, y) = (self.expr(a, place)?, self.expr(b, place)?);
        if c.dtype.lanes > 1 {
            let m = self.mask(c, mask_type(e.dtype))?;
            return Ok(Text::atom(format!("tvm_select_{}({m}, {}, {})", suffix(e.dtype)?, x.s, y.s)));
        }
        let c = self.expr(c, place)?.within(Prec::Add);
        let (x, y) = (x.within(Prec::Add), y.within(Prec::Add));
        if e.dtype.lanes > 1 {
            // A load has the type of a vector anywhere in memory, which is another.
            let t = ctype(e.dtype)?;
            return Ok(Text::new(Prec::Other, format!("{c} ? ({t})({x}) : ({t})({y})")));
        }
        Ok(Text::new(Prec::Other, format!("{c} ? {x} : {y}")))
    }

    /// A conversion with the semantics of `PrimKind::Cast`.
    pub(crate) fn cast(&mut self, e: &Expr, to: DType, place: Place) -> Result<Text, Diag> {
        let from = e.dtype;
        // What is converted to a loaded or data value is data.
        let x = self.expr(e, if from.is_float() { Place::Value } else { place })?;
        if from == to {
            return Ok(x);
        }
        if to.lanes == 1 {
            let s = scalar_cast(&x.within(Prec::Unary), from, to)?;
            return Ok(Text::new(Prec::Unary, s));
        }
        let narrow = is_narrow_float(from) || is_narrow_float(to);
        if to.is_bool() {
            let wide = if is_narrow_float(from) { DType::F32.with_lanes(from.lanes) } else { from };
            let v = if wide == from {
                x.within(Prec::Unary)
            } else {
                format!("tvm_cast_{}_{}({})", suffix(from)?, suffix(wide)?, x.s)
            };
            let mask = format!("({})({v} != 0)", ctype(mask_type(wide))?);
            return Ok(Text::atom(format!("__builtin_convertvector({mask} & 1, {})", ctype(to)?)));
        }
        if narrow || (from.is_float() && !to.is_float()) {
            return Ok(Text::atom(format!("tvm_cast_{}_{}({})", suffix(from)?, suffix(to)?, x.s)));
        }
        Ok(Text::atom(format!("__builtin_convertvector({}, {})", x.s, ctype(to)?)))
    }

    fn reinterpret(&mut self, e: &Expr, to: DType) -> Result<Text, Diag> {
        let x = self.expr(e, Place::Value)?;
        if e.dtype.bytes() != to.bytes() {
            return Err(Diag::error(Span::NONE, format!("reinterpret from `{}` to `{to}`: sizes differ", e.dtype)));
        }
        if e.dtype == to {
            return Ok(x);
        }
        if to.lanes > 1 && e.dtype.lanes > 1 {
            return Ok(Text::new(Prec::Unary, format!("({}){}", ctype(to)?, x.within(Prec::Unary))));
        }
        Ok(Text::atom(format!("tvm_bits_{}_{}({})", suffix(e.dtype)?, suffix(to)?, x.s)))
    }

    fn call(&mut self, e: &Expr, f: Intrinsic, args: &[Expr], place: Place) -> Result<Text, Diag> {
        let dtype = e.dtype;
        let first = args.first().ok_or_else(|| Diag::error(Span::NONE, format!("T.{}: no arguments", f.name())))?;
        let exact = !first.dtype.is_float();
        match (f, args) {
            (Intrinsic::IfThenElse, [c, a, b]) => return self.select(e, c, a, b, place),
            (Intrinsic::Likely, [x]) => return self.expr(x, place),
            (Intrinsic::Reinterpret, [x]) => return self.reinterpret(x, dtype),
            (Intrinsic::BitNot, [x]) if !dtype.is_bool() => {
                let x = self.expr(x, Place::Value)?.within(Prec::Unary);
                return Ok(Text::new(Prec::Unary, format!("({})~{x}", ctype(dtype)?)));
            }
            (Intrinsic::BitNot, [x]) => {
                let not = Expr { dtype, kind: ExprKind::Not(Box::new(x.clone())) };
                return self.expr(&not, place);
            }
            (Intrinsic::Ceil | Intrinsic::Floor | Intrinsic::Round | Intrinsic::Nearbyint | Intrinsic::Trunc, [x])
                if exact =>
            {
                return self.expr(x, place);
            }
            (Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite, [_]) if exact => {
                let v = Expr { dtype: dtype.scalar(), kind: ExprKind::Int(i64::from(f == Intrinsic::IsFinite)) };
                let v = if dtype.lanes > 1 { Expr { dtype, kind: ExprKind::Broadcast(Box::new(v)) } } else { v };
                return self.expr(&v, place);
            }
            (Intrinsic::Fmod, [a, b]) => {
                let op = ExprKind::Binary(BinOp::Mod, Box::new(a.clone()), Box::new(b.clone()));
                return self.expr(&Expr { dtype, kind: op }, place);
            }
            (Intrinsic::StorageSync, _) => {
                return Err(Diag::error(Span::NONE, "a storage barrier stands inside an expression"));
            }
            _ => {}
        }
        let mut texts = Vec::new();
        for a in args {
            texts.push(self.cast(a, first.dtype, Place::Value)?.s);
        }
        let call = Text::atom(format!("tvm_{}_{}({})", f.name(), suffix(first.dtype)?, texts.join(", ")));
        Ok(call)
    }
}

/// The type in which C computes: 32 bits at least for scalars.
fn wide(dtype: DType) -> DType {
    if dtype.lanes == 1 && dtype.bits < 32 { DType { bits: 32, ..dtype } } else { dtype }
}

fn cast_count(dtype: DType, count: String) -> Result<String, Diag> {
    Ok(if dtype.lanes > 1 && dtype.is_int() { format!("({}){count}", ctype(unsigned(dtype))?) } else { count })
}

fn cmp_sign(op: CmpOp) -> &'static str {
    match op {
        CmpOp::Eq => "==",
        CmpOp::Ne => "!=",
        CmpOp::Lt => "<",
        CmpOp::Le => "<=",
        CmpOp::Gt => ">",
        CmpOp::Ge => ">=",
    }
}

/// `x op y` for `+ - * / %`.
fn infix(op: BinOp, x: Text, y: Text) -> Text {
    let (sign, prec, right) = match op {
        BinOp::Add => ("+", Prec::Add, Prec::Mul),
        BinOp::Sub => ("-", Prec::Add, Prec::Mul),
        BinOp::Mul => ("*", Prec::Mul, Prec::Unary),
        BinOp::Div => ("/", Prec::Mul, Prec::Unary),
        _ => ("%", Prec::Mul, Prec::Unary),
    };
    Text::new(prec, format!("{} {sign} {}", x.within(prec), y.within(right)))
}

fn binary_float(dtype: DType, op: BinOp, x: Text, y: Text, y_not_nan: bool) -> Result<Text, Diag> {
    let helper = match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div if !is_narrow_float(dtype) => return Ok(infix(op, x, y)),
        BinOp::Add => "add",
        BinOp::Sub => "sub",
        BinOp::Mul => "mul",
        BinOp::Div => "div",
        BinOp::Mod => "mod",
        BinOp::FloorDiv => "floordiv",
        BinOp::FloorMod => "floormod",
        BinOp::Min if y_not_nan && !is_narrow_float(dtype) => "minc",
        BinOp::Max if y_not_nan && !is_narrow_float(dtype) => "maxc",
        BinOp::Min => "min",
        BinOp::Max => "max",
        _ => return Err(Diag::error(Span::NONE, format!("{op:?} has no meaning for `{dtype}`"))),
    };
    Ok(Text::atom(format!("tvm_{helper}_{}({}, {})", suffix(dtype)?, x.s, y.s)))
}

fn not_nan(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Float(v) => !v.is_nan(),
        ExprKind::Broadcast(x) => not_nan(x),
        _ => false,
    }
}

fn reads_memory(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Load { .. } | ExprKind::Gather { .. } | ExprKind::Call(..) | ExprKind::CallExtern(..) => true,
        ExprKind::Binary(_, a, b) => reads_memory(a) || reads_memory(b),
        ExprKind::Cast(x) | ExprKind::Broadcast(x) | ExprKind::Reinterpret(x) => reads_memory(x),
        ExprKind::Select(_, a, b) => reads_memory(a) || reads_memory(b),
        _ => false,
    }
}

/// The start of indices `start, start + 2, …`.
fn every_second(index: &Expr) -> Option<&Expr> {
    match &index.kind {
        ExprKind::Ramp(base, stride) if stride.kind == ExprKind::Int(2) => Some(base),
        _ => None,
    }
}

fn int_literal(dtype: DType, v: i64) -> Text {
    if dtype.is_uint() {
        return match dtype.bits {
            64 => Text::atom(format!("UINT64_C({})", v as u64)),
            32 => Text::atom(format!("{}u", v as u64)),
            _ => Text::atom(format!("{v}")),
        };
    }
    match v {
        i64::MIN => Text::atom("INT64_MIN"),
        v if v == i64::from(i32::MIN) => Text::atom("INT32_MIN"),
        v if i32::try_from(v).is_err() && v < 0 => Text::new(Prec::Unary, format!("-INT64_C({})", v.unsigned_abs())),
        v if i32::try_from(v).is_err() => Text::atom(format!("INT64_C({v})")),
        v if v < 0 => Text::new(Prec::Unary, format!("-{}", v.unsigned_abs())),
        v => Text::atom(format!("{v}")),
    }
}

fn float_literal(dtype: DType, v: f64) -> Result<Text, Diag> {
    if is_narrow_float(dtype) {
        let wide = float_literal(DType::F64, v)?;
        return Ok(Text::atom(scalar_cast(&wide.s, DType::F64, dtype)?));
    }
    let single = dtype == DType::F32;
    let f = if single { "f" } else { "" };
    let magnitude = if v.is_nan() {
        format!("__builtin_nan{f}(\"\")")
    } else if v.is_infinite() {
        format!("__builtin_inf{f}()")
    } else if single {
        format!("{:?}f", (v as f32).abs())
    } else {
        format!("{:?}", v.abs())
    };
    Ok(if v.is_sign_negative() && !v.is_nan() {
        Text::new(Prec::Unary, format!("-{magnitude}"))
    } else {
        Text::atom(magnitude)
    })
}
