//! How nodes become bindings, and what is refused.

use tvm_ir::relax::Expr;

use super::super::proto::*;
use super::make::*;

#[test]
fn bindings_come_in_the_order_of_use() {
    // As upstream's importer: what nothing uses leaves no binding.
    let nodes = vec![
        node("Relu", &["x"], &["a"]),
        node("Add", &["x", "x"], &["dead"]),
        node("Mul", &["x", "x"], &["b"]),
        node("Sub", &["b", "a"], &["y"]),
    ];
    assert_eq!(
        bindings(&model(13, "2, 3", vec![], nodes)),
        ["lv = multiply(x, x)", "lv1 = nn.relu(x)", "gv = subtract(lv, lv1)"]
    );
}

#[test]
fn outputs() {
    let mut two = model(13, "2", vec![], vec![node("Relu", &["x"], &["y"]), node("Identity", &["x"], &["z"])]);
    let graph = two.graph.as_mut().unwrap();
    graph.output.push(value("z", "2"));
    graph.output.push(value("y", "2"));
    assert_eq!(bindings(&two), ["lv = nn.relu(x)", "gv = (lv, x, lv)"]);
    assert_eq!(bindings(&model(13, "2", vec![], vec![node("Identity", &["x"], &["y"])])), ["gv = x"]);
    let shared = vec![node("Relu", &["x"], &["y"]), node("Add", &["y", "y"], &["z"])];
    assert_eq!(bindings(&model(13, "2", vec![], shared)), ["lv = nn.relu(x)", "gv = lv"]);
}

#[test]
fn symbolic_dimensions() {
    let flatten = model(13, "batch, 2*batch, 3, ?", vec![], vec![node("Flatten", &["x"], &["y"]).int("axis", 2)]);
    assert_eq!(result(&flatten), "a tensor (batch * (2 * batch), 3 * dim_0) float32");
    let reshape = |dims: &str, shape: &[i64]| {
        let nodes = vec![node("Reshape", &["x", "s"], &["y"])];
        result(&model(13, dims, vec![list("s", shape)], nodes))
    };
    assert_eq!(reshape("n, 32, 7, 7", &[0, -1]), "a tensor (n, 1568) float32");
    assert_eq!(reshape("n, 4", &[-1, 2]), "a tensor (n * 2, 2) float32");
    assert_eq!(reshape("n, m", &[-1]), "a tensor (n * m,) float32");
}

#[test]
fn shapes_are_computed_at_import() {
    // Reshape(x, concat(shape(x)[0:1], [-1])), as exporters write a flatten.
    let nodes = vec![
        node("Shape", &["x"], &["s"]).int("end", 1),
        node("Concat", &["s", "rest"], &["t"]).int("axis", 0),
        node("Reshape", &["x", "t"], &["y"]),
    ];
    let model = model(15, "n, 4, 5", vec![list("rest", &[-1])], nodes);
    assert_eq!(bindings(&model), ["gv = reshape(x, [n, 20])"]);
}

#[test]
fn gemm_with_everything() {
    let gemm = node("Gemm", &["x", "w", "c"], &["y"]).int("transA", 1).float("alpha", 0.5).float("beta", 2.0);
    let model = model(13, "4, 3", vec![weight("w", &[4, 5]), weight("c", &[5])], vec![gemm]);
    assert_eq!(
        bindings(&model),
        [
            "lv = multiply(x, float32[])",
            "lv1 = permute_dims(lv)",
            "lv2 = matmul(lv1, float32[4, 5])",
            "lv3 = multiply(float32[5], float32[])",
            "gv = add(lv2, lv3)"
        ]
    );
}

#[test]
fn functions_are_inlined() {
    let function = FunctionProto {
        name: "Scaled".into(),
        domain: "local".into(),
        input: vec!["a".into(), "b".into()],
        output: vec!["c".into()],
        attribute: vec!["alpha".into()],
        node: vec![
            node("Gemm", &["a", "b"], &["x"]).reference("alpha", 1, "alpha").reference("transB", 2, "absent"),
            node("Relu", &["x"], &["c"]),
        ],
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: 13 }],
        ..Default::default()
    };
    let with = |call: NodeProto| {
        let mut model = model(13, "2, 2", vec![weight("w", &[2, 2])], vec![call]);
        model.functions = vec![function.clone()];
        model
    };
    let call = node("Scaled", &["x", "w"], &["y"]).domain("local").float("alpha", 3.0);
    assert_eq!(
        bindings(&with(call.clone())),
        ["lv = multiply(x, float32[])", "lv1 = matmul(lv, float32[2, 2])", "gv = nn.relu(lv1)"]
    );
    let error = import(&with(call.int("gamma", 1))).unwrap_err();
    assert!(
        error.contains("graph/node[0] (local:Scaled): local:Scaled: the function has no attribute 'gamma'"),
        "{error}"
    );
    let mut circle = with(node("Scaled", &["x", "w"], &["y"]).domain("local"));
    circle.functions[0].node = vec![node("Scaled", &["a", "b"], &["c"]).domain("local")];
    let error = import(&circle).unwrap_err();
    assert!(error.contains("deeper than 32 levels"), "{error}");
}

fn branch(nodes: Vec<NodeProto>, output: &str) -> GraphProto {
    GraphProto { node: nodes, output: vec![value(output, "")], ..Default::default() }
}

fn with_branches(mut node: NodeProto, then: GraphProto, otherwise: GraphProto) -> NodeProto {
    for (name, graph) in [("then_branch", then), ("else_branch", otherwise)] {
        let g = Some(Box::new(graph));
        node.attribute.push(AttributeProto { name: name.into(), kind: 5, g, ..Default::default() });
    }
    node
}

#[test]
fn conditionals() {
    let nodes = vec![
        node("Relu", &["x"], &["a"]),
        node("Greater", &["x", "a"], &["c"]),
        with_branches(
            node("If", &["c"], &["b"]),
            branch(vec![node("Add", &["a", "x"], &["t"])], "t"),
            branch(vec![node("Foo", &["a"], &["e"])], "e"),
        ),
        node("Relu", &["b"], &["y"]),
    ];
    let mut whole = model(13, "1", vec![], nodes);
    let error = import(&whole).unwrap_err();
    assert!(error.starts_with("graph/node[2] (If)/else_branch/node[0] (Foo): 1 node has"), "{error}");
    let graph = whole.graph.as_mut().unwrap();
    let other = branch(vec![node("Mul", &["a", "w"], &["e"])], "e");
    let other = GraphProto { initializer: vec![weight("w", &[1])], ..other };
    graph.node[2].attribute[1].g = Some(Box::new(other));
    let module = import(&whole).unwrap();
    let blocks = &main(&module).body.blocks;
    let values: Vec<&Expr> = blocks.iter().flat_map(|b| b.bindings().iter().map(|b| &b.value)).collect();
    assert_eq!(values.len(), 5, "{values:?}");
    let Expr::If(conditional) = values[3] else { panic!("{values:?}") };
    assert_eq!(conditional.then.blocks.len(), 1);
    assert_eq!(result(&whole), "a tensor (1,) float32");
}

#[test]
fn a_constant_condition_takes_its_branch() {
    let conditional = with_branches(
        node("If", &["c"], &["y"]),
        branch(vec![node("Foo", &["x"], &["t"])], "t"),
        branch(vec![node("Relu", &["x"], &["e"])], "e"),
    );
    let no = TensorProto { name: "c".into(), data_type: 9, int32_data: vec![0], ..Default::default() };
    assert_eq!(bindings(&model(13, "1", vec![no], vec![conditional])), ["gv = nn.relu(x)"]);
}

#[test]
fn all_unsupported_operators_at_once() {
    let nodes =
        vec![node("Foo", &["x"], &["a"]).domain("com.acme"), node("Relu", &["a"], &["b"]), node("Bar", &["b"], &["y"])];
    let error = import(&model(13, "2, n", vec![], nodes)).unwrap_err();
    assert_eq!(
        error,
        "graph/node[0] (com.acme:Foo): 2 nodes have an operator that is not supported: Bar, com.acme:Foo \
         | graph/node[0] (com.acme:Foo): the model imports no operator set 'com.acme', inputs (float32[2, n]) \
         | graph/node[2] (Bar): in operator set 13, inputs (not known) \
         | export the model with standard operators, define these as functions of the model, or say in the build script what they mean (Build::onnx_op)"
    );
}

#[test]
fn declared_types_let_the_check_go_on() {
    let nodes = vec![node("Foo", &["x"], &["a"]), node("Add", &["a", "w"], &["y"])];
    let mut model = model(13, "2", vec![weight("w", &[3])], nodes);
    model.graph.as_mut().unwrap().value_info = vec![value("a", "2")];
    let error = import(&model).unwrap_err();
    assert!(error.contains("graph/node[1] (Add): Add: ") && error.contains("not supported: Foo"), "{error}");
}

#[test]
fn what_a_converter_does_not_read_is_an_error() {
    let error = import(&model(13, "2", vec![], vec![node("Relu", &["x", "x"], &["y"]).int("alpha", 1)])).unwrap_err();
    assert_eq!(
        error,
        "graph/node[0] (Relu): Relu: attribute 'alpha' is not supported on this operator | inputs (float32[2], float32[2]); operator set 13\n\
         graph/node[0] (Relu): Relu: input 1 ('x') is not supported on this operator | inputs (float32[2], float32[2]); operator set 13"
    );
}

#[test]
fn refusals_name_the_node_and_the_numbers() {
    let one = |opset, x: &str, inits, n: NodeProto| import(&model(opset, x, inits, vec![n])).unwrap_err();
    for (error, words) in [
        (one(13, "2", vec![], node("Gemm", &["x"], &["y"])), "input 1 (B) is missing"),
        (one(13, "2", vec![], node("Gemm", &["x", "x"], &["y"])), "input A must be a matrix, and its rank is 1"),
        (one(13, "2", vec![], node("Concat", &["x"], &["y"])), "attribute 'axis' is missing"),
        (one(13, "2", vec![], node("Relu", &["x"], &["y", "z"])), "output 1 is not supported"),
        (one(13, "2, 3", vec![weight("w", &[2])], node("Add", &["x", "w"], &["y"])), "graph/node[0] (Add): Add: "),
        (
            one(13, "1, 3, 4, 4", vec![weight("w", &[2, 2, 1, 1])], node("Conv", &["x", "w"], &["y"])),
            "X has 3 channels, and W takes 2 of each of 1 group(s)",
        ),
        (
            one(
                13,
                "1, 2, 4, 4",
                vec![weight("w", &[2, 2, 1, 1])],
                node("Conv", &["x", "w"], &["y"]).ints("kernel_shape", &[3, 3]),
            ),
            "'kernel_shape' is [3, 3], and the weights have [1, 1]",
        ),
        (
            one(
                13,
                "1, 2, n, 4",
                vec![],
                node("MaxPool", &["x"], &["y", "i"])
                    .string("auto_pad", "SAME_UPPER")
                    .ints("kernel_shape", &[2, 2])
                    .ints("strides", &[2, 2]),
            ),
            "varying extent n is not supported",
        ),
        (
            one(13, "1, 2, n, 4", vec![], node("MaxPool", &["x"], &["y", "i"]).ints("kernel_shape", &[2, 2])),
            "the indices of MaxPool need fixed spatial extents",
        ),
        (
            one(14, "0, 2", vec![list("s", &[0, -1])], node("Reshape", &["x", "s"], &["y"]).int("allowzero", 1)),
            "0 and -1",
        ),
        (one(13, "2, 3", vec![list("s", &[4, -1])], node("Reshape", &["x", "s"], &["y"])), "does not fill shape"),
        (one(13, "2, 3", vec![list("s", &[-1, -1])], node("Reshape", &["x", "s"], &["y"])), "more than one -1"),
        (one(13, "2, 3", vec![], node("Transpose", &["x"], &["y"]).ints("perm", &[0, 0])), "axis 0 is given twice"),
        (one(13, "2, 3", vec![], node("Flatten", &["x"], &["y"]).int("axis", 3)), "axis 3 is out of range for rank 2"),
        (one(13, "1099511627776, 2", vec![], node("Relu", &["x"], &["y"])), "more elements than the limit of"),
        (
            one(13, "1", vec![list("s", &[1 << 40, 1 << 40])], node("Expand", &["x", "s"], &["y"])),
            "shape [1099511627776, 1099511627776] has more elements than the limit",
        ),
        (one(13, "1", vec![list("s", &[1; 65])], node("Reshape", &["x", "s"], &["y"])), "has 65 dimensions"),
        (one(13, "1", vec![list("s", &[7; 100])], node("Unsqueeze", &["x", "s"], &["y"])), "has 101 dimensions"),
        (one(13, "2", vec![weight("w", &[1; 70])], node("Add", &["x", "w"], &["y"])), "has 70 dimensions"),
        (one(29, "2, 3", vec![], node("Relu", &["x"], &["y"])), "operator set 29 is newer than"),
        (one(6, "2, 3", vec![], node("Gemm", &["x", "x"], &["y"])), "it is supported from 7 on"),
    ] {
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn many_faults_are_counted_and_long_names_cut() {
    let bad = node("Relu", &["x", "x"], &[]);
    let mut nodes = vec![bad; 300];
    nodes.push(node("Relu", &["x"], &["y"]));
    let error = import(&model(13, "2", vec![], nodes)).unwrap_err();
    assert_eq!(error.lines().count(), 101);
    assert!(error.ends_with("nowhere: there are 200 more errors, which are not shown | "), "{error}");
    let mut long = node("Relu", &["x"], &["y"]).int("alpha", 1);
    long.name = "é".repeat(1000);
    let error = import(&model(13, "2", vec![], vec![long])).unwrap_err();
    assert!(error.starts_with(&format!("graph/node[0] \"{}…\" (Relu): ", "é".repeat(80))), "{error}");
    assert!(error.len() < 600);
}
