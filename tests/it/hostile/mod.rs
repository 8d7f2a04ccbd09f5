//! Models that are wrong in every way: whatever a file says, `tvmc check` ends soon, within its memory, and with a message that has a
//! place.
//!
//! The models of `tests/onnx` are changed by a generator with a seed. `TVM_HOSTILE=first..last` chooses the seeds; a model that is at
//! fault is left in the folder of test outputs, and belongs into `tests/onnx/invalid` when the fault is corrected.

mod message;
mod mutate;

use crate::tvmc::{root, tvmc};
use mutate::{Rng, mutated};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Models of at most this size are changed: larger ones take longer and reach no other code.
const MODEL_BYTES: usize = 60_000;
/// Seconds of a processor that a model may take. The program is not optimised here; an optimised one takes less than a tenth.
const SECONDS: u64 = 60;
/// Kilobytes of address space.
const KILOBYTES: u64 = 500_000;

/// The models that are changed, in order.
pub(crate) fn corpus(folders: &[PathBuf]) -> Vec<Vec<u8>> {
    let mut models = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(folder).expect("a folder of models");
        models.extend(entries.map(|e| e.expect("an entry").path().join("model.onnx")).filter(|p| p.is_file()));
    }
    models.sort();
    let read = models.iter().map(|p| std::fs::read(p).expect("a model"));
    read.filter(|bytes| (1..MODEL_BYTES).contains(&bytes.len())).collect()
}

/// The model of a seed.
pub(crate) fn model(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed.wrapping_mul(0xD134_2543_DE82_EF95));
    let base = rng.below(corpus.len());
    mutated(&corpus[base], corpus, &mut rng)
}

/// What is wrong with how `program check` ends on a model; `None` if nothing is.
pub(crate) fn fault(program: &Path, model: &Path) -> Option<String> {
    let limited = format!("ulimit -v {KILOBYTES}; ulimit -t {SECONDS}; ulimit -c 0; exec \"$0\" check \"$1\"");
    let output = Command::new("sh")
        .args(["-c", &limited])
        .args([program, model])
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stderr);
    let first = |word: &str| text.lines().find(|l| l.contains(word)).unwrap_or_default().to_owned();
    match output.status.code() {
        Some(0) => None,
        Some(1) if text.contains("after the pass") => {
            Some(format!("a pass breaks the module: {}", first("after the pass")))
        }
        Some(1) if text.len() > 1 << 20 => Some(format!("{} bytes of messages", text.len())),
        Some(1) if text.starts_with("error: ") && text.contains("\n --> ") => None,
        Some(1) => Some(format!("a message without a place: {text}")),
        Some(101) => Some(text.lines().take(3).collect::<Vec<_>>().join(" ")),
        _ => Some(format!("{}: {}", output.status, text.lines().take(3).collect::<Vec<_>>().join(" "))),
    }
}

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("TVM_HOSTILE") else { return 0..500 };
    let (first, last) = text.split_once("..").expect("TVM_HOSTILE=first..last");
    first.parse().expect("a number")..last.parse().expect("a number")
}

#[test]
#[cfg(unix)]
fn changed_models_are_compiled_or_refused() {
    let folders = ["models", "networks", "invalid"].map(|f| root().join("tests/onnx").join(f));
    let corpus = corpus(&folders);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (program, seeds) = (tvmc(), seeds());
    let next = AtomicU64::new(seeds.start);
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get().min(4)) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let path = folder.join(format!("{seed}.onnx"));
                    std::fs::write(&path, model(&corpus, seed)).expect("a file");
                    match fault(program, &path) {
                        Some(fault) => faults.lock().expect("the list").push(format!("{}: {fault}", path.display())),
                        None => std::fs::remove_file(&path).expect("it is there"),
                    }
                }
            });
        }
    });
    let mut faults = faults.into_inner().expect("the list");
    faults.sort();
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), seeds.end - seeds.start, faults.join("\n"));
}
