//! What a module computes is the same before and after a pass: random graphs run by the reference interpreter.

use super::{f32, module, run};
use tvm_ir::attrs::AttrValue;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::dtype::DType;
use tvm_ir::interp::TensorBuf;
use tvm_ir::interp::relax::{Value, run_function};
use tvm_ir::module::IRModule;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::build::FnBuilder;
use tvm_ir::relax::{Leaf, StructInfo};

/// Numbers that look random and are the same each time.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1))
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    /// Multiples of 1/8 between −2 and 2: sums and products of a few are exact.
    pub(super) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.below(33) as f32 / 8.0 - 2.0).collect()
    }

    pub(super) fn constant(&mut self, dims: &[i64]) -> Leaf {
        let n = dims.iter().product::<i64>();
        let data: Vec<u8> = self.floats(usize::try_from(n).unwrap()).into_iter().flat_map(f32::to_le_bytes).collect();
        let shape = dims.iter().map(|d| u64::try_from(*d).unwrap()).collect();
        Leaf::Const(Constant::new(DType::F32, shape, Bytes::new(data)).unwrap())
    }

    pub(super) fn tensor(&mut self, dims: &[i64]) -> Value {
        let n = usize::try_from(dims.iter().product::<i64>()).unwrap();
        let values = self.floats(n);
        Value::tensor(TensorBuf::from_f32(dims, &values).unwrap())
    }
}

fn dims_of(l: &Leaf) -> Vec<i64> {
    l.info().unwrap().as_tensor().unwrap().dims.fixed().unwrap()
}

/// A graph of `ops` calls over matrices, vectors and constants; a few values are returned.
fn random_graph(seed: u64, ops: usize) -> IRModule {
    let r = &mut Random::new(seed);
    let mut f = FnBuilder::new();
    let mut values = vec![f.param("x", f32(&[3, 4])), f.param("y", f32(&[4])), f.param("w", f32(&[4, 4]))];
    values.push(r.constant(&[3, 4]));
    values.push(r.constant(&[1, 4]));
    for _ in 0..ops {
        // Late values more often: chains fuse.
        let late = values.len().saturating_sub(3);
        let pick = if r.below(3) == 0 { r.below(values.len()) } else { late + r.below(values.len() - late) };
        let a = values[pick].clone();
        let b = values[r.below(values.len())].clone();
        let made = match r.below(9) {
            0 => f.call("nn.relu", vec![a], &[]),
            1 => f.call("add", vec![a, b], &[]),
            2 => f.call("multiply", vec![a, b], &[]),
            3 => f.call("subtract", vec![b, a], &[]),
            4 => f.call("permute_dims", vec![a], &[]),
            5 => f.call("matmul", vec![a, b], &[]),
            6 => f.call("sum", vec![a], &[("axis", vec![-1].into()), ("keepdims", true.into())]),
            7 => {
                let n: i64 = dims_of(&a).iter().product();
                f.call("reshape", vec![a, Leaf::Shape(vec![tvm_ir::prim::PrimExpr::i64(n)])], &[])
            }
            _ => f.call("maximum", vec![a, b], &[]),
        };
        // Operands that do not fit are another draw's matter.
        if let Ok(v) = made {
            values.push(v);
        }
    }
    let last = values.last().unwrap().clone();
    let result = if r.below(2) == 0 {
        last
    } else {
        let n = values.len();
        Leaf::Tuple(vec![last, values[n - 2].clone(), values[3 + r.below(n - 3)].clone()])
    };
    module(f, result)
}

fn inputs(m: &IRModule, seed: u64) -> Vec<Value> {
    let r = &mut Random::new(seed ^ 0xABCD);
    super::main_of(m).params.iter().map(|p| r.tensor(&dims_of(&Leaf::Var(p.clone())))).collect()
}

fn results(m: &IRModule, args: &[Value]) -> Vec<TensorBuf> {
    run_function(m, "main", args).unwrap_or_else(|e| panic!("{e}")).tensors()
}

const PASSES: &[&str] = &[
    "LegalizeOps",
    "CanonicalizeBindings",
    "FoldConstant",
    "LegalizeOps,FoldConstant",
    "EliminateCommonSubexpr,CanonicalizeBindings,DeadCodeElimination",
    "LegalizeOps,AnnotateTIROpPattern,FuseOps",
    "LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR",
    "LegalizeOps,AnnotateTIROpPattern,FuseOps(max_depth=3),FuseTIR",
    "LegalizeOps,ToNonDataflow,CallTIRRewrite",
    "ToNonDataflow,ConvertToDataflow,LegalizeOps,AnnotateTIROpPattern,FoldConstant,FuseOps,FuseTIR",
];

#[test]
fn random_graphs_mean_the_same_after_each_pass() {
    let mut fused = 0;
    for seed in 0..40 {
        let before = random_graph(seed, 14);
        let args = inputs(&before, seed);
        let want = results(&before, &args);
        for spec in PASSES {
            let mut after = before.clone();
            run(&mut after, spec);
            fused += super::names(&after).iter().filter(|n| n.starts_with("fused")).count();
            assert_eq!(results(&after, &args), want, "seed {seed}: {spec}");
        }
        let mut after = before.clone();
        let steps = (crate::pipeline::lookup("default").unwrap().steps)();
        let target = tvm_ir::target::Target::named("generic").unwrap();
        crate::pass::run_steps(&steps, &mut after, &target, &mut Default::default()).unwrap();
        assert_eq!(results(&after, &args), want, "seed {seed}: default");
    }
    assert!(fused > 150, "graphs that do not fuse test nothing: {fused}");
}

/// conv2d, perhaps with a bias, then batch norm with constant parameters.
fn conv_norm(bias: bool, center: bool, scale: bool) -> IRModule {
    let r = &mut Random::new(7);
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[1, 2, 5, 5]));
    let w = r.constant(&[3, 2, 3, 3]);
    let mut y = f.call("nn.conv2d", vec![x, w], &[]).unwrap();
    if bias {
        // As importers write it.
        let dims = [1, 3, 1, 1].map(PrimExpr::i64).to_vec();
        let wide = f.call("reshape", vec![r.constant(&[3]), Leaf::Shape(dims)], &[]).unwrap();
        y = f.call("add", vec![y, wide], &[]).unwrap();
    }
    let positive = |v: Leaf, f: &mut FnBuilder| f.call("multiply", vec![v.clone(), v], &[]).unwrap();
    let var = positive(r.constant(&[3]), &mut f);
    let args = vec![y, r.constant(&[3]), r.constant(&[3]), r.constant(&[3]), var];
    let attrs: &[(&str, AttrValue)] = &[
        ("axis", 1.into()),
        ("training", false.into()),
        ("epsilon", 0.5.into()),
        ("center", center.into()),
        ("scale", scale.into()),
    ];
    let t = f.call("nn.batch_norm", args, attrs).unwrap();
    let y = f.bindings().tuple_get(&t, 0).unwrap();
    let y = f.call("nn.relu", vec![y], &[]).unwrap();
    module(f, y)
}

#[test]
fn batch_norm_folds_into_the_convolution() {
    for (bias, center, scale) in [(false, true, true), (true, true, true), (true, false, true), (false, true, false)] {
        let before = conv_norm(bias, center, scale);
        let args = inputs(&before, 1);
        let want = results(&before, &args)[0].to_f32();
        let close = |m: &IRModule, what: &str| {
            for (a, b) in results(m, &args)[0].to_f32().iter().zip(&want) {
                assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{what}: {a} {b}");
            }
        };
        let mut m = before.clone();
        run(&mut m, "DecomposeOpsForInference");
        close(&m, "DecomposeOpsForInference");
        let mut m = before.clone();
        run(&mut m, "FoldConstant,FoldBatchnormToConv2D,DeadCodeElimination,FoldConstant");
        close(&m, "FoldBatchnormToConv2D");
        let calls = super::calls(super::main_of(&m));
        let ops: Vec<&str> = calls.iter().filter_map(|c| c.split("R.").nth(1)?.split('[').next()).collect();
        assert_eq!(ops, ["nn.conv2d", "add", "nn.relu"], "bias {bias}: {calls:?}");
        run(&mut m, "LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR");
        assert_eq!(super::names(&m), ["fused_conv2d_add_relu", "main"]);
        close(&m, "fused");
        let mut m = before.clone();
        let default: Vec<&str> = crate::pipeline::default_steps().iter().map(|s| s.pass.name).collect();
        run(&mut m, &default.join(","));
        assert_eq!(super::names(&m), ["fused_conv2d_add_relu", "main"]);
        close(&m, "default");
    }
}

/// The second convolution reads what took the place of the first norm.
#[test]
fn norms_without_activations_between() {
    let r = &mut Random::new(11);
    let mut f = FnBuilder::new();
    let mut y = f.param("x", f32(&[1, 2, 5, 5]));
    for channels in [2, 3] {
        y = f.call("nn.conv2d", vec![y, r.constant(&[3, channels, 1, 1])], &[]).unwrap();
        let deviation = r.constant(&[3]);
        let var = f.call("multiply", vec![deviation.clone(), deviation], &[]).unwrap();
        let args = vec![y, r.constant(&[3]), r.constant(&[3]), r.constant(&[3]), var];
        let attrs: &[(&str, AttrValue)] = &[("axis", 1.into()), ("training", false.into()), ("epsilon", 0.5.into())];
        let t = f.call("nn.batch_norm", args, attrs).unwrap();
        y = f.bindings().tuple_get(&t, 0).unwrap();
    }
    let before = module(f, y);
    let args = inputs(&before, 1);
    let want = results(&before, &args)[0].to_f32();
    let mut m = before.clone();
    run(&mut m, "FoldConstant,FoldBatchnormToConv2D,DeadCodeElimination,FoldConstant");
    for (a, b) in results(&m, &args)[0].to_f32().iter().zip(&want) {
        assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{a} {b}");
    }
    let calls = super::calls(super::main_of(&m));
    let ops: Vec<&str> = calls.iter().filter_map(|c| c.split("R.").nth(1)?.split('[').next()).collect();
    assert_eq!(ops, ["nn.conv2d", "add", "nn.conv2d", "add"], "{calls:?}");
}

#[test]
fn a_norm_of_the_batch_is_left_alone() {
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[2, 3, 4, 4]));
    let r = &mut Random::new(3);
    let mut args = vec![x];
    args.extend((0..4).map(|_| r.constant(&[3])));
    let t = f.call("nn.batch_norm", args, &[("axis", 1.into())]).unwrap();
    let y = f.bindings().tuple_get(&t, 0).unwrap();
    let mut m = module(f, y);
    run(&mut m, "DecomposeOpsForInference,FoldBatchnormToConv2D");
    assert!(super::calls(super::main_of(&m))[0].contains("nn.batch_norm"));
}

#[test]
fn constants_share_bytes_when_only_the_shape_changes() {
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[6]));
    let c = Random::new(5).constant(&[2, 3]);
    let flat = f.call("reshape", vec![c.clone(), Leaf::Shape(vec![tvm_ir::prim::PrimExpr::i64(6)])], &[]).unwrap();
    let y = f.call("add", vec![x, flat], &[]).unwrap();
    let mut m = module(f, y);
    run(&mut m, "FoldConstant");
    let Leaf::Const(before) = &c else { panic!() };
    let body = &super::main_of(&m).body;
    let tvm_ir::relax::Expr::Call(add) = &body.bindings().next().unwrap().value else { panic!() };
    let Leaf::Const(after) = &add.args[1] else { panic!("{add:?}") };
    assert_eq!(after.shape(), [6]);
    assert_eq!(after.data().as_ptr(), before.data().as_ptr());
}

#[test]
fn transposed_weights_are_constants() {
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[1, 3]));
    let w = Random::new(6).constant(&[5, 3]);
    let t = f.call("permute_dims", vec![w.clone()], &[]).unwrap();
    let y = f.call("matmul", vec![x, t], &[]).unwrap();
    let before = module(f, y);
    let mut m = before.clone();
    run(&mut m, "FoldConstant");
    assert_eq!(super::main_of(&m).body.bindings().count(), 2);
    let args = inputs(&before, 2);
    assert_eq!(results(&m, &args), results(&before, &args));
}

#[test]
fn large_creations_are_not_stored() {
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[64, 64]));
    let shape = |n: i64| Leaf::Shape(vec![tvm_ir::prim::PrimExpr::i64(n); 2]);
    let z = f.call("zeros", vec![shape(64)], &[("dtype", DType::F32.into())]).unwrap();
    let y = f.call("add", vec![x, z], &[]).unwrap();
    let mut m = module(f, y);
    run(&mut m, "FoldConstant");
    assert_eq!(super::calls(super::main_of(&m)).len(), 3);
}

/// Every list of passes gives what the module gave before.
fn check_all(before: &IRModule, args: &[Value], what: &str) {
    let want = results(before, args);
    for spec in PASSES {
        let mut after = before.clone();
        run(&mut after, spec);
        assert_eq!(results(&after, args), want, "{what}: {spec}");
    }
}

#[test]
fn symbolic_shapes_mean_the_same() {
    let [n, m] = ["n", "m"].map(|v| tvm_ir::prim::Var::new(v, DType::I64));
    let eight = tvm_ir::prim::PrimExpr::i64(8);
    let mut f = FnBuilder::new();
    let x = f.param("x", StructInfo::tensor(vec![n.expr(), eight.clone()], DType::F32));
    let y = f.param("y", StructInfo::tensor(vec![m.expr()], DType::F32));
    let r = f.call("nn.relu", vec![x.clone()], &[]).unwrap();
    // The product n * 8 is no variable: PrimFuncs over it take n as a scalar.
    let flat = f.call("reshape", vec![r, Leaf::Shape(vec![n.expr() * eight])], &[]).unwrap();
    let a = f.call("multiply", vec![flat.clone(), flat], &[]).unwrap();
    let a = f.call("add", vec![a.clone(), a], &[]).unwrap();
    let b = f.call("add", vec![y.clone(), y], &[]).unwrap();
    let b = f.call("nn.relu", vec![b], &[]).unwrap();
    let s = f.call("sum", vec![x], &[("axis", vec![0].into())]).unwrap();
    let s = f.call("nn.relu", vec![s], &[]).unwrap();
    let before = module(f, Leaf::Tuple(vec![a, b, s]));
    let r = &mut Random::new(11);
    for (n, m) in [(1, 1), (3, 5), (6, 2)] {
        check_all(&before, &[r.tensor(&[n, 8]), r.tensor(&[m])], "symbolic");
    }
}

#[test]
fn branches_mean_the_same() {
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[3, 4]));
    let c = f.param("c", StructInfo::tensor_fixed(&[], DType::BOOL));
    let r = &mut Random::new(12);
    let w = r.constant(&[3, 4]);
    let x2 = f.call("add", vec![x, w.clone()], &[]).unwrap();
    let x3 = f.call("nn.relu", vec![x2], &[]).unwrap();
    let info = x3.info().unwrap();
    let mut then = f.fork();
    let y = then.call("multiply", vec![x3.clone(), x3.clone()], &[]).unwrap();
    let y = then.call("nn.relu", vec![y], &[]).unwrap();
    let then = f.join(then, y);
    let mut other = f.fork();
    let y = other.call("add", vec![w.clone(), w], &[]).unwrap();
    let y = other.call("subtract", vec![x3.clone(), y], &[]).unwrap();
    let other = f.join(other, y);
    let picked = f.if_else(c, then, other, info);
    let z = f.call("add", vec![picked, x3], &[]).unwrap();
    let z = f.call("nn.relu", vec![z], &[]).unwrap();
    let before = module(f, z);
    for cond in [0, 1] {
        let cond = Value::tensor(TensorBuf::from_i64(DType::BOOL, &[], &[cond]).unwrap());
        check_all(&before, &[r.tensor(&[3, 4]), cond], "branches");
    }
}

#[test]
fn bound_parameters_are_constants() {
    let n = tvm_ir::prim::Var::new("n", DType::I64);
    let mut f = FnBuilder::new();
    let x = f.param("x", StructInfo::tensor(vec![n.expr(), 4.into()], DType::F32));
    let w = f.param("w", StructInfo::tensor(vec![4.into(), n.expr()], DType::F32));
    let y = f.call("matmul", vec![x, w], &[]).unwrap();
    let before = module(f, y);
    let r = &mut Random::new(13);
    let (x, w) = (r.tensor(&[3, 4]), r.constant(&[4, 3]));
    let Leaf::Const(w) = w else { panic!() };
    let mut m = before.clone();
    crate::passes::relax::bind_params(&mut m, "main", &[("w".into(), w.clone())].into()).unwrap();
    let main = super::main_of(&m);
    assert_eq!(main.params.len(), 1);
    assert_eq!(main.params[0].info(), &f32(&[3, 4]));
    assert_eq!(main.ret, f32(&[3, 3]));
    crate::pass::verify(&m).unwrap();
    let w_value = Value::tensor(TensorBuf::from_bytes(DType::F32, &[4, 3], w.data().to_vec()).unwrap());
    assert_eq!(results(&m, std::slice::from_ref(&x)), results(&before, &[x, w_value]));
    let bad = [("v".into(), w.clone()), ("x".into(), w)].into();
    let e = crate::passes::relax::bind_params(&mut before.clone(), "main", &bad).unwrap_err().to_string();
    assert!(e.contains("no parameter v"), "{e}");
    let r = &mut Random::new(14);
    let Leaf::Const(flat) = r.constant(&[12]) else { panic!() };
    let e = crate::passes::relax::bind_params(&mut before.clone(), "main", &[("w".into(), flat)].into()).unwrap_err();
    assert!(e.to_string().contains("does not fit parameter w"), "{e}");
}
