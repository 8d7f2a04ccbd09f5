//! FuseTIR: functions that FuseOps made become PrimFuncs.

use super::canonicalize_bindings::canonicalize;
use super::dead_code_elimination;
use super::support::{is_primitive, map_functions, prim_func, renew, rewrite};
use crate::pass::{Pass, PassCx};
use std::collections::{BTreeMap, BTreeSet};
use tvm_ir::attrs::{AttrValue, Attrs};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::name::Name;
use tvm_ir::prim::{Buffer, BufferNode, PrimExpr, Scope, Substitution, Var as PrimVar};
use tvm_ir::relax::{Binding, CallTir, Dims, Expr, Function, Leaf, StructInfo, TensorInfo, Var};
use tvm_ir::span::Span;
use tvm_ir::tir::{Block, Param, PrimFunc, Stmt, rewrite_stmt};

/// Makes one PrimFunc of every `Primitive` function (whose bindings are `call_tir`, tuples and their fields), with
/// intermediate results as allocations of the root block, and its calls calls of that PrimFunc. Then removes what is
/// not called any more.
pub(super) static FUSE_TIR: Pass =
    Pass { name: "FuseTIR", doc: "makes one PrimFunc of each Primitive function", params: &[], run };

/// A fused function as its callers need it.
struct Fused {
    func: PrimFunc,
    /// For each output the argument it overwrites, or −1; empty when there is none.
    inplace: Vec<i64>,
    /// For each scalar given whether it is a parameter: what the shape of a buffer tells is none.
    scalars: Vec<bool>,
}

fn run(module: &mut IRModule, _cx: &PassCx<'_>) -> Result<(), Diags> {
    map_functions(module, |_, _, f| Ok(canonicalize(f)))?;
    let mut diags = Diags::new();
    let mut fused: BTreeMap<Name, Fused> = BTreeMap::new();
    for (name, f) in module.relax_funcs().filter(|(_, f)| is_primitive(f)) {
        let made = Builder::new(module, name, f.span).function(f);
        if let Some(f) = diags.ok(made) {
            fused.insert(name.clone(), f);
        }
    }
    diags.into_result(())?;
    map_functions(module, |_, _, f| {
        if is_primitive(f) { Ok(f.clone()) } else { rewrite::rewrite_function(f, &mut |b, _| call(&fused, b)) }
    })?;
    for (name, f) in fused {
        module.funcs.insert(name, Func::Prim(f.func));
    }
    dead_code_elimination::eliminate(module, &[]);
    Ok(())
}

/// A call of a fused function becomes `call_tir`; shapes among the arguments give the scalar parameters.
fn call(fused: &BTreeMap<Name, Fused>, b: Binding) -> Result<rewrite::Step, Diag> {
    let Expr::CallFunc { callee: Leaf::Global(gv), args } = &b.value else { return Ok(rewrite::Step::keep(b)) };
    let Some(f) = fused.get(&gv.0) else { return Ok(rewrite::Step::keep(b)) };
    let mut tensors = Vec::new();
    let mut tir_vars = Vec::new();
    for arg in args {
        match arg.info() {
            Some(StructInfo::Shape(Dims::Known(dims))) => tir_vars.extend(dims),
            Some(StructInfo::Prim(_, Some(value))) => tir_vars.push(value),
            Some(StructInfo::Tensor(_)) => tensors.push(arg.clone()),
            _ => {
                return Err(Diag::error(
                    b.span,
                    format!("an argument of {} is no tensor, shape or known scalar", gv.0),
                ));
            }
        }
    }
    let mut kept = f.scalars.iter();
    tir_vars.retain(|_| kept.next().copied().unwrap_or(true));
    let call =
        CallTir { func: gv.clone(), args: tensors, out: b.var.info().clone(), tir_vars, inplace: f.inplace.clone() };
    Ok(rewrite::Step::keep(Binding { value: Expr::CallTir(call), ..b }))
}

struct Builder<'a> {
    module: &'a IRModule,
    name: &'a Name,
    span: Span,
    /// The buffers a variable stands for: several for a tuple.
    buffers: BTreeMap<Var, Vec<Buffer>>,
    allocs: Vec<Buffer>,
    bodies: Vec<Stmt>,
}

impl<'a> Builder<'a> {
    fn new(module: &'a IRModule, name: &'a Name, span: Span) -> Builder<'a> {
        Builder { module, name, span, buffers: BTreeMap::new(), allocs: Vec::new(), bodies: Vec::new() }
    }

    fn error(&self, span: Span, what: impl std::fmt::Display) -> Diag {
        Diag::error(span.or(self.span), format!("FuseTIR cannot fuse {}: {what}", self.name))
    }

    fn function(mut self, f: &Function) -> Result<Fused, Diag> {
        let scopes = self.scopes(f)?;
        let mut inputs = Vec::new();
        let mut scalars: Vec<PrimVar> = Vec::new();
        for p in &f.params {
            match p.info() {
                StructInfo::Tensor(t) => {
                    let scope = scopes.get(p).cloned().unwrap_or(Scope::Global);
                    let b = self.buffer(p.name(), t, scope, p.span())?;
                    inputs.push(b.clone());
                    self.buffers.insert(p.clone(), vec![b]);
                }
                StructInfo::Prim(_, Some(e)) => scalars.extend(e.as_var().cloned()),
                StructInfo::Shape(Dims::Known(dims)) => {
                    for d in dims {
                        let v = d.as_var().ok_or_else(|| {
                            self.error(p.span(), format!("dimension {d:?} of {} is not a variable", p.name()))
                        })?;
                        scalars.push(v.clone());
                    }
                }
                _ => {
                    return Err(self
                        .error(p.span(), format!("parameter {} is no tensor, shape or known scalar", p.name()))
                        .help("pass the fields of a tuple one by one"));
                }
            }
        }
        for b in f.body.bindings() {
            let buffers = match &b.value {
                Expr::CallTir(c) => self.call_tir(c, b.span)?,
                other => self.alias(other, b.span)?,
            };
            self.buffers.insert(b.var.clone(), buffers);
        }
        let results = self.alias(&Expr::Leaf(f.body.result.clone()), f.span)?;
        let mut outputs: Vec<Buffer> = Vec::new();
        let mut inplace = Vec::new();
        for r in results {
            if let Some(i) = inputs.iter().position(|b| *b == r) {
                inplace.push(i64::try_from(i).unwrap_or(-1));
            } else if outputs.contains(&r) {
                return Err(self.error(f.span, format!("it returns {} twice", r.name)));
            } else {
                inplace.push(-1);
                outputs.push(r);
            }
        }
        if inplace.iter().all(|i| *i < 0) {
            inplace.clear();
        }
        self.allocs.retain(|a| !outputs.contains(a));
        let buffers: Vec<Buffer> = inputs.into_iter().chain(outputs).collect();
        let told = |v: &PrimVar| buffers.iter().any(|b| b.shape.iter().any(|d| d.as_var() == Some(v)));
        let kept: Vec<bool> = scalars.iter().map(|v| !told(v)).collect();
        scalars.retain(|v| !told(v));
        let params = buffers.into_iter().map(Param::Buffer);
        let params = params.chain(scalars.into_iter().map(Param::Scalar)).collect();
        let body = unique_block_names(Stmt::seq(self.bodies));
        let func = PrimFunc {
            params,
            attrs: Attrs::from([("tir.noalias".into(), AttrValue::Bool(true))]),
            body: Stmt::Block(Box::new(Block::root(self.allocs, body))),
            span: f.span,
        };
        Ok(Fused { func, inplace, scalars: kept })
    }

    /// The storage scope in which the PrimFuncs called take each parameter.
    fn scopes(&self, f: &Function) -> Result<BTreeMap<Var, Scope>, Diag> {
        let mut out = BTreeMap::new();
        for b in f.body.bindings() {
            if let Expr::CallTir(c) = &b.value {
                let callee = prim_func(self.module, &c.func, b.span)?;
                for (arg, buffer) in c.args.iter().zip(callee.buffers()) {
                    if let Leaf::Var(v) = arg {
                        out.insert(v.clone(), buffer.scope.clone());
                    }
                }
            }
        }
        Ok(out)
    }

    fn buffer(&self, name: &Name, t: &TensorInfo, scope: Scope, span: Span) -> Result<Buffer, Diag> {
        let (Dims::Known(shape), Some(dtype)) = (&t.dims, t.dtype) else {
            return Err(self.error(span, format!("shape or dtype of {name} is not known")));
        };
        Ok(Buffer::from_node(BufferNode {
            name: name.clone(),
            dtype,
            shape: shape.clone(),
            strides: Vec::new(),
            elem_offset: None,
            scope,
            span,
        }))
    }

    /// The buffers of a value that computes nothing.
    fn alias(&self, e: &Expr, span: Span) -> Result<Vec<Buffer>, Diag> {
        match e {
            Expr::Leaf(Leaf::Var(v)) => self
                .buffers
                .get(v)
                .cloned()
                .ok_or_else(|| self.error(span, format!("{} is not a tensor of the function", v.name()))),
            Expr::Leaf(Leaf::Tuple(items)) | Expr::Tuple(items) => {
                let mut out = Vec::new();
                for i in items {
                    out.extend(self.alias(&Expr::Leaf(i.clone()), span)?);
                }
                Ok(out)
            }
            Expr::TupleGetItem(tuple, index) => {
                let buffers = self.alias(&Expr::Leaf(tuple.clone()), span)?;
                let Some(StructInfo::Tuple(fields)) = tuple.info() else {
                    return Err(self.error(span, "a field of something that is no tuple"));
                };
                let count = |s: &StructInfo| s.tensors().map_or(0, |t| t.len());
                let start = fields.iter().take(*index).map(count).sum();
                let len = fields.get(*index).map_or(0, count);
                Ok(buffers.into_iter().skip(start).take(len).collect())
            }
            Expr::Leaf(Leaf::Const(_)) => Err(self.error(span, "it returns a constant")),
            Expr::MatchCast(..) => Err(self.error(span, "it has a match_cast")),
            _ => Err(self.error(span, "a binding is no call_tir")),
        }
    }

    /// Takes in the body of the PrimFunc called; gives the buffers of its outputs.
    fn call_tir(&mut self, c: &CallTir, span: Span) -> Result<Vec<Buffer>, Diag> {
        let callee = prim_func(self.module, &c.func, span)?;
        let Some(root) = callee.root() else {
            return Err(self
                .error(span, format!("{} has no root block", c.func.0))
                .help("fuse before blocks are lowered to loops"));
        };
        let params: Vec<&Buffer> = callee.buffers().collect();
        let mut sub = Substitution::default();
        let scalars = callee.params.iter().filter_map(|p| match p {
            Param::Scalar(v) => Some(v.clone()),
            Param::Buffer(_) => None,
        });
        sub.vars.extend(scalars.zip(c.tir_vars.iter().cloned()));
        let mut targets = Vec::new();
        for arg in &c.args {
            targets.extend(self.alias(&Expr::Leaf(arg.clone()), span)?);
        }
        let inputs = targets.len();
        let outs = c.out.tensors().ok_or_else(|| self.error(span, "call_tir gives something else than tensors"))?;
        let in_place = |i: usize| c.inplace.get(i).and_then(|a| usize::try_from(*a).ok());
        let fresh = (0..outs.len()).filter(|i| in_place(*i).is_none()).count();
        if params.len() != inputs + fresh {
            return Err(self.error(
                span,
                format!("{} takes {} buffers, the call gives {}", c.func.0, params.len(), inputs + fresh),
            ));
        }
        for (param, target) in params.iter().zip(&targets) {
            bind_dims(&param.shape, &target.shape, &mut sub);
            sub.buffers.push(((*param).clone(), target.clone()));
        }
        // The callee's own allocations come before its outputs.
        let root = root.clone();
        let mut body = Stmt::Block(Box::new(root));
        let mut own_outputs = params.iter().skip(inputs);
        let mut new_outputs = Vec::new();
        let mut results = Vec::new();
        for (i, out) in outs.iter().enumerate() {
            if let Some(arg) = in_place(i) {
                let target = targets.get(arg).ok_or_else(|| self.error(span, "inplace index out of range"))?;
                results.push(target.clone());
                continue;
            }
            let Some(param) = own_outputs.next() else { continue };
            let name = self.intermediate_name(&param.name);
            let new = self.buffer(&name, out, param.scope.clone(), span)?;
            bind_dims(&param.shape, &new.shape, &mut sub);
            sub.buffers.push(((*param).clone(), new.clone()));
            new_outputs.push(new.clone());
            results.push(new);
        }
        body = renew::renew(body, &mut sub);
        if let Stmt::Block(root) = body {
            self.allocs.extend(root.allocs);
            self.bodies.push(root.body);
        }
        self.allocs.extend(new_outputs);
        Ok(results)
    }

    fn intermediate_name(&self, base: &str) -> Name {
        let mut name = format!("{base}_intermediate");
        let mut n = 0;
        while self.allocs.iter().any(|a| *a.name == *name) {
            n += 1;
            name = format!("{name}_{n}");
        }
        name.into()
    }
}

/// Symbolic extents of the callee are what the actual buffer has there.
fn bind_dims(param: &[PrimExpr], actual: &[PrimExpr], sub: &mut Substitution) {
    for (p, a) in param.iter().zip(actual) {
        if let Some(v) = p.as_var() {
            sub.vars.entry(v.clone()).or_insert_with(|| a.clone());
        }
    }
}

/// Gives each block a name of its own: `T_add`, `T_add_1`, …
fn unique_block_names(s: Stmt) -> Stmt {
    let mut taken: BTreeSet<Name> = BTreeSet::new();
    rewrite_stmt(s, &mut |s| match s {
        Stmt::Block(mut b) => {
            let base = b.name.clone();
            let mut n = 0u64;
            while !taken.insert(b.name.clone()) {
                n += 1;
                b.name = format!("{base}_{n}").into();
            }
            Stmt::Block(b)
        }
        other => other,
    })
}
