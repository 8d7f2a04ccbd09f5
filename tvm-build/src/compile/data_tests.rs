//! Models whose shapes depend on data, compiled for this machine: sizes of 0 and 1 and beyond, with freed memory poisoned.

#![allow(unsafe_code, reason = "kernels come from a shared library")]

use super::tests::session;
use super::*;
use crate::toolchain::host_target;
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::{ParseOptions, parse_module};
use tvm_runtime::DType;
use tvm_runtime::host::{HostStorage, HostTensor, Session};

struct Compiled {
    artifacts: Artifacts,
    session: Session,
}

fn module(text: &str) -> Compiled {
    let mut sources = SourceMap::default();
    let module = parse_module(&mut sources, "test.py", text, ParseOptions::default())
        .unwrap_or_else(|d| panic!("{}", tvm_ir::render::render_all(&d, &sources)));
    let vm = vm::Options { poison: true, ..vm::Options::default() };
    let artifacts = compile_module(module, &Options { vm, ..Options::new("data", host_target()) })
        .unwrap_or_else(|d| panic!("{d}"));
    let mut session = session(&artifacts);
    session.reserve(1 << 20).unwrap();
    Compiled { artifacts, session }
}

impl Compiled {
    /// What `main` returns; it writes `outs`.
    fn run(&mut self, inputs: &mut [HostTensor], outs: &mut [HostTensor]) -> Vec<HostTensor> {
        let main = self.session.function("main").unwrap();
        let mut storage = HostStorage::new(&self.artifacts.program.tables().functions[main]);
        let args: Vec<_> =
            inputs.iter_mut().map(HostTensor::input).chain(outs.iter_mut().map(HostTensor::output)).collect();
        let value = self.session.call(main, &args, &mut storage).unwrap();
        // SAFETY: the call has just given it, with this storage; arguments are alive.
        unsafe { self.session.returned(value, &storage) }
    }
}

fn floats(shape: &[i64], values: &[f32]) -> HostTensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostTensor::new(DType::F32, shape, &bytes).unwrap()
}

fn to_floats(t: &HostTensor) -> Vec<f32> {
    t.bytes().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn to_ints(t: &HostTensor) -> Vec<i64> {
    t.bytes().chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Values that repeat for a seed.
fn values(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + seed * 5 + i * i % 11) % 4) as f32 - 1.0).collect()
}

const FOUND: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tuple(R.Tensor(ndim=2, dtype="int64"), R.Tensor(ndim=1, dtype="float32"), R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        k = T.int64()
        with R.dataflow():
            y = R.multiply(x, R.const(2.0, "float32"))
            at = R.nonzero(x)
            found: R.Tensor((2, k), "int64") = R.match_cast(at, R.Tensor((2, k), "int64"))
            where = R.permute_dims(found)
            values = R.gather_nd(y, where)
            twice = R.add(values, values)
            gv = (found, twice, R.nn.relu(y))
            R.output(gv)
        return gv
"#;

#[test]
fn what_is_found_is_used_and_returned() {
    let mut module = module(FOUND);
    assert!(module.artifacts.program.entries[0].dynamic_bytes.is_some());
    for (seed, (n, m)) in [(0, 3), (1, 1), (4, 5), (3, 0), (17, 9), (1, 1), (4, 5)].into_iter().enumerate() {
        let mut data = values(n * m, seed);
        if seed == 5 {
            data.fill(0.0);
        }
        let mut positive = [HostTensor::zeroed(DType::F32, &[n as i64, m as i64]).unwrap()];
        let out = module.run(&mut [floats(&[n as i64, m as i64], &data)], &mut positive);
        let hits: Vec<usize> = (0..n * m).filter(|i| data[*i] != 0.0).collect();
        let k = hits.len() as i64;
        assert_eq!((out[0].shape(), out[1].shape()), (&[2, k][..], &[k][..]), "{n} {m}");
        let rows: Vec<i64> = hits.iter().map(|i| (i / m) as i64).chain(hits.iter().map(|i| (i % m) as i64)).collect();
        assert_eq!(to_ints(&out[0]), rows);
        assert_eq!(to_floats(&out[1]), hits.iter().map(|i| 4.0 * data[*i]).collect::<Vec<_>>());
        assert_eq!(to_floats(&positive[0]), data.iter().map(|v| (2.0 * v).max(0.0)).collect::<Vec<_>>());
    }
}

const KINDS: &str = r#"
@I.ir_module
class Module:
    @R.function(private=True)
    def kinds(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor(("n",), "int64"), R.Tensor(ndim=1, dtype="int64")):
        n = T.int64()
        with R.dataflow():
            u = R.unique(x, sorted=True, return_index=False, return_inverse=True, return_counts=True)
            R.output(u)
        return u

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor(("n",), "float32")):
        cls = Module
        n = T.int64()
        k = T.int64()
        with R.dataflow():
            u: R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor((n,), "int64"), R.Tensor(ndim=1, dtype="int64")) = cls.kinds(x)
            a: R.Tensor(ndim=1, dtype="float32") = u[0]
            b: R.Tensor((n,), "int64") = u[1]
            c: R.Tensor(ndim=1, dtype="int64") = u[2]
            values = R.match_cast(a, R.Tensor((k,), "float32"))
            counts = R.match_cast(c, R.Tensor((k,), "int64"))
            weighted = R.multiply(values, R.astype(counts, "float32"))
            back = R.take(values, b, axis=0)
            gv = (weighted, back)
            R.output(gv)
        return gv
"#;

#[test]
fn a_function_gives_its_caller_what_it_found() {
    let mut module = module(KINDS);
    for (seed, n) in [0, 1, 2, 9, 40, 0, 3].into_iter().enumerate() {
        let data = values(n, seed);
        let mut back = [HostTensor::zeroed(DType::F32, &[n as i64]).unwrap()];
        let out = module.run(&mut [floats(&[n as i64], &data)], &mut back);
        let mut kinds = data.clone();
        kinds.sort_by(f32::total_cmp);
        kinds.dedup();
        let count = |v: &f32| data.iter().filter(|x| *x == v).count() as f32;
        assert_eq!(to_floats(&out[0]), kinds.iter().map(|v| v * count(v)).collect::<Vec<_>>());
        assert_eq!(to_floats(&back[0]), data);
    }
}

const EITHER: &str = r#"
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(ndim=1, dtype="float32"):
        n = T.int64()
        k = T.int64()
        m = T.int64()
        if c:
            at = R.nonzero(x)
            found: R.Tensor((1, k), "int64") = R.match_cast(at, R.Tensor((1, k), "int64"))
            flat = R.reshape(found, R.shape([k]))
            a = R.take(x, flat, axis=0)
            r: R.Tensor(ndim=1, dtype="float32") = a
        else:
            b = R.concat((x, x), axis=0)
            r: R.Tensor(ndim=1, dtype="float32") = b
        s: R.Tensor((m,), "float32") = R.match_cast(r, R.Tensor((m,), "float32"))
        t = R.add(s, s)
        return t
"#;

#[test]
fn branches_give_what_they_have() {
    let mut module = module(EITHER);
    for (seed, n) in [0, 1, 5, 33, 2].into_iter().enumerate() {
        let data = values(n, seed);
        for c in [0u8, 1] {
            let cond = HostTensor::new(DType::BOOL, &[], &[c]).unwrap();
            let out = module.run(&mut [floats(&[n as i64], &data), cond], &mut []);
            let expected: Vec<f32> = match c {
                1 => data.iter().filter(|v| **v != 0.0).map(|v| 2.0 * v).collect(),
                _ => data.iter().chain(&data).map(|v| 2.0 * v).collect(),
            };
            assert_eq!(to_floats(&out[0]), expected);
        }
    }
}
