//! Symbolic shapes: bound at entry, by casts, with and without upper bounds.

use super::*;

fn with_bound(attrs: &str) -> String {
    format!(
        r#"
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n * 2",), "float32")) -> R.Tensor(("n * 2",), "float32"):
        {attrs}
        cls = Module
        n = T.int64()
        a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "float32"))
        b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((n,), "float32"))
        c = R.call_tir(cls.add, (y, y), out_sinfo=R.Tensor((n * 2,), "float32"))
        d = R.call_tir(cls.reverse, (c,), out_sinfo=R.Tensor((n * 2,), "float32"))
        e = R.call_tir(cls.add, (d, y), out_sinfo=R.Tensor((n * 2,), "float32"))
        f = R.call_tir(cls.reverse, (b,), out_sinfo=R.Tensor((n,), "float32"))
        g = R.call_tir(cls.add, (f, x), out_sinfo=R.Tensor((n,), "float32"))
        return e
"#
    )
}

const BOUND: &str = r#"R.func_attr({"tir_var_upper_bound": {"n": 100}})"#;

#[test]
fn bounds_make_the_plan_constant() {
    let text = with_bound(BOUND);
    let c = compiled(&text, &Options::default());
    assert_eq!(
        c.plans[0].to_string(),
        "@main: arena 2064 bytes (lower bound 2064, unshared 3456)\n\
         \x20 +0              400    0..1   a: (n,) float32\n\
         \x20 +1664           400    1..5   b: (n,) float32\n\
         \x20 +0              800    2..3   c: (n * 2,) float32\n\
         \x20 +832            800    3..4   d: (n * 2,) float32\n\
         \x20 out[0]          800    4..4   e: (n * 2,) float32\n\
         \x20 +0              400    5..6   f: (n,) float32\n\
         \x20 +0              400    6..6   g: (n,) float32  (in place of f)\n"
    );
    let main = &c.program.tables().functions[0];
    assert_eq!(main.frame.arena, main.arena_bytes.next_multiple_of(64));
}

#[test]
fn values_above_the_bound_are_refused() {
    let c = compiled(&with_bound(BOUND), &Options::default());
    let call = |n: usize| run(&c, &[&vec![1.0; n], &vec![2.0; 2 * n]], &[2 * n as i64]);
    assert_eq!(call(100).unwrap(), [[6.0; 200]]);
    assert_eq!(call(0).unwrap(), [[0.0f32; 0]]);
    let e = call(101).unwrap_err();
    assert_eq!(e, Error::AboveBound { symbol: "n", most: 100, found: 101 });
    assert_eq!(e.to_string(), "n must be at most 100, found 101");
}

#[test]
fn values_below_the_bound_are_refused() {
    let both = r#"R.func_attr({"tir_var_lower_bound": {"n": 2}, "tir_var_upper_bound": {"n": 100}})"#;
    let c = compiled(&with_bound(both), &Options::default());
    let call = |n: usize| run(&c, &[&vec![1.0; n], &vec![2.0; 2 * n]], &[2 * n as i64]);
    assert_eq!(call(2).unwrap(), [[6.0; 4]]);
    let e = call(1).unwrap_err();
    assert_eq!(e, Error::BelowBound { symbol: "n", least: 2, found: 1 });
    assert_eq!(e.to_string(), "n must be at least 2, found 1");
}

#[test]
fn without_bounds_memory_is_placed_by_the_call() {
    let text = with_bound("");
    let c = compiled(&text, &Options::default());
    // The memory of `a` is made as large as `c` needs.
    assert_eq!(
        c.plans[0].to_string(),
        "@main: arena 0 bytes (lower bound 0, unshared 0)\n\
         \x20 dyn[0]            ?    0..1   a: (n,) float32\n\
         \x20 dyn[1]            ?    1..5   b: (n,) float32\n\
         \x20 dyn[0]            ?    2..3   c: (n * 2,) float32\n\
         \x20 dyn[2]            ?    3..4   d: (n * 2,) float32\n\
         \x20 out[0]            ?    4..4   e: (n * 2,) float32\n\
         \x20 dyn[0]            ?    5..6   f: (n,) float32\n\
         \x20 dyn[0]            ?    6..6   g: (n,) float32  (in place of f)\n"
    );
    let sizes: Vec<String> = c.plans[0].regions.iter().map(|e| format!("{e:?}")).collect();
    assert_eq!(sizes, ["Mul(n, 8)", "Mul(n, 4)", "Mul(n, 8)"]);
    for n in [1usize, 17, 100] {
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let y: Vec<f32> = (0..2 * n).map(|i| i as f32).collect();
        let expected: Vec<f32> = (0..2 * n).map(|i| (2 * (2 * n - 1 - i) + i) as f32).collect();
        for text in [&text, &with_bound(BOUND)] {
            assert_eq!(results(text, &[&x, &y], &[2 * n as i64])[0], expected);
        }
    }
}

#[test]
fn extents_are_compared() {
    let c = compiled(&with_bound(""), &Options::default());
    let e = run(&c, &[&[1.0; 3], &[1.0; 5]], &[6]).unwrap_err();
    assert_eq!(e, Error::WrongSymbol { argument: "y", axis: 0, symbol: "n * 2", bound: 6, found: 5 });
    let e = run(&c, &[&[1.0; 3], &[1.0; 6]], &[5]).unwrap_err();
    assert_eq!(e, Error::WrongSymbol { argument: "out", axis: 0, symbol: "n * 2", bound: 6, found: 5 });
}

/// Every comparison, and, or, not and a choice, in an extent.
#[test]
fn extents_may_be_chosen() {
    for (condition, holds) in [
        ("n < 4", [true, false, false]),
        ("n <= 4", [true, true, false]),
        ("n > 4", [false, false, true]),
        ("n >= 4", [false, true, true]),
        ("n == 4", [false, true, false]),
        ("n != 4", [true, false, true]),
        ("T.And(n > 3, n < 5)", [false, true, false]),
        ("T.Or(n < 4, n > 4)", [true, false, true]),
        ("T.Not(n == 4)", [true, false, true]),
    ] {
        let extent = format!("T.Select({condition}, n * 2, n)");
        let text = format!(
            r#"
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("{extent}",), "float32")) -> R.Tensor(("{extent}",), "float32"):
        n = T.int64()
        cls = Module
        z = R.call_tir(cls.double, (y,), out_sinfo=R.Tensor(({extent},), "float32"))
        return z
"#
        );
        for (n, holds) in [3usize, 4, 5].into_iter().zip(holds) {
            let y: Vec<f32> = (0..if holds { 2 * n } else { n }).map(|i| i as f32).collect();
            let expected: Vec<f32> = y.iter().map(|v| 2.0 * v).collect();
            assert_eq!(results(&text, &[&vec![1.0; n], &y], &[y.len() as i64])[0], expected, "{condition}, {n}");
        }
    }
}

const CAST: &str = r#"
    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32"), y: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        cls = Module
        k = T.int64()
        m = T.int64()
        a = R.match_cast(x, R.Tensor((m,), "float32"))
        b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((m,), "float32"))
        c = R.call_tir(cls.reverse, (b,), out_sinfo=R.Tensor((m,), "float32"))
        d = R.match_cast(c, R.Tensor((k,), "float32"))
        e = R.call_tir(cls.add, (d, y), out_sinfo=R.Tensor((k,), "float32"))
        return e
"#;

#[test]
fn casts_bind_and_compare() {
    assert_eq!(results(CAST, &[&[1., 2., 3.], &[10., 20., 30.]], &[3]), [[16., 24., 32.]]);
    let c = compiled(CAST, &Options::default());
    let e = run(&c, &[&[1.; 4], &[1.; 3]], &[3]).unwrap_err();
    assert_eq!(e, Error::WrongSymbol { argument: "d", axis: 0, symbol: "k", bound: 3, found: 4 });
}

#[test]
fn a_caller_passes_its_extents_on() {
    let text = r#"
    @R.function(private=True)
    def inner(x: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        cls = Module
        k = T.int64()
        a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((k,), "float32"))
        b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((k,), "float32"))
        return b

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        n = T.int64()
        a = R.call_tir(cls.reverse, (x,), out_sinfo=R.Tensor((n,), "float32"))
        b: R.Tensor((n,), "float32") = cls.inner(a)
        c = R.call_tir(cls.add, (b, a), out_sinfo=R.Tensor((n,), "float32"))
        return c
"#;
    // inner(reverse(x)) is 2x.
    assert_eq!(results(text, &[&[1., 2., 5.]], &[3]), [[7., 6., 11.]]);
}

#[test]
fn branches_with_symbolic_results() {
    let text = r#"
    @R.function
    def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(("n",), "float32"):
        cls = Module
        n = T.int64()
        a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "float32"))
        if c:
            b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((n,), "float32"))
            d = R.call_tir(cls.double, (b,), out_sinfo=R.Tensor((n,), "float32"))
            r = d
        else:
            r = R.call_tir(cls.reverse, (x,), out_sinfo=R.Tensor((n,), "float32"))
        o = R.call_tir(cls.add, (r, a), out_sinfo=R.Tensor((n,), "float32"))
        return o
"#;
    for options in [Options::default(), POISON, Options { reuse_in_place: false, poison: true }] {
        let c = compiled(text, &options);
        let program = c.program.to_static(TABLES);
        for (cond, expected) in [(1u8, [14., 12., 10.]), (0, [5., 6., 7.])] {
            // SAFETY: kernels and weights belong to the program.
            let mut session = unsafe { Session::new(program, []) }.unwrap();
            session.reserve(4096).unwrap();
            let mut cond = HostTensor::new(DType::BOOL, &[], &[cond]).unwrap();
            let (mut x, mut out) = (vector(&[1., 2., 3.]), vector(&[0.; 3]));
            let args = [x.input(), cond.input(), out.output()];
            session.call(0, &args, &mut HostStorage::new(&program.functions[0])).unwrap();
            assert_eq!(values(&out), expected, "{program}");
        }
    }
}

#[test]
fn shapes_are_computed_from_tensors() {
    let text = r#"
    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32"), s: R.Tensor((1,), "int64")) -> R.Tensor((2,), "int64"):
        cls = Module
        m = T.int64()
        k = T.int64()
        p = R.shape_of(x)
        q: R.Shape([m]) = R.match_cast(p, R.Shape([m]))
        t = R.tensor_to_shape(s)
        u: R.Shape([k]) = R.match_cast(t, R.Shape([k]))
        o = R.shape_to_tensor(R.shape([m, k * m]))
        return o
"#;
    for options in [Options::default(), POISON] {
        let c = compiled(text, &options);
        let program = c.program.to_static(TABLES);
        // SAFETY: kernels and weights belong to the program.
        let mut session = unsafe { Session::new(program, []) }.unwrap();
        let mut x = vector(&[0.; 3]);
        let mut s = HostTensor::new(DType::I64, &[1], &7i64.to_le_bytes()).unwrap();
        let mut out = HostTensor::zeroed(DType::I64, &[2]).unwrap();
        let args = [x.input(), s.input(), out.output()];
        session.call(0, &args, &mut HostStorage::new(&program.functions[0])).unwrap();
        let expected: Vec<u8> = [3i64, 21].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(out.bytes(), expected, "{program}");
    }
}

#[test]
fn an_output_takes_no_more_than_it_holds() {
    // `c` has as many elements as `x`; only the cast says that these are as many as the output's.
    let text = CAST.replace("return e", "return d");
    assert_eq!(results(&text, &[&[1., 2., 3.], &[10., 20., 30.]], &[3]), [[6., 4., 2.]]);
    let c = compiled(&text, &Options::default());
    assert!(c.program.tables().to_string().contains("copy_tensor"));
    let e = run(&c, &[&[1.; 4], &[1.; 3]], &[3]).unwrap_err();
    assert_eq!(e, Error::WrongSymbol { argument: "d", axis: 0, symbol: "k", bound: 3, found: 4 });
}

#[test]
fn the_range_of_a_type_bounds_no_size() {
    let bytes = |most: &str| {
        let text = format!(
            r#"
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("{most}",), "float32")) -> R.Tensor(("{most}",), "float32"):
        cls = Module
        n = T.int64()
        a = R.call_tir(cls.double, (y,), out_sinfo=R.Tensor(({most},), "float32"))
        b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor(({most},), "float32"))
        return b
"#
        );
        compiled(&text, &Options::default()).plans[0].tensors[0].bytes
    };
    assert_eq!(bytes("T.min(n, 5)"), Some(20));
    assert_eq!(bytes("T.min(n, 1000000000)"), None);
}
