//! Types of expressions: rules 4 to 7 and 16.

use super::Verifier;
use crate::dtype::DType;
use crate::prim::{BinOp, Buffer, Intrinsic, PrimExpr, PrimKind, ResultType};
use crate::span::Span;
use crate::tir::Store;

impl Verifier {
    /// An expression that must have a value.
    pub(super) fn expr(&mut self, e: &PrimExpr) {
        self.in_span(e.span(), |v| v.node(e));
    }

    pub(super) fn argument(&mut self, e: &PrimExpr) {
        if !matches!(e.kind(), PrimKind::Str(_)) {
            self.expr(e);
        }
    }

    pub(super) fn store(&mut self, s: &Store) {
        self.expr(&s.value);
        let lanes = self.access(&s.buffer, &s.indices);
        let want = s.buffer.dtype.with_lanes(s.buffer.dtype.lanes.saturating_mul(lanes));
        if s.value.dtype() != want {
            let message =
                format!("a value of type {} is stored to `{}`, expected {want}", s.value.dtype(), s.buffer.name);
            self.report(5, s.value.span(), message);
        }
    }

    /// Checks an access; gives the lanes of its index.
    fn access(&mut self, b: &Buffer, indices: &[PrimExpr]) -> u16 {
        if !self.buffers.contains(b) {
            let message = format!("buffer `{}` is neither a parameter nor allocated around its use", b.name);
            self.report(3, Span::NONE, message);
        }
        if indices.len() != b.shape.len() {
            let message = format!("{} indices for buffer `{}` of rank {}", indices.len(), b.name, b.shape.len());
            self.report(4, Span::NONE, message);
        }
        for (d, e) in indices.iter().enumerate() {
            self.expr(e);
            if !e.dtype().is_integer() {
                let message = format!("index {d} of buffer `{}` is of type {}", b.name, e.dtype());
                self.report(4, e.span(), message);
            }
            if e.dtype().lanes != 1 && d + 1 != indices.len() {
                let message = format!("index {d} of buffer `{}` is a vector, only the last may be", b.name);
                self.report(4, e.span(), message);
            }
        }
        indices.last().map_or(1, |e| e.dtype().lanes)
    }

    fn mismatch(&mut self, message: String) {
        self.report(6, Span::NONE, message);
    }

    fn bools(&mut self, what: &str, operands: &[&PrimExpr], result: DType) {
        for e in operands {
            if !e.dtype().is_bool() || e.dtype() != result {
                let message = format!("{what} of type {result} has an operand of type {}", e.dtype());
                self.report(7, e.span(), message);
            }
        }
    }

    fn node(&mut self, e: &PrimExpr) {
        let dtype = e.dtype();
        match e.kind() {
            PrimKind::Var(v) => {
                self.visible(v, e.span());
                if v.dtype() != dtype {
                    self.mismatch(format!("variable `{}` of type {} is read as {dtype}", v.name(), v.dtype()));
                }
                return;
            }
            PrimKind::Str(s) => {
                self.report(16, e.span(), format!("the string \"{s}\" is not an argument of a call"));
                return;
            }
            PrimKind::Load(b, indices) => {
                let lanes = self.access(b, indices);
                let want = b.dtype.with_lanes(b.dtype.lanes.saturating_mul(lanes));
                if dtype != want {
                    self.report(5, e.span(), format!("a load of `{}` is of type {dtype}, expected {want}", b.name));
                }
                return;
            }
            PrimKind::Let(v, value, body) => {
                self.expr(value);
                if value.dtype() != v.dtype() {
                    let message =
                        format!("`{}` of type {} is bound to a value of type {}", v.name(), v.dtype(), value.dtype());
                    self.mismatch(message);
                }
                if !self.scope.insert(v.clone()) {
                    self.report(2, v.span(), format!("variable `{}` is defined twice", v.name()));
                }
                self.expr(body);
                self.scope.remove(v);
                if body.dtype() != dtype {
                    self.mismatch(format!("a let of type {dtype} has a body of type {}", body.dtype()));
                }
                return;
            }
            PrimKind::Call(_, args) | PrimKind::CallExtern(_, args) => {
                args.iter().for_each(|a| self.argument(a));
                if dtype.is_void() {
                    self.report(16, e.span(), "a call without a value is used as one".to_string());
                }
                self.call_types(e);
                return;
            }
            _ => {}
        }
        e.children().into_iter().for_each(|c| self.expr(c));
        self.operator_types(e);
    }

    fn operator_types(&mut self, e: &PrimExpr) {
        let dtype = e.dtype();
        match e.kind() {
            PrimKind::Int(_) if !dtype.is_integer() && !dtype.is_bool() => {
                self.mismatch(format!("an integer literal of type {dtype}"));
            }
            PrimKind::Float(_) if !dtype.is_float() => self.mismatch(format!("a float literal of type {dtype}")),
            PrimKind::Binary(op, a, b) => {
                if a.dtype() != dtype || b.dtype() != dtype {
                    self.mismatch(format!(
                        "{op:?} of type {dtype} has operands of types {} and {}",
                        a.dtype(),
                        b.dtype()
                    ));
                }
                let bits = matches!(op, BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Shl | BinOp::Shr);
                if bits && !dtype.is_integer() && !dtype.is_bool() {
                    self.mismatch(format!("{op:?} is not defined for {dtype}"));
                }
            }
            PrimKind::Cmp(op, a, b) => {
                if a.dtype() != b.dtype() {
                    self.mismatch(format!("{op:?} compares {} with {}", a.dtype(), b.dtype()));
                }
                if dtype != DType::BOOL.with_lanes(a.dtype().lanes) {
                    self.mismatch(format!("{op:?} of {} is of type {dtype}", a.dtype()));
                }
            }
            PrimKind::And(a, b) => self.bools("and", &[a, b], dtype),
            PrimKind::Or(a, b) => self.bools("or", &[a, b], dtype),
            PrimKind::Not(a) => self.bools("not", &[a], dtype),
            PrimKind::Select(c, a, b) => {
                if !c.dtype().is_bool() || (c.dtype().lanes != 1 && c.dtype().lanes != dtype.lanes) {
                    let message = format!("the condition of a select of type {dtype} is of type {}", c.dtype());
                    self.report(7, c.span(), message);
                }
                if a.dtype() != dtype || b.dtype() != dtype {
                    self.mismatch(format!("a select of type {dtype} between {} and {}", a.dtype(), b.dtype()));
                }
            }
            PrimKind::Cast(a) if a.dtype().lanes != dtype.lanes => {
                self.mismatch(format!("a cast from {} to {dtype} changes the lanes", a.dtype()));
            }
            PrimKind::Ramp(base, stride) => {
                let scalar = dtype.scalar();
                if !dtype.is_integer() || dtype.lanes < 2 || base.dtype() != scalar || stride.dtype() != scalar {
                    self.mismatch(format!("a ramp of type {dtype} from {} by {}", base.dtype(), stride.dtype()));
                }
            }
            PrimKind::Broadcast(a) if dtype.lanes < 2 || a.dtype() != dtype.scalar() => {
                self.mismatch(format!("a broadcast of {} to {dtype}", a.dtype()));
            }
            _ => {}
        }
    }

    pub(super) fn call_types(&mut self, e: &PrimExpr) {
        let PrimKind::Call(f, args) = e.kind() else { return };
        let def = f.def();
        if args.len() != usize::from(def.arity) {
            self.mismatch(format!("`{}` takes {} arguments, found {}", def.name, def.arity, args.len()));
            return;
        }
        if def.result != ResultType::Given && e.dtype() != f.result_type(args) {
            self.mismatch(format!("`{}` is of type {}, expected {}", def.name, e.dtype(), f.result_type(args)));
        }
        match (f, args.as_slice()) {
            (Intrinsic::IfThenElse, [c, a, b]) => {
                if c.dtype() != DType::BOOL {
                    let message = format!("the condition of if_then_else is of type {}, expected bool", c.dtype());
                    self.report(7, c.span(), message);
                }
                if a.dtype() != b.dtype() {
                    self.mismatch(format!("if_then_else between {} and {}", a.dtype(), b.dtype()));
                }
            }
            (Intrinsic::Reinterpret, [a]) => {
                let width = |d: DType| u32::from(d.bits) * u32::from(d.lanes);
                if width(a.dtype()) == width(e.dtype()) {
                    return;
                }
                self.mismatch(format!("reinterpret from {} to {}, which has another width", a.dtype(), e.dtype()));
            }
            (Intrinsic::Ldexp | Intrinsic::StorageSync, _) => {}
            (_, [a, rest @ ..]) => {
                if let Some(b) = rest.iter().find(|b| b.dtype() != a.dtype()) {
                    self.mismatch(format!("`{}` of {} and {}", def.name, a.dtype(), b.dtype()));
                }
            }
            _ => {}
        }
    }
}
