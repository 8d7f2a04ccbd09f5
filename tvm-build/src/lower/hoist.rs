//! Integers that only scalar arguments make, as sizes and strides of buffers with symbolic extents: computed once, at the
//! start of the kernel.
//!
//! A symbolic size such as `(n - 1) // 4 + 1` stands in every index into a buffer. Compilers find that it does not
//! change, but each of its divisions is several basic blocks to them, and what they do takes more than linear time.

use super::names::{Identifiers, Role};
use tvm_ir::lowered::{Expr, ExprKind, Local, Stmt};
use tvm_ir::prim::BinOp;

/// Moves every largest integer expression over `scalars` that contains a division to a variable declared before the
/// body. Equal expressions are one variable. No division traps: a zero divisor gives 0 by definition.
pub(super) fn hoist_scalar_arithmetic(body: Vec<Stmt>, scalars: &[Local], ids: &mut Identifiers) -> Vec<Stmt> {
    if scalars.is_empty() {
        return body;
    }
    let mut h = Hoist { scalars, ids, known: Vec::new() };
    let body: Vec<Stmt> = body.into_iter().map(|s| h.stmt(s)).collect();
    let lets = h.known.into_iter().map(|(value, var)| Stmt::Let { var, value });
    lets.chain(body).collect()
}

/// What an expression depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Scalar arguments and constants, by sums and products.
    Cheap,
    /// The same, with divisions.
    Costly,
    /// Anything else.
    Varying,
}

struct Hoist<'a> {
    scalars: &'a [Local],
    ids: &'a mut Identifiers,
    /// Values in an order in which each needs only earlier ones, with their variables.
    known: Vec<(Expr, Local)>,
}

impl Hoist<'_> {
    fn stmts(&mut self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        stmts.into_iter().map(|s| self.stmt(s)).collect()
    }

    fn stmt(&mut self, s: Stmt) -> Stmt {
        match s {
            Stmt::For { var, dtype, min, extent, kind, body } => {
                let (min, extent) = (self.whole(min), self.whole(extent));
                Stmt::For { var, dtype, min, extent, kind, body: self.stmts(body) }
            }
            Stmt::If { cond, then, otherwise } => {
                let cond = self.whole(cond);
                Stmt::If { cond, then: self.stmts(then), otherwise: self.stmts(otherwise) }
            }
            Stmt::While { cond, body } => Stmt::While { cond: self.whole(cond), body: self.stmts(body) },
            Stmt::Let { var, value } => Stmt::Let { var, value: self.whole(value) },
            Stmt::Store { pointer, index, value, aligned } => {
                let (index, value) = (self.whole(index), self.whole(value));
                Stmt::Store { pointer, index, value, aligned }
            }
            Stmt::Assert { cond, code } => Stmt::Assert { cond: self.whole(cond), code },
            Stmt::Evaluate(e) => Stmt::Evaluate(self.whole(e)),
            other @ (Stmt::Array { .. } | Stmt::Workspace { .. } | Stmt::Barrier(_) | Stmt::Comment(_)) => other,
        }
    }

    /// An expression that is part of no larger one.
    fn whole(&mut self, e: Expr) -> Expr {
        let (e, kind) = self.expr(e);
        self.settle(e, kind)
    }

    /// A largest expression of its kind: the variable it becomes, or itself.
    fn settle(&mut self, e: Expr, kind: Kind) -> Expr {
        if kind == Kind::Costly && !matches!(e.kind, ExprKind::Var(_)) { self.variable(e) } else { e }
    }

    fn variable(&mut self, value: Expr) -> Expr {
        let dtype = value.dtype;
        let var = match self.known.iter().find(|(known, _)| *known == value) {
            Some((_, var)) => var.clone(),
            None => {
                let var = Local(self.ids.fresh(Role::Variable, "size"));
                self.known.push((value, var.clone()));
                var
            }
        };
        Expr { dtype, kind: ExprKind::Var(var) }
    }

    fn expr(&mut self, e: Expr) -> (Expr, Kind) {
        let dtype = e.dtype;
        let scalar = dtype.lanes == 1 && dtype.is_integer() && !dtype.is_bool();
        let kind = match e.kind {
            ExprKind::Int(v) if scalar => return (Expr { dtype, kind: ExprKind::Int(v) }, Kind::Cheap),
            ExprKind::Var(v) => {
                let kind = if scalar && self.scalars.contains(&v) { Kind::Cheap } else { Kind::Varying };
                return (Expr { dtype, kind: ExprKind::Var(v) }, kind);
            }
            ExprKind::Binary(op, a, b) => {
                let ((a, x), (b, y)) = (self.expr(*a), self.expr(*b));
                if scalar && x != Kind::Varying && y != Kind::Varying {
                    let e = Expr { dtype, kind: ExprKind::Binary(op, Box::new(a), Box::new(b)) };
                    return match op {
                        BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod => (self.variable(e), Kind::Costly),
                        _ if x == Kind::Costly || y == Kind::Costly => (e, Kind::Costly),
                        _ => (e, Kind::Cheap),
                    };
                }
                ExprKind::Binary(op, Box::new(self.settle(a, x)), Box::new(self.settle(b, y)))
            }
            ExprKind::Cast(a) => {
                let (a, x) = self.expr(*a);
                if scalar && x != Kind::Varying {
                    return (Expr { dtype, kind: ExprKind::Cast(Box::new(a)) }, x);
                }
                ExprKind::Cast(Box::new(self.settle(a, x)))
            }
            ExprKind::Cmp(op, a, b) => ExprKind::Cmp(op, self.boxed(*a), self.boxed(*b)),
            ExprKind::And(a, b) => ExprKind::And(self.boxed(*a), self.boxed(*b)),
            ExprKind::Or(a, b) => ExprKind::Or(self.boxed(*a), self.boxed(*b)),
            ExprKind::Not(a) => ExprKind::Not(self.boxed(*a)),
            ExprKind::Select(c, a, b) => ExprKind::Select(self.boxed(*c), self.boxed(*a), self.boxed(*b)),
            ExprKind::Reinterpret(a) => ExprKind::Reinterpret(self.boxed(*a)),
            ExprKind::Load { pointer, index, aligned } => {
                ExprKind::Load { pointer, index: self.boxed(*index), aligned }
            }
            ExprKind::Gather { pointer, index } => ExprKind::Gather { pointer, index: self.boxed(*index) },
            ExprKind::Broadcast(a) => ExprKind::Broadcast(self.boxed(*a)),
            ExprKind::Ramp(a, b) => ExprKind::Ramp(self.boxed(*a), self.boxed(*b)),
            ExprKind::Call(f, args) => ExprKind::Call(f, args.into_iter().map(|a| self.whole(a)).collect()),
            ExprKind::CallExtern(f, args) => ExprKind::CallExtern(f, args.into_iter().map(|a| self.whole(a)).collect()),
            other @ (ExprKind::Int(_) | ExprKind::Float(_)) => other,
        };
        (Expr { dtype, kind }, Kind::Varying)
    }

    fn boxed(&mut self, e: Expr) -> Box<Expr> {
        Box::new(self.whole(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tvm_ir::dtype::DType;

    fn e(kind: ExprKind) -> Expr {
        Expr { dtype: DType::I64, kind }
    }

    fn var(name: &str) -> Expr {
        e(ExprKind::Var(Local(name.into())))
    }

    fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
        e(ExprKind::Binary(op, Box::new(a), Box::new(b)))
    }

    fn int(v: i64) -> Expr {
        e(ExprKind::Int(v))
    }

    /// `p[i * ((n - 1) // 4 + 1) + (n - 1) // 4] = 0`
    #[test]
    fn sizes_are_computed_once() {
        let quotient = binary(BinOp::FloorDiv, binary(BinOp::Sub, var("n_n"), int(1)), int(4));
        let row = binary(BinOp::Add, quotient.clone(), int(1));
        let index = binary(BinOp::Add, binary(BinOp::Mul, var("v_i"), row), quotient.clone());
        let store = |index| Stmt::Store { pointer: Local("p_b".into()), index, value: int(0), aligned: false };
        let body = hoist_scalar_arithmetic(vec![store(index)], &[Local("n_n".into())], &mut Identifiers::new());
        let (first, second) = (var("v_size"), var("v_size_1"));
        let expected = [
            Stmt::Let { var: Local("v_size".into()), value: quotient },
            Stmt::Let { var: Local("v_size_1".into()), value: binary(BinOp::Add, first.clone(), int(1)) },
            store(binary(BinOp::Add, binary(BinOp::Mul, var("v_i"), second), first)),
        ];
        assert_eq!(body, expected);
    }

    /// What a loop changes stays in the loop, and so do sums and products.
    #[test]
    fn the_rest_stays() {
        let divided = binary(BinOp::FloorDiv, var("v_i"), var("n_n"));
        let sum = binary(BinOp::Add, var("n_n"), int(1));
        let body = vec![Stmt::Evaluate(divided), Stmt::Evaluate(sum)];
        assert_eq!(hoist_scalar_arithmetic(body.clone(), &[Local("n_n".into())], &mut Identifiers::new()), body);
    }
}
