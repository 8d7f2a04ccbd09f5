//! Scheduled functions, compiled and run, against the reference interpreter on the functions as they were.

use super::build::*;
use crate::lower::{ScalarSource, lower_prim_func};
use crate::samples::{self, reference};
use crate::schedule::rules::apply_default_schedule;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{PrimExpr, Var};
use tvm_ir::target::Target;
use tvm_ir::tir::PrimFunc;

fn int(v: i64) -> PrimExpr {
    PrimExpr::i64(v)
}

/// Runs all functions in one program for each target of this machine. The symbolic extents of a function are `values`
/// in the order of the kernel's scalars.
fn check(funcs: &[(PrimFunc, Vec<(Var, i64)>)]) {
    for target in Target::all().iter().filter(|t| runs_here(t)) {
        let mut jobs = Vec::new();
        let mut expected = Vec::new();
        for (f, symbols) in funcs {
            let (before, after) = reference(f, symbols);
            let g = apply_default_schedule(f.clone(), target).func;
            let lowered = lower_prim_func(&g, &"f".into(), "f".into(), target).unwrap();
            let mut job = Job::new(lowered.kernel, before.iter().map(|b| b.data.clone()).collect());
            for s in &lowered.scalars {
                let ScalarSource::Dim { buffer, axis } = s else { panic!("{s:?}") };
                job.dims.push(before[*buffer].shape[*axis]);
            }
            jobs.push(job);
            expected.push(after);
        }
        for results in run_on(&mut jobs, &[target]) {
            for (n, (got, want)) in results.iter().zip(&expected).enumerate() {
                for (k, (g, w)) in got.iter().zip(want).enumerate() {
                    let g = g.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap()));
                    for (i, (g, w)) in g.zip(w.to_f32()).enumerate() {
                        let close = (g - w).abs() <= 1e-5 * w.abs().max(1.0);
                        assert!(close, "{}: function {n}, parameter {k}, element {i}: {g}, not {w}", target.name);
                    }
                }
            }
        }
    }
}

#[test]
fn scheduled_functions_compute_the_same() {
    let (n, m) = (Var::new("n", DType::I64), Var::new("m", DType::I64));
    let fixed = [
        samples::matmul(int(13), int(37), int(11)),
        samples::matmul(int(64), int(64), int(3)),
        samples::fused_matmul_add_relu(int(1), int(256), int(20)),
        samples::fused_matmul_add_relu(int(7), int(10), int(20)),
        samples::conv_bias_relu([1, 16], [28, 28], 3, 1, 1),
        samples::conv_bias_relu([16, 32], [14, 14], 3, 1, 1),
        samples::conv_bias_relu([3, 5], [9, 11], 3, 2, 1),
        samples::max_pool(16, 14, 14),
        samples::max_pool(2, 5, 6),
        samples::softmax(int(5), int(33)),
        samples::total(int(100), DType::F32),
        samples::total(int(5000), DType::F32),
        samples::sum_of_planes(int(3), &[int(7), int(9)]),
        samples::matmul_transposed(int(2), int(3), int(70)),
        samples::matmul(int(7), int(17), int(600)),
        samples::add_relu(int(5), int(33), false),
        samples::add_relu(int(5), int(33), true),
        samples::transpose(int(9), int(17)),
    ];
    let mut all: Vec<_> = fixed.into_iter().map(|f| (f, Vec::new())).collect();
    for v in [1, 5, 6, 13] {
        let f = samples::fused_matmul_add_relu(n.expr(), int(24), m.expr());
        all.push((f, vec![(n.clone(), v), (m.clone(), 2 * v)]));
        all.push((samples::add_relu(int(3), n.expr(), false), vec![(n.clone(), v)]));
    }
    check(&all);
}
