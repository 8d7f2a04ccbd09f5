use super::*;
use crate::passes::tir::LOWERING;
use crate::samples::{assert_same, fused_matmul_add_relu, matmul, max_pool, transpose};
use tvm_ir::dtype::DType;
use tvm_ir::prim::{PrimExpr, Scope};

const SIZES: &[(i64, i64, i64)] = &[(1, 1, 1), (1, 10, 3), (7, 5, 3), (6, 16, 2), (13, 37, 4), (0, 4, 2)];

fn int(v: i64) -> PrimExpr {
    PrimExpr::i64(v)
}

/// Every stage of the lowering of a scheduled function computes the same.
fn check(before: &PrimFunc, after: &Schedule, symbols: &[(&Var, i64)]) {
    assert_same(before, after.func(), symbols);
    let target = Target::named("x86-64-v3").unwrap();
    let mut f = after.func().clone();
    for (_, pass) in LOWERING {
        f = pass(f, &target).unwrap();
        assert_same(before, &f, symbols);
    }
}

#[test]
fn split_with_and_without_rest() {
    for &(m, n, k) in SIZES {
        for factor in [1, 3, 4, 64] {
            let f = matmul(int(m), int(n), int(k));
            let mut s = Schedule::new(f.clone());
            let block = s.get_block("matmul").unwrap();
            for l in s.get_loops(&block).unwrap() {
                s.split(&l, factor, Tail::Shrink).unwrap();
            }
            check(&f, &s, &[]);
        }
    }
    let f = matmul(int(2), int(2), int(2));
    let mut s = Schedule::new(f);
    let l = s.get_loops(&s.get_block("matmul").unwrap()).unwrap()[0].clone();
    assert!(s.split(&l, 0, Tail::Shrink).unwrap_err().message.contains("loop i0"));
}

#[test]
fn split_that_starts_earlier() {
    for (m, n, k) in [(7, 5, 3), (6, 16, 2), (13, 37, 4)] {
        let f = fused_matmul_add_relu(int(m), int(n), int(k));
        let mut s = Schedule::new(f.clone());
        for name in ["matmul", "T_add"] {
            let loops = s.get_loops(&s.get_block(name).unwrap()).unwrap();
            for (l, factor) in [(&loops[0], 4), (&loops[1], 5)] {
                let [_, inner] = s.split(l, factor, Tail::Shift).unwrap();
                assert_eq!(s.get_loop(&inner).unwrap().extent.as_int(), Some(factor));
            }
        }
        check(&f, &s, &[]);
        let k_loop = s.get_loops(&s.get_block("matmul").unwrap()).unwrap()[4].clone();
        assert!(s.split(&k_loop, 2, Tail::Shift).is_err() || k % 2 == 0);
        let first = s.get_loops(&s.get_block("compute").unwrap()).unwrap()[0].clone();
        assert!(
            s.split(&first, m + 1, Tail::Shift).unwrap_err().message.contains("loop i0") || first.var().name() != "i0"
        );
    }
}

#[test]
fn symbolic_split() {
    let (n, m) = (Var::new("n", DType::I64), Var::new("m", DType::I64));
    let f = matmul(n.expr(), m.expr(), int(3));
    let mut s = Schedule::new(f.clone());
    let loops = s.get_loops(&s.get_block("matmul").unwrap()).unwrap();
    let [_, inner] = s.split(&loops[1], 4, Tail::Shrink).unwrap();
    assert!(s.get_loop(&inner).unwrap().extent.as_int().is_none());
    for (a, b) in [(1, 1), (5, 7), (3, 8), (0, 5)] {
        check(&f, &s, &[(&n, a), (&m, b)]);
    }
}

#[test]
fn fuse_loops() {
    for &(m, n, _) in SIZES {
        let f = transpose(int(m), int(n));
        let mut s = Schedule::new(f.clone());
        let loops = s.get_loops(&s.get_block("T_transpose").unwrap()).unwrap();
        s.fuse(&loops[0], &loops[1]).unwrap();
        check(&f, &s, &[]);
    }
}

#[test]
fn reorder_loops() {
    for &(m, n, k) in SIZES {
        let f = matmul(int(m), int(n), int(k));
        let mut s = Schedule::new(f.clone());
        let loops = s.get_loops(&s.get_block("matmul").unwrap()).unwrap();
        let [_, i1] = s.split(&loops[0], 2, Tail::Shrink).unwrap();
        s.reorder(&[loops[2].clone(), loops[1].clone()]).unwrap();
        s.reorder(&[loops[1].clone(), i1.clone()]).unwrap();
        let names: Vec<_> =
            s.get_loops(&s.get_block("matmul").unwrap()).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["i0_0", "i1", "k", "i0_1"]);
        check(&f, &s, &[]);
    }
}

#[test]
fn reorder_refuses_what_depends() {
    let mut s = Schedule::new(matmul(int(7), int(7), int(7)));
    let loops = s.get_loops(&s.get_block("matmul").unwrap()).unwrap();
    let [outer, inner] = s.split(&loops[0], 2, Tail::Shrink).unwrap();
    let error = s.reorder(&[inner, outer]).unwrap_err();
    assert!(error.message.contains("i0_1") && error.message.contains("i0_0"), "{error}");
}

#[test]
fn kinds_need_spatial_iterators() {
    let mut s = Schedule::new(matmul(int(7), int(7), int(7)));
    let loops = s.get_loops(&s.get_block("matmul").unwrap()).unwrap();
    assert!(s.vectorize(&loops[2]).unwrap_err().message.contains("matmul"));
    assert!(s.parallel(&loops[2]).is_err());
    s.parallel(&loops[0]).unwrap();
    s.unroll(&loops[2]).unwrap();
}

#[test]
fn partition_makes_bounds_constant() {
    for &(m, n, k) in SIZES {
        let f = matmul(int(m), int(n), int(k));
        let mut s = Schedule::new(f.clone());
        let loops = s.get_loops(&s.get_block("matmul").unwrap()).unwrap();
        let [outer, inner] = s.split(&loops[1], 4, Tail::Shrink).unwrap();
        s.loop_partition(&outer, int(n / 4)).unwrap();
        if n >= 4 {
            assert_eq!(s.get_loop(&inner).unwrap().extent.as_int(), Some(4));
        }
        check(&f, &s, &[]);
    }
}

#[test]
fn inline_and_move_epilogue() {
    for &(m, n, k) in SIZES {
        let f = fused_matmul_add_relu(int(m), int(n), int(k));
        let mut s = Schedule::new(f.clone());
        s.compute_inline(&s.get_block("T_add").unwrap()).unwrap();
        check(&f, &s, &[]);
        let (matmul, epilogue) = (s.get_block("matmul").unwrap(), s.get_block("compute").unwrap());
        let loops = s.get_loops(&matmul).unwrap();
        let [i0, i1] = s.split(&loops[0], 2, Tail::Shrink).unwrap();
        let [j0, j1] = s.split(&loops[1], 8, Tail::Shrink).unwrap();
        s.reorder(&[i0, j0.clone(), loops[2].clone(), i1, j1]).unwrap();
        let moved = s.reverse_compute_at(&epilogue, &j0).unwrap();
        assert_eq!(moved.len(), 2);
        check(&f, &s, &[]);
        s.decompose_reduction(&matmul, &loops[2]).unwrap();
        check(&f, &s, &[]);
        s.set_scope(&matmul, 0, Scope::Local).unwrap();
        s.plan_allocations().unwrap();
        check(&f, &s, &[]);
        s.loop_partition(&j0, int(n / 8)).unwrap();
        check(&f, &s, &[]);
    }
}

#[test]
fn cache_write_copies_back() {
    for &(m, n, k) in SIZES {
        let f = matmul(int(m), int(n), int(k));
        let mut s = Schedule::new(f.clone());
        let matmul = s.get_block("matmul").unwrap();
        let copy = s.cache_write(&matmul, 0, Scope::Local).unwrap();
        check(&f, &s, &[]);
        let loops = s.get_loops(&matmul).unwrap();
        s.reverse_compute_at(&copy, &loops[1]).unwrap();
        s.plan_allocations().unwrap();
        check(&f, &s, &[]);
    }
}

#[test]
fn reductions_cannot_be_inlined_or_left_early() {
    let mut s = Schedule::new(fused_matmul_add_relu(int(3), int(3), int(3)));
    let matmul = s.get_block("matmul").unwrap();
    let k = s.get_loops(&matmul).unwrap()[2].clone();
    assert!(s.compute_inline(&matmul).unwrap_err().message.contains("matmul"));
    let add = s.get_block("T_add").unwrap();
    let error = s.reverse_compute_at(&add, &k).unwrap_err();
    assert!(error.message.contains("loop k"), "{error}");
    let compute = s.get_block("compute").unwrap();
    assert!(s.compute_inline(&compute).unwrap_err().message.contains("parameter"));
}

#[test]
fn rfactor_reduces_apart() {
    for &(m, n, k) in SIZES {
        for factor in [1, 2, 4] {
            let f = matmul(int(m), int(n), int(k));
            // Each iteration of the inner loop an element of its own.
            let mut s = Schedule::new(f.clone());
            let matmul = s.get_block("matmul").unwrap();
            let k_loop = s.get_loops(&matmul).unwrap()[2].clone();
            let [steps, lane] = s.split(&k_loop, factor, Tail::Shrink).unwrap();
            let [_, rf] = s.rfactor(&matmul, &steps, Some(&lane)).unwrap();
            s.vectorize(&lane).unwrap();
            check(&f, &s, &[]);
            assert_eq!(s.get_loops(&rf).unwrap().last(), Some(&lane));
            // Then the sum of the lanes again.
            let lanes = s.get_loops(&matmul).unwrap()[2].clone();
            let [outer, inner] = s.split(&lanes, 2, Tail::Shrink).unwrap();
            s.rfactor(&matmul, &outer, Some(&inner)).unwrap();
            check(&f, &s, &[]);
            // A sum of sums, over spatial loops inside.
            let mut s = Schedule::new(f.clone());
            let loops = s.get_loops(&matmul).unwrap();
            let [_, inner] = s.split(&loops[2], factor, Tail::Shrink).unwrap();
            s.reorder(&[loops[2].clone()]).unwrap_err();
            let loops = s.get_loops(&matmul).unwrap();
            s.reorder(&[loops[0].clone(), loops[2].clone(), inner.clone(), loops[1].clone()]).unwrap();
            s.rfactor(&matmul, &inner, None).unwrap();
            check(&f, &s, &[]);
        }
    }
    let f = max_pool(2, 6, 6);
    let mut s = Schedule::new(f.clone());
    let pool = s.get_block("pool_max").unwrap();
    let loops = s.get_loops(&pool).unwrap();
    s.rfactor(&pool, &loops[3], Some(&loops[4])).unwrap();
    check(&f, &s, &[]);
}

#[test]
fn rfactor_refuses_what_it_cannot() {
    let mut s = Schedule::new(fused_matmul_add_relu(int(3), int(3), int(3)));
    let (matmul, add) = (s.get_block("matmul").unwrap(), s.get_block("T_add").unwrap());
    let loops = s.get_loops(&matmul).unwrap();
    assert!(s.rfactor(&matmul, &loops[2], Some(&loops[1])).unwrap_err().message.contains("loop i1"));
    let outer = s.get_loops(&add).unwrap()[0].clone();
    assert!(s.rfactor(&add, &outer, None).unwrap_err().message.contains("T_add"));
    let n = Var::new("n", DType::I64);
    let mut s = Schedule::new(crate::samples::matmul(int(3), int(3), n.expr()));
    assert!(s.rfactor(&matmul, &loops[2], None).unwrap_err().message.contains("loop k"));
    let k = s.get_loops(&matmul).unwrap()[2].clone();
    assert!(s.rfactor(&matmul, &k, Some(&k)).unwrap_err().message.contains("no bound"));
}
