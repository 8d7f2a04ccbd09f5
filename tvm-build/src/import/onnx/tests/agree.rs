//! Extents that must agree and are compared at run time.

use tvm_ir::dtype::DType;
use tvm_ir::interp::TensorBuf;
use tvm_ir::interp::relax::{Value, run_function};

use super::make::*;
use crate::import::onnx::proto::NodeProto;

/// The shape of `node` on zeros of these shapes; their extents have names in the model.
fn shape(node: &NodeProto, x: &str, z: &str, extents: [&[i64]; 2]) -> Result<Vec<i64>, String> {
    let mut model = model(17, x, vec![], vec![node.clone()]);
    let graph = model.graph.as_mut().unwrap();
    graph.input.push(value("z", z));
    graph.output[0].r#type = None;
    let args = extents.map(|dims| Value::tensor(TensorBuf::zeros(DType::F32, dims).unwrap()));
    let result = run_function(&import(&model)?, "main", &args).map_err(|e| e.to_string())?;
    Ok(result.as_tensor().unwrap().shape)
}

#[test]
fn equal_extents_pass_and_others_are_errors() {
    let add = node("Add", &["x", "z"], &["y"]);
    assert_eq!(shape(&add, "a, 3", "b, 3", [&[2, 3], &[2, 3]]).unwrap(), [2, 3]);
    assert_eq!(shape(&add, "a, 3", "c, b, 1", [&[2, 3], &[5, 2, 1]]).unwrap(), [5, 2, 3]);
    assert_eq!(shape(&add, "a, 3", "4, 3", [&[4, 3], &[4, 3]]).unwrap(), [4, 3]);
    assert!(shape(&add, "a, 3", "b, 3", [&[2, 3], &[4, 3]]).is_err());
    let concat = node("Concat", &["x", "z"], &["y"]).int("axis", -1);
    assert_eq!(shape(&concat, "a, 3", "b, c", [&[2, 3], &[2, 4]]).unwrap(), [2, 7]);
    assert!(shape(&concat, "a, 3", "b, c", [&[2, 3], &[1, 4]]).is_err());
    let matmul = node("MatMul", &["x", "z"], &["y"]);
    assert_eq!(shape(&matmul, "n, a, k", "m, l, 5", [&[2, 3, 4], &[2, 4, 5]]).unwrap(), [2, 3, 5]);
    assert_eq!(shape(&matmul, "a, k", "l", [&[3, 4], &[4]]).unwrap(), [3]);
    assert!(shape(&matmul, "n, a, k", "m, l, 5", [&[2, 3, 4], &[2, 1, 5]]).is_err());
}

/// What is proven is not checked.
#[test]
fn one_name_is_one_extent() {
    let mut model = model(17, "a, 3", vec![], vec![node("Add", &["x", "z"], &["y"])]);
    model.graph.as_mut().unwrap().input.push(value("z", "a, 1"));
    assert!(!bindings(&model).iter().any(|b| b.contains("MatchCast")));
}
