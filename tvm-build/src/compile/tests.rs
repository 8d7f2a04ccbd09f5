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

fn session(artifacts: &Artifacts) -> Session {
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
    unsafe { Session::new(artifacts.program.to_static(tables), &artifacts.weights.to_vec()) }
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
