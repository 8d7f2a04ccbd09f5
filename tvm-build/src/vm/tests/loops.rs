//! Loops: counts, conditions, rows, memory.

use super::*;

/// Carries a vector that is doubled, or reversed and added to; stacks what it was.
const COUNTED: &str = r#"
    @R.function(private=True)
    def step(i: R.Prim(value="i"), w: R.Tensor((3,), "float32"), x: R.Tensor((3,), "float32")) -> R.Tuple(R.Tensor((3,), "float32"), R.Tensor((3,), "float32")):
        cls = Module
        i = T.int64()
        a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((3,), "float32"))
        b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((3,), "float32"))
        c = R.call_tir(cls.add, (b, w), out_sinfo=R.Tensor((3,), "float32"))
        return (c, x)

    @R.function
    def main(x: R.Tensor((3,), "float32"), w: R.Tensor((3,), "float32")) -> R.Tuple(R.Tensor((3,), "float32"), R.Tensor((COUNT, 3), "float32"), R.Tensor((3,), "float32")):
        cls = Module
        v = R.call_tir(cls.double, (w,), out_sinfo=R.Tensor((3,), "float32"))
        y = R.call_tir(cls.add, (x, v), out_sinfo=R.Tensor((3,), "float32"))
        r = R.while_loop(cls.step, (v,), (y,), trip_count=R.prim_value(COUNT), out_sinfo=[R.Tensor((3,), "float32"), R.Tensor((COUNT, 3), "float32")])
        s: R.Tensor((3,), "float32") = r[0]
        t: R.Tensor((COUNT, 3), "float32") = r[1]
        u = R.call_tir(cls.add, (s, v), out_sinfo=R.Tensor((3,), "float32"))
        return (s, t, u)
"#;

fn counted(x: [f32; 3], w: [f32; 3], count: usize) -> Vec<Vec<f32>> {
    let v = w.map(|w| 2.0 * w);
    let mut now = [0, 1, 2].map(|i| x[i] + v[i]);
    let mut rows = Vec::new();
    for _ in 0..count {
        rows.extend(now);
        now = [0, 1, 2].map(|i| 2.0 * now[2 - i] + v[i]);
    }
    vec![now.to_vec(), rows, [0, 1, 2].map(|i| now[i] + v[i]).to_vec()]
}

#[test]
fn a_count_carried_values_and_rows() {
    let (x, w) = ([1., 2., 3.], [0.5, 0.25, 4.]);
    for count in [0, 1, 2, 7] {
        let text = COUNTED.replace("COUNT", &count.to_string());
        let found = results_of_shapes(&text, &[&x, &w], &[&[3], &[count as i64, 3], &[3]]);
        assert_eq!(found, counted(x, w, count), "{count}");
    }
}

/// As `results`, for outputs of any shape.
fn results_of_shapes(relax: &str, inputs: &[&[f32]], outs: &[&[i64]]) -> Vec<Vec<f32>> {
    let mut expected: Option<Vec<Vec<f32>>> = None;
    for options in [Options { reuse_in_place: false, poison: false }, Options::default(), POISON] {
        let c = compiled(relax, &options);
        let program = c.program.to_static(TABLES);
        // SAFETY: kernels and weights belong to the program.
        let mut session = unsafe { Session::new(program, &c.weights.to_vec()) };
        session.reserve(1 << 16);
        let main = session.function("main").unwrap();
        let mut inputs: Vec<HostTensor> = inputs.iter().map(|v| vector(v)).collect();
        let mut made: Vec<HostTensor> = outs.iter().map(|s| HostTensor::zeroed(DType::F32, s).unwrap()).collect();
        let args: Vec<_> =
            inputs.iter_mut().map(HostTensor::input).chain(made.iter_mut().map(HostTensor::output)).collect();
        session.call(main, &args, &mut HostStorage::new(&program.functions[main])).unwrap();
        drop(args);
        let found: Vec<Vec<f32>> = made.iter().map(values).collect();
        assert_eq!(*expected.get_or_insert(found.clone()), found, "{options:?} {program}");
    }
    expected.unwrap()
}

/// The trip count is a tensor, the condition changes: a vector is doubled until the mark that is carried along arrives.
const UNTIL: &str = r#"
    @R.function(private=True)
    def step(i: R.Prim(value="i"), x: R.Tensor(("n",), "float32"), a: R.Tensor((), "bool"), b: R.Tensor((), "bool")) -> R.Tuple(R.Tensor((), "bool"), R.Tensor(("n",), "float32"), R.Tensor((), "bool"), R.Tensor((), "bool")):
        cls = Module
        i = T.int64()
        n = T.int64()
        d = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "float32"))
        return (a, d, b, R.const(False, "bool"))

    @R.function
    def main(x: R.Tensor(("n",), "float32"), count: R.Tensor((), "int64"), c: R.Tensor((), "bool"), a: R.Tensor((), "bool"), b: R.Tensor((), "bool")) -> R.Tensor(("n",), "float32"):
        cls = Module
        n = T.int64()
        r = R.while_loop(cls.step, R.tuple(), (x, a, b), trip_count=count, cond=c, out_sinfo=[R.Tensor((n,), "float32"), R.Tensor((), "bool"), R.Tensor((), "bool")])
        s: R.Tensor((n,), "float32") = r[0]
        return s
"#;

#[test]
fn a_count_and_a_condition_of_the_call() {
    for options in [Options::default(), POISON] {
        let c = compiled(UNTIL, &options);
        let program = c.program.to_static(TABLES);
        // SAFETY: kernels and weights belong to the program.
        let mut session = unsafe { Session::new(program, &c.weights.to_vec()) };
        session.reserve(4096);
        let main = session.function("main").unwrap();
        // Count, condition, the conditions of the second and third iteration; iterations made.
        for (count, marks, made) in [
            (5i64, [1u8, 1, 1], 3),
            (5, [1, 1, 0], 2),
            (5, [1, 0, 1], 1),
            (5, [0, 1, 1], 0),
            (2, [1, 1, 1], 2),
            (0, [1, 1, 1], 0),
            (-3, [1, 1, 1], 0),
        ] {
            let (mut x, mut out) = (vector(&[1., 2.]), vector(&[0.; 2]));
            let mut count = HostTensor::new(DType::I64, &[], &count.to_le_bytes()).unwrap();
            let mut marks = marks.map(|m| HostTensor::new(DType::BOOL, &[], &[m]).unwrap());
            let mut args = vec![x.input(), count.input()];
            args.extend(marks.iter_mut().map(HostTensor::input));
            args.push(out.output());
            session.call(main, &args, &mut HostStorage::new(&program.functions[main])).unwrap();
            drop(args);
            let factor = (1 << made) as f32;
            assert_eq!(values(&out), [factor, 2. * factor], "{program}");
        }
    }
}

#[test]
fn loops_in_loops() {
    let text = r#"
    @R.function(private=True)
    def inner(i: R.Prim(value="i"), w: R.Tensor(("n",), "float32"), x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32")):
        cls = Module
        i = T.int64()
        n = T.int64()
        a = R.call_tir(cls.add, (x, w), out_sinfo=R.Tensor((n,), "float32"))
        return (a,)

    @R.function(private=True)
    def outer(j: R.Prim(value="j"), w: R.Tensor(("n",), "float32"), x: R.Tensor(("n",), "float32"), z: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        cls = Module
        j = T.int64()
        n = T.int64()
        d = R.call_tir(cls.double, (w,), out_sinfo=R.Tensor((n,), "float32"))
        r = R.while_loop(cls.inner, (d,), (x,), trip_count=R.prim_value(j), out_sinfo=[R.Tensor((n,), "float32")])
        s: R.Tensor((n,), "float32") = r[0]
        return (z, s)

    @R.function
    def main(x: R.Tensor(("n",), "float32"), w: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        cls = Module
        n = T.int64()
        r = R.while_loop(cls.outer, (w,), (x, w), trip_count=R.prim_value(5), out_sinfo=[R.Tensor((n,), "float32"), R.Tensor((n,), "float32")])
        return r
"#;
    let (mut x, mut z) = (vec![1f32, 2.], vec![10f32, 20.]);
    let w = z.clone();
    for j in 0..5 {
        let s = (0..2).map(|k| x[k] + j as f32 * 2. * w[k]).collect();
        x = std::mem::replace(&mut z, s);
    }
    assert_eq!(results(text, &[&[1., 2.], &[10., 20.]], &[2, 2]), [x, z]);
}

#[test]
fn what_has_no_size_is_said() {
    let text = COUNTED
        .replace("R.Tensor((COUNT, 3), \"float32\")]", "R.Tensor(ndim=2, dtype=\"float32\")]")
        .replace("COUNT", "4")
        .replace("t: R.Tensor((4, 3), \"float32\") = r[1]", "t = R.match_cast(r[1], R.Tensor((4, 3), \"float32\"))");
    let Err(e) = try_compile(&module(&text), &Options::default()) else { panic!("it compiles") };
    assert!(e.to_string().contains("the stack a tensor of rank 2 float32 of the loop r has no size"), "{e}");
}
