use super::*;
use crate::dtype::DType;
use crate::lowered::{Expr, ExprKind, Kernel, Local, LoopKind, Param, Space, Stmt};
use crate::prim::{BinOp, CmpOp, Intrinsic};

const V4: DType = DType::F32.with_lanes(4);

fn l(name: &str) -> Local {
    Local(name.into())
}

fn e(dtype: DType, kind: ExprKind) -> Expr {
    Expr { dtype, kind }
}

fn int(v: i64) -> Expr {
    e(DType::I64, ExprKind::Int(v))
}

fn var(name: &str) -> Expr {
    e(DType::I64, ExprKind::Var(l(name)))
}

fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    e(a.dtype, ExprKind::Binary(op, Box::new(a), Box::new(b)))
}

fn load(dtype: DType, pointer: &str, index: Expr) -> Expr {
    e(dtype, ExprKind::Load { pointer: l(pointer), index: Box::new(index), aligned: dtype.lanes > 1 })
}

fn store(pointer: &str, index: Expr, value: Expr) -> Stmt {
    let aligned = value.dtype.lanes > 1;
    Stmt::Store { pointer: l(pointer), index, value, aligned }
}

fn loop_to(name: &str, n: i64, body: Vec<Stmt>) -> Stmt {
    Stmt::For { var: l(name), dtype: DType::I64, min: int(0), extent: int(n), kind: LoopKind::Serial, body }
}

fn pointer(name: &str, written: bool) -> Param {
    Param::Pointer { var: l(name), dtype: DType::F32, written, noalias: true }
}

fn kernel(body: Vec<Stmt>) -> Kernel {
    Kernel {
        name: "k".into(),
        origin: String::new(),
        params: vec![pointer("x", false), pointer("y", true)],
        body,
        workspace: 128,
        messages: vec!["y must be long".to_string()],
    }
}

fn call(k: &Kernel, x: &[f32], n: i64) -> Result<Vec<f32>, Diag> {
    let mut args = [
        TensorBuf::from_f32(&[i64::try_from(x.len()).unwrap()], x).unwrap(),
        TensorBuf::zeros(DType::F32, &[n]).unwrap(),
    ];
    run_kernel(k, &mut args)?;
    Ok(args[1].to_f32())
}

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

#[test]
fn vectors_arrays_and_workspace() {
    let two = e(V4, ExprKind::Broadcast(Box::new(e(DType::F32, ExprKind::Float(2.0)))));
    let k = kernel(vec![
        Stmt::Array { var: l("acc"), dtype: V4, len: 2, space: Space::Local },
        Stmt::Workspace { var: l("w"), dtype: DType::F32, offset: 64 },
        loop_to(
            "i",
            2,
            vec![
                store("acc", var("i"), bin(BinOp::Mul, load(V4, "x", bin(BinOp::Mul, var("i"), int(4))), two)),
                store("w", bin(BinOp::Mul, var("i"), int(4)), load(V4, "acc", var("i"))),
            ],
        ),
        loop_to("j", 8, vec![store("y", bin(BinOp::Sub, int(7), var("j")), load(DType::F32, "w", var("j")))]),
    ]);
    let want: Vec<f32> = ramp(8).iter().rev().map(|v| v * 2.0).collect();
    assert_eq!(call(&k, &ramp(8), 8).unwrap(), want);
    assert!(call(&k, &ramp(7), 8).unwrap_err().message.contains("element 4 of `x` is out of bounds (4 of 7)"));
    assert!(call(&k, &ramp(8), 7).unwrap_err().message.contains("element 7 of `y` is out of bounds"));
}

#[test]
fn gathers_choices_and_intrinsics() {
    let v4 = DType::I64.with_lanes(4);
    let index = e(v4, ExprKind::Ramp(Box::new(int(6)), Box::new(int(-2))));
    let gathered = e(V4, ExprKind::Gather { pointer: l("x"), index: Box::new(index.clone()) });
    let limit = e(v4, ExprKind::Broadcast(Box::new(int(3))));
    let mask = e(DType::BOOL.with_lanes(4), ExprKind::Cmp(CmpOp::Lt, Box::new(index), Box::new(limit)));
    let root = e(V4, ExprKind::Call(Intrinsic::Sqrt, vec![gathered.clone()]));
    let chosen = e(V4, ExprKind::Select(Box::new(mask), Box::new(root), Box::new(gathered)));
    let k = kernel(vec![store("y", int(0), chosen)]);
    assert_eq!(call(&k, &ramp(8), 4).unwrap(), [6.0, 4.0, 2f32.sqrt(), 0.0]);
    // The side not chosen is not read.
    let inside = e(DType::BOOL, ExprKind::Cmp(CmpOp::Lt, Box::new(var("i")), Box::new(int(3))));
    let zero = Box::new(e(DType::F32, ExprKind::Float(0.0)));
    let value = e(DType::F32, ExprKind::Select(Box::new(inside), Box::new(load(DType::F32, "x", var("i"))), zero));
    let k = kernel(vec![loop_to("i", 4, vec![store("y", var("i"), value)])]);
    assert_eq!(call(&k, &ramp(3), 4).unwrap(), [0.0, 1.0, 2.0, 0.0]);
}

#[test]
fn violations() {
    let one = || e(DType::F32, ExprKind::Float(1.0));
    let message = |body: Vec<Stmt>| call(&kernel(body), &ramp(8), 8).unwrap_err().message;
    assert!(message(vec![store("x", int(0), one())]).contains("a store through `x`, which is not declared written"));
    assert!(message(vec![store("z", int(0), one())]).contains("`z` is no pointer"));
    let four = e(V4, ExprKind::Broadcast(Box::new(one())));
    assert!(message(vec![store("y", int(2), four)]).contains("declared aligned is 2 elements off"));
    let no = e(DType::BOOL, ExprKind::Int(0));
    assert_eq!(message(vec![Stmt::Assert { cond: no, code: 1 }]), "assertion failed: y must be long");
    let beyond = vec![Stmt::Workspace { var: l("w"), dtype: DType::F32, offset: 64 }, store("w", int(16), one())];
    assert!(message(beyond).contains("element 16 of `w` is out of bounds"));
    let threads = Stmt::For {
        var: l("t"),
        dtype: DType::I64,
        min: int(0),
        extent: int(4),
        kind: LoopKind::Thread("threadIdx.x".into()),
        body: vec![Stmt::Barrier(Space::Shared)],
    };
    assert!(message(vec![threads]).contains("barrier"));
}
