//! From Relax to steps.

use super::linear::{
    Linear, Origin, OutSlot, ParamSlot, RunShape, Step, StorageId, TensorId, Val, elements, scalar_var,
};
use super::reuse::KernelFacts;
use crate::lower::LoweredFunc;
use crate::weights::Weights;
use std::collections::BTreeMap;
use tvm_ir::arith::Analyzer;
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::name::Name;
use tvm_ir::ops::show_info;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Binding, Body, Dims, Expr, Function, GlobalVar, If, Leaf, StructInfo, TensorInfo, Var};
use tvm_ir::span::Span;

/// A kernel as the functions see it.
pub(super) struct KernelEntry<'a> {
    pub(super) index: u16,
    pub(super) lowered: &'a LoweredFunc,
    pub(super) facts: KernelFacts,
}

/// What all functions of a program share.
pub(super) struct Program<'a> {
    pub(super) kernels: BTreeMap<&'a str, KernelEntry<'a>>,
    /// Indices of the functions linearized so far.
    pub(super) functions: BTreeMap<&'a str, u16>,
    pub(super) externs: Vec<Name>,
    pub(super) weights: Weights,
}

/// Takes a function apart. Errors name what the VM has no form for, at the binding.
pub(super) fn linearize(program: &mut Program<'_>, name: &Name, f: &Function) -> Result<Linear, Diag> {
    let linear = Linear {
        name: name.clone(),
        span: f.span,
        params: Vec::new(),
        outs: Vec::new(),
        tensors: Vec::new(),
        storages: Vec::new(),
        steps: Vec::new(),
        shapes: 0,
        bounds: upper_bounds(f)?,
    };
    let mut b = Builder { program, lin: linear, env: BTreeMap::new(), analyzer: Analyzer::new() };
    for p in &f.params {
        let value = b.param(p.name().to_string(), p.info(), p.span().or(f.span))?;
        b.env.insert(p.clone(), value);
    }
    let mut steps = Vec::new();
    let result = b.body(&f.body, &mut steps)?;
    b.results(f, &result, &mut steps)?;
    b.lin.steps = steps;
    Ok(b.lin)
}

fn upper_bounds(f: &Function) -> Result<Vec<(Name, i64)>, Diag> {
    let fail = |m: String| Diag::error(f.span, m).help("write tir_var_upper_bound as {\"n\": 1024}");
    match f.attrs.get("tir_var_upper_bound") {
        None => Ok(Vec::new()),
        Some(AttrValue::Map(map)) => map
            .iter()
            .map(|(name, v)| match v.as_int() {
                Some(v) if v >= 0 => Ok((name.clone(), v)),
                _ => Err(fail(format!("the upper bound of {name} is no integer from 0 on"))),
            })
            .collect(),
        Some(_) => Err(fail("the attribute tir_var_upper_bound is no dictionary".into())),
    }
}

/// A function being taken apart.
pub(super) struct Builder<'p, 'a> {
    pub(super) program: &'p mut Program<'a>,
    pub(super) lin: Linear,
    env: BTreeMap<Var, Val>,
    analyzer: Analyzer,
}

impl Builder<'_, '_> {
    fn param(&mut self, name: String, info: &StructInfo, span: Span) -> Result<Val, Diag> {
        if let StructInfo::Tuple(fields) = info {
            let fields = fields.iter().enumerate().map(|(i, f)| self.param(format!("{name}.{i}"), f, span));
            return Ok(Val::Tuple(fields.collect::<Result<_, _>>()?));
        }
        let reg = u16::try_from(self.lin.params.len())
            .map_err(|_| Diag::error(span, "a function has at most 65535 parameters"))?;
        let mut scalar = None;
        let value = match info {
            StructInfo::Tensor(t) => {
                let dims = t.dims.known().map(<[_]>::to_vec);
                Val::Tensor(self.lin.add(name.as_str().into(), dims, t.dtype, Origin::Param(reg)))
            }
            StructInfo::Prim(dtype, value) => {
                let e = value.clone().unwrap_or_else(|| scalar_var(&name, *dtype));
                scalar = Some(e.clone());
                Val::Prim(e)
            }
            StructInfo::Shape(Dims::Known(dims)) => Val::Shape(dims.clone()),
            StructInfo::Shape(_) => Val::RunShape(RunShape::Param(reg)),
            other => {
                let m = format!("parameter {name} is {}, which compiled functions cannot take", show_info(other));
                return Err(Diag::error(span, m).help("take tensors, shapes, scalars and tuples of them"));
            }
        };
        self.lin.params.push(ParamSlot { name, info: info.clone(), scalar });
        Ok(value)
    }

    fn body(&mut self, body: &Body, steps: &mut Vec<Step>) -> Result<Val, Diag> {
        for binding in body.bindings() {
            let value = self.binding(binding, steps).map_err(|d| d.at(binding.span))?;
            self.env.insert(binding.var.clone(), value);
        }
        self.leaf(&body.result, self.lin.span)
    }

    fn binding(&mut self, b: &Binding, steps: &mut Vec<Step>) -> Result<Val, Diag> {
        match &b.value {
            Expr::Leaf(l) => self.leaf(l, b.span),
            Expr::Tuple(items) => self.tuple(items, b.span),
            Expr::TupleGetItem(l, i) => match self.leaf(l, b.span)? {
                Val::Tuple(items) if *i < items.len() => Ok(items[*i].clone()),
                _ => Err(Diag::error(b.span, format!("there is no field {i} of {}", b.var.name()))),
            },
            Expr::CallTir(c) => self.call_tir(c, b, steps),
            Expr::Call(c) => self.op(c, b, steps),
            Expr::CallFunc { callee: Leaf::Global(gv), args } => {
                let Some(callee) = self.program.functions.get(gv.0.as_str()).copied() else {
                    return Err(Diag::error(b.span, format!("there is no Relax function {}", gv.0)));
                };
                let args = args.iter().map(|l| self.leaf(l, b.span)).collect::<Result<_, _>>()?;
                let value = self.made(b.var.name(), b.var.info(), b.span)?;
                steps.push(Step::Function { callee, args, outs: value.tensors() });
                Ok(value)
            }
            Expr::CallFunc { .. } | Expr::Function(_) => {
                Err(Diag::error(b.span, format!("{} is a function value, which has no compiled form", b.var.name()))
                    .help("lift local functions into the module (LambdaLift)"))
            }
            Expr::CallDps { symbol, args, out } => {
                let args = args.iter().map(|l| self.leaf(l, b.span)).collect::<Result<_, _>>()?;
                let value = self.made(b.var.name(), out, b.span)?;
                let callee = self.external(symbol, b.span)?;
                steps.push(Step::Extern { callee, args, outs: value.tensors() });
                Ok(value)
            }
            Expr::CallPacked { symbol, .. } => {
                Err(Diag::error(b.span, format!("the result of {symbol} has no size that is known at build time"))
                    .help("call it with R.call_dps_packed"))
            }
            Expr::MatchCast(l, info) => {
                let value = self.leaf(l, b.span)?;
                let cast = self.cast(&value, info, b.var.name(), b.span)?;
                steps.push(Step::MatchCast { value, info: info.clone(), name: b.var.name().clone(), span: b.span });
                Ok(cast)
            }
            Expr::If(i) => self.conditional(i, b, steps),
            Expr::Loop(l) => self.while_loop(l, b, steps),
        }
    }

    fn tuple(&mut self, items: &[Leaf], span: Span) -> Result<Val, Diag> {
        Ok(Val::Tuple(items.iter().map(|l| self.leaf(l, span)).collect::<Result<_, _>>()?))
    }

    pub(super) fn leaf(&mut self, leaf: &Leaf, span: Span) -> Result<Val, Diag> {
        match leaf {
            Leaf::Var(v) => match self.env.get(v) {
                Some(value) => Ok(value.clone()),
                None => Err(Diag::error(span, format!("variable {} is used before it is bound", v.name()))),
            },
            Leaf::Const(c) => {
                let offset = self.program.weights.add(c).map_err(|d| d.at(span))?;
                let offset = usize::try_from(offset)
                    .map_err(|_| Diag::error(span, "the weights take more bytes than memory can address"))?;
                let dims = c.shape().iter().map(|d| i64::try_from(*d).map(PrimExpr::i64)).collect::<Result<_, _>>();
                let dims = dims.map_err(|_| Diag::error(span, "a constant's dimension exceeds 2^63"))?;
                let t = self.lin.add("const".into(), Some(dims), Some(c.dtype()), Origin::Weight(offset));
                Ok(Val::Tensor(t))
            }
            Leaf::Prim(e) => Ok(Val::Prim(e.clone())),
            Leaf::Shape(dims) => Ok(Val::Shape(dims.clone())),
            Leaf::Tuple(items) => self.tuple(items, span),
            Leaf::Global(GlobalVar(name)) => {
                Err(Diag::error(span, format!("function {name} is used as a value, which has no compiled form")))
            }
            Leaf::Str(_) | Leaf::DType(_) | Leaf::Absent => {
                Err(Diag::error(span, "strings, data types and absent values have no compiled form"))
            }
        }
    }

    pub(super) fn tensor(&mut self, leaf: &Leaf, span: Span) -> Result<TensorId, Diag> {
        match self.leaf(leaf, span)? {
            Val::Tensor(t) => Ok(t),
            _ => Err(Diag::error(span, "a tensor is needed here")),
        }
    }

    /// Fresh tensors of a struct info whose sizes are known.
    pub(super) fn made(&mut self, name: &Name, info: &StructInfo, span: Span) -> Result<Val, Diag> {
        match info {
            StructInfo::Tensor(TensorInfo { dims: Dims::Known(dims), dtype: Some(dtype) }) => {
                Ok(Val::Tensor(self.lin.add(name.clone(), Some(dims.clone()), Some(*dtype), Origin::Made)))
            }
            StructInfo::Tuple(fields) => {
                let fields = fields.iter().map(|f| self.made(name, f, span));
                Ok(Val::Tuple(fields.collect::<Result<_, _>>()?))
            }
            other => {
                let m = format!("{name} is {}: its size cannot be planned", show_info(other));
                Err(Diag::error(span, m).help("give it a known shape, symbolic where needed, with R.match_cast"))
            }
        }
    }

    fn external(&mut self, symbol: &Name, span: Span) -> Result<u16, Diag> {
        let index = self.program.externs.iter().position(|n| n == symbol).unwrap_or_else(|| {
            self.program.externs.push(symbol.clone());
            self.program.externs.len() - 1
        });
        u16::try_from(index).map_err(|_| Diag::error(span, "a program has at most 65536 external functions"))
    }

    fn cast(&mut self, value: &Val, info: &StructInfo, name: &Name, span: Span) -> Result<Val, Diag> {
        match (value, info) {
            (Val::Tensor(t), StructInfo::Tensor(info)) => {
                let old = self.lin.tensors[*t].clone();
                let dims = info.dims.known().map(<[_]>::to_vec).or(old.dims);
                Ok(Val::Tensor(self.lin.view(*t, name.clone(), dims, info.dtype.or(old.dtype))))
            }
            (Val::Tuple(items), StructInfo::Tuple(fields)) if items.len() == fields.len() => {
                let cast = items.iter().zip(fields).map(|(v, i)| self.cast(v, i, name, span));
                Ok(Val::Tuple(cast.collect::<Result<_, _>>()?))
            }
            (Val::Shape(_) | Val::RunShape(_), StructInfo::Shape(Dims::Known(dims))) => Ok(Val::Shape(dims.clone())),
            (Val::Prim(_), StructInfo::Prim(_, Some(e))) => Ok(Val::Prim(e.clone())),
            (_, StructInfo::Object | StructInfo::Shape(_) | StructInfo::Prim(_, None)) => Ok(value.clone()),
            (_, info) => {
                let m = format!("R.match_cast: {name} cannot be cast to {}", show_info(info));
                Err(Diag::error(span, m))
            }
        }
    }

    /// A conditional: what its branches give is written to memory that both share.
    fn conditional(&mut self, i: &If, b: &Binding, steps: &mut Vec<Step>) -> Result<Val, Diag> {
        let cond = self.leaf(&i.cond, b.span)?;
        let dest = self.made(b.var.name(), b.var.info(), b.span)?;
        let mut branch = |body: &Body| {
            let first = self.lin.storages.len();
            let mut steps = Vec::new();
            let result = self.body(body, &mut steps)?;
            let (from, to) = (result.tensors(), dest.tensors());
            if from.len() != to.len() || result.flat().len() != from.len() {
                return Err(Diag::error(
                    b.span,
                    format!("a branch of {} does not give what the other does", b.var.name()),
                ));
            }
            for (from, to) in from.into_iter().zip(to) {
                self.deliver(from, to, first, &mut steps);
            }
            Ok(steps)
        };
        let then = branch(&i.then)?;
        let otherwise = branch(&i.otherwise)?;
        steps.push(Step::If { cond, then, otherwise });
        Ok(dest)
    }

    /// Has `from` written where `to` lies if it was made since the storage `first`; else copies it.
    fn deliver(&mut self, from: TensorId, to: TensorId, first: usize, steps: &mut Vec<Step>) {
        let (source, target) = (self.lin.storage_of(from), self.lin.storage_of(to));
        let made = source >= first && self.lin.storages[source].origin == Origin::Made;
        let room = self.lin.tensors[to].dims.clone().unwrap_or_default();
        if made && self.lin.tensors[to].dtype.is_some_and(|d| self.fits(source, &room, d)) {
            self.lin.storages[source].merged = Some(target);
        } else {
            steps.push(Step::Copy { from, to });
        }
    }

    /// Whether what is written to a storage has as many elements as `dims`: what a cast promises later does not count.
    fn fits(&self, storage: StorageId, dims: &[PrimExpr], dtype: DType) -> bool {
        let written = &self.lin.tensors[self.lin.storages[storage].tensor];
        let same = |own: &[PrimExpr]| self.analyzer.prove_equal(&elements(own), &elements(dims));
        written.dtype == Some(dtype) && written.dims.as_deref().is_some_and(same)
    }

    /// Has results written to the caller's outputs: directly where the memory is this function's and given back once.
    fn results(&mut self, f: &Function, result: &Val, steps: &mut Vec<Step>) -> Result<(), Diag> {
        let tensors = result.tensors();
        let infos = f.ret.tensors().unwrap_or_default();
        if infos.len() != tensors.len() || result.flat().len() != tensors.len() {
            let m = format!("function {} returns {}", self.lin.name, show_info(&f.ret));
            return Err(Diag::error(f.span, m).help("a compiled function returns tensors and tuples of tensors"));
        }
        for (i, (tensor, info)) in tensors.iter().zip(&infos).enumerate() {
            let name = if tensors.len() == 1 { "out".to_string() } else { format!("out{i}") };
            let (Some(dims), Some(dtype)) = (info.dims.known(), info.dtype) else {
                let m = format!("the shape of what {} returns is known at run time only", self.lin.name);
                return Err(Diag::error(f.span, m)
                    .note(format!("it returns {}", show_info(&f.ret)))
                    .help("declare the return type with the symbols of the parameters' shapes"));
            };
            let out = Origin::Out(u16::try_from(i).map_err(|_| Diag::error(f.span, "too many outputs"))?);
            let slot = OutSlot { name, dims: dims.to_vec(), dtype };
            let root = self.lin.storage_of(*tensor);
            if self.lin.storages[root].origin == Origin::Made && self.fits(root, dims, dtype) {
                self.lin.storages[root].origin = out;
            } else {
                let to = self.lin.add(slot.name.as_str().into(), Some(slot.dims.clone()), Some(dtype), out);
                steps.push(Step::Copy { from: *tensor, to });
            }
            self.lin.outs.push(slot);
        }
        Ok(())
    }
}
