//! What operators become.

use super::make::*;
use crate::import::onnx::proto::{NodeProto, TensorProto};

/// The bindings of a model of one node, with an operator set and the shape of its input `x`.
fn one(opset: i64, x: &str, initializers: Vec<TensorProto>, node: NodeProto) -> Vec<String> {
    bindings(&model(opset, x, initializers, vec![node]))
}

fn bytes(name: &str, data_type: i32, dims: &[i64], values: &[i32]) -> TensorProto {
    TensorProto { name: name.into(), dims: dims.to_vec(), data_type, int32_data: values.to_vec(), ..Default::default() }
}

#[test]
fn windows_over_varying_extents() {
    let pool = |auto: &str, strides: &[i64]| {
        let node = node("MaxPool", &["x"], &["y"]).string("auto_pad", auto).ints("kernel_shape", &[3, 3]);
        result(&model(13, "1, 2, n, 5", vec![], vec![node.ints("strides", strides)]))
    };
    assert_eq!(pool("SAME_UPPER", &[1, 1]), "a tensor (1, 2, n, 5) float32");
    assert_eq!(pool("SAME_UPPER", &[2, 2]), "a tensor (1, 2, (n + 1) // 2, 3) float32");
    assert_eq!(pool("SAME_LOWER", &[3, 2]), "a tensor (1, 2, (n + 2) // 3, 3) float32");
}

#[test]
fn slices_within_the_extent() {
    let lists = || vec![list("s", &[-100, 1]), list("e", &[i64::MAX, -1]), list("a", &[1, 0]), list("t", &[2, 1])];
    let slice = || node("Slice", &["x", "s", "e", "a", "t"], &["y"]);
    assert_eq!(one(13, "4, 5", lists(), slice()), ["gv = strided_slice(x, (1, 0), (0, 1), (5, 3), (2, 1))"]);
    assert_eq!(one(13, "n, 5", lists(), slice()), ["gv = strided_slice(x, (1, 0), (0, 1), (5, -1), (2, 1))"]);
    // All of an axis from its end: the place before the first element is written as -6.
    let lists = vec![list("s", &[-1]), list("e", &[i64::MIN]), list("a", &[1]), list("t", &[-1])];
    assert_eq!(one(13, "4, 5", lists, slice()), ["gv = strided_slice(x, (1), (4), (-6), (-1))"]);
    let attributes = node("Slice", &["x"], &["y"]).ints("starts", &[1]).ints("ends", &[9]);
    assert_eq!(one(9, "4", vec![], attributes), ["gv = strided_slice(x, (0), (1), (4), (1))"]);
}

#[test]
fn constant_indices_count_from_the_start() {
    let gather = || node("Gather", &["x", "i"], &["y"]).int("axis", 1);
    assert_eq!(one(13, "2, 3", vec![list("i", &[0, -1])], gather()), ["gv = take(x, int64[2])"]);
    let error = import(&model(13, "2, 3", vec![list("i", &[7])], vec![gather()])).unwrap_err();
    assert!(error.contains("Gather: index 7 is out of range for an axis of 3"), "{error}");
    // When the model runs, indices are checked, and those below zero moved by the extent.
    let nodes = vec![node("Cast", &["x"], &["i"]).int("to", 7), node("Gather", &["w", "i"], &["y"])];
    assert_eq!(
        bindings(&model(13, "2", vec![weight("w", &[5])], nodes)),
        ["lv = astype(x)", "lv1 = checked_index(lv, int64[])", "gv = take(float32[5], lv1)"]
    );
}

#[test]
fn negative_pads_crop() {
    let pad = node("Pad", &["x", "p"], &["y"]).string("mode", "edge");
    assert_eq!(
        one(13, "4, 5", vec![list("p", &[-1, 2, 0, -2])], pad),
        ["lv = strided_slice(x, (0, 1), (1, 0), (4, 3))", "gv = nn.pad(lv)"]
    );
}

#[test]
fn reductions_without_axes() {
    let with =
        |op: &str, noop: i64| one(18, "2, 3", vec![], node(op, &["x"], &["y"]).int("noop_with_empty_axes", noop));
    assert_eq!(with("ReduceMax", 0), ["gv = max(x)"]);
    assert_eq!(with("ReduceMax", 1), ["gv = x"]);
    assert_eq!(with("ReduceSumSquare", 1), ["gv = multiply(x, x)"]);
}

#[test]
fn split_and_its_uneven_parts() {
    let split = |outputs: &[&str]| {
        one(18, "7, 2", vec![], node("Split", &["x"], outputs).int("num_outputs", outputs.len() as i64))
    };
    assert_eq!(split(&["a", "y", "b"]), ["lv = split(x)", "lv1 = lv[0]", "lv2 = lv[1]", "lv3 = lv[2]", "gv = lv2"]);
    assert_eq!(split(&["y"]), ["gv = x"]);
}

#[test]
fn normalizations_take_the_first_result() {
    let parameters = || ["s", "b", "m", "v"].map(|name| weight(name, &[3])).to_vec();
    let norm = node("BatchNormalization", &["x", "s", "b", "m", "v"], &["y"]);
    assert_eq!(
        one(15, "n, 3, 4", parameters(), norm),
        [
            "lv = nn.batch_norm(x, float32[3], float32[3], float32[3], float32[3])",
            "lv1 = lv[0]",
            "lv2 = lv[1]",
            "lv3 = lv[2]",
            "gv = lv1"
        ]
    );
    // Before version 13, softmax is over all axes from its axis on.
    let softmax = || node("Softmax", &["x"], &["y"]);
    assert_eq!(
        one(11, "n, 3, 4", vec![], softmax()),
        ["lv = reshape(x, [n, 12])", "lv1 = nn.softmax(lv)", "gv = reshape(lv1, [n, 3, 4])"]
    );
    assert_eq!(one(13, "n, 3, 4", vec![], softmax()), ["gv = nn.softmax(x)"]);
    let hardmax = || node("Hardmax", &["x"], &["y"]);
    assert_eq!(one(13, "n, 4", vec![], hardmax()), ["lv = argmax(x)", "lv1 = equal(lv, int64[4])", "gv = astype(lv1)"]);
    assert_eq!(result(&model(11, "2, 3, 4", vec![], vec![hardmax()])), "a tensor (2, 3, 4) float32");
}

#[test]
fn quantization_is_arithmetic() {
    let scale = weight("s", &[]);
    let zero = bytes("z", 3, &[], &[-3]);
    let nodes =
        vec![node("QuantizeLinear", &["x", "s", "z"], &["q"]), node("DequantizeLinear", &["q", "s", "z"], &["y"])];
    assert_eq!(
        bindings(&model(13, "2", vec![scale, zero], nodes)),
        [
            "lv = divide(x, float32[])",
            "lv1 = round(lv)",
            "lv2 = astype(int8[])",
            "lv3 = add(lv1, lv2)",
            "lv4 = clip(lv3, -128, 127)",
            "lv5 = astype(lv4)",
            "lv6 = astype(lv5)",
            "lv7 = subtract(lv6, int32[])",
            "lv8 = astype(lv7)",
            "gv = multiply(lv8, float32[])"
        ]
    );
}

#[test]
fn same_padding_follows_from_the_extent() {
    let pool = |x: &str, mode: &str| {
        let pool = node("MaxPool", &["x"], &["y"]).ints("kernel_shape", &[3]).ints("strides", &[2]);
        result(&model(13, x, vec![], vec![pool.string("auto_pad", mode)]))
    };
    assert_eq!(pool("1, 2, 7", "SAME_UPPER"), "a tensor (1, 2, 4) float32");
    assert_eq!(pool("1, 2, 8", "SAME_LOWER"), "a tensor (1, 2, 4) float32");
    assert_eq!(pool("1, 2, 7", "VALID"), "a tensor (1, 2, 3) float32");
}

#[test]
fn pools_rounded_up() {
    let pool = |op: &str, x: &str, kernel: i64, pad: i64, stride: i64, include: i64| {
        let pool = node(op, &["x"], &["y"]).ints("kernel_shape", &[kernel]).ints("pads", &[pad; 2]).int("ceil_mode", 1);
        let pool = pool.ints("strides", &[stride]);
        let pool = if op == "AveragePool" { pool.int("count_include_pad", include) } else { pool };
        let model = model(19, x, vec![], vec![pool]);
        (bindings(&model), result(&model))
    };
    // The last window reaches one beyond the padding: 6 of its 7 elements count.
    let (lines, info) = pool("AveragePool", "1, 2, 9", 7, 3, 3, 1);
    assert_eq!(lines, ["lv = nn.avg_pool1d(x)", "gv = multiply(lv, float32[1, 1, 4])"]);
    assert_eq!(info, "a tensor (1, 2, 4) float32");
    assert_eq!(pool("AveragePool", "1, 2, 9", 7, 3, 3, 0).0, ["gv = nn.avg_pool1d(x)"]);
    // A tenth window would begin behind the input.
    assert_eq!(pool("MaxPool", "1, 1, 17", 2, 1, 2, 0).1, "a tensor (1, 1, 9) float32");
    assert_eq!(pool("MaxPool", "1, 1, 8", 3, 0, 2, 0).1, "a tensor (1, 1, 4) float32");
    let varying =
        node("MaxPool", &["x"], &["y"]).ints("kernel_shape", &[2]).ints("pads", &[1, 1]).ints("strides", &[2]);
    let error = import(&model(19, "1, 1, n", vec![], vec![varying.int("ceil_mode", 1)])).unwrap_err();
    assert!(error.contains("'ceil_mode' along an axis of the varying extent n"), "{error}");
}

#[test]
fn transposed_convolution_to_a_shape() {
    let conv = |shape: i64| {
        let conv = node("ConvTranspose", &["x", "w"], &["y"]).ints("strides", &[2]).ints("output_shape", &[shape]);
        one(13, "1, 1, 3", vec![weight("w", &[1, 2, 3])], conv)
    };
    assert_eq!(conv(6), ["gv = nn.conv1d_transpose(x, float32[1, 2, 3])"]);
    assert_eq!(conv(9), ["lv = nn.conv1d_transpose(x, float32[1, 2, 3])", "gv = nn.pad(lv)"]);
}

#[test]
fn expanding_by_a_computed_shape() {
    // Where(Equal(shape, -1), ones, shape), as exporters write it: all of it is known at import.
    let nodes = vec![
        node("ConstantOfShape", &["rank"], &["ones"]),
        node("Equal", &["shape", "minus"], &["same"]),
        node("Where", &["same", "ones", "shape"], &["target"]),
        node("Expand", &["x", "target"], &["y"]),
    ];
    let mut ones = nodes;
    let one = TensorProto { name: String::new(), ..list("", &[1]) };
    ones[0].attribute.push(super::super::proto::AttributeProto {
        name: "value".into(),
        kind: 4,
        t: Some(Box::new(one)),
        ..Default::default()
    });
    let lists = vec![list("rank", &[2]), list("shape", &[4, -1]), list("minus", &[-1])];
    assert_eq!(bindings(&model(13, "3", lists, ones)), ["gv = broadcast_to(x, [4, 3])"]);
}

#[test]
fn a_sum_of_thousands_does_not_nest() {
    let names: Vec<String> = (0..3000).map(|i| if i % 2 == 0 { "x".to_owned() } else { "w".to_owned() }).collect();
    let inputs: Vec<&str> = names.iter().map(String::as_str).collect();
    let model = model(18, "2", vec![weight("w", &[2])], vec![node("Sum", &inputs, &["y"])]);
    assert_eq!(bindings(&model).len(), 2999);
}
