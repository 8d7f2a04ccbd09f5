//! Operators whose results are as many as the data says, by the interpreter.

use tvm_ir::dtype::DType;
use tvm_ir::interp::TensorBuf;
use tvm_ir::interp::relax::{Value, run_function};

use super::make::*;
use crate::import::onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto};

fn floats(shape: &[i64], values: &[f64]) -> Value {
    Value::tensor(TensorBuf::from_f64(DType::F32, shape, values).unwrap())
}

fn ints(values: &[i64]) -> Value {
    Value::tensor(TensorBuf::from_i64(DType::I64, &[values.len() as i64], values).unwrap())
}

/// A condition, as many as there are values.
fn bools(values: &[i64], shape: &[i64]) -> Value {
    Value::tensor(TensorBuf::from_i64(DType::BOOL, shape, values).unwrap())
}

fn typed(name: &str, dims: &str, element: i32) -> ValueInfoProto {
    use crate::import::onnx::proto::{TypeProto, TypeValue};
    let mut value = value(name, dims);
    if let Some(TypeProto { value: Some(TypeValue::Tensor(ty)) }) = &mut value.r#type {
        ty.elem_type = element;
    }
    value
}

const BOOL: i32 = 9;

/// A model of `x` and more inputs; its outputs say nothing of their types.
fn of(x: &str, inputs: Vec<ValueInfoProto>, nodes: Vec<NodeProto>, outputs: &[&str]) -> ModelProto {
    let mut model = model(18, x, vec![], nodes);
    let graph = model.graph.as_mut().unwrap();
    graph.input.extend(inputs);
    graph.output = outputs.iter().map(|name| ValueInfoProto { name: (*name).to_owned(), r#type: None }).collect();
    model
}

/// Shape and elements.
type Array = (Vec<i64>, Vec<f64>);

fn run(model: &ModelProto, args: &[Value]) -> Result<Vec<Array>, String> {
    let module = import(model)?;
    tvm_ir::relax::verify::verify_module(&module).map_err(|d| d.to_string())?;
    let out = run_function(&module, "main", args).map_err(|d| d.to_string())?;
    Ok(out.tensors().iter().map(|t| (t.shape.clone(), t.to_f64())).collect())
}

#[test]
fn nonzero_of_a_scalar_has_no_rows() {
    let model = of("", vec![], vec![node("NonZero", &["x"], &["y"])], &["y"]);
    assert_eq!(run(&model, &[floats(&[], &[3.0])]).unwrap(), [(vec![0, 1], vec![])]);
    assert_eq!(run(&model, &[floats(&[], &[0.0])]).unwrap(), [(vec![0, 0], vec![])]);
}

#[test]
fn a_declared_output_is_checked() {
    let mut model = of("n", vec![], vec![node("NonZero", &["x"], &["y"])], &["y"]);
    model.graph.as_mut().unwrap().output = vec![int_value("y", "1, 3")];
    assert_eq!(result(&model), "a tensor (1, 3) int64");
    let call = |values: &[f64]| run(&model, &[floats(&[values.len() as i64], values)]);
    assert_eq!(call(&[1.0, 0.0, 2.0, 3.0]).unwrap(), [(vec![1, 3], vec![0.0, 2.0, 3.0])]);
    assert!(call(&[1.0, 0.0]).unwrap_err().contains("R.match_cast"));
    // A name that inputs give is what they give; another one says nothing.
    model.graph.as_mut().unwrap().output = vec![int_value("y", "1, n")];
    assert_eq!(result(&model), "a tensor (1, n) int64");
    model.graph.as_mut().unwrap().output = vec![int_value("y", "1, k")];
    assert_eq!(result(&model), "a tensor of rank 2 int64");
}

#[test]
fn compress_by_shorter_and_longer_conditions() {
    let compress = |axis: Option<i64>| {
        let compress = node("Compress", &["x", "c"], &["y"]);
        let compress = axis.into_iter().fold(compress, |node, axis| node.int("axis", axis));
        of("n, 3", vec![typed("c", "m", BOOL)], vec![compress], &["y"])
    };
    let x = floats(&[2, 3], &[0., 1., 2., 3., 4., 5.]);
    let call = |axis, c: &[i64]| run(&compress(axis), &[x.clone(), bools(c, &[c.len() as i64])]).unwrap().remove(0);
    assert_eq!(call(Some(1), &[1, 0, 1]), (vec![2, 2], vec![0., 2., 3., 5.]));
    assert_eq!(call(Some(-1), &[0, 1]), (vec![2, 1], vec![1., 4.]));
    assert_eq!(call(Some(0), &[0, 1, 1, 1]), (vec![1, 3], vec![3., 4., 5.]));
    assert_eq!(call(None, &[0, 1, 0, 0, 1]), (vec![2], vec![1., 4.]));
    assert_eq!(call(None, &[]), (vec![0], vec![]));
    assert_eq!(call(Some(0), &[0, 0]), (vec![0, 3], vec![]));
}

#[test]
fn outputs_of_unique_that_are_asked_for() {
    let x = floats(&[5], &[2., 1., 1., 3., 2.]);
    let run = |outputs: &[&str], sorted: i64| {
        let unique = node("Unique", &["x"], outputs).int("sorted", sorted);
        let named: Vec<&str> = outputs.iter().copied().filter(|n| !n.is_empty()).collect();
        run(&of("n", vec![], vec![unique], &named), std::slice::from_ref(&x)).unwrap()
    };
    assert_eq!(run(&["y"], 1), [(vec![3], vec![1., 2., 3.])]);
    let all = [
        (vec![3], vec![2., 1., 3.]),
        (vec![3], vec![0., 1., 3.]),
        (vec![5], vec![0., 1., 1., 2., 0.]),
        (vec![3], vec![2., 2., 1.]),
    ];
    assert_eq!(run(&["y", "i", "r", "c"], 0), all);
    assert_eq!(run(&["y", "", "", "c"], 0), [all[0].clone(), all[3].clone()]);
    assert_eq!(run(&["", "", "r"], 0), [all[2].clone()]);
}

#[test]
fn the_first_k() {
    let model = of("2, n", vec![int_value("k", "1")], vec![node("TopK", &["x", "k"], &["y", "i"])], &["y", "i"]);
    let x = floats(&[2, 3], &[1., 3., 3., 5., 0., -1.]);
    let call = |k: i64| run(&model, &[x.clone(), ints(&[k])]);
    assert_eq!(call(2).unwrap(), [(vec![2, 2], vec![3., 3., 5., 0.]), (vec![2, 2], vec![1., 2., 0., 1.])]);
    assert_eq!(call(0).unwrap(), [(vec![2, 0], vec![]), (vec![2, 0], vec![])]);
    assert!(call(4).unwrap_err().contains("above the bound"));
    assert_eq!(run(&model, &[floats(&[2, 0], &[]), ints(&[0])]).unwrap()[0], (vec![2, 0], vec![]));
    let mut fixed = of("2, 3", vec![], vec![node("TopK", &["x"], &["y", "i"]).int("k", 1)], &["y", "i"]);
    fixed.opset_import[0].version = 9;
    assert_eq!(run(&fixed, std::slice::from_ref(&x)).unwrap()[1], (vec![2, 1], vec![1., 0.]));
}

#[test]
fn suppression_without_optional_operands_selects_none() {
    let nms = |inputs: &[&str]| node("NonMaxSuppression", inputs, &["y"]);
    let scores = || value("s", "1, 1, n");
    let (boxes, s) = (floats(&[1, 2, 4], &[0., 0., 1., 1., 0., 0., 1., 0.9]), floats(&[1, 1, 2], &[0.5, 0.5]));
    let none = of("1, n, 4", vec![scores()], vec![nms(&["x", "s"])], &["y"]);
    assert_eq!(run(&none, &[boxes.clone(), s.clone()]).unwrap(), [(vec![0, 3], vec![])]);
    let most = of("1, n, 4", vec![scores(), int_value("m", "1")], vec![nms(&["x", "s", "m"])], &["y"]);
    let call = |m| run(&most, &[boxes.clone(), s.clone(), ints(&[m])]).unwrap().remove(0);
    // Boxes that overlap at all: the first of equal scores.
    assert_eq!(call(5), (vec![1, 3], vec![0., 0., 0.]));
    assert_eq!(call(0), (vec![0, 3], vec![]));
    let empty = run(&most, &[floats(&[1, 0, 4], &[]), floats(&[1, 1, 0], &[]), ints(&[5])]).unwrap();
    assert_eq!(empty, [(vec![0, 3], vec![])]);
}

fn conditional(then: Vec<NodeProto>, otherwise: Vec<NodeProto>) -> NodeProto {
    let branch = |name: &str, node: Vec<NodeProto>| {
        let output = vec![ValueInfoProto { name: "r".into(), r#type: None }];
        let graph = GraphProto { name: name.into(), node, output, ..Default::default() };
        AttributeProto { name: name.into(), kind: 5, g: Some(Box::new(graph)), ..Default::default() }
    };
    let mut conditional = node("If", &["c"], &["b"]);
    conditional.attribute = vec![branch("then_branch", then), branch("else_branch", otherwise)];
    conditional
}

#[test]
fn branches_of_different_shapes() {
    let then = vec![node("Compress", &["x", "m"], &["r"]).int("axis", 0)];
    let otherwise = vec![node("Concat", &["x", "x"], &["r"]).int("axis", 0)];
    let nodes = vec![conditional(then, otherwise), node("Add", &["b", "b"], &["y"])];
    let model = of("n, 2", vec![typed("c", "", BOOL), typed("m", "n", BOOL)], nodes, &["y"]);
    let x = floats(&[2, 2], &[1., 2., 3., 4.]);
    let call = |c, m: [i64; 2]| run(&model, &[x.clone(), bools(&[c], &[]), bools(&m, &[2])]).unwrap().remove(0);
    assert_eq!(call(1, [0, 1]), (vec![1, 2], vec![6., 8.]));
    assert_eq!(call(1, [0, 0]), (vec![0, 2], vec![]));
    assert_eq!(call(0, [0, 1]), (vec![4, 2], vec![2., 4., 6., 8., 2., 4., 6., 8.]));
    // Ranks that differ: what is known is that it is a tensor.
    let flat = vec![node("Flatten", &["x"], &["f"]).int("axis", 0), node("Identity", &["f"], &["r"])];
    let nodes = vec![conditional(vec![node("Compress", &["x", "m"], &["r"])], flat)];
    let model = of("n, 2", vec![typed("c", "", BOOL), typed("m", "n", BOOL)], nodes, &["b"]);
    let call = |c| run(&model, &[x.clone(), bools(&[c], &[]), bools(&[1, 1], &[2])]).unwrap().remove(0);
    assert_eq!((call(1), call(0)), ((vec![2], vec![1., 2.]), (vec![1, 4], vec![1., 2., 3., 4.])));
}
