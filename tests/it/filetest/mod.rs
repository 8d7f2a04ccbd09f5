//! File tests: `tests/files/**/*.tvm`, text in, text out.
//!
//! A case is header lines (`# run: …`, `# target: …`, `# output: tvmscript|c|vm`), a module, a line `# ---` and the expected output; lines `# -----` separate
//! cases. `run` is `parse`, `pipeline NAME`, or passes as `tvmc show --pass` takes them. Errors are asserted by lines under the code,
//! `#    ^^^ error: text`; such a case has no output. Every module that parses is also printed and parsed again, in both dialects.
//! `TVM_BLESS=1` rewrites what is expected.

pub mod case;
mod run;

use case::Case;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file test below a folder.
pub fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "tvm") {
            out.push(path);
        }
    }
}

#[test]
fn files_give_what_they_say() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("files");
    let mut paths = Vec::new();
    files(&dir, &mut paths);
    paths.sort();
    assert!(!paths.is_empty(), "no file tests in {}", dir.display());
    let bless = std::env::var_os("TVM_BLESS").is_some();
    let filter = std::env::var("TVM_FILTER").unwrap_or_default();
    let mut failures = Vec::new();
    let mut count = 0;
    for path in paths.iter().filter(|p| p.to_string_lossy().contains(&filter)) {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let name = path.strip_prefix(&dir).expect("below the folder").display().to_string();
        let mut blessed = Vec::new();
        for (i, source) in case::split(&text).enumerate() {
            count += 1;
            let outcome = Case::read(source).and_then(|case| run::run(&name, &case).map(|got| (case, got)));
            match outcome {
                Ok((case, got)) => {
                    if let Some(difference) = case.difference(&got) {
                        failures.push(format!("{name}, case {}: {difference}", i + 1));
                    }
                    blessed.push(case.blessed(&got));
                }
                Err(message) => {
                    failures.push(format!("{name}, case {}: {message}", i + 1));
                    blessed.push(source.to_owned());
                }
            }
        }
        if bless {
            fs::write(path, blessed.join("# -----\n")).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }
    assert!(count > 0, "TVM_FILTER={filter} leaves no file test");
    assert!(
        failures.is_empty() || bless,
        "{} of {count} cases fail (TVM_BLESS=1 rewrites what is expected, TVM_FILTER=text picks files):\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}
