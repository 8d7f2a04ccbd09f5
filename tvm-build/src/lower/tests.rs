use super::*;
use crate::samples::{fused_matmul_add_relu, matmul, transpose};
use tvm_ir::dtype::DType;
use tvm_ir::lowered::{Param as KernelParam, Stmt as Low};
use tvm_ir::module::Func;
use tvm_ir::prim::{PrimExpr, Var};

fn lower(f: &PrimFunc) -> LoweredFunc {
    lower_prim_func(f, &"f".into(), "tvmk_f".into(), &Target::default()).unwrap()
}

fn signature(k: &Kernel) -> Vec<String> {
    k.params
        .iter()
        .map(|p| match p {
            KernelParam::Pointer { var, dtype, written, noalias } => {
                assert!(noalias);
                format!("{}{dtype} *{}", if *written { "" } else { "const " }, var.0)
            }
            KernelParam::Scalar { var, dtype } => format!("{dtype} {}", var.0),
        })
        .collect()
}

#[test]
fn static_matmul() {
    let l = lower(&matmul(PrimExpr::i64(3), PrimExpr::i64(5), PrimExpr::i64(7)));
    assert_eq!(signature(&l.kernel), ["const float32 *p_a", "const float32 *p_b", "float32 *p_c"]);
    assert_eq!(l.scalars, []);
    let [Low::For { dtype, body, .. }] = l.kernel.body.as_slice() else { panic!("{:#?}", l.kernel) };
    assert_eq!(*dtype, DType::I32);
    let [Low::For { body, .. }] = body.as_slice() else { panic!("{body:#?}") };
    let [Low::For { body, .. }] = body.as_slice() else { panic!("{body:#?}") };
    assert!(matches!(body.as_slice(), [Low::If { .. }, Low::Store { .. }]), "{body:#?}");
}

#[test]
fn symbolic_extents_are_scalars() {
    let (n, m, k) = (Var::new("n", DType::I64), Var::new("m", DType::I64), Var::new("k", DType::I64));
    let l = lower(&matmul(n.expr(), m.expr(), k.expr()));
    assert_eq!(signature(&l.kernel)[3..], ["int64 n_n", "int64 n_k", "int64 n_m"]);
    let dim = |buffer, axis| ScalarSource::Dim { buffer, axis };
    assert_eq!(l.scalars, [dim(0, 0), dim(0, 1), dim(1, 1)]);
}

#[test]
fn large_intermediates_are_workspace() {
    let l = lower(&fused_matmul_add_relu(PrimExpr::i64(64), PrimExpr::i64(256), PrimExpr::i64(2)));
    assert_eq!(l.kernel.workspace, 2 * 64 * 256 * 4);
    let l = lower(&fused_matmul_add_relu(PrimExpr::i64(1), PrimExpr::i64(256), PrimExpr::i64(2)));
    assert_eq!(l.kernel.workspace, 0);
}

#[test]
fn unreadable_symbol_is_an_error() {
    let n = Var::new("n", DType::I64);
    let mut module = IRModule::new();
    module.add_fresh("t", Func::Prim(transpose(n.expr() * 2, PrimExpr::i64(3))));
    module.add_fresh("u", Func::Prim(transpose(PrimExpr::i64(3), n.expr() + 1)));
    let errors = lower_to_kernels(&module, &Target::default()).unwrap_err();
    assert_eq!(errors.0.len(), 2);
    assert!(errors.0[0].message.contains("symbolic variable n"), "{errors}");
}
