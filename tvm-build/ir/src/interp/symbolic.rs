//! [`PrimFunc`]s over elements that are expressions: what shapes are computed from before they are known.

use super::buf::element_count;
use super::{TensorBuf, layout::key};
use crate::arith::Analyzer;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr, PrimKind, Var};
use crate::tir::{Block, IterKind, Param, PrimFunc, Stmt};
use std::collections::BTreeMap;

/// A tensor of known extents whose elements are expressions of its type, in row-major order.
#[derive(Clone, PartialEq, Debug)]
pub struct ExprTensor {
    /// Element type.
    pub dtype: DType,
    /// Extents; empty for one element.
    pub shape: Vec<i64>,
    /// The elements: as many as the product of the extents.
    pub elements: Vec<PrimExpr>,
}

impl ExprTensor {
    /// The elements of a tensor as literals; `None` for types without literals (complex, 4 bits).
    pub fn from_buf(buf: &TensorBuf) -> Option<ExprTensor> {
        let dtype = buf.dtype;
        if dtype.lanes != 1 || dtype.bits < 8 && !dtype.is_bool() {
            return None;
        }
        let literal = |i: usize| {
            if dtype.is_float() {
                Some(PrimExpr::float(dtype, buf.get_f64(i)))
            } else if dtype.is_integer() || dtype.is_bool() {
                Some(PrimExpr::int(dtype, buf.get_i64(i)))
            } else {
                None
            }
        };
        let elements = (0..buf.len()).map(literal).collect::<Option<_>>()?;
        Some(ExprTensor { dtype, shape: buf.shape.clone(), elements })
    }

    /// The tensor, if all elements are literals.
    pub fn to_buf(&self) -> Option<TensorBuf> {
        if self.dtype.is_float() {
            let values: Option<Vec<f64>> = self.elements.iter().map(PrimExpr::as_float).collect();
            return TensorBuf::from_f64(self.dtype, &self.shape, &values?).ok();
        }
        let values: Option<Vec<i64>> = self.elements.iter().map(PrimExpr::as_int).collect();
        TensorBuf::from_i64(self.dtype, &self.shape, &values?).ok()
    }
}

/// Runs a function over expressions. `args` are its parameters in order, a scalar as a tensor of rank 0; elements that
/// it writes are replaced, simplified with what `analyzer` knows of the variables in them.
///
/// `None` where the way of the program, an index or a reduction's start depends on what is not known, where a buffer is
/// accessed out of bounds, and after `max_steps` stores; the arguments then hold what was written so far.
pub fn run_symbolic(func: &PrimFunc, args: &mut [ExprTensor], analyzer: &Analyzer, max_steps: u64) -> Option<()> {
    if args.len() != func.params.len() {
        return None;
    }
    let mut machine = Machine { vars: BTreeMap::new(), buffers: BTreeMap::new(), analyzer, steps: max_steps };
    for (param, arg) in func.params.iter().zip(args.iter()) {
        if element_count(&arg.shape) != Some(arg.elements.len()) {
            return None;
        }
        match param {
            Param::Scalar(var) => {
                machine.vars.insert(var.clone(), arg.elements.first()?.clone());
            }
            Param::Buffer(buffer) => machine.bind(buffer, arg)?,
        }
    }
    machine.stmt(&func.body)?;
    for (param, arg) in func.params.iter().zip(args) {
        if let Param::Buffer(buffer) = param {
            arg.elements = machine.buffers.remove(&key(buffer))?.elements.into_iter().collect::<Option<_>>()?;
        }
    }
    Some(())
}

struct Memory {
    shape: Vec<i64>,
    /// `None` where nothing was written yet.
    elements: Vec<Option<PrimExpr>>,
}

struct Machine<'a> {
    vars: BTreeMap<Var, PrimExpr>,
    buffers: BTreeMap<usize, Memory>,
    analyzer: &'a Analyzer,
    steps: u64,
}

impl Machine<'_> {
    fn bind(&mut self, buffer: &Buffer, arg: &ExprTensor) -> Option<()> {
        if buffer.dtype != arg.dtype || buffer.shape.len() != arg.shape.len() || !buffer.strides.is_empty() {
            return None;
        }
        for (dim, extent) in buffer.shape.iter().zip(&arg.shape) {
            match dim.as_var().filter(|v| !self.vars.contains_key(v)) {
                Some(var) => {
                    self.vars.insert(var.clone(), PrimExpr::int(var.dtype(), *extent));
                }
                None if self.known(dim)? != *extent => return None,
                None => {}
            }
        }
        let elements = arg.elements.iter().cloned().map(Some).collect();
        self.buffers.insert(key(buffer), Memory { shape: arg.shape.clone(), elements });
        Some(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().try_for_each(|s| self.stmt(s)),
            Stmt::For(f) => {
                let (min, extent) = (self.known(&f.min)?, self.known(&f.extent)?);
                for at in 0..extent {
                    self.step()?;
                    self.vars.insert(f.var.clone(), PrimExpr::int(f.var.dtype(), min.checked_add(at)?));
                    self.stmt(&f.body)?;
                }
                Some(())
            }
            Stmt::Block(block) => self.block(block),
            Stmt::Store(store) => {
                self.step()?;
                let value = self.expr(&store.value)?;
                let value = if is_literal(&value) { value } else { self.analyzer.simplify(&value) };
                let at = self.place(&store.buffer, &store.indices)?;
                let slot = self.buffers.get_mut(&key(&store.buffer))?.elements.get_mut(at)?;
                (value.dtype() == store.buffer.dtype).then(|| *slot = Some(value))
            }
            Stmt::Let(l) => {
                let value = self.expr(&l.value)?;
                self.vars.insert(l.var.clone(), value);
                self.stmt(&l.body)
            }
            Stmt::If(i) => match (self.known(&i.cond)?, &i.otherwise) {
                (0, None) => Some(()),
                (0, Some(otherwise)) => self.stmt(otherwise),
                _ => self.stmt(&i.then),
            },
            Stmt::While(w) => {
                while self.known(&w.cond)? != 0 {
                    self.step()?;
                    self.stmt(&w.body)?;
                }
                Some(())
            }
            Stmt::Assert(a) => (self.known(&a.cond)? != 0).then_some(()),
            Stmt::Evaluate(_) => None,
        }
    }

    fn block(&mut self, block: &Block) -> Option<()> {
        if self.known(&block.predicate)? == 0 {
            return Some(());
        }
        let mut first = true;
        for i in &block.iters {
            let value = self.known(&i.binding)?;
            if i.kind == IterKind::Reduce && block.init.is_some() {
                first &= value == self.known(&i.dom.min)?;
            }
            self.vars.insert(i.var.clone(), PrimExpr::int(i.var.dtype(), value));
        }
        for buffer in &block.allocs {
            let shape = buffer.shape.iter().map(|d| self.known(d)).collect::<Option<Vec<_>>>()?;
            let count = element_count(&shape).filter(|n| u64::try_from(*n).is_ok_and(|n| n <= self.steps))?;
            self.buffers.insert(key(buffer), Memory { shape, elements: vec![None; count] });
        }
        if let Some(init) = block.init.as_ref().filter(|_| first) {
            self.stmt(init)?;
        }
        self.stmt(&block.body)
    }

    fn step(&mut self) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        Some(())
    }

    /// The value of an expression that must be a number.
    fn known(&mut self, e: &PrimExpr) -> Option<i64> {
        if let Some(v) = e.as_int() {
            return Some(v);
        }
        let value = self.expr(e)?;
        self.number(&value)
    }

    /// The number that an expression is proven to be.
    fn number(&self, value: &PrimExpr) -> Option<i64> {
        value.as_int().or_else(|| self.analyzer.simplify(value).as_int())
    }

    fn place(&mut self, buffer: &Buffer, indices: &[PrimExpr]) -> Option<usize> {
        let indices = indices.iter().map(|i| self.known(i)).collect::<Option<Vec<_>>>()?;
        let memory = self.buffers.get(&key(buffer)).filter(|m| m.shape.len() == indices.len())?;
        let mut at = 0i64;
        for (index, extent) in indices.iter().zip(&memory.shape) {
            if !(0..*extent).contains(index) {
                return None;
            }
            at = at.checked_mul(*extent)?.checked_add(*index)?;
        }
        usize::try_from(at).ok()
    }

    /// The expression with values in place of variables and elements.
    fn expr(&mut self, e: &PrimExpr) -> Option<PrimExpr> {
        Some(match e.kind() {
            PrimKind::Int(_) | PrimKind::Float(_) => e.clone(),
            PrimKind::Var(v) => self.vars.get(v)?.clone(),
            PrimKind::Load(buffer, indices) => {
                let at = self.place(buffer, indices)?;
                self.buffers.get(&key(buffer))?.elements.get(at)?.clone()?
            }
            PrimKind::And(a, b) => {
                let a = self.expr(a)?;
                match self.number(&a) {
                    Some(0) => PrimExpr::bool(false),
                    Some(_) => self.expr(b)?,
                    None => a.and(self.expr(b)?),
                }
            }
            PrimKind::Or(a, b) => {
                let a = self.expr(a)?;
                match self.number(&a) {
                    Some(0) => self.expr(b)?,
                    Some(_) => PrimExpr::bool(true),
                    None => a.or(self.expr(b)?),
                }
            }
            PrimKind::Select(c, a, b) => self.choice(c, a, b)?,
            PrimKind::Call(Intrinsic::IfThenElse, args) => match args.as_slice() {
                [c, a, b] => self.choice(c, a, b)?,
                _ => return None,
            },
            PrimKind::Let(v, value, body) => {
                let value = self.expr(value)?;
                self.vars.insert(v.clone(), value);
                self.expr(body)?
            }
            PrimKind::Binary(op, a, b) => PrimExpr::binary(*op, self.expr(a)?, self.expr(b)?),
            PrimKind::Cmp(op, a, b) => PrimExpr::cmp(*op, self.expr(a)?, self.expr(b)?),
            PrimKind::Not(a) => self.expr(a)?.logical_not(),
            PrimKind::Cast(a) => self.expr(a)?.cast(e.dtype()),
            PrimKind::Call(f, args) => {
                PrimExpr::call(*f, args.iter().map(|a| self.expr(a)).collect::<Option<Vec<_>>>()?)
            }
            PrimKind::Str(_) | PrimKind::Ramp(..) | PrimKind::Broadcast(_) | PrimKind::CallExtern(..) => return None,
        })
    }

    /// Of a condition that is known, the side that is chosen alone: the other one may have no value.
    fn choice(&mut self, cond: &PrimExpr, a: &PrimExpr, b: &PrimExpr) -> Option<PrimExpr> {
        let cond = self.expr(cond)?;
        match self.number(&cond) {
            Some(0) => self.expr(b),
            Some(_) => self.expr(a),
            None => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                Some(if a == b { a } else { PrimExpr::select(cond, a, b) })
            }
        }
    }
}

fn is_literal(e: &PrimExpr) -> bool {
    matches!(e.kind(), PrimKind::Int(_) | PrimKind::Float(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops;
    use crate::relax::{Call, Leaf, Legalized, StructInfo};

    fn ints(elements: Vec<PrimExpr>) -> ExprTensor {
        ExprTensor { dtype: DType::I64, shape: vec![elements.len() as i64], elements }
    }

    fn call(op: &str, args: Vec<Leaf>) -> (Call, StructInfo) {
        let call = ops::make_call(ops::lookup(op).unwrap(), args, &[], crate::span::Span::NONE).unwrap();
        let info = ops::infer(&call, &Analyzer::new()).unwrap();
        (call, info)
    }

    fn lowered(op: &str, lengths: &[i64]) -> PrimFunc {
        let var = |n: &i64| Leaf::Var(crate::relax::Var::new("x", StructInfo::tensor_fixed(&[*n], DType::I64)));
        let (call, info) = call(op, lengths.iter().map(var).collect());
        match ops::legalize(&call, &info).unwrap() {
            Legalized::Tir { func, .. } => func,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn elements_are_expressions() {
        let n = Var::new("n", DType::I64);
        let mut analyzer = Analyzer::new();
        analyzer.assume_nonnegative(&n);
        let c = PrimExpr::i64;
        let mut args = [ints(vec![n.expr(), c(3)]), ints(vec![c(2)]), ints(vec![c(0), c(0)])];
        run_symbolic(&lowered("multiply", &[2, 1]), &mut args, &analyzer, 100).unwrap();
        assert_eq!(args[2].elements, [n.expr() * 2, c(6)]);
        // A comparison that is proven is a literal.
        let mut args =
            [args[2].clone(), ints(vec![c(-1)]), ExprTensor { dtype: DType::BOOL, ..ints(vec![c(1), c(1)]) }];
        run_symbolic(&lowered("equal", &[2, 1]), &mut args, &analyzer, 100).unwrap();
        assert_eq!(args[2].elements, [PrimExpr::bool(false), PrimExpr::bool(false)]);
        assert_eq!(args[2].to_buf().unwrap().data, [0, 0]);
        assert!(args[0].to_buf().is_none());
    }

    #[test]
    fn what_is_not_known_and_what_is_too_much() {
        let n = Var::new("n", DType::I64);
        let c = PrimExpr::i64;
        let take = |index: PrimExpr, steps| {
            let mut args = [ints(vec![c(5), n.expr()]), ints(vec![index]), ints(vec![c(0)])];
            run_symbolic(&lowered("take", &[2, 1]), &mut args, &Analyzer::new(), steps)?;
            Some(args[2].elements[0].clone())
        };
        assert_eq!(take(c(1), 100), Some(n.expr()));
        assert_eq!(take(n.expr(), 100), None);
        assert_eq!(take(c(2), 100), None);
        assert_eq!(take(c(1), 1), None);
    }
}
