use super::build::*;
use tvm_ir::dtype::DType;
use tvm_ir::lowered::{Kernel, LoopKind, Param, Space, Stmt};
use tvm_ir::prim::{BinOp, CmpOp};

fn i64v(v: i64) -> tvm_ir::lowered::Expr {
    int(DType::I64, v)
}

#[test]
fn arrays_workspace_and_accumulators() {
    // Row sums through a local accumulator and scratch memory.
    let body = vec![
        Stmt::Workspace { var: local("tmp"), dtype: DType::F32, offset: 64 },
        for_loop(
            "i",
            3,
            vec![
                Stmt::Array { var: local("acc"), dtype: DType::F32, len: 1, space: Space::Local },
                store("acc", i64v(0), float(DType::F32, 0.0)),
                kind_loop(
                    "k",
                    4,
                    LoopKind::UnrollHint,
                    vec![store(
                        "acc",
                        i64v(0),
                        bin(
                            BinOp::Add,
                            load("acc", DType::F32, i64v(0)),
                            load(
                                "x",
                                DType::F32,
                                bin(BinOp::Add, bin(BinOp::Mul, var("i", DType::I64), i64v(4)), var("k", DType::I64)),
                            ),
                        ),
                    )],
                ),
                store("tmp", var("i", DType::I64), load("acc", DType::F32, i64v(0))),
            ],
        ),
        for_loop("i2", 3, vec![store("out", var("i2", DType::I64), load("tmp", DType::F32, var("i2", DType::I64)))]),
    ];
    let k = kernel("sums", &[("x", DType::F32, false), ("out", DType::F32, true)], body);
    let x: Vec<f32> = (0..12u8).map(f32::from).collect();
    for r in run(&k, &[bytes!(x), vec![0; 12]], &[]) {
        assert_eq!(r[1], bytes!([6.0, 22.0, 38.0f32]));
    }
}

#[test]
fn scalars_and_symbolic_loops() {
    let n = var("n", DType::I64);
    let body = vec![Stmt::For {
        var: local("i"),
        dtype: DType::I64,
        min: i64v(0),
        extent: n.clone(),
        kind: LoopKind::Serial,
        body: vec![store(
            "out",
            bin(BinOp::Sub, bin(BinOp::Sub, n, i64v(1)), var("i", DType::I64)),
            bin(BinOp::Mul, load("x", DType::F32, var("i", DType::I64)), var("scale", DType::F32)),
        )],
    }];
    let mut k = kernel("reverse", &[("x", DType::F32, false), ("out", DType::F32, true)], body);
    k.params.push(Param::Scalar { var: local("n"), dtype: DType::I64 });
    k.params.push(Param::Scalar { var: local("scale"), dtype: DType::F32 });
    let x = [1.0f32, 2.0, 3.0];
    for r in run(&k, &[bytes!(x), vec![0; 12]], &[3, 0.5f64.to_bits() as i64]) {
        assert_eq!(r[1], bytes!([1.5, 1.0, 0.5f32]));
    }
}

#[test]
fn parallel_loops_capture_what_they_use() {
    let body = vec![
        Stmt::Let { var: local("two"), value: float(DType::F32, 2.0) },
        Stmt::Array { var: local("table"), dtype: DType::F32, len: 4, space: Space::Local },
        for_loop("t", 4, vec![store("table", var("t", DType::I64), cast(var("t", DType::I64), DType::F32))]),
        kind_loop(
            "i",
            4,
            LoopKind::Parallel,
            vec![for_loop(
                "j",
                2,
                vec![store(
                    "out",
                    bin(BinOp::Add, bin(BinOp::Mul, var("i", DType::I64), i64v(2)), var("j", DType::I64)),
                    bin(
                        BinOp::Mul,
                        load("table", DType::F32, var("i", DType::I64)),
                        bin(BinOp::Add, var("two", DType::F32), load("x", DType::F32, var("j", DType::I64))),
                    ),
                )],
            )],
        ),
    ];
    let k = kernel("tasks", &[("x", DType::F32, false), ("out", DType::F32, true)], body);
    for r in run(&k, &[bytes!([1.0f32, 2.0]), vec![0; 32]], &[]) {
        assert_eq!(r[1], bytes!([0.0, 0.0, 3.0, 4.0, 6.0, 8.0, 9.0, 12.0f32]));
    }
}

fn asserting() -> Kernel {
    let n = var("n", DType::I64);
    let positive = cmp(CmpOp::Gt, n.clone(), i64v(0));
    let body = vec![
        Stmt::Assert { cond: positive, code: 1 },
        kind_loop("i", 2, LoopKind::Parallel, vec![Stmt::Assert { cond: cmp(CmpOp::Ne, n, i64v(7)), code: 2 }]),
    ];
    let mut k = kernel("check", &[], body);
    k.params.push(Param::Scalar { var: local("n"), dtype: DType::I64 });
    k.messages = vec!["n is positive".into(), "n is not 7".into()];
    k
}

#[test]
fn assertions_pass() {
    run(&asserting(), &[], &[3]);
}

#[test]
#[should_panic(expected = "Some(2)")]
fn assertions_fail_with_their_code() {
    run(&asserting(), &[], &[7]);
}
