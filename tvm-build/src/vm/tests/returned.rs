//! Shapes that depend on data: memory of the overflow store, upper bounds, tensors that functions return.

use super::*;
use crate::vm::Place;

/// Calls `main`, which returns all its results.
fn call(c: &Compiled, inputs: &mut [HostTensor]) -> Result<Vec<HostTensor>, Error> {
    let program = c.program.to_static(TABLES);
    // SAFETY: kernels and weights belong to the program.
    let mut session = unsafe { Session::new(program, c.weights.to_aligned()) }.unwrap();
    let main = session.function("main").unwrap();
    let mut storage = HostStorage::new(&program.functions[main]);
    let args: Vec<_> = inputs.iter_mut().map(HostTensor::input).collect();
    let mut last = Vec::new();
    // The second call finds the blocks of the first.
    for _ in 0..2 {
        let value = session.call(main, &args, &mut storage)?;
        // SAFETY: the call has just given it, with this storage; arguments are alive.
        last = unsafe { session.returned(value, &storage) };
    }
    Ok(last)
}

fn all_options() -> [Options; 3] {
    [Options::default(), POISON, Options { reuse_in_place: false, poison: true }]
}

fn counting(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

fn integers(values: &[i64]) -> HostTensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostTensor::new(DType::I64, &[values.len() as i64], &bytes).unwrap()
}

const CHAIN: &str = r#"
    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
        ATTRS
        cls = Module
        m = T.int64()
        a = R.match_cast(x, R.Tensor((m,), "float32"))
        b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((m,), "float32"))
        c = R.call_tir(cls.reverse, (b,), out_sinfo=R.Tensor((m,), "float32"))
        d = R.call_tir(cls.add, (c, c), out_sinfo=R.Tensor((m,), "float32"))
        e = R.call_tir(cls.reverse, (d,), out_sinfo=R.Tensor((m,), "float32"))
        return e
"#;

#[test]
fn sizes_that_nothing_bounds_are_blocks() {
    let text = CHAIN.replace("ATTRS", "");
    for options in all_options() {
        let c = compiled(&text, &options);
        assert!(c.plans[0].tensors.iter().all(|t| matches!(t.place, Place::Overflow(_))), "{}", c.plans[0]);
        assert_eq!((c.plans[0].arena_bytes, &c.program.entries[0].dynamic_bytes), (0, &None));
        for n in [0, 1, 5, 1000] {
            let out = call(&c, &mut [vector(&counting(n))]).unwrap();
            assert_eq!(out[0].shape(), [n as i64]);
            assert_eq!(values(&out[0]), counting(n).iter().map(|v| 4.0 * v).collect::<Vec<f32>>());
        }
    }
    let plan = compiled(&text, &Options::default()).plans[0].to_string();
    assert!(plan.contains("heap[0]           ?    1..2   b: (m,) float32\n"), "{plan}");
}

#[test]
fn a_declared_bound_gives_a_place_in_the_arena() {
    let text = CHAIN.replace("ATTRS", r#"R.func_attr({"tir_var_upper_bound": {"m": 100}})"#);
    for options in all_options() {
        let c = compiled(&text, &options);
        assert!(c.plans[0].tensors.iter().all(|t| matches!(t.place, Place::Arena(_))), "{}", c.plans[0]);
        for n in [0, 1, 100] {
            let out = call(&c, &mut [vector(&counting(n))]).unwrap();
            assert_eq!(values(&out[0]), counting(n).iter().map(|v| 4.0 * v).collect::<Vec<f32>>());
        }
        let e = call(&c, &mut [vector(&counting(101))]).err().unwrap();
        assert_eq!(e, Error::AboveBound { symbol: "m", most: 100, found: 101 });
    }
}

/// `b` has the extent `s[0]`, which is at most twice that of `y`.
const BOUNDED: &str = r#"
    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32"), y: R.Tensor(YSHAPE, "float32"), s: R.Tensor((1,), "int64")) -> R.Tensor(ndim=1, dtype="float32"):
        cls = Module
        n = T.int64()
        k = T.int64()
        t = R.tensor_to_shape(s)
        u = R.at_most(t, R.shape([MOST]))
        v: R.Shape([k]) = R.match_cast(u, R.Shape([k]))
        a = R.match_cast(x, R.Tensor((k,), "float32"))
        b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((k,), "float32"))
        c = R.call_tir(cls.reverse, (b,), out_sinfo=R.Tensor((k,), "float32"))
        return c
"#;

#[test]
fn an_op_states_a_bound() {
    let symbolic = BOUNDED.replace("YSHAPE", "(\"n\",)").replace("MOST", "n * 2");
    let fixed = BOUNDED.replace("YSHAPE", "(4,)").replace("MOST", "8");
    for options in all_options() {
        for (text, bytes) in [(&symbolic, None), (&fixed, Some(32))] {
            let c = compiled(text, &options);
            assert_eq!(c.plans[0].tensors[0].bytes, bytes, "{}", c.plans[0]);
            assert_eq!(c.plans[0].regions.is_empty(), bytes.is_some(), "{}", c.plans[0]);
            assert!(c.plans[0].tensors.iter().all(|t| !matches!(t.place, Place::Overflow(_))), "{}", c.plans[0]);
            let program = c.program.to_static(TABLES);
            // SAFETY: kernels and weights belong to the program.
            let mut session = unsafe { Session::new(program, []) }.unwrap();
            session.reserve(1 << 10).unwrap();
            for k in [0, 1, 8, 9] {
                let mut inputs = [vector(&counting(k)), vector(&counting(4)), integers(&[k as i64])];
                let args: Vec<_> = inputs.iter_mut().map(HostTensor::input).collect();
                let mut storage = HostStorage::new(&program.functions[0]);
                let out = session.call(0, &args, &mut storage);
                if k == 9 {
                    assert_eq!(out, Err(Error::AboveBound { symbol: "k", most: 8, found: 9 }));
                    continue;
                }
                // SAFETY: the call has just given it.
                let out = unsafe { session.returned(out.unwrap(), &storage) };
                assert_eq!(values(&out[0]), counting(k).iter().rev().map(|v| 2.0 * v).collect::<Vec<f32>>());
                assert_eq!(session.overflow_bytes(), 0);
            }
        }
    }
}

#[test]
fn functions_give_tensors_to_their_callers() {
    let text = r#"
    @R.function(private=True)
    def inner(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor((2,), "float32"), R.Tensor(ndim=1, dtype="float32")):
        cls = Module
        k = T.int64()
        w = R.match_cast(x, R.Tensor((k,), "float32"))
        a = R.call_tir(cls.double, (w,), out_sinfo=R.Tensor((k,), "float32"))
        b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((k,), "float32"))
        o = R.call_tir(cls.double, (R.const([1.0, 2.0], "float32"),), out_sinfo=R.Tensor((2,), "float32"))
        return (b, o, x)

    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=1, dtype="float32")):
        cls = Module
        m = T.int64()
        j = T.int64()
        r: R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor((2,), "float32"), R.Tensor(ndim=1, dtype="float32")) = cls.inner(x)
        p: R.Tensor(ndim=1, dtype="float32") = r[0]
        q = R.match_cast(p, R.Tensor((m,), "float32"))
        s: R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor((2,), "float32"), R.Tensor(ndim=1, dtype="float32")) = cls.inner(q)
        t: R.Tensor(ndim=1, dtype="float32") = s[0]
        u = R.match_cast(t, R.Tensor((m,), "float32"))
        v = R.call_tir(cls.add, (u, q), out_sinfo=R.Tensor((m,), "float32"))
        z: R.Tensor(ndim=1, dtype="float32") = r[2]
        return (v, z)
"#;
    for options in all_options() {
        let c = compiled(text, &options);
        for n in [0, 1, 3, 50] {
            let out = call(&c, &mut [vector(&counting(n))]).unwrap();
            // 4x + reverse(2x), and x.
            let expected: Vec<f32> = (0..n).map(|i| (4 * i + 2 * (n - 1 - i)) as f32).collect();
            assert_eq!((values(&out[0]), values(&out[1])), (expected, counting(n)), "{options:?}");
            assert_eq!((out[0].shape(), out[1].shape()), (&[n as i64][..], &[n as i64][..]));
        }
    }
}

#[test]
fn branches_of_different_shapes() {
    let text = r#"
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(ndim=1, dtype="float32"), c: R.Tensor((), "bool")) -> R.Tensor(ndim=1, dtype="float32"):
        cls = Module
        n = T.int64()
        m = T.int64()
        k = T.int64()
        if c:
            a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "float32"))
            r: R.Tensor(ndim=1, dtype="float32") = a
        else:
            z = R.match_cast(y, R.Tensor((k,), "float32"))
            b = R.call_tir(cls.double, (z,), out_sinfo=R.Tensor((k,), "float32"))
            d = R.call_tir(cls.reverse, (b,), out_sinfo=R.Tensor((k,), "float32"))
            r: R.Tensor(ndim=1, dtype="float32") = d
        o = R.match_cast(r, R.Tensor((m,), "float32"))
        e = R.call_tir(cls.double, (o,), out_sinfo=R.Tensor((m,), "float32"))
        f = R.call_tir(cls.add, (e, o), out_sinfo=R.Tensor((m,), "float32"))
        return f
"#;
    for options in all_options() {
        let c = compiled(text, &options);
        let program = c.program.to_static(TABLES);
        for (cond, n, m) in [(1u8, 3, 5), (0, 3, 5), (0, 3, 0), (1, 1, 0), (0, 4, 1)] {
            // SAFETY: kernels and weights belong to the program.
            let mut session = unsafe { Session::new(program, []) }.unwrap();
            session.reserve(1 << 12).unwrap();
            let mut inputs =
                [vector(&counting(n)), vector(&counting(m)), HostTensor::new(DType::BOOL, &[], &[cond]).unwrap()];
            let args: Vec<_> = inputs.iter_mut().map(HostTensor::input).collect();
            let mut storage = HostStorage::new(&program.functions[0]);
            let value = session.call(0, &args, &mut storage).unwrap();
            // SAFETY: the call has just given it.
            let out = unsafe { session.returned(value, &storage) };
            let expected: Vec<f32> = match cond {
                1 => (0..n).map(|i| 6.0 * i as f32).collect(),
                _ => (0..m).rev().map(|i| 6.0 * i as f32).collect(),
            };
            assert_eq!(values(&out[0]), expected, "{options:?}\n{program}");
        }
    }
}

#[test]
fn results_may_be_arguments_and_the_same() {
    let text = r#"
    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=1, dtype="float32")):
        return (x, x)
"#;
    let out = call(&compiled(text, &POISON), &mut [vector(&[1., 2.])]).unwrap();
    assert_eq!((values(&out[0]), values(&out[1])), (vec![1., 2.], vec![1., 2.]));
}

#[test]
fn entry_points_give_views() {
    let text = r#"
    @R.function
    def main(x: R.Tensor(("n",), "float32"), s: R.Tensor((1,), "int64")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor(("n",), "float32")):
        cls = Module
        n = T.int64()
        k = T.int64()
        t = R.tensor_to_shape(s)
        v: R.Shape([k]) = R.match_cast(t, R.Shape([k]))
        a = R.match_cast(x, R.Tensor((k,), "float32"))
        b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((k,), "float32"))
        c = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "float32"))
        return (b, c)
"#;
    let c = compiled(text, &Options::default());
    let outs = &c.program.entries[0].outs;
    assert!(matches!((&outs[0].shape, &outs[1].shape), (OutShape::Returned(Some(1)), OutShape::Given(_))));
    let symbols = ["add", "double", "reverse", "split"].map(String::from).into();
    let options = rust::RustOptions {
        name: "net".into(),
        levels: vec![rust::Level { level: IsaLevel::Baseline, symbols }],
        weights: rust::WeightSource::Caller,
        library: None,
        heap: true,
        ndarray: true,
        libraries: Vec::new(),
        docs: Default::default(),
    };
    let text = rust::print(&c.program, &options).unwrap();
    for line in [
        "main(&mut self, x: &[f32], s: &[i64; 1], n: usize) -> Result<(TensorView<'_, f32, 1>, ::std::vec::Vec<f32>), Error>",
        "main_into(&mut self, x: &[f32], s: &[i64; 1], n: usize, out1: &mut [f32]) -> Result<TensorView<'_, f32, 1>, Error>",
        "Result<(::ndarray::ArrayView1<'_, f32>, ::ndarray::Array1<f32>), Error>",
        "`out0`: float32 of rank 1 in the module's memory",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
