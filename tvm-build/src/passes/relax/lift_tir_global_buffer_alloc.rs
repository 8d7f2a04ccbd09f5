//! LiftTIRGlobalBufferAlloc: what a PrimFunc allocates in main memory with a symbolic size becomes the caller's.

use super::support::{map_functions, rewrite};
use crate::pass::{Pass, PassCx};
use crate::tir_tools::symbolic_vars;
use std::collections::BTreeMap;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::name::Name;
use tvm_ir::prim::{Buffer, BufferNode, PrimExpr, Scope, Var, substitute};
use tvm_ir::relax::{Binding, CallTir, Dims, Expr, Leaf, StructInfo, Var as RelaxVar};
use tvm_ir::tir::{Block, Param, PrimFunc, Stmt, rewrite_stmt};

/// A buffer of symbolic size has no place in a kernel, whose scratch memory is counted at build time. It becomes a further
/// output: `y = call_tir(f, (x,), Y)` becomes `t = call_tir(f, (x,), (Y, W)); y = t[0]`, and the memory planner places
/// `W` as it does any tensor. Runs after kernels are scheduled, when it is known which buffers are left.
pub(super) static LIFT_TIR_GLOBAL_BUFFER_ALLOC: Pass = Pass {
    name: "LiftTIRGlobalBufferAlloc",
    doc: "buffers of symbolic size that PrimFuncs allocate become outputs that the caller provides",
    params: &[],
    run,
};

/// What was lifted out of a function.
struct Lifted {
    /// The buffers, in order; parameters now.
    buffers: Vec<Buffer>,
    /// The function as it was.
    before: PrimFunc,
    /// For each scalar parameter that it had whether it has it still: the shape of a buffer may give it now.
    scalars: Vec<bool>,
}

fn run(module: &mut IRModule, _cx: &PassCx<'_>) -> Result<(), Diags> {
    lift_levels(std::slice::from_mut(module))
}

/// The pass over copies of one module, whose PrimFuncs are scheduled for different targets. A function is called alike
/// in all of them: it takes a buffer for each that it has in any copy, and buffers of the same type and shape in
/// different copies are one.
pub(crate) fn lift_levels(levels: &mut [IRModule]) -> Result<(), Diags> {
    let Some(first) = levels.first() else { return Ok(()) };
    let names: Vec<Name> = first.prim_funcs().map(|(name, _)| name.clone()).collect();
    let mut lifted: Vec<BTreeMap<Name, Lifted>> = levels.iter().map(|_| BTreeMap::new()).collect();
    for name in names {
        let mut own = Vec::new();
        for level in &mut *levels {
            let Some(Func::Prim(f)) = level.funcs.get_mut(&name) else {
                own.push(Vec::new());
                continue;
            };
            own.push(take(f));
        }
        let slots = slots(&own);
        if slots.is_empty() {
            continue;
        }
        for ((level, own), lifted) in levels.iter_mut().zip(own).zip(&mut lifted) {
            let Some(Func::Prim(f)) = level.funcs.get_mut(&name) else { continue };
            let before = f.clone();
            let buffers = fill(&slots, own);
            let at = f.params.iter().rposition(|p| matches!(p, Param::Buffer(_))).map_or(0, |i| i + 1);
            f.params.splice(at..at, buffers.iter().cloned().map(Param::Buffer));
            let given = |v: &Var| buffers.iter().flat_map(|b| &b.shape).any(|d| d.as_var() == Some(v));
            let scalars = scalars(f).iter().map(|v| !given(v)).collect();
            f.params.retain(|p| !matches!(p, Param::Scalar(v) if given(v)));
            lifted.insert(name.clone(), Lifted { buffers, before, scalars });
        }
    }
    let mut diags = Diags::new();
    for (level, lifted) in levels.iter_mut().zip(&lifted) {
        if !lifted.is_empty() {
            if let Err(e) = rewrite_calls(level, lifted) {
                diags.extend(e);
            }
        }
    }
    diags.into_result(())
}

fn rewrite_calls(module: &mut IRModule, lifted: &BTreeMap<Name, Lifted>) -> Result<(), Diags> {
    map_functions(module, |_, _, f| {
        rewrite::rewrite_function(f, &mut |b, _| match &b.value {
            Expr::CallTir(c) => match lifted.get(&c.func.0) {
                Some(l) => call(c, &b, l).map(rewrite::Step::Bind),
                None => Ok(rewrite::Step::keep(b)),
            },
            _ => Ok(rewrite::Step::keep(b)),
        })
    })
}

/// One buffer for each that some level has: those of a level are distinct, those of different levels are the same when
/// their types and shapes are.
fn slots(own: &[Vec<Buffer>]) -> Vec<Buffer> {
    let mut slots: Vec<Buffer> = Vec::new();
    for level in own {
        let mut free: Vec<bool> = vec![true; slots.len()];
        for b in level {
            match slots.iter().zip(&free).position(|(s, free)| *free && alike(s, b)) {
                Some(at) => free[at] = false,
                None => {
                    slots.push(b.clone());
                    free.push(false);
                }
            }
        }
    }
    slots
}

/// For each slot the level's own buffer, or one that the level does not use.
fn fill(slots: &[Buffer], mut own: Vec<Buffer>) -> Vec<Buffer> {
    let mut fill = |slot: &Buffer| match own.iter().position(|b| alike(slot, b)) {
        Some(at) => own.remove(at),
        None => Buffer::from_node(BufferNode {
            name: slot.name.clone(),
            dtype: slot.dtype,
            shape: slot.shape.clone(),
            strides: slot.strides.clone(),
            elem_offset: slot.elem_offset.clone(),
            scope: slot.scope.clone(),
            span: slot.span,
        }),
    };
    slots.iter().map(&mut fill).collect()
}

fn alike(a: &Buffer, b: &Buffer) -> bool {
    a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides && a.elem_offset == b.elem_offset
}

/// Takes the allocations of symbolic size out of a function's blocks.
fn take(f: &mut PrimFunc) -> Vec<Buffer> {
    let symbolic = |b: &Buffer| b.scope == Scope::Global && b.shape.iter().any(|d| d.as_int().is_none());
    // Sizes of variables that the function binds itself, as loop variables, are not the caller's to know.
    let known: Vec<Var> = symbolic_vars(f).into_iter().map(|s| s.var).chain(scalars(f)).collect();
    let closed = |b: &Buffer| b.shape.iter().all(|d| tvm_ir::prim::free_vars(d).iter().all(|v| known.contains(v)));
    let mut buffers = Vec::new();
    let body = rewrite_stmt(f.body.clone(), &mut |s| match s {
        Stmt::Block(b) if b.allocs.iter().any(|a| symbolic(a) && closed(a)) => {
            let (out, kept): (Vec<Buffer>, Vec<Buffer>) =
                b.allocs.iter().cloned().partition(|a| symbolic(a) && closed(a));
            buffers.extend(out);
            Stmt::Block(Box::new(Block { allocs: kept, ..*b }))
        }
        other => other,
    });
    f.body = body;
    buffers
}

fn scalars(f: &PrimFunc) -> Vec<Var> {
    let scalar = |p: &Param| match p {
        Param::Scalar(v) => Some(v.clone()),
        Param::Buffer(_) => None,
    };
    f.params.iter().filter_map(scalar).collect()
}

/// A call with the lifted buffers as further outputs, and the variable bound to what it was before.
fn call(c: &CallTir, b: &Binding, lifted: &Lifted) -> Result<Vec<Binding>, Diag> {
    let values = values(c, &lifted.before, b)?;
    let outs = match &c.out {
        StructInfo::Tuple(fields) => fields.clone(),
        one => vec![one.clone()],
    };
    let count = outs.len();
    let mut fields = outs.clone();
    for buffer in &lifted.buffers {
        let dims = buffer.shape.iter().map(|d| substitute(d, &values)).collect();
        fields.push(StructInfo::tensor(dims, buffer.dtype));
    }
    let mut inplace = c.inplace.clone();
    if !inplace.is_empty() {
        inplace.resize(fields.len(), -1);
    }
    let out = StructInfo::Tuple(fields);
    let all = RelaxVar::at(format!("{}_and_scratch", b.var.name()), out.clone(), b.span);
    let mut taken = lifted.scalars.iter();
    let mut tir_vars = c.tir_vars.clone();
    tir_vars.retain(|_| taken.next().is_none_or(|taken| *taken));
    let value = Expr::CallTir(CallTir { out, inplace, tir_vars, ..c.clone() });
    let mut bindings = vec![Binding { var: all.clone(), value, span: b.span }];
    if !matches!(c.out, StructInfo::Tuple(_)) {
        bindings.push(Binding { value: Expr::TupleGetItem(Leaf::Var(all), 0), ..b.clone() });
        return Ok(bindings);
    }
    let mut items = Vec::new();
    for (i, info) in outs.into_iter().enumerate().take(count) {
        let item = RelaxVar::at(format!("{}_{i}", b.var.name()), info, b.span);
        let value = Expr::TupleGetItem(Leaf::Var(all.clone()), i);
        bindings.push(Binding { var: item.clone(), value, span: b.span });
        items.push(Leaf::Var(item));
    }
    bindings.push(Binding { value: Expr::Tuple(items), ..b.clone() });
    Ok(bindings)
}

/// What the function's symbolic variables and scalar parameters are at a call.
fn values(c: &CallTir, f: &PrimFunc, b: &Binding) -> Result<BTreeMap<Var, PrimExpr>, Diag> {
    let infos: Vec<Option<StructInfo>> = c.args.iter().map(Leaf::info).collect();
    let outs = match &c.out {
        StructInfo::Tuple(fields) => fields.clone(),
        one => vec![one.clone()],
    };
    let dims: Vec<Dims> = infos
        .into_iter()
        .chain(outs.into_iter().map(Some))
        .map(|info| match info {
            Some(StructInfo::Tensor(t)) => t.dims,
            _ => Dims::Unknown,
        })
        .collect();
    let mut values: BTreeMap<Var, PrimExpr> = scalars(f).into_iter().zip(c.tir_vars.iter().cloned()).collect();
    for s in symbolic_vars(f) {
        let value = s.source.and_then(|(k, axis)| dims.get(k)?.known()?.get(axis).cloned());
        let value = value.ok_or_else(|| {
            Diag::error(b.span, format!("the call of {} does not say the value of {}", c.func.0, s.var.name()))
                .help("give the arguments known shapes with R.match_cast")
        })?;
        let value = if value.dtype() == s.var.dtype() { value } else { value.cast(s.var.dtype()) };
        values.insert(s.var, value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tvm_ir::dtype::DType;
    use tvm_ir::span::Span;

    fn buffer(name: &str, shape: PrimExpr) -> Buffer {
        Buffer::from_node(BufferNode {
            name: name.into(),
            dtype: DType::F32,
            shape: vec![shape],
            strides: Vec::new(),
            elem_offset: None,
            scope: Scope::Global,
            span: Span::NONE,
        })
    }

    /// A function that has other buffers on each target takes one for each that any has.
    #[test]
    fn levels_are_called_alike() {
        let n = Var::new("n", DType::I64);
        let (small, large) = (n.expr(), &n.expr() * PrimExpr::i64(2));
        let own = [
            vec![buffer("a", small.clone()), buffer("b", large.clone())],
            vec![buffer("c", large.clone())],
            vec![buffer("d", small.clone()), buffer("e", small.clone())],
        ];
        let slots = slots(&own);
        let shapes: Vec<&[PrimExpr]> = slots.iter().map(|b| b.shape.as_slice()).collect();
        assert_eq!(shapes, [std::slice::from_ref(&small), std::slice::from_ref(&large), std::slice::from_ref(&small)]);
        for level in own {
            let filled = fill(&slots, level.clone());
            assert!(filled.iter().zip(&slots).all(|(b, slot)| alike(b, slot)));
            assert!(level.iter().all(|b| filled.iter().filter(|f| *f == b).count() == 1));
        }
    }
}
