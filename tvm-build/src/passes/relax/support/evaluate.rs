//! PrimFuncs on constants, at compile time.
//!
//! Work is bounded by a [`Budget`] in proportion to the constants of the module: what is beyond it is left for run time.
//! Transposes, the usual preparation of weights, are copied without interpreting a loop nest.

use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::interp::{Options, TensorBuf, run_on_constants};
use tvm_ir::module::IRModule;
use tvm_ir::prim::{PrimExpr, PrimKind};
use tvm_ir::relax::{Leaf, StructInfo, TensorInfo, visit_leaves};
use tvm_ir::tir::{Param, PrimFunc, Stmt};

/// Loop iterations that one evaluation may take: a few seconds.
const MAX_ITERATIONS: u64 = 1 << 27;

/// Loop iterations of all evaluations of a pass, and those for each byte of the module's constants.
const ITERATIONS: (u64, u64) = (1 << 22, 32);

/// Bytes by which constants may grow in a pass, and those for each byte of the module's constants: eight make `float32` of
/// four bits.
const GROWTH: (u64, u64) = (1 << 24, 8);

/// Iterations of a loop whose number is not known before it runs.
const UNKNOWN: u64 = 1 << 12;

/// What a pass may still spend on constants. A small file cannot ask for much of it.
pub(crate) struct Budget {
    iterations: u64,
    bytes: u64,
}

impl Budget {
    /// For a pass over a module.
    pub(crate) fn of(module: &IRModule) -> Budget {
        fn size(l: &Leaf) -> u64 {
            match l {
                Leaf::Const(c) => c.data().len() as u64,
                Leaf::Tuple(items) => items.iter().map(size).sum(),
                _ => 0,
            }
        }
        let mut bytes = 0u64;
        for (_, f) in module.relax_funcs() {
            f.body.bindings().for_each(|b| visit_leaves(&b.value, &mut |l| bytes = bytes.saturating_add(size(l))));
        }
        let of = |(base, each): (u64, u64)| bytes.saturating_mul(each).saturating_add(base);
        Budget { iterations: of(ITERATIONS), bytes: of(GROWTH) }
    }

    /// Takes what an evaluation needs; `false`, and nothing is taken, if that is more than is left.
    fn take(&mut self, iterations: u64, bytes: u64) -> bool {
        let fits = iterations <= self.iterations.min(MAX_ITERATIONS) && bytes <= self.bytes;
        if fits {
            self.iterations -= iterations;
            self.bytes -= bytes;
        }
        fits
    }
}

/// Iterations of the loops in a statement, about.
fn iterations(s: &Stmt) -> u64 {
    let inner = s.children().into_iter().map(iterations).fold(0u64, u64::saturating_add);
    match s {
        Stmt::For(f) => {
            let count = f.extent.as_int().map_or(UNKNOWN, |n| u64::try_from(n).unwrap_or(0));
            count.saturating_mul(inner.saturating_add(1))
        }
        Stmt::While(..) => inner.saturating_add(1).saturating_mul(UNKNOWN),
        _ => inner,
    }
}

/// The outputs of a PrimFunc called with constants; `None` when they are not known at compile time (symbolic shapes, too
/// much work, or something that the interpreter reports as an error: it is reported again where the function runs).
pub(crate) fn evaluate(
    func: &PrimFunc,
    args: &[Constant],
    tir_vars: &[PrimExpr],
    out: &StructInfo,
    budget: &mut Budget,
) -> Option<Vec<Constant>> {
    let outs = out.tensors()?;
    let mut total = 0u64;
    for t in &outs {
        total = total.checked_add(bytes(t)?)?;
    }
    let given = args.iter().map(|a| a.data().len() as u64).fold(0u64, u64::saturating_add);
    let growth = total.saturating_sub(given);
    if let (Some(permuted), [arg], [t]) = (permutation(func), args, outs.as_slice()) {
        if let Some(c) = budget.take(0, growth).then(|| permute(arg, &permuted, t)).flatten() {
            return Some(vec![c]);
        }
    }
    if !budget.take(iterations(&func.body), growth) {
        return None;
    }
    let mut bufs = Vec::new();
    for t in &outs {
        bufs.push(TensorBuf::zeros(t.dtype?, &t.dims.fixed()?).ok()?);
    }
    let scalars = func.params.iter().filter_map(|p| match p {
        Param::Scalar(v) => Some(v),
        Param::Buffer(_) => None,
    });
    for (v, value) in scalars.zip(tir_vars) {
        bufs.push(TensorBuf::scalar_i64(v.dtype(), value.as_int()?).ok()?);
    }
    if args.len() + bufs.len() != func.params.len() {
        return None;
    }
    let options = Options { max_iterations: MAX_ITERATIONS, ..Options::default() };
    let args: Vec<&Constant> = args.iter().collect();
    let results = run_on_constants(func, &args, bufs, &options).ok()?;
    results.into_iter().take(outs.len()).map(to_constant).collect()
}

fn bytes(t: &TensorInfo) -> Option<u64> {
    let count = t.dims.fixed()?.iter().try_fold(1u64, |n, d| n.checked_mul(u64::try_from(*d).ok()?))?;
    t.dtype?.storage_bytes(count)
}

fn to_constant(b: TensorBuf) -> Option<Constant> {
    let shape: Option<Vec<u64>> = b.shape.iter().map(|d| u64::try_from(*d).ok()).collect();
    Constant::new(b.dtype, shape?, Bytes::new(b.data)).ok()
}

/// When a function is one block that copies its input with permuted axes: for each axis of the output, the axis of the
/// input.
fn permutation(func: &PrimFunc) -> Option<Vec<usize>> {
    let root = func.root().filter(|r| r.allocs.is_empty())?;
    let mut s = &root.body;
    while let Stmt::For(f) = s {
        s = &f.body;
    }
    let Stmt::Block(block) = s else { return None };
    let (Stmt::Store(store), None) = (&block.body, &block.init) else { return None };
    let [Param::Buffer(input), Param::Buffer(output)] = func.params.as_slice() else { return None };
    let PrimKind::Load(from, indices) = store.value.kind() else { return None };
    let whole = block.iters.iter().enumerate().all(|(n, i)| {
        i.dom.min.is_int(0)
            && output.shape.get(n) == Some(&i.dom.extent)
            && store.indices.get(n).and_then(PrimExpr::as_var) == Some(&i.var)
    });
    let plain = from == input
        && store.buffer == *output
        && whole
        && block.predicate.is_int(1)
        && block.iters.len() == output.shape.len()
        && indices.len() == output.shape.len();
    if !plain {
        return None;
    }
    let mut axes = vec![usize::MAX; indices.len()];
    for (from_axis, index) in indices.iter().enumerate() {
        let v = index.as_var()?;
        let to_axis = block.iters.iter().position(|i| i.var == *v)?;
        if axes[to_axis] != usize::MAX {
            return None;
        }
        axes[to_axis] = from_axis;
    }
    Some(axes)
}

/// The transposed constant; `None` for elements that are no whole bytes.
fn permute(c: &Constant, axes: &[usize], t: &TensorInfo) -> Option<Constant> {
    let dtype = c.dtype();
    let size = usize::try_from(dtype.bytes()).ok().filter(|s| *s > 0 && dtype.bits >= 8)?;
    let from: Vec<usize> = c.shape().iter().map(|d| usize::try_from(*d).ok()).collect::<Option<_>>()?;
    let to: Vec<usize> = axes.iter().map(|a| from.get(*a).copied()).collect::<Option<_>>()?;
    let wanted: Vec<usize> = t.dims.fixed()?.iter().map(|d| usize::try_from(*d).ok()).collect::<Option<_>>()?;
    if wanted != to || t.dtype != Some(dtype) || from.len() != axes.len() {
        return None;
    }
    let mut strides = vec![1usize; from.len()];
    for i in (0..from.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1].checked_mul(from[i + 1])?;
    }
    let data = c.data();
    let mut out = vec![0u8; data.len()];
    let mut index = vec![0usize; to.len()];
    let mut at = 0usize;
    for slot in out.chunks_exact_mut(size) {
        slot.copy_from_slice(data.get(at * size..at * size + size)?);
        // The next element of the output, and where it stands in the input.
        for axis in (0..to.len()).rev() {
            let stride = strides[axes[axis]];
            index[axis] += 1;
            at += stride;
            if index[axis] < to[axis] {
                break;
            }
            at -= stride * index[axis];
            index[axis] = 0;
        }
    }
    Constant::new(dtype, to.iter().map(|d| u64::try_from(*d).ok()).collect::<Option<_>>()?, Bytes::new(out)).ok()
}

/// The constant with another shape of as many elements: the bytes are shared.
pub(crate) fn reshape(c: &Constant, t: &TensorInfo) -> Option<Constant> {
    if t.dtype != Some(c.dtype()) {
        return None;
    }
    let shape: Option<Vec<u64>> = t.dims.fixed()?.iter().map(|d| u64::try_from(*d).ok()).collect();
    Constant::new(c.dtype(), shape?, c.data().clone()).ok()
}
