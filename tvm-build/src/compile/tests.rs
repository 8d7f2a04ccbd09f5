//! Whole models, compiled for this machine and run in this process.
#![allow(unsafe_code, reason = "kernels come from a shared library")]

use super::*;
use crate::model;
use crate::toolchain::host_target;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use tvm_ir::span::SourceMap;
use tvm_runtime::host::{HostStorage, HostTensor, Session, load_kernels};
use tvm_runtime::{DType, KernelTable};

static COUNT: AtomicU32 = AtomicU32::new(0);

fn scratch(name: &str) -> PathBuf {
    // A loader takes a library of the same path for the same library.
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("tvm-compile-{name}-{n}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

pub(super) fn session(artifacts: &Artifacts) -> Session {
    let toolchain = Toolchain::for_host(scratch(&artifacts.name));
    let units = artifacts.write(&toolchain).unwrap();
    let library = toolchain.shared_library(&artifacts.name, &units).unwrap();
    let level = artifacts.levels.last().unwrap();
    let symbols: Vec<&str> = level.symbols.iter().map(String::as_str).collect();
    // SAFETY: the library was just compiled; its kernels are those of the program.
    let kernels = unsafe { load_kernels(&library, &symbols) }.unwrap();
    let tables: &'static [KernelTable] = vec![KernelTable { level: IsaLevel::Baseline, kernels }].leak();
    std::fs::remove_dir_all(&toolchain.out_dir).unwrap();
    // SAFETY: program, kernels and weights come from one compilation.
    unsafe { Session::new(artifacts.program.to_static(tables), artifacts.weights.to_aligned()) }.unwrap()
}

/// The elements of a `.npy` file.
fn npy(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[10 + header..].to_vec()
}

fn digits(name: &str, target: Target, vm: vm::Options) -> f32 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits");
    let mut sources = SourceMap::default();
    let module = model::load(&folder.join(format!("models/{name}.onnx")), &mut sources).unwrap();
    let artifacts = compile_module(module, &Options { vm, ..Options::new(name, target) }).unwrap();
    let mut session = session(&artifacts);
    let main = session.function("main").unwrap();
    let mut storage = HostStorage::new(&artifacts.program.tables().functions[main]);
    let images = npy(&folder.join("data/images.npy"));
    let logits = npy(&folder.join(format!("data/{name}_logits.npy")));
    let shape: &[i64] = &artifacts.program.entries[0].params[0].dims();
    let mut worst = 0f32;
    for (image, expected) in images.chunks(784).zip(logits.chunks(40)) {
        let pixels: Vec<u8> = image.iter().flat_map(|p| (f32::from(*p) / 255.0).to_le_bytes()).collect();
        let mut x = HostTensor::new(DType::F32, shape, &pixels).unwrap();
        let mut out = HostTensor::zeroed(DType::F32, &[1, 10]).unwrap();
        session.call(main, &[x.input(), out.output()], &mut storage).unwrap();
        for (a, b) in out.bytes().chunks(4).zip(expected.chunks(4)) {
            let (a, b) = (f32::from_le_bytes(a.try_into().unwrap()), f32::from_le_bytes(b.try_into().unwrap()));
            worst = if a.is_nan() { f32::NAN } else { worst.max((a - b).abs()) };
        }
    }
    worst
}

trait Dims {
    fn dims(&self) -> Vec<i64>;
}

impl Dims for vm::EntryParam {
    fn dims(&self) -> Vec<i64> {
        let vm::EntryKind::Tensor(_, Some(dims)) = &self.kind else { panic!("no tensor") };
        dims.iter().map(|d| d.as_int().unwrap()).collect()
    }
}

#[test]
fn digit_models_match_the_reference() {
    for name in ["mlp", "cnn"] {
        for target in [Target::default(), host_target()] {
            for poison in [false, true] {
                let what = format!("{name} for {}, poison {poison}", target.name);
                let worst = digits(name, target.clone(), vm::Options { poison, ..vm::Options::default() });
                assert!(worst <= 1e-4, "{what}: {worst}");
            }
        }
    }
}

const SYMBOLIC: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            product = R.matmul(x, w)
            positive = R.nn.relu(product)
            share = R.nn.softmax(positive, axis=-1)
            R.output(share)
        return share
"#;

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

/// Kernels whose intermediate buffers have symbolic sizes.
#[test]
fn symbolic_intermediates_are_the_callers() {
    let targets = [Target::default(), Target::named("x86-64-v3").unwrap(), host_target()];
    let mut sources = SourceMap::default();
    let module = tvm_ir::syntax::parse_module(&mut sources, "symbolic", SYMBOLIC, Default::default()).unwrap();
    let options = Options { targets: targets.to_vec(), ..Options::new("symbolic", Target::default()) };
    let artifacts = compile_module(module, &options).map_err(|d| tvm_ir::render::render_all(&d, &sources)).unwrap();
    let mut session = session(&artifacts);
    session.reserve(1 << 20).unwrap();
    let main = session.function("main").unwrap();
    let mut storage = HostStorage::new(&artifacts.program.tables().functions[main]);
    for (n, m) in [(1usize, 1usize), (3, 5), (17, 4), (2, 33), (64, 64)] {
        let x: Vec<f32> = (0..n * 8).map(|i| (i % 7) as f32 / 3.0 - 1.0).collect();
        let w: Vec<f32> = (0..8 * m).map(|i| (i % 5) as f32 / 2.0 - 1.0).collect();
        let tensor = |shape: &[i64], v: &[f32]| {
            HostTensor::new(DType::F32, shape, &v.iter().flat_map(|f| f.to_le_bytes()).collect::<Vec<_>>()).unwrap()
        };
        let (rows, columns) = (n as i64, m as i64);
        let (mut xt, mut wt) = (tensor(&[rows, 8], &x), tensor(&[8, columns], &w));
        let mut out = HostTensor::zeroed(DType::F32, &[rows, columns]).unwrap();
        session.call(main, &[xt.input(), wt.input(), out.output()], &mut storage).unwrap();
        let got = floats(out.bytes());
        for i in 0..n {
            let product = |j: usize| (0..8).map(|k| f64::from(x[i * 8 + k]) * f64::from(w[k * m + j])).sum::<f64>();
            let row: Vec<f64> = (0..m).map(|j| product(j).max(0.0)).collect();
            let most = row.iter().copied().fold(f64::MIN, f64::max);
            let total: f64 = row.iter().map(|v| (v - most).exp()).sum();
            for j in 0..m {
                let expected = ((row[j] - most).exp() / total) as f32;
                assert!((got[i * m + j] - expected).abs() < 1e-5, "{n}x{m} at {i}, {j}: {} {expected}", got[i * m + j]);
            }
        }
    }
}

/// The module of a text.
fn script(text: &str) -> Artifacts {
    let dir = scratch("script");
    let path = dir.join("m.tvm");
    std::fs::write(&path, text).unwrap();
    let mut sources = SourceMap::default();
    let module = model::load(&path, &mut sources).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    compile_module(module, &Options::new("m", host_target())).unwrap()
}

#[test]
fn strings_are_joined_by_a_builtin_and_moved_by_kernels() {
    let artifacts = script(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2,), "string"), b: R.Tensor((2,), "string")) -> R.Tensor((4,), "string"):
        c = R.call_dps_packed("vm.builtin.text_concat", (a, b), out_sinfo=R.Tensor((2,), "string"))
        d = R.concat((c, a), axis=0)
        return d
"#,
    );
    let mut session = session(&artifacts);
    let mut storage = HostStorage::new(&artifacts.program.tables().functions[0]);
    let [a, b] = [["x", "é"], ["", "z"]].map(|all| all.map(|s| session.state().intern(s)));
    let [mut a, mut b] = [a, b].map(|t| HostTensor::of(&[2], &t).unwrap());
    let mut out = HostTensor::zeroed(DType::TEXT, &[4]).unwrap();
    session.call(0, &[a.input(), b.input(), out.output()], &mut storage).unwrap();
    let out: Vec<tvm_runtime::Text> = out.elements().unwrap().to_vec();
    let shown: Vec<_> = out.iter().map(|t| session.state().text(*t).unwrap().to_owned()).collect();
    assert_eq!(shown, ["x", "éz", "x", "é"]);
}

#[test]
fn strings_are_read_as_numbers_and_what_is_none_is_an_error_of_the_node() {
    let artifacts = script(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2,), "string")) -> R.Tensor((2,), "string"):
        b = R.call_dps_packed("vm.builtin.text_parse", (a, R.prim_value(8), R.str("to_byte (Cast)")), out_sinfo=R.Tensor((2,), "int8"))
        c = R.astype(b, dtype="int64")
        d = R.add(c, c)
        e = R.call_dps_packed("vm.builtin.text_format", (d,), out_sinfo=R.Tensor((2,), "string"))
        return e
"#,
    );
    let mut session = session(&artifacts);
    let mut storage = HostStorage::new(&artifacts.program.tables().functions[0]);
    let mut call = |texts: [&str; 2]| {
        let mut a = HostTensor::of(&[2], &texts.map(|s| session.state().intern(s))).unwrap();
        let mut out = HostTensor::zeroed(DType::TEXT, &[2]).unwrap();
        session.call(0, &[a.input(), out.output()], &mut storage).map_err(|e| e.to_string())?;
        let out: Vec<tvm_runtime::Text> = out.elements().unwrap().to_vec();
        Ok::<_, String>(out.iter().map(|t| session.state().text(*t).unwrap().to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(call(["127", " -2.5"]).unwrap(), ["254", "-4"]);
    let error = "to_byte (Cast): string 1 of those that are cast is no number of the range of int8";
    for bad in ["128", "x", ""] {
        assert_eq!(call(["1", bad]).unwrap_err(), error);
    }
}

/// A function that runs a module on tensors and gives its only output as floats.
fn runner(text: &str, out: &[i64]) -> impl FnMut(&[HostTensor]) -> Result<Vec<f32>, String> + use<> {
    let artifacts = script(text);
    let mut session = session(&artifacts);
    session.reserve(1 << 16).unwrap();
    let main = session.function("main").unwrap();
    let out = out.to_vec();
    move |inputs| {
        let mut storage = HostStorage::new(&artifacts.program.tables().functions[main]);
        let mut out = HostTensor::zeroed(DType::F32, &out).unwrap();
        let mut inputs = inputs.to_vec();
        let args: Vec<_> = inputs.iter_mut().map(HostTensor::input).chain([out.output()]).collect();
        session.call(main, &args, &mut storage).map_err(|e| e.to_string())?;
        drop(args);
        Ok(floats(out.bytes()))
    }
}

#[test]
fn indices_out_of_range_are_errors_of_every_op() {
    let x = || HostTensor::of(&[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let column = |v: &[i64]| HostTensor::of(&[2, 1], v).unwrap();
    let function = |symbolic: bool, args: &str, call: &str, shape: &str| {
        let (rows, n) = if symbolic { ("\"n\"", "\n        n = T.int64()") } else { ("3", "") };
        let text = "@R.function\ndef main(x: R.Tensor((ROWS, 2), \"float32\"), ARGS) -> R.Tensor(SHAPE, \"float32\"):N\n        y = CALL\n        return y\n";
        let body = text.replace("ROWS", rows).replace("ARGS", args).replace("CALL", call).replace("SHAPE", shape);
        let body = body.replace(":N\n", &format!(":{n}\n"));
        format!("@I.ir_module\nclass Module:\n    {}", body.replacen("\ndef", "\n    def", 1))
    };
    for symbolic in [false, true] {
        let text = function(symbolic, "i: R.Tensor((2,), \"int64\")", "R.take(x, i, axis=0)", "(2, 2)");
        let mut take = runner(&text, &[2, 2]);
        let at = |v: [i64; 2]| HostTensor::of(&[2], &v).unwrap();
        assert_eq!(take(&[x(), at([2, -3])]).unwrap(), [5.0, 6.0, 1.0, 2.0]);
        for wrong in [[3, 0], [0, -4], [i64::MIN, 0], [0, i64::MAX]] {
            assert!(take(&[x(), at(wrong)]).unwrap_err().contains("an index is out of range"), "{wrong:?}");
        }
        for (call, shape) in [("R.gather_nd(x, i)", "(2, 2)"), ("R.gather_elements(x, i, axis=0)", "(2, 1)")] {
            let text = function(symbolic, "i: R.Tensor((2, 1), \"int64\")", call, shape);
            let dims: &[i64] = if shape == "(2, 2)" { &[2, 2] } else { &[2, 1] };
            let mut gather = runner(&text, dims);
            assert_eq!(gather(&[x(), column(&[-1, 0])]).unwrap()[0], 5.0);
            assert!(gather(&[x(), column(&[3, 0])]).unwrap_err().contains("an index is out of range"), "{call}");
            assert!(gather(&[x(), column(&[0, -4])]).unwrap_err().contains("an index is out of range"), "{call}");
        }
    }
    let args = "i: R.Tensor((2, 1), \"int64\"), u: R.Tensor((2, 1), \"float32\")";
    let text = function(false, args, "R.scatter_elements(x, i, u, axis=0)", "(3, 2)");
    let mut scatter = runner(&text, &[3, 2]);
    let update = || HostTensor::of(&[2, 1], &[10.0f32, 20.0]).unwrap();
    assert_eq!(scatter(&[x(), column(&[-1, 0]), update()]).unwrap(), [20.0, 2.0, 3.0, 4.0, 10.0, 6.0]);
    assert!(scatter(&[x(), column(&[0, 3]), update()]).unwrap_err().contains("an index is out of range"));
    let args = "i: R.Tensor((1, 2), \"int64\"), u: R.Tensor((1,), \"float32\")";
    let mut scatter = runner(&function(false, args, "R.scatter_nd(x, i, u)", "(3, 2)"), &[3, 2]);
    let (at, one) = (|v: [i64; 2]| HostTensor::of(&[1, 2], &v).unwrap(), HostTensor::of(&[1], &[9.0f32]).unwrap());
    assert_eq!(scatter(&[x(), at([1, 1]), one.clone()]).unwrap()[3], 9.0);
    assert!(scatter(&[x(), at([1, 2]), one]).unwrap_err().contains("an index is out of range"));
}

#[test]
fn axes_without_elements_are_errors_where_one_is_taken() {
    let text = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), i: R.Tensor((2,), "int64")) -> R.Tensor((2,), "float32"):
        n = T.int64()
        y = R.take(x, i, axis=0, mode="MODE")
        return y
"#;
    for (mode, first) in [("clip", 3.0f32), ("wrap", 2.0)] {
        let mut take = runner(&text.replace("MODE", mode), &[2]);
        let x = |n: usize| HostTensor::of(&[n as i64], &[1.0f32, 2.0, 3.0][..n]).unwrap();
        let at = HostTensor::of(&[2], &[7i64, 0]).unwrap();
        assert_eq!(take(&[x(3), at.clone()]).unwrap(), [first, 1.0]);
        assert!(take(&[x(0), at]).is_err());
    }
}

#[test]
fn more_indices_than_elements_are_an_error() {
    let text = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32"), i: R.Tensor(("m", 2), "int64"), u: R.Tensor(("k", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        n, m, k = T.int64(), T.int64(), T.int64()
        y = R.scatter_elements(x, i, u, axis=1)
        return y
"#;
    let mut scatter = runner(text, &[2, 2]);
    let x = HostTensor::of(&[2, 2], &[0.0f32; 4]).unwrap();
    let at = |n: i64| HostTensor::zeroed(DType::I64, &[n, 2]).unwrap();
    let update = |n: i64| HostTensor::zeroed(DType::F32, &[n, 2]).unwrap();
    assert!(scatter(&[x.clone(), at(2), update(2)]).is_ok());
    assert!(scatter(&[x.clone(), at(3), update(3)]).is_err());
    assert!(scatter(&[x, at(2), update(1)]).is_err());
}

#[test]
fn packed_tensors_go_through_kernels_of_symbolic_shapes() {
    let artifacts = script(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "int4")) -> R.Tensor((3, "n"), "int4"):
        y = R.permute_dims(x)
        z = R.add(y, y)
        return z
"#,
    );
    let mut session = session(&artifacts);
    let mut storage = HostStorage::new(&artifacts.program.tables().functions[0]);
    session.reserve(1 << 12).unwrap();
    for n in [1i64, 2, 5] {
        let values: Vec<i8> = (0..3 * n).map(|i| (i % 16) as i8 - 8).collect();
        let packed: Vec<tvm_runtime::I4x2> = tvm_runtime::I4x2::pack(&values).collect();
        let mut x = HostTensor::of(&[n, 3], &packed).unwrap();
        let mut out = HostTensor::zeroed(DType::I4, &[3, n]).unwrap();
        session.call(0, &[x.input(), out.output()], &mut storage).unwrap();
        let got: Vec<i8> = tvm_runtime::I4x2::unpack(out.elements().unwrap()).take(values.len()).collect();
        let rows = (0..3).flat_map(|c| (0..n).map(move |r| (r * 3 + c) as usize));
        let want: Vec<i8> = rows.map(|at| ((2 * values[at]) << 4) >> 4).collect();
        assert_eq!(got, want, "n = {n}");
    }
}

/// What a loop is given is memory that is returned in another shape.
#[test]
fn a_captured_value_is_an_output_of_another_shape() {
    let artifacts = script(
        r#"
@I.ir_module
class Module:
    @R.function(private=True)
    def step(i: R.Prim(value="i"), w: R.Tensor((3,), "float32"), x: R.Tensor((3,), "float32")) -> R.Tuple(R.Tensor((3,), "float32")):
        i = T.int64()
        c = R.add(x, w)
        return (c,)

    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tuple(R.Tensor((3,), "float32"), R.Tensor((1, 3), "float32")):
        cls = Module
        v = R.nn.relu(x)
        r = R.while_loop(cls.step, (v,), (x,), trip_count=R.prim_value(2), out_sinfo=[R.Tensor((3,), "float32")])
        s: R.Tensor((3,), "float32") = r[0]
        w = R.reshape(v, R.shape([1, 3]))
        return (s, w)
"#,
    );
    let mut session = session(&artifacts);
    let main = session.function("main").unwrap();
    let mut storage = HostStorage::new(&artifacts.program.tables().functions[main]);
    let mut x = HostTensor::of(&[3], &[1f32, -2., 3.]).unwrap();
    let [mut s, mut w] = [&[3][..], &[1, 3]].map(|dims| HostTensor::zeroed(DType::F32, dims).unwrap());
    session.call(main, &[x.input(), s.output(), w.output()], &mut storage).unwrap();
    assert_eq!(
        (s.elements::<f32>().unwrap(), w.elements::<f32>().unwrap()),
        (&[3f32, -2., 9.][..], &[1f32, 0., 3.][..])
    );
}

#[test]
fn a_branch_that_cannot_run_says_so_when_it_is_taken() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/onnx/models/if_branch_cannot_run/model.onnx");
    let mut sources = SourceMap::default();
    let module = model::load(&path, &mut sources).unwrap();
    let artifacts = compile_module(module, &Options::new("m", host_target())).unwrap();
    let mut session = session(&artifacts);
    let mut storage = HostStorage::new(&artifacts.program.tables().functions[0]);
    let mut call = |taken: u8| {
        let mut x = HostTensor::of(&[1, 3], &[1f32, -2., 3.]).unwrap();
        let mut c = HostTensor::new(DType::BOOL, &[], &[taken]).unwrap();
        let [mut y, mut z] = [0, 1].map(|_| HostTensor::zeroed(DType::F32, &[1, 3]).unwrap());
        session.call(0, &[x.input(), c.input(), y.output(), z.output()], &mut storage).map_err(|e| e.to_string())?;
        Ok::<_, String>(z.elements::<f32>().unwrap().to_vec())
    };
    assert_eq!(call(1).unwrap(), [-1., 0., -3.]);
    let error = call(0).unwrap_err();
    let wanted = "graph/node[0] \"gate\" (If): else_branch cannot run: graph/node[0] \"gate\" (If)/else_branch/node[0] (MatMul): MatMul: ";
    assert!(error.contains(wanted), "{error}");
}
