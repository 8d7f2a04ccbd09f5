//! Lists: made, changed, joined and split at run time, in loops and branches.

use super::*;
use tvm_ir::interp::TensorBuf;
use tvm_ir::interp::relax::{Value as Interpreted, run_function};
use tvm_runtime::host::HostValue;

/// Prefixes of a vector are collected: item `i` is what was carried in iteration `i`. Then some are taken out again.
const COLLECT: &str = r#"
    @R.function(private=True)
    def step(i: R.Prim(value="i"), w: R.Tensor((3,), "float32"), l: R.Object, x: R.Tensor((3,), "float32")) -> R.Tuple(R.Object, R.Tensor((3,), "float32")):
        cls = Module
        i = T.int64()
        m = R.list.insert(l, x)
        y = R.call_tir(cls.add, (x, w), out_sinfo=R.Tensor((3,), "float32"))
        return (m, y)

    @R.function
    def main(x: R.Tensor((3,), "float32"), w: R.Tensor((3,), "float32"), k: R.Tensor((), "int64"), p: R.Tensor((), "int64"), c: R.Tensor((), "bool")) -> R.Tuple(R.Object, R.Object, R.Object, R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=2, dtype="float32"), R.Tensor((), "int64")):
        cls = Module
        d = T.int64()
        e = R.list.make((w,))
        r = R.while_loop(cls.step, (w,), (e, x), trip_count=k, out_sinfo=[R.Object, R.Tensor((3,), "float32")])
        l: R.Object = r[0]
        n = R.list.length(l)
        a = R.list.at(l, p, dtype="float32", ndim=1)
        b = R.match_cast(a, R.Tensor((d,), "float32"))
        g = R.call_tir(cls.double, (b,), out_sinfo=R.Tensor((d,), "float32"))
        q = R.list.insert(l, g, p)
        if c:
            s = R.list.erase(q)
            t = R.list.erase(s, R.prim_value(0))
        else:
            t = l
        f = R.list.concat(t, axis=-1, dtype="float32", ndim=1)
        h = R.list.concat(l, axis=0, new_axis=True, dtype="float32", ndim=2)
        u = R.list.split(f, R.const(2), axis=0)
        return (l, t, u, f, h, n)
"#;

/// Lists as nested vectors, tensors as they are.
#[derive(Debug, PartialEq)]
enum Seen {
    Tensor(Vec<i64>, Vec<u8>),
    List(Vec<Seen>),
}

fn seen(v: &HostValue) -> Seen {
    match v {
        HostValue::Tensor(t) => Seen::Tensor(t.shape().to_vec(), t.bytes().to_vec()),
        HostValue::List(l) => Seen::List(l.items().iter().map(seen).collect()),
    }
}

fn interpreted(v: &Interpreted) -> Seen {
    match v {
        Interpreted::List(items) => Seen::List(items.iter().map(interpreted).collect()),
        other => {
            let t = other.as_tensor().unwrap();
            Seen::Tensor(t.shape.clone(), t.data)
        }
    }
}

#[test]
fn lists_are_what_the_interpreter_says() {
    let module = module(COLLECT);
    tvm_ir::relax::verify::verify_module(&module).unwrap_or_else(|e| panic!("{e}"));
    let (x, w) = ([1f32, 2., 3.], [10f32, 20., 30.]);
    for (count, position, cond) in [(0i64, 0i64, 0u8), (1, 0, 1), (2, -1, 1), (7, 3, 1), (7, -8, 0)] {
        let scalar = |v| TensorBuf::scalar_i64(tvm_ir::dtype::DType::I64, v).unwrap();
        let cond_buf = TensorBuf::scalar_i64(tvm_ir::dtype::DType::BOOL, i64::from(cond)).unwrap();
        let floats = |v: &[f32]| TensorBuf::from_f32(&[3], v).unwrap();
        let args = [floats(&x), floats(&w), scalar(count), scalar(position), cond_buf].map(Interpreted::tensor);
        let Interpreted::Tuple(expected) = run_function(&module, "main", &args).unwrap() else { panic!() };
        let expected: Vec<Seen> = expected.iter().map(interpreted).collect();
        for options in [Options { reuse_in_place: false, poison: false }, Options::default(), POISON] {
            let c = compiled(COLLECT, &options);
            let program = c.program.to_static(TABLES);
            // SAFETY: kernels and weights belong to the program.
            let mut session = unsafe { Session::new(program, c.weights.to_aligned()) }.unwrap();
            session.reserve(4096).unwrap();
            let main = session.function("main").unwrap();
            let int = |v: i64| HostTensor::new(DType::I64, &[], &v.to_le_bytes()).unwrap();
            let cond = HostTensor::new(DType::BOOL, &[], &[cond]).unwrap();
            let mut inputs = [vector(&x), vector(&w), int(count), int(position), cond];
            let mut length = int(0);
            let args: Vec<_> = inputs.iter_mut().map(HostTensor::input).chain([length.output()]).collect();
            let mut storage = HostStorage::new(&program.functions[main]);
            for _ in 0..2 {
                let value = session.call(main, &args, &mut storage).unwrap_or_else(|e| panic!("{e}"));
                // SAFETY: the call has just been made with this storage.
                let found = unsafe { session.returned_values(value, &storage) };
                let found: Vec<Seen> = found.iter().map(seen).collect();
                assert_eq!(found, expected[..5], "{count} {position} {options:?} {program}");
            }
            drop(args);
            assert_eq!(length.bytes(), (count + 1).to_le_bytes());
        }
    }
}

#[test]
fn a_list_of_the_caller_is_not_written() {
    let text = r#"
    @R.function
    def main(l: R.Object, x: R.Tensor((3,), "float32"), p: R.Tensor((), "int64")) -> R.Tuple(R.Object, R.Object, R.Object):
        m = R.list.insert(l, x)
        n = R.list.erase(l, p)
        return (l, m, n)
"#;
    let c = compiled(text, &Options::default());
    let program = c.program.to_static(TABLES);
    // SAFETY: kernels and weights belong to the program.
    let mut session = unsafe { Session::new(program, []) }.unwrap();
    let item = |v: f32| HostValue::Tensor(vector(&[v]));
    let mut call = |items: Vec<HostValue>, position: i64| {
        let mut list = HostValue::List(tvm_runtime::host::HostList::new(items));
        let mut x = HostValue::Tensor(vector(&[7., 8., 9.]));
        let mut p = HostValue::Tensor(HostTensor::new(DType::I64, &[], &position.to_le_bytes()).unwrap());
        let args = [list.input(), x.input(), p.input()];
        let mut storage = HostStorage::new(&program.functions[0]);
        let value = session.call(0, &args, &mut storage)?;
        // SAFETY: the call has just been made with this storage.
        let found = unsafe { session.returned_values(value, &storage) };
        Ok(found.iter().map(seen).collect::<Vec<_>>())
    };
    let seen_item = |v: f32| seen(&item(v));
    let found: Vec<Seen> = call(vec![item(1.), item(2.)], -2).unwrap();
    assert_eq!(found[0], Seen::List(vec![seen_item(1.), seen_item(2.)]));
    assert_eq!(
        found[1],
        Seen::List(vec![seen_item(1.), seen_item(2.), seen(&HostValue::Tensor(vector(&[7., 8., 9.])))])
    );
    assert_eq!(found[2], Seen::List(vec![seen_item(2.)]));
    let e: Error = call(vec![item(1.)], 1).unwrap_err();
    assert_eq!(e, Error::BadPosition { position: 1, len: 1 });
    assert_eq!(call(vec![], -1).unwrap_err(), Error::BadPosition { position: -1, len: 0 });
}
