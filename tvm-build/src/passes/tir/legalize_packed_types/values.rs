//! Values of packed types in wider ones.

use super::{Legalize, bin, place};
use tvm_ir::diag::Diag;
use tvm_ir::dtype::{DType, TypeCode};
use tvm_ir::float;
use tvm_ir::prim::{BinOp, Intrinsic, PrimExpr, PrimKind, Var};

/// The type that values of a packed type are computed in.
fn wide(d: DType) -> DType {
    let scalar = match d.code {
        TypeCode::Int => DType::I8,
        TypeCode::UInt => DType::U8,
        _ => DType::F32,
    };
    scalar.with_lanes(d.lanes)
}

fn int(d: DType, v: i64) -> PrimExpr {
    PrimExpr::int(d.scalar(), v).broadcast(d.lanes)
}

fn float(d: DType, v: f64) -> PrimExpr {
    PrimExpr::float(d.scalar(), v).broadcast(d.lanes)
}

fn reinterpret(e: PrimExpr, to: DType) -> PrimExpr {
    PrimExpr::new(PrimKind::Call(Intrinsic::Reinterpret, vec![e]), to)
}

impl Legalize<'_> {
    /// The variable that takes the place of one of a packed type.
    pub(super) fn var(&mut self, v: &Var) -> Var {
        self.vars.entry(v.clone()).or_insert_with(|| Var::at(v.name(), wide(v.dtype()), v.span())).clone()
    }

    /// An expression without packed types: of the same type, or of the wider type where it was of a packed one.
    pub(super) fn value(&mut self, e: &PrimExpr) -> PrimExpr {
        let dtype = e.dtype();
        let out = match e.kind() {
            PrimKind::Var(v) if dtype.is_packed() => self.var(v).expr(),
            PrimKind::Let(v, value, body) if v.dtype().is_packed() => {
                let (value, var) = (self.value(value), self.var(v));
                let body = self.value(body);
                let dtype = body.dtype();
                PrimExpr::new(PrimKind::Let(var, value, body), dtype)
            }
            PrimKind::Load(b, indices) if b.dtype.is_packed() => match &indices[..] {
                [index] => {
                    let bits = self.load(b, index);
                    decode(dtype, bits)
                }
                _ => e.clone(),
            },
            PrimKind::Call(Intrinsic::Reinterpret, args) => self.reinterpret(e, args),
            PrimKind::Call(f, args) if args.iter().any(|a| a.dtype().is_packed()) => self.call(e, *f, args),
            PrimKind::CallExtern(name, args) if dtype.is_packed() || args.iter().any(|a| a.dtype().is_packed()) => {
                self.fail(
                    Diag::error(e.span(), format!("C function {name} is called with a type of less than a byte"))
                        .help("cast to int8, uint8 or float32 around it"),
                );
                e.clone()
            }
            _ if !dtype.is_packed() => e.map_children(&mut |c| self.value(c)),
            PrimKind::Int(v) => int(wide(dtype), *v),
            PrimKind::Float(v) => float(wide(dtype), float::round_to(dtype.scalar(), *v)),
            PrimKind::Cast(a) => {
                let a = self.value(a);
                convert(dtype, a)
            }
            PrimKind::Binary(op, a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                binary(dtype, *op, a, b)
            }
            // Select, if_then_else, broadcast, ramp: no new values, or wrapped ones.
            PrimKind::Ramp(a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                wrap(dtype, PrimExpr::ramp(a, b, dtype.lanes))
            }
            _ => {
                let mapped = e.map_children(&mut |c| self.value(c));
                PrimExpr::new(mapped.kind().clone(), wide(dtype))
            }
        };
        out.with_span(e.span())
    }

    /// The bits of an element of a packed buffer, as `uint8`.
    fn load(&mut self, b: &tvm_ir::prim::Buffer, index: &PrimExpr) -> PrimExpr {
        let bytes = self.buffer(b);
        let (byte, shift) = place(b.dtype, &self.value(index));
        let byte = PrimExpr::load(&bytes, vec![byte]);
        let d = byte.dtype();
        bin(BinOp::BitAnd, bin(BinOp::Shr, byte, shift), int(d, (1 << b.dtype.bits) - 1))
    }

    /// The bits of an expression of a packed type, as `uint8` with nothing above them.
    pub(super) fn bits(&mut self, e: &PrimExpr) -> PrimExpr {
        let dtype = e.dtype();
        match e.kind() {
            PrimKind::Load(b, indices) if b.dtype.is_packed() && indices.len() == 1 => self.load(b, &indices[0]),
            PrimKind::Cast(a) if dtype.is_float() && !a.dtype().is_packed() => {
                let a = self.value(a);
                encode(dtype, comparable(a))
            }
            PrimKind::Call(Intrinsic::IfThenElse, args) if args.len() == 3 => {
                let (c, a, b) = (self.value(&args[0]), self.bits(&args[1]), self.bits(&args[2]));
                PrimExpr::if_then_else(c, a, b)
            }
            PrimKind::Float(v) => {
                let bits = float::encode(dtype.scalar(), *v);
                int(DType::U8.with_lanes(dtype.lanes), bits as i64)
            }
            _ => {
                let value = self.value(e);
                encode(dtype, value)
            }
        }
    }

    fn reinterpret(&mut self, e: &PrimExpr, args: &[PrimExpr]) -> PrimExpr {
        match args {
            // Of as many bits each.
            [a] if a.dtype().is_packed() && e.dtype().is_packed() => {
                let bits = self.bits(a);
                decode(e.dtype(), bits)
            }
            [a] if a.dtype().is_packed() || e.dtype().is_packed() => {
                self.fail(Diag::error(e.span(), format!("reinterpret from {} to {}", a.dtype(), e.dtype())));
                e.clone()
            }
            _ => e.map_children(&mut |c| self.value(c)),
        }
    }

    fn call(&mut self, e: &PrimExpr, f: Intrinsic, args: &[PrimExpr]) -> PrimExpr {
        let own = args.last().map_or(DType::VOID, PrimExpr::dtype);
        let values: Vec<PrimExpr> = args.iter().map(|a| self.value(a)).collect();
        match f {
            Intrinsic::IfThenElse | Intrinsic::Likely => PrimExpr::call(f, values),
            Intrinsic::Clz | Intrinsic::Popcount | Intrinsic::Nextafter => {
                let message = format!("T.{} of {own} has no lowered form", f.name());
                self.fail(Diag::error(e.span(), message).help("cast to int8, uint8 or float32 around it"));
                e.clone()
            }
            _ if e.dtype().is_packed() => convert(e.dtype(), PrimExpr::call(f, values)),
            _ => PrimExpr::call(f, values),
        }
    }
}

/// An integer of the wider type brought into the range of a packed one: its low bits. Floats as they are.
fn wrap(dtype: DType, e: PrimExpr) -> PrimExpr {
    if dtype.is_float() {
        return e;
    }
    let d = e.dtype();
    let low = bin(BinOp::BitAnd, e, int(d, (1 << dtype.bits) - 1));
    if dtype.is_uint() {
        return low;
    }
    let sign = int(d, 1 << (dtype.bits - 1));
    bin(BinOp::Sub, bin(BinOp::BitXor, low, sign.clone()), sign)
}

/// The value of low bits that are nothing else, `uint8`.
fn decode(dtype: DType, bits: PrimExpr) -> PrimExpr {
    if dtype.is_float() {
        return decode_float4(bits);
    }
    let wide = wide(dtype);
    if dtype.is_uint() {
        return bits;
    }
    let sign = int(wide, 1 << (dtype.bits - 1));
    bin(BinOp::Sub, bin(BinOp::BitXor, bits.cast(wide), sign.clone()), sign)
}

/// The bits of a value in the wider type, which the packed type holds.
fn encode(dtype: DType, value: PrimExpr) -> PrimExpr {
    if dtype.is_float() {
        return once(value, "v", encode_float4);
    }
    let byte = DType::U8.with_lanes(dtype.lanes);
    bin(BinOp::BitAnd, value.cast(byte), int(byte, (1 << dtype.bits) - 1))
}

/// A number of any type as a packed one, in the wider type: as a cast is, saturating from floats, wrapping from integers.
fn convert(dtype: DType, value: PrimExpr) -> PrimExpr {
    if dtype.is_float() {
        return once(comparable(value), "v", |v| once(encode_float4(v), "bits", decode_float4));
    }
    let wide = wide(dtype);
    let saturates = value.dtype().is_float();
    let value = value.cast(wide);
    match (dtype.min_int(), dtype.max_int()) {
        (Some(low), Some(high)) if saturates => value.min(int(wide, high)).max(int(wide, low)),
        _ => wrap(dtype, value),
    }
}

/// A number as a `float32` or `float64` that has the same place among the values of `float4_e2m1fn`.
fn comparable(value: PrimExpr) -> PrimExpr {
    let d = value.dtype();
    let exact = d.scalar() == DType::F32 || d.scalar() == DType::F64;
    if exact { value } else { value.cast(DType::F32.with_lanes(d.lanes)) }
}

fn binary(dtype: DType, op: BinOp, a: PrimExpr, b: PrimExpr) -> PrimExpr {
    if dtype.is_float() {
        return convert(dtype, bin(op, a, b));
    }
    match op {
        // The result is in range as the operands are.
        BinOp::Min | BinOp::Max | BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Shr => bin(op, a, b),
        _ => wrap(dtype, bin(op, a, b)),
    }
}

/// What `f` makes of a value that it uses more than once: computed once, if it takes work.
fn once(value: PrimExpr, name: &str, f: impl FnOnce(PrimExpr) -> PrimExpr) -> PrimExpr {
    if matches!(value.kind(), PrimKind::Var(_) | PrimKind::Load(..)) || value.children().is_empty() {
        return f(value);
    }
    let var = Var::new(name, value.dtype());
    let body = f(var.expr());
    let dtype = body.dtype();
    PrimExpr::new(PrimKind::Let(var, value, body), dtype)
}

/// The value of bits of `float4_e2m1fn`: moved to their places in a `float32`, whose exponent is too small by 126.
fn decode_float4(bits: PrimExpr) -> PrimExpr {
    let word = DType::U32.with_lanes(bits.dtype().lanes);
    let f = DType::F32.with_lanes(bits.dtype().lanes);
    let part =
        |mask: i64, by: i64| bin(BinOp::Shl, bin(BinOp::BitAnd, bits.cast(word), int(word, mask)), int(word, by));
    reinterpret(bin(BinOp::BitOr, part(7, 22), part(8, 28)), f) * float(f, 2f64.powi(126))
}

/// Bits of the nearest value of `float4_e2m1fn`, ties to even, saturating: how many half-way points the magnitude has
/// passed. NaN gives -0.
fn encode_float4(value: PrimExpr) -> PrimExpr {
    let d = value.dtype();
    let (byte, word) = (DType::U8.with_lanes(d.lanes), DType::U32.with_lanes(d.lanes));
    let magnitude = PrimExpr::call(Intrinsic::Abs, vec![value.clone()]);
    let points = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];
    let passed = points.into_iter().enumerate().map(|(i, at)| {
        let at = float(d, at);
        let passed = if i % 2 == 0 { magnitude.clone().gt(at) } else { magnitude.clone().ge(at) };
        passed.cast(byte)
    });
    let count = passed.reduce(|a, b| a + b).unwrap_or_else(|| int(byte, 0));
    let sign = reinterpret(value.cast(DType::F32.with_lanes(d.lanes)), word);
    let sign = bin(BinOp::BitAnd, bin(BinOp::Shr, sign, int(word, 28)), int(word, 8)).cast(byte);
    let nan = PrimExpr::call(Intrinsic::IsNan, vec![value]);
    bin(BinOp::BitOr, count, PrimExpr::select(nan, int(byte, 8), sign))
}
