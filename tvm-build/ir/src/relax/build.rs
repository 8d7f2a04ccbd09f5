//! Building bindings and functions: emitting a call completes its attributes and infers its struct info.

use super::{Binding, Block, Body, Call, Dims, Effects, Expr, Function, If, Leaf, StructInfo, Var, leaf_vars};
use crate::arith::Analyzer;
use crate::attrs::{AttrValue, Attrs};
use crate::diag::Diag;
use crate::name::{Name, NameSupply};
use crate::ops;
use crate::prim::free_vars;
use crate::span::Span;
use std::collections::BTreeSet;

/// Collects bindings. Variables are named `lv`, `lv1`, … unless a name is given.
#[derive(Default)]
pub struct BindingBuilder {
    /// The bindings so far.
    pub bindings: Vec<Binding>,
    /// Names given so far.
    pub names: NameSupply,
    /// Facts about symbolic variables.
    pub analyzer: Analyzer,
    /// Location given to emitted bindings.
    pub span: Span,
    /// Name of what casts give, which errors at run time say; empty: `lv`.
    pub cast_name: String,
}

impl BindingBuilder {
    /// A builder without bindings.
    pub fn new() -> BindingBuilder {
        BindingBuilder::default()
    }

    /// Binds a value whose struct info is known.
    pub fn emit_as(&mut self, hint: &str, value: Expr, info: StructInfo) -> Var {
        let var = Var::at(self.names.fresh(hint), info, self.span);
        self.bindings.push(Binding { var: var.clone(), value, span: self.span });
        var
    }

    /// Infers and binds a call. Errors are the op's inference errors.
    pub fn emit(&mut self, call: Call) -> Result<Leaf, Diag> {
        let info = ops::infer(&call, &self.analyzer)?;
        Ok(Leaf::Var(self.emit_as("lv", Expr::Call(call), info)))
    }

    /// Completes, infers and binds a call by the op's name after `R.`. Errors on an unknown op, on arguments and
    /// attributes that are not the op's, and the op's inference errors.
    pub fn call(&mut self, op: &str, args: Vec<Leaf>, attrs: &[(&str, AttrValue)]) -> Result<Leaf, Diag> {
        let Some(found) = ops::lookup(op) else {
            let diag = Diag::error(self.span, format!("there is no op R.{op}"));
            let like = ops::suggest(op);
            return Err(if like.is_empty() {
                diag
            } else {
                diag.help(format!("did you mean R.{}?", like.join(", R.")))
            });
        };
        let call = ops::make_call(found, args, attrs, self.span)?;
        self.emit(call)
    }

    /// Binds a field of a tuple; a tuple written in place gives the field itself.
    /// Errors when the value is no tuple of that many fields.
    pub fn tuple_get(&mut self, tuple: &Leaf, index: usize) -> Result<Leaf, Diag> {
        if let Leaf::Tuple(items) = tuple {
            if let Some(item) = items.get(index) {
                return Ok(item.clone());
            }
        }
        match tuple.info() {
            Some(StructInfo::Tuple(fields)) if index < fields.len() => {
                let value = Expr::TupleGetItem(tuple.clone(), index);
                Ok(Leaf::Var(self.emit_as("lv", value, fields[index].clone())))
            }
            info => {
                let what = info.map_or_else(|| "no value".to_string(), |i| ops::show_info(&i));
                Err(Diag::error(self.span, format!("there is no field {index} of {what}")))
            }
        }
    }

    /// Binds `R.match_cast(value, info)`: a run-time check that also binds new symbolic variables.
    pub fn match_cast(&mut self, value: Leaf, info: StructInfo) -> Leaf {
        let hint = if self.cast_name.is_empty() { "lv".to_owned() } else { self.cast_name.clone() };
        Leaf::Var(self.emit_as(&hint, Expr::MatchCast(value, info.clone()), info))
    }
}

/// Builds a whole function. What has no effects and no control flow goes into dataflow blocks; which variables these
/// output follows from their uses.
#[derive(Default)]
pub struct FnBuilder {
    params: Vec<Var>,
    attrs: Attrs,
    closed: Vec<Vec<Binding>>,
    inner: BindingBuilder,
    impure: bool,
}

impl FnBuilder {
    /// A function without parameters and bindings.
    pub fn new() -> FnBuilder {
        FnBuilder::default()
    }

    /// Location of what is emitted from here on.
    pub fn set_span(&mut self, span: Span) {
        self.inner.span = span;
    }

    /// A fact about the function, as `num_input`.
    pub fn attr(&mut self, name: &str, value: impl Into<AttrValue>) {
        self.attrs.insert(name.into(), value.into());
    }

    /// The bindings being built: emit calls here.
    pub fn bindings(&mut self) -> &mut BindingBuilder {
        &mut self.inner
    }

    /// A further parameter; the name is made unique.
    pub fn param(&mut self, name: &str, info: StructInfo) -> Leaf {
        let var = Var::at(self.inner.names.fresh(name), info, self.inner.span);
        self.params.push(var.clone());
        Leaf::Var(var)
    }

    /// Emits a call by the op's name; see [`BindingBuilder::call`]. An op with effects makes the function impure and
    /// stands outside of dataflow blocks.
    pub fn call(&mut self, op: &str, args: Vec<Leaf>, attrs: &[(&str, AttrValue)]) -> Result<Leaf, Diag> {
        if ops::lookup(op).is_some_and(|o| o.def().effects == Effects::Impure) {
            self.close();
            self.impure = true;
            let out = self.inner.call(op, args, attrs);
            self.close();
            return out;
        }
        self.inner.call(op, args, attrs)
    }

    /// A builder for a branch or loop body that may use this function's variables; give it back with
    /// [`FnBuilder::join`] so that names stay unique.
    pub fn fork(&self) -> FnBuilder {
        let inner = BindingBuilder {
            names: self.inner.names.clone(),
            analyzer: self.inner.analyzer.clone(),
            span: self.inner.span,
            ..BindingBuilder::new()
        };
        FnBuilder { inner, ..FnBuilder::default() }
    }

    /// Ends a fork: its bindings and a result as a body.
    pub fn join(&mut self, fork: FnBuilder, result: Leaf) -> Body {
        self.impure |= fork.impure;
        let mut fork = fork;
        fork.close();
        self.inner.names = fork.inner.names;
        Body { blocks: blocks(fork.closed, &result), result }
    }

    /// A conditional whose branches were made with [`FnBuilder::fork`]; `info` is what both branches give.
    pub fn if_else(&mut self, cond: Leaf, then: Body, otherwise: Body, info: StructInfo) -> Leaf {
        self.close();
        let value = Expr::If(Box::new(If { cond, then, otherwise }));
        let var = self.inner.emit_as("gv", value, info);
        self.close();
        Leaf::Var(var)
    }

    /// Ends a block: what follows stands in another one.
    fn close(&mut self) {
        if !self.inner.bindings.is_empty() {
            self.closed.push(std::mem::take(&mut self.inner.bindings));
        }
    }

    /// The function. Its result is bound to `gv`, the output of the last block.
    pub fn finish(mut self, result: Leaf) -> Result<Function, Diag> {
        let Some(ret) = result.info() else {
            return Err(Diag::error(self.inner.span, "a function cannot return an absent value or a function name"));
        };
        let value = match result {
            Leaf::Tuple(items) => Expr::Tuple(items),
            other => Expr::Leaf(other),
        };
        let gv = Leaf::Var(self.inner.emit_as("gv", value, ret));
        self.finish_bound(gv)
    }

    /// As [`FnBuilder::finish`], for a result that is a variable bound already, as `gv`. What is returned is told over the
    /// parameters' symbolic variables.
    pub fn finish_bound(mut self, gv: Leaf) -> Result<Function, Diag> {
        let Some(ret) = gv.info() else {
            return Err(Diag::error(self.inner.span, "a function cannot return an absent value or a function name"));
        };
        let mut known = BTreeSet::new();
        self.params.iter().for_each(|p| p.info().visit_exprs(&mut |e| known.extend(free_vars(e))));
        self.close();
        Ok(Function {
            params: self.params,
            body: Body { blocks: blocks(self.closed, &gv), result: gv },
            ret: ret.over(&known),
            attrs: self.attrs,
            pure: !self.impure,
            span: self.inner.span,
        })
    }

    /// As [`FnBuilder::finish`], for a public function: `global_symbol` is its name.
    pub fn finish_public(mut self, name: impl Into<Name>, result: Leaf) -> Result<Function, Diag> {
        self.attrs.insert("global_symbol".into(), AttrValue::Str(name.into()));
        self.finish(result)
    }
}

/// Runs of bindings as blocks: dataflow blocks where that is allowed, with the variables used later as outputs.
fn blocks(runs: Vec<Vec<Binding>>, result: &Leaf) -> Vec<Block> {
    let mut used: BTreeSet<Var> = leaf_vars(&Expr::Leaf(result.clone())).into_iter().collect();
    let mut out = Vec::new();
    for bindings in runs.into_iter().rev() {
        let inner: Vec<Var> = bindings.iter().flat_map(|b| leaf_vars(&b.value)).collect();
        let plain = bindings.iter().any(|b| !is_dataflow(&b.value));
        out.push(if plain {
            Block::Plain(bindings)
        } else {
            let outputs = bindings.iter().map(|b| &b.var).filter(|v| used.contains(v)).cloned().collect();
            Block::Dataflow { bindings, outputs }
        });
        used.extend(inner);
    }
    out.reverse();
    out
}

/// Whether a value may stand in a dataflow block.
pub fn is_dataflow(value: &Expr) -> bool {
    match value {
        Expr::If(_) => false,
        Expr::Call(c) => c.op.def().effects != Effects::Impure,
        Expr::CallPacked { pure, .. } => *pure,
        Expr::CallTir(c) => c.inplace.is_empty(),
        Expr::Leaf(_)
        | Expr::CallDps { .. }
        | Expr::CallFunc { .. }
        | Expr::Tuple(_)
        | Expr::TupleGetItem(..)
        | Expr::MatchCast(..)
        | Expr::Loop(_)
        | Expr::Function(_) => true,
    }
}

/// A leaf that stands for dimensions: `R.shape([…])`.
pub fn shape_leaf(dims: &Dims) -> Option<Leaf> {
    dims.known().map(|d| Leaf::Shape(d.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn builds_a_dataflow_function() {
        let mut f = FnBuilder::new();
        let x = f.param("x", StructInfo::tensor_fixed(&[1, 4], DType::F32));
        let w = f.param("w", StructInfo::tensor_fixed(&[3, 4], DType::F32));
        let t = f.call("permute_dims", vec![w], &[]).unwrap();
        let y = f.call("matmul", vec![x, t], &[]).unwrap();
        let e = f.call("matmull", vec![], &[]).unwrap_err().to_string();
        assert!(e.contains("did you mean R.matmul?"), "{e}");
        let func = f.finish_public("main", y).unwrap();
        assert_eq!(func.ret, StructInfo::tensor_fixed(&[1, 3], DType::F32));
        let [Block::Dataflow { bindings, outputs }] = &func.body.blocks[..] else { panic!() };
        let names: Vec<&str> = bindings.iter().map(|b| b.var.name().as_str()).collect();
        assert_eq!(names, ["lv", "lv1", "gv"]);
        assert_eq!(outputs.len(), 1);
        assert!(func.pure && !func.is_private());
    }

    #[test]
    fn a_conditional_ends_the_dataflow_block() {
        let mut f = FnBuilder::new();
        let info = StructInfo::tensor_fixed(&[4], DType::F32);
        let c = f.param("c", StructInfo::tensor_fixed(&[], DType::BOOL));
        let x = f.param("x", info.clone());
        let y = f.call("nn.relu", vec![x.clone()], &[]).unwrap();
        let mut then = f.fork();
        let z = then.call("add", vec![y.clone(), x.clone()], &[]).unwrap();
        let then = f.join(then, z);
        let fork = f.fork();
        let otherwise = f.join(fork, x);
        let out = f.if_else(c, then, otherwise, info);
        let func = f.finish(out).unwrap();
        let [Block::Dataflow { outputs, .. }, Block::Plain(_), Block::Dataflow { .. }] = &func.body.blocks[..] else {
            panic!()
        };
        assert_eq!(outputs.iter().map(Leaf::from).collect::<Vec<_>>(), [y]);
    }
}
