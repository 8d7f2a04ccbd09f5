//! Running legalized calls on tensors with the reference interpreter, and plain loops to compare with.

use crate::arith::Analyzer;
use crate::dtype::DType;
use crate::interp::{Options, TensorBuf, run_with};
use crate::ops::{infer, legalize};
use crate::prim::{PrimExpr, Var, substitute};
use crate::relax::{Call, Expr, Leaf, Legalized, StructInfo};
use crate::tir::Param;
use std::collections::BTreeMap;

/// A tensor of doubles.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) shape: Vec<i64>,
    pub(super) data: Vec<f64>,
}

impl Array {
    pub(super) fn new(shape: &[i64], f: impl FnMut(&[i64]) -> f64) -> Array {
        Array { shape: shape.to_vec(), data: indices(shape).iter().map(|i| i.as_slice()).map(f).collect() }
    }

    pub(super) fn at(&self, index: &[i64]) -> f64 {
        assert_eq!(index.len(), self.shape.len());
        let mut linear = 0;
        for (i, d) in index.iter().zip(&self.shape) {
            assert!((0..*d).contains(i), "{index:?} of {:?}", self.shape);
            linear = linear * d + i;
        }
        self.data[usize::try_from(linear).unwrap()]
    }

    /// The element at an index of a shape this one broadcasts to.
    pub(super) fn broadcast_at(&self, index: &[i64]) -> f64 {
        let own = &index[index.len() - self.shape.len()..];
        let at: Vec<i64> = own.iter().zip(&self.shape).map(|(i, d)| if *d == 1 { 0 } else { *i }).collect();
        self.at(&at)
    }

    /// 0 outside.
    pub(super) fn padded_at(&self, index: &[i64]) -> Option<f64> {
        index.iter().zip(&self.shape).all(|(i, d)| (0..*d).contains(i)).then(|| self.at(index))
    }
}

/// Every index of a shape, in order.
pub(super) fn indices(shape: &[i64]) -> Vec<Vec<i64>> {
    let mut out = vec![Vec::new()];
    for d in shape {
        out = out.into_iter().flat_map(|i| (0..*d).map(move |v| [i.as_slice(), &[v]].concat())).collect();
    }
    out
}

/// Numbers that repeat for a seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// In `low .. high`.
    pub(super) fn int(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.next() % u64::try_from(high - low).unwrap()).unwrap()
    }

    /// A multiple of 1/8 in -4 .. 4: sums and products of a few are exact in `float32`.
    pub(super) fn value(&mut self, dtype: DType) -> f64 {
        if dtype.is_bool() {
            return self.int(0, 2) as f64;
        }
        if dtype.is_float() {
            return self.int(-32, 32) as f64 / 8.0;
        }
        self.int(if dtype.is_uint() { 0 } else { -5 }, 6) as f64
    }

    pub(super) fn array(&mut self, shape: &[i64], dtype: DType) -> Array {
        Array::new(shape, |_| self.value(dtype))
    }

    /// An extent worth testing: 1, primes, and now and then 0.
    pub(super) fn extent(&mut self) -> i64 {
        [1, 2, 3, 5, 7, 4, 1, 3][usize::try_from(self.next() % 8).unwrap()]
    }

    pub(super) fn shape(&mut self, rank: usize) -> Vec<i64> {
        (0..rank).map(|_| self.extent()).collect()
    }
}

/// The tensor arguments of a call, tuples opened, in order.
pub(super) fn tensor_args(call: &Call) -> Vec<(Vec<i64>, DType)> {
    let mut out = Vec::new();
    for leaf in &call.args {
        let Some(info) = leaf.info() else { continue };
        if let Some(tensors) = info.tensors() {
            out.extend(tensors.iter().map(|t| (t.dims.fixed().unwrap(), t.dtype.unwrap())));
        }
    }
    out
}

fn buffer(a: &Array, dtype: DType) -> TensorBuf {
    if dtype.is_float() {
        TensorBuf::from_f64(dtype, &a.shape, &a.data).unwrap()
    } else {
        let ints: Vec<i64> = a.data.iter().map(|v| *v as i64).collect();
        TensorBuf::from_i64(dtype, &a.shape, &ints).unwrap()
    }
}

/// The first result of a call that lowers to other calls: each is run in turn.
pub(super) fn eval_ops(call: &Call, inputs: &[Array]) -> Array {
    let info = infer(call, &Analyzer::new()).unwrap();
    let Legalized::Bindings { bindings, result } = legalize(call, &info).unwrap() else { panic!() };
    let mut known: BTreeMap<crate::relax::Var, Array> =
        call.args.iter().filter_map(|l| l.as_var().cloned()).zip(inputs.iter().cloned()).collect();
    for b in &bindings {
        let Expr::Call(c) = &b.value else { panic!("{:?}", b.value) };
        let args: Vec<Array> = c.args.iter().filter_map(|l| l.as_var().map(|v| known[v].clone())).collect();
        let mut out = eval_with(c, &args, &BTreeMap::new());
        known.insert(b.var.clone(), out.swap_remove(0));
    }
    known[result.as_var().unwrap()].clone()
}

/// Results of a call on tensors. `values` are those of symbolic variables. Reading memory never written is an error.
pub(super) fn eval_with(call: &Call, inputs: &[Array], values: &BTreeMap<Var, PrimExpr>) -> Vec<Array> {
    let name = call.op.name();
    let info = infer(call, &Analyzer::new()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let func_args = match legalize(call, &info).unwrap_or_else(|e| panic!("{name}: {e}")) {
        Legalized::Tir { func, args, tir_vars, .. } => (func, args, tir_vars),
        other => panic!("{name} has no PrimFunc: {other:?}"),
    };
    let (func, args, tir_vars) = func_args;
    let all: Vec<Leaf> = call
        .args
        .iter()
        .flat_map(|l| match l {
            Leaf::Tuple(items) => items.clone(),
            one => vec![one.clone()],
        })
        .filter(|l| matches!(l.info(), Some(StructInfo::Tensor(_))))
        .collect();
    // Each occurrence of a leaf stands for one input.
    let mut taken = vec![false; all.len()];
    let mut buffers = Vec::new();
    for a in &args {
        let i = (0..all.len()).find(|i| !taken[*i] && all[*i] == *a).unwrap();
        taken[i] = true;
        buffers.push(buffer(&inputs[i], a.info().unwrap().as_tensor().unwrap().dtype.unwrap()));
    }
    let first = buffers.len();
    let fixed = |e: &PrimExpr| Analyzer::new().simplify(&substitute(e, values)).as_int().unwrap();
    for t in info.tensors().unwrap() {
        let shape: Vec<i64> = t.dims.known().unwrap().iter().map(fixed).collect();
        buffers.push(TensorBuf::zeros(t.dtype.unwrap(), &shape).unwrap());
    }
    let outputs = first..buffers.len();
    for e in &tir_vars {
        buffers.push(TensorBuf::scalar_i64(e.dtype(), fixed(e)).unwrap());
    }
    assert_eq!(buffers.len(), func.params.len(), "{name}");
    assert_eq!(func.params.iter().filter(|p| matches!(p, Param::Scalar(_))).count(), tir_vars.len(), "{name}");
    let options = Options { poison: true, uninitialised: outputs.clone().collect(), ..Options::default() };
    run_with(&func, &mut buffers, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
    outputs.map(|i| Array { shape: buffers[i].shape.clone(), data: buffers[i].to_f64() }).collect()
}

/// The first result of a call of fixed shapes.
pub(super) fn eval(call: &Call, inputs: &[Array]) -> Array {
    eval_with(call, inputs, &BTreeMap::new()).swap_remove(0)
}

/// Compares with a loop over the result's indices.
#[track_caller]
pub(super) fn check(call: &Call, inputs: &[Array], shape: &[i64], tolerance: f64, want: impl Fn(&[i64]) -> f64) {
    let got = eval(call, inputs);
    assert_eq!(got.shape, shape, "{}", call.op.name());
    for (i, v) in indices(shape).iter().zip(&got.data) {
        let w = want(i);
        let same = v == &w || (v.is_nan() && w.is_nan()) || (v - w).abs() <= tolerance * (1.0 + w.abs());
        assert!(same, "{} at {i:?} of {shape:?}: {v}, not {w}", call.op.name());
    }
}
