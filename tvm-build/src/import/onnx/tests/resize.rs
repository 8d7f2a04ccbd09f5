//! Resize by parameters given at run time, and of varying extents, gives what it gives where all is known.

use tvm_ir::dtype::DType;
use tvm_ir::interp::TensorBuf;
use tvm_ir::interp::relax::{Value, run_function};

use super::super::proto::*;
use super::make::*;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Known,
    Given,
    Varying,
}

fn floats(name: &str, values: &[f32]) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: vec![values.len() as i64],
        data_type: 1,
        float_data: values.to_vec().into(),
        ..Default::default()
    }
}

struct Case {
    x: &'static [i64],
    roi: &'static [f32],
    scales: &'static [f32],
    sizes: &'static [i64],
}

fn run(case: &Case, node: &NodeProto, way: Way) -> Result<TensorBuf, String> {
    let mut initializers = vec![floats("roi", case.roi), floats("scales", case.scales), list("sizes", case.sizes)];
    let names =
        case.x.iter().enumerate().map(|(i, n)| if way == Way::Varying { format!("d{i}") } else { n.to_string() });
    let dims = names.collect::<Vec<_>>().join(", ");
    let count: i64 = case.x.iter().product();
    let data: Vec<f64> = (0..count).map(|v| ((v * 37) % 11) as f64 - 3.0).collect();
    let mut args = vec![Value::tensor(TensorBuf::from_f64(DType::F32, case.x, &data).unwrap())];
    let mut inputs = Vec::new();
    if way == Way::Given {
        initializers.retain(|t| t.dims == [0]);
        let of = |v: &[f32]| Value::tensor(TensorBuf::from_f32(&[v.len() as i64], v).unwrap());
        for (name, values) in [("roi", case.roi), ("scales", case.scales)] {
            if !values.is_empty() {
                inputs.push(value(name, &values.len().to_string()));
                args.push(of(values));
            }
        }
        if !case.sizes.is_empty() {
            inputs.push(int_value("sizes", &case.sizes.len().to_string()));
            args.push(Value::tensor(TensorBuf::from_i64(DType::I64, &[case.sizes.len() as i64], case.sizes).unwrap()));
        }
    }
    let mut model = model(19, &dims, initializers, vec![node.clone()]);
    let graph = model.graph.as_mut().unwrap();
    graph.input.extend(inputs);
    graph.output[0].r#type = None;
    let module = import(&model)?;
    run_function(&module, "main", &args).map(|y| y.as_tensor().unwrap()).map_err(|e| e.to_string())
}

#[test]
fn parameters_given_at_run_time() {
    let cases = [
        Case { x: &[1, 1, 4, 5], roi: &[], scales: &[1.0, 1.0, 2.0, 1.6], sizes: &[] },
        Case { x: &[1, 1, 4, 5], roi: &[], scales: &[1.0, 1.0, 0.6, 0.41], sizes: &[] },
        Case { x: &[1, 2, 3, 4], roi: &[], scales: &[], sizes: &[1, 2, 1, 7] },
    ];
    let modes = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"];
    let mut count = 0;
    for case in &cases {
        for (i, coordinates) in modes.iter().enumerate() {
            let base = node("Resize", &["x", "roi", "scales", "sizes"], &["y"])
                .string("coordinate_transformation_mode", coordinates);
            let nearest = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"][i % 4];
            let variants = [
                base.clone().string("mode", "nearest").string("nearest_mode", nearest),
                base.clone().string("mode", "linear").int("antialias", (i % 2) as i64),
                base.clone().string("mode", "cubic").int("exclude_outside", (i % 2) as i64),
                base.string("mode", "cubic").int("antialias", 1),
            ];
            for node in variants.into_iter().skip(i % 2).step_by(2) {
                count += 1;
                let known = run(case, &node, Way::Known).unwrap();
                for way in [Way::Given, Way::Varying] {
                    let other = run(case, &node, way).unwrap();
                    assert_eq!(known.shape, other.shape, "{node:?}");
                    for (a, b) in known.to_f64().iter().zip(other.to_f64()) {
                        assert!((a - b).abs() < 1e-4, "{a} {b} {node:?} {:?} {:?}", case.scales, case.sizes);
                    }
                }
            }
        }
    }
    assert_eq!(count, 30);
}

#[test]
fn regions_and_ratios() {
    let crop = node("Resize", &["x", "roi", "scales", "sizes"], &["y"])
        .string("coordinate_transformation_mode", "tf_crop_and_resize")
        .string("mode", "linear")
        .float("extrapolation_value", 10.0);
    let kept = |policy: &str| {
        let node = node("Resize", &["x", "", "", "sizes"], &["y"]).string("mode", "linear");
        node.string("keep_aspect_ratio_policy", policy).ints("axes", &[2, 3])
    };
    let roi: &[f32] = &[0.0, 0.0, 0.4, 0.6, 1.0, 1.0, 1.2, 1.7];
    let sized = Case { x: &[1, 1, 4, 4], roi: &[], scales: &[], sizes: &[7, 9] };
    for (case, node) in [
        (&Case { x: &[1, 1, 4, 4], roi, scales: &[], sizes: &[1, 1, 3, 3] }, crop),
        (&sized, kept("not_larger")),
        (&sized, kept("not_smaller")),
    ] {
        let known = run(case, &node, Way::Known).unwrap();
        for way in [Way::Given, Way::Varying] {
            let other = run(case, &node, way).unwrap();
            assert_eq!(known.shape, other.shape);
            for (a, b) in known.to_f64().iter().zip(other.to_f64()) {
                assert!((a - b).abs() < 1e-4, "{a} {b} {node:?}");
            }
        }
    }
    let stretch = node("Resize", &["x", "", "", "sizes"], &["y"]).string("mode", "nearest");
    for sizes in [&[1, 1, -3, 3], &[1, 1, 0, 3]] {
        let case = Case { x: &[1, 1, 4, 4], roi: &[], scales: &[], sizes };
        let result = run(&case, &stretch, Way::Given);
        assert_eq!(result.is_ok(), sizes[2] == 0);
    }
}
