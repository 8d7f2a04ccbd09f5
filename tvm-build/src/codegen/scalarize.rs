//! Lowered kernels without vectors: every vector statement becomes a loop over lanes.
//!
//! For targets without vector registers, languages without vector types, and lanes that are no power of two.

use std::collections::BTreeMap;
use tvm_ir::dtype::DType;
use tvm_ir::lowered::{Expr, ExprKind, Kernel, Local, LoopKind, Param, Space, Stmt};
use tvm_ir::name::NameSupply;
use tvm_ir::prim::BinOp;

use super::visit::{Uses, each};

/// The kernel with scalar operations only; same results lane by lane.
pub(crate) fn scalarize(kernel: &Kernel) -> Kernel {
    let mut names = NameSupply::new();
    let uses = Uses::of(&kernel.body);
    for v in uses.named.iter().chain(&uses.declared) {
        names.reserve(v.0.clone());
    }
    let mut aliased = false;
    for p in &kernel.params {
        match p {
            Param::Pointer { var, noalias, .. } => {
                names.reserve(var.0.clone());
                aliased |= !noalias;
            }
            Param::Scalar { var, .. } => {
                names.reserve(var.0.clone());
            }
        }
    }
    let mut pass = Scalarizer { names, vectors: BTreeMap::new(), aliased };
    Kernel { body: pass.stmts(&kernel.body), ..kernel.clone() }
}

struct Scalarizer {
    names: NameSupply,
    /// Variables and arrays that held vectors, with their lanes: arrays of scalars now.
    vectors: BTreeMap<Local, u16>,
    /// Whether some pointers may reach the same memory.
    aliased: bool,
}

impl Scalarizer {
    fn stmts(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        let mut out = Vec::new();
        for s in stmts {
            self.stmt(s, &mut out);
        }
        out
    }

    fn stmt(&mut self, s: &Stmt, out: &mut Vec<Stmt>) {
        match s {
            Stmt::For { var, dtype, min, extent, kind, body } => out.push(Stmt::For {
                var: var.clone(),
                dtype: *dtype,
                min: self.scalar(min),
                extent: self.scalar(extent),
                kind: kind.clone(),
                body: self.stmts(body),
            }),
            Stmt::If { cond, then, otherwise } => {
                let cond = self.scalar(cond);
                out.push(Stmt::If { cond, then: self.stmts(then), otherwise: self.stmts(otherwise) });
            }
            Stmt::While { cond, body } => {
                let cond = self.scalar(cond);
                out.push(Stmt::While { cond, body: self.stmts(body) });
            }
            Stmt::Let { var, value } if value.dtype.lanes > 1 => {
                out.push(self.array(var, value.dtype, 1));
                out.push(self.each_lane(var, &index(0), value));
            }
            Stmt::Let { var, value } => out.push(Stmt::Let { var: var.clone(), value: self.scalar(value) }),
            Stmt::Array { var, dtype, len, space } if dtype.lanes > 1 => {
                let Stmt::Array { var, dtype, len, .. } = self.array(var, *dtype, *len) else { return };
                out.push(Stmt::Array { var, dtype, len, space: *space });
            }
            Stmt::Store { pointer, index: at, value, .. } if value.dtype.lanes > 1 => {
                let lanes = value.dtype.lanes;
                let mut base = self.scalar(at);
                if self.vectors.contains_key(pointer) {
                    base = times(base, lanes);
                }
                // All lanes of the value are computed before the first is stored.
                let mut overlaps = false;
                each(value, &mut |e| {
                    if let ExprKind::Load { pointer: p, .. } | ExprKind::Gather { pointer: p, .. } = &e.kind {
                        overlaps |= p == pointer || self.aliased;
                    }
                });
                if overlaps {
                    let copy = Local(self.names.fresh("lanes"));
                    out.push(self.array(&copy, value.dtype, 1));
                    out.push(self.each_lane(&copy, &index(0), value));
                    let read = Expr { dtype: value.dtype, kind: ExprKind::Var(copy) };
                    out.push(self.each_lane(pointer, &base, &read));
                } else {
                    out.push(self.each_lane(pointer, &base, value));
                }
            }
            Stmt::Store { pointer, index, value, .. } => out.push(Stmt::Store {
                pointer: pointer.clone(),
                index: self.scalar(index),
                value: self.scalar(value),
                aligned: true,
            }),
            Stmt::Assert { cond, code } => out.push(Stmt::Assert { cond: self.scalar(cond), code: *code }),
            Stmt::Evaluate(e) if e.dtype.lanes <= 1 => out.push(Stmt::Evaluate(self.scalar(e))),
            Stmt::Evaluate(e) => {
                for i in 0..e.dtype.lanes {
                    out.push(Stmt::Evaluate(self.lane(e, &index(i64::from(i)))));
                }
            }
            other => out.push(other.clone()),
        }
    }

    /// `len` vectors as one array of scalars.
    fn array(&mut self, var: &Local, dtype: DType, len: u64) -> Stmt {
        self.vectors.insert(var.clone(), dtype.lanes);
        let len = len.saturating_mul(u64::from(dtype.lanes));
        Stmt::Array { var: var.clone(), dtype: dtype.scalar(), len, space: Space::Local }
    }

    /// `for lane: pointer[base + lane] = value's lane`
    fn each_lane(&mut self, pointer: &Local, base: &Expr, value: &Expr) -> Stmt {
        let var = Local(self.names.fresh("lane"));
        let lane = Expr { dtype: DType::I64, kind: ExprKind::Var(var.clone()) };
        let store = Stmt::Store {
            pointer: pointer.clone(),
            index: plus(base.clone(), &lane),
            value: self.lane(value, &lane),
            aligned: true,
        };
        Stmt::For {
            var,
            dtype: DType::I64,
            min: index(0),
            extent: index(i64::from(value.dtype.lanes)),
            kind: LoopKind::Serial,
            body: vec![store],
        }
    }

    /// A scalar expression, which may hold vectors inside only as operands of nothing.
    fn scalar(&mut self, e: &Expr) -> Expr {
        self.lane(e, &index(0))
    }

    /// Lane `at` of an expression (the expression itself when it is a scalar).
    fn lane(&mut self, e: &Expr, at: &Expr) -> Expr {
        let vector = e.dtype.lanes > 1;
        let go = |s: &mut Self, x: &Expr| Box::new(s.lane(x, at));
        let kind = match &e.kind {
            ExprKind::Var(v) if vector => {
                ExprKind::Load { pointer: v.clone(), index: Box::new(at.clone()), aligned: true }
            }
            ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_) => e.kind.clone(),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, go(self, a), go(self, b)),
            ExprKind::Cmp(op, a, b) => ExprKind::Cmp(*op, go(self, a), go(self, b)),
            ExprKind::And(a, b) => ExprKind::And(go(self, a), go(self, b)),
            ExprKind::Or(a, b) => ExprKind::Or(go(self, a), go(self, b)),
            ExprKind::Not(a) => ExprKind::Not(go(self, a)),
            ExprKind::Select(c, a, b) => ExprKind::Select(go(self, c), go(self, a), go(self, b)),
            ExprKind::Cast(a) => ExprKind::Cast(go(self, a)),
            ExprKind::Reinterpret(a) => ExprKind::Reinterpret(go(self, a)),
            ExprKind::Load { pointer, index: i, .. } => {
                let mut i = self.scalar(i);
                if let Some(lanes) = self.vectors.get(pointer) {
                    i = times(i, *lanes);
                }
                if vector {
                    i = plus(i, at);
                }
                ExprKind::Load { pointer: pointer.clone(), index: Box::new(i), aligned: true }
            }
            ExprKind::Gather { pointer, index } => {
                ExprKind::Load { pointer: pointer.clone(), index: go(self, index), aligned: true }
            }
            ExprKind::Broadcast(x) => return self.scalar(x),
            ExprKind::Ramp(base, stride) => {
                let (b, s) = (self.scalar(base), self.scalar(stride));
                let by = Expr { dtype: s.dtype, kind: ExprKind::Cast(Box::new(at.clone())) };
                let by = if s.dtype == at.dtype { at.clone() } else { by };
                let step = Expr { dtype: s.dtype, kind: ExprKind::Binary(BinOp::Mul, Box::new(s), Box::new(by)) };
                ExprKind::Binary(BinOp::Add, Box::new(b), Box::new(step))
            }
            ExprKind::Call(f, args) => ExprKind::Call(*f, args.iter().map(|a| self.lane(a, at)).collect()),
            ExprKind::CallExtern(f, args) => {
                ExprKind::CallExtern(f.clone(), args.iter().map(|a| self.lane(a, at)).collect())
            }
        };
        Expr { dtype: e.dtype.scalar(), kind }
    }
}

fn index(v: i64) -> Expr {
    Expr { dtype: DType::I64, kind: ExprKind::Int(v) }
}

fn as_index(e: Expr) -> Expr {
    if e.dtype == DType::I64 { e } else { Expr { dtype: DType::I64, kind: ExprKind::Cast(Box::new(e)) } }
}

fn plus(a: Expr, b: &Expr) -> Expr {
    if matches!(a.kind, ExprKind::Int(0)) {
        return b.clone();
    }
    Expr { dtype: DType::I64, kind: ExprKind::Binary(BinOp::Add, Box::new(as_index(a)), Box::new(b.clone())) }
}

fn times(a: Expr, lanes: u16) -> Expr {
    let lanes = index(i64::from(lanes));
    Expr { dtype: DType::I64, kind: ExprKind::Binary(BinOp::Mul, Box::new(as_index(a)), Box::new(lanes)) }
}
