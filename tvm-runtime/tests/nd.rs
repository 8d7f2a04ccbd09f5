//! ndarray views in, arrays out.
#![cfg(feature = "ndarray")]

use ndarray::{Array2, arr2};
use tvm_runtime::*;

const TYPE: Type = Type::Tensor { dtype: Some(DType::F32), shape: Some(&[Dim::Bind(2, "n"), Dim::Imm(3)]) };

/// Copies `x` to `out`.
static PROGRAM: Program = Program {
    functions: &[Function {
        name: "main",
        params: &[Param { name: "x", ty: TYPE }],
        outs: &[Param { name: "out", ty: TYPE }],
        registers: 3,
        heap: 0,
        arena_bytes: 0,
        workspace_bytes: 0,
        frame: FrameSize { registers: 3, ints: 0, pointers: 0, arena: 0 },
        code: &[
            Instr::Call {
                dst: VOID,
                callee: Callee::Builtin(&builtin::COPY_TENSOR),
                args: &[Operand::Reg(0), Operand::Out(0)],
            },
            Instr::Ret(Operand::None),
        ],
    }],
    constants: &[],
    kernels: &[],
    kernel_names: &[],
    externs: &[],
    messages: &[],
    weight_bytes: 0,
};

#[test]
fn arrays_go_in_and_out() {
    let mut arena = Arena::<0>::new();
    // SAFETY: the program above obeys the rules.
    let mut state = unsafe { State::new(&PROGRAM, &[], &mut arena) };
    let x = arr2(&[[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let shape = nd::shape::<2, _, _>("x", &x).unwrap();
    let mut out = Array2::<f32>::zeros((2, 3));
    let args = [nd::input("x", &x, &shape).unwrap(), nd::output("out", &mut out, &shape).unwrap()];
    assert_eq!(state.call(0, &args, &mut Storage::<3, 0, 0>::new()), Ok(Value::None));
    assert_eq!(out, x);
    let made = nd::array("out", (2, 3), x.iter().copied().collect()).unwrap();
    assert_eq!(made, x);
}

#[test]
fn what_is_not_contiguous_or_not_of_the_rank_is_refused() {
    let x = arr2(&[[1f32, 2.0], [3.0, 4.0]]);
    let shape = nd::shape::<2, _, _>("x", &x).unwrap();
    assert_eq!(nd::input("x", &x.t(), &shape).unwrap_err(), Error::NotContiguous { argument: "x" });
    assert_eq!(nd::shape::<3, _, _>("x", &x), Err(Error::WrongRank { argument: "x", expected: 3, found: 2 }));
    let found = nd::array("x", (2, 3), std::vec![1f32; 4]);
    assert_eq!(found, Err(Error::WrongLength { argument: "x", expected: 6, found: 4 }));
}
