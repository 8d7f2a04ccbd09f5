//! Sequences and optionals, run by the interpreter.

use tvm_ir::interp::TensorBuf;

use super::super::proto::*;
use super::loops::{bool_value, floats, graph, run, scalar};
use super::make::*;

fn no_lists(model: &ModelProto) -> bool {
    !format!("{:?}", import(model).unwrap_or_else(|e| panic!("{e}"))).contains("list.")
}

fn with_outputs(mut model: ModelProto, outputs: &[&str]) -> ModelProto {
    let graph = model.graph.as_mut().unwrap();
    graph.output = outputs.iter().map(|o| value(o, "")).collect();
    graph.output.iter_mut().for_each(|o| o.r#type = None);
    model
}

#[test]
fn lists_that_are_known_leave_no_trace() {
    let nodes = vec![
        node("Neg", &["x"], &["n"]),
        node("SequenceConstruct", &["x", "n"], &["s"]),
        node("Add", &["x", "x"], &["d"]),
        node("SequenceInsert", &["s", "d", "first"], &["t"]),
        node("SequenceErase", &["t", "last"], &["u"]),
        node("SequenceAt", &["u", "last"], &["a"]),
        node("SequenceLength", &["t"], &["len"]),
        node("ConcatFromSequence", &["t"], &["c"]).int("axis", 0).int("new_axis", 1),
        node("Optional", &["u"], &["o"]),
        node("OptionalHasElement", &["o"], &["has"]),
        node("OptionalGetElement", &["o"], &["v"]),
        node("ConcatFromSequence", &["v"], &["y"]).int("axis", -1),
    ];
    let model = model(18, "2", vec![scalar("first", 0), scalar("last", -1)], nodes);
    let model = with_outputs(model, &["y", "a", "len", "c", "has"]);
    assert!(no_lists(&model));
    let found = run(&model, &[floats(&[2], &[1., 2.])]);
    assert_eq!(found[0].to_f32(), [2., 4., 1., 2.]);
    assert_eq!(found[1].to_f32(), [1., 2.]);
    assert_eq!((found[2].get_i64(0), found[4].get_i64(0)), (3, 1));
    assert_eq!((found[3].shape.as_slice(), found[3].to_f32()), (&[3i64, 2][..], vec![2., 4., 1., 2., -1., -2.]));
}

/// What exporters make of a list that a loop appends to.
#[test]
fn loops_append_to_lists() {
    let body = graph(
        vec![int_value("it", ""), bool_value("on"), ValueInfoProto { name: "l".into(), r#type: None }, value("a", "2")],
        vec![bool_value("on"), ValueInfoProto { name: "m".into(), r#type: None }, value("b", "2")],
        vec![node("SequenceInsert", &["l", "a"], &["m"]), node("Add", &["a", "x"], &["b"])],
    );
    let nodes = vec![
        node("SequenceEmpty", &[], &["e"]),
        node("Loop", &["m", "", "e", "x"], &["s", "z"]).graph("body", body),
        node("ConcatFromSequence", &["s"], &["y"]).int("axis", 0),
        node("SequenceAt", &["s", "p"], &["at"]),
        node("SequenceLength", &["s"], &["len"]),
    ];
    let mut model = model(13, "2", vec![], nodes);
    model.graph.as_mut().unwrap().input.extend([int_value("m", ""), int_value("p", "")]);
    let model = with_outputs(model, &["y", "at", "len"]);
    let int = |v| TensorBuf::scalar_i64(tvm_ir::dtype::DType::I64, v).unwrap();
    for trips in [1i64, 2, 7] {
        let found = run(&model, &[floats(&[2], &[1., 2.]), int(trips), int(-1)]);
        let expected: Vec<f32> = (1..=trips).flat_map(|i| [i as f32, 2. * i as f32]).collect();
        assert_eq!(found[0].to_f32(), expected);
        assert_eq!(found[1].to_f32(), expected[expected.len() - 2..]);
        assert_eq!(found[2].get_i64(0), trips);
    }
}

#[test]
fn parts_whose_number_is_not_known_are_mapped() {
    let body = graph(vec![value("a", "p, 2")], vec![value("b", "p, 2")], vec![node("Neg", &["a"], &["b"])]);
    let nodes = vec![
        node("SplitToSequence", &["x", "two"], &["s"]).int("axis", 0),
        node("SequenceMap", &["s"], &["t"]).graph("body", body),
        node("ConcatFromSequence", &["t"], &["y"]).int("axis", 0),
        node("SequenceLength", &["t"], &["len"]),
    ];
    let model = with_outputs(model(17, "k, 2", vec![scalar("two", 2)], nodes), &["y", "len"]);
    assert!(!no_lists(&model));
    for rows in [1i64, 2, 5] {
        let x: Vec<f32> = (0..2 * rows).map(|v| v as f32).collect();
        let found = run(&model, &[floats(&[rows, 2], &x)]);
        assert_eq!(found[0].to_f32(), x.iter().map(|v| -v).collect::<Vec<_>>());
        assert_eq!(found[1].get_i64(0), (rows + 1) / 2);
    }
}

#[test]
fn branches_give_lists() {
    let branch = |nodes: Vec<NodeProto>| graph(vec![], vec![ValueInfoProto { name: "r".into(), r#type: None }], nodes);
    let one = branch(vec![node("SequenceConstruct", &["x"], &["r"])]);
    let two = branch(vec![node("Neg", &["x"], &["n"]), node("SequenceConstruct", &["x", "n"], &["r"])]);
    let nodes = vec![
        node("If", &["c"], &["s"]).graph("then_branch", one).graph("else_branch", two),
        node("ConcatFromSequence", &["s"], &["y"]).int("axis", 0),
    ];
    let mut model = model(13, "2", vec![], nodes);
    model.graph.as_mut().unwrap().input.push(bool_value("c"));
    let model = with_outputs(model, &["y"]);
    for (cond, expected) in [(1, vec![1., 2.]), (0, vec![1., 2., -1., -2.])] {
        let cond = TensorBuf::scalar_i64(tvm_ir::dtype::DType::BOOL, cond).unwrap();
        assert_eq!(run(&model, &[floats(&[2], &[1., 2.]), cond])[0].to_f32(), expected);
    }
}

#[test]
fn what_a_list_does_not_have_is_refused() {
    let error = |nodes: Vec<NodeProto>| {
        import(&model(13, "2", vec![scalar("three", 3), list("bad", &[3])], nodes)).unwrap_err()
    };
    let construct = node("SequenceConstruct", &["x"], &["s"]);
    let e = error(vec![construct.clone(), node("SequenceAt", &["s", "three"], &["y"])]);
    assert!(e.contains("SequenceAt: there is no position 3 in a list of 1"), "{e}");
    let e = error(vec![node("SequenceEmpty", &[], &["s"]), node("SequenceErase", &["s"], &["y"])]);
    assert!(e.contains("SequenceErase: the sequence has no items"), "{e}");
    let e = error(vec![node("SequenceConstruct", &["x", "three"], &["y"])]);
    assert!(e.contains("a list holds tensors of float32 and of int64"), "{e}");
    let e = error(vec![node("SplitToSequence", &["x", "bad"], &["y"])]);
    assert!(e.contains("parts of [3] do not make up an axis of 2"), "{e}");
    let e = error(vec![node("SequenceLength", &["x"], &["y"])]);
    assert!(e.contains("the input is not a sequence"), "{e}");
}
