//! Operators of the user's own.

use prost::Message as _;

use super::make::*;
use crate::import::onnx::{CustomOps, convert, read};
use tvm_ir::diag::Diag;
use tvm_ir::module::{Func, IRModule};
use tvm_ir::span::SourceMap;

const SCALE: &str = r#"
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer((T.int64(4),), "float32"), out: T.Buffer((T.int64(4),), "float32")):
        for i in range(T.int64(4)):
            with T.block("scale"):
                v = T.axis.spatial(T.int64(4), i)
                out[v] = x[v] * T.float32(3.0)
"#;

fn import_with(ops: &CustomOps, nodes: Vec<crate::import::onnx::proto::NodeProto>) -> Result<IRModule, String> {
    let mut sources = SourceMap::default();
    let bytes = model(13, "4", vec![], nodes).encode_to_vec();
    let limits = crate::import::onnx::Limits::default();
    let model = read::read_bytes(bytes.into(), "m", &limits, &mut sources).map_err(|d| d.to_string())?;
    convert::convert(&model, &limits, ops).map(|(module, _)| module).map_err(|d| d.to_string())
}

fn triple() -> CustomOps {
    let library = crate::model::parse("scale.tvm", SCALE).unwrap();
    CustomOps::new().op("com.acme", "Triple", move |node| {
        let x = node.input(0, "x")?;
        let info = node.tensor(&x, "x")?;
        node.call_tir(&library, "scale", &[&x], vec![info], vec![])
    })
}

#[test]
fn bodies_in_tensor_ir_are_copied_once() {
    let nodes =
        || vec![node("Triple", &["x"], &["a"]).domain("com.acme"), node("Triple", &["a"], &["y"]).domain("com.acme")];
    let module = import_with(&triple(), nodes()).unwrap();
    let names: Vec<&str> = module.funcs.keys().map(|n| n.as_str()).collect();
    assert_eq!(names, ["main", "scale"]);
    let Some(Func::Prim(scale)) = module.get("scale") else { panic!() };
    assert!(scale.is_private());
    tvm_ir::relax::verify::verify_module(&module).unwrap();
    let error = import_with(&CustomOps::new(), nodes()).unwrap_err();
    assert!(error.contains("com.acme:Triple"), "{error}");
}

#[test]
fn built_in_operators_give_way() {
    let ops = CustomOps::new().op("ai.onnx", "Relu", |node| {
        let x = node.input(0, "x")?;
        let slope = node.scalar(0.5, &x)?;
        Ok(vec![node.call("multiply", &[&x, &slope], &[])?])
    });
    let module = import_with(&ops, vec![node("Relu", &["x"], &["y"])]).unwrap();
    assert_eq!(bindings_of(&module), ["gv = multiply(x, float32[])"]);
}

#[test]
fn faults_name_the_node() {
    let unread = CustomOps::new().op("com.acme", "Twice", |node| Ok(vec![node.input(0, "x")?]));
    let nodes = || vec![node("Twice", &["x"], &["y"]).domain("com.acme").int("times", 2)];
    let error = import_with(&unread, nodes()).unwrap_err();
    assert!(error.contains("com.acme:Twice: attribute 'times' is not supported"), "{error}");
    let refuses = CustomOps::new().op("com.acme", "Twice", |node| {
        let times = node.int("times")?.unwrap_or(1);
        Err(Diag::error(tvm_ir::span::Span::NONE, format!("{times} times are too many")))
    });
    let error = import_with(&refuses, nodes()).unwrap_err();
    assert!(error.contains("com.acme:Twice: 2 times are too many"), "{error}");
    let library = crate::model::parse("scale.tvm", SCALE).unwrap();
    let wrong = CustomOps::new().op("com.acme", "Twice", move |node| {
        node.int("times")?;
        let x = node.input(0, "x")?;
        node.call_tir(&library, "scal", &[&x], vec![], vec![])
    });
    let error = import_with(&wrong, nodes()).unwrap_err();
    assert!(error.contains("the module has no PrimFunc scal"), "{error}");
}
