//! Scalar expressions.

use super::doc::{Doc, float, level, quoted, tuple};
use super::{Declared, Printer};
use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{BinOp, Buffer, CmpOp, Intrinsic, PrimExpr, PrimKind, Range, Var};
use crate::syntax::Dialect;

impl Printer {
    /// The text of an expression.
    pub(super) fn prim(&mut self, e: &PrimExpr) -> String {
        self.prim_doc(e).text
    }

    pub(super) fn prims<'e>(&mut self, list: impl IntoIterator<Item = &'e PrimExpr>) -> Vec<String> {
        list.into_iter().map(|e| self.prim(e)).collect()
    }

    /// The name of a variable; one that nothing defines is declared by the function.
    pub(super) fn var(&mut self, v: &Var) -> Name {
        if let Some(n) = self.names.prim(v) {
            return n.clone();
        }
        let frame = self.function_frame;
        let name = self.names.define_prim_in(v, frame);
        self.undeclared.push(Declared::Var(name.clone(), v.dtype()));
        name
    }

    pub(super) fn buffer_name(&mut self, b: &Buffer) -> Name {
        match self.names.buffer(b) {
            Some(n) => n.clone(),
            None => self.names.define_buffer(b),
        }
    }

    pub(super) fn int(&self, dtype: DType, v: i64) -> String {
        let digits = if dtype == DType::U64 { (v as u64).to_string() } else { v.to_string() };
        if dtype == self.literal {
            digits
        } else if dtype.is_bool() {
            format!("T.bool({})", if v != 0 { "True" } else { "False" })
        } else {
            format!("T.{dtype}({digits})")
        }
    }

    fn prim_doc(&mut self, e: &PrimExpr) -> Doc {
        let dtype = e.dtype();
        match e.kind() {
            PrimKind::Var(v) => Doc::atom(self.var(v).as_str()),
            PrimKind::Int(v) => Doc::atom(self.int(dtype, *v)),
            PrimKind::Float(v) => Doc::atom(format!("T.{dtype}({})", float(*v))),
            PrimKind::Str(s) => Doc::atom(quoted(s)),
            PrimKind::Binary(op, a, b) => self.binary(*op, a, b),
            PrimKind::Cmp(op, a, b) => {
                let (sign, name) = match op {
                    CmpOp::Eq => ("==", "EQ"),
                    CmpOp::Ne => ("!=", "NE"),
                    CmpOp::Lt => ("<", "LT"),
                    CmpOp::Le => ("<=", "LE"),
                    CmpOp::Gt => (">", "GT"),
                    CmpOp::Ge => (">=", "GE"),
                };
                let folds = !matches!(PrimExpr::cmp(*op, a.clone(), b.clone()).kind(), PrimKind::Cmp(..));
                let (a, b) = (self.prim_doc(a), self.prim_doc(b));
                if folds {
                    Doc::call(&format!("T.{name}"), &[a.text, b.text])
                } else {
                    // Python chains comparisons: neither side may be one.
                    let a = if matches!(e.kind(), PrimKind::Cmp(_, l, _) if matches!(l.kind(), PrimKind::Cmp(..))) {
                        Doc::atom(format!("({})", a.text))
                    } else {
                        a
                    };
                    Doc::binary(sign, level::COMPARE, a, b)
                }
            }
            PrimKind::And(a, b) => {
                let folds = !matches!(a.clone().and(b.clone()).kind(), PrimKind::And(..));
                self.logical("and", "And", level::AND, a, b, folds)
            }
            PrimKind::Or(a, b) => {
                let folds = !matches!(a.clone().or(b.clone()).kind(), PrimKind::Or(..));
                self.logical("or", "Or", level::OR, a, b, folds)
            }
            PrimKind::Not(a) => {
                let folds = !matches!(a.clone().logical_not().kind(), PrimKind::Not(..));
                let a = self.prim_doc(a);
                if folds { Doc::call("T.Not", &[a.text]) } else { Doc::unary("not ", level::NOT, a) }
            }
            PrimKind::Select(c, a, b) => Doc::call("T.Select", &self.prims([c, a, b])),
            PrimKind::Cast(a) => Doc::atom(format!("T.Cast(\"{dtype}\", {})", self.prim(a))),
            PrimKind::Load(b, indices) => {
                let slices = self.dialect == Dialect::Tutorial;
                Doc::atom(self.element(b, indices, slices))
            }
            PrimKind::Let(v, value, body) => {
                let value = self.prim(value);
                self.names.push();
                let name = self.names.define_prim(v);
                let body = self.prim(body);
                self.names.pop();
                Doc::atom(format!("T.Let({body}, where={{{name}: {value}}})"))
            }
            PrimKind::Ramp(base, stride) => {
                Doc::atom(format!("T.Ramp({}, {}, {})", self.prim(base), self.prim(stride), dtype.lanes))
            }
            PrimKind::Broadcast(a) => Doc::atom(format!("T.Broadcast({}, {})", self.prim(a), dtype.lanes)),
            PrimKind::Call(Intrinsic::BitNot, args) if args.len() == 1 => {
                let a = self.prim_doc(&args[0]);
                Doc::unary("~", level::UNARY, a)
            }
            PrimKind::Call(f, args) => {
                let mut docs = self.prims(args);
                let name = match f {
                    Intrinsic::Abs if dtype.is_float() => "fabs",
                    Intrinsic::Reinterpret => {
                        docs.insert(0, format!("\"{dtype}\""));
                        "reinterpret"
                    }
                    _ => f.name(),
                };
                Doc::call(&format!("T.{name}"), &docs)
            }
            PrimKind::CallExtern(symbol, args) => {
                let mut docs = vec![format!("\"{dtype}\""), quoted(symbol)];
                docs.extend(self.prims(args));
                Doc::call("T.call_extern", &docs)
            }
        }
    }

    fn logical(&mut self, word: &str, name: &str, level: u8, a: &PrimExpr, b: &PrimExpr, folds: bool) -> Doc {
        let (a, b) = (self.prim_doc(a), self.prim_doc(b));
        if folds { Doc::call(&format!("T.{name}"), &[a.text, b.text]) } else { Doc::binary(word, level, a, b) }
    }

    fn binary(&mut self, op: BinOp, a: &PrimExpr, b: &PrimExpr) -> Doc {
        let same = |e: &PrimExpr| matches!(e.kind(), PrimKind::Binary(o, ..) if *o == op);
        let folds = !same(&PrimExpr::binary(op, a.clone(), b.clone()));
        let float = a.dtype().is_float();
        let (da, db) = (self.prim_doc(a), self.prim_doc(b));
        let (sign, level, name) = match op {
            BinOp::Add => ("+", level::SUM, "Add"),
            BinOp::Sub => ("-", level::SUM, "Sub"),
            BinOp::Mul => ("*", level::PRODUCT, "Mul"),
            BinOp::Div => ("/", level::PRODUCT, "Div"),
            BinOp::FloorDiv => ("//", level::PRODUCT, "FloorDiv"),
            BinOp::FloorMod => ("%", level::PRODUCT, "FloorMod"),
            BinOp::BitAnd => ("&", level::BIT_AND, "BitwiseAnd"),
            BinOp::BitOr => ("|", level::BIT_OR, "BitwiseOr"),
            BinOp::BitXor => ("^", level::BIT_XOR, "BitwiseXor"),
            BinOp::Shl => ("<<", level::SHIFT, "LShift"),
            BinOp::Shr => (">>", level::SHIFT, "RShift"),
            BinOp::Mod => return Doc::call(if folds { "T.Mod" } else { "T.truncmod" }, &[da.text, db.text]),
            BinOp::Min => return Doc::call(if folds { "T.Min" } else { "T.min" }, &[da.text, db.text]),
            BinOp::Max => return Doc::call(if folds { "T.Max" } else { "T.max" }, &[da.text, db.text]),
        };
        if folds || (op == BinOp::Div && !float) {
            Doc::call(&format!("T.{name}"), &[da.text, db.text])
        } else {
            Doc::binary(sign, level, da, db)
        }
    }

    /// `A[i, j]`; a ramp as the slice `A[i:i + 4]` where `slices` allows.
    pub(super) fn element(&mut self, b: &Buffer, indices: &[PrimExpr], slices: bool) -> String {
        let name = self.buffer_name(b);
        if indices.is_empty() {
            return format!("{name}[()]");
        }
        let mut docs = Vec::new();
        for (i, e) in indices.iter().enumerate() {
            docs.push(match e.kind() {
                PrimKind::Ramp(base, stride)
                    if slices && i + 1 == indices.len() && stride.as_int().is_some_and(|s| s > 0) =>
                {
                    let lanes = PrimExpr::int(base.dtype(), i64::from(e.dtype().lanes));
                    let stop =
                        PrimExpr::binary(BinOp::Add, base.clone(), PrimExpr::binary(BinOp::Mul, lanes, stride.clone()));
                    let step = if stride.is_int(1) { String::new() } else { format!(":{}", self.prim(stride)) };
                    format!("{}:{}{step}", self.prim(base), self.prim(&stop))
                }
                _ => self.prim(e),
            });
        }
        format!("{name}[{}]", docs.join(", "))
    }

    /// `A[i, 0:4]`: a region.
    pub(super) fn region(&mut self, b: &Buffer, ranges: &[Range]) -> String {
        let name = self.buffer_name(b);
        if ranges.is_empty() {
            return format!("{name}[()]");
        }
        let mut docs = Vec::new();
        for r in ranges {
            let start = self.prim(&r.min);
            docs.push(if r.extent.is_int(1) {
                start
            } else {
                let stop = PrimExpr::binary(BinOp::Add, r.min.clone(), r.extent.clone());
                format!("{start}:{}", self.prim(&stop))
            });
        }
        format!("{name}[{}]", docs.join(", "))
    }

    /// `(4, n)`
    pub(super) fn dims(&mut self, dims: &[PrimExpr]) -> String {
        let docs = self.prims(dims);
        tuple(&docs)
    }
}
