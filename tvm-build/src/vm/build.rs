//! From Relax to steps.

use super::linear::{
    Linear, Origin, ParamSlot, RunShape, Step, StorageId, SymbolBound, TensorId, Val, elements, scalar_var,
};
use super::reuse::KernelFacts;
use crate::external::{self, Declaration, Externals};
use crate::lower::LoweredFunc;
use crate::weights::Weights;
use std::collections::{BTreeMap, BTreeSet};
use tvm_ir::arith::{Analyzer, IntBound};
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::dtype::DType;
use tvm_ir::name::Name;
use tvm_ir::ops::show_info;
use tvm_ir::prim::{self, PrimExpr};
use tvm_ir::relax::{Binding, Body, Dims, Expr, Function, GlobalVar, If, Leaf, StructInfo, TensorInfo, Var};
use tvm_ir::span::Span;

/// What names of builtins begin with: `R.call_dps_packed` of such a name calls the builtin with its arguments and outputs.
pub(crate) const BUILTIN: &str = "vm.builtin.";

/// A kernel as the functions see it.
pub(super) struct KernelEntry<'a> {
    pub(super) index: u16,
    pub(super) lowered: &'a LoweredFunc,
    pub(super) facts: KernelFacts,
}

/// A function that was taken apart before, as its callers see it.
pub(super) struct FunctionEntry {
    pub(super) index: u16,
    /// For each result, if it is returned, its rank.
    pub(super) returned: Vec<Option<Option<usize>>>,
}

impl FunctionEntry {
    pub(super) fn new(index: u16, lin: &Linear) -> FunctionEntry {
        let mut returned = vec![None; lin.outs.len() + lin.returned.len()];
        for r in &lin.returned {
            if let Some(slot) = returned.get_mut(r.position) {
                *slot = Some(r.rank);
            }
        }
        FunctionEntry { index, returned }
    }
}

/// What all functions of a program share.
pub(super) struct Program<'a> {
    pub(super) kernels: BTreeMap<&'a str, KernelEntry<'a>>,
    /// The functions linearized so far.
    pub(super) functions: BTreeMap<&'a str, FunctionEntry>,
    /// The external functions called so far.
    pub(super) externs: Vec<Declaration>,
    /// What the build declares.
    pub(super) declared: &'a Externals,
    pub(super) weights: Weights,
}

/// Takes a function apart; `called`: others call it. Errors name what the VM has no form for, at the binding.
pub(super) fn linearize(program: &mut Program<'_>, name: &Name, f: &Function, called: bool) -> Result<Linear, Diag> {
    let linear = Linear {
        name: name.clone(),
        span: f.span,
        params: Vec::new(),
        outs: Vec::new(),
        returned: Vec::new(),
        tensors: Vec::new(),
        storages: Vec::new(),
        lists: BTreeSet::new(),
        steps: Vec::new(),
        shapes: 0,
        bounds: declared_bounds(f)?,
        entry: BTreeSet::new(),
        most: Vec::new(),
        called,
    };
    let mut b = Builder {
        program,
        lin: linear,
        env: BTreeMap::new(),
        analyzer: Analyzer::new(),
        bound: BTreeSet::new(),
        shape_bounds: BTreeMap::new(),
    };
    for p in &f.params {
        let value = b.param(p.name().to_string(), p.info(), p.span().or(f.span))?;
        b.env.insert(p.clone(), value);
    }
    b.bound = b.lin.entry.clone();
    let mut steps = Vec::new();
    let result = b.body(&f.body, &mut steps)?;
    b.results(f, &result, &mut steps)?;
    b.lin.steps = steps;
    Ok(b.lin)
}

/// What the attributes `tir_var_lower_bound` and `tir_var_upper_bound` say.
fn declared_bounds(f: &Function) -> Result<BTreeMap<Name, IntBound>, Diag> {
    let mut bounds: BTreeMap<Name, IntBound> = BTreeMap::new();
    for attr in ["tir_var_lower_bound", "tir_var_upper_bound"] {
        let fail = |m: String| Diag::error(f.span, m).help(format!("write {attr} as {{\"n\": 1024}}"));
        let map = match f.attrs.get(attr) {
            None => continue,
            Some(AttrValue::Map(map)) => map,
            Some(_) => return Err(fail(format!("the attribute {attr} is no dictionary"))),
        };
        for (name, value) in map.iter() {
            let Some(value) = value.as_int().filter(|v| *v >= 0) else {
                return Err(fail(format!("the bound of {name} in {attr} is no integer from 0 on")));
            };
            let bound = bounds.entry(name.clone()).or_insert(IntBound { min: 0, max: IntBound::POS_INF });
            match attr {
                "tir_var_lower_bound" => bound.min = value,
                _ => bound.max = value,
            }
        }
    }
    Ok(bounds)
}

/// A function being taken apart.
pub(super) struct Builder<'p, 'a> {
    pub(super) program: &'p mut Program<'a>,
    pub(super) lin: Linear,
    env: BTreeMap<Var, Val>,
    analyzer: Analyzer,
    /// Symbols bound so far.
    pub(super) bound: BTreeSet<prim::Var>,
    /// Upper bounds of the extents of shapes that steps make.
    pub(super) shape_bounds: BTreeMap<usize, Vec<PrimExpr>>,
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
            StructInfo::Object => Val::Tensor(self.lin.add_list(name.as_str().into(), Origin::Param(reg))),
            other => {
                let m = format!("parameter {name} is {}, which compiled functions cannot take", show_info(other));
                return Err(Diag::error(span, m).help("take tensors, shapes, scalars, lists and tuples of them"));
            }
        };
        // What stands alone is told by the argument.
        let mut alone = |e: &PrimExpr| self.lin.entry.extend(e.as_var().cloned());
        info.visit_exprs(&mut alone);
        scalar.iter().for_each(alone);
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
                let Some(entry) = self.program.functions.get(gv.0.as_str()) else {
                    return Err(Diag::error(b.span, format!("there is no Relax function {}", gv.0)));
                };
                let (callee, kinds) = (entry.index, entry.returned.clone());
                let args = args.iter().map(|l| self.leaf(l, b.span)).collect::<Result<_, _>>()?;
                let value = self.given(b.var.name(), b.var.info(), b.span, &mut kinds.iter().map(Option::is_some))?;
                let (mut outs, mut returned) = (Vec::new(), Vec::new());
                for (t, kind) in value.tensors().into_iter().zip(&kinds) {
                    if kind.is_some() { &mut returned } else { &mut outs }.push(t);
                }
                let ranks: Option<Vec<usize>> = kinds.into_iter().flatten().collect();
                let Some(ranks) = ranks else {
                    let m = format!("the rank of what {} returns is not known", gv.0);
                    return Err(Diag::error(b.span, m).help("give it a rank with R.match_cast"));
                };
                steps.push(Step::Function { callee, args, outs, returned, rank: ranks.iter().sum() });
                Ok(value)
            }
            Expr::CallFunc { .. } | Expr::Function(_) => {
                Err(Diag::error(b.span, format!("{} is a function value, which has no compiled form", b.var.name()))
                    .help("lift local functions into the module (LambdaLift)"))
            }
            Expr::CallDps { symbol, args, out } if symbol.starts_with(BUILTIN) => {
                let Some((_, builtin)) = tvm_runtime::builtin::ALL.iter().find(|(_, b)| b.name == symbol.as_str())
                else {
                    return Err(Diag::error(b.span, format!("the VM has no builtin {symbol}")));
                };
                let operand = |l: &Leaf| match l {
                    Leaf::Str(name) => Ok(Val::Str(name.clone())),
                    l => self.leaf(l, b.span),
                };
                let args = args.iter().map(operand).collect::<Result<_, _>>()?;
                let value = self.made(b.var.name(), out, b.span)?;
                steps.push(Step::Write { builtin, args, outs: value.tensors() });
                Ok(value)
            }
            Expr::CallDps { symbol, args, out } => {
                let (callee, args) = self.external(symbol, args, out, b.span)?;
                let value = self.made(b.var.name(), out, b.span)?;
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
                info.visit_exprs(&mut |e| self.bound.extend(e.as_var().cloned()));
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

    /// The tensors of a struct info: those for which `value` says so are given by a step, the others are fresh.
    pub(super) fn given(
        &mut self,
        name: &Name,
        info: &StructInfo,
        span: Span,
        value: &mut dyn Iterator<Item = bool>,
    ) -> Result<Val, Diag> {
        match info {
            StructInfo::Tuple(fields) => {
                let fields = fields.iter().map(|f| self.given(name, f, span, value));
                Ok(Val::Tuple(fields.collect::<Result<_, _>>()?))
            }
            StructInfo::Tensor(t) if value.next().unwrap_or(false) => {
                Ok(Val::Tensor(self.lin.add(name.clone(), None, t.dtype, Origin::Value)))
            }
            StructInfo::Object => {
                value.next();
                Ok(Val::Tensor(self.lin.add_list(name.clone(), Origin::Value)))
            }
            other => self.made(name, other, span),
        }
    }

    /// The number of an external function, and what a call gives it, in the order of its parameters.
    fn external(
        &mut self,
        symbol: &Name,
        args: &[Leaf],
        out: &StructInfo,
        span: Span,
    ) -> Result<(u16, Vec<Val>), Diag> {
        let declared = self.program.declared;
        let declaration = declared.lookup(symbol, args, out, span)?;
        let first = |d: Diags| d.0.into_iter().next().unwrap_or_else(|| Diag::error(span, "the call does not fit"));
        let order = external::bind(declaration, args, out, span).map_err(first)?;
        let mut given = Vec::new();
        for a in args {
            for value in self.leaf(a, span)?.flat() {
                match value {
                    Val::Shape(dims) => given.extend(dims.into_iter().map(Val::Prim)),
                    other => given.push(other),
                }
            }
        }
        let args = order.into_iter().map(|i| given.get(i).cloned()).collect::<Option<Vec<_>>>();
        let Some(args) = args.filter(|a| a.len() == given.len()) else {
            let m = format!("external function `{symbol}`: the extents of a shape are known at run time only");
            return Err(Diag::error(span, m).help("name them with R.match_cast"));
        };
        let index = self.program.externs.iter().position(|d| d.name == *symbol).unwrap_or_else(|| {
            self.program.externs.push(declaration.clone());
            self.program.externs.len() - 1
        });
        let index =
            u16::try_from(index).map_err(|_| Diag::error(span, "a program has at most 65536 external functions"))?;
        Ok((index, args))
    }

    fn cast(&mut self, value: &Val, info: &StructInfo, name: &Name, span: Span) -> Result<Val, Diag> {
        match (value, info) {
            (Val::Tensor(t), StructInfo::Tensor(info)) => {
                let old = self.lin.tensors[*t].clone();
                if let (Some(new), Some(old)) = (info.dims.known(), &old.dims) {
                    self.at_most(new, old, false);
                }
                let dims = info.dims.known().map(<[_]>::to_vec).or(old.dims);
                Ok(Val::Tensor(self.lin.view(*t, name.clone(), dims, info.dtype.or(old.dtype))))
            }
            (Val::Tuple(items), StructInfo::Tuple(fields)) if items.len() == fields.len() => {
                let cast = items.iter().zip(fields).map(|(v, i)| self.cast(v, i, name, span));
                Ok(Val::Tuple(cast.collect::<Result<_, _>>()?))
            }
            (Val::Shape(_) | Val::RunShape(_), StructInfo::Shape(Dims::Known(dims))) => {
                match value {
                    Val::Shape(old) => self.at_most(dims, old, false),
                    Val::RunShape(RunShape::Made(i)) => {
                        let most = self.shape_bounds.get(i).cloned().unwrap_or_default();
                        self.at_most(dims, &most, true);
                    }
                    _ => {}
                }
                Ok(Val::Shape(dims.clone()))
            }
            (Val::Prim(_), StructInfo::Prim(_, Some(e))) => Ok(Val::Prim(e.clone())),
            (_, StructInfo::Object | StructInfo::Shape(_) | StructInfo::Prim(_, None)) => Ok(value.clone()),
            (_, info) => {
                let m = format!("R.match_cast: {name} cannot be cast to {}", show_info(info));
                Err(Diag::error(span, m))
            }
        }
    }

    /// Notes upper bounds of the variables that a cast binds.
    fn at_most(&mut self, new: &[PrimExpr], most: &[PrimExpr], check: bool) {
        for (var, most) in new.iter().zip(most).filter_map(|(e, most)| Some((e.as_var()?, most))) {
            if self.bound.insert(var.clone()) {
                self.lin.most.push(SymbolBound { var: var.clone(), most: most.clone(), check });
            }
        }
    }

    /// A conditional: what its branches give is written to memory that both share; where its size depends on the
    /// branch, it stays where the branch has it.
    fn conditional(&mut self, i: &If, b: &Binding, steps: &mut Vec<Step>) -> Result<Val, Diag> {
        let cond = self.leaf(&i.cond, b.span)?;
        let mut unknown = Vec::new();
        for info in super::results::flat(b.var.info()) {
            unknown.push(info.as_tensor().is_none_or(|t| t.dims.known().is_none()));
        }
        let dest = self.given(b.var.name(), b.var.info(), b.span, &mut unknown.into_iter())?;
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
        if self.lin.storages[target].origin == Origin::Value {
            return steps.push(Step::Move { from, to });
        }
        let made = source >= first && self.lin.storages[source].origin == Origin::Made;
        let room = self.lin.tensors[to].dims.clone().unwrap_or_default();
        if made && self.lin.tensors[to].dtype.is_some_and(|d| self.fits(source, &room, d)) {
            self.lin.storages[source].merged = Some(target);
        } else {
            steps.push(Step::Copy { from, to });
        }
    }

    /// Whether what is written to a storage has as many elements as `dims`: what a cast promises later does not count.
    pub(super) fn fits(&self, storage: StorageId, dims: &[PrimExpr], dtype: DType) -> bool {
        let written = &self.lin.tensors[self.lin.storages[storage].tensor];
        let same = |own: &[PrimExpr]| self.analyzer.prove_equal(&elements(own), &elements(dims));
        written.dtype == Some(dtype) && written.dims.as_deref().is_some_and(same)
    }
}
