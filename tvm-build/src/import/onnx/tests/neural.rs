//! Converters of attention, recurrent layers, resizing and the like.

use tvm_ir::relax::Expr;

use super::super::proto::TensorProto;
use super::make::*;

fn floats(name: &str, values: &[f32]) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: vec![values.len() as i64],
        data_type: 1,
        float_data: values.to_vec().into(),
        ..Default::default()
    }
}

#[test]
fn resizing() {
    let resize = |x: &str, scales: &[f32], mode: &str, coordinates: &str| {
        let resize = node("Resize", &["x", "", "s"], &["y"]).string("mode", mode);
        let resize = resize.string("coordinate_transformation_mode", coordinates);
        model(18, x, vec![floats("s", scales)], vec![resize])
    };
    // Whole scales repeat elements, also of varying extents; axes that stay as they are cost nothing.
    let varying = resize("n, 3, h, w", &[1.0, 1.0, 2.0, 2.0], "nearest", "half_pixel");
    assert_eq!(bindings(&varying), ["lv = repeat(x)", "gv = repeat(lv)"]);
    assert_eq!(result(&varying), "a tensor (n, 3, h * 2, w * 2) float32");
    let half = resize("n, 4", &[1.0, 0.5], "nearest", "asymmetric");
    assert_eq!(bindings(&half), ["gv = take(x, int64[2])"]);
    let linear = resize("1, 2", &[1.0, 2.0], "linear", "half_pixel");
    assert_eq!(
        bindings(&linear),
        [
            "lv = take(x, int64[4])",
            "lv1 = multiply(lv, float32[1, 4])",
            "lv2 = take(x, int64[4])",
            "lv3 = multiply(lv2, float32[1, 4])",
            "gv = add(lv1, lv3)"
        ]
    );
    // Others are known at run time.
    let varying = import(&resize("n", &[1.5], "linear", "half_pixel")).unwrap();
    assert!(main(&varying).body.bindings().any(|b| matches!(b.value, Expr::MatchCast(..))));
}

#[test]
fn recurrent_layers() {
    let weights = |gates: i64| vec![weight("w", &[2, gates * 5, 3]), weight("r", &[2, gates * 5, 5])];
    let layer = |op: &str| node(op, &["x", "w", "r"], &["y"]).string("direction", "bidirectional");
    for (op, gates) in [("RNN", 1), ("GRU", 3), ("LSTM", 4)] {
        let model = model(14, "t, n, 3", weights(gates), vec![layer(op).int("hidden_size", 5)]);
        assert_eq!(result(&model), "a tensor (t, 2, n, 5) float32");
    }
    let wrong = model(14, "t, n, 3", weights(1), vec![layer("RNN").int("hidden_size", 4)]);
    assert!(import(&wrong).unwrap_err().contains("'hidden_size' is not the 5 of R"));
}

#[test]
fn attention_with_a_varying_cache() {
    let mut attention = model(23, "b, 8, 3, 16", vec![], vec![]);
    let graph = attention.graph.as_mut().unwrap();
    graph.input.extend([value("k", "b, 2, 3, 16"), value("p", "b, 2, t, 16")]);
    graph.node.push(node("Attention", &["x", "k", "k", "", "p", "p"], &["y", "pk"]).int("is_causal", 1));
    assert_eq!(result(&attention), "a tensor (b, 8, 3, 16) float32");
    graph_output(&mut attention, "pk");
    assert_eq!(result(&attention), "a tensor (b, 2, t + 3, 16) float32");
}

fn graph_output(model: &mut super::super::proto::ModelProto, name: &str) {
    model.graph.as_mut().unwrap().output = vec![value(name, "")];
}

#[test]
fn einsum_is_matrix_products() {
    let einsum = |x: &str, equation: &str, w: &[i64]| {
        let einsum = node("Einsum", &["x", "w"], &["y"]).string("equation", equation);
        one_einsum(x, w, einsum)
    };
    assert_eq!(
        einsum("n, 2, 3", "bij,jk->bik", &[3, 4]),
        ["lv = reshape(x, [Mul(n, 2), 3])", "lv1 = reshape(float32[3, 4], [3, 4])"]
    );
}

fn one_einsum(x: &str, w: &[i64], einsum: super::super::proto::NodeProto) -> Vec<String> {
    bindings(&model(13, x, vec![weight("w", w)], vec![einsum])).into_iter().take(2).collect()
}
