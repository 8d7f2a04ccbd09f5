//! How much memory a build takes for weights: what is not changed stays in the mapped file, what is changed is there once.

#![allow(unsafe_code, reason = "an allocator that counts")]
#![allow(clippy::expect_used, reason = "a test")]

mod model;

use model::{Data, Init, Model, Node};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tvm_build::compile::{Artifacts, Options, compile_module};
use tvm_build::toolchain::Toolchain;
use tvm_ir::span::SourceMap;
use tvm_ir::target::Target;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which counts bytes.
struct Counting;

fn more(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of the weight of each model: far more than what a build takes beside.
const WEIGHT: usize = 16 << 20;
const ROWS: u64 = 1024;
const COLUMNS: u64 = 4096;

/// What a build took beyond what there was before: the most at any time, in bytes.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (result, PEAK.load(Ordering::Relaxed) - before)
}

/// Imports and compiles a model for several levels, and writes its sources and weights.
fn build(file: &Path) -> Artifacts {
    let artifacts = compile(file);
    let toolchain = Toolchain::for_host(file.with_extension("out"));
    artifacts.write(&toolchain).expect("it can be written");
    artifacts
}

fn compile(file: &Path) -> Artifacts {
    let module = tvm_build::model::load(file, &mut SourceMap::default()).expect("a model");
    let targets = ["x86-64", "x86-64-v3"].iter().filter_map(|name| Target::named(name)).collect();
    let options = Options { targets, ..Options::new("net", Target::default()) };
    compile_module(module, &options).expect("it compiles")
}

struct Case {
    name: &'static str,
    model: Model,
    /// Bytes of weights in the program.
    stored: usize,
    /// Copies of `WEIGHT` bytes in memory.
    copies: usize,
}

fn weight(name: &str, shape: [u64; 2], data: Data) -> Init {
    Init { name: name.into(), shape: shape.to_vec(), data }
}

/// `y = f(x, w, …)` with `x` of 3 × `inner` and `y` of 3 × `outer`.
fn net(inner: u64, outer: u64, inits: Vec<Init>, nodes: Vec<Node>) -> Model {
    Model { inputs: vec![("x".into(), vec![3, inner])], outputs: vec![("y".into(), vec![3, outer])], inits, nodes }
}

fn matmul(data: Data) -> Model {
    let product = Node::new("MatMul", &["x", "w"], "y");
    net(ROWS, COLUMNS, vec![weight("w", [ROWS, COLUMNS], data)], vec![product])
}

fn cases() -> Vec<Case> {
    let raw = |name, shape| weight(name, shape, Data::Raw);
    let transposed = Node::new("Gemm", &["x", "w"], "y").with("transB", 1);
    let twice = vec![
        Node::new("Gemm", &["x", "w"], "a").with("transB", 1),
        Node::new("Gemm", &["x", "v"], "b").with("transB", 1),
        Node::new("Add", &["a", "b"], "y"),
    ];
    let scaled = vec![Node::new("Mul", &["w", "s"], "m"), Node::new("MatMul", &["x", "m"], "y")];
    let scale = Init { name: "s".into(), shape: vec![COLUMNS], data: Data::Raw };
    vec![
        Case { name: "as it is", model: matmul(Data::Raw), stored: WEIGHT, copies: 0 },
        Case { name: "external data", model: matmul(Data::External), stored: WEIGHT, copies: 0 },
        Case { name: "a list of numbers", model: matmul(Data::Typed), stored: WEIGHT, copies: 0 },
        Case {
            name: "transposed",
            model: net(COLUMNS, ROWS, vec![raw("w", [ROWS, COLUMNS])], vec![transposed]),
            stored: WEIGHT,
            copies: 1,
        },
        Case {
            name: "two equal ones, both transposed",
            model: net(COLUMNS, ROWS, vec![raw("w", [ROWS, COLUMNS]), raw("v", [ROWS, COLUMNS])], twice),
            stored: WEIGHT,
            copies: 1,
        },
        Case {
            name: "scaled",
            model: net(ROWS, COLUMNS, vec![raw("w", [ROWS, COLUMNS]), scale], scaled),
            stored: WEIGHT,
            copies: 1,
        },
    ]
}

/// One test: the counters are those of the process.
#[test]
fn weights_are_in_memory_once() {
    let folder: PathBuf = [env!("CARGO_TARGET_TMPDIR"), "weights"].iter().collect();
    let mut wrong = String::new();
    for case in cases() {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("model.onnx");
        case.model.write(&file);
        let (artifacts, bytes) = peak(|| build(&file));
        let (copies, stored) = (case.copies, case.stored as u64);
        if bytes > copies * WEIGHT + WEIGHT / 4 {
            wrong.push_str(&format!("{}: {bytes} bytes, {copies} times {WEIGHT} were due\n", case.name));
        }
        if artifacts.weights.len() != stored {
            wrong.push_str(&format!("{}: {} bytes stored, {stored} were due\n", case.name, artifacts.weights.len()));
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    wrong.push_str(&more_than_two_gigabytes(&folder.join("model.onnx")));
    let _ = std::fs::remove_dir_all(&folder);
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A tensor of more than 2 GB, at an offset of more than 2 GB: compiled, and not read.
fn more_than_two_gigabytes(file: &Path) -> String {
    let shape = [163_840 * 4, 1024];
    let bytes = 4 * shape[0] * shape[1];
    let product = Node::new("MatMul", &["x", "w"], "y");
    net(shape[0], shape[1], vec![weight("w", shape, Data::Far(3 << 30))], vec![product]).write(file);
    let (artifacts, peak) = peak(|| compile(file));
    assert!(bytes > 1 << 31);
    assert_eq!(artifacts.weights.len(), bytes);
    if peak < WEIGHT { String::new() } else { format!("{bytes} bytes of weights: {peak} bytes of memory\n") }
}
