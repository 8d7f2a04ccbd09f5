//! The function that a group of bindings becomes.

use super::symbolic;
use std::collections::BTreeMap;
use tvm_ir::attrs::{AttrValue, Attrs};
use tvm_ir::diag::Diag;
use tvm_ir::name::NameSupply;
use tvm_ir::prim::free_vars;
use tvm_ir::relax::{Binding, Block, Body, Dims, Expr, Function, Leaf, StructInfo, Var, map_expr_leaves};

/// An argument of a fused function's call.
pub(crate) enum Arg {
    /// A leaf of the caller.
    Leaf(Leaf),
    /// A field of a tuple: only the fields used are passed.
    Field(Leaf, usize, StructInfo),
}

/// The bindings of a group.
#[derive(Default)]
pub(crate) struct Members {
    /// In order.
    pub(crate) bindings: Vec<Binding>,
    /// The variables that are used outside of the group, in the order of their use.
    pub(crate) outputs: Vec<Var>,
}

impl Members {
    pub(crate) fn binds(&self, v: &Var) -> bool {
        self.bindings.iter().any(|b| b.var == *v)
    }

    pub(crate) fn output(&mut self, v: &Var) {
        if !self.outputs.contains(v) {
            self.outputs.push(v.clone());
        }
    }

    pub(crate) fn append(&mut self, b: &Binding, is_output: bool) {
        self.bindings.push(b.clone());
        if is_output {
            self.output(&b.var);
        }
    }

    /// `fused_a_b_c`, after the PrimFuncs called.
    pub(crate) fn name(&self) -> String {
        let mut name = String::from("fused");
        for b in &self.bindings {
            if let Expr::CallTir(c) = &b.value {
                name.push('_');
                name.push_str(&c.func.0);
            }
        }
        name
    }

    /// The fused function, and what to call it with (over the variables before fusion).
    pub(crate) fn function(&self, span: tvm_ir::span::Span) -> Result<(Function, Vec<Arg>), Diag> {
        let mut s = Signature::default();
        for b in &self.bindings {
            match &b.value {
                Expr::CallTir(c) => {
                    for a in &c.args {
                        s.argument(self, a, b.span)?;
                    }
                }
                Expr::TupleGetItem(t, i) if !t.as_var().is_some_and(|v| self.binds(v)) => {
                    s.field(t, *i, b.var.info());
                }
                _ => {}
            }
        }
        let mut names = NameSupply::new();
        let mut map: BTreeMap<Var, Leaf> = BTreeMap::new();
        let mut bindings = Vec::new();
        let mut outputs: BTreeMap<Var, Leaf> = BTreeMap::new();
        for b in &self.bindings {
            if let Expr::TupleGetItem(t, i) = &b.value {
                if let Some(param) = s.field_param(t, *i) {
                    map.insert(b.var.clone(), Leaf::Var(param.clone()));
                    if self.outputs.contains(&b.var) {
                        outputs.insert(b.var.clone(), Leaf::Var(param));
                    }
                    continue;
                }
            }
            let value = map_expr_leaves(&b.value, &mut |l| {
                l.as_var().and_then(|v| map.get(v)).cloned().or_else(|| s.param(l)).unwrap_or_else(|| l.clone())
            });
            let var = if self.outputs.contains(&b.var) {
                let var = Var::at(names.fresh("gv"), b.var.info().clone(), b.var.span());
                map.insert(b.var.clone(), Leaf::Var(var.clone()));
                outputs.insert(b.var.clone(), Leaf::Var(var.clone()));
                var
            } else {
                b.var.clone()
            };
            bindings.push(Binding { var, value, span: b.span });
        }
        let results: Vec<Leaf> = self.outputs.iter().filter_map(|o| outputs.get(o).cloned()).collect();
        let infos: Vec<StructInfo> = self.outputs.iter().map(|o| o.info().clone()).collect();
        let (result, ret) = match (results.as_slice(), infos.as_slice()) {
            ([leaf], [info]) => (leaf.clone(), info.clone()),
            _ => (Leaf::Tuple(results.clone()), StructInfo::Tuple(infos)),
        };
        let block_outputs =
            bindings.iter().map(|b| b.var.clone()).filter(|v| results.iter().any(|r| r.as_var() == Some(v))).collect();
        let mut function = Function {
            params: s.params.iter().map(|p| p.0.clone()).collect(),
            body: Body { blocks: vec![Block::Dataflow { bindings, outputs: block_outputs }], result },
            ret,
            attrs: Attrs::from([("Primitive".into(), AttrValue::Bool(true))]),
            pure: true,
            span,
        };
        let mut args: Vec<Arg> = s.params.into_iter().map(|p| p.1).collect();
        // Symbolic variables that no parameter's shape gives are passed as a shape.
        let free: Vec<_> = symbolic::free_symbolic(&function).into_iter().map(|v| v.expr()).collect();
        if !free.is_empty() {
            function.params.push(Var::new("tir_vars", StructInfo::Shape(Dims::Known(free.clone()))));
            args.push(Arg::Leaf(Leaf::Shape(free)));
        }
        Ok((symbolic::renew_symbolic(&function), args))
    }
}

/// The parameters of a fused function with the arguments they stand for, in the order of first use.
#[derive(Default)]
struct Signature {
    params: Vec<(Var, Arg)>,
    constants: usize,
}

impl Signature {
    fn argument(&mut self, m: &Members, l: &Leaf, span: tvm_ir::span::Span) -> Result<(), Diag> {
        if self.param(l).is_some() {
            return Ok(());
        }
        let name = match l {
            Leaf::Var(v) if m.binds(v) => return Ok(()),
            Leaf::Var(v) => v.name().clone(),
            Leaf::Prim(e) if free_vars(e).is_empty() => return Ok(()),
            _ => {
                self.constants += 1;
                format!("param_{}", self.constants - 1).into()
            }
        };
        let info = l.info().ok_or_else(|| Diag::error(span, "R.call_tir takes tensors; this argument has no value"))?;
        self.params.push((Var::new(name, info), Arg::Leaf(l.clone())));
        Ok(())
    }

    fn field(&mut self, tuple: &Leaf, index: usize, info: &StructInfo) {
        if self.field_param(tuple, index).is_none() {
            let base = tuple.as_var().map_or("param", |v| v.name().as_str());
            let var = Var::new(format!("{base}_{index}"), info.clone());
            self.params.push((var, Arg::Field(tuple.clone(), index, info.clone())));
        }
    }

    fn param(&self, l: &Leaf) -> Option<Leaf> {
        let found = self.params.iter().find(|(_, a)| match (a, l) {
            (Arg::Leaf(Leaf::Const(a)), Leaf::Const(b)) => a.same_as(b),
            (Arg::Leaf(a), b) => a == b,
            (Arg::Field(..), _) => false,
        });
        found.map(|(p, _)| Leaf::Var(p.clone()))
    }

    fn field_param(&self, tuple: &Leaf, index: usize) -> Option<Var> {
        let found = self.params.iter().find(|(_, a)| matches!(a, Arg::Field(t, i, _) if t == tuple && *i == index));
        found.map(|(p, _)| p.clone())
    }
}
