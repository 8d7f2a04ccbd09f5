//! The program `tvmc`: outputs and exit codes as a user sees them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace root")
}

/// The program, built once.
pub(crate) fn tvmc() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        // The folder that these tests are built in: what they share with the program is not compiled again.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
        let build = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "-p", "tvm-build", "--features", "cli", "--bin", "tvmc", "--target-dir"])
            .arg(target)
            .current_dir(root())
            .output()
            .expect("cargo runs");
        assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
        target.join("debug").join(format!("tvmc{}", std::env::consts::EXE_SUFFIX))
    })
}

pub(crate) fn run(args: &[&str], stdin: &str) -> Output {
    output(Command::new(tvmc()).args(args), stdin)
}

/// As [`run`] without input, with so much memory at most where the system can limit it.
pub(crate) fn run_within(megabytes: u64, args: &[&str]) -> Output {
    if cfg!(not(target_os = "linux")) {
        return run(args, "");
    }
    let kilobytes = (megabytes * 1024).to_string();
    let limited = ["-c", "ulimit -v \"$0\" && exec \"$@\"", &kilobytes];
    output(Command::new("sh").args(limited).arg(tvmc()).args(args), "")
}

fn output(command: &mut Command, stdin: &str) -> Output {
    let mut child = command
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tvmc runs");
    // A program that never reads its input closes it.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
    child.wait_with_output().expect("tvmc ends")
}

#[track_caller]
fn fails(args: &[&str], stdin: &str, code: i32, message: &str) {
    let output = run(args, stdin);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    assert!(text.contains(message), "{args:?}: `{message}` is not in:\n{text}");
    assert!(!text.contains("panicked"), "{text}");
}

const IMPORTED: &str = "tests/files/tutorial/01_from_torch.py.txt";

#[test]
fn show_prints_the_tutorials_stages() {
    for (args, expected) in [
        (&["show", IMPORTED][..], IMPORTED),
        (&["show", IMPORTED, "--pass", "LegalizeOps"], "tests/files/tutorial/06_legalize_ops.py.txt"),
        (&["show", IMPORTED, "--pipeline", "zero"], "tests/files/tutorial/08_zero_pipeline.py.txt"),
    ] {
        let output = run(args, "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let expected = std::fs::read(root().join(expected)).expect("a file");
        assert!(output.stdout == expected, "{args:?}");
    }
}

#[test]
fn show_reads_standard_input_and_prints_one_function() {
    let text = std::fs::read_to_string(root().join(IMPORTED)).expect("a file");
    let output = run(&["show", "-", "--func", "main"], &text);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("@R.function\ndef main("), "{text}");
}

#[test]
fn what_is_wrong_with_the_command_line_is_2() {
    fails(&["show", IMPORTED, "--pipeline", "zeor"], "", 2, "unknown pipeline 'zeor'");
    fails(&["show", IMPORTED, "--pass", "LegalizeOp"], "", 2, "is it LegalizeOps");
    fails(&["show", IMPORTED, "--pass", "FuseOps(level=1)"], "", 2, "FuseOps has no parameter level");
    fails(&["show", IMPORTED, "--func", "mian"], "", 2, "it has main");
    fails(&["check", IMPORTED, "--target", "x87"], "", 2, "unknown target 'x87'");
    fails(&["bench", IMPORTED, "--threads", "2"], "", 2, "no schedule is parallel yet");
    fails(&["frobnicate"], "", 2, "unrecognized subcommand");
    fails(&[], "", 2, "Usage");
}

#[test]
fn what_is_wrong_with_the_model_is_1() {
    fails(&["check", "no-such-file.onnx"], "", 1, "no-such-file.onnx");
    fails(&["check", "Cargo.toml"], "", 1, "format of Cargo.toml is not known");
    fails(&["show", "-"], "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    return y\n", 1, "<stdin>:3:12");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let model = std::fs::read(root().join("examples/digits/models/cnn.onnx")).expect("a model");
    for cut in [0, 1, 100, 5000, model.len() / 2, model.len() - 1] {
        let path = dir.join(format!("cut-{cut}.onnx"));
        std::fs::write(&path, &model[..cut]).expect("a file");
        fails(&["check", path.to_str().expect("a path")], "", 1, "error");
    }
    let unknown = "@R.function\ndef main(x: R.Tensor((2,), \"float32\")) -> R.Tensor((2,), \"float32\"):\n    y = R.nn.rellu(x)\n    return y\n";
    fails(&["check", "-"], unknown, 1, "nn.relu");
    let external = "@R.function\ndef main(x: R.Tensor((2,), \"float32\")) -> R.Tensor((2,), \"float32\"):\n    y = R.call_dps_packed(\"halve\", (x, 2), out_sinfo=R.Tensor((2,), \"float32\"))\n    return y\n";
    fails(&["check", "-"], external, 1, "the external function `halve` is not declared");
    let signature = "fn halve(x: *const f64, n: usize, y: *mut f32)";
    fails(&["check", "-", "--extern-fn", signature], external, 1, "parameter `x` is `*const f64`");
    let signature = "fn halve(x: *const f32, n: usize, y: *mut f32)";
    let fine = run(&["check", "-", "--extern-fn", signature], external);
    assert!(fine.status.success(), "{}", String::from_utf8_lossy(&fine.stderr));
}

#[test]
fn run_compares_arguments_with_the_signature() {
    use tvm_build::npy::{Array, Content};
    use tvm_build::npz;
    use tvm_ir::dtype::DType;
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let image = |shape: &[u64], dtype: DType| Array {
        dtype,
        shape: shape.to_vec(),
        data: vec![0; usize::try_from(dtype.storage_bytes(shape.iter().product()).expect("a size")).expect("a size")],
    };
    let inputs = |name: &str, key: &str, array: &Array| {
        let path = dir.join(name);
        npz::write(&path, [(key, &Content::Numbers(array.clone()))]).expect("an archive");
        path.to_str().expect("a path").to_owned()
    };
    let model = "examples/digits/models/mlp.onnx";
    let good = inputs("good.npz", "x", &image(&[1, 784], DType::F32));
    let out = dir.join("out.npz");
    let output =
        run(&["run", model, "--inputs", &good, "--outputs", out.to_str().expect("a path"), "--repeat", "10000"], "");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("10000 runs: 0 allocations"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let arrays = npz::read(&out).expect("the outputs");
    let Content::Numbers(array) = &arrays[0].1 else { panic!("an array of strings") };
    assert_eq!((arrays[0].0.as_str(), &array.shape[..]), ("output_0", &[1, 10][..]));

    let wrong_shape = inputs("shape.npz", "x", &image(&[2, 784], DType::F32));
    fails(&["run", model, "--inputs", &wrong_shape], "", 1, "x");
    let wrong_dtype = inputs("dtype.npz", "input_0", &image(&[1, 784], DType::F64));
    fails(&["run", model, "--inputs", &wrong_dtype], "", 1, "float64");
    let wrong_name = inputs("name.npz", "y", &image(&[1, 784], DType::F32));
    fails(&["run", model, "--inputs", &wrong_name], "", 1, "no array for the parameter x");
    fails(&["run", model, "--inputs", "Cargo.toml"], "", 1, "Cargo.toml");
}

#[test]
fn run_takes_and_gives_strings_and_lists() {
    use tvm_build::npy::{Array, Content, Strings};
    use tvm_build::npz;
    use tvm_ir::dtype::DType;
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = |name: &str| dir.join(name).to_str().expect("a path").to_owned();
    let strings = |all: &[&str]| {
        Content::Strings(Strings {
            shape: vec![all.len() as u64],
            strings: all.iter().map(|s| s.to_string()).collect(),
        })
    };
    let succeeds = |args: &[&str], stdin: &str| {
        let output = run(args, stdin);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // Files as of ONNX's tests in and out.
    let model = "tests/onnx/models/cast_to_strings/model.onnx";
    let (case, folder) = ("tests/onnx/models/cast_to_strings/set_0", path("values/"));
    succeeds(&["run", model, "--inputs", case, "--outputs", &folder], "");
    for i in 0..4 {
        use tvm_build::import::onnx::{DatumKind, Limits, read_datum};
        let read = |file: PathBuf| read_datum(&file, &DatumKind::Tensor, &Limits::default()).expect("a value");
        let name = format!("output_{i}.pb");
        assert_eq!(read(Path::new(&folder).join(&name)), read(root().join(case).join(&name)), "{name}");
    }
    // Strings of an archive.
    let model = "tests/onnx/models/cast_of_strings/model.onnx";
    let inputs = path("strings.npz");
    npz::write(Path::new(&inputs), [("x", &strings(&["1.5", "-INF"])), ("input_1", &strings(&["1", "2", "3"]))])
        .expect("an archive");
    let text = succeeds(&["run", model, "--inputs", &inputs], "");
    assert!(text.contains("output_0 float32 [2] [1.5, -inf]"), "{text}");
    npz::write(Path::new(&inputs), [("x", &strings(&["1.5", "one"])), ("input_1", &strings(&["1", "2", "3"]))])
        .expect("an archive");
    fails(&["run", model, "--inputs", &inputs], "", 1, "(Cast): string 1 of those that are cast is no number");

    // Lists.
    let longer = "@R.function\ndef main(xs: R.Object, s: R.Tensor((1,), \"string\")) -> R.Object:\n    ys = R.list.insert(xs, s)\n    return ys\n";
    let item = Content::Numbers(Array { dtype: DType::F32, shape: vec![1], data: 2.5f32.to_le_bytes().to_vec() });
    let (inputs, outputs) = (path("lists.npz"), path("lists-out.npz"));
    let (s, item) = (&strings(&["é"]), &item);
    for given in [vec![("s", s)], vec![("s", s), ("xs/1", s), ("xs/0", item)], vec![("s", s), ("input_0", item)]] {
        npz::write(Path::new(&inputs), given.clone()).expect("an archive");
        succeeds(&["run", "-", "--inputs", &inputs, "--outputs", &outputs], longer);
        let arrays = npz::read(Path::new(&outputs)).expect("the outputs");
        let names: Vec<&str> = arrays.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, &["output_0/0", "output_0/1", "output_0/2"][..given.len()]);
        assert_eq!(&arrays.last().expect("an array").1, s);
    }
    npz::write(Path::new(&inputs), [("s", s), ("xs/1", item)]).expect("an archive");
    fails(&["run", "-", "--inputs", &inputs], longer, 1, "there is no item 0, but an item 1");
}

#[test]
fn run_overrides_initializers() {
    use tvm_build::npy::{Array, Content};
    use tvm_build::npz;
    let inputs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("overrides.npz");
    let floats = |v: [f32; 2]| {
        let data = v.iter().flat_map(|x| x.to_le_bytes()).collect();
        Content::Numbers(Array { dtype: tvm_ir::dtype::DType::F32, shape: vec![2], data })
    };
    let model = "tests/onnx/models/initializer_default_overridden_ir4/model.onnx";
    let call = |given: &[(&str, &Content)], flags: &[&str]| {
        npz::write(&inputs, given.iter().copied()).expect("an archive");
        let path = inputs.to_str().expect("a path");
        let output = run(&[&["run", model, "--inputs", path], flags].concat(), "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (x, w) = (&floats([1.0, 2.0]), &floats([100.0, 200.0]));
    let own = call(&[("x", x)], &[]);
    let flags = ["--overridable", "w"];
    assert_eq!(call(&[("x", x)], &flags), own);
    assert_ne!(call(&[("x", x), ("w", w)], &flags), own);
    fails(&["check", model, "--overridable", "v"], "", 1, "the model has no initializer 'v' to override");
    fails(&["check", model, "--overridable", "x"], "", 1, "the model has no initializer 'x' to override");
}
