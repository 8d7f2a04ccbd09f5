//! `If` whose branches give values of different ranks, or cannot run, by the interpreter.

use prost::Message as _;
use tvm_ir::dtype::DType;
use tvm_ir::interp::TensorBuf;
use tvm_ir::interp::relax::{Value, run_function};
use tvm_ir::render::render_all;
use tvm_ir::span::SourceMap;

use super::super::proto::*;
use super::super::{Limits, load_bytes};
use super::loops::{bool_value, floats, graph, run, scalar};
use super::make::*;

fn untyped(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.to_owned(), r#type: None }
}

/// `outputs = If(cond) { then } else { otherwise }`, each branch nodes and the names of its outputs.
fn conditional(
    cond: &str,
    outputs: &[&str],
    then: (Vec<NodeProto>, &[&str]),
    otherwise: (Vec<NodeProto>, &[&str]),
) -> NodeProto {
    let branch =
        |(nodes, names): (Vec<NodeProto>, &[&str])| graph(vec![], names.iter().map(|n| untyped(n)).collect(), nodes);
    node("If", &[cond], outputs).graph("then_branch", branch(then)).graph("else_branch", branch(otherwise))
}

/// A model of an input `x` and truth values, whose outputs have no declared shape.
fn with_conditions(
    x: &str,
    conditions: &[&str],
    initializers: Vec<TensorProto>,
    nodes: Vec<NodeProto>,
    outputs: &[&str],
) -> ModelProto {
    let mut model = model(13, x, initializers, nodes);
    let graph = model.graph.as_mut().unwrap();
    graph.input.extend(conditions.iter().map(|c| bool_value(c)));
    graph.output = outputs.iter().map(|n| untyped(n)).collect();
    model
}

fn truth(value: bool) -> TensorBuf {
    TensorBuf::scalar_i64(DType::BOOL, value.into()).unwrap()
}

fn iota(shape: &[i64]) -> TensorBuf {
    let data: Vec<f32> = (0..shape.iter().product::<i64>()).map(|v| v as f32).collect();
    floats(shape, &data)
}

/// The outputs, or why there are none; and the warnings of the import.
fn attempt(model: &ModelProto, inputs: &[TensorBuf]) -> (Result<Vec<TensorBuf>, String>, String) {
    let mut sources = SourceMap::default();
    let loaded = load_bytes(model.encode_to_vec(), "m.onnx", &Limits::default(), &mut sources).unwrap();
    tvm_ir::relax::verify::verify_module(&loaded.module).unwrap_or_else(|e| panic!("{e}"));
    let inputs: Vec<Value> = inputs.iter().cloned().map(Value::tensor).collect();
    let found = run_function(&loaded.module, "main", &inputs);
    (found.map(|v| v.tensors()).map_err(|e| e.to_string()), render_all(&loaded.warnings, &sources))
}

/// The sum of all elements, whatever the rank, after a node that keeps it.
fn total(from: &str, to: &str) -> Vec<NodeProto> {
    let doubled = format!("{from}_twice");
    vec![node("Add", &[from, from], &[&doubled]), node("ReduceSum", &[&doubled], &[to]).int("keepdims", 0)]
}

#[test]
fn a_branch_that_cannot_run_is_an_error_when_it_is_taken() {
    let product = conditional(
        "c",
        &["y", "z"],
        (vec![node("Relu", &["x"], &["a"]), node("Neg", &["x"], &["b"])], &["a", "b"]),
        (vec![node("MatMul", &["x", "w"], &["d"]).named("wrong"), node("Neg", &["d"], &["e"])], &["d", "e"]),
    );
    let model = with_conditions("n, 3", &["c"], vec![weight("w", &[4, 5])], vec![product], &["y", "z"]);
    let (taken, warnings) = attempt(&model, &[iota(&[2, 3]), truth(true)]);
    let taken = taken.unwrap();
    assert_eq!(taken[0].shape, [2, 3]);
    assert_eq!(taken[1].to_f32(), [0., -1., -2., -3., -4., -5.]);
    assert!(warnings.starts_with("warning: else_branch of an If cannot run: MatMul: "), "{warnings}");
    assert!(warnings.contains("graph/node[0] (If)/else_branch/node[0] \"wrong\" (MatMul)"), "{warnings}");
    let (wrong, _) = attempt(&model, &[iota(&[2, 3]), truth(false)]);
    let wrong = wrong.unwrap_err();
    let wanted = "graph/node[0] (If): else_branch cannot run: graph/node[0] (If)/else_branch/node[0] \"wrong\" (MatMul): MatMul: ";
    assert!(wrong.contains(wanted), "{wrong}");
}

#[test]
fn a_list_that_a_branch_cannot_make() {
    let lists = conditional(
        "c",
        &["s"],
        (vec![node("SequenceConstruct", &["x", "x"], &["a"])], &["a"]),
        (vec![node("MatMul", &["x", "w"], &["d"]), node("SequenceConstruct", &["d"], &["e"])], &["e"]),
    );
    let at = node("SequenceAt", &["s", "one"], &["y"]);
    let initializers = vec![weight("w", &[4, 5]), scalar("one", 1)];
    let model = with_conditions("2, 3", &["c"], initializers, vec![lists, at], &["y"]);
    let (taken, _) = attempt(&model, &[iota(&[2, 3]), truth(true)]);
    assert_eq!(taken.unwrap()[0].to_f32(), iota(&[2, 3]).to_f32());
    let (wrong, _) = attempt(&model, &[iota(&[2, 3]), truth(false)]);
    assert!(wrong.unwrap_err().contains("else_branch cannot run"));
}

#[test]
fn what_no_branch_can_do_is_an_error() {
    let wrong = |name: &str| vec![node("MatMul", &["x", "w"], &[name])];
    let both = conditional("c", &["y"], (wrong("a"), &["a"]), (wrong("b"), &["b"]));
    let model = with_conditions("2, 3", &["c"], vec![weight("w", &[4, 5])], vec![both], &["y"]);
    let error = import(&model).unwrap_err();
    assert!(error.contains("(If)/then_branch/node[0] (MatMul)"), "{error}");
    assert!(error.contains("(If)/else_branch/node[0] (MatMul)"), "{error}");
    // What cannot be imported at all is an error in a branch too.
    let relu = || (vec![node("Relu", &["x"], &["a"])], &["a"][..]);
    for (other, wanted) in [
        (node("Nonsense", &["x"], &["b"]), "an operator that is not supported: Nonsense"),
        (node("Relu", &["x"], &["b"]).int("slope", 1), "attribute 'slope'"),
    ] {
        let model = with_conditions(
            "1, 1, n",
            &["c"],
            vec![],
            vec![conditional("c", &["y"], relu(), (vec![other], &["b"]))],
            &["y"],
        );
        let error = import(&model).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
    // What cannot be imported although it may be right: nothing is known of the rank.
    let other = node("Unsqueeze", &["x", "zero"], &["b"]);
    let nodes = vec![conditional("c", &["y"], relu(), (vec![other], &["b"]))];
    let mut model = with_conditions("2", &["c"], vec![list("zero", &[0])], nodes, &["y"]);
    if let Some(TypeProto { value: Some(TypeValue::Tensor(ty)) }) = &mut model.graph.as_mut().unwrap().input[0].r#type {
        ty.shape = None;
    }
    let error = import(&model).unwrap_err();
    assert!(error.contains("the rank of data must be known when the model is imported"), "{error}");
}

/// What follows is converted in each branch, and is told of once.
#[test]
fn what_is_wrong_after_branches_is_said_once() {
    for (wrong, wanted) in [
        (node("Nonsense", &["p"], &["y"]), "1 node has an operator that is not supported: Nonsense"),
        (node("Relu", &["p"], &["y"]).int("slope", 1), "attribute 'slope'"),
        (node("MatMul", &["x", "w"], &["y"]), "MatMul"),
    ] {
        let nodes = vec![flattened("c", &["p", "q"]), node("Neg", &["q"], &["r"]), wrong];
        let initializers = rows().into_iter().chain([weight("w", &[7, 7])]).collect();
        let error = import(&with_conditions("n, 3", &["c"], initializers, nodes, &["y", "r"])).unwrap_err();
        assert!(error.contains(wanted) && error.lines().count() == 1, "{error}");
    }
    // Where it fits in one branch alone, that is a warning; here it fits in none.
    let nodes = vec![flattened("c", &["p", "q"]), node("Conv", &["p", "w"], &["y"])];
    let initializers = rows().into_iter().chain([weight("w", &[2, 2, 1, 1, 1, 1, 1])]).collect();
    let error = import(&with_conditions("n, 3", &["c"], initializers, nodes, &["y"])).unwrap_err();
    assert!(error.lines().all(|line| line.starts_with("graph/node[1] (Conv): Conv: ")), "{error}");
}

/// `(x, x without its first axis)` or `(x in one row, x)`.
fn flattened(cond: &str, outputs: &[&str]) -> NodeProto {
    conditional(
        cond,
        outputs,
        (vec![node("Identity", &["x"], &["a"]), node("Gather", &["x", "zero"], &["b"])], &["a", "b"]),
        (vec![node("Reshape", &["x", "row"], &["d"]), node("Identity", &["x"], &["e"])], &["d", "e"]),
    )
}

fn rows() -> Vec<TensorProto> {
    vec![list("row", &[-1]), scalar("zero", 0)]
}

#[test]
fn what_follows_values_of_different_ranks() {
    let mut nodes = vec![flattened("c", &["p", "q"]), node("Neg", &["x"], &["m"])];
    nodes.push(node("Add", &["p", "one"], &["r"]));
    nodes.extend(total("r", "y"));
    nodes.push(node("Shape", &["q"], &["s"]));
    nodes.push(node("Size", &["s"], &["z"]));
    nodes.push(node("ReduceMax", &["m"], &["most"]).int("keepdims", 0));
    nodes.push(node("Mul", &["most", "y"], &["u"]));
    let initializers = rows().into_iter().chain([weight("one", &[1])]).collect();
    let model = with_conditions("n, 3", &["c"], initializers, nodes, &["y", "z", "u"]);
    for (taken, rank) in [(true, 1.), (false, 2.)] {
        let found = run(&model, &[iota(&[2, 3]), truth(taken)]);
        let found: Vec<f64> = found.iter().map(|t| t.to_f64()[0]).collect();
        assert_eq!(found, [42., rank, 0.], "{taken}");
    }
}

#[test]
fn outputs_of_different_ranks() {
    let model = with_conditions("n, 3", &["c"], rows(), vec![flattened("c", &["y", "z"])], &["y", "z"]);
    let shapes = |taken| {
        let found = run(&model, &[iota(&[2, 3]), truth(taken)]);
        found.iter().map(|t| t.shape.clone()).collect::<Vec<_>>()
    };
    assert_eq!(shapes(true), [vec![2, 3], vec![3]]);
    assert_eq!(shapes(false), [vec![6], vec![2, 3]]);
}

#[test]
fn conditionals_in_the_branches_of_others() {
    // The first one ends in another one, whose values differ in rank; a third one follows that decides by the same
    // condition, and one that decides by another.
    let inner = (vec![flattened("d", &["p", "q"])], &["p", "q"][..]);
    let cube = (vec![node("Unsqueeze", &["x", "axis"], &["g"]), node("Neg", &["x"], &["h"])], &["g", "h"][..]);
    let outer = conditional("c", &["t", "u"], inner, cube);
    let twice = (vec![node("Add", &["t", "t"], &["i"])], &["i"][..]);
    let negated = (vec![node("Neg", &["t"], &["j"])], &["j"][..]);
    let same = conditional("c", &["v"], twice, negated);
    let plain = conditional(
        "e",
        &["w"],
        (vec![node("Abs", &["v"], &["k"])], &["k"]),
        (vec![node("Identity", &["v"], &["l"])], &["l"]),
    );
    let mut nodes = vec![outer, same, plain];
    nodes.extend(total("w", "y"));
    nodes.push(node("ReduceSum", &["u"], &["z"]).int("keepdims", 0));
    let initializers = rows().into_iter().chain([list("axis", &[0])]).collect();
    let model = with_conditions("n, 3", &["c", "d", "e"], initializers, nodes, &["y", "z"]);
    for case in 0..8 {
        let [c, d, e] = [1, 2, 4].map(|bit| case & bit != 0);
        let found = run(&model, &[iota(&[2, 3]), truth(c), truth(d), truth(e)]);
        let y = if c {
            60.
        } else if e {
            30.
        } else {
            -30.
        };
        let z = match (c, d) {
            (true, true) => 3.,
            (true, false) => 15.,
            _ => -15.,
        };
        assert_eq!((found[0].to_f32()[0], found[1].to_f32()[0]), (y, z), "{c} {d} {e}");
    }
}

#[test]
fn in_the_body_of_a_loop() {
    // acc += sum(x, in one shape or another); the condition changes from iteration to iteration.
    let body = graph(
        vec![int_value("i", ""), bool_value("on"), value("acc", "")],
        vec![bool_value("on2"), value("acc2", "")],
        [
            vec![node("Identity", &["on"], &["on2"]), node("Less", &["i", "one"], &["first"])],
            vec![flattened("first", &["p", "q"])],
            total("p", "s"),
            vec![node("ReduceSum", &["q"], &["t"]).int("keepdims", 0)],
            vec![node("Add", &["s", "t"], &["u"]), node("Add", &["acc", "u"], &["acc2"])],
        ]
        .concat(),
    );
    let nodes = vec![node("Loop", &["three", "", "start"], &["y"]).graph("body", body)];
    let start = TensorProto { dims: vec![], ..weight("start", &[1]) };
    let initializers = rows().into_iter().chain([scalar("one", 1), scalar("three", 3), start]).collect();
    let model = with_conditions("n, 3", &[], initializers, nodes, &["y"]);
    let found = run(&model, &[iota(&[2, 3])]);
    // 2 * 15 + 3, and twice 2 * 15 + 15.
    assert_eq!(found[0].to_f32(), [1. + 33. + 45. + 45.]);
}

#[test]
fn shapes_decide() {
    // No extent is below 0, so that one is known to differ from -1, and n + 1 from 0.
    let compare = |with: &str| {
        vec![
            node("Shape", &["x"], &["s"]),
            node("Gather", &["s", "zero"], &["n"]),
            node("Equal", &["n", with], &["c"]),
            flattened("c", &["y", "z"]),
        ]
    };
    let initializers = || rows().into_iter().chain([scalar("minus", -1)]).collect();
    let model = with_conditions("n, 3", &[], initializers(), compare("minus"), &["y"]);
    assert_eq!(result(&model), "a tensor (n * 3,) float32");
    let found = run(&model, &[iota(&[2, 3])]);
    assert_eq!(found[0].shape, [6]);
}

#[test]
fn too_many_combinations() {
    let mut nodes = Vec::new();
    let names: Vec<String> = (0..7).map(|k| format!("c{k}")).collect();
    let mut last = "x".to_owned();
    for (k, cond) in names.iter().enumerate() {
        let [next, more, same] = ["v", "a", "b"].map(|name| format!("{name}{k}"));
        let then = vec![node("Unsqueeze", &[&last, "zero_axis"], &[&more])];
        let otherwise = vec![node("Identity", &[&last], &[&same])];
        nodes.push(conditional(cond, &[&next], (then, &[&more]), (otherwise, &[&same])));
        last = next;
    }
    nodes.push(node("Neg", &[&last], &["y"]));
    let conditions: Vec<&str> = names.iter().map(String::as_str).collect();
    let model = with_conditions("2", &conditions, vec![list("zero_axis", &[0])], nodes, &["y"]);
    let error = import(&model).unwrap_err();
    assert!(error.contains("more than 64 combinations"), "{error}");
}
