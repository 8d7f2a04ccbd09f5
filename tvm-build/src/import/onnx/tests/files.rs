//! The models of the digits example.

use std::path::{Path, PathBuf};

use tvm_ir::dtype::DType;
use tvm_ir::relax::{Block, Expr, Leaf};
use tvm_ir::span::SourceMap;

use super::super::{Limits, load};
use super::make::main;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits/models").join(name)
}

/// The names of the ops that `main` calls, and the shapes of the constants it uses.
fn outline(name: &str) -> (Vec<&'static str>, Vec<Vec<u64>>) {
    let loaded = load(&path(name), &Limits::default(), &mut SourceMap::default()).unwrap();
    let function = main(&loaded.module);
    assert_eq!(function.attrs.get("num_input").and_then(|v| v.as_int()), Some(1));
    assert_eq!(function.params[0].name().as_str(), "x");
    assert_eq!(function.ret, tvm_ir::relax::StructInfo::tensor_fixed(&[1, 10], DType::F32));
    let (mut ops, mut weights) = (Vec::new(), Vec::new());
    for binding in function.body.blocks.iter().flat_map(Block::bindings) {
        let Expr::Call(call) = &binding.value else { panic!("{:?}", binding.value) };
        ops.push(call.op.name());
        weights.extend(call.args.iter().filter_map(|leaf| match leaf {
            Leaf::Const(constant) => Some(constant.shape().to_vec()),
            _ => None,
        }));
    }
    (ops, weights)
}

#[test]
fn mlp() {
    let (ops, weights) = outline("mlp.onnx");
    assert_eq!(ops, ["permute_dims", "matmul", "add", "nn.relu", "permute_dims", "matmul", "add"]);
    assert_eq!(weights, [vec![256, 784], vec![256], vec![10, 256], vec![10]]);
}

#[test]
fn cnn() {
    let (ops, weights) = outline("cnn.onnx");
    let conv = ["nn.conv2d", "reshape", "add", "nn.relu", "nn.max_pool2d"];
    let dense = ["permute_dims", "matmul", "add", "nn.relu"];
    assert_eq!(ops, [&conv[..], &conv, &["reshape"], &dense, &dense[..3]].concat());
    assert_eq!(weights[0], [16, 1, 3, 3]);
    assert_eq!(weights.len(), 8);
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
    let diags = load(Path::new("/nonexistent/m.onnx"), &Limits::default(), &mut SourceMap::default()).unwrap_err();
    assert!(diags.to_string().contains("/nonexistent/m.onnx cannot be opened"), "{diags}");
}
