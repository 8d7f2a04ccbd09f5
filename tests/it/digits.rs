//! The digit models end to end: from ONNX to kernels that run in this process, on every held-out image.

use std::path::{Path, PathBuf};
use tvm_build::codegen::SourceFile;
use tvm_build::compile::{Artifacts, Options, compile_module};
use tvm_build::host::HostModule;
use tvm_build::toolchain::{Toolchain, host_target};
use tvm_build::{model, npy};
use tvm_ir::span::SourceMap;
use tvm_ir::target::Target;
use tvm_runtime::DType;
use tvm_runtime::host::HostTensor;

/// Both sides sum some hundred products of order 1 in `f32`, in another order.
const TOLERANCE: f32 = 1e-4;

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits").join(path)
}

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a scratch folder");
    dir
}

fn read(path: &str) -> npy::Array {
    npy::read(&std::fs::read(example(path)).expect("a file of the example")).expect("an array")
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn compile(name: &str, change: impl FnOnce(&mut Options)) -> Artifacts {
    let module = model::load(&example(&format!("models/{name}.onnx")), &mut SourceMap::default()).expect("a model");
    let mut options = Options::new(name, host_target());
    change(&mut options);
    compile_module(module, &options).expect("the model compiles")
}

/// Runs every image; the greatest difference of a logit, and how many answers are right.
fn evaluate(artifacts: &Artifacts, shape: &[i64], folder: &str) -> (f32, usize) {
    let images = read("data/images.npy").data;
    let labels = read("data/labels.npy").data;
    let reference = floats(&read(&format!("data/{}_logits.npy", artifacts.name)).data);
    let mut module = HostModule::load(artifacts, &scratch(folder)).expect("kernels that load");
    let (mut worst, mut right) = (0.0f32, 0);
    for (i, (image, label)) in images.chunks_exact(784).zip(labels).enumerate() {
        let pixels: Vec<u8> = image.iter().flat_map(|v| (f32::from(*v) / 255.0).to_le_bytes()).collect();
        let input = HostTensor::new(DType::F32, shape, &pixels).expect("an image");
        let outputs = module.run("main", &mut [input]).expect("a result");
        let logits = floats(outputs[0].bytes());
        for (got, want) in logits.iter().zip(&reference[10 * i..]) {
            assert!(!got.is_nan());
            worst = worst.max((got - want).abs());
        }
        let answer = (1..10).fold(0, |best, k| if logits[k] > logits[best] { k } else { best });
        right += usize::from(answer == usize::from(label));
    }
    (worst, right)
}

#[test]
fn answers_are_the_reference_s() {
    for (name, shape, expected) in [("mlp", &[1, 784][..], 191), ("cnn", &[1, 1, 28, 28][..], 197)] {
        let (worst, right) = evaluate(&compile(name, |_| {}), shape, &format!("digits-{name}"));
        assert!(worst <= TOLERANCE, "{name}: {worst}");
        assert_eq!(right, expected, "{name}");
    }
}

#[test]
fn freed_memory_is_never_read() {
    for (name, shape) in [("mlp", &[1, 784][..]), ("cnn", &[1, 1, 28, 28][..])] {
        let artifacts = compile(name, |o| o.vm.poison = true);
        let (worst, _) = evaluate(&artifacts, shape, &format!("poison-{name}"));
        assert!(worst <= TOLERANCE, "{name}: {worst}");
    }
}

#[test]
fn every_target_of_this_machine_agrees() {
    let levels: &[&str] = if cfg!(target_arch = "x86_64") { &["generic", "x86-64"] } else { &["generic"] };
    for level in levels {
        let target = Target::named(level).expect("a target");
        let artifacts = compile("cnn", |o| o.targets = vec![target]);
        let (worst, right) = evaluate(&artifacts, &[1, 1, 28, 28], &format!("level-{level}"));
        assert!(worst <= TOLERANCE, "{level}: {worst}");
        assert_eq!(right, 197, "{level}");
    }
}

/// Every file that a build writes, but for those of the C compiler.
fn files(artifacts: &Artifacts, folder: &str) -> Vec<(String, Vec<u8>)> {
    let dir = scratch(folder);
    let toolchain = Toolchain::for_host(&dir);
    artifacts.write(&toolchain).expect("written files");
    let report = SourceFile { name: "report.txt".into(), text: artifacts.report() };
    toolchain.write_sources(&[artifacts.header(), report]).expect("written files");
    let mut out: Vec<(String, Vec<u8>)> = std::fs::read_dir(&dir)
        .expect("the folder")
        .map(|e| {
            let path = e.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a file"))
        })
        .collect();
    out.sort();
    out
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    let first = files(&compile("cnn", |_| {}), "same-1");
    let second = files(&compile("cnn", |_| {}), "same-2/in/another/folder");
    let names = |f: &[(String, Vec<u8>)]| f.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
    assert_eq!(names(&first), names(&second));
    for ((name, a), (_, b)) in first.iter().zip(&second) {
        assert!(a == b, "{name} differs");
    }
}
