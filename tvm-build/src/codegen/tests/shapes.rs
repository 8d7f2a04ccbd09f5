//! What the text looks like, and what is refused.

use super::build::*;
use crate::codegen::{C99, EmitOptions, emit, messages};
use tvm_ir::dtype::DType;
use tvm_ir::lowered::{Kernel, LoopKind, Param};
use tvm_ir::prim::BinOp;
use tvm_ir::target::Target;

fn add() -> Kernel {
    map(&[DType::F32, DType::F32], DType::F32, 16, 1, |a| bin(BinOp::Add, a[0].clone(), a[1].clone()))
}

#[test]
fn readable() {
    let text = source(&add(), &Target::default());
    let body = text.split("/* R.map(…) */\n").nth(1).unwrap();
    assert_eq!(
        body,
        "int32_t t__map(void *const *args, const int64_t *dims, const tvm_context *ctx);
int32_t t__map(void *const *args, const int64_t *dims, const tvm_context *ctx)
{
    const float *restrict x = args[0];
    const float *restrict y = args[1];
    float *restrict out = args[2];
    for (int64_t i = 0; i < 16; ++i) {
        out[i * 1] = x[i * 1] + y[i * 1];
    }
    (void)dims;
    (void)ctx;
    return 0;
}
"
    );
}

#[test]
fn names_never_collide() {
    let mut k = kernel(
        "int",
        &[("int", DType::F32, false), ("args", DType::F32, false), ("expf", DType::F32, true)],
        vec![for_loop(
            "tvm_x",
            4,
            vec![store(
                "expf",
                var("tvm_x", DType::I64),
                bin(
                    BinOp::Add,
                    load("int", DType::F32, var("tvm_x", DType::I64)),
                    load("args", DType::F32, var("tvm_x", DType::I64)),
                ),
            )],
        )],
    );
    k.origin = "evil */ int x; /*".into();
    let x = [1.0f32, 2.0, 3.0, 4.0];
    for r in run(&k, &[bytes!(x), bytes!(x), vec![0; 16]], &[]) {
        assert_eq!(r[2], bytes!([2.0, 4.0, 6.0, 8.0f32]));
    }
    let twice = emit(&[add(), add()], &Target::default(), &C99, &options()).unwrap_err();
    assert!(twice.to_string().contains("same C symbol"), "{twice}");
}

#[test]
fn files_are_split_and_deterministic() {
    let mut kernels = Vec::new();
    for i in 0..7 {
        kernels.push(Kernel { name: format!("k{i}").into(), messages: vec![format!("m{i}")], ..add() });
    }
    let options = EmitOptions { files: 2, ..options() };
    let a = emit(&kernels, &Target::default(), &C99, &options).unwrap();
    assert_eq!(a.len(), 2);
    assert_eq!(a, emit(&kernels, &Target::default(), &C99, &options).unwrap());
    assert_eq!(messages(&kernels)[6], "m6");
}

#[test]
fn refused() {
    let refuse =
        |k: &Kernel| emit(std::slice::from_ref(k), &Target::default(), &C99, &options()).unwrap_err().to_string();
    let k = map(&[DType::I4], DType::I4, 4, 1, |a| a[0].clone());
    assert!(refuse(&k).contains("no type for `int4`"));
    let k = kernel("gpu", &[], vec![kind_loop("i", 4, LoopKind::Thread("threadIdx.x".into()), vec![])]);
    assert!(refuse(&k).contains("threadIdx.x"));
    let mut k = kernel("free", &[], vec![store("nowhere", int(DType::I64, 0), float(DType::F32, 0.0))]);
    k.params.push(Param::Scalar { var: local("n"), dtype: DType::I64 });
    assert!(refuse(&k).contains("`nowhere` is not declared"));
}
