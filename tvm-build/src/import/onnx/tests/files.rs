//! The models of the digits example.

use std::path::{Path, PathBuf};

use tvm_ir::constant::Constant;
use tvm_ir::relax::{Block, Expr, Leaf};
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::{Dialect, print_module};

use super::super::{ImportOptions, Limits, load};
use super::make::main;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits/models").join(name)
}

/// The text that TVM 0.27 prints of its own import of the model.
fn text(name: &str) -> String {
    let loaded = load(&path(name), ImportOptions::default(), &mut SourceMap::default()).unwrap();
    assert!(loaded.files.is_empty());
    print_module(&loaded.module, Dialect::V0_27)
}

#[test]
fn mlp() {
    assert_eq!(text("mlp.onnx"), include_str!("mlp.tvm"));
}

#[test]
fn cnn() {
    assert_eq!(text("cnn.onnx"), include_str!("cnn.tvm"));
}

#[test]
fn weights_are_views_of_the_file() {
    let bytes = std::fs::read(path("mlp.onnx")).unwrap();
    let loaded = load(&path("mlp.onnx"), ImportOptions::default(), &mut SourceMap::default()).unwrap();
    let weights: Vec<&Constant> = main(&loaded.module)
        .body
        .blocks
        .iter()
        .flat_map(Block::bindings)
        .flat_map(|b| match &b.value {
            Expr::Call(call) => {
                call.args.iter().filter_map(|a| if let Leaf::Const(c) = a { Some(c) } else { None }).collect()
            }
            _ => Vec::new(),
        })
        .collect();
    let shapes: Vec<&[u64]> = weights.iter().map(|w| w.shape()).collect();
    assert_eq!(shapes, [&[256, 784][..], &[256], &[10, 256], &[10]]);
    // The distance between two weights in memory is that in the file: nothing was copied.
    let place = |weight: &Constant| bytes.windows(weight.data().len()).position(|w| w == &weight.data()[..]).unwrap();
    let (first, second) = (&weights[0], &weights[1]);
    let in_file = place(second).wrapping_sub(place(first));
    assert_eq!(in_file, (second.data().as_ptr() as usize).wrapping_sub(first.data().as_ptr() as usize));
}

#[test]
fn damaged_files_are_errors() {
    let bytes = std::fs::read(path("cnn.onnx")).unwrap();
    let load = |bytes: &[u8]| {
        super::super::load_bytes(bytes.to_vec(), "cnn.onnx", &Limits::default(), &mut SourceMap::default())
    };
    assert!(load(&bytes).is_ok());
    for end in (0..bytes.len()).step_by(bytes.len() / 31) {
        let diags = load(&bytes[..end]).unwrap_err();
        assert!(!diags.0.is_empty() && diags.has_errors());
    }
    // The messages that are not weights are at the two ends.
    let ends: Vec<usize> = (0..400).chain(bytes.len() - 400..bytes.len()).collect();
    for (round, at) in ends.into_iter().enumerate() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (round % 8);
        if let Err(diags) = load(&damaged) {
            assert!(diags.has_errors());
        }
    }
}

#[test]
fn a_missing_file_is_an_error() {
    let diags =
        load(Path::new("/nonexistent/m.onnx"), ImportOptions::default(), &mut SourceMap::default()).unwrap_err();
    assert!(diags.to_string().contains("/nonexistent/m.onnx cannot be opened"), "{diags}");
}
