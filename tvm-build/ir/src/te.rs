//! Tensor expressions: stages of computation that become a PrimFunc, as TVM's `te.compute` and `CreatePrimFunc` do.
//!
//! A stage is a loop nest with one block. Stages are ordered by what they read; a stage that is not an output lives
//! in the root block.

use crate::arith::Analyzer;
use crate::attrs::{AttrValue, Attrs};
use crate::dtype::DType;
use crate::name::{Name, NameSupply};
use crate::prim::{BinOp, Buffer, Intrinsic, PrimExpr, PrimKind, Range, Var};
use crate::span::Span;
use crate::tir::{Block, IterKind, IterVar, Param, PrimFunc, Stmt, access_regions};

/// Prefix of the loops of a stage: TVM's C++ library counts `ax0, ax1, …`, its Python library `i0, i1, …`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axes<'a> {
    /// `ax0, ax1, …`
    Ax,
    /// `i0, i1, …`
    I,
    /// Given names; further axes are `ax{n}`.
    Named(&'a [&'a str]),
}

impl Axes<'_> {
    fn name(self, d: usize) -> Name {
        match self {
            Axes::Ax => format!("ax{d}").into(),
            Axes::I => format!("i{d}").into(),
            Axes::Named(names) => names.get(d).map_or_else(|| format!("ax{d}").into(), |n| Name::from(*n)),
        }
    }
}

/// How a reduction combines two values of one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reducer {
    /// Starts at 0.
    Sum,
    /// Starts at 1.
    Prod,
    /// Starts at negative infinity, or the least value.
    Max,
    /// Starts at the least finite value, as TVM's pools and softmax do.
    MaxFinite,
    /// Starts at infinity, or the greatest value.
    Min,
    /// Of bools, starts at true.
    All,
    /// Of bools, starts at false.
    Any,
}

impl Reducer {
    /// The start value.
    pub fn identity(self, dtype: DType) -> PrimExpr {
        match self {
            Reducer::Sum => PrimExpr::zero(dtype),
            Reducer::Prod => PrimExpr::number(dtype, 1.0),
            Reducer::Max => lowest(dtype),
            Reducer::MaxFinite => min_value(dtype),
            Reducer::Min => highest(dtype),
            Reducer::All => PrimExpr::bool(true),
            Reducer::Any => PrimExpr::bool(false),
        }
    }

    /// Both combined.
    pub fn combine(self, a: PrimExpr, b: PrimExpr) -> PrimExpr {
        match self {
            Reducer::Sum => a + b,
            Reducer::Prod => a * b,
            Reducer::Max | Reducer::MaxFinite => a.max(b),
            Reducer::Min => a.min(b),
            Reducer::All => a.and(b),
            Reducer::Any => a.or(b),
        }
    }
}

/// The greatest finite magnitude of a float type.
fn float_limit(dtype: DType) -> f64 {
    use crate::dtype::TypeCode as C;
    match (dtype.code, dtype.bits) {
        (C::Float, 64) => f64::MAX,
        (C::Float, 16) => 65504.0,
        (C::BFloat, _) => f64::from(f32::from_bits(0x7f7f_0000)),
        (C::Float8E4M3FN, _) => 448.0,
        (C::Float8E4M3FNUZ, _) => 240.0,
        (C::Float8E5M2 | C::Float8E5M2FNUZ, _) => 57344.0,
        (C::Float4E2M1FN, _) => 6.0,
        _ => f64::from(f32::MAX),
    }
}

/// The least finite value of a type (TVM's `min_value`).
pub fn min_value(dtype: DType) -> PrimExpr {
    match dtype.min_int() {
        Some(v) => PrimExpr::int(dtype, v),
        None => PrimExpr::float(dtype, -float_limit(dtype)),
    }
}

/// The greatest finite value of a type (TVM's `max_value`).
pub fn max_value(dtype: DType) -> PrimExpr {
    match dtype.max_int() {
        Some(_) if dtype.is_uint() && dtype.bits == 64 => PrimExpr::int(dtype, -1),
        Some(v) => PrimExpr::int(dtype, v),
        None => PrimExpr::float(dtype, float_limit(dtype)),
    }
}

/// Whether a float type has infinities.
fn has_infinity(dtype: DType) -> bool {
    use crate::dtype::TypeCode as C;
    matches!(dtype.code, C::Float | C::BFloat | C::Float8E5M2)
}

/// The least value of a type: negative infinity where there is one.
pub fn lowest(dtype: DType) -> PrimExpr {
    if has_infinity(dtype) { PrimExpr::float(dtype, f64::NEG_INFINITY) } else { min_value(dtype) }
}

/// The greatest value of a type: infinity where there is one.
pub fn highest(dtype: DType) -> PrimExpr {
    if has_infinity(dtype) { PrimExpr::float(dtype, f64::INFINITY) } else { max_value(dtype) }
}

/// Steps of a sum of `bfloat16` that may round each, see [`Te::reduce`].
const SHORT_SUM: i64 = 16;

/// The type in which a reduction combines.
fn accumulator(dtype: DType, reducer: Reducer, reduced: &[ReduceAxis], value: &PrimExpr) -> DType {
    let narrow = dtype.is_float() && dtype.bits < 32 && matches!(reducer, Reducer::Sum | Reducer::Prod);
    let product = matches!(value.kind(), PrimKind::Binary(BinOp::Mul, ..));
    let steps = reduced.iter().try_fold(1i64, |n, (_, e)| n.checked_mul(e.as_int()?));
    let short = dtype == DType::BF16 && !product && steps.is_some_and(|n| n <= SHORT_SUM);
    if narrow && !reduced.is_empty() && !short { DType::F32 } else { dtype }
}

/// A narrow float as a wider one, its products computed there.
fn widened(e: &PrimExpr, wide: DType) -> PrimExpr {
    match e.kind() {
        PrimKind::Binary(BinOp::Mul, a, b) => widened(a, wide) * widened(b, wide),
        PrimKind::Select(c, a, b) => PrimExpr::select(c.clone(), widened(a, wide), widened(b, wide)),
        PrimKind::Call(Intrinsic::IfThenElse, args) if args.len() == 3 => {
            PrimExpr::if_then_else(args[0].clone(), widened(&args[1], wide), widened(&args[2], wide))
        }
        _ => e.cast(wide),
    }
}

/// A reduced axis: name and extent.
pub type ReduceAxis = (&'static str, PrimExpr);

struct Stage {
    outputs: Vec<Buffer>,
    stmt: Stmt,
    reads: Vec<Buffer>,
}

/// The stages of one PrimFunc.
#[derive(Default)]
pub struct Te {
    stages: Vec<Stage>,
    names: NameSupply,
    analyzer: Analyzer,
    annotations: Attrs,
}

impl Te {
    /// Without stages.
    pub fn new() -> Te {
        Te::default()
    }

    /// A stage that gives each element of `shape` by its index; `f` gets one index a dimension.
    pub fn compute(
        &mut self,
        name: &str,
        axes: Axes<'_>,
        shape: &[PrimExpr],
        dtype: DType,
        f: impl FnOnce(&[PrimExpr]) -> PrimExpr,
    ) -> Buffer {
        let mut nest = Nest::new();
        let index = nest.spatial(axes, shape);
        let value = self.analyzer.simplify(&f(&index).cast(dtype));
        let out = Buffer::new(name, shape.to_vec(), dtype);
        let body = Stmt::store(&out, index, value);
        self.push(name, nest, None, body, vec![out.clone()]);
        out
    }

    /// Annotates the block of the next stage.
    pub fn annotate(&mut self, key: &str, value: impl Into<AttrValue>) {
        self.annotations.insert(key.into(), value.into());
    }

    /// A stage that reduces over `reduced`; `f` gets the indices of the result and of the reduced axes.
    ///
    /// Sums and products of floats under 32 bits are accumulated in `float32`, of products of elements that are not
    /// rounded before, and rounded once by a second stage: as accurate as the type allows, and what NumPy computes for
    /// `float16` and in every `dot`. TVM rounds at every step. So do short plain sums of `bfloat16` here, as they do
    /// in ONNX's reference; a long one would lose its small terms (256 + 1 is 256).
    #[allow(clippy::too_many_arguments, reason = "a stage is these seven things")]
    pub fn reduce(
        &mut self,
        name: &str,
        axes: Axes<'_>,
        shape: &[PrimExpr],
        reduced: &[ReduceAxis],
        reducer: Reducer,
        dtype: DType,
        f: impl FnOnce(&[PrimExpr], &[PrimExpr]) -> PrimExpr,
    ) -> Buffer {
        if reduced.iter().any(|(_, extent)| extent.is_int(0)) {
            // Nothing is reduced: no step would run the start.
            return self.compute(name, axes, shape, dtype, |_| reducer.identity(dtype));
        }
        let mut nest = Nest::new();
        let index = nest.spatial(axes, shape);
        let red = nest.reduce(reduced);
        let value = f(&index, &red).cast(dtype);
        let sum = accumulator(dtype, reducer, reduced, &value);
        let value = self.analyzer.simplify(&if sum == dtype { value } else { widened(&value, sum) });
        let out = Buffer::new(name, shape.to_vec(), sum);
        let (init, body) = if reduced.is_empty() {
            (None, Stmt::store(&out, index, value))
        } else {
            let init = Stmt::store(&out, index.clone(), reducer.identity(sum));
            let old = PrimExpr::load(&out, index.clone());
            (Some(init), Stmt::store(&out, index, reducer.combine(old, value)))
        };
        self.push(name, nest, init, body, vec![out.clone()]);
        if sum == dtype {
            return out;
        }
        self.compute("T_cast", axes, shape, dtype, |i| PrimExpr::load(&out, i.to_vec()))
    }

    /// A stage whose block is written by hand: `f` gets the indices and the reduced indices and returns the block's
    /// init and body, which write `outputs` and nothing else.
    pub fn block(
        &mut self,
        name: &str,
        axes: Axes<'_>,
        shape: &[PrimExpr],
        reduced: &[ReduceAxis],
        outputs: &[Buffer],
        f: impl FnOnce(&[PrimExpr], &[PrimExpr]) -> (Option<Stmt>, Stmt),
    ) {
        let mut nest = Nest::new();
        let index = nest.spatial(axes, shape);
        let red = nest.reduce(reduced);
        let (init, body) = f(&index, &red);
        self.push(name, nest, init, body, outputs.to_vec());
    }

    fn push(&mut self, name: &str, nest: Nest, init: Option<Stmt>, body: Stmt, outputs: Vec<Buffer>) {
        let (reads, writes) = access_regions(init.as_ref(), &body, &self.analyzer);
        let mut read_buffers = Vec::new();
        post_order_loads(&body, &mut read_buffers);
        let iters = if nest.iters.is_empty() { vec![unit_iter()] } else { nest.iters };
        let block = Stmt::Block(Box::new(Block {
            name: self.names.fresh_underscore(name),
            iters,
            reads,
            writes,
            init,
            annotations: std::mem::take(&mut self.annotations),
            ..Block::root(Vec::new(), body)
        }));
        let stmt = nest.loops.into_iter().rev().fold(block, |body, (var, extent)| Stmt::serial(var, extent, body));
        self.stages.push(Stage { outputs, stmt, reads: read_buffers });
    }

    /// The PrimFunc over `inputs`, writing `outputs`. It is private; its stages are in depth-first order of what the
    /// outputs read.
    pub fn finish(self, inputs: &[Vec<Buffer>], outputs: &[Buffer], span: Span) -> PrimFunc {
        let mut order = Vec::new();
        for out in outputs {
            visit(&self.stages, out, &mut order);
        }
        let mut slots: Vec<Option<Stage>> = self.stages.into_iter().map(Some).collect();
        let ordered: Vec<Stage> = order.into_iter().filter_map(|i| slots.get_mut(i).and_then(Option::take)).collect();
        let allocs = ordered.iter().flat_map(|s| &s.outputs).filter(|b| !outputs.contains(b)).cloned().collect();
        let body = Stmt::seq(ordered.into_iter().map(|s| s.stmt));
        let params = inputs.iter().flatten().chain(outputs).map(|b| Param::Buffer(b.clone())).collect();
        PrimFunc {
            params,
            attrs: Attrs::from([("tir.noalias".into(), AttrValue::Bool(true))]),
            body: Stmt::Block(Box::new(Block::root(allocs, body))),
            span,
        }
    }
}

fn visit(stages: &[Stage], buffer: &Buffer, order: &mut Vec<usize>) {
    let Some((i, stage)) = stages.iter().enumerate().find(|(_, s)| s.outputs.contains(buffer)) else { return };
    if order.contains(&i) {
        return;
    }
    for read in stage.reads.iter().filter(|b| !stage.outputs.contains(b)) {
        visit(stages, read, order);
    }
    order.push(i);
}

/// The buffers a statement reads; those in an index before the one indexed.
fn post_order_loads(s: &Stmt, out: &mut Vec<Buffer>) {
    fn expr(e: &PrimExpr, out: &mut Vec<Buffer>) {
        e.children().into_iter().for_each(|c| expr(c, out));
        if let PrimKind::Load(b, _) = e.kind() {
            if !out.contains(b) {
                out.push(b.clone());
            }
        }
    }
    s.exprs().into_iter().for_each(|e| expr(e, out));
    s.children().into_iter().for_each(|c| post_order_loads(c, out));
}

struct Nest {
    loops: Vec<(Var, PrimExpr)>,
    iters: Vec<IterVar>,
}

impl Nest {
    fn new() -> Nest {
        Nest { loops: Vec::new(), iters: Vec::new() }
    }

    fn spatial(&mut self, axes: Axes<'_>, shape: &[PrimExpr]) -> Vec<PrimExpr> {
        shape.iter().enumerate().map(|(d, e)| self.axis(axes.name(d), e, IterKind::Spatial)).collect()
    }

    fn reduce(&mut self, axes: &[ReduceAxis]) -> Vec<PrimExpr> {
        axes.iter().map(|(name, e)| self.axis((*name).into(), e, IterKind::Reduce)).collect()
    }

    fn axis(&mut self, name: Name, extent: &PrimExpr, kind: IterKind) -> PrimExpr {
        let outer = Var::new(name.clone(), extent.dtype());
        let var = Var::new(format!("v_{name}"), extent.dtype());
        self.loops.push((outer.clone(), extent.clone()));
        self.iters.push(IterVar { var: var.clone(), dom: Range::to(extent.clone()), kind, binding: outer.expr() });
        var.expr()
    }
}

/// The iterator of a block of rank 0.
fn unit_iter() -> IterVar {
    let var = Var::new("vi", DType::I64);
    IterVar { var, dom: Range::to(PrimExpr::i64(1)), kind: IterKind::Spatial, binding: PrimExpr::i64(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::{TensorBuf, run};

    fn sum(dtype: DType, n: i64) -> f64 {
        let x = Buffer::new("x", vec![PrimExpr::i64(n)], dtype);
        let mut te = Te::new();
        let out = te.reduce("sum", Axes::I, &[], &[("k", PrimExpr::i64(n))], Reducer::Sum, dtype, |_, r| {
            PrimExpr::load(&x, r.to_vec())
        });
        let f = te.finish(&[vec![x]], &[out], Span::NONE);
        let ones = TensorBuf::from_f64(dtype, &[n], &vec![1.0; n as usize]).unwrap();
        let mut bufs = [ones, TensorBuf::zeros(dtype, &[]).unwrap()];
        run(&f, &mut bufs).unwrap();
        bufs[1].get_f64(0)
    }

    #[test]
    fn long_sums_of_narrow_floats_keep_their_small_terms() {
        assert_eq!(sum(DType::BF16, 1000), 1000.0);
        assert_eq!(sum(DType::F16, 4096), 4096.0);
        assert_eq!(sum(DType::BF16, 16), 16.0);
        assert_eq!(sum("float8_e4m3fn".parse().unwrap(), 100), 96.0);
    }
}
