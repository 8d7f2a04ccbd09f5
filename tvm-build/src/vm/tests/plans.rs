//! Plans as tables, programs as text, and what they compute.

use super::*;

const CHAIN: &str = r#"
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        a = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((4,), "float32"))
        b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((4,), "float32"))
        c = R.call_tir(cls.add, (b, y), out_sinfo=R.Tensor((4,), "float32"))
        d = R.call_tir(cls.reverse, (c,), out_sinfo=R.Tensor((4,), "float32"))
        return d
"#;

#[test]
fn a_chain_alternates_between_two_places() {
    let c = compiled(CHAIN, &Options::default());
    assert_eq!(
        c.plans[0].to_string(),
        "@main: arena 80 bytes (lower bound 80, unshared 192)\n\
         \x20 +0               16    0..1   a: (4,) float32\n\
         \x20 +64              16    1..2   b: (4,) float32\n\
         \x20 +64              16    2..3   c: (4,) float32  (in place of b)\n\
         \x20 out[0]           16    3..3   d: (4,) float32\n"
    );
    assert_eq!(
        c.program.tables().to_string(),
        "@main:\n\
         \x20   0  call  add              in: %0, %1, c[0], i4 dst: %void\n\
         \x20   1  call  reverse          in: c[0], c[1], i4 dst: %void\n\
         \x20   2  call  add              in: c[1], %1, c[1], i4 dst: %void\n\
         \x20   3  call  reverse          in: c[1], out[0], i4 dst: %void\n\
         \x20   4  ret   none\n"
    );
    assert_eq!(c.program.tables().functions[0].arena_bytes, 80);
    let out = results(CHAIN, &[&[1., 2., 3., 4.], &[10., 20., 30., 40.]], &[4]);
    // d = reverse(reverse(x + y) + y)
    assert_eq!(out, [[51., 52., 53., 54.]]);
}

#[test]
fn pointers_that_share_memory_lose_noalias() {
    let noalias = |options: &Options| -> Vec<Vec<bool>> {
        let module = module(CHAIN);
        let mut kernels = lower_to_kernels(&module, &Target::default()).unwrap();
        compile(&module, &mut kernels, options).unwrap();
        let params = |k: &LoweredFunc| {
            k.kernel
                .params
                .iter()
                .filter_map(|p| match p {
                    Param::Pointer { noalias, .. } => Some(*noalias),
                    Param::Scalar { .. } => None,
                })
                .collect()
        };
        kernels.iter().map(params).collect()
    };
    assert_eq!(noalias(&Options::default())[0], [false, true, false]);
    let without = Options { reuse_in_place: false, poison: false };
    assert!(noalias(&without).iter().flatten().all(|n| *n));
}

#[test]
fn poison_fills_what_is_dead() {
    let c = compiled(CHAIN, &POISON);
    let text = c.program.tables().to_string();
    // After b = reverse(a), a is dead; b lives on as c.
    assert!(text.contains("1  call  reverse          in: c[0], c[1], i4 dst: %void\n    2  call  vm.builtin.fill  in: c[0], i203 dst: %void\n"), "{text}");
    assert_eq!(text.matches("vm.builtin.fill").count(), 2, "{text}");
}

#[test]
fn inputs_constants_and_duplicates_are_copied_to_outputs() {
    let text = r#"
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))
        t = (a, (x, a))
        inner = t[1]
        b = R.call_tir(cls.double, (inner[1],), out_sinfo=R.Tensor((4,), "float32"))
        return (t, b)
"#;
    let c = compiled(text, &Options::default());
    assert_eq!(c.plans[0].arena_bytes, 0);
    assert_eq!(
        c.program.tables().to_string(),
        "@main:\n\
         \x20   0  call  double           in: %0, out[0], i4 dst: %void\n\
         \x20   1  call  double           in: out[0], out[3], i4 dst: %void\n\
         \x20   2  call  vm.builtin.copy_tensor in: %0, out[1] dst: %void\n\
         \x20   3  call  vm.builtin.copy_tensor in: out[0], out[2] dst: %void\n\
         \x20   4  ret   none\n"
    );
    let out = results(text, &[&[1., 2., 3., 4.]], &[4; 4]);
    assert_eq!(out, [[2., 4., 6., 8.], [1., 2., 3., 4.], [2., 4., 6., 8.], [4., 8., 12., 16.]]);
}

#[test]
fn equal_constants_are_one_weight() {
    let text = r#"
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        cls = Module
        a = R.call_tir(cls.add, (x, R.const([1.0, 2.0], "float32")), out_sinfo=R.Tensor((2,), "float32"))
        b = R.call_tir(cls.add, (a, R.const([1.0, 2.0], "float32")), out_sinfo=R.Tensor((2,), "float32"))
        c = R.const([1.0, 2.0], "float32")
        return (b, c)
"#;
    let c = compiled(text, &Options::default());
    assert_eq!((c.weights.len(), c.program.tables().weight_bytes), (8, 8));
    assert_eq!(results(text, &[&[0., 5.]], &[2, 2]), [[2., 9.], [1., 2.]]);
}

#[test]
fn two_outputs_of_one_kernel() {
    let text = r#"
    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        cls = Module
        s = R.call_tir(cls.split, (x,), out_sinfo=[R.Tensor((3,), "float32"), R.Tensor((3,), "float32")])
        a = s[0]
        b = s[1]
        r = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((3,), "float32"))
        o = R.call_tir(cls.add, (r, b), out_sinfo=R.Tensor((3,), "float32"))
        return o
"#;
    assert_eq!(results(text, &[&[1., 2., 3.]], &[3]), [[4., 4., 4.]]);
    let c = compiled(text, &Options::default());
    assert_eq!(c.plans[0].lower_bound, 140);
    // The last block needs no padding behind it.
    assert_eq!(c.plans[0].arena_bytes, 140);
}

#[test]
fn branches_write_to_one_place() {
    let text = r#"
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        cls = Module
        a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((3,), "float32"))
        if c:
            b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((3,), "float32"))
            r = R.call_tir(cls.add, (b, x), out_sinfo=R.Tensor((3,), "float32"))
        else:
            r = a
        o = R.call_tir(cls.reverse, (r,), out_sinfo=R.Tensor((3,), "float32"))
        return o
"#;
    for options in [Options::default(), POISON] {
        let c = compiled(text, &options);
        for (cond, expected) in [(1u8, [5., 6., 7.]), (0, [6., 4., 2.])] {
            let program = c.program.to_static(TABLES);
            // SAFETY: kernels and weights belong to the program.
            let mut session = unsafe { Session::new(program, []) }.unwrap();
            let mut cond = HostTensor::new(DType::BOOL, &[], &[cond]).unwrap();
            let (mut x, mut out) = (vector(&[1., 2., 3.]), vector(&[0.; 3]));
            let args = [cond.input(), x.input(), out.output()];
            session.call(0, &args, &mut HostStorage::new(&program.functions[0])).unwrap();
            assert_eq!(values(&out), expected, "{}", program);
        }
    }
    let c = compiled(text, &Options::default());
    let text = c.program.tables().to_string();
    assert!(text.contains("if    %0 else"), "{text}");
    assert_eq!(text.matches("copy_tensor").count(), 1, "{text}");
}

#[test]
fn functions_call_functions() {
    let text = r#"
    @R.function(private=True)
    def twice(x: R.Tensor((3,), "float32"), t: R.Tuple(R.Tensor((3,), "float32"), R.Tensor((3,), "float32"))) -> R.Tuple(R.Tensor((3,), "float32"), R.Tensor((3,), "float32")):
        cls = Module
        y = t[1]
        a = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((3,), "float32"))
        b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((3,), "float32"))
        c = R.call_tir(cls.double, (b,), out_sinfo=R.Tensor((3,), "float32"))
        return (c, x)

    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        cls = Module
        a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((3,), "float32"))
        t: R.Tuple(R.Tensor((3,), "float32"), R.Tensor((3,), "float32")) = cls.twice(a, (x, x))
        p = t[0]
        q = t[1]
        o = R.call_tir(cls.add, (p, q), out_sinfo=R.Tensor((3,), "float32"))
        return o
"#;
    // a = 2x; twice gives 2 reverse(3x) and 2x.
    assert_eq!(results(text, &[&[1., 2., 3.]], &[3]), [[20., 16., 12.]]);
    let c = compiled(text, &Options::default());
    let names: Vec<_> = c.program.tables().functions.iter().map(|f| f.name).collect();
    assert_eq!(names, ["twice", "main"]);
    assert_eq!(c.program.entries.len(), 1);
}

#[test]
fn a_copying_function_is_no_call() {
    let relax = r#"
    @T.prim_func(private=True)
    def flat(A: T.Buffer((2, 2), "float32"), O: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("flat"):
                v = T.axis.spatial(4, i)
                O[v] = A[v // 2, v % 2]

    @R.function
    def main(x: R.Tensor((2, 2), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module
        f = R.call_tir(cls.flat, (x,), out_sinfo=R.Tensor((4,), "float32"))
        d = R.call_tir(cls.double, (f,), out_sinfo=R.Tensor((4,), "float32"))
        return (d, f)
"#;
    let c = compiled(relax, &Options::default());
    let text = c.program.tables().to_string();
    assert!(!text.contains("flat"), "{text}");
    assert!(text.contains("copy_tensor in: %0, out[1]"), "{text}");
}

/// Doubles its argument in place.
unsafe extern "C" fn twice(args: *const *mut c_void, dims: *const i64, _: *const Context) -> i32 {
    // SAFETY: as the PrimFunc below says.
    let a = unsafe { floats(args, dims, 0) };
    a.iter().for_each(|v| v.set(2.0 * v.get()));
    0
}

const TWICE: &str = r#"
    @T.prim_func(private=True)
    def twice(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,))
        for i in range(n):
            with T.block("twice"):
                v = T.axis.spatial(n, i)
                A[v] = A[v] + A[v]
"#;

#[test]
fn calls_in_place_overwrite_what_the_function_made_and_copies_of_the_rest() {
    static KERNELS: &[Kernel] = &[add, double, reverse, split, twice];
    static TABLES: &[KernelTable] = &[KernelTable { level: IsaLevel::Baseline, kernels: KERNELS }];
    let text = format!(
        r#"{TWICE}
    @R.function(pure=False)
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        cls = Module
        a = R.call_tir_inplace(cls.twice, (x,), out_sinfo=R.Tensor((3,), "float32"), inplace_indices=[0])
        b = R.call_tir_inplace(cls.twice, (a,), out_sinfo=R.Tensor((3,), "float32"), inplace_indices=[0])
        c = R.call_tir(cls.add, (b, x), out_sinfo=R.Tensor((3,), "float32"))
        return c
"#
    );
    for options in [Options::default(), POISON] {
        let c = compiled(&text, &options);
        let program = c.program.to_static(TABLES);
        assert_eq!(program.to_string().matches("copy_tensor").count(), 1, "{program}");
        // SAFETY: kernels and weights belong to the program.
        let mut session = unsafe { Session::new(program, []) }.unwrap();
        let (mut x, mut out) = (vector(&[1., 2., 3.]), vector(&[0.; 3]));
        session.call(0, &[x.input(), out.output()], &mut HostStorage::new(&program.functions[0])).unwrap();
        assert_eq!((values(&x), values(&out)), (vec![1., 2., 3.], vec![5., 10., 15.]));
    }
}

#[test]
fn external_functions_take_tensors_and_write_outputs() {
    let text = r#"
    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        cls = Module
        a = R.call_dps_packed("my_fn", (4, x, R.shape([3])), out_sinfo=R.Tensor((3,), "float32"))
        b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((3,), "float32"))
        return b
"#;
    let module = module(text);
    let kernels = lower_to_kernels(&module, &Target::default()).unwrap();
    let mut externals = Externals::default();
    let signature = "fn my_fn(y: *mut f32, k: i64, n: usize, x: *const f32)";
    let types = crate::external::CTypes { long: 64, pointer: 64 };
    externals.add(crate::external::Declaration::parse(signature, "build.rs", types).unwrap());
    let c = compile_levels(&mut [Level { module, kernels }], &externals, &Options::default()).unwrap();
    assert_eq!(c.program.externs[0].name, "my_fn");
    // Operands in the order of the parameters, outputs last.
    let listing = c.program.tables().to_string();
    assert!(listing.contains("call  my_fn            in: i4, i3, %0, c[0] dst: %void"), "{listing}");
    assert_eq!(run(&c, &[&[1.; 3]], &[3]), Err(Error::Extern { name: "?", message: "not linked into this program" }));
}
