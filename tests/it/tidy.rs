//! Structure: dependency directions, file sizes, the map's paths.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace root").to_path_buf()
}

/// Every `.rs` file below a folder of the workspace, without build outputs.
fn rust_files(dir: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut todo = vec![root().join(dir)];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.expect("a directory entry").path();
            if path.is_dir() {
                if path.file_name().is_none_or(|n| n != "target") {
                    todo.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

/// The same without unit tests.
fn library_files(dir: &str) -> Vec<PathBuf> {
    let is_test = |f: &PathBuf| {
        let below = f.strip_prefix(root().join(dir)).expect("below the folder");
        below.components().any(|c| c.as_os_str() == "tests" || c.as_os_str() == "tests.rs")
    };
    rust_files(dir).into_iter().filter(|f| !is_test(f)).collect()
}

/// (folder, what its files must not mention, why).
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    ("tvm-runtime/src", &["tvm_ir", "tvm_build", "tvm_macros"], "the runtime knows nothing of the compiler"),
    ("tvm-build/ir/src", &["std::fs", "std::process", "std::env", "tvm_build", "tvm_runtime"], "tvm-ir does no I/O"),
    ("tvm-build/ir/src/prim", &["crate::tir", "crate::relax", "crate::lowered"], "expressions are below statements"),
    ("tvm-build/ir/src/arith", &["crate::tir", "crate::relax", "crate::lowered"], "arithmetic is below statements"),
    ("tvm-build/ir/src/tir", &["crate::relax", "crate::lowered", "crate::ops"], "TensorIR is below Relax"),
    (
        "tvm-build/src/import",
        &["crate::passes", "crate::schedule", "crate::codegen", "crate::vm"],
        "importers make Relax, nothing else",
    ),
    (
        "tvm-build/src/passes",
        &["crate::codegen", "crate::import", "crate::vm", "std::process", "std::fs"],
        "passes are IR to IR",
    ),
    (
        "tvm-build/src/schedule",
        &["crate::codegen", "crate::import", "tvm_ir::relax", "std::process", "std::fs"],
        "schedules see TensorIR",
    ),
    (
        "tvm-build/src/codegen",
        &["tvm_ir::tir", "tvm_ir::relax", "tvm_ir::ops", "crate::passes", "std::process"],
        "printers see lowered code only",
    ),
];

#[test]
fn dependencies_point_one_way() {
    let mut wrong = Vec::new();
    for (dir, words, why) in FORBIDDEN {
        for file in library_files(dir) {
            let text = fs::read_to_string(&file).expect("a readable source file");
            for (n, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                for word in words.iter().filter(|w| code.contains(**w)) {
                    wrong.push(format!("{}:{}: mentions {word}: {why}", file.display(), n + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn processes_are_started_in_the_toolchain_alone() {
    let allowed = ["tvm-build/src/toolchain.rs", "tvm-build/src/toolchain/"];
    let wrong: Vec<String> = ["tvm-build/src", "tvm-build/ir/src", "tvm-runtime/src", "tvm-macros/src"]
        .iter()
        .flat_map(|d| library_files(d))
        .filter(|f| {
            let relative = f.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
            !allowed.iter().any(|a| relative.starts_with(a))
        })
        .filter(|f| fs::read_to_string(f).expect("a readable source file").contains("process::Command"))
        .map(|f| f.display().to_string())
        .collect();
    assert!(wrong.is_empty(), "start processes through the toolchain: {wrong:?}");
}

/// Lines above which a file needs an entry in `LONG_FILES` with its reason.
const LINE_CAP: usize = 600;
const LONG_FILES: &[(&str, &str)] = &[];

#[test]
fn files_have_one_job() {
    let mut wrong = Vec::new();
    for dir in ["tvm-build", "tvm-runtime", "tvm-macros", "examples", "tests"] {
        for file in rust_files(dir) {
            let relative = file.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
            let lines = fs::read_to_string(&file).expect("a readable source file").lines().count();
            if lines > LINE_CAP && !LONG_FILES.iter().any(|(f, _)| *f == relative) {
                wrong.push(format!("{relative}: {lines} lines"));
            }
        }
    }
    assert!(wrong.is_empty(), "split these, or say in LONG_FILES why not:\n{}", wrong.join("\n"));
}

#[test]
fn manifests_follow_the_map() {
    let allowed: &[(&str, &[&str])] = &[
        ("tvm-runtime", &[]),
        ("tvm-build/ir", &[]),
        ("tvm-build", &["tvm-ir", "tvm-runtime"]),
        ("tvm-macros", &["tvm-ir"]),
    ];
    for (dir, deps) in allowed {
        let manifest = fs::read_to_string(root().join(dir).join("Cargo.toml")).expect("a manifest");
        let section = manifest.split("\n[").find(|s| s.starts_with("dependencies]")).unwrap_or("");
        for line in section.lines().filter(|l| l.starts_with("tvm-")) {
            let name = line.split(['.', ' ', '=']).next().unwrap_or("");
            assert!(deps.contains(&name), "{dir} must not depend on {name}");
        }
    }
}

#[test]
fn paths_named_by_the_map_exist() {
    let mut missing = BTreeSet::new();
    for doc in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"] {
        let text = fs::read_to_string(root().join(doc)).unwrap_or_else(|e| panic!("{doc}: {e}"));
        for word in text.split('`').skip(1).step_by(2) {
            let path = word.trim_end_matches('/');
            let looks_like_a_path = path.contains('/')
                && path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
                && ["tvm-", "tests/", "examples/", ".ci/"].iter().any(|p| path.starts_with(p));
            if looks_like_a_path && !root().join(path).exists() {
                missing.insert(format!("{doc}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
