//! The tutorial's model through the passes, and small graphs that show one decision each.

mod semantics;

use crate::pass::{Instrument, Step, run_steps};
use crate::pipeline;
use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::module::{Func, IRModule};
use tvm_ir::relax::build::FnBuilder;
use tvm_ir::relax::{Block, Expr, Function, Leaf, StructInfo};
use tvm_ir::target::Target;
use tvm_ir::tir::{Param, Stmt, visit_stmt};

fn f32(dims: &[i64]) -> StructInfo {
    StructInfo::tensor_fixed(dims, DType::F32)
}

fn module(f: FnBuilder, result: Leaf) -> IRModule {
    let mut m = IRModule::new();
    m.funcs.insert("main".into(), Func::Relax(f.finish_public("main", result).unwrap()));
    m
}

/// The tutorial's multilayer perceptron.
fn mlp() -> IRModule {
    let mut f = FnBuilder::new();
    f.attr("num_input", 1);
    let x = f.param("x", f32(&[1, 784]));
    let w1 = f.param("p_fc1_weight", f32(&[256, 784]));
    let b1 = f.param("p_fc1_bias", f32(&[256]));
    let w2 = f.param("p_fc2_weight", f32(&[10, 256]));
    let b2 = f.param("p_fc2_bias", f32(&[10]));
    let mut h = x;
    for (i, (w, b)) in [(w1, b1), (w2, b2)].into_iter().enumerate() {
        let t = f.call("permute_dims", vec![w], &[]).unwrap();
        let y = f.call("matmul", vec![h, t], &[]).unwrap();
        h = f.call("add", vec![y, b], &[]).unwrap();
        if i == 0 {
            h = f.call("nn.relu", vec![h], &[]).unwrap();
        }
    }
    module(f, h)
}

fn run(m: &mut IRModule, spec: &str) {
    let steps = pipeline::parse_steps(spec).unwrap();
    let target = Target::named("generic").unwrap();
    run_steps(&steps, m, &target, &mut Instrument::default()).unwrap();
}

fn names(m: &IRModule) -> Vec<&str> {
    m.funcs.keys().map(|n| n.as_str()).collect()
}

fn main_of(m: &IRModule) -> &Function {
    match &m["main"] {
        Func::Relax(f) => f,
        _ => panic!("main is no Relax function"),
    }
}

/// `var = callee(args)` for each binding.
fn calls(f: &Function) -> Vec<String> {
    f.body
        .bindings()
        .map(|b| {
            let what = match &b.value {
                Expr::CallTir(c) => format!("{}{:?}", c.func.0, c.args),
                Expr::CallFunc { callee: Leaf::Global(g), args } => format!("{}{args:?}", g.0),
                Expr::Call(c) => format!("R.{}{:?}", c.op.name(), c.args),
                Expr::Leaf(l) => format!("{l:?}"),
                Expr::TupleGetItem(l, i) => format!("{l:?}[{i}]"),
                _ => "…".into(),
            };
            format!("{} = {}", b.var.name(), what.replace("Var(", "").replace(')', ""))
        })
        .collect()
}

fn blocks_of(m: &IRModule, name: &str) -> Vec<String> {
    let Func::Prim(f) = &m[name] else { panic!("{name} is no PrimFunc") };
    let mut out = Vec::new();
    visit_stmt(&f.body, &mut |s| {
        if let Stmt::Block(b) = s {
            out.push(b.name.to_string());
        }
    });
    out
}

#[test]
fn legalize_names_functions_as_upstream_does() {
    let mut m = mlp();
    run(&mut m, "LegalizeOps");
    assert_eq!(names(&m), ["add", "add1", "main", "matmul", "matmul1", "relu", "transpose", "transpose1"]);
    assert_eq!(
        calls(main_of(&m)),
        [
            "lv = transpose[p_fc1_weight]",
            "lv1 = matmul[x, lv]",
            "lv2 = add[lv1, p_fc1_bias]",
            "lv3 = relu[lv2]",
            "lv4 = transpose1[p_fc2_weight]",
            "lv5 = matmul1[lv3, lv4]",
            "lv6 = add1[lv5, p_fc2_bias]",
            "gv = lv6",
        ]
    );
}

#[test]
fn legalize_shares_equal_functions() {
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[4]));
    let y = f.param("y", f32(&[4]));
    let a = f.call("add", vec![x.clone(), y.clone()], &[]).unwrap();
    let b = f.call("add", vec![a.clone(), y], &[]).unwrap();
    let c = f.call("add", vec![b, a], &[]).unwrap();
    let mut m = module(f, c);
    run(&mut m, "LegalizeOps");
    assert_eq!(names(&m), ["add", "main"]);
}

#[test]
fn patterns_follow_the_blocks() {
    let mut m = mlp();
    run(&mut m, "LegalizeOps,AnnotateTIROpPattern");
    for (name, pattern) in [("add", 0), ("relu", 0), ("matmul", 4), ("transpose", 2)] {
        let Func::Prim(f) = &m[name] else { panic!() };
        assert_eq!(f.attrs["op_pattern"], AttrValue::Int(pattern), "{name}");
    }
}

#[test]
fn the_tutorial_fuses_as_upstream_does() {
    let mut m = mlp();
    run(&mut m, "LegalizeOps,AnnotateTIROpPattern,FuseOps");
    assert_eq!(
        calls(main_of(&m)),
        [
            "lv = transpose[p_fc1_weight]",
            "lv = fused_matmul_add_relu[x, lv, p_fc1_bias]",
            "lv4 = transpose1[p_fc2_weight]",
            "lv1 = fused_matmul1_add1[lv, lv4, p_fc2_bias]",
            "gv = lv1",
        ]
    );
    let Func::Relax(f) = &m["fused_matmul_add_relu"] else { panic!() };
    assert_eq!(calls(f), ["lv1 = matmul[x, lv]", "lv2 = add[lv1, p_fc1_bias]", "gv = relu[lv2]"]);
    assert!(f.is_private());
    assert_eq!(f.attrs["Primitive"], AttrValue::Bool(true));
    run(&mut m, "FuseTIR");
    assert_eq!(names(&m), ["fused_matmul1_add1", "fused_matmul_add_relu", "main", "transpose", "transpose1"]);
    assert_eq!(
        calls(main_of(&m)),
        [
            "lv = transpose[p_fc1_weight]",
            "lv = fused_matmul_add_relu[x, lv, p_fc1_bias]",
            "lv4 = transpose1[p_fc2_weight]",
            "gv = fused_matmul1_add1[lv, lv4, p_fc2_bias]",
        ]
    );
    let Func::Prim(f) = &m["fused_matmul_add_relu"] else { panic!() };
    let params: Vec<&str> = f.buffers().map(|b| b.name.as_str()).collect();
    assert_eq!(params, ["x", "lv", "p_fc1_bias", "compute_intermediate"]);
    let allocs: Vec<&str> = f.root().unwrap().allocs.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(allocs, ["matmul_intermediate", "T_add_intermediate"]);
    assert_eq!(blocks_of(&m, "fused_matmul_add_relu"), ["root", "matmul", "T_add", "compute"]);
    assert!(!f.attrs.contains_key("op_pattern"));
}

#[test]
fn no_fusion_at_level_0_and_none_beyond_the_depth() {
    for (spec, fused) in [("fuse_opt_level=0", 0), ("max_depth=1", 0), ("max_depth=2", 2), ("max_depth=3", 2)] {
        let mut m = mlp();
        run(&mut m, &format!("LegalizeOps,AnnotateTIROpPattern,FuseOps({spec})"));
        assert_eq!(names(&m).iter().filter(|n| n.starts_with("fused")).count(), fused, "{spec}: {:?}", names(&m));
    }
}

#[test]
fn a_diamond_is_one_group_and_a_value_seen_outside_ends_one() {
    // relu feeds two branches that meet: all fuse. Then the same with the branch point returned.
    for returned in [false, true] {
        let mut f = FnBuilder::new();
        let x = f.param("x", f32(&[4, 8]));
        let r = f.call("nn.relu", vec![x], &[]).unwrap();
        let a = f.call("multiply", vec![r.clone(), r.clone()], &[]).unwrap();
        let b = f.call("subtract", vec![r.clone(), r.clone()], &[]).unwrap();
        let c = f.call("add", vec![a, b], &[]).unwrap();
        let result = if returned { Leaf::Tuple(vec![c, r]) } else { c };
        let mut m = module(f, result);
        run(&mut m, "LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR");
        let fused: Vec<&str> = names(&m).into_iter().filter(|n| n.starts_with("fused")).collect();
        let expected: &[&str] =
            if returned { &["fused_multiply_subtract_add"] } else { &["fused_relu_multiply_subtract_add"] };
        assert_eq!(fused, expected);
    }
}

#[test]
fn symbolic_shapes_stay_symbolic_in_fused_functions() {
    let n = tvm_ir::prim::Var::new("n", DType::I64);
    let mut f = FnBuilder::new();
    let x = f.param("x", StructInfo::tensor(vec![n.expr(), tvm_ir::prim::PrimExpr::i64(8)], DType::F32));
    let r = f.call("nn.relu", vec![x], &[]).unwrap();
    let e = f.call("multiply", vec![r.clone(), r], &[]).unwrap();
    let mut m = module(f, e);
    run(&mut m, "LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR");
    let Func::Prim(f) = &m["fused_relu_multiply"] else { panic!("{:?}", names(&m)) };
    assert_eq!(f.params.len(), 2, "no scalar is passed: the shape of x gives n");
    let [Param::Buffer(x), Param::Buffer(y)] = &f.params[..] else { panic!() };
    assert_eq!(x.shape[0], y.shape[0]);
    assert_ne!(x.shape[0].as_var(), Some(&n), "the function has a variable of its own");
}

#[test]
fn a_value_read_twice_by_one_block_has_one_region_that_covers_both() {
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[2, 2]));
    let relu = f.call("nn.relu", vec![x], &[]).unwrap();
    let twice = Leaf::Tuple(vec![relu.clone(), relu]);
    let y = f.call("concat", vec![twice], &[("axis", AttrValue::Int(0))]).unwrap();
    let mut m = module(f, y);
    run(&mut m, "LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR");
    let mut regions = Vec::new();
    for (_, f) in m.prim_funcs() {
        visit_stmt(&f.body, &mut |s| {
            if let Stmt::Block(b) = s
                && b.name.contains("concat")
            {
                regions.push(b.reads.len());
            }
        });
    }
    assert_eq!(regions, [1]);
}

#[test]
fn dead_code_goes_and_effects_stay() {
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[4]));
    let _unused = f.call("multiply", vec![x.clone(), x.clone()], &[]).unwrap();
    let y = f.call("nn.relu", vec![x], &[]).unwrap();
    let mut m = module(f, y);
    run(&mut m, "LegalizeOps");
    assert_eq!(names(&m), ["main", "multiply", "relu"]);
    run(&mut m, "DeadCodeElimination");
    assert_eq!(names(&m), ["main", "relu"]);
    assert_eq!(calls(main_of(&m)), ["lv1 = relu[x]", "gv = lv1"]);
}

#[test]
fn canonical_bindings_name_outputs() {
    let mut m = mlp();
    run(&mut m, "CanonicalizeBindings");
    let f = main_of(&m);
    assert_eq!(calls(f).last().unwrap(), "gv = R.add[lv5, p_fc2_bias]");
    let [Block::Dataflow { outputs, .. }] = &f.body.blocks[..] else { panic!() };
    assert_eq!(outputs.len(), 1);
    assert_eq!(f.body.result, Leaf::Var(outputs[0].clone()));
}

#[test]
fn non_dataflow_is_one_plain_block() {
    let mut m = mlp();
    run(&mut m, "ToNonDataflow");
    let [Block::Plain(bindings)] = &main_of(&m).body.blocks[..] else { panic!() };
    assert_eq!(bindings.len(), 8);
}

#[test]
fn the_instrument_sees_each_pass() {
    let mut m = mlp();
    let steps: Vec<Step> = pipeline::parse_steps("LegalizeOps,FuseTIR").unwrap();
    let mut seen = Vec::new();
    let mut after = |s: &Step, m: &IRModule| seen.push((s.pass.name, m.funcs.len()));
    let mut instrument = Instrument { after: Some(&mut after), ..Instrument::default() };
    run_steps(&steps, &mut m, &Target::named("generic").unwrap(), &mut instrument).unwrap();
    assert_eq!(instrument.times.len(), 2);
    assert_eq!(seen, [("LegalizeOps", 8), ("FuseTIR", 8)]);
}

#[test]
fn the_list_is_sorted() {
    assert!(super::PASSES.is_sorted_by_key(|p| p.name));
}

#[test]
fn equal_values_are_computed_once() {
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[4]));
    let a = f.call("nn.relu", vec![x.clone()], &[]).unwrap();
    let b = f.call("nn.relu", vec![x], &[]).unwrap();
    let c = f.call("add", vec![a, b], &[]).unwrap();
    let mut m = module(f, c);
    run(&mut m, "EliminateCommonSubexpr");
    assert_eq!(calls(main_of(&m)), ["lv = R.nn.relu[x]", "lv1 = lv", "lv2 = R.add[lv, lv]", "gv = lv2"]);
}

#[test]
fn pure_runs_become_dataflow_blocks() {
    let mut m = mlp();
    run(&mut m, "ToNonDataflow,ConvertToDataflow");
    let [Block::Dataflow { bindings, outputs }] = &main_of(&m).body.blocks[..] else { panic!() };
    assert_eq!((bindings.len(), outputs.len()), (7, 1));
    run(&mut m, "ToNonDataflow,ConvertToDataflow(min_size=8)");
    assert!(matches!(main_of(&m).body.blocks[..], [Block::Plain(_)]));
}

#[test]
fn outputs_are_allocated_explicitly() {
    let mut m = mlp();
    run(&mut m, "LegalizeOps,ToNonDataflow,CallTIRRewrite");
    let lines = calls(main_of(&m));
    assert_eq!(lines[1], "_ = transpose[p_fc1_weight, alloc]");
    assert_eq!(lines[2], "lv = alloc");
    assert_eq!(lines.len(), 3 * 7 + 1);
    let mut m = mlp();
    let steps = pipeline::parse_steps("LegalizeOps,CallTIRRewrite").unwrap();
    let e = run_steps(&steps, &mut m, &Target::named("generic").unwrap(), &mut Instrument::default()).unwrap_err();
    assert!(e.to_string().contains("run ToNonDataflow before it"), "{e}");
}

#[test]
fn large_graphs_take_no_longer_than_they_are_large() {
    let mut f = FnBuilder::new();
    let x = f.param("x", f32(&[4, 4]));
    let mut values = vec![x];
    for i in 0..2000usize {
        let a = values[values.len() - 1].clone();
        let b = values[values.len() / 2].clone();
        let op = ["add", "multiply", "subtract", "maximum"][i % 4];
        values.push(f.call(op, vec![a, b], &[]).unwrap());
    }
    let last = values.pop().unwrap();
    let mut m = module(f, last);
    let start = std::time::Instant::now();
    let steps = (pipeline::lookup("default").unwrap().steps)();
    let mut instrument = Instrument { verify: None, ..Instrument::default() };
    run_steps(&steps, &mut m, &Target::named("generic").unwrap(), &mut instrument).unwrap();
    assert!(start.elapsed().as_secs() < 20, "{:?}", instrument.times);
}
