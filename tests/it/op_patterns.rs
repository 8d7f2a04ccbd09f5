//! The fusion kind an op's row declares covers what AnnotateTIROpPattern finds in its PrimFunc.

use tvm_build::pass::Step;
use tvm_build::pipeline;
use tvm_ir::attrs::AttrValue;
use tvm_ir::module::{Func, IRModule};
use tvm_ir::ops;
use tvm_ir::relax::{Expr, Legalized, Pattern};
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::{ParseOptions, parse_module};
use tvm_ir::target::Target;

/// Calls and the kind their PrimFuncs have, as TVM 0.27 finds it.
const CALLS: &[(&str, i64)] = &[
    ("R.add(x, l)", 0),
    ("R.argmax(x)", 4),
    ("R.astype(x, \"int32\")", 0),
    ("R.broadcast_to(x, R.shape([3, 2, 4, 5, 6]))", 1),
    ("R.concat((x, x), axis=1)", 2),
    ("R.expand_dims(x, axis=[0])", 1),
    ("R.eye(R.prim_value(3))", 0),
    ("R.flip(x, axis=1)", 2),
    ("R.matmul(o, R.permute_dims(o, axes=[0, 2, 1]))", 4),
    ("R.mean(x, axis=[1])", 4),
    ("R.nn.adaptive_avg_pool2d(x, output_size=[1, 1])", 4),
    ("R.nn.avg_pool2d(x, pool_size=[2, 2])", 4),
    ("R.nn.batch_norm(x, g, g, g, g, axis=1, training=False)", 2),
    ("R.nn.batch_norm(x, g, g, g, g, axis=1)", 4),
    ("R.nn.conv2d(x, w)", 4),
    ("R.nn.conv2d_transpose(x, wt)", 4),
    ("R.nn.dropout(x)", 0),
    ("R.nn.gelu(x)", 0),
    ("R.nn.layer_norm(x, l, l, axes=[3])", 4),
    ("R.nn.log_softmax(x)", 4),
    ("R.nn.max_pool2d(x, pool_size=[2, 2])", 4),
    ("R.nn.pad(x, pad_width=[0, 0, 0, 0, 1, 1, 1, 1])", 2),
    ("R.nn.prelu(x, g)", 0),
    ("R.nn.relu(x)", 0),
    ("R.nn.rms_norm(x, l, axes=[3])", 4),
    ("R.nn.softmax(x)", 4),
    ("R.permute_dims(x)", 2),
    ("R.repeat(x, repeats=2, axis=1)", 2),
    ("R.reshape(x, R.shape([6, 40]))", 2),
    ("R.split(x, indices_or_sections=2, axis=1)", 2),
    ("R.stack((x, x))", 1),
    ("R.strided_slice(x, (1,), (0,), (2,))", 0),
    ("R.sum(x, axis=[1])", 3),
    ("R.take(x, i, axis=1)", 8),
    ("R.tile(x, repeats=[2, 1])", 2),
    ("R.tril(x)", 0),
    ("R.variance(x)", 4),
    ("R.zeros(R.shape([2, 3]), dtype=\"float32\")", 0),
];

const PARAMS: &str = "x: R.Tensor((2, 4, 5, 6), \"float32\"), g: R.Tensor((4,), \"float32\"), l: R.Tensor((6,), \"float32\"), \
     w: R.Tensor((8, 4, 3, 3), \"float32\"), wt: R.Tensor((4, 2, 3, 3), \"float32\"), \
     o: R.Tensor((2, 4, 5), \"float32\"), i: R.Tensor((3,), \"int64\")";

#[test]
fn declared_patterns_cover_computed_ones() {
    let annotate = Step::new(pipeline::pass("AnnotateTIROpPattern").unwrap());
    let target = Target::named("x86-64-v3").unwrap();
    for (call, want) in CALLS {
        let text = format!(
            "@I.ir_module\nclass Module:\n    @R.function\n    def main({PARAMS}):\n        gv = {call}\n        return gv\n"
        );
        let mut sources = SourceMap::default();
        let module = parse_module(&mut sources, "call.py", &text, ParseOptions::default())
            .unwrap_or_else(|e| panic!("{}", tvm_ir::render::render_all(&e, &sources)));
        let (_, main) = module.relax_funcs().next().unwrap();
        // Nested calls come first; the last call is the one in question.
        let (op, info) = main
            .body
            .bindings()
            .filter_map(|b| match &b.value {
                Expr::Call(c) => Some((c.clone(), b.var.info().clone())),
                _ => None,
            })
            .last()
            .unwrap();
        let Legalized::Tir { func, .. } = ops::legalize(&op, &info).unwrap() else { panic!("{call}") };
        let mut alone = IRModule::new();
        alone.funcs.insert("f".into(), Func::Prim(func));
        annotate.run(&mut alone, &target).unwrap();
        let Some(Func::Prim(f)) = alone.get("f") else { panic!() };
        let found = f.attrs.get("op_pattern").and_then(AttrValue::as_int);
        assert_eq!(found, Some(*want), "{call}");
        let declared = op.op.def().pattern;
        assert!(declared as i64 >= *want, "{call}: declared {declared:?}, found {want}");
        assert!(declared != Pattern::Opaque || *want == 8, "{call} is declared opaque, found {want}");
    }
}
