//! Surface expressions to scalar expressions.

use super::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use super::scope::{Args, Entity, Lower, consequence};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{BinOp, Buffer, PrimExpr, PrimKind, Range};
use crate::span::Span;

pub(super) type Lowered<T> = Result<T, Diag>;

/// `stop - start`, folded where `stop` is written as `start + extent`.
pub(super) fn extent_of(cx: &Lower<'_>, start: &PrimExpr, stop: &PrimExpr) -> PrimExpr {
    if let PrimKind::Binary(BinOp::Add, a, b) = stop.kind() {
        if a == start {
            return b.clone();
        }
        if b == start {
            return a.clone();
        }
    }
    cx.analyzer.simplify(&PrimExpr::binary(BinOp::Sub, stop.clone(), start.clone()))
}

impl Lower<'_> {
    /// An integer literal of a type; errors when it does not fit.
    pub(super) fn int(&self, dtype: DType, v: i128, span: Span) -> Lowered<PrimExpr> {
        let bits = match dtype.bits {
            64 if dtype.is_uint() => i64::from_ne_bytes(u64::try_from(v).unwrap_or(0).to_ne_bytes()),
            _ => i64::try_from(v).unwrap_or(0),
        };
        let fits = match (dtype.min_int(), dtype.max_int()) {
            _ if dtype.is_uint() && dtype.bits == 64 => u64::try_from(v).is_ok(),
            (Some(lo), Some(hi)) => (i128::from(lo)..=i128::from(hi)).contains(&v),
            _ => i64::try_from(v).is_ok(),
        };
        if fits {
            Ok(PrimExpr::number_of(dtype, bits))
        } else {
            Err(Diag::error(span, format!("the integer {v} does not fit {dtype}")))
        }
    }

    /// A scalar expression.
    pub(super) fn prim(&mut self, e: &Expr) -> Lowered<PrimExpr> {
        let out = match &e.kind {
            ExprKind::Int(v) => match self.int(self.literal, *v, e.span) {
                Err(_) if i64::try_from(*v).is_ok() => self.int(DType::I64, *v, e.span)?,
                other => other?,
            },
            ExprKind::Float(v) => PrimExpr::float(DType::F32, *v),
            ExprKind::Bool(v) => PrimExpr::bool(*v),
            ExprKind::Str(s) => PrimExpr::str(s.clone()),
            ExprKind::Name(n) => match self.resolve(n, e.span)? {
                Entity::Prim(v) => v.expr(),
                Entity::Buffer(b) => {
                    return Err(Diag::error(e.span, format!("buffer `{n}` is used as a scalar")).help(format!(
                        "read an element of it, as `{n}[{}]`",
                        vec!["…"; b.shape.len().max(1)].join(", ")
                    )));
                }
                Entity::Relax(v) => return self.prim_of_relax(&v, e.span),
                Entity::Handle(_) => {
                    return Err(Diag::error(e.span, format!("`{n}` is a handle, not a scalar"))
                        .help("name its buffer with T.match_buffer"));
                }
                Entity::Module | Entity::Broken => {
                    return Err(Diag::error(e.span, format!("`{n}` is the module, not a scalar")));
                }
            },
            ExprKind::Unary(op, a) => self.unary(*op, a, e.span)?,
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, e.span)?,
            ExprKind::Compare(op, a, b) => {
                let (a, b) = (self.number(a)?, self.number(b)?);
                PrimExpr::cmp(*op, a, b)
            }
            ExprKind::Index(base, items) => self.load(base, items, e.span)?,
            ExprKind::Call { func, args, keywords } => {
                let path = func.path().unwrap_or_default();
                let Some(name) = path.strip_prefix("T.").or_else(|| path.strip_prefix("tir.")) else {
                    if func.name().is_some_and(|n| matches!(self.scope.declared(n), Some(Entity::Broken))) {
                        return Err(consequence());
                    }
                    return Err(Diag::error(func.span, "only functions of `T` can be called in a scalar expression"));
                };
                let name = name.to_string();
                self.prim_call(&name, e, Args::new(&format!("T.{name}"), func.span, args, keywords))?
            }
            ExprKind::Attr(..) => {
                return Err(Diag::error(e.span, format!("`{}` is not a scalar", e.path().unwrap_or_default())));
            }
            ExprKind::Broken => return Err(consequence()),
            ExprKind::None | ExprKind::Slice(..) | ExprKind::Tuple(_) | ExprKind::List(_) | ExprKind::Dict(_) => {
                return Err(Diag::error(e.span, "expected a scalar expression"));
            }
        };
        Ok(if out.span().is_none() { out.with_span(e.span) } else { out })
    }

    fn prim_of_relax(&mut self, v: &crate::relax::Var, span: Span) -> Lowered<PrimExpr> {
        match v.info() {
            crate::relax::StructInfo::Prim(_, Some(value)) => Ok(value.clone()),
            _ => Err(Diag::error(span, format!("`{}` is not a scalar", v.name()))),
        }
    }

    /// A scalar expression that is not a string.
    pub(super) fn number(&mut self, e: &Expr) -> Lowered<PrimExpr> {
        let v = self.prim(e)?;
        if matches!(v.kind(), PrimKind::Str(_)) {
            return Err(Diag::error(e.span, "a string is not a number"));
        }
        if v.dtype() == DType::HANDLE || v.dtype().is_void() {
            return Err(Diag::error(e.span, format!("expected a number, found {}", v.dtype())));
        }
        Ok(v)
    }

    /// A scalar expression that is a bool.
    pub(super) fn condition(&mut self, e: &Expr) -> Lowered<PrimExpr> {
        let v = self.number(e)?;
        if v.dtype().is_bool() {
            return Ok(v);
        }
        Err(Diag::error(e.span, format!("a condition must be bool, not {}", v.dtype())).help("compare it, as `… != 0`"))
    }

    fn unary(&mut self, op: UnaryOp, a: &Expr, span: Span) -> Lowered<PrimExpr> {
        if op == UnaryOp::Not {
            return Ok(self.condition(a)?.logical_not());
        }
        if let (UnaryOp::Neg, ExprKind::Int(v)) = (op, &a.kind) {
            return self.int(self.literal, -*v, span).or_else(|_| self.int(DType::I64, -*v, span));
        }
        let v = self.number(a)?;
        match op {
            UnaryOp::Neg => match v.kind() {
                PrimKind::Float(x) => Ok(PrimExpr::float(v.dtype(), -x)),
                _ => {
                    let minus_one = PrimExpr::number(v.dtype(), -1.0);
                    Ok(PrimExpr::binary(BinOp::Mul, v, minus_one))
                }
            },
            UnaryOp::Invert if v.dtype().is_float() => {
                Err(Diag::error(span, format!("`~` needs an integer, not {}", v.dtype())))
            }
            UnaryOp::Invert => Ok(PrimExpr::call(crate::prim::Intrinsic::BitNot, vec![v])),
            UnaryOp::Pos | UnaryOp::Not => Ok(v),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr, span: Span) -> Lowered<PrimExpr> {
        match op {
            BinaryOp::And => return Ok(self.condition(a)?.and(self.condition(b)?)),
            BinaryOp::Or => return Ok(self.condition(a)?.or(self.condition(b)?)),
            _ => {}
        }
        let (x, y) = (self.number(a)?, self.number(b)?);
        let op = match op {
            BinaryOp::Prim(op) => op,
            BinaryOp::TrueDiv if x.dtype().is_float() || y.dtype().is_float() => BinOp::Div,
            BinaryOp::TrueDiv => {
                return Err(Diag::error(span, format!("`/` of {} is not exact", x.dtype()))
                    .help("write `//` (rounds down) or T.truncdiv (rounds toward zero)"));
            }
            BinaryOp::Pow => return Ok(PrimExpr::call(crate::prim::Intrinsic::Pow, vec![x, y])),
            BinaryOp::MatMul | BinaryOp::And | BinaryOp::Or => {
                return Err(Diag::error(span, "`@` multiplies tensors, not scalars"));
            }
        };
        self.checked_binary(op, x, y, span)
    }

    /// An operator over operands whose lanes and families fit.
    pub(super) fn checked_binary(&self, op: BinOp, x: PrimExpr, y: PrimExpr, span: Span) -> Lowered<PrimExpr> {
        let (dx, dy) = (x.dtype(), y.dtype());
        if dx.lanes != dy.lanes && dx.lanes != 1 && dy.lanes != 1 {
            return Err(Diag::error(span, format!("operands have {} and {} lanes", dx.lanes, dy.lanes)));
        }
        let bits = matches!(op, BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Shl | BinOp::Shr);
        if bits && (dx.is_float() || dy.is_float()) {
            return Err(Diag::error(span, format!("bit operators need integers, not {dx} and {dy}")));
        }
        let division = matches!(op, BinOp::FloorDiv | BinOp::FloorMod | BinOp::Div | BinOp::Mod);
        if division && !dx.is_float() && y.is_int(0) {
            return Err(Diag::error(span, "integer division by zero"));
        }
        Ok(PrimExpr::binary(op, x, y))
    }

    fn load(&mut self, base: &Expr, items: &[Expr], span: Span) -> Lowered<PrimExpr> {
        let buffer = self.buffer(base)?;
        let indices = self.indices(&buffer, items, span)?;
        Ok(PrimExpr::load(&buffer, indices))
    }

    /// The buffer of a name.
    pub(super) fn buffer(&mut self, e: &Expr) -> Lowered<Buffer> {
        let Some(name) = e.name() else {
            let d = Diag::error(e.span, "expected the name of a buffer");
            return Err(match &e.kind {
                ExprKind::Index(base, items) if items.len() == 1 && base.name().is_some() => {
                    d.help("all indices stand in one pair of brackets, as `a[i, j]`")
                }
                _ => d,
            });
        };
        match self.resolve(name, e.span)? {
            Entity::Buffer(b) => Ok(b),
            Entity::Handle(_) => Err(Diag::error(e.span, format!("`{name}` is a handle, not a buffer"))
                .help(format!("name its buffer first: `A = T.match_buffer({name}, shape, dtype)`"))),
            _ => Err(Diag::error(e.span, format!("`{name}` is not a buffer"))),
        }
    }

    fn check_rank(buffer: &Buffer, items: &[Expr], span: Span) -> Lowered<()> {
        if items.len() == buffer.shape.len() {
            return Ok(());
        }
        let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        let (dims, indices) = (buffer.shape.len(), items.len());
        let d = format!(
            "buffer `{}` has {} but {}",
            buffer.name,
            count(dims, "dimension", "dimensions"),
            count(indices, "index is given", "indices are given")
        );
        let names = ["i", "j", "k", "l", "m", "n"];
        let d = Diag::error(span, d).label(buffer.span, "the buffer is declared here");
        Err(match names.get(..dims) {
            Some([]) => d.help(format!("its one element is `{}[()]`", buffer.name)),
            Some(names) => d.help(format!("write `{}[{}]`", buffer.name, names.join(", "))),
            None => d,
        })
    }

    fn index(&mut self, e: &Expr) -> Lowered<PrimExpr> {
        let v = self.number(e)?;
        if !v.dtype().is_integer() {
            return Err(Diag::error(e.span, format!("an index must be an integer, not {}", v.dtype())));
        }
        Ok(v)
    }

    /// Indices of a load or store; a slice of a fixed length becomes a ramp.
    pub(super) fn indices(&mut self, buffer: &Buffer, items: &[Expr], span: Span) -> Lowered<Vec<PrimExpr>> {
        Self::check_rank(buffer, items, span)?;
        let mut out = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let ExprKind::Slice(start, stop, step) = &item.kind else {
                out.push(self.index(item)?);
                continue;
            };
            let (Some(start), Some(stop)) = (start, stop) else {
                return Err(Diag::error(item.span, "a slice here needs a start and a stop"));
            };
            let (start, stop) = (self.index(start)?, self.index(stop)?);
            let step = step.as_ref().map_or(Ok(PrimExpr::int(start.dtype(), 1)), |s| self.index(s))?;
            let extent = extent_of(self, &start, &stop);
            let lanes = match (extent.as_int(), step.as_int()) {
                (Some(n), Some(s)) if s > 0 => u16::try_from(n.max(0).div_euclid(s) + i64::from(n % s != 0)).ok(),
                _ => None,
            };
            match lanes {
                Some(0) | None => {
                    return Err(Diag::error(item.span, "the length of a slice must be a constant of at least 1"));
                }
                Some(1) => out.push(start),
                Some(lanes) if i + 1 == items.len() => {
                    let step = step.cast(start.dtype());
                    out.push(PrimExpr::ramp(start, step, lanes));
                }
                Some(_) => return Err(Diag::error(item.span, "only the last index can be a slice")),
            }
        }
        Ok(out)
    }

    /// The ranges of a region written as indices and slices.
    pub(super) fn region(&mut self, e: &Expr) -> Lowered<(Buffer, Vec<Range>)> {
        let ExprKind::Index(base, items) = &e.kind else {
            let buffer = self.buffer(e)?;
            let ranges = buffer.shape.iter().map(|d| Range::to(d.clone())).collect();
            return Ok((buffer, ranges));
        };
        let buffer = self.buffer(base)?;
        Self::check_rank(&buffer, items, e.span)?;
        let mut ranges = Vec::new();
        for (item, dim) in items.iter().zip(&buffer.shape) {
            let ExprKind::Slice(start, stop, step) = &item.kind else {
                ranges.push(Range::point(self.index(item)?));
                continue;
            };
            if let Some(step) = step {
                return Err(Diag::error(step.span, "a region has no step"));
            }
            let start = start.as_ref().map_or(Ok(PrimExpr::int(dim.dtype(), 0)), |s| self.index(s))?;
            let stop = stop.as_ref().map_or(Ok(dim.clone()), |s| self.index(s))?;
            let extent = extent_of(self, &start, &stop);
            ranges.push(Range { min: start, extent });
        }
        Ok((buffer, ranges))
    }

    /// A data type written as a string or as `T.float32`.
    pub(super) fn dtype(&mut self, e: &Expr) -> Lowered<DType> {
        let (text, what) = match &e.kind {
            ExprKind::Str(s) => (s.to_string(), s.to_string()),
            ExprKind::None => return Ok(DType::VOID),
            _ => match e.path().and_then(|p| p.strip_prefix("T.").map(str::to_string)) {
                Some(p) => (p.clone(), format!("T.{p}")),
                None => return Err(Diag::error(e.span, "expected a data type, as \"float32\"")),
            },
        };
        text.parse().map_err(|_| {
            let known = ["float32", "float16", "float64", "int8", "int32", "int64", "uint8", "bool", "bfloat16"];
            super::scope::suggest(Diag::error(e.span, format!("unknown data type `{what}`")), &text, known.into_iter())
        })
    }

    /// The text of a string argument.
    pub(super) fn string(&self, e: &Expr) -> Lowered<Name> {
        e.str().cloned().ok_or_else(|| Diag::error(e.span, "expected a string"))
    }
}

impl PrimExpr {
    /// A literal of an integer or bool type from its bits, or of a float type from an integer's value.
    fn number_of(dtype: DType, v: i64) -> PrimExpr {
        if dtype.is_float() { PrimExpr::number(dtype, v as f64) } else { PrimExpr::int(dtype, v) }
    }
}
