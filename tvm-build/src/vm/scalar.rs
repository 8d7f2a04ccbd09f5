//! Shape arithmetic and checks as instructions.

use super::emit::Emitter;
use super::linear::Val;
use super::table::leak_str;
use tvm_ir::diag::Diag;
use tvm_ir::name::Name;
use tvm_ir::ops::show_dims;
use tvm_ir::prim::{BinOp, CmpOp, Intrinsic, PrimExpr, PrimKind};
use tvm_ir::relax::StructInfo;
use tvm_runtime::builtin::{self, Builtin};
use tvm_runtime::{Constant, Operand, Param, Type};

impl Emitter<'_> {
    /// The operand that holds a scalar; emits what computes it, once in a scope.
    pub(super) fn eval(&mut self, e: &PrimExpr) -> Result<Operand, Diag> {
        if let Some(v) = e.as_int() {
            return Ok(Operand::Imm(v));
        }
        if let Some((_, known)) = self.scope.exprs.iter().find(|(k, _)| k == e) {
            return Ok(*known);
        }
        let operand = match e.kind() {
            PrimKind::Float(v) => return self.constants.add(Constant::Float(*v)),
            PrimKind::Var(v) => match self.scope.symbols.get(v) {
                Some(reg) => return Ok(Operand::Reg(*reg)),
                None => {
                    let m = format!("uses the symbolic variable {}, which nothing tells before", v.name());
                    return Err(self.fail(m).help("bind it in a parameter's shape or with R.match_cast"));
                }
            },
            PrimKind::Cast(inner) if inner.dtype().is_integer() && e.dtype().is_integer() => return self.eval(inner),
            PrimKind::Binary(op, a, b) if e.dtype().is_integer() => {
                let f = self.binary(*op, a, b).ok_or_else(|| self.no_builtin(e))?;
                self.pair(f, a, b)?
            }
            PrimKind::Cmp(CmpOp::Eq, a, b) => self.pair(&builtin::EQ, a, b)?,
            PrimKind::Cmp(CmpOp::Lt, a, b) => self.pair(&builtin::LT, a, b)?,
            PrimKind::Cmp(CmpOp::Gt, a, b) => self.pair(&builtin::LT, b, a)?,
            PrimKind::Cmp(CmpOp::Ne, a, b) => {
                let equal = self.pair(&builtin::EQ, a, b)?;
                self.not(equal)?
            }
            PrimKind::Cmp(CmpOp::Ge, a, b) => {
                let less = self.pair(&builtin::LT, a, b)?;
                self.not(less)?
            }
            PrimKind::Cmp(CmpOp::Le, a, b) => {
                let greater = self.pair(&builtin::LT, b, a)?;
                self.not(greater)?
            }
            PrimKind::Not(a) => {
                let a = self.eval(a)?;
                self.not(a)?
            }
            // Of truth values, which are 0 and 1.
            PrimKind::And(a, b) => self.pair(&builtin::MIN, a, b)?,
            PrimKind::Or(a, b) => self.pair(&builtin::MAX, a, b)?,
            PrimKind::Select(c, a, b) => self.select(c, a, b)?,
            PrimKind::Call(Intrinsic::IfThenElse, args) if args.len() == 3 => {
                self.select(&args[0], &args[1], &args[2])?
            }
            // What is known of the variables may leave something simpler: extents are never negative.
            _ => match self.analyzer.simplify(e) {
                simple if simple != *e => self.eval(&simple)?,
                _ => return Err(self.no_builtin(e)),
            },
        };
        self.scope.exprs.push((e.clone(), operand));
        Ok(operand)
    }

    fn no_builtin(&self, e: &PrimExpr) -> Diag {
        self.fail(format!("computes {}, for which the VM has no builtin", show_dims(std::slice::from_ref(e))))
            .help("use +, -, *, //, %, min, max, comparisons, and, or, not and Select")
    }

    fn not(&mut self, a: Operand) -> Result<Operand, Diag> {
        self.builtin(&builtin::EQ, vec![a, Operand::Imm(0)])
    }

    fn select(&mut self, c: &PrimExpr, a: &PrimExpr, b: &PrimExpr) -> Result<Operand, Diag> {
        let args = vec![self.eval(c)?, self.eval(a)?, self.eval(b)?];
        self.builtin(&builtin::SELECT, args)
    }

    fn pair(&mut self, f: &'static Builtin, a: &PrimExpr, b: &PrimExpr) -> Result<Operand, Diag> {
        let args = vec![self.eval(a)?, self.eval(b)?];
        self.builtin(f, args)
    }

    fn binary(&self, op: BinOp, a: &PrimExpr, b: &PrimExpr) -> Option<&'static Builtin> {
        // Rounding down and toward zero are the same where both operands are known not to be negative.
        let floor = || self.analyzer.bounds(a).min >= 0 && self.analyzer.bounds(b).min >= 0;
        Some(match op {
            BinOp::Add => &builtin::ADD,
            BinOp::Sub => &builtin::SUB,
            BinOp::Mul => &builtin::MUL,
            BinOp::FloorDiv => &builtin::FLOORDIV,
            BinOp::FloorMod => &builtin::FLOORMOD,
            BinOp::Div if floor() => &builtin::FLOORDIV,
            BinOp::Mod if floor() => &builtin::FLOORMOD,
            BinOp::Min => &builtin::MIN,
            BinOp::Max => &builtin::MAX,
            _ => return None,
        })
    }

    /// Checks a value against a struct info and binds the variables that are new.
    pub(super) fn match_cast(&mut self, value: &Val, info: &StructInfo, name: &Name) -> Result<(), Diag> {
        if let (Val::Tuple(items), StructInfo::Tuple(fields)) = (value, info) {
            return items.iter().zip(fields).try_for_each(|(v, i)| self.match_cast(v, i, name));
        }
        let mut complete = true;
        let ty = match (value, info) {
            (Val::Tensor(t), StructInfo::Tensor(info)) => {
                let known = &self.lin.tensors[*t];
                if known.dims.as_deref() == info.dims.known() && known.dtype == info.dtype && known.dims.is_some() {
                    return Ok(());
                }
                let dtype = info.dtype.and_then(super::dtype::run_dtype);
                Type::Tensor { dtype, shape: self.bind_dims(&info.dims, &mut complete)? }
            }
            (Val::Shape(_) | Val::RunShape(_), StructInfo::Shape(dims)) => {
                Type::Shape(self.bind_dims(dims, &mut complete)?)
            }
            (Val::Prim(_), StructInfo::Prim(d, Some(e))) if d.is_integer() => {
                Type::Int(self.bind_dim(e, &mut complete)?)
            }
            _ => return Ok(()),
        };
        let operand = self.value(value)?;
        let first = self.constants.param(Param { name: leak_str(name), ty })?;
        self.run(&builtin::MATCH_CAST, vec![operand, first]);
        self.check_bounds()?;
        if !complete {
            let unknown = format!("casts {name} to a shape with a symbolic variable that nothing tells");
            let param = self.checked(name, info, &mut |e| e.fail(unknown.clone()))?;
            let second = self.constants.param(param)?;
            self.run(&builtin::MATCH_CAST, vec![operand, second]);
        }
        Ok(())
    }

    /// Refuses values of the variables just bound that are outside the bounds memory was planned for.
    pub(super) fn check_bounds(&mut self) -> Result<(), Diag> {
        for (name, reg, compare, bound) in std::mem::take(&mut self.unchecked) {
            let symbol = self.constants.param(Param { name, ty: Type::Any })?;
            self.run(compare, vec![Operand::Reg(reg), bound, symbol]);
        }
        Ok(())
    }
}
