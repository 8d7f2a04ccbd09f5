//! Parameters given at run time give what constant ones do.

use tvm_ir::dtype::DType;
use tvm_ir::interp::TensorBuf;
use tvm_ir::interp::relax::{Value, run_function};

use super::make::*;
use crate::import::onnx::proto::NodeProto;

/// The results of a model of one node on `x`, a tensor of 0, 1, 2, …, whose other inputs are these lists: as initializers
/// or as inputs of the model.
fn results(
    opset: i64,
    x: &[i64],
    node: &NodeProto,
    lists: &[(&str, &[i64])],
    given: bool,
) -> Result<Vec<TensorBuf>, String> {
    let constants = if given { vec![] } else { lists.iter().map(|(name, values)| list(name, values)).collect() };
    let dims = x.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let mut model = model(opset, &dims, constants, vec![node.clone()]);
    let graph = model.graph.as_mut().unwrap();
    graph.output = node.output.iter().map(|name| value(name, "")).collect();
    for output in &mut graph.output {
        output.r#type = None;
    }
    let count = x.iter().product::<i64>();
    let data: Vec<f64> = (0..count).map(|v| v as f64).collect();
    let mut args = vec![Value::tensor(TensorBuf::from_f64(DType::F32, x, &data).unwrap())];
    if given {
        for (name, values) in lists {
            let length = values.len() as i64;
            graph.input.push(int_value(name, &length.to_string()));
            args.push(Value::tensor(TensorBuf::from_i64(DType::I64, &[length], values).unwrap()));
        }
    }
    let module = import(&model)?;
    let result = run_function(&module, "main", &args).map_err(|e| e.to_string())?;
    Ok(match &result {
        Value::Tuple(fields) => fields.iter().map(|f| f.as_tensor().unwrap()).collect(),
        one => vec![one.as_tensor().unwrap()],
    })
}

#[track_caller]
fn same(opset: i64, x: &[i64], node: NodeProto, lists: &[(&str, &[i64])]) {
    let fixed = results(opset, x, &node, lists, false).unwrap();
    let given = results(opset, x, &node, lists, true).unwrap();
    assert_eq!(fixed.len(), given.len());
    for (a, b) in fixed.iter().zip(&given) {
        assert_eq!((&a.shape, a.to_f64()), (&b.shape, b.to_f64()), "{} {lists:?}", node.op_type);
    }
}

#[track_caller]
fn fails(opset: i64, x: &[i64], node: NodeProto, lists: &[(&str, &[i64])], want: &str) {
    let error = results(opset, x, &node, lists, true).unwrap_err();
    assert!(error.contains(want), "{error}");
}

#[test]
fn reductions() {
    let kinds = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"];
    for kind in kinds {
        for (keepdims, axes) in
            [(1, &[1][..]), (0, &[-1]), (1, &[0, -2]), (0, &[2, 0]), (0, &[1, 2]), (0, &[]), (1, &[])]
        {
            let node = node(&format!("Reduce{kind}"), &["x", "a"], &["y"]).int("keepdims", keepdims);
            same(18, &[2, 3, 4, 1], node.clone(), &[("a", axes)]);
            same(18, &[2, 3, 4, 1], node.int("noop_with_empty_axes", 1), &[("a", axes)]);
        }
    }
    let sum = || node("ReduceSum", &["x", "a"], &["y"]);
    fails(13, &[2, 3], sum(), &[("a", &[2])], "an axis is out of range");
    fails(13, &[2, 3, 4], sum(), &[("a", &[1, -2])], "an axis is given twice");
}

#[test]
fn slices() {
    let slice = || node("Slice", &["x", "s", "e", "a", "t"], &["y"]);
    for (s, e, a, t) in [
        (&[1, 0][..], &[3, 4][..], &[0, 1][..], &[1, 2][..]),
        (&[-100, 10], &[i64::MAX, 1], &[1, -2], &[3, -1]),
        (&[4], &[i64::MIN], &[1], &[-2]),
        (&[2], &[1], &[0], &[1]),
    ] {
        same(13, &[4, 5], slice(), &[("s", s), ("e", e), ("a", a), ("t", t)]);
    }
    let short = node("Slice", &["x", "s", "e"], &["y"]);
    same(13, &[4, 5], short, &[("s", &[1]), ("e", &[-1])]);
    fails(13, &[4], slice(), &[("s", &[0]), ("e", &[1]), ("a", &[0]), ("t", &[0])], "a step is 0");
}

#[test]
fn pads() {
    for mode in ["constant", "reflect", "edge", "wrap"] {
        let pad = node("Pad", &["x", "p"], &["y"]).string("mode", mode);
        same(19, &[3, 4], pad.clone(), &[("p", &[1, 0, 2, 3])]);
        same(19, &[3, 4], pad, &[("p", &[-1, 2, 0, -1])]);
        let along = node("Pad", &["x", "p", "", "a"], &["y"]).string("mode", mode);
        same(19, &[3, 4], along, &[("p", &[2, -1]), ("a", &[-1])]);
    }
    fails(19, &[3], node("Pad", &["x", "p"], &["y"]), &[("p", &[-2, -2])], "");
}

#[test]
fn parts() {
    let split = node("Split", &["x", "s"], &["p", "q", "r"]).int("axis", 1);
    same(13, &[2, 6], split.clone(), &[("s", &[1, 0, 5])]);
    fails(13, &[2, 6], split.clone(), &[("s", &[1, 1, 1])], "");
    fails(13, &[2, 6], split, &[("s", &[7, -1, 0])], "");
}

#[test]
fn triangles_and_scans() {
    for upper in [0, 1] {
        for k in [-1, 0, 2] {
            same(14, &[2, 3, 4], node("Trilu", &["x", "k"], &["y"]).int("upper", upper), &[("k", &[k])]);
        }
    }
    for op in ["CumSum", "CumProd"] {
        for (exclusive, reverse) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let scan = node(op, &["x", "a"], &["y"]).int("exclusive", exclusive).int("reverse", reverse);
            same(26, &[2, 3, 4], scan.clone(), &[("a", &[1])]);
            same(26, &[2, 3, 4], scan, &[("a", &[-3])]);
        }
    }
    fails(14, &[2, 3], node("CumSum", &["x", "a"], &["y"]), &[("a", &[2])], "the axis is out of range");
}

#[test]
fn views() {
    let reshape = |zero| node("Reshape", &["x", "s"], &["y"]).int("allowzero", zero);
    for (x, s, zero) in [
        (&[2, 3, 4][..], &[4, 3, 2][..], 0),
        (&[2, 3, 4], &[0, -1], 0),
        (&[2, 3, 4], &[-1], 0),
        (&[2, 3, 4], &[2, 0, 1, -1, 2], 0),
        (&[0, 3, 4], &[3, 4, 0], 1),
        (&[1, 1], &[], 0),
    ] {
        same(19, x, reshape(zero), &[("s", s)]);
    }
    fails(19, &[2, 3], reshape(0), &[("s", &[4, -1])], "does not fill");
    fails(19, &[2, 3], reshape(0), &[("s", &[2, 2])], "does not fill");
    fails(19, &[0, 3], reshape(1), &[("s", &[0, -1])], "do not go together");
    let expand = || node("Expand", &["x", "s"], &["y"]);
    for (x, s) in [(&[3, 1][..], &[2, 1, 6][..]), (&[2, 1, 3], &[4, 1]), (&[1], &[0]), (&[2, 3], &[])] {
        same(13, x, expand(), &[("s", s)]);
    }
    fails(13, &[2, 3], expand(), &[("s", &[2, 4])], "do not broadcast");
    fails(13, &[1], expand(), &[("s", &[-1])], "");
    let squeeze = || node("Squeeze", &["x", "a"], &["y"]);
    same(13, &[1, 3, 1, 4], squeeze(), &[("a", &[-2])]);
    same(13, &[1, 3, 1, 4], squeeze(), &[("a", &[2, 0])]);
    fails(13, &[1, 3], squeeze(), &[("a", &[1])], "does not fill");
    let unsqueeze = || node("Unsqueeze", &["x", "a"], &["y"]);
    same(13, &[3, 4], unsqueeze(), &[("a", &[0, -2])]);
    same(13, &[], unsqueeze(), &[("a", &[1, 0])]);
    fails(13, &[3, 4], unsqueeze(), &[("a", &[3])], "out of range");
    let tile = || node("Tile", &["x", "r"], &["y"]);
    same(13, &[2, 3], tile(), &[("r", &[2, 4])]);
    same(13, &[2, 0, 1], tile(), &[("r", &[1, 3, 2])]);
    same(13, &[2, 3], tile(), &[("r", &[0, 1])]);
    fails(13, &[2, 3], tile(), &[("r", &[1, -1])], "");
}

#[test]
fn varying_extents_that_do_not_fit() {
    let run = |x: &str, extents: &[i64], node: NodeProto, s: &[i64]| {
        let module = import(&model(13, x, vec![list("s", s)], vec![node]))?;
        let x = TensorBuf::zeros(DType::F32, extents).unwrap();
        let y = run_function(&module, "main", &[Value::tensor(x)]).map_err(|e| e.to_string())?;
        Ok::<_, String>(y.as_tensor().unwrap().shape)
    };
    let expand = || node("Expand", &["x", "s"], &["y"]);
    assert_eq!(run("n, 2", &[3, 2], expand(), &[3, 2]).unwrap(), [3, 2]);
    assert_eq!(run("n, 2", &[1, 2], expand(), &[4, 3, 2]).unwrap(), [4, 3, 2]);
    assert!(run("n, 2", &[2, 2], expand(), &[3, 2]).unwrap_err().contains("broadcast"));
    let reshape = || node("Reshape", &["x", "s"], &["y"]);
    assert_eq!(run("n, 2", &[3, 2], reshape(), &[6]).unwrap(), [6]);
    assert!(run("n, 2", &[2, 2], reshape(), &[6]).unwrap_err().contains("fill"));
    assert!(run("n, 2", &[2, 2], reshape(), &[-1, 3]).unwrap_err().contains("fill"));
}

#[test]
fn transforms() {
    for (inverse, onesided, parts) in [(0, 0, 1), (1, 0, 2), (0, 1, 1), (1, 1, 2)] {
        let dft = || node("DFT", &["x", "n", "a"], &["y"]).int("inverse", inverse).int("onesided", onesided);
        for axis in [0, 1, -2, -3] {
            same(20, &[4, 5, parts], dft(), &[("n", &[6]), ("a", &[axis])]);
            let mut own = dft();
            own.input[1] = String::new();
            same(20, &[4, 5, parts], own, &[("a", &[axis])]);
        }
    }
    let dft = node("DFT", &["x", "", "a"], &["y"]);
    fails(20, &[4, 1], dft, &[("a", &[3])], "the axis is out of range");
    let stft = || node("STFT", &["x", "s", "", "n"], &["y"]);
    same(17, &[1, 12, 1], stft(), &[("s", &[3]), ("n", &[4])]);
    fails(17, &[1, 12, 1], stft(), &[("s", &[0]), ("n", &[4])], "");
}

#[test]
fn places_and_sizes() {
    let center = node("CenterCropPad", &["x", "s"], &["y"]).ints("axes", &[-1, 0]);
    for size in [&[2, 3][..], &[7, 6], &[8, 3], &[5, 4]] {
        same(18, &[4, 2, 5], center.clone(), &[("s", size)]);
    }
    let gather = || node("Gather", &["x", "i"], &["y"]).int("axis", 1);
    same(13, &[2, 3], gather(), &[("i", &[0, -1, 2, -3])]);
    fails(13, &[2, 3], gather(), &[("i", &[3])], "an index is out of range");
    fails(13, &[2, 3], gather(), &[("i", &[-4])], "an index is out of range");
    let features = node("ArrayFeatureExtractor", &["x", "i"], &["y"]).domain("ai.onnx.ml");
    assert!(results(1, &[2, 3], &features, &[("i", &[1])], true).unwrap_err().contains("ai.onnx.ml"));
}

#[test]
fn grids_crops_and_images() {
    let shapes = |op: &str| node(op, &["x", "s"], &["y"]);
    for align in [0, 1] {
        let grid = shapes("AffineGrid").int("align_corners", align);
        same(20, &[2, 2, 3], grid.clone(), &[("s", &[2, 1, 3, 4])]);
        same(20, &[1, 2, 3], grid.clone(), &[("s", &[1, 3, 1, 2])]);
        same(20, &[2, 3, 4], grid.clone(), &[("s", &[2, 1, 3, 4, 2])]);
        fails(20, &[2, 2, 3], grid, &[("s", &[3, 1, 3, 4])], "");
    }
    let center = shapes("CenterCropPad");
    for s in [&[3, 4, 5][..], &[10, 2, 5], &[4, 9, 1], &[0, 1, 2]] {
        same(18, &[7, 4, 4], center.clone(), &[("s", s)]);
    }
    same(18, &[7, 4, 4], center.clone().ints("axes", &[-1, 0]), &[("s", &[7, 2])]);
    fails(18, &[7], center, &[("s", &[-1])], "");
    let col2im = node("Col2Im", &["x", "i", "b"], &["y"]);
    same(18, &[1, 5, 5], col2im.clone(), &[("i", &[5, 5]), ("b", &[1, 5])]);
    same(18, &[2, 12, 4], col2im.clone().ints("strides", &[2, 2]), &[("i", &[4, 5]), ("b", &[2, 3])]);
    same(18, &[1, 4, 5], col2im.clone().ints("dilations", &[1, 5]), &[("i", &[6, 6]), ("b", &[2, 2])]);
    same(18, &[1, 10, 12], col2im.clone().ints("pads", &[0, 1, 0, 1]), &[("i", &[3, 6]), ("b", &[1, 5])]);
    same(18, &[1, 10, 12], col2im.clone(), &[("i", &[3, 4, 5]), ("b", &[1, 1, 5])]);
    fails(18, &[1, 5, 5], col2im.clone(), &[("i", &[5, 6]), ("b", &[1, 5])], "");
    fails(18, &[1, 6, 5], col2im, &[("i", &[5, 5]), ("b", &[1, 5])], "");
}

#[test]
fn one_element_is_one_extent() {
    // Parts of one shape, split and joined: the sum is of equal shapes, which inference must see.
    let nodes = vec![
        node("Split", &["s"], &["h", "w"]).int("num_outputs", 2),
        node("ConstantOfShape", &["s"], &["a"]),
        node("Concat", &["w", "h"], &["t"]).int("axis", 0),
        node("ConstantOfShape", &["t"], &["b"]),
        node("Transpose", &["b"], &["c"]).ints("perm", &[1, 0]),
        node("Add", &["a", "c"], &["d"]),
        node("Add", &["s", "s"], &["twice"]),
        node("ConstantOfShape", &["twice"], &["e"]),
        node("Concat", &["d", "d"], &["f"]).int("axis", 0),
        node("Concat", &["f", "f"], &["g"]).int("axis", 1),
        node("Add", &["e", "g"], &["y"]),
    ];
    let mut model = model(18, "1", vec![], nodes);
    model.graph.as_mut().unwrap().input = vec![int_value("s", "2")];
    let module = import(&model).unwrap();
    let run = |s: &[i64]| {
        let s = TensorBuf::from_i64(DType::I64, &[2], s).unwrap();
        run_function(&module, "main", &[Value::tensor(s)]).map(|y| y.as_tensor().unwrap().shape)
    };
    assert_eq!(run(&[2, 3]).unwrap(), [4, 6]);
    assert!(run(&[2, -3]).is_err());
}

#[test]
fn drawn_places() {
    let node = node("Multinomial", &["x"], &["y"]).int("sample_size", 200).int("dtype", 7);
    let drawn = results(22, &[2, 3], &node, &[], false).unwrap().swap_remove(0);
    assert_eq!(drawn.shape, [2, 200]);
    // Of rows 0, 1, 2 and 3, 4, 5 the last place has e² of 1 + e + e², two thirds.
    for row in drawn.to_f64().chunks(200) {
        assert!(row.iter().all(|v| [0.0, 1.0, 2.0].contains(v)));
        let last = row.iter().filter(|v| **v == 2.0).count();
        assert!((110..160).contains(&last), "{last}");
    }
}

/// An extent of the target is taken for that of the result: where it is not, the run fails, and reads nothing outside.
#[test]
fn expansions_to_extents_of_another_input() {
    let nodes = vec![node("Shape", &["y"], &["s"]), node("Expand", &["x", "s"], &["z"]).named("widen")];
    let mut model = model(13, "n, 2", vec![], nodes);
    let graph = model.graph.as_mut().unwrap();
    graph.input.push(value("y", "m, 2"));
    graph.output = vec![value("z", "k, 2")];
    let module = import(&model).unwrap();
    let call = |n: i64, m: i64| {
        let zeros =
            |n: i64| Value::tensor(TensorBuf::from_f64(DType::F32, &[n, 2], &vec![1.0; n as usize * 2]).unwrap());
        let result = run_function(&module, "main", &[zeros(n), zeros(m)]).map_err(|e| e.to_string())?;
        Ok::<_, String>(result.as_tensor().unwrap().shape[0])
    };
    for (n, m) in [(3, 3), (1, 4), (1, 0), (0, 0), (1, 1)] {
        assert_eq!(call(n, m), Ok(m), "{n} to {m}");
    }
    for (n, m) in [(3, 4), (4, 3), (3, 1), (0, 1), (0, 3), (3, 0)] {
        assert!(call(n, m).is_err(), "{n} to {m}");
    }
    // What compares is called as the node, in errors too.
    let names: Vec<String> = main(&module).body.bindings().map(|b| b.var.name().to_string()).collect();
    assert!(names.contains(&"widen".to_owned()), "{names:?}");
}
