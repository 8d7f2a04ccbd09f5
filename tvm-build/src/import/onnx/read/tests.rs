use tvm_ir::span::SourceKind;

use super::*;

/// Reads a model; errors as `place: message`.
fn read_model(proto: &ModelProto) -> Result<Model, Vec<String>> {
    let mut sources = SourceMap::default();
    read_bytes(proto.encode_to_vec().into(), "m.onnx", &Limits::default(), &mut sources).map_err(|diags| {
        let place = |span: Span| match &sources.get(span.source).unwrap().kind {
            SourceKind::Nodes(paths) => paths[span.start as usize].clone(),
            other => panic!("{other:?}"),
        };
        diags.0.iter().map(|d| format!("{}: {}", place(d.span()), d.message)).collect()
    })
}

fn check(graph: GraphProto) -> Result<Model, Vec<String>> {
    read_model(&ModelProto { ir_version: 8, graph: Some(graph), ..Default::default() })
}

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: op.to_owned(),
        input: inputs.iter().map(|&s| s.to_owned()).collect(),
        output: outputs.iter().map(|&s| s.to_owned()).collect(),
        ..Default::default()
    }
}

fn value(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.to_owned(), r#type: None }
}

fn graph(nodes: Vec<NodeProto>) -> GraphProto {
    GraphProto { node: nodes, input: vec![value("x")], output: vec![value("y")], ..Default::default() }
}

fn with_graph(mut node: NodeProto, name: &str, inner: GraphProto) -> NodeProto {
    let attribute = AttributeProto { name: name.into(), kind: 5, g: Some(Box::new(inner)), ..Default::default() };
    node.attribute.push(attribute);
    node
}

#[test]
fn keeps_an_order_and_makes_one() {
    let sorted = check(graph(vec![node("A", &["x"], &["a"]), node("B", &["a", ""], &["y", ""])])).unwrap();
    assert_eq!(sorted.graph.nodes[0].op.op_type, "A");
    let unsorted = check(graph(vec![node("C", &["b"], &["y"]), node("B", &["a"], &["b"]), node("A", &["x"], &["a"])]));
    let names: Vec<String> = unsorted.unwrap().graph.nodes.iter().map(|n| n.path.clone()).collect();
    assert_eq!(names, ["graph/node[2] (A)", "graph/node[1] (B)", "graph/node[0] (C)"]);
}

#[test]
fn refuses_cycles_duplicates_and_undefined_names() {
    let cycle =
        check(graph(vec![node("A", &["x", "b"], &["a"]), node("B", &["a"], &["b"]), node("C", &["b"], &["y"])]));
    assert_eq!(
        cycle.unwrap_err(),
        ["graph/node[0] (A): the graph is not topologically sorted and has a cycle through 'b', 'a'"]
    );
    let own = check(graph(vec![node("A", &["y"], &["y"])]));
    assert!(own.unwrap_err()[0].contains("cycle through 'y'"));
    let twice = check(graph(vec![node("A", &["x"], &["y"]), node("B", &["x"], &["y"])]));
    assert_eq!(twice.unwrap_err(), ["graph: value 'y' has two producers: graph/node[0] (A), and graph/node[1] (B)"]);
    let shadow = check(graph(vec![node("A", &[], &["x", "y"])]));
    assert!(shadow.unwrap_err()[0].contains("value 'x' has two producers: an input of the graph, and"));
    let undefined = check(graph(vec![node("A", &["x", "nowhere"], &["z"])])).unwrap_err();
    assert_eq!(
        undefined,
        [
            "graph/node[0] (A): input 1 is 'nowhere', which nothing defines",
            "graph: output 'y' is defined by no node, input or initializer"
        ]
    );
}

#[test]
fn nested_graphs_capture_names() {
    let inner =
        GraphProto { node: vec![node("B", &["late", "x"], &["z"])], output: vec![value("z")], ..Default::default() };
    // The nested graph uses `late`, so the node that defines it goes first.
    let nodes =
        vec![with_graph(node("If", &["x"], &["y"]), "then_branch", inner.clone()), node("A", &["x"], &["late"])];
    let model = check(graph(nodes)).unwrap();
    assert_eq!(model.graph.nodes[0].op.op_type, "A");
    let Value::Graph(then) = &model.graph.nodes[1].attributes[0].value else { panic!() };
    assert_eq!(then.captures.iter().collect::<Vec<_>>(), ["late", "x"]);
    assert_eq!(then.nodes[0].path, "graph/node[0] (If)/then_branch/node[0] (B)");
    let error = check(graph(vec![with_graph(node("If", &["x"], &["y"]), "then_branch", inner)])).unwrap_err();
    assert_eq!(error, ["graph/node[0] (If)/then_branch/node[0] (B): input 0 is 'late', which nothing defines"]);
}

#[test]
fn reads_attributes_of_every_kind() {
    let attribute = |kind: i32| AttributeProto { name: format!("a{kind}"), kind, ..Default::default() };
    let scalar = TensorProto { data_type: 1, float_data: vec![1.5].into(), ..Default::default() };
    let ty = TypeProto { value: Some(TypeValue::Tensor(TensorTypeProto { elem_type: 1, shape: None })) };
    let mut with = node("A", &["x"], &["y"]);
    with.attribute = vec![
        AttributeProto { f: Some(0.5), ..attribute(1) },
        AttributeProto { i: Some(-3), ..attribute(2) },
        AttributeProto { s: Some("text".into()), ..attribute(3) },
        AttributeProto { t: Some(Box::new(scalar.clone())), ..attribute(4) },
        AttributeProto { g: Some(Box::default()), ..attribute(5) },
        AttributeProto { floats: vec![1.0], ..attribute(6) },
        AttributeProto { ints: vec![1, 2], ..attribute(7) },
        AttributeProto { strings: vec!["s".into()], ..attribute(8) },
        AttributeProto { tensors: vec![scalar], ..attribute(9) },
        AttributeProto { graphs: vec![GraphProto::default()], ..attribute(10) },
        AttributeProto { tp: Some(Box::new(ty.clone())), ..attribute(13) },
        AttributeProto { type_protos: vec![ty], ..attribute(14) },
        AttributeProto { ref_attr_name: "outer".into(), ..attribute(2 + 100) },
        AttributeProto { i: Some(7), name: "old".into(), ..Default::default() },
    ];
    let model = check(graph(vec![with.clone()])).unwrap();
    let kinds: Vec<&str> = model.graph.nodes[0].attributes.iter().map(|a| a.value.kind()).collect();
    assert_eq!(kinds.len(), 14);
    assert_eq!(kinds[2], "a string");
    assert_eq!(kinds[10], "a type");
    assert!(matches!(model.graph.nodes[0].attributes[13].value, Value::Int(7)));

    with.attribute = vec![attribute(4), attribute(99), attribute(0), attribute(2), attribute(2)];
    let errors = check(graph(vec![with])).unwrap_err();
    assert_eq!(
        errors,
        [
            "graph/node[0] (A): attribute 'a4': has a type and no value",
            "graph/node[0] (A): attribute 'a99': type 99 of attribute is unknown",
            "graph/node[0] (A): attribute 'a0': has neither a type nor a value",
            "graph/node[0] (A): attribute 'a2' is given twice",
        ]
    );
}

#[test]
fn checks_initializers_and_types_all_at_once() {
    let tensor = |name: &str, dims: &[i64], data_type| TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type,
        ..Default::default()
    };
    let dim = DimensionProto { value: Some(DimensionValue::DimValue(-2)) };
    let shape = TensorShapeProto { dim: vec![dim] };
    let ty = TypeProto { value: Some(TypeValue::Tensor(TensorTypeProto { elem_type: 1, shape: Some(shape) })) };
    let graph = GraphProto {
        initializer: vec![tensor("w", &[2, -3], 1), tensor("v", &[1], 9999), tensor("u", &[2], 1)],
        input: vec![ValueInfoProto { name: "x".into(), r#type: Some(ty) }],
        ..graph(vec![node("A", &["x", "w", "v", "u"], &["y"])])
    };
    let errors = check(graph).unwrap_err();
    assert_eq!(
        errors,
        [
            "graph/initializer 'w': dimension -3 of shape [2, -3] is negative",
            "graph/initializer 'v': element type 9999 is unknown",
            "graph/initializer 'u': shape [2] of float32 needs 8 bytes, and 0 are given",
            "graph/input 'x': dimension -2 is negative; an extent that may vary is written as a name",
        ]
    );
}

#[test]
fn reads_functions() {
    let function = FunctionProto {
        name: "F".into(),
        domain: "local".into(),
        input: vec!["a".into()],
        output: vec!["b".into()],
        attribute: vec!["alpha".into()],
        node: vec![node("A", &["a"], &["b"])],
        ..Default::default()
    };
    let proto = |function: FunctionProto| ModelProto {
        graph: Some(graph(vec![node("A", &["x"], &["y"])])),
        functions: vec![function],
        opset_import: vec![OperatorSetIdProto { domain: "ai.onnx".into(), version: 18 }],
        ..Default::default()
    };
    let read = |function| read_model(&proto(function));
    let model = read(function.clone()).unwrap();
    assert_eq!(model.opsets.get(""), Some(&18));
    assert_eq!(model.functions.keys().next().unwrap().to_string(), "local:F");
    let broken = FunctionProto { node: vec![node("A", &["c"], &["b"])], ..function };
    let faults = read(broken).unwrap_err();
    assert_eq!(faults[0], "function local:F/node[0] (A): input 0 is 'c', which nothing defines");
}

#[test]
fn a_damaged_file_never_panics() {
    let function = FunctionProto { name: "F".into(), node: vec![node("A", &["a"], &["b"])], ..Default::default() };
    let inner = GraphProto { node: vec![node("B", &["x"], &["z"])], output: vec![value("z")], ..Default::default() };
    let raw = TensorProto {
        name: "w".into(),
        dims: vec![2, 2],
        data_type: 1,
        raw_data: Some(vec![1; 16].into()),
        ..Default::default()
    };
    let main = GraphProto {
        initializer: vec![raw],
        ..graph(vec![with_graph(node("If", &["x"], &["a"]), "then_branch", inner), node("Add", &["a", "w"], &["y"])])
    };
    let bytes = ModelProto { graph: Some(main), functions: vec![function], ..Default::default() }.encode_to_vec();
    for end in 0..bytes.len() {
        let _ = read_bytes(bytes[..end].to_vec().into(), "m", &Limits::default(), &mut SourceMap::default());
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + state % 3 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = (state >> 8) as usize % damaged.len();
            damaged[at] = state as u8;
        }
        let _ = read_bytes(damaged.into(), "m", &Limits::default(), &mut SourceMap::default());
    }
}
