//! CheckIndices: ops that read or write by index get indices that are in bounds.

use super::support::{map_functions, rewrite};
use crate::pass::{Pass, PassCx};
use std::collections::BTreeMap;
use tvm_ir::arith::Analyzer;
use tvm_ir::attrs::AttrValue;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::dtype::DType;
use tvm_ir::interp::TensorBuf;
use tvm_ir::module::IRModule;
use tvm_ir::prim::{PrimExpr, free_vars};
use tvm_ir::relax::build::BindingBuilder;
use tvm_ir::relax::{Binding, Call, Dims, Expr, Leaf, StructInfo, Var};
use tvm_ir::span::Span;

/// `R.take` in its mode "fast", `R.gather_elements`, `R.gather_nd`, `R.scatter_elements` and `R.scatter_nd` trust their indices.
/// Where these are not known to be in bounds they are first checked (`R.checked_index`): one that is out of range is an error
/// when the program runs, one below zero counts from the end. What else such an op takes for granted of its operands' extents is
/// compared (`R.match_cast`). An index that is a scalar expression is clamped.
///
/// Modes "clip" and "wrap" need an element to take: an axis of which it is not known that it has one is checked.
pub(super) static CHECK_INDICES: Pass = Pass {
    name: "CheckIndices",
    doc: "indices that come from data are checked before they are used",
    params: &[],
    run,
};

fn run(module: &mut IRModule, _cx: &PassCx<'_>) -> Result<(), Diags> {
    map_functions(module, |_, _, f| {
        let mut checker = Checker::default();
        f.params.iter().for_each(|p| checker.sizes(p.info()));
        rewrite::rewrite_function(f, &mut |mut b, _| {
            let mut out = Vec::new();
            if let Expr::Call(call) = &b.value {
                if let Some((call, before)) = checker.call(call).map_err(|d| d.at(call.span.or(b.span)))? {
                    out = before;
                    out.iter_mut().for_each(|inner| inner.span = b.span);
                    b.value = Expr::Call(call);
                }
            }
            checker.sizes(b.var.info());
            for b in out.iter().chain([&b]) {
                checker.values.insert(b.var.clone(), b.value.clone());
            }
            out.push(b);
            Ok(rewrite::Step::Bind(out))
        })
    })
}

#[derive(Default)]
struct Checker {
    analyzer: Analyzer,
    values: BTreeMap<Var, Expr>,
}

/// Calls of these ops have the elements of their first argument, and no others.
const KEEP_VALUES: &[&str] =
    &["broadcast_to", "expand_dims", "flatten", "flip", "permute_dims", "repeat", "reshape", "squeeze", "tile"];

impl Checker {
    /// Extents are at least 0.
    fn sizes(&mut self, info: &StructInfo) {
        let mut dims = Vec::new();
        info.visit_exprs(&mut |e| dims.extend(free_vars(e)));
        if let StructInfo::Tensor(_) | StructInfo::Shape(_) = info {
            dims.iter().for_each(|v| self.analyzer.assume_nonnegative(v));
        }
    }

    /// The call with operands that it may trust, and the bindings before it; `None` if it can stay.
    fn call(&self, call: &Call) -> Result<Option<(Call, Vec<Binding>)>, Diag> {
        let dims = |i: usize| {
            let info = call.args.get(i).and_then(Leaf::info)?;
            info.as_tensor()?.dims.known().map(<[_]>::to_vec)
        };
        let mut new = Changes { checker: self, call: call.clone(), builder: BindingBuilder::new() };
        let (Some(x), at) = (dims(0), dims(1)) else { return Ok(None) };
        let axis = || {
            let rank = i64::try_from(x.len()).unwrap_or(i64::MAX);
            let axis = call.attr("axis").as_int().unwrap_or(0);
            usize::try_from(if axis < 0 { axis + rank } else { axis }).ok().filter(|a| *a < x.len())
        };
        match (call.op.name(), at) {
            ("take", at) => {
                let Some(axis) = axis() else { return Ok(None) };
                let fast = call.attr("mode").as_str() == Some("fast");
                match (call.args.get(1), at) {
                    (Some(Leaf::Prim(e)), _) if fast && !self.inside(e, &x[axis]) => {
                        new.set("mode", "clip".into());
                        new.some(&PrimExpr::i64(1), &x[axis])?;
                    }
                    (Some(Leaf::Prim(_)), _) if !fast => new.some(&PrimExpr::i64(1), &x[axis])?,
                    (_, Some(_)) if fast => new.indices(&x[axis..=axis], true)?,
                    (_, Some(at)) => {
                        let count = at.iter().fold(PrimExpr::i64(1), |n, d| n * d.clone());
                        new.some(&count.min(PrimExpr::i64(1)), &x[axis])?;
                    }
                    _ => {}
                }
            }
            ("gather_elements", Some(at)) => {
                let Some(axis) = axis() else { return Ok(None) };
                new.indices(&x[axis..=axis], true)?;
                new.others(axis, &at, &x)?;
            }
            ("gather_nd", Some(at)) => {
                let batch = call.attr("batch_dims").as_int().and_then(|b| usize::try_from(b).ok()).unwrap_or(0);
                let Some(n) = tuple(&at).filter(|n| batch + n <= x.len() && batch < at.len()) else { return Ok(None) };
                new.agree(1, x[..batch].iter().chain(&at[batch..]).cloned().collect())?;
                new.indices(&x[batch..batch + n], false)?;
            }
            ("scatter_elements", Some(at)) => {
                let Some(axis) = axis() else { return Ok(None) };
                new.indices(&x[axis..=axis], true)?;
                new.others(axis, &at, &x)?;
                new.agree(2, at)?;
            }
            ("scatter_nd", Some(at)) => {
                let Some(n) = tuple(&at).filter(|n| *n <= x.len()) else { return Ok(None) };
                new.indices(&x[..n], false)?;
                new.agree(2, at[..at.len() - 1].iter().chain(&x[n..]).cloned().collect())?;
            }
            _ => return Ok(None),
        }
        let changed = new.call != *call || !new.builder.bindings.is_empty();
        Ok(changed.then_some((new.call, new.builder.bindings)))
    }

    fn inside(&self, e: &PrimExpr, extent: &PrimExpr) -> bool {
        let e = e.cast(DType::I64);
        self.analyzer.prove(&e.clone().ge(0)) && self.analyzer.prove(&e.lt(extent.clone()))
    }

    /// Whether the elements of an index tensor are known to be from 0 to below an extent, or one extent a place of its last axis.
    fn safe(&self, indices: &Leaf, extents: &[PrimExpr], one: bool) -> bool {
        match indices {
            Leaf::Const(c) => {
                let fixed: Option<Vec<i64>> = extents.iter().map(PrimExpr::as_int).collect();
                fixed.zip(integers(c)).is_some_and(|(extents, values)| {
                    values.iter().zip(extents.iter().cycle()).all(|(v, n)| (0..*n).contains(v))
                })
            }
            Leaf::Var(v) => match self.values.get(v) {
                Some(Expr::Leaf(l) | Expr::MatchCast(l, _)) => self.safe(l, extents, one),
                Some(Expr::Call(c)) => {
                    let first = |c: &Call| c.args.first().is_some_and(|l| self.safe(l, extents, one));
                    match c.op.name() {
                        "checked_index" => c.args.get(1).and_then(|l| self.known(l)).is_some_and(|own| {
                            let same = |(a, b)| self.analyzer.prove_equal(a, b);
                            own.len() == extents.len() && own.iter().zip(extents).all(same)
                        }),
                        "astype" => matches!(c.attr("dtype"), AttrValue::DType(DType::I32 | DType::I64)) && first(c),
                        name => one && KEEP_VALUES.contains(&name) && first(c),
                    }
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The elements of a small integer tensor that is computed from extents.
    fn known(&self, leaf: &Leaf) -> Option<Vec<PrimExpr>> {
        match leaf {
            Leaf::Const(c) => Some(integers(c)?.into_iter().map(PrimExpr::i64).collect()),
            Leaf::Var(v) => match self.values.get(v)? {
                Expr::Leaf(l) => self.known(l),
                Expr::Call(c) if c.op.name() == "reshape" => self.known(c.args.first()?),
                Expr::Call(c) if c.op.name() == "shape_to_tensor" => match c.args.first()? {
                    Leaf::Shape(dims) => Some(dims.clone()),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}

/// A call and what is to be done before it.
struct Changes<'a> {
    checker: &'a Checker,
    call: Call,
    builder: BindingBuilder,
}

impl Changes<'_> {
    fn set(&mut self, name: &str, value: AttrValue) {
        let at = self.call.op.def().attrs.iter().position(|a| a.name == name);
        if let Some(attr) = at.and_then(|at| self.call.attrs.get_mut(at)) {
            *attr = value;
        }
    }

    /// Checks the indices, argument 1, unless they are known to be in bounds.
    fn indices(&mut self, extents: &[PrimExpr], one: bool) -> Result<(), Diag> {
        let Some(indices) = self.call.args.get(1).cloned() else { return Ok(()) };
        let none = extents.is_empty();
        if none || self.checker.safe(&indices, extents, one) {
            return Ok(());
        }
        let fixed: Option<Vec<i64>> = extents.iter().map(PrimExpr::as_int).collect();
        let extents = match fixed {
            Some(fixed) => {
                let bytes: Vec<u8> = fixed.iter().flat_map(|n| n.to_le_bytes()).collect();
                let shape = if one { Vec::new() } else { vec![fixed.len() as u64] };
                let made = Constant::new(DType::I64, shape, Bytes::new(bytes));
                Leaf::Const(made.map_err(|_| Diag::error(Span::NONE, "the extents are malformed"))?)
            }
            None => {
                let list = self.builder.call("shape_to_tensor", vec![Leaf::Shape(extents.to_vec())], &[])?;
                if one { self.builder.call("reshape", vec![list, Leaf::Shape(Vec::new())], &[])? } else { list }
            }
        };
        let checked = self.builder.call("checked_index", vec![indices, extents], &[])?;
        self.call.args[1] = checked;
        Ok(())
    }

    /// Has an operand the dimensions `wanted`, compared at run time where they are not known to be.
    fn agree(&mut self, operand: usize, wanted: Vec<PrimExpr>) -> Result<(), Diag> {
        let Some(leaf) = self.call.args.get(operand).cloned() else { return Ok(()) };
        let Some(StructInfo::Tensor(info)) = leaf.info() else { return Ok(()) };
        let (Some(dims), Some(dtype)) = (info.dims.known(), info.dtype) else { return Ok(()) };
        let same = |(a, b)| self.checker.analyzer.prove_equal(a, b);
        if dims.len() != wanted.len() || dims.iter().zip(&wanted).all(same) {
            return Ok(());
        }
        self.call.args[operand] = self.builder.match_cast(leaf, StructInfo::tensor(wanted, dtype));
        Ok(())
    }

    /// Along other axes than `axis` there are at most as many indices as elements.
    fn others(&mut self, axis: usize, at: &[PrimExpr], x: &[PrimExpr]) -> Result<(), Diag> {
        for (_, (own, n)) in at.iter().zip(x).enumerate().filter(|(a, _)| *a != axis) {
            self.some(own, n)?;
        }
        Ok(())
    }

    /// Checks that `least` is at most `extent`.
    fn some(&mut self, least: &PrimExpr, extent: &PrimExpr) -> Result<(), Diag> {
        let (least, extent) = (least.cast(DType::I64), extent.cast(DType::I64));
        if self.checker.analyzer.prove(&least.clone().le(extent.clone())) {
            return Ok(());
        }
        // As elements of a tensor: what is known of a shape is not compared again.
        let smaller = Leaf::Shape(vec![least.clone().min(extent)]);
        let smaller = self.builder.call("shape_to_tensor", vec![smaller], &[])?;
        let smaller = self.builder.call("tensor_to_shape", vec![smaller], &[])?;
        self.builder.match_cast(smaller, StructInfo::Shape(Dims::Known(vec![least])));
        Ok(())
    }
}

/// Length of an index tuple.
fn tuple(at: &[PrimExpr]) -> Option<usize> {
    at.last().and_then(PrimExpr::as_int).and_then(|n| usize::try_from(n).ok())
}

fn integers(c: &Constant) -> Option<Vec<i64>> {
    let shape = c.shape().iter().map(|d| i64::try_from(*d)).collect::<Result<Vec<_>, _>>().ok()?;
    let data: &[u8] = c.data();
    let values = TensorBuf::from_bytes(c.dtype(), &shape, data.to_vec()).ok()?;
    c.dtype().is_integer().then(|| (0..values.len()).map(|i| values.get_i64(i)).collect())
}
