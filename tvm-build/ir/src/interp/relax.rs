//! Relax functions, binding by binding: ops through their lowering, `call_tir` through the PrimFunc interpreter.
//!
//! It tells what a function means, so that passes can be checked by running before and after. Shapes are those at hand:
//! every call is lowered for them.

use super::{TensorBuf, run};
use crate::arith::Analyzer;
use crate::attrs::AttrValue;
use crate::constant::Constant;
use crate::diag::Diag;
use crate::module::{Func, IRModule};
use crate::name::Name;
use crate::ops;
use crate::prim::{self, PrimExpr, substitute};
use crate::relax::{
    Binding, Body, Call, CallTir, Dims, Expr, Function, GlobalVar, Leaf, Legalized, StructInfo, TensorInfo, Var,
};
use crate::span::Span;
use crate::tir::PrimFunc;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A value at run time.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor; copies are the same tensor.
    Tensor(Rc<RefCell<TensorBuf>>),
    /// A tuple.
    Tuple(Vec<Value>),
    /// A list.
    List(Rc<Vec<Value>>),
    /// A shape.
    Shape(Vec<i64>),
    /// A scalar: a literal.
    Prim(PrimExpr),
    /// A function of the module.
    Global(GlobalVar),
    /// A local function with the variables it captures.
    Closure(Rc<Function>, Rc<Frame>),
    /// A string, data type or absent argument.
    Other(Leaf),
}

impl Value {
    /// A tensor.
    pub fn tensor(t: TensorBuf) -> Value {
        Value::Tensor(Rc::new(RefCell::new(t)))
    }

    /// A copy of the tensor, if it is one.
    pub fn as_tensor(&self) -> Option<TensorBuf> {
        match self {
            Value::Tensor(t) => Some(t.borrow().clone()),
            _ => None,
        }
    }

    /// Copies of the tensors of a tensor or (nested) tuple, in order; other values are left out.
    pub fn tensors(&self) -> Vec<TensorBuf> {
        match self {
            Value::Tensor(t) => vec![t.borrow().clone()],
            Value::Tuple(items) => items.iter().flat_map(Value::tensors).collect(),
            _ => Vec::new(),
        }
    }

    fn info(&self) -> Option<StructInfo> {
        Some(match self {
            Value::Tensor(t) => {
                let t = t.borrow();
                StructInfo::tensor_fixed(&t.shape, t.dtype)
            }
            Value::Tuple(items) => StructInfo::Tuple(items.iter().map(Value::info).collect::<Option<_>>()?),
            Value::Shape(dims) => StructInfo::Shape(Dims::Known(dims.iter().map(|d| PrimExpr::i64(*d)).collect())),
            Value::Prim(e) => StructInfo::Prim(e.dtype(), Some(e.clone())),
            Value::List(_) => StructInfo::Object,
            Value::Global(_) | Value::Closure(..) | Value::Other(_) => return None,
        })
    }
}

/// Variables of a function in a run.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    vars: BTreeMap<Var, Value>,
    symbols: BTreeMap<prim::Var, PrimExpr>,
}

/// Calls of functions in functions, after which a run is given up.
const MAX_DEPTH: usize = 200;

/// Runs a function of a module.
///
/// Errors: arguments that do not fit the parameters, shapes that do not fit at run time (`match_cast` included), calls
/// of external functions, ops without a lowering, and the errors of the PrimFunc interpreter; located at the binding.
pub fn run_function(module: &IRModule, name: &str, args: &[Value]) -> Result<Value, Diag> {
    match module.get(name) {
        Some(Func::Relax(f)) => Evaluator { module, depth: 0 }.function(f, args, Frame::default()),
        Some(_) => Err(Diag::error(Span::NONE, format!("{name} is not a Relax function"))),
        None => Err(Diag::error(Span::NONE, format!("the module has no function {name}"))),
    }
}

pub(super) struct Evaluator<'a> {
    pub(super) module: &'a IRModule,
    depth: usize,
}

impl Evaluator<'_> {
    pub(super) fn function(&mut self, f: &Function, args: &[Value], mut frame: Frame) -> Result<Value, Diag> {
        if self.depth >= MAX_DEPTH {
            return Err(Diag::error(f.span, format!("functions call each other more than {MAX_DEPTH} deep")));
        }
        if f.params.len() != args.len() {
            return Err(Diag::error(f.span, format!("takes {} arguments, {} are given", f.params.len(), args.len())));
        }
        for (p, a) in f.params.iter().zip(args) {
            frame.bind_names(p.info(), a);
        }
        for (p, a) in f.params.iter().zip(args) {
            frame.check(p.info(), a).map_err(|what| Diag::error(p.span(), format!("argument {}: {what}", p.name())))?;
            frame.vars.insert(p.clone(), a.clone());
        }
        self.depth += 1;
        let out = self.body(&f.body, &mut frame);
        self.depth -= 1;
        out
    }

    fn body(&mut self, body: &Body, frame: &mut Frame) -> Result<Value, Diag> {
        for b in body.bindings() {
            let value = self.expr(b, frame).map_err(|d| d.at(b.span))?;
            frame.vars.insert(b.var.clone(), value);
        }
        frame.leaf(&body.result)
    }

    fn expr(&mut self, b: &Binding, frame: &mut Frame) -> Result<Value, Diag> {
        match &b.value {
            Expr::Leaf(l) => frame.leaf(l),
            Expr::Call(c) => self.call(c, frame),
            Expr::CallTir(c) => self.call_tir(c, frame),
            Expr::CallFunc { callee, args } => {
                let args = frame.leaves(args)?;
                match frame.leaf(callee)? {
                    Value::Global(g) => match self.module.get(&g.0) {
                        Some(Func::Relax(f)) => self.function(f, &args, Frame::default()),
                        Some(Func::Prim(f)) => effect(f, &args).map(|()| Value::Tuple(Vec::new())),
                        _ => Err(Diag::error(b.span, format!("{} cannot be called here", g.0))),
                    },
                    Value::Closure(f, captured) => self.function(&f, &args, (*captured).clone()),
                    _ => Err(Diag::error(b.span, "a call of something that is no function")),
                }
            }
            Expr::CallDps { symbol, .. } | Expr::CallPacked { symbol, .. } => {
                Err(Diag::error(b.span, format!("{symbol} is external: the interpreter cannot call it"))
                    .help("compile the module and run it; its build script says what is linked"))
            }
            Expr::Tuple(items) => frame.leaves(items).map(Value::Tuple),
            Expr::TupleGetItem(l, i) => match frame.leaf(l)? {
                Value::Tuple(items) if *i < items.len() => Ok(items[*i].clone()),
                _ => Err(Diag::error(b.span, format!("there is no field {i}"))),
            },
            Expr::MatchCast(l, info) => {
                let value = frame.leaf(l)?;
                frame.bind_names(info, &value);
                frame.check(info, &value).map_err(|what| Diag::error(b.span, format!("R.match_cast: {what}")))?;
                Ok(value)
            }
            Expr::If(i) => {
                let cond = match frame.leaf(&i.cond)? {
                    Value::Tensor(t) => t.borrow().get_i64(0) != 0,
                    Value::Prim(e) => e.as_int().is_some_and(|v| v != 0),
                    _ => return Err(Diag::error(b.span, "a condition must be a bool")),
                };
                self.body(if cond { &i.then } else { &i.otherwise }, frame)
            }
            Expr::Loop(l) => {
                let value = self.while_loop(l, frame, b.span)?;
                frame.bind_names(&StructInfo::Tuple(l.out.clone()), &value);
                Ok(value)
            }
            Expr::Function(f) => Ok(Value::Closure(Rc::new((**f).clone()), Rc::new(frame.clone()))),
        }
    }

    /// Lowers the call for the shapes at hand, and runs what it becomes.
    fn call(&mut self, c: &Call, frame: &mut Frame) -> Result<Value, Diag> {
        let mut inner = Frame::default();
        let mut args = Vec::new();
        for l in &c.args {
            args.push(inner.concrete(l, frame)?);
        }
        let attrs = c.attrs.iter().map(|a| frame.attr(a)).collect();
        let call = Call { args, attrs, ..c.clone() };
        let info = ops::infer(&call, &Analyzer::new()).map_err(|d| d.at(c.span))?;
        match ops::legalize(&call, &info)? {
            Legalized::Tir { func, args, tir_vars, .. } => {
                let values = inner.leaves(&args)?;
                run_tir(&func, &values, &info, &tir_vars, &[], &inner, c.span)
            }
            Legalized::Bindings { bindings, result } => {
                for b in bindings {
                    let value = self.expr(&b, &mut inner).map_err(|d| d.at(c.span))?;
                    inner.vars.insert(b.var.clone(), value);
                }
                inner.leaf(&result)
            }
            Legalized::Keep => builtin(&call, &inner, &info),
        }
    }

    fn call_tir(&mut self, c: &CallTir, frame: &Frame) -> Result<Value, Diag> {
        let Some(Func::Prim(f)) = self.module.get(&c.func.0) else {
            return Err(Diag::error(Span::NONE, format!("R.call_tir of {}, which is no PrimFunc", c.func.0)));
        };
        run_tir(f, &frame.leaves(&c.args)?, &c.out, &c.tir_vars, &c.inplace, frame, Span::NONE)
    }
}

/// Calls a PrimFunc over inputs; gives its outputs.
fn run_tir(
    f: &PrimFunc,
    inputs: &[Value],
    out: &StructInfo,
    tir_vars: &[PrimExpr],
    inplace: &[i64],
    frame: &Frame,
    span: Span,
) -> Result<Value, Diag> {
    let mut args = inputs.to_vec();
    let tensors = out.tensors().ok_or_else(|| Diag::error(span, "outputs must be tensors"))?;
    let mut results = Vec::new();
    for (i, t) in tensors.iter().enumerate() {
        let over = inplace.get(i).and_then(|a| usize::try_from(*a).ok());
        let value = match over.and_then(|a| inputs.get(a)) {
            Some(value) => value.clone(),
            None => {
                let value = Value::tensor(frame.zeros(t, span)?);
                args.push(value.clone());
                value
            }
        };
        results.push(value);
    }
    args.extend(tir_vars.iter().map(|e| Value::Prim(frame.prim(e))));
    effect(f, &args)?;
    Ok(match (out, results.pop()) {
        (StructInfo::Tensor(_), Some(only)) => only,
        (_, last) => Value::Tuple(results.into_iter().chain(last).collect()),
    })
}

/// Calls a PrimFunc with all its arguments; writes back what it wrote.
fn effect(f: &PrimFunc, args: &[Value]) -> Result<(), Diag> {
    let mut bufs = Vec::new();
    for a in args {
        bufs.push(match a {
            Value::Tensor(t) => t.borrow().clone(),
            Value::Prim(e) => match (e.as_int(), e.as_float()) {
                (Some(v), _) => TensorBuf::scalar_i64(e.dtype(), v)?,
                (_, Some(v)) => TensorBuf::scalar_f64(e.dtype(), v)?,
                _ => return Err(Diag::error(f.span, format!("the scalar {e:?} is not known"))),
            },
            _ => return Err(Diag::error(f.span, "a PrimFunc takes tensors and scalars")),
        });
    }
    run(f, &mut bufs)?;
    for (a, b) in args.iter().zip(bufs) {
        if let Value::Tensor(t) = a {
            if *t.borrow() != b {
                *t.borrow_mut() = b;
            }
        }
    }
    Ok(())
}

/// Ops that stay calls until VM code generation.
fn builtin(c: &Call, frame: &Frame, info: &StructInfo) -> Result<Value, Diag> {
    let args = frame.leaves(&c.args)?;
    if let Some(result) = super::list::call(c, &args) {
        return result;
    }
    match (c.op.name(), args.as_slice(), info) {
        ("builtin.alloc_tensor", _, StructInfo::Tensor(t)) => Ok(Value::tensor(frame.zeros(t, c.span)?)),
        ("tensor_to_shape", [Value::Tensor(t)], _) => {
            let t = t.borrow();
            Ok(Value::Shape((0..t.len()).map(|i| t.get_i64(i)).collect()))
        }
        ("at_most", [Value::Shape(dims), Value::Shape(most)], _) => {
            match dims.len() == most.len() && dims.iter().zip(most).all(|(d, m)| d <= m) {
                true => Ok(Value::Shape(dims.clone())),
                false => Err(Diag::error(c.span, format!("R.at_most: {dims:?} is above the bound {most:?}"))),
            }
        }
        ("shape_of", [Value::Tensor(t)], _) => Ok(Value::Shape(t.borrow().shape.clone())),
        ("shape_to_tensor", [Value::Shape(dims)], _) => {
            let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
            Ok(Value::tensor(TensorBuf::from_i64(crate::dtype::DType::I64, &[rank], dims)?))
        }
        _ => Err(Diag::error(c.span, format!("R.{} has no lowering that the interpreter can run", c.op.name()))),
    }
}

fn from_constant(c: &Constant) -> Result<Value, Diag> {
    let shape: Vec<i64> = c.shape().iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)).collect();
    Ok(Value::tensor(TensorBuf::from_bytes(c.dtype(), &shape, c.data().to_vec())?))
}

impl Frame {
    fn prim(&self, e: &PrimExpr) -> PrimExpr {
        substitute(e, &self.symbols)
    }

    pub(super) fn dims(&self, dims: &[PrimExpr], span: Span) -> Result<Vec<i64>, Diag> {
        dims.iter()
            .map(|d| {
                self.prim(d).as_int().ok_or_else(|| Diag::error(span, format!("the dimension {d:?} is not known here")))
            })
            .collect()
    }

    fn zeros(&self, t: &TensorInfo, span: Span) -> Result<TensorBuf, Diag> {
        match (&t.dims, t.dtype) {
            (Dims::Known(dims), Some(dtype)) => TensorBuf::zeros(dtype, &self.dims(dims, span)?),
            _ => Err(Diag::error(span, "an output has no known shape and dtype")),
        }
    }

    pub(super) fn leaf(&self, l: &Leaf) -> Result<Value, Diag> {
        Ok(match l {
            Leaf::Var(v) => self
                .vars
                .get(v)
                .cloned()
                .ok_or_else(|| Diag::error(v.span(), format!("{} is used before it is bound", v.name())))?,
            Leaf::Const(c) => from_constant(c)?,
            Leaf::Global(g) => Value::Global(g.clone()),
            Leaf::Prim(e) => Value::Prim(self.prim(e)),
            Leaf::Shape(dims) => Value::Shape(self.dims(dims, Span::NONE)?),
            Leaf::Tuple(items) => Value::Tuple(self.leaves(items)?),
            Leaf::Str(_) | Leaf::DType(_) | Leaf::Absent => Value::Other(l.clone()),
        })
    }

    pub(super) fn leaves(&self, leaves: &[Leaf]) -> Result<Vec<Value>, Diag> {
        leaves.iter().map(|l| self.leaf(l)).collect()
    }

    fn attr(&self, a: &AttrValue) -> AttrValue {
        match a {
            AttrValue::Prim(e) => {
                let e = self.prim(e);
                e.as_int().map_or(AttrValue::Prim(e), AttrValue::Int)
            }
            AttrValue::List(items) => AttrValue::List(items.iter().map(|i| self.attr(i)).collect()),
            other => other.clone(),
        }
    }

    /// The leaf with the value it has in `outer`: tensors as variables of this frame whose shapes are known.
    fn concrete(&mut self, l: &Leaf, outer: &Frame) -> Result<Leaf, Diag> {
        Ok(match l {
            Leaf::Tuple(items) => Leaf::Tuple(items.iter().map(|i| self.concrete(i, outer)).collect::<Result<_, _>>()?),
            Leaf::Const(_) | Leaf::Str(_) | Leaf::DType(_) | Leaf::Absent | Leaf::Global(_) => l.clone(),
            Leaf::Prim(e) => Leaf::Prim(outer.prim(e)),
            Leaf::Shape(dims) => Leaf::Shape(dims.iter().map(|d| outer.prim(d)).collect()),
            Leaf::Var(v) => match outer.leaf(l)? {
                Value::Shape(dims) => Leaf::Shape(dims.iter().map(|d| PrimExpr::i64(*d)).collect()),
                Value::Prim(e) => Leaf::Prim(e),
                Value::Global(g) => Leaf::Global(g),
                Value::Other(leaf) => leaf,
                value => {
                    let info = value.info().unwrap_or(StructInfo::Object);
                    let var = Var::new(Name::from(v.name()), info);
                    self.vars.insert(var.clone(), value);
                    Leaf::Var(var)
                }
            },
        })
    }

    /// Binds the symbolic variables that stand alone as a dimension or value.
    fn bind_names(&mut self, info: &StructInfo, value: &Value) {
        let mut bind = |e: &PrimExpr, value: PrimExpr| {
            if let Some(v) = e.as_var() {
                self.symbols.entry(v.clone()).or_insert(value);
            }
        };
        match (info, value) {
            (StructInfo::Tensor(TensorInfo { dims: Dims::Known(dims), .. }), Value::Tensor(t)) => {
                dims.iter().zip(&t.borrow().shape).for_each(|(d, v)| bind(d, PrimExpr::i64(*v)));
            }
            (StructInfo::Shape(Dims::Known(dims)), Value::Shape(values)) => {
                dims.iter().zip(values).for_each(|(d, v)| bind(d, PrimExpr::i64(*v)));
            }
            (StructInfo::Prim(_, Some(e)), Value::Prim(v)) => bind(e, v.clone()),
            (StructInfo::Tuple(fields), Value::Tuple(items)) => {
                fields.iter().zip(items).for_each(|(f, i)| self.bind_names(f, i));
            }
            _ => {}
        }
    }

    /// Whether a value is what struct info says; the error says what does not fit.
    fn check(&self, info: &StructInfo, value: &Value) -> Result<(), String> {
        let negative = |dims: &Dims, actual: &[i64]| {
            dims.known().is_some_and(|d| d.iter().zip(actual).any(|(d, a)| d.as_var().is_some() && *a < 0))
        };
        let fits = |dims: &Dims, actual: &[i64]| match dims {
            _ if negative(dims, actual) => Err(format!("the shape {actual:?} has an extent below zero")),
            Dims::Unknown => Ok(()),
            Dims::Rank(n) if *n == actual.len() => Ok(()),
            Dims::Known(d)
                if d.len() == actual.len()
                    && d.iter().zip(actual).all(|(d, a)| self.prim(d).as_int().is_none_or(|d| d == *a)) =>
            {
                Ok(())
            }
            other => Err(format!("the shape {actual:?} does not fit {other:?}")),
        };
        match (info, value) {
            (StructInfo::Tensor(t), Value::Tensor(v)) => {
                let v = v.borrow();
                if t.dtype.is_some_and(|d| d != v.dtype) {
                    return Err(format!("it is of {}, wanted is {}", v.dtype, t.dtype.unwrap_or(v.dtype)));
                }
                fits(&t.dims, &v.shape)
            }
            (StructInfo::Shape(d), Value::Shape(v)) => fits(d, v),
            (StructInfo::Tuple(f), Value::Tuple(v)) if f.len() == v.len() => {
                f.iter().zip(v).try_for_each(|(f, v)| self.check(f, v))
            }
            (StructInfo::Prim(d, _), Value::Prim(e)) if *d == e.dtype() => Ok(()),
            (StructInfo::Func(_), Value::Global(_) | Value::Closure(..)) | (StructInfo::Object, _) => Ok(()),
            (want, _) => Err(format!("it is not {want:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::relax::build::FnBuilder;

    fn f32_of(shape: &[i64], values: &[f32]) -> Value {
        Value::tensor(TensorBuf::from_f32(shape, values).unwrap())
    }

    #[test]
    fn ops_symbolic_shapes_tuples_and_branches() {
        let n = prim::Var::new("n", DType::I64);
        let mut f = FnBuilder::new();
        let x = f.param("x", StructInfo::tensor(vec![n.expr(), PrimExpr::i64(2)], DType::F32));
        let c = f.param("c", StructInfo::tensor_fixed(&[], DType::BOOL));
        let info = x.info().unwrap();
        let mut then = f.fork();
        let y = then.call("nn.relu", vec![x.clone()], &[]).unwrap();
        let then = f.join(then, y);
        let mut other = f.fork();
        let y = other.call("add", vec![x.clone(), x.clone()], &[]).unwrap();
        let other = f.join(other, y);
        let r = f.if_else(c, then, other, info);
        let mut m = IRModule::new();
        m.funcs.insert("main".into(), Func::Relax(f.finish_public("main", Leaf::Tuple(vec![r, x])).unwrap()));
        let run = |rows: i64, data: &[f32], cond: i64| {
            let cond = Value::tensor(TensorBuf::from_i64(DType::BOOL, &[], &[cond]).unwrap());
            run_function(&m, "main", &[f32_of(&[rows, 2], data), cond])
        };
        assert_eq!(run(1, &[-1.0, 2.0], 1).unwrap().tensors()[0].to_f32(), [0.0, 2.0]);
        assert_eq!(run(2, &[-1.0, 2.0, 3.0, 4.0], 0).unwrap().tensors()[0].to_f32(), [-2.0, 4.0, 6.0, 8.0]);
        let e = run_function(&m, "main", &[f32_of(&[1, 3], &[0.0; 3]), f32_of(&[], &[0.0])]).unwrap_err();
        assert!(e.to_string().contains("argument x") && e.to_string().contains("[1, 3]"), "{e}");
        assert!(run_function(&m, "other", &[]).unwrap_err().to_string().contains("no function other"));
    }

    #[test]
    fn match_cast_checks() {
        let mut f = FnBuilder::new();
        let x = f.param("x", StructInfo::Tensor(TensorInfo { dims: Dims::Unknown, dtype: Some(DType::F32) }));
        let m = prim::Var::new("m", DType::I64);
        let y = f.bindings().match_cast(x, StructInfo::tensor(vec![m.expr(), m.expr()], DType::F32));
        let z = f.call("add", vec![y.clone(), y], &[]).unwrap();
        let mut module = IRModule::new();
        module.funcs.insert("main".into(), Func::Relax(f.finish_public("main", z).unwrap()));
        let out = run_function(&module, "main", &[f32_of(&[1, 1], &[3.0])]).unwrap();
        assert_eq!(out.as_tensor().unwrap().to_f32(), [6.0]);
        let e = run_function(&module, "main", &[f32_of(&[1, 2], &[3.0, 4.0])]).unwrap_err();
        assert!(e.to_string().contains("R.match_cast"), "{e}");
    }
}
