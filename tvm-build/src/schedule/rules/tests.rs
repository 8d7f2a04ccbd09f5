use super::*;
use crate::passes::tir::LOWERING;
use crate::samples::{
    add_relu, assert_same, conv_bias_relu, fused_matmul_add_relu, matmul, matmul_transposed, max_pool, softmax,
    sum_of_planes, total, transpose,
};
use tvm_ir::dtype::DType;
use tvm_ir::prim::{PrimExpr, Var};
use tvm_ir::tir::{Stmt, visit_stmt};

fn int(v: i64) -> PrimExpr {
    PrimExpr::i64(v)
}

/// Schedules and lowers for every target; what is computed stays the same after each stage. Returns the plans and the
/// lowered function for x86-64-v3.
fn check(f: &PrimFunc, symbols: &[(&Var, i64)]) -> (Vec<String>, PrimFunc) {
    let mut out = None;
    for target in Target::all() {
        let Scheduled { func: mut g, plans, refused } = apply_default_schedule(f.clone(), &target);
        assert!(refused.is_empty(), "{refused:?}");
        assert_same(f, &g, symbols);
        for (_, pass) in LOWERING {
            g = pass(g, &target).unwrap();
            assert_same(f, &g, symbols);
        }
        if target.name == "x86-64-v3" {
            out = Some((plans.iter().map(ToString::to_string).collect(), g));
        }
    }
    out.unwrap()
}

/// Lanes of all stores, in program order.
fn store_lanes(f: &PrimFunc) -> Vec<u16> {
    let mut out = Vec::new();
    visit_stmt(&f.body, &mut |s| {
        if let Stmt::Store(s) = s {
            out.push(s.value.dtype().lanes);
        }
    });
    out
}

#[test]
fn matmul_tiles() {
    let (plans, f) = check(&matmul(int(12), int(32), int(5)), &[]);
    assert_eq!(plans, ["matmul: block matmul, tile i0=6 i1=16, vectors along i1"]);
    assert!(store_lanes(&f).iter().all(|l| *l == 8));
    for (m, n, k) in [(1, 1, 1), (1, 10, 7), (13, 37, 3), (7, 5, 2), (6, 0, 2), (3, 64, 1)] {
        check(&matmul(int(m), int(n), int(k)), &[]);
    }
}

#[test]
fn vector_times_matrix_with_epilogue() {
    let (plans, f) = check(&fused_matmul_add_relu(int(1), int(256), int(5)), &[]);
    assert_eq!(plans.len(), 1);
    assert!(plans[0].starts_with("matmul: block matmul, tile") && plans[0].ends_with("epilogue compute"), "{plans:?}");
    assert!(store_lanes(&f).iter().all(|l| *l == 8), "{:?}", store_lanes(&f));
    for (m, n, k) in [(1, 10, 4), (5, 17, 3), (14, 33, 2)] {
        check(&fused_matmul_add_relu(int(m), int(n), int(k)), &[]);
    }
}

#[test]
fn symbolic_matmul() {
    let (n, m) = (Var::new("n", DType::I64), Var::new("m", DType::I64));
    let f = fused_matmul_add_relu(n.expr(), int(24), int(3));
    for rows in [0, 1, 5, 6, 13] {
        let (plans, g) = check(&f, &[(&n, rows)]);
        assert!(plans[0].starts_with("matmul"), "{plans:?}");
        assert!(store_lanes(&g).contains(&8));
    }
    let f = matmul(int(3), m.expr(), n.expr());
    for (a, b) in [(1, 1), (40, 2), (16, 3)] {
        check(&f, &[(&m, a), (&n, b)]);
    }
}

#[test]
fn convolutions() {
    let (plans, f) = check(&conv_bias_relu([1, 8], [4, 14], 3, 1, 1), &[]);
    assert_eq!(plans.len(), 2, "{plans:?}");
    assert!(plans[1].starts_with("conv: block conv2d_nchw, tile ff=8 xx=8, vectors along xx"), "{plans:?}");
    assert_eq!(plans[0], "padding: block pad_temp, cut ax2 at [1, 5], cut ax3 at [1, 15], vectors along ax3");
    assert!(store_lanes(&f).contains(&8));
    let mut conditions = 0;
    tvm_ir::tir::visit_exprs(&f.body, &mut |e| {
        conditions += usize::from(matches!(e.kind(), tvm_ir::prim::PrimKind::Call(..)));
    });
    assert_eq!(conditions, 0, "{f:?}");
    for (channels, size, kernel, stride, pad) in
        [([1, 3], [3, 7], 3, 1, 1), ([3, 2], [4, 9], 3, 2, 1), ([2, 5], [3, 6], 1, 1, 0), ([1, 1], [2, 20], 3, 1, 1)]
    {
        check(&conv_bias_relu(channels, size, kernel, stride, pad), &[]);
    }
}

#[test]
fn pooling_and_other_reductions() {
    let (plans, _) = check(&max_pool(3, 14, 14), &[]);
    assert!(plans[0].starts_with("reduction: block pool_max"), "{plans:?}");
    check(&max_pool(2, 5, 6), &[]);
    let (plans, _) = check(&softmax(int(3), int(10)), &[]);
    let expected =
        ["reduction: block maxelem, tile i0=3, epilogue exp", "reduction: block expsum, tile i0=3, epilogue norm"];
    assert_eq!(plans, expected);
    let n = Var::new("n", DType::I64);
    check(&total(int(7), DType::F32), &[]);
    check(&total(n.expr(), DType::F32), &[(&n, 5)]);
}

#[test]
fn rows_are_summed_in_lanes() {
    let (plans, f) = check(&softmax(int(3), int(120)), &[]);
    let expected = [
        "inner_reduction: block maxelem, tile k=32, vectors along k, epilogue exp",
        "inner_reduction: block expsum, tile k=32, vectors along k, epilogue norm",
    ];
    assert_eq!(plans, expected);
    assert!(store_lanes(&f).contains(&8));
    for n in [16, 17, 31, 33, 64, 131] {
        check(&softmax(int(2), int(n)), &[]);
    }
    let (m, n) = (Var::new("m", DType::I64), Var::new("n", DType::I64));
    for (rows, v) in [(0, 3), (2, 1), (1, 32), (2, 37), (1, 130)] {
        check(&softmax(m.expr(), n.expr()), &[(&m, rows), (&n, v)]);
    }
}

#[test]
fn planes_are_summed_as_one_row() {
    let (plans, _) = check(&sum_of_planes(int(3), &[int(7), int(7)]), &[]);
    assert_eq!(
        plans,
        ["inner_reduction: block sum, fuse k0 k1, tile k0_k1_fused=16, vectors along k0_k1_fused, epilogue scaled"]
    );
    let (h, w) = (Var::new("h", DType::I64), Var::new("w", DType::I64));
    let f = sum_of_planes(int(2), &[h.expr(), w.expr()]);
    for (a, b) in [(1, 1), (3, 5), (7, 11), (1, 64)] {
        let (plans, _) = check(&f, &[(&h, a), (&w, b)]);
        assert!(plans[0].contains("fuse k0 k1"), "{plans:?}");
    }
}

#[test]
fn products_along_memory() {
    let (plans, _) = check(&matmul_transposed(int(2), int(3), int(40)), &[]);
    assert_eq!(plans, ["inner_reduction: block matmul, tile k=16, vectors along k"]);
    let k = Var::new("k", DType::I64);
    for n in [1, 5, 32, 75] {
        check(&matmul_transposed(int(1), int(3), k.expr()), &[(&k, n)]);
    }
}

/// More steps than are added one after the other, in the lanes of a row and in a tile.
#[test]
fn long_sums_are_sums_of_sums() {
    let (plans, _) = check(&total(int(5000), DType::F64), &[]);
    assert_eq!(plans, ["inner_reduction: block total, tile k=16, vectors along k, sums over k_0 of 104"]);
    let n = Var::new("n", DType::I64);
    for v in [15, 4100] {
        let (plans, _) = check(&total(n.expr(), DType::F64), &[(&n, v)]);
        assert!(plans[0].ends_with("sums over k_0 of 128"), "{plans:?}");
    }
    check(&sum_of_planes(int(1), &[int(7), int(3), int(400)]), &[]);
    check(&total(int(300), DType::I32), &[]);
    let (plans, _) = check(&matmul(int(7), int(17), int(600)), &[]);
    assert!(plans[0].contains("sums over k of 200"), "{plans:?}");
    let (plans, _) = check(&matmul(int(3), int(17), n.expr()), &[(&n, 300)]);
    assert!(plans[0].contains("sums over k of 256"), "{plans:?}");
    let (plans, _) = check(&conv_bias_relu([70, 4], [3, 9], 3, 1, 1), &[]);
    assert!(plans[1].contains("sums over rc of 24"), "{plans:?}");
}

#[test]
fn elementwise_becomes_one_vector_loop() {
    let (plans, f) = check(&add_relu(int(6), int(20), false), &[]);
    assert_eq!(plans, ["elementwise: block compute, fuse ax0 ax1, vectors along ax0_ax1_fused"]);
    assert!(store_lanes(&f).iter().all(|l| *l == 8), "{f:?}");
    let (plans, _) = check(&add_relu(int(6), int(20), true), &[]);
    assert_eq!(plans, ["elementwise: block compute, vectors along ax1"]);
    let n = Var::new("n", DType::I64);
    for v in [0, 1, 8, 13] {
        check(&add_relu(int(3), n.expr(), false), &[(&n, v)]);
    }
    check(&transpose(int(5), int(9)), &[]);
}

#[test]
fn a_scheduled_function_is_left_alone() {
    let target = Target::named("x86-64-v3").unwrap();
    let first = apply_default_schedule(matmul(int(3), int(8), int(2)), &target);
    assert_eq!(first.plans.len(), 1);
    assert!(apply_default_schedule(first.func, &target).plans.is_empty());
}
