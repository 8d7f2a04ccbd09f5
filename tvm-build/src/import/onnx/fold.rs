//! Calls whose operands are known are computed when the model is imported: what shapes are computed with.
//!
//! There is one mechanism for every op: the op's own lowering runs in the reference interpreter, over constants or over
//! elements that are expressions of the model's symbolic dimensions.

use std::collections::BTreeMap;

use tvm_ir::arith::Analyzer;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::interp::{ExprTensor, Options, TensorBuf, run_on_constants, run_symbolic};
use tvm_ir::ops;
use tvm_ir::prim::{BinOp, PrimExpr, PrimKind};
use tvm_ir::relax::{Call, Effects, Expr, Leaf, Legalized, StructInfo, TensorInfo, Var};
use tvm_ir::tir::PrimFunc;

use super::elements::Elements;
use super::value::Value;

/// Most elements of a tensor that is computed here; larger ones are data and not shapes.
const MAX_ELEMENTS: i64 = 256;

/// Most nodes of an element's expression.
const MAX_NODES: u32 = 200;

/// Most steps of one op.
const MAX_STEPS: u64 = 1 << 16;

/// A value that is known.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// A constant.
    Const(Constant),
    /// A tensor of expressions, at least one of them no literal.
    Exprs(ExprTensor),
    /// A tuple.
    Tuple(Vec<Known>),
}

/// The result of a call; `known` are the variables among its arguments whose values are known. `None` if it is not
/// known, or if it is not small.
pub(super) fn fold(call: &Call, info: &StructInfo, known: BTreeMap<Var, Known>, analyzer: &Analyzer) -> Option<Known> {
    Folder { known, analyzer }.call(call, info)
}

impl Known {
    /// The value that stands in place of the call: of integers and bools, and of operators that shapes may have. `None`
    /// if the call stays: floats are data, and whether a program that is imported has a call of constants is the
    /// model's choice.
    pub(super) fn value(&self, analyzer: &Analyzer, elements: &Elements) -> Option<Value> {
        match self {
            Known::Const(constant) => {
                let dtype = constant.dtype();
                (dtype.is_integer() || dtype.is_bool()).then(|| constant.clone().into())
            }
            Known::Exprs(tensor) => {
                let value = |e| shape_value(e, analyzer).filter(|e| elements.told(e));
                let elements = tensor.elements.iter().map(value).collect::<Option<_>>()?;
                let whole = tensor.dtype.is_integer();
                whole.then(|| Value::known(ExprTensor { elements, ..tensor.clone() }))
            }
            Known::Tuple(items) => {
                Some(Value::Tuple(items.iter().map(|item| item.value(analyzer, elements)).collect::<Option<_>>()?))
            }
        }
    }
}

struct Folder<'a> {
    known: BTreeMap<Var, Known>,
    analyzer: &'a Analyzer,
}

impl Folder<'_> {
    fn call(&mut self, call: &Call, info: &StructInfo) -> Option<Known> {
        let small = info.tensors()?.iter().all(|t| count(t).is_some());
        let fits = call.op.def().effects == Effects::Pure && small && call.args.iter().all(|l| self.fits(l));
        if !fits {
            return None;
        }
        match ops::legalize(call, info).ok()? {
            Legalized::Tir { func, args, tir_vars, .. } => {
                let args = args.iter().map(|l| self.leaf(l)).collect::<Option<Vec<_>>>()?;
                self.run(&func, args, &tir_vars, info)
            }
            Legalized::Bindings { bindings, result } => {
                for binding in bindings {
                    let value = match &binding.value {
                        Expr::Call(call) => self.call(call, binding.var.info())?,
                        Expr::Leaf(leaf) => self.leaf(leaf)?,
                        Expr::Tuple(items) => Known::Tuple(items.iter().map(|l| self.leaf(l)).collect::<Option<_>>()?),
                        Expr::TupleGetItem(tuple, index) => match self.leaf(tuple)? {
                            Known::Tuple(items) => items.into_iter().nth(*index)?,
                            Known::Const(_) | Known::Exprs(_) => return None,
                        },
                        _ => return None,
                    };
                    self.known.insert(binding.var, value);
                }
                self.leaf(&result)
            }
            Legalized::Keep => None,
        }
    }

    /// Whether an argument is known and small.
    fn fits(&self, leaf: &Leaf) -> bool {
        match leaf {
            Leaf::Const(constant) => constant.len() <= MAX_ELEMENTS.unsigned_abs(),
            Leaf::Var(var) => self.known.contains_key(var),
            Leaf::Tuple(items) => items.iter().all(|l| self.fits(l)),
            Leaf::Prim(_) | Leaf::Shape(_) | Leaf::Str(_) | Leaf::DType(_) | Leaf::Absent => true,
            Leaf::Global(_) => false,
        }
    }

    fn leaf(&self, leaf: &Leaf) -> Option<Known> {
        match leaf {
            Leaf::Const(constant) => Some(Known::Const(constant.clone())),
            Leaf::Var(var) => self.known.get(var).cloned(),
            Leaf::Tuple(items) => Some(Known::Tuple(items.iter().map(|l| self.leaf(l)).collect::<Option<_>>()?)),
            _ => None,
        }
    }

    fn run(&self, func: &PrimFunc, args: Vec<Known>, scalars: &[PrimExpr], info: &StructInfo) -> Option<Known> {
        let outs = info.tensors()?;
        let constants = args.iter().map(|a| if let Known::Const(c) = a { Some(c) } else { None });
        let results = match (constants.collect::<Option<Vec<_>>>(), scalars.iter().all(|s| s.as_int().is_some())) {
            (Some(constants), true) => interpreted(func, &constants, scalars, &outs)?,
            _ => {
                let args = args.into_iter().map(|a| match a {
                    Known::Const(constant) => ExprTensor::from_buf(&buffer(&constant)?),
                    Known::Exprs(tensor) => Some(tensor),
                    Known::Tuple(_) => None,
                });
                self.symbolic(func, args.collect::<Option<_>>()?, scalars, &outs)?
            }
        };
        Some(match info {
            StructInfo::Tensor(_) => results.into_iter().next()?,
            _ => Known::Tuple(results),
        })
    }

    fn symbolic(
        &self,
        func: &PrimFunc,
        mut args: Vec<ExprTensor>,
        scalars: &[PrimExpr],
        outs: &[&TensorInfo],
    ) -> Option<Vec<Known>> {
        let first = args.len();
        for out in outs {
            let dtype = out.dtype?;
            let elements = vec![PrimExpr::zero(dtype); usize::try_from(count(out)?).ok()?];
            args.push(ExprTensor { dtype, shape: out.dims.fixed()?, elements });
        }
        for scalar in scalars {
            args.push(ExprTensor { dtype: scalar.dtype(), shape: Vec::new(), elements: vec![scalar.clone()] });
        }
        run_symbolic(func, &mut args, self.analyzer, MAX_STEPS)?;
        let results = args.drain(first..first + outs.len());
        results
            .map(|tensor| match tensor.to_buf() {
                Some(buf) => Some(Known::Const(constant(buf)?)),
                None => tensor.elements.iter().all(short).then_some(Known::Exprs(tensor)),
            })
            .collect()
    }
}

/// The number of elements of a tensor that is small.
fn count(info: &TensorInfo) -> Option<i64> {
    let dims = info.dims.known()?;
    let count = dims.iter().try_fold(1i64, |n, d| n.checked_mul(d.as_int()?))?;
    (0..=MAX_ELEMENTS).contains(&count).then_some(count)
}

fn buffer(constant: &Constant) -> Option<TensorBuf> {
    let shape = constant.shape().iter().map(|d| i64::try_from(*d).ok()).collect::<Option<Vec<_>>>()?;
    TensorBuf::from_bytes(constant.dtype(), &shape, constant.data().to_vec()).ok()
}

/// A tensor of the interpreter as a constant.
pub(super) fn constant(buf: TensorBuf) -> Option<Constant> {
    let shape = buf.shape.iter().map(|d| u64::try_from(*d).ok()).collect::<Option<Vec<_>>>()?;
    Constant::new(buf.dtype, shape, Bytes::new(buf.data)).ok()
}

fn interpreted(
    func: &PrimFunc,
    constants: &[&Constant],
    scalars: &[PrimExpr],
    outs: &[&TensorInfo],
) -> Option<Vec<Known>> {
    let mut rest = Vec::new();
    for out in outs {
        rest.push(TensorBuf::zeros(out.dtype?, &out.dims.fixed()?).ok()?);
    }
    for scalar in scalars {
        rest.push(TensorBuf::scalar_i64(scalar.dtype(), scalar.as_int()?).ok()?);
    }
    let options = Options { max_iterations: MAX_STEPS, ..Options::default() };
    let results = run_on_constants(func, constants, rest, &options).ok()?;
    results.into_iter().take(outs.len()).map(|buf| Some(Known::Const(constant(buf)?))).collect()
}

/// Whether an expression has few nodes: those of a chain of operators may double with each.
fn short(e: &PrimExpr) -> bool {
    fn spend(e: &PrimExpr, left: &mut u32) -> bool {
        *left = left.saturating_sub(1);
        *left > 0 && e.children().into_iter().all(|c| spend(c, left))
    }
    spend(e, &mut MAX_NODES.clone())
}

/// The expression as one that shapes may have, which the program can compute: operators of integers that are defined
/// whatever the variables are.
pub(super) fn shape_value(e: &PrimExpr, analyzer: &Analyzer) -> Option<PrimExpr> {
    let inner = |e: &PrimExpr| shape_value(e, analyzer);
    match e.kind() {
        PrimKind::Int(_) | PrimKind::Var(_) => Some(e.clone()),
        PrimKind::Binary(op, a, b) => {
            let nonnegative = |e: &PrimExpr| analyzer.prove(&e.clone().ge(PrimExpr::int(e.dtype(), 0)));
            let op = match op {
                BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Min | BinOp::Max => *op,
                BinOp::FloorDiv | BinOp::FloorMod if nonzero(b, analyzer) => *op,
                // Of what is not below zero, both ways of rounding give one quotient.
                BinOp::Div if nonzero(b, analyzer) && nonnegative(a) && nonnegative(b) => BinOp::FloorDiv,
                BinOp::Mod if nonzero(b, analyzer) && nonnegative(a) && nonnegative(b) => BinOp::FloorMod,
                _ => return None,
            };
            Some(PrimExpr::binary(op, inner(a)?, inner(b)?))
        }
        // As all arithmetic of indices, shapes do not overflow; unsigned and narrow integers wrap.
        PrimKind::Cast(a) if a.dtype().is_int() && e.dtype().is_int() && e.dtype().bits >= 32 => {
            Some(inner(a)?.cast(e.dtype()))
        }
        _ => None,
    }
}

fn nonzero(e: &PrimExpr, analyzer: &Analyzer) -> bool {
    let zero = || PrimExpr::int(e.dtype(), 0);
    analyzer.prove(&e.clone().gt(zero())) || analyzer.prove(&e.clone().lt(zero()))
}
