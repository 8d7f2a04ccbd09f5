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
        let mut session = unsafe { Session::new(program, c.weights.to_aligned()) }.unwrap();
        session.reserve(1 << 16).unwrap();
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
        let mut session = unsafe { Session::new(program, c.weights.to_aligned()) }.unwrap();
        session.reserve(4096).unwrap();
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
    assert!(e.to_string().contains("the loop r: it does not say the shape of a row"), "{e}");
}

/// A trip count of the call; the first carried value changes its length, the second one is handed on as it is. What is
/// returned has as many rows as there were iterations.
const GROWING: &str = r#"
    @R.function(private=True)
    def step(i: R.Prim(value="i"), w: R.Tensor((5,), "float32"), x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=1, dtype="float32"), R.Tensor((5,), "float32"), R.Tensor(ndim=1, dtype="float32")):
        cls = Module
        i = T.int64()
        n = T.int64()
        m = T.int64()
        a = R.call_tir(cls.double, (y,), out_sinfo=R.Tensor((m,), "float32"))
        b = R.call_tir(cls.double, (w,), out_sinfo=R.Tensor((5,), "float32"))
        return (y, x, b, a)

    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((ROWS,), "float32"), w: R.Tensor((5,), "float32"), k: R.Tensor((), "int64")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=2, dtype="float32"), R.Tensor(ndim=2, dtype="float32")):
        cls = Module
        z = T.int64()
        d = T.int64()
        r = R.while_loop(cls.step, (w,), (x, y), trip_count=k, out_sinfo=[R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=1, dtype="float32"), R.Tensor((z, 5), "float32"), R.Tensor(ndim=2, dtype="float32")])
        s = R.match_cast(r[0], R.Tensor((d,), "float32"))
        t = R.call_tir(cls.double, (s,), out_sinfo=R.Tensor((d,), "float32"))
        return (t, r[1], r[2], r[3])
"#;

#[test]
fn what_changes_its_shape_lies_in_the_overflow_store() {
    let call = |rows: usize, count: i64, options: Options| {
        let c = compiled(&GROWING.replace("ROWS", &rows.to_string()), &options);
        let program = c.program.to_static(TABLES);
        // SAFETY: kernels and weights belong to the program.
        let mut session = unsafe { Session::new(program, []) }.unwrap();
        let main = session.function("main").unwrap();
        let y: Vec<f32> = (0..rows).map(|i| i as f32).collect();
        let mut args = [vector(&[1., 2.]), vector(&y), vector(&[3.; 5])];
        let mut k = HostTensor::new(DType::I64, &[], &count.to_le_bytes()).unwrap();
        let mut storage = HostStorage::new(&program.functions[main]);
        let mut bytes = Vec::new();
        for _ in 0..3 {
            let args: Vec<_> = args.iter_mut().chain([&mut k]).map(HostTensor::input).collect();
            let value = session.call(main, &args, &mut storage)?;
            // SAFETY: the call has just been made with this storage.
            let found = unsafe { session.returned(value, &storage) };
            bytes.push(session.overflow_bytes());
            if bytes.len() == 3 {
                // Later calls find the blocks of the first one.
                assert_eq!(bytes[1], bytes[2]);
                return Ok(found.iter().map(|t| (t.shape().to_vec(), values(t))).collect::<Vec<_>>());
            }
        }
        unreachable!()
    };
    for options in [Options { reuse_in_place: false, poison: false }, Options::default(), POISON] {
        for count in [0i64, 1, 2, 7] {
            let found = call(2, count, options).unwrap();
            let (mut x, mut y, mut rows) = (vec![1f32, 2.], vec![0f32, 1.], Vec::new());
            for _ in 0..count {
                rows.extend(y.iter().map(|v| 2. * v));
                std::mem::swap(&mut x, &mut y);
            }
            assert_eq!(found[0], (vec![2], x.iter().map(|v| 2. * v).collect()));
            assert_eq!(found[1], (vec![2], y));
            assert_eq!(found[2], (vec![count, 5], vec![6.; 5 * count as usize]));
            // Nothing tells how long a row is if there is none.
            assert_eq!(found[3], (vec![count, if count == 0 { 0 } else { 2 }], rows));
        }
        let e: Error = call(4, 2, options).unwrap_err();
        assert_eq!(e.to_string(), "the rows of `r`, which a loop stacks, have not all the same shape");
        assert_eq!(call(4, 1, options).unwrap()[0], (vec![4], vec![0., 2., 4., 6.]));
    }
}

#[test]
fn loops_in_branches() {
    let (bodies, _) = GROWING.split_once("    @R.function\n    def main").unwrap();
    let main = r#"
    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((3,), "float32"), w: R.Tensor((5,), "float32"), k: R.Tensor((), "int64"), c: R.Tensor((), "bool")) -> R.Tensor(ndim=1, dtype="float32"):
        cls = Module
        z = T.int64()
        d = T.int64()
        if c:
            r = R.while_loop(cls.step, (w,), (x, y), trip_count=k, out_sinfo=[R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=1, dtype="float32"), R.Tensor((z, 5), "float32"), R.Tensor(ndim=2, dtype="float32")])
            s: R.Tensor(ndim=1, dtype="float32") = r[0]
        else:
            s: R.Tensor(ndim=1, dtype="float32") = w
        t = R.match_cast(s, R.Tensor((d,), "float32"))
        u = R.call_tir(cls.double, (t,), out_sinfo=R.Tensor((d,), "float32"))
        return u
"#;
    let text = format!("{bodies}{main}");
    for options in [Options::default(), POISON] {
        let c = compiled(&text, &options);
        let program = c.program.to_static(TABLES);
        // SAFETY: kernels and weights belong to the program.
        let mut session = unsafe { Session::new(program, []) }.unwrap();
        let main = session.function("main").unwrap();
        for (count, cond, expected) in
            [(0i64, 1u8, vec![2f32, 4.]), (1, 1, vec![6., 8., 10.]), (7, 0, vec![2., 2., 2., 2., 2.])]
        {
            let mut k = HostTensor::new(DType::I64, &[], &count.to_le_bytes()).unwrap();
            let mut cond = HostTensor::new(DType::BOOL, &[], &[cond]).unwrap();
            let mut args = [vector(&[1., 2.]), vector(&[3., 4., 5.]), vector(&[1.; 5])];
            let args: Vec<_> = args.iter_mut().chain([&mut k, &mut cond]).map(HostTensor::input).collect();
            let mut storage = HostStorage::new(&program.functions[main]);
            let value = session.call(main, &args, &mut storage).unwrap_or_else(|e| panic!("{e}"));
            // SAFETY: the call has just been made with this storage.
            let found = unsafe { session.returned(value, &storage) };
            assert_eq!(values(&found[0]), expected, "{count} {program}");
        }
    }
}
