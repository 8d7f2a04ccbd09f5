//! Statements and expressions with one variable replaced by a vector of its values.

use std::collections::BTreeMap;
use tvm_ir::arith::Analyzer;
use tvm_ir::prim::{BinOp, Intrinsic, PrimExpr, PrimKind, Var, free_vars, visit};
use tvm_ir::tir::{LetStmt, Stmt};

/// The replacement; errors are reasons why there is no vector form.
pub(super) struct Lanes<'a> {
    lanes: u16,
    analyzer: &'a Analyzer,
    /// Vector values: of the loop variable and of let variables that depend on it.
    values: BTreeMap<Var, PrimExpr>,
}

impl<'a> Lanes<'a> {
    /// `var` takes the values `base, base + 1, …` in the lanes.
    pub(super) fn new(var: &Var, base: PrimExpr, lanes: u16, analyzer: &'a Analyzer) -> Lanes<'a> {
        let one = PrimExpr::int(var.dtype(), 1);
        Lanes { lanes, analyzer, values: BTreeMap::from([(var.clone(), PrimExpr::ramp(base, one, lanes))]) }
    }

    /// The statement for all lanes at once.
    pub(super) fn stmt(&mut self, s: Stmt) -> Result<Stmt, String> {
        Ok(match s {
            Stmt::Seq(stmts) => Stmt::seq(stmts.into_iter().map(|s| self.stmt(s)).collect::<Result<Vec<_>, _>>()?),
            Stmt::Store(mut s) => {
                let [index] = s.indices.as_slice() else { return Err(format!("buffer {} is not flat", s.buffer.name)) };
                let index = self.expr(index)?;
                match index.kind() {
                    PrimKind::Ramp(_, stride) if self.analyzer.simplify(stride).is_int(1) => {}
                    _ if index.dtype().lanes == 1 => {
                        return Err(format!("every iteration writes the same element of {}", s.buffer.name));
                    }
                    _ => return Err(format!("the elements of {} that are written are not consecutive", s.buffer.name)),
                }
                let element = s.buffer.dtype;
                if element.is_float() && element.bits < 32 {
                    return Err(format!("vectors of {element} are not supported"));
                }
                s.value = self.vector(&s.value)?;
                s.indices = vec![index];
                Stmt::Store(s)
            }
            Stmt::Let(l) => {
                let value = self.expr(&l.value)?;
                if value.dtype().lanes == 1 {
                    return Ok(Stmt::Let(Box::new(LetStmt { body: self.stmt(l.body)?, ..*l })));
                }
                let var = Var::at(l.var.name(), value.dtype(), l.var.span());
                self.values.insert(l.var, var.expr());
                Stmt::Let(Box::new(LetStmt { var, value, body: self.stmt(l.body)? }))
            }
            Stmt::If(mut i) => {
                self.scalar(&i.cond, "a condition")?;
                i.then = self.stmt(i.then)?;
                i.otherwise = i.otherwise.map(|s| self.stmt(s)).transpose()?;
                Stmt::If(i)
            }
            Stmt::For(mut l) => {
                self.scalar(&l.min, "the start of an inner loop")?;
                self.scalar(&l.extent, "the extent of an inner loop")?;
                l.body = self.stmt(l.body)?;
                Stmt::For(l)
            }
            Stmt::Block(b) => return Err(format!("block {} is inside", b.name)),
            Stmt::While(_) => return Err("a while loop is inside".into()),
            Stmt::Assert(_) | Stmt::Evaluate(_) => return Err("a statement with an effect of its own is inside".into()),
        })
    }

    fn depends(&self, e: &PrimExpr) -> bool {
        free_vars(e).iter().any(|v| self.values.contains_key(v))
    }

    fn scalar(&self, e: &PrimExpr, what: &str) -> Result<(), String> {
        if self.depends(e) { Err(format!("{what} depends on the loop variable")) } else { Ok(()) }
    }

    /// The expression as a vector.
    fn vector(&mut self, e: &PrimExpr) -> Result<PrimExpr, String> {
        let v = self.expr(e)?;
        Ok(if v.dtype().lanes == 1 { v.broadcast(self.lanes) } else { v })
    }

    /// The expression: a scalar when it is the same in all lanes, else a vector.
    fn expr(&mut self, e: &PrimExpr) -> Result<PrimExpr, String> {
        if e.dtype().lanes > 1 {
            return Err("there are vectors inside".into());
        }
        if !self.depends(e) {
            return Ok(e.clone());
        }
        if e.dtype().is_float() && e.dtype().bits < 32 {
            return Err(format!("vectors of {} are not supported", e.dtype()));
        }
        let vector_type = e.dtype().with_lanes(self.lanes);
        Ok(match e.kind() {
            PrimKind::Var(v) => self.values.get(v).cloned().unwrap_or_else(|| e.clone()),
            PrimKind::Binary(op, a, b) => {
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                self.binary(*op, x, y)?
            }
            PrimKind::Cmp(op, a, b) => PrimExpr::cmp(*op, self.vector(a)?, self.vector(b)?),
            PrimKind::And(a, b) => {
                speculate(b)?;
                PrimExpr::new(PrimKind::And(self.vector(a)?, self.vector(b)?), vector_type)
            }
            PrimKind::Or(a, b) => {
                speculate(b)?;
                PrimExpr::new(PrimKind::Or(self.vector(a)?, self.vector(b)?), vector_type)
            }
            PrimKind::Not(a) => PrimExpr::new(PrimKind::Not(self.vector(a)?), vector_type),
            PrimKind::Select(c, a, b) => {
                PrimExpr::new(PrimKind::Select(self.vector(c)?, self.vector(a)?, self.vector(b)?), vector_type)
            }
            PrimKind::Cast(a) => PrimExpr::new(PrimKind::Cast(self.vector(a)?), vector_type),
            PrimKind::Load(b, indices) => {
                let [index] = indices.as_slice() else { return Err(format!("buffer {} is not flat", b.name)) };
                PrimExpr::load(b, vec![self.expr(index)?])
            }
            PrimKind::Let(v, value, body) => {
                let value = self.expr(value)?;
                let var = Var::at(v.name(), value.dtype(), v.span());
                self.values.insert(v.clone(), var.expr());
                let body = self.vector(body)?;
                PrimExpr::new(PrimKind::Let(var, value, body), vector_type)
            }
            PrimKind::Call(Intrinsic::IfThenElse, args) => {
                let [c, a, b] = args.as_slice() else { return Err("a malformed if_then_else is inside".into()) };
                if self.depends(c) {
                    speculate(a)?;
                    speculate(b)?;
                    PrimExpr::new(PrimKind::Select(self.vector(c)?, self.vector(a)?, self.vector(b)?), vector_type)
                } else {
                    let args = vec![c.clone(), self.vector(a)?, self.vector(b)?];
                    PrimExpr::new(PrimKind::Call(Intrinsic::IfThenElse, args), vector_type)
                }
            }
            PrimKind::Call(Intrinsic::StorageSync, _) => return Err("a barrier is inside".into()),
            PrimKind::Call(f, args) => {
                let args = args.iter().map(|a| self.vector(a)).collect::<Result<Vec<_>, _>>()?;
                PrimExpr::new(PrimKind::Call(*f, args), vector_type)
            }
            PrimKind::CallExtern(name, _) => return Err(format!("the C function {name} is called")),
            _ => return Err("there are vectors inside".into()),
        })
    }

    fn binary(&mut self, op: BinOp, x: PrimExpr, y: PrimExpr) -> Result<PrimExpr, String> {
        let lanes = self.lanes;
        if let Some(folded) = self.affine(op, &x, &y) {
            return Ok(folded);
        }
        let divides = matches!(op, BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod);
        if divides && !x.dtype().is_float() {
            return Err("the loop variable is divided".into());
        }
        let wide = |e: PrimExpr| if e.dtype().lanes == 1 { e.broadcast(lanes) } else { e };
        let (x, y) = (wide(x), wide(y));
        let dtype = x.dtype();
        Ok(PrimExpr::new(PrimKind::Binary(op, x, y), dtype))
    }

    /// The result as a ramp or a scalar, where it is one.
    fn affine(&self, op: BinOp, x: &PrimExpr, y: &PrimExpr) -> Option<PrimExpr> {
        if !x.dtype().is_integer() {
            return None;
        }
        let parts = |e: &PrimExpr| match e.kind() {
            PrimKind::Ramp(b, s) => Some((b.clone(), s.clone())),
            _ if e.dtype().lanes == 1 => Some((e.clone(), PrimExpr::int(e.dtype(), 0))),
            _ => None,
        };
        let ((xb, xs), (yb, ys)) = (parts(x)?, parts(y)?);
        let ramp = |base: PrimExpr, stride: PrimExpr| {
            let stride = self.analyzer.simplify(&stride);
            if stride.is_int(0) { base } else { PrimExpr::ramp(base, stride, self.lanes) }
        };
        match op {
            BinOp::Add => Some(ramp(xb + yb, xs + ys)),
            BinOp::Sub => Some(ramp(xb - yb, xs - ys)),
            BinOp::Mul if ys.is_int(0) => Some(ramp(xb * &yb, xs * yb)),
            BinOp::Mul if xs.is_int(0) => Some(ramp(&xb * &yb, ys * xb)),
            BinOp::FloorDiv | BinOp::FloorMod => {
                let (c, s) = (yb.as_int().filter(|c| *c > 0 && ys.is_int(0))?, xs.as_int()?);
                let zero = PrimExpr::int(xb.dtype(), 0);
                let rest = xb.clone().floormod(yb.clone());
                if s % c == 0 {
                    return Some(match op {
                        BinOp::FloorDiv => ramp(xb.floordiv(yb), PrimExpr::int(zero.dtype(), s / c)),
                        _ => rest,
                    });
                }
                // No lane reaches the next multiple.
                let reach = s.checked_mul(i64::from(self.lanes) - 1)?;
                let stays = s > 0 && self.analyzer.prove(&(&rest + PrimExpr::int(zero.dtype(), reach)).lt(&yb));
                stays.then(|| match op {
                    BinOp::FloorDiv => xb.floordiv(yb),
                    _ => ramp(rest, xs),
                })
            }
            _ => None,
        }
    }
}

/// Errs when an expression may not be evaluated where the program does not ask for it.
fn speculate(e: &PrimExpr) -> Result<(), String> {
    let mut unsafe_part = None;
    visit(e, &mut |e| {
        let what = match e.kind() {
            PrimKind::Load(b, _) => format!("{} is read under a condition that depends on the loop variable", b.name),
            PrimKind::Binary(BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod, _, d)
                if !d.dtype().is_float() && d.as_int().is_none_or(|d| d == 0) =>
            {
                "a division stands under a condition that depends on the loop variable".into()
            }
            _ => return,
        };
        unsafe_part.get_or_insert(what);
    });
    unsafe_part.map_or(Ok(()), Err)
}
