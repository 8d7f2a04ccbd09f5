//! Whole builds, without cargo.

use super::*;
use crate::toolchain::Toolchain;

fn toolchain(name: &str) -> Toolchain {
    let dir = std::env::temp_dir().join(format!("tvm-build-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    Toolchain { jobs: 2, ..Toolchain::for_host(dir) }
}

fn digits(model: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/digits/models").join(model)
}

/// Every file of a folder with its bytes.
fn files(t: &Toolchain) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(&t.out_dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(p).unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn two_folders_get_the_same_bytes() {
    let (a, b) = (toolchain("first"), toolchain("second"));
    let mut said = Vec::new();
    for t in [&a, &b] {
        let build = Build::new().onnx("mlp", digits("mlp.onnx")).onnx("cnn", digits("cnn.onnx"));
        build.try_compile_with(Ok(t.clone()), &mut |line| said.push(line.to_owned())).unwrap();
    }
    assert!(files(&a) == files(&b));
    let names: Vec<String> = files(&a).into_iter().map(|(n, _)| n).collect();
    for wanted in ["mlp.rs", "cnn.rs", "mlp.weights.bin", "cnn.weights.bin", "tvm_runtime.h"] {
        assert!(names.iter().any(|n| n == wanted), "{names:?}");
    }
    let changed = format!("cargo::rerun-if-changed={}", digits("mlp.onnx").display());
    assert!(said.contains(&changed), "{said:?}");
    for t in [a, b] {
        std::fs::remove_dir_all(t.out_dir).unwrap();
    }
}

#[test]
fn weights_may_be_left_to_the_caller() {
    let (linked, apart) = (toolchain("linked"), toolchain("apart"));
    let build = || Build::new().onnx("mlp", digits("mlp.onnx"));
    build().try_compile_with(Ok(linked.clone()), &mut |_| {}).unwrap();
    build().without_weights().try_compile_with(Ok(apart.clone()), &mut |_| {}).unwrap();
    let read = |t: &Toolchain, name: &str| std::fs::read(t.out_dir.join(name)).unwrap();
    let weights = read(&apart, "mlp.weights.bin");
    assert!(weights == read(&linked, "mlp.weights.bin"));
    let text = |t: &Toolchain| String::from_utf8(read(t, "mlp.rs")).unwrap();
    assert!(text(&linked).contains("pub fn new() -> Self") && text(&linked).contains("static WEIGHTS"));
    assert!(text(&apart).contains("pub unsafe fn new(weights: &'a [u8]) -> Self"));
    assert!(!text(&apart).contains("static WEIGHTS"));
    let library = |t: &Toolchain| {
        let all = files(t).into_iter().find(|(name, _)| name.ends_with(".a")).unwrap();
        all.1.len()
    };
    assert!(library(&linked) > library(&apart) + weights.len() / 2);
    assert!(!files(&linked).iter().any(|(name, _)| name.ends_with(".o")), "the library holds the objects");
    for t in [linked, apart] {
        std::fs::remove_dir_all(t.out_dir).unwrap();
    }
}

#[test]
fn every_fault_is_reported_at_once() {
    let t = toolchain("faults");
    let build = Build::new()
        .onnx("missing", "no/such.onnx")
        .onnx("loop", digits("mlp.onnx"))
        .tvmscript("what", "model.bin")
        .onnx("mlp", digits("mlp.onnx"))
        .onnx("mlp", digits("mlp.onnx"))
        .weights_limit(1000);
    let text = build.try_compile_with(Ok(t.clone()), &mut |_| {}).unwrap_err();
    for part in [
        "no/such.onnx",
        "`loop` cannot name a Rust module",
        "the format of model.bin is not known",
        "two models are named `mlp`",
        "more than the limit of 1000",
        "in the model `missing`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let unknown = Build::new().target("vax").try_compile_with(Ok(t.clone()), &mut |_| {}).unwrap_err();
    assert!(unknown.contains("unknown target `vax`") && unknown.contains("x86-64-v3"), "{unknown}");
    std::fs::remove_dir_all(t.out_dir).unwrap();
}

#[test]
fn warnings_of_a_model_go_to_cargo() {
    let t = toolchain("warnings");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/onnx/models/if_branch_cannot_run/model.onnx");
    let mut said = Vec::new();
    Build::new().onnx("gated", path).try_compile_with(Ok(t.clone()), &mut |line| said.push(line.to_owned())).unwrap();
    let warnings: Vec<&str> = said.iter().filter_map(|line| line.strip_prefix("cargo::warning=")).collect();
    assert!(warnings[0].starts_with("warning: else_branch of an If cannot run: MatMul: "), "{said:?}");
    assert!(warnings.iter().any(|line| line.contains("in the model `gated`")), "{warnings:?}");
    std::fs::remove_dir_all(t.out_dir).unwrap();
}

#[test]
fn initializers_may_be_left_to_callers() {
    let t = toolchain("overridable");
    let path = |name: &str| {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/onnx/models").join(name).join("model.onnx")
    };
    let model = || path("initializer_default_overridden_ir4");
    let build = Build::new().onnx("net", model()).onnx("other", digits("mlp.onnx")).overridable("w");
    build.try_compile_with(Ok(t.clone()), &mut |_| {}).unwrap();
    let text = std::fs::read_to_string(t.out_dir.join("net.rs")).unwrap();
    assert!(text.contains("pub fn main(&mut self, x: &[f32; 2], w: &[f32; 2]) -> [f32; 2] {"), "{text}");
    assert!(text.contains("pub fn main_defaults(&mut self) -> [f32; 2] {"), "{text}");
    let constant = Build::new().onnx("net", model());
    constant.try_compile_with(Ok(t.clone()), &mut |_| {}).unwrap();
    let text = std::fs::read_to_string(t.out_dir.join("net.rs")).unwrap();
    assert!(text.contains("pub fn main(&mut self, x: &[f32; 2]) -> [f32; 2] {"), "{text}");
    for (model, name, message) in [
        (model(), "v", "no model has an initializer 'v' to override"),
        (path("clip_nan_input"), "c0", "initializer 'c0' cannot be overridden: it is no input of the graph"),
    ] {
        let wrong = Build::new().onnx("net", model).overridable(name);
        let text = wrong.try_compile_with(Ok(t.clone()), &mut |_| {}).unwrap_err();
        assert!(text.contains(message), "{text}");
    }
    std::fs::remove_dir_all(t.out_dir).unwrap();
}
