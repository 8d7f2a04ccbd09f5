//! ONNX models of `tests/onnx`: those with results to compare, and those that must be refused.

use crate::tvmc::{root, run, run_within, tvmc};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The cases of real faults of other runtimes, with memory that is no longer in use filled.
#[test]
fn models_give_the_expected_results() {
    let output = run(&["onnx-suite", "tests/onnx/models", "--poison"], "");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stdout));
}

/// Networks as PyTorch's exporters write them, small, most with extents that vary and several sizes of inputs.
#[test]
fn networks_give_the_expected_results() {
    let output = run(&["onnx-suite", "tests/onnx/networks", "--poison"], "");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stdout));
}

/// Each ends with the messages of its `stderr.txt` and the exit code 1, or, where that file is empty, is accepted: in 5 s and
/// 500 MB.
#[test]
fn invalid_models_are_refused() {
    let dir = root().join("tests/onnx/invalid");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(&dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("model.onnx").is_file())
        .collect();
    cases.sort();
    assert!(cases.len() >= 36);
    // Compiled before time counts.
    tvmc();
    let mut wrong = Vec::new();
    for case in cases {
        let name = case.file_name().expect("a name").to_string_lossy().into_owned();
        let start = Instant::now();
        let output = run_within(500, &["check", &format!("tests/onnx/invalid/{name}/model.onnx")]);
        let time = start.elapsed();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let wanted = case.join("stderr.txt");
        if std::env::var_os("TVM_BLESS").is_some() {
            std::fs::write(&wanted, &text).expect("it can be written");
        }
        let expected = std::fs::read_to_string(&wanted).unwrap_or_default();
        let code = if expected.is_empty() { 0 } else { 1 };
        let slow = time > Duration::from_secs(5);
        if text != expected || output.status.code() != Some(code) || text.contains("panicked") || slow {
            wrong.push(format!("{name}: {:?}, {time:?}\n{text}", output.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A branch that cannot run is no fault of a model that does not take it, and is not passed over in silence.
#[test]
fn a_branch_that_cannot_run_is_a_warning() {
    let model = "tests/onnx/models/if_branch_cannot_run/model.onnx";
    let output = run(&["check", model], "");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.starts_with("warning: else_branch of an If cannot run: MatMul: "), "{text}");
    assert!(text.contains("graph/node[0] \"gate\" (If)/else_branch/node[0] (MatMul)"), "{text}");
}
