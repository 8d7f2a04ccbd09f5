//! `Loop` and `Scan`, run by the interpreter.

use tvm_ir::interp::TensorBuf;
use tvm_ir::interp::relax::{Value, run_function};

use super::super::proto::*;
use super::make::*;

impl NodeProto {
    pub(super) fn graph(mut self, name: &str, graph: GraphProto) -> NodeProto {
        let g = Some(Box::new(graph));
        self.attribute.push(AttributeProto { name: name.into(), kind: 5, g, ..Default::default() });
        self
    }
}

pub(super) fn bool_value(name: &str) -> ValueInfoProto {
    let mut value = value(name, "");
    if let Some(TypeProto { value: Some(TypeValue::Tensor(ty)) }) = &mut value.r#type {
        ty.elem_type = 9;
    }
    value
}

pub(super) fn graph(input: Vec<ValueInfoProto>, output: Vec<ValueInfoProto>, node: Vec<NodeProto>) -> GraphProto {
    GraphProto { input, output, node, ..Default::default() }
}

pub(super) fn scalar(name: &str, value: i64) -> TensorProto {
    TensorProto { name: name.into(), dims: vec![], data_type: 7, int64_data: vec![value], ..Default::default() }
}

/// The outputs of `main`.
pub(super) fn run(model: &ModelProto, inputs: &[TensorBuf]) -> Vec<TensorBuf> {
    let module = import(model).unwrap_or_else(|e| panic!("{e}"));
    tvm_ir::relax::verify::verify_module(&module).unwrap_or_else(|e| panic!("{e}"));
    let inputs: Vec<Value> = inputs.iter().cloned().map(Value::tensor).collect();
    run_function(&module, "main", &inputs).unwrap_or_else(|e| panic!("{e}")).tensors()
}

pub(super) fn floats(shape: &[i64], values: &[f32]) -> TensorBuf {
    TensorBuf::from_f32(shape, values).unwrap()
}

/// `acc = acc + w * i`, what it was is stacked; `w` is from outside.
fn sums(trips: Vec<TensorProto>, inputs: Vec<ValueInfoProto>) -> ModelProto {
    let body = graph(
        vec![int_value("it", ""), bool_value("on"), value("acc", "2")],
        vec![bool_value("on2"), value("acc2", "2"), value("acc", "2")],
        vec![
            node("Cast", &["it"], &["f"]).int("to", 1),
            node("Mul", &["w", "f"], &["wf"]),
            node("Add", &["acc", "wf"], &["acc2"]),
            node("Identity", &["on"], &["on2"]),
        ],
    );
    let nodes = vec![node("Relu", &["x"], &["w"]), node("Loop", &["m", "", "x"], &["y", "z"]).graph("body", body)];
    let mut model = model(13, "2", trips, nodes);
    let graph = model.graph.as_mut().unwrap();
    graph.input.extend(inputs);
    graph.output.push(value("z", "?, 2"));
    model
}

#[test]
fn loops_with_a_trip_count() {
    for trips in [0i64, 1, 2, 7] {
        let mut rows: Vec<f32> = Vec::new();
        let mut acc = [1f32, 3.];
        for i in 0..trips {
            rows.extend(acc);
            acc = [acc[0] + i as f32, acc[1] + 3. * i as f32];
        }
        let x = floats(&[2], &[1., 3.]);
        let fixed = run(&sums(vec![scalar("m", trips)], vec![]), std::slice::from_ref(&x));
        // The count is an input of the model.
        let count = TensorBuf::scalar_i64(tvm_ir::dtype::DType::I64, trips).unwrap();
        let given = run(&sums(vec![], vec![int_value("m", "")]), &[x, count]);
        for found in [fixed, given] {
            assert_eq!((found[0].to_f32(), found[1].to_f32()), (acc.to_vec(), rows.clone()));
            assert_eq!(found[1].shape, [trips, 2]);
        }
    }
}

#[test]
fn loops_that_a_condition_ends() {
    // Doubled while the sum is below 20.
    let body = graph(
        vec![int_value("it", ""), bool_value("on"), value("a", "2")],
        vec![bool_value("on2"), value("b", "2")],
        vec![
            node("Add", &["a", "a"], &["b"]),
            node("ReduceSum", &["b"], &["s"]).int("keepdims", 0),
            node("Less", &["s", "limit"], &["on2"]),
        ],
    );
    let limit = TensorProto { dims: vec![], float_data: vec![20.0].into(), ..weight("limit", &[]) };
    let on = TensorProto { name: "on".into(), data_type: 9, int32_data: vec![1], ..Default::default() };
    let nodes = vec![node("Loop", &["", "on", "x"], &["y"]).graph("body", body)];
    let model = model(13, "2", vec![limit, on], nodes);
    assert_eq!(run(&model, &[floats(&[2], &[1., 2.])])[0].to_f32(), [8., 16.]);
    assert_eq!(run(&model, &[floats(&[2], &[100., 2.])])[0].to_f32(), [200., 4.]);
}

#[test]
fn carried_values_that_change_their_shape() {
    let body = graph(
        vec![int_value("it", ""), bool_value("on"), value("a", "?, 2")],
        vec![bool_value("on"), value("b", "?, 2")],
        vec![node("Concat", &["a", "x"], &["b"]).int("axis", 0)],
    );
    let nodes = vec![node("Loop", &["m", "", "x"], &["y"]).graph("body", body)];
    let model = model(13, "1, 2", vec![scalar("m", 3)], nodes);
    let found = run(&model, &[floats(&[1, 2], &[1., 2.])]);
    assert_eq!((found[0].shape.as_slice(), found[0].to_f32().len()), (&[4i64, 2][..], 8));
}

#[test]
fn a_loop_without_an_end_is_refused() {
    let body = graph(
        vec![int_value("it", ""), bool_value("on"), value("a", "2")],
        vec![bool_value("on"), value("a", "2")],
        vec![],
    );
    let nodes = vec![node("Loop", &["", "", "x"], &["y"]).graph("body", body)];
    let e = import(&model(13, "2", vec![], nodes)).unwrap_err();
    assert!(e.contains("it does not end"), "{e}");
}

/// Both scanned inputs along their last axis, the second one from its end; the stack lies along axis 1, in reverse.
#[test]
fn scans_with_axes_and_directions() {
    let body = graph(
        vec![value("s", "2"), value("a", "2"), value("b", "2")],
        vec![value("t", "2"), value("r", "2")],
        vec![node("Mul", &["a", "b"], &["ab"]), node("Add", &["s", "ab"], &["t"]), node("Sub", &["t", "c"], &["r"])],
    );
    let nodes = vec![
        node("Neg", &["x"], &["n"]),
        node("Scan", &["s0", "x", "n"], &["z", "y"])
            .graph("body", body)
            .int("num_scan_inputs", 2)
            .ints("scan_input_axes", &[-1, 1])
            .ints("scan_input_directions", &[0, 1])
            .ints("scan_output_axes", &[1])
            .ints("scan_output_directions", &[1]),
    ];
    for dims in ["2, 3", "2, k"] {
        let model = model(13, dims, vec![weight("s0", &[2]), weight("c", &[2])], nodes.clone());
        let x = [1., 2., 3., 4., 5., 6f32];
        let found = run(&model, &[floats(&[2, 3], &x)]);
        let mut expected = vec![0f32; 6];
        for row in 0..2 {
            let mut s = 1.0;
            for step in 0..3 {
                s -= x[3 * row + step] * x[3 * row + 2 - step];
                expected[3 * row + 2 - step] = s - 1.0;
            }
        }
        assert_eq!((found[0].shape.as_slice(), found[0].to_f32()), (&[2i64, 3][..], expected));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let body = || graph(vec![value("s", "2")], vec![value("s", "2")], vec![]);
    let scan = |n: i64| node("Scan", &["x"], &["y"]).graph("body", body()).int("num_scan_inputs", n);
    let e = import(&model(13, "3, 2", vec![], vec![scan(2)])).unwrap_err();
    assert!(e.contains("Scan: attribute 'num_scan_inputs' must be from 1 to 1"), "{e}");
    let nodes = vec![node("Loop", &["", "", "x"], &["y"]).graph("body", body())];
    let e = import(&model(13, "2", vec![], nodes)).unwrap_err();
    assert!(e.contains("the body has 1 inputs and 1 outputs"), "{e}");
}

#[test]
fn batched_scans_of_sequences_of_several_lengths() {
    for reverse in [false, true] {
        let body = graph(
            vec![value("s", ""), value("e", "")],
            vec![value("s2", ""), value("s2", "")],
            vec![node("Add", &["s", "e"], &["s2"])],
        );
        let scan = node("Scan", &["n", "s0", "x"], &["z", "y"])
            .graph("body", body)
            .int("num_scan_inputs", 1)
            .ints("directions", &[i64::from(reverse)]);
        let mut model = model(8, "b, t", vec![], vec![scan]);
        let graph = model.graph.as_mut().unwrap();
        graph.input.extend([value("s0", "b"), int_value("n", "c")]);
        graph.output = vec![value("z", "b"), value("y", "b, t")];
        let module = import(&model).unwrap();
        let call = |lengths: &[i64]| {
            let n = TensorBuf::from_i64(tvm_ir::dtype::DType::I64, &[lengths.len() as i64], lengths).unwrap();
            let x = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
            let args = [x, floats(&[2], &[10.0, 20.0]), n].map(Value::tensor);
            run_function(&module, "main", &args).map(|v| v.tensors()).map_err(|e| e.to_string())
        };
        let results = call(&[2, 0]).unwrap();
        assert_eq!(results[0].to_f64(), [13.0, 20.0]);
        let first = if reverse { [12.0, 13.0, 0.0] } else { [11.0, 13.0, 0.0] };
        assert_eq!(results[1].to_f64(), [&first[..], &[0.0; 3]].concat());
        assert_eq!(call(&[3, 1]).unwrap()[0].to_f64(), [16.0, 24.0]);
        for (wrong, message) in [(&[4, 1][..], "out of range"), (&[1, -1], "out of range"), (&[1], "")] {
            let error = call(wrong).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
