//! Tensors that lie in the overflow store, and tensors that calls return.

use super::*;
use crate::builtin::*;
use Operand::{Const, Imm, Reg as R};

const fn builtin(dst: Reg, builtin: &'static Builtin, args: &'static [Operand]) -> Instr {
    Instr::Call { dst, callee: Callee::Builtin(builtin), args }
}

const ANY: &[Param] = &[Param { name: "x", ty: Type::Any }];

static FUNCTIONS: [Function; 2] = [
    // Two copies of x, one as a vector: x.shape[0] is 2.
    function(
        "inner",
        ANY,
        &[],
        &[
            builtin(1, &SHAPE_OF, &[R(0)]),
            builtin(2, &DIM, &[R(1), Imm(1)]),
            builtin(3, &MUL, &[R(2), Imm(2)]),
            builtin(4, &MAKE_SHAPE, &[Imm(0), R(3)]),
            builtin(5, &ALLOC_OVERFLOW, &[R(4), Const(0), Const(1), Const(2)]),
            builtin(6, &RESHAPE, &[R(0), R(4)]),
            builtin(VOID, &COPY_TENSOR, &[R(6), R(5)]),
            builtin(7, &CLONE_TENSOR, &[R(0), Const(1), Const(2)]),
            builtin(8, &MAKE_TUPLE, &[Imm(9), R(5), R(7)]),
            Instr::Ret(R(8)),
        ],
    ),
    // The first of them, and a copy in the place of the second.
    Function {
        frame: FrameSize { registers: 52, ints: 24, pointers: 4, arena: 0 },
        ..function(
            "main",
            ANY,
            &[],
            &[
                Instr::Call { dst: 1, callee: Callee::Function(0), args: &[R(0), Imm(0)] },
                builtin(VOID, &FILL, &[R(3), Imm(0xCB)]),
                builtin(VOID, &FREE_OVERFLOW, &[R(3)]),
                builtin(4, &CLONE_TENSOR, &[R(2), Const(1), Const(2)]),
                builtin(5, &MAKE_TUPLE, &[Imm(6), R(2), R(4)]),
                Instr::Ret(R(5)),
            ],
        )
    },
];
static PROGRAM: Program = program(
    &FUNCTIONS,
    &[
        Constant::DType(DType::F32),
        Constant::Param(Param { name: "copy", ty: Type::Any }),
        Constant::Param(Param { name: "n", ty: Type::Any }),
    ],
);

#[test]
fn a_call_returns_tensors_whose_shapes_it_knows() {
    assert_eq!(PROGRAM.verify(), Ok(()));
    let mut arena = Arena::<0>::new();
    // SAFETY: the program obeys the rules.
    let mut state = unsafe { State::new(&PROGRAM, &[], &mut arena) };
    for n in [0usize, 1, 40, 3, 0, 40] {
        let x: std::vec::Vec<f32> = (0..2 * n).map(|i| i as f32).collect();
        let mut storage = Storage::<52, 24, 4>::new();
        let value = state.call(1, &[Arg::input(&x, &[2, dim(n)])], &mut storage);
        if cfg!(not(feature = "alloc")) && n > 0 {
            let expected = Error::Unbounded { tensor: "copy", symbol: "n" };
            assert_eq!(value, Err(expected));
            assert!(std::format!("{expected}").contains("tir_var_upper_bound"));
            continue;
        }
        let value = value.unwrap();
        // SAFETY: the call gave it, and the state is not called before it is used for the last time.
        unsafe {
            let one = storage.view::<f32, 1>(value, 0, "one").unwrap();
            let two = storage.view::<f32, 1>(value, 1, "two").unwrap();
            assert_eq!((one.shape(), two.shape()), ([2 * n], [2 * n]));
            assert_eq!((one.data(), two.data()), (&x[..], &x[..]));
            let found = storage.view::<f32, 2>(value, 0, "one").map(|v| v.shape());
            assert_eq!(found, Err(Error::WrongRank { argument: "one", expected: 2, found: 1 }));
            let found = storage.view::<i32, 1>(value, 0, "one").map(|v| v.shape());
            assert_eq!(found, Err(Error::WrongDType { argument: "one", expected: DType::I32, found: DType::F32 }));
            assert!(storage.view::<f32, 1>(value, 2, "three").is_err());
        }
    }
    if cfg!(feature = "alloc") {
        // Two blocks, as large as the largest call needed.
        assert_eq!(state.overflow_bytes(), 2 * 320);
    }
}

/// A block of `n * n` elements.
static SQUARE: Program = program(
    &[function(
        "square",
        ANY,
        &[],
        &[
            builtin(1, &SHAPE_OF, &[R(0)]),
            builtin(2, &DIM, &[R(1), Imm(1)]),
            builtin(3, &MUL, &[R(2), R(2)]),
            builtin(4, &MAKE_SHAPE, &[Imm(0), R(3)]),
            builtin(5, &ALLOC_OVERFLOW, &[R(4), Const(0), Const(1), Const(2)]),
            Instr::Ret(R(5)),
        ],
    )],
    PROGRAM.constants,
);

#[test]
fn no_memory_is_an_error() {
    let mut arena = Arena::<0>::new();
    // SAFETY: the program obeys the rules.
    let mut state = unsafe { State::new(&SQUARE, &[], &mut arena) };
    let shape = [0, 3 << 29];
    let found = state.call(0, &[Arg::input::<f32>(&[], &shape)], &mut Room::new());
    let (tensor, symbol, bytes) = ("copy", "n", 9 << 60);
    let expected = match cfg!(feature = "alloc") {
        true => Error::OutOfMemory { tensor, symbol, bytes },
        false => Error::Unbounded { tensor, symbol },
    };
    assert_eq!(found, Err(expected));
}
