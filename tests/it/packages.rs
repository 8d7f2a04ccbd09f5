//! Whole packages under `tests/packages`, built by cargo: modules wherever a package may have them, and what is said of
//! packages whose build script and source do not fit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A copy of the packages in a workspace of its own, made once.
fn workspace() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = tests.parent().expect("the workspace root");
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
        let mut members = Vec::new();
        for entry in fs::read_dir(tests.join("packages")).expect("the packages") {
            let from = entry.expect("a package").path();
            let name = from.file_name().expect("a name").to_string_lossy().into_owned();
            // Libraries lie outside of the workspace: two of one name cannot be its members.
            let inside = !name.starts_with("ops-");
            copy(&from, &dir.join(if inside { "workspace" } else { "." }).join(&name), &root.to_string_lossy());
            members.extend(inside.then(|| format!("{name:?}")));
        }
        members.sort();
        let manifest = format!(
            "[workspace]\nresolver = \"3\"\nmembers = [{}]\n\n[profile.dev]\ndebug = 0\n\n[profile.dev.build-override]\nopt-level = 0\n",
            members.join(", ")
        );
        write(&dir.join("workspace/Cargo.toml"), &manifest);
        if let (Ok(lock), false) = (fs::read_to_string(root.join("Cargo.lock")), dir.join("workspace/Cargo.lock").exists()) {
            write(&dir.join("workspace/Cargo.lock"), &lock);
        }
        dir.join("workspace")
    })
}

/// Copies a folder; `ROOT` in manifests is the workspace of this test. Files that are the same stay as they are.
fn copy(from: &Path, to: &Path, root: &str) {
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target, root);
        } else {
            let text = fs::read_to_string(&path).expect("a text");
            let manifest = path.file_name().is_some_and(|n| n == "Cargo.toml");
            write(&target, &if manifest { text.replace("ROOT", root) } else { text });
        }
    }
}

fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
    fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

fn cargo(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST") || name == "OUT_DIR" {
            command.env_remove(name);
        }
    }
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages/target"));
    command.current_dir(workspace()).args(args).output().expect("cargo runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn modules_work_wherever_they_stand() {
    for (features, factor) in [(&[][..], "2"), (&["--features", "extra"][..], "3")] {
        let out = cargo(&[&["run", "--quiet", "-p", "app"], features].concat());
        assert!(out.status.success(), "{}", text(&out.stderr));
        assert_eq!(text(&out.stdout).trim(), format!("all as expected, factor {factor}"));
        assert!(out.stderr.is_empty(), "warnings: {}", text(&out.stderr));
    }
    let docs = cargo(&["doc", "--quiet", "--no-deps", "-p", "ops@1.0.0"]);
    assert!(docs.status.success() && docs.stderr.is_empty(), "{}", text(&docs.stderr));
}

/// Builds a package that cannot be built and gives what is said.
fn fails(package: &str, command: &str) -> String {
    let out = cargo(&[command, "--quiet", "-p", package]);
    let said = text(&out.stderr);
    assert!(!out.status.success(), "{package} builds: {said}");
    said
}

fn says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part}:\n{said}");
    }
}

#[test]
fn a_stale_module_is_a_compile_error() {
    says(
        &fails("stale", "build"),
        &["the build script compiled another version of the module `model`", "src/main.rs:4:13"],
    );
}

#[test]
fn two_modules_of_one_name_are_named_both() {
    says(
        &fails("twice", "build"),
        &["two models are named `model`", "src/b.rs:2:13", "src/a.rs:2:13", "the first one", "rename one"],
    );
}

#[test]
fn external_functions_that_do_not_fit_are_all_reported() {
    says(
        &fails("undeclared", "build"),
        &[
            "the external function `absent` is not declared",
            "src/main.rs:7:21",
            "extern \"C\" fn absent(x: *const f32, p1: i64, out: *mut f32)",
            "`halve`: parameter `x` is `*const f64`, argument y is a tensor (4,) f32",
            "`halve`: parameter `y` is `*mut f64`",
            "src/main.rs:8:13",
            "src/main.rs:17: `extern \"C\" fn halve(x: *const f64, n: usize, y: *mut f64)`",
        ],
    );
}

#[test]
fn uses_are_checked_before_the_build_script_ran() {
    let out = cargo(&["check", "--quiet", "-p", "unbuilt"]);
    assert!(out.status.success() && out.stderr.is_empty(), "{}", text(&out.stderr));
    says(&fails("unbuilt", "build"), &["the module `model` is not compiled", "rust_source"]);
}

/// The fastest of several checks, in seconds, of a package whose source was edited.
fn check_time(package: &str) -> f64 {
    let file = workspace().join(package).join("src/main.rs");
    let source = fs::read_to_string(&file).expect("a source file");
    let times = (0..6).map(|i| {
        fs::write(&file, format!("{source}\n// Edit {i}.\n")).expect("a file that can be written");
        let start = std::time::Instant::now();
        let out = cargo(&["check", "--quiet", "-p", package]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        start.elapsed().as_secs_f64()
    });
    let fastest = times.fold(f64::INFINITY, f64::min);
    fs::write(&file, source).expect("a file that can be written");
    fastest
}

/// What an edit of a file with `ir_module!` costs: cargo, the build script and the macro, against a file without.
#[test]
#[ignore = "a measurement, for a machine that does nothing else"]
fn an_incremental_check_takes_little_longer() {
    let (with, without) = (check_time("timed"), check_time("baseline"));
    println!("cargo check: {with:.2} s with ir_module!, {without:.2} s without: {:.2} s more", with - without);
    assert!(with - without < 0.3, "{:.2} s", with - without);
}
