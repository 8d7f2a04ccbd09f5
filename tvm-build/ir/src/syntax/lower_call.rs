//! Calls of `T` functions in scalar expressions.

use super::ast::{Expr, ExprKind, UnaryOp};
use super::lower_prim::Lowered;
use super::scope::{Args, Entity, Lower, suggest_in};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{BinOp, CmpOp, INTRINSICS, Intrinsic, PrimExpr, PrimKind, ResultType, Var};

/// Binary operators by function name: name, operator, whether the node is made without folding.
const BINARY: &[(&str, BinOp, bool)] = &[
    ("min", BinOp::Min, false),
    ("max", BinOp::Max, false),
    ("floordiv", BinOp::FloorDiv, false),
    ("floormod", BinOp::FloorMod, false),
    ("truncdiv", BinOp::Div, false),
    ("truncmod", BinOp::Mod, false),
    ("bitwise_and", BinOp::BitAnd, false),
    ("bitwise_or", BinOp::BitOr, false),
    ("bitwise_xor", BinOp::BitXor, false),
    ("shift_left", BinOp::Shl, false),
    ("shift_right", BinOp::Shr, false),
    ("Add", BinOp::Add, true),
    ("Sub", BinOp::Sub, true),
    ("Mul", BinOp::Mul, true),
    ("Div", BinOp::Div, true),
    ("Mod", BinOp::Mod, true),
    ("FloorDiv", BinOp::FloorDiv, true),
    ("FloorMod", BinOp::FloorMod, true),
    ("Min", BinOp::Min, true),
    ("Max", BinOp::Max, true),
    ("BitwiseAnd", BinOp::BitAnd, true),
    ("BitwiseOr", BinOp::BitOr, true),
    ("BitwiseXor", BinOp::BitXor, true),
    ("LShift", BinOp::Shl, true),
    ("RShift", BinOp::Shr, true),
];

const COMPARE: &[(&str, CmpOp)] =
    &[("EQ", CmpOp::Eq), ("NE", CmpOp::Ne), ("LT", CmpOp::Lt), ("LE", CmpOp::Le), ("GT", CmpOp::Gt), ("GE", CmpOp::Ge)];

/// Names of the functions read here and nowhere else.
const OTHERS: &[&str] = &[
    "And",
    "Or",
    "Not",
    "Select",
    "Cast",
    "cast",
    "Ramp",
    "ramp",
    "Broadcast",
    "broadcast",
    "Let",
    "call_extern",
    "call_pure_extern",
    "reinterpret",
    "ceildiv",
    "infinity",
    "min_value",
    "max_value",
    "fabs",
    "power",
];

impl Lower<'_> {
    /// A call of `T.name`.
    pub(super) fn prim_call(&mut self, name: &str, e: &Expr, mut a: Args<'_>) -> Lowered<PrimExpr> {
        if let Ok(dtype) = name.parse::<DType>() {
            let out = self.convert(dtype, a.need("value")?)?;
            a.finish()?;
            return Ok(out);
        }
        if let Some((_, op, exact)) = BINARY.iter().find(|(n, ..)| *n == name) {
            let (x, y) = (self.number(a.need("a")?)?, self.number(a.need("b")?)?);
            a.finish()?;
            if *exact && x.dtype() == y.dtype() {
                let dtype = x.dtype();
                return Ok(PrimExpr::new(PrimKind::Binary(*op, x, y), dtype));
            }
            return self.checked_binary(*op, x, y, e.span);
        }
        if let Some((_, op)) = COMPARE.iter().find(|(n, _)| *n == name) {
            let (x, y) = (self.number(a.need("a")?)?, self.number(a.need("b")?)?);
            a.finish()?;
            if x.dtype() != y.dtype() {
                return Ok(PrimExpr::cmp(*op, x, y));
            }
            let dtype = DType::BOOL.with_lanes(x.dtype().lanes);
            return Ok(PrimExpr::new(PrimKind::Cmp(*op, x, y), dtype));
        }
        let out = match name {
            "And" | "Or" => {
                let (x, y) = (self.condition(a.need("a")?)?, self.condition(a.need("b")?)?);
                let dtype = x.dtype();
                let kind = if name == "And" { PrimKind::And(x, y) } else { PrimKind::Or(x, y) };
                PrimExpr::new(kind, dtype)
            }
            "Not" => {
                let x = self.condition(a.need("a")?)?;
                let dtype = x.dtype();
                PrimExpr::new(PrimKind::Not(x), dtype)
            }
            "Select" => {
                let c = self.condition(a.need("condition")?)?;
                let (x, y) = self.branches(&mut a)?;
                let dtype = x.dtype();
                PrimExpr::new(PrimKind::Select(c, x, y), dtype)
            }
            "if_then_else" => {
                let c = self.condition(a.need("cond")?)?;
                let (x, y) = self.branches(&mut a)?;
                PrimExpr::call(Intrinsic::IfThenElse, vec![c, x, y])
            }
            "Cast" | "cast" => {
                let (first, second) = (a.need("dtype")?, a.need("value")?);
                let (dtype, value) = if first.str().is_some() { (first, second) } else { (second, first) };
                let dtype = self.dtype(dtype)?;
                let value = self.number(value)?;
                if name == "cast" { value.cast(dtype) } else { PrimExpr::new(PrimKind::Cast(value), dtype) }
            }
            "Ramp" | "ramp" => {
                let (base, stride) = (self.number(a.need("base")?)?, self.number(a.need("stride")?)?);
                let lanes = self.lanes(a.need("lanes")?)?;
                let stride = stride.cast(base.dtype());
                PrimExpr::ramp(base, stride, lanes)
            }
            "Broadcast" | "broadcast" => {
                let value = self.number(a.need("value")?)?;
                let lanes = self.lanes(a.need("lanes")?)?;
                value.broadcast(lanes)
            }
            "Let" => self.let_expr(e, &mut a)?,
            "call_extern" | "call_pure_extern" => {
                let dtype = self.dtype(a.need("dtype")?)?;
                let symbol = self.string(a.need("func_name")?)?;
                let args = a.rest().iter().map(|x| self.prim(x)).collect::<Result<_, _>>()?;
                PrimExpr::new(PrimKind::CallExtern(symbol, args), dtype)
            }
            "reinterpret" => {
                let dtype = self.dtype(a.need("dtype")?)?;
                let value = self.number(a.need("value")?)?;
                PrimExpr::new(PrimKind::Call(Intrinsic::Reinterpret, vec![value]), dtype)
            }
            "ceildiv" => {
                let (x, y) = (self.number(a.need("a")?)?, self.number(a.need("b")?)?);
                let one = PrimExpr::int(x.dtype(), 1);
                self.checked_binary(BinOp::FloorDiv, x + (y.clone() - one), y, e.span)?
            }
            "infinity" => PrimExpr::float(self.dtype(a.need("dtype")?)?, f64::INFINITY),
            "min_value" | "max_value" => {
                let at = a.need("dtype")?;
                let dtype = self.dtype(at)?;
                let v = if name == "min_value" { dtype.min_int() } else { dtype.max_int() };
                match (v, dtype) {
                    (Some(v), _) => PrimExpr::int(dtype, v),
                    (None, DType::F32) => {
                        PrimExpr::float(dtype, f64::from(if name == "min_value" { f32::MIN } else { f32::MAX }))
                    }
                    (None, DType::F64) => PrimExpr::float(dtype, if name == "min_value" { f64::MIN } else { f64::MAX }),
                    _ => return Err(Diag::error(at.span, format!("T.{name} of {dtype} is not supported"))),
                }
            }
            "tvm_storage_sync" => {
                let scope = self.prim(a.need("scope")?)?;
                a.rest();
                PrimExpr::call(Intrinsic::StorageSync, vec![scope])
            }
            _ => return self.intrinsic(name, e, a),
        };
        a.finish()?;
        Ok(out)
    }

    fn intrinsic(&mut self, name: &str, e: &Expr, mut a: Args<'_>) -> Lowered<PrimExpr> {
        let table_name = match name {
            "fabs" => "abs",
            "power" => "pow",
            other => other,
        };
        let Some(f) = Intrinsic::parse(table_name) else {
            let known = INTRINSICS.iter().map(|(_, d)| d.name).chain(BINARY.iter().map(|(n, ..)| *n));
            let d = Diag::error(e.callee_span(), format!("unknown function T.{name}"));
            return Err(suggest_in(d, "T.", name, known.chain(OTHERS.iter().copied())));
        };
        let given = a.rest();
        let arity = usize::from(f.def().arity);
        if given.len() != arity {
            let d =
                format!("T.{name} takes {arity} argument{}, not {}", if arity == 1 { "" } else { "s" }, given.len());
            let at = given.get(arity).map_or(e.callee_span(), |extra| extra.span);
            return Err(Diag::error(at, d));
        }
        a.finish()?;
        let mut args = given.iter().map(|x| self.number(x)).collect::<Result<Vec<_>, _>>()?;
        let integral = matches!(f, Intrinsic::BitNot | Intrinsic::Popcount | Intrinsic::Clz);
        if let Some(x) = args.first().filter(|x| integral && x.dtype().is_float()) {
            let at = given.first().map_or(e.span, |g| g.span);
            return Err(Diag::error(at, format!("T.{name} needs an integer, not {}", x.dtype())));
        }
        if let ([x, y, ..], ResultType::First) = (args.as_mut_slice(), f.def().result) {
            if x.dtype() != y.dtype() && matches!(y.kind(), PrimKind::Int(_) | PrimKind::Float(_)) {
                *y = y.cast(x.dtype());
            }
        }
        Ok(PrimExpr::call(f, args))
    }

    fn branches<'x>(&mut self, a: &mut Args<'x>) -> Lowered<(PrimExpr, PrimExpr)> {
        let (x, at) = (self.number(a.need("true_value")?)?, a.need("false_value")?);
        let y = self.number(at)?;
        match (x.kind(), y.kind()) {
            _ if x.dtype() == y.dtype() => Ok((x, y)),
            (_, PrimKind::Int(_) | PrimKind::Float(_)) => {
                let y = y.cast(x.dtype());
                Ok((x, y))
            }
            (PrimKind::Int(_) | PrimKind::Float(_), _) => {
                let x = x.cast(y.dtype());
                Ok((x, y))
            }
            _ => Err(Diag::error(at.span, format!("the two values are {} and {}", x.dtype(), y.dtype()))
                .help("cast one with T.Cast")),
        }
    }

    fn lanes(&mut self, e: &Expr) -> Lowered<u16> {
        match self.prim(e)?.as_int().and_then(|v| u16::try_from(v).ok()) {
            Some(n) if n >= 1 => Ok(n),
            _ => Err(Diag::error(e.span, "the number of lanes must be a constant from 1 to 65535")),
        }
    }

    fn let_expr(&mut self, e: &Expr, a: &mut Args<'_>) -> Lowered<PrimExpr> {
        let body = a.need("expr")?;
        let bindings = match &a.need("where")?.kind {
            ExprKind::Dict(items) => items,
            _ => return Err(Diag::error(e.span, "T.Let needs where={name: value}")),
        };
        let mut bound = Vec::new();
        self.scope.push();
        let result = (|| {
            for (key, value) in bindings {
                let name = key.name().ok_or_else(|| Diag::error(key.span, "expected a name"))?;
                let value = self.number(value)?;
                let var = Var::at(name.clone(), value.dtype(), key.span);
                self.scope.define(name, Entity::Prim(var.clone()), key.span);
                bound.push((var, value));
            }
            self.number(body)
        })();
        self.scope.pop();
        Ok(bound.into_iter().rev().fold(result?, |body, (var, value)| {
            let dtype = body.dtype();
            PrimExpr::new(PrimKind::Let(var, value, body), dtype)
        }))
    }

    /// `T.float32(e)`: a literal of the type, or a conversion.
    fn convert(&mut self, dtype: DType, e: &Expr) -> Lowered<PrimExpr> {
        let literal = |v: f64| PrimExpr::float(dtype, v);
        match &e.kind {
            ExprKind::Str(s) if dtype.is_float() => {
                match s.as_str() {
                    "inf" => Ok(literal(f64::INFINITY)),
                    "-inf" => Ok(literal(f64::NEG_INFINITY)),
                    "nan" | "-nan" => Ok(literal(f64::NAN)),
                    _ => Err(Diag::error(e.span, format!("`{s}` is not a number"))
                        .help("write \"inf\", \"-inf\" or \"nan\"")),
                }
            }
            ExprKind::Int(v) => self.int(dtype, *v, e.span),
            ExprKind::Unary(UnaryOp::Neg, x) => match &x.kind {
                ExprKind::Int(v) => self.int(dtype, -*v, e.span),
                ExprKind::Float(v) if dtype.is_float() => Ok(literal(-*v)),
                _ => Ok(self.number(e)?.cast(dtype)),
            },
            ExprKind::Float(v) if dtype.is_float() => Ok(literal(*v)),
            _ => Ok(self.number(e)?.cast(dtype)),
        }
    }
}
