//! Well-formedness of lowered [`Kernel`]s. Every violation is a diagnostic whose note names the rule; all are collected.
//!
//!  1. The kernel and its locals are named by C identifiers that are no keywords; each name is declared once.
//!  2. Locals are declared before their use, in a scope around it. Pointers and arrays are indexed, variables read.
//!  3. Pointer parameters come before scalars.
//!  4. Loop variables, minima and extents are integer scalars of one type.
//!  5. Conditions are bools: of one lane in statements, of the result's or one in selects.
//!  6. Operands have the types their operator wants, and its result follows from them.
//!  7. Loads and stores have the pointer's element type, in any number of lanes; indices are integer scalars (in a
//!     gather a vector of the result's lanes).
//!  8. Stores go through pointers declared written, arrays and workspace.
//!  9. Workspace offsets are multiples of 64 below the kernel's workspace; assertion codes have messages.
//! 10. An array has at least one element.
//! 11. Values of void exist as statements alone; barriers are statements, not calls.

use crate::diag::{Diag, Diags};
use crate::dtype::DType;
use crate::lowered::{Expr, ExprKind, Kernel, Local, Param, Stmt};
use crate::prim::{BinOp, Intrinsic, PrimExpr, ResultType};
use crate::span::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Checks every rule. Errors: all violations, in the order met.
pub fn verify_kernel(kernel: &Kernel) -> Result<(), Diags> {
    let mut v = Verifier { diags: Diags::new(), kernel, scope: BTreeMap::new(), declared: BTreeSet::new() };
    v.name(&kernel.name);
    let mut scalars = false;
    for p in &kernel.params {
        match p {
            Param::Pointer { var, dtype, written, .. } => {
                if scalars {
                    v.report(3, format!("pointer `{var}` comes after a scalar parameter"));
                }
                v.declare(var, Kind::Pointer { dtype: *dtype, writable: *written });
            }
            Param::Scalar { var, dtype } => {
                scalars = true;
                v.declare(var, Kind::Value(*dtype));
            }
        }
    }
    v.block(&kernel.body);
    v.diags.into_result(())
}

#[derive(Clone, Copy)]
enum Kind {
    Value(DType),
    Pointer { dtype: DType, writable: bool },
}

struct Verifier<'a> {
    diags: Diags,
    kernel: &'a Kernel,
    scope: BTreeMap<Local, Kind>,
    declared: BTreeSet<Local>,
}

const KEYWORDS: &str = " auto break case char const continue default do double else enum extern float for goto if inline \
                        int long register restrict return short signed sizeof static struct switch typedef union \
                        unsigned void volatile while _Bool _Complex _Imaginary ";

impl Verifier<'_> {
    fn report(&mut self, rule: u32, message: String) {
        let diag = Diag::error(Span::NONE, format!("kernel `{}`: {message}", self.kernel.name));
        self.diags.push(diag.note(format!("rule {rule} of well-formed kernels")));
    }

    fn name(&mut self, name: &str) {
        let mut chars = name.chars();
        let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !starts || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.report(1, format!("`{name}` is no C identifier"));
        } else if KEYWORDS.contains(&format!(" {name} ")) {
            self.report(1, format!("`{name}` is a C keyword"));
        }
    }

    fn declare(&mut self, var: &Local, kind: Kind) {
        self.name(&var.0);
        if !self.declared.insert(var.clone()) {
            self.report(1, format!("`{var}` is declared twice"));
        }
        self.scope.insert(var.clone(), kind);
    }

    /// Statements in a scope of their own.
    fn block(&mut self, stmts: &[Stmt]) {
        let outer = self.scope.clone();
        stmts.iter().for_each(|s| self.stmt(s));
        self.scope = outer;
    }

    fn condition(&mut self, cond: &Expr) {
        self.expr(cond);
        if cond.dtype != DType::BOOL {
            self.report(5, format!("a condition is of type {}, expected bool", cond.dtype));
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::For { var, dtype, min, extent, body, .. } => {
                self.expr(min);
                self.expr(extent);
                if !dtype.is_integer() || dtype.lanes != 1 || min.dtype != *dtype || extent.dtype != *dtype {
                    let message =
                        format!("loop variable `{var}` of type {dtype} runs from {} over {}", min.dtype, extent.dtype);
                    self.report(4, message);
                }
                let outer = self.scope.clone();
                self.declare(var, Kind::Value(*dtype));
                self.block(body);
                self.scope = outer;
            }
            Stmt::If { cond, then, otherwise } => {
                self.condition(cond);
                self.block(then);
                self.block(otherwise);
            }
            Stmt::While { cond, body } => {
                self.condition(cond);
                self.block(body);
            }
            Stmt::Let { var, value } => {
                self.expr(value);
                self.declare(var, Kind::Value(value.dtype));
            }
            Stmt::Array { var, dtype, len, .. } => {
                if *len == 0 {
                    self.report(10, format!("array `{var}` has no elements"));
                }
                self.declare(var, Kind::Pointer { dtype: *dtype, writable: true });
            }
            Stmt::Workspace { var, dtype, offset } => {
                if offset % 64 != 0 || *offset >= self.kernel.workspace {
                    let message = format!(
                        "workspace offset {offset} of `{var}` is not a multiple of 64 below {}",
                        self.kernel.workspace
                    );
                    self.report(9, message);
                }
                self.declare(var, Kind::Pointer { dtype: *dtype, writable: true });
            }
            Stmt::Store { pointer, index, value, .. } => {
                self.index(pointer, index, 1);
                self.expr(value);
                if let Some((dtype, writable)) = self.pointer(pointer) {
                    if value.dtype.scalar() != dtype.scalar() {
                        self.report(7, format!("a value of type {} is stored to `{pointer}` of {dtype}", value.dtype));
                    }
                    if !writable {
                        self.report(8, format!("a store through `{pointer}`, which is not declared written"));
                    }
                }
            }
            Stmt::Assert { cond, code } => {
                self.condition(cond);
                let index = usize::try_from(*code).ok().and_then(|c| c.checked_sub(1));
                if index.is_none_or(|i| i >= self.kernel.messages.len()) {
                    self.report(9, format!("assertion code {code} has no message"));
                }
            }
            Stmt::Evaluate(e) => match &e.kind {
                ExprKind::Call(_, args) | ExprKind::CallExtern(_, args) if e.dtype.is_void() => {
                    args.iter().for_each(|a| self.expr(a));
                    self.call(e);
                }
                _ => self.expr(e),
            },
            Stmt::Barrier(_) | Stmt::Comment(_) => {}
        }
    }

    fn pointer(&mut self, var: &Local) -> Option<(DType, bool)> {
        match self.scope.get(var) {
            Some(Kind::Pointer { dtype, writable }) => Some((*dtype, *writable)),
            Some(Kind::Value(_)) => {
                self.report(2, format!("variable `{var}` is indexed"));
                None
            }
            None => {
                self.report(2, format!("`{var}` is not declared here"));
                None
            }
        }
    }

    fn index(&mut self, pointer: &Local, index: &Expr, lanes: u16) {
        self.expr(index);
        if !index.dtype.is_integer() || index.dtype.lanes != lanes {
            self.report(7, format!("the index of `{pointer}` is of type {}", index.dtype));
        }
    }

    fn read(&mut self, e: &Expr, pointer: &Local) {
        if let Some((dtype, _)) = self.pointer(pointer) {
            if e.dtype.scalar() != dtype.scalar() {
                self.report(7, format!("`{pointer}` of {dtype} is read as {}", e.dtype));
            }
        }
    }

    fn mismatch(&mut self, message: String) {
        self.report(6, message);
    }

    fn expr(&mut self, e: &Expr) {
        let d = e.dtype;
        if d.is_void() {
            self.report(11, "an expression without a value is used as one".to_string());
        }
        match &e.kind {
            ExprKind::Var(v) => match self.scope.get(v) {
                Some(Kind::Value(t)) if *t == d => {}
                Some(Kind::Value(t)) => {
                    let message = format!("variable `{v}` of type {t} is read as {d}");
                    self.mismatch(message);
                }
                Some(Kind::Pointer { .. }) => self.report(2, format!("`{v}` is read without an index")),
                None => self.report(2, format!("`{v}` is not declared here")),
            },
            ExprKind::Int(_) if !d.is_integer() && !d.is_bool() => self.mismatch(format!("an integer of type {d}")),
            ExprKind::Float(_) if !d.is_float() => self.mismatch(format!("a float of type {d}")),
            ExprKind::Int(_) | ExprKind::Float(_) => {}
            ExprKind::Load { pointer, index, .. } => {
                self.index(pointer, index, 1);
                self.read(e, pointer);
            }
            ExprKind::Gather { pointer, index } => {
                self.index(pointer, index, d.lanes);
                self.read(e, pointer);
            }
            ExprKind::Call(_, args) | ExprKind::CallExtern(_, args) => {
                args.iter().for_each(|a| self.expr(a));
                self.call(e);
            }
            _ => self.operator(e),
        }
    }

    fn operator(&mut self, e: &Expr) {
        let d = e.dtype;
        let two = |a: &Expr, b: &Expr| format!("{} and {}", a.dtype, b.dtype);
        match &e.kind {
            ExprKind::Binary(op, a, b) => {
                self.both(a, b);
                if a.dtype != d || b.dtype != d {
                    self.mismatch(format!("{op:?} of type {d} has operands of types {}", two(a, b)));
                }
                let bits = matches!(op, BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Shl | BinOp::Shr);
                if bits && !d.is_integer() && !d.is_bool() {
                    self.mismatch(format!("{op:?} is not defined for {d}"));
                }
            }
            ExprKind::Cmp(op, a, b) => {
                self.both(a, b);
                if a.dtype != b.dtype || d != DType::BOOL.with_lanes(a.dtype.lanes) {
                    self.mismatch(format!("{op:?} of type {d} compares {}", two(a, b)));
                }
            }
            ExprKind::And(a, b) | ExprKind::Or(a, b) => {
                self.both(a, b);
                if !d.is_bool() || a.dtype != d || b.dtype != d {
                    self.mismatch(format!("a logical operator of type {d} has operands of types {}", two(a, b)));
                }
            }
            ExprKind::Not(a) => {
                self.expr(a);
                if !d.is_bool() || a.dtype != d {
                    self.mismatch(format!("not of type {d} has an operand of type {}", a.dtype));
                }
            }
            ExprKind::Select(c, a, b) => {
                self.expr(c);
                self.both(a, b);
                if !c.dtype.is_bool() || (c.dtype.lanes != 1 && c.dtype.lanes != d.lanes) {
                    self.report(5, format!("the condition of a select of type {d} is of type {}", c.dtype));
                }
                if a.dtype != d || b.dtype != d {
                    self.mismatch(format!("a select of type {d} between {}", two(a, b)));
                }
            }
            ExprKind::Cast(a) => {
                self.expr(a);
                if a.dtype.lanes != d.lanes {
                    self.mismatch(format!("a cast from {} to {d} changes the lanes", a.dtype));
                }
            }
            ExprKind::Reinterpret(a) => {
                self.expr(a);
                if a.dtype.lanes != d.lanes || a.dtype.bits != d.bits {
                    self.mismatch(format!("reinterpret from {} to {d}, which has another width", a.dtype));
                }
            }
            ExprKind::Broadcast(a) => {
                self.expr(a);
                if d.lanes < 2 || a.dtype != d.scalar() {
                    self.mismatch(format!("a broadcast of {} to {d}", a.dtype));
                }
            }
            ExprKind::Ramp(a, b) => {
                self.both(a, b);
                if d.lanes < 2 || !d.is_integer() || a.dtype != d.scalar() || b.dtype != d.scalar() {
                    self.mismatch(format!("a ramp of type {d} from {}", two(a, b)));
                }
            }
            _ => {}
        }
    }

    fn both(&mut self, a: &Expr, b: &Expr) {
        self.expr(a);
        self.expr(b);
    }

    fn call(&mut self, e: &Expr) {
        let ExprKind::Call(f, args) = &e.kind else { return };
        let def = f.def();
        if *f == Intrinsic::StorageSync {
            self.report(11, "a barrier is a call".to_string());
        }
        if args.len() != usize::from(def.arity) {
            self.mismatch(format!("`{}` takes {} arguments, found {}", def.name, def.arity, args.len()));
            return;
        }
        // Only the types of the arguments matter to the row.
        let typed: Vec<PrimExpr> = args.iter().map(|a| PrimExpr::new(crate::prim::PrimKind::Int(0), a.dtype)).collect();
        if def.result != ResultType::Given && e.dtype != f.result_type(&typed) {
            self.mismatch(format!("`{}` is of type {}, expected {}", def.name, e.dtype, f.result_type(&typed)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lowered::{LoopKind, Space};

    fn l(name: &str) -> Local {
        Local(name.into())
    }

    fn e(dtype: DType, kind: ExprKind) -> Expr {
        Expr { dtype, kind }
    }

    fn int(v: i64) -> Expr {
        e(DType::I64, ExprKind::Int(v))
    }

    fn f32(v: f64) -> Expr {
        e(DType::F32, ExprKind::Float(v))
    }

    fn var(name: &str) -> Expr {
        e(DType::I64, ExprKind::Var(l(name)))
    }

    fn load(name: &str, index: Expr) -> Expr {
        e(DType::F32, ExprKind::Load { pointer: l(name), index: Box::new(index), aligned: false })
    }

    fn store(name: &str, index: Expr, value: Expr) -> Stmt {
        Stmt::Store { pointer: l(name), index, value, aligned: false }
    }

    fn each(name: &str, body: Vec<Stmt>) -> Stmt {
        Stmt::For { var: l(name), dtype: DType::I64, min: int(0), extent: int(8), kind: LoopKind::Serial, body }
    }

    fn kernel(body: Vec<Stmt>) -> Kernel {
        let pointer = |name, written| Param::Pointer { var: l(name), dtype: DType::F32, written, noalias: true };
        Kernel {
            name: "k".into(),
            origin: String::new(),
            params: vec![pointer("x", false), pointer("y", true), Param::Scalar { var: l("n"), dtype: DType::I64 }],
            body,
            workspace: 128,
            messages: vec!["no".to_string()],
        }
    }

    fn broken(body: Vec<Stmt>) -> Vec<u32> {
        broken_kernel(&kernel(body))
    }

    fn broken_kernel(k: &Kernel) -> Vec<u32> {
        match verify_kernel(k) {
            Ok(()) => Vec::new(),
            Err(d) => d.0.iter().map(|d| d.notes[0].split(' ').nth(1).unwrap().parse().unwrap()).collect(),
        }
    }

    #[test]
    fn good() {
        let v4 = DType::F32.with_lanes(4);
        let body = vec![
            Stmt::Array { var: l("acc"), dtype: v4, len: 2, space: Space::Local },
            Stmt::Workspace { var: l("w"), dtype: DType::F32, offset: 64 },
            each("i", vec![store("y", var("i"), load("x", var("i"))), store("w", var("i"), f32(0.0))]),
            store("acc", int(0), e(v4, ExprKind::Broadcast(Box::new(f32(1.0))))),
            Stmt::Assert { cond: e(DType::BOOL, ExprKind::Int(1)), code: 1 },
        ];
        assert_eq!(broken(body), []);
    }

    #[test]
    fn each_rule() {
        assert_eq!(broken(vec![each("for", vec![])]), [1]);
        assert_eq!(broken(vec![each("a.b", vec![])]), [1]);
        assert_eq!(broken(vec![each("i", vec![]), each("i", vec![])]), [1]);
        assert_eq!(broken(vec![each("i", vec![]), store("y", var("i"), f32(0.0))]), [2]);
        assert_eq!(broken(vec![store("n", int(0), f32(0.0))]), [2]);
        assert_eq!(broken(vec![store("y", var("x"), f32(0.0))]), [2]);
        let mut k = kernel(vec![]);
        k.params.rotate_right(1);
        assert_eq!(broken_kernel(&k), [3, 3]);
        let narrow = Stmt::For {
            var: l("i"),
            dtype: DType::I32,
            min: int(0),
            extent: int(8),
            kind: LoopKind::Serial,
            body: vec![],
        };
        assert_eq!(broken(vec![narrow]), [4]);
        assert_eq!(broken(vec![Stmt::While { cond: int(1), body: vec![] }]), [5]);
        let sum = e(DType::F32, ExprKind::Binary(BinOp::Add, Box::new(f32(0.0)), Box::new(int(0))));
        assert_eq!(broken(vec![store("y", int(0), sum)]), [6]);
        let exp = e(DType::F64, ExprKind::Call(Intrinsic::Exp, vec![f32(0.0)]));
        assert_eq!(broken(vec![store("y", int(0), exp)]), [6, 7]);
        assert_eq!(broken(vec![store("y", int(0), int(0))]), [7]);
        assert_eq!(broken(vec![store("y", f32(0.0), f32(0.0))]), [7]);
        assert_eq!(broken(vec![store("x", int(0), f32(0.0))]), [8]);
        assert_eq!(broken(vec![Stmt::Workspace { var: l("w"), dtype: DType::F32, offset: 128 }]), [9]);
        assert_eq!(broken(vec![Stmt::Assert { cond: e(DType::BOOL, ExprKind::Int(1)), code: 2 }]), [9]);
        assert_eq!(broken(vec![Stmt::Array { var: l("a"), dtype: DType::F32, len: 0, space: Space::Local }]), [10]);
        let sync = e(DType::VOID, ExprKind::Call(Intrinsic::StorageSync, vec![int(0)]));
        assert_eq!(broken(vec![Stmt::Evaluate(sync.clone())]), [11]);
        assert_eq!(broken(vec![store("y", sync, f32(0.0))]), [11, 11, 7]);
    }
}
