//! Symbolic shapes.

use super::*;
use crate::builtin::*;
use Operand::{Const, Imm, Out, Reg as R};

const fn builtin(dst: Reg, builtin: &'static Builtin, args: &'static [Operand]) -> Instr {
    Instr::Call { dst, callee: Callee::Builtin(builtin), args }
}
const fn f32s(shape: &'static [Dim]) -> Type {
    Type::Tensor { dtype: Some(DType::F32), shape: Some(shape) }
}

/// `main(x: (n, 2), out: (2 * n,))`: out = 4 * x, with a temporary in the arena.
static FUNCTIONS: [Function; 1] = [Function {
    workspace_bytes: 64,
    frame: FrameSize { registers: 12, ints: 7, pointers: 3, arena: 64 },
    ..function(
        "main",
        &[Param { name: "x", ty: f32s(&[Dim::Bind(2, "n"), Dim::Imm(2)]) }],
        &[Param { name: "out", ty: f32s(&[Dim::Any]) }],
        &[
            builtin(3, &MUL, &[R(2), Imm(2)]),
            builtin(VOID, &MATCH_CAST, &[Out(0), Const(0)]),
            builtin(4, &MAKE_SHAPE, &[Imm(0), R(3)]),
            builtin(5, &ALLOC_TENSOR, &[Imm(64), R(4), Const(1)]),
            builtin(6, &RESHAPE, &[R(0), R(4)]),
            Instr::Call { dst: VOID, callee: Callee::Kernel(1), args: &[R(6), R(5), R(3)] },
            Instr::Call { dst: VOID, callee: Callee::Kernel(1), args: &[R(5), Out(0), R(3)] },
            builtin(7, &DIM, &[R(5), Imm(0)]),
            Instr::Ret(R(7)),
        ],
    )
}];
static PROGRAM: Program = program(
    &FUNCTIONS,
    &[Constant::Param(Param { name: "out", ty: f32s(&[Dim::Same(3, "n * 2")]) }), Constant::DType(DType::F32)],
);

fn run(arena: &mut Arena<256>, x: &[f32], n: usize, out: &mut [f32]) -> Result<Value, Error> {
    let (x_shape, out_shape) = ([dim(n), 2], [dim(out.len())]);
    assert_eq!(PROGRAM.verify(), Ok(()));
    // SAFETY: the program obeys the rules.
    let mut state = unsafe { State::new(&PROGRAM, &[], arena) };
    state.call(0, &[Arg::input(x, &x_shape), Arg::output(out, &out_shape)], &mut Storage::<12, 7, 3>::new())
}

#[test]
fn shapes_are_computed() {
    let mut arena = Arena::new();
    for n in 1..=4 {
        let x: std::vec::Vec<f32> = (0..2 * n).map(|i| i as f32).collect();
        let mut out = std::vec![0f32; 2 * n];
        assert_eq!(run(&mut arena, &x, n, &mut out), Ok(Value::Int(2 * n as i64)));
        assert!(out.iter().zip(&x).all(|(y, x)| *y == 4.0 * x));
    }
}

#[test]
fn a_wrong_output_is_refused_by_expression() {
    let found = run(&mut Arena::new(), &[0.0; 4], 2, &mut [0.0; 3]);
    let expected = Error::WrongSymbol { argument: "out", axis: 0, symbol: "n * 2", bound: 4, found: 3 };
    assert_eq!(found, Err(expected));
}

#[test]
fn assertions_of_kernels_are_errors() {
    let found = run(&mut Arena::new(), &[], 0, &mut []);
    assert_eq!(found, Err(Error::Kernel { kernel: "double", message: "n must be positive" }));
}

#[test]
fn an_arena_that_is_too_small_is_an_error() {
    // 64 + 8 * n bytes and, behind the next multiple of 64, 64 bytes of workspace.
    let n = 17;
    let found = run(&mut Arena::new(), &[0.0; 34], n, &mut [0.0; 34]);
    assert_eq!(found, Err(Error::ArenaTooSmall { needed: 320, available: 256 }));
    let n = 25;
    let found = run(&mut Arena::new(), &[0.0; 50], n, &mut [0.0; 50]);
    assert_eq!(found, Err(Error::ArenaTooSmall { needed: 264, available: 256 }));
}

#[test]
fn shapes_come_from_tensors_and_stay_in_their_frame() {
    static FUNCTIONS: [Function; 3] = [
        // reshape(x, s) -> view with the shape that `s` holds
        function(
            "to_shape",
            &[Param { name: "x", ty: Type::Any }, Param { name: "s", ty: Type::Any }],
            &[],
            &[builtin(2, &TENSOR_TO_SHAPE, &[Imm(1), R(1)]), builtin(3, &RESHAPE, &[R(0), R(2)]), Instr::Ret(R(3))],
        ),
        function(
            "caller",
            &[Param { name: "x", ty: Type::Any }, Param { name: "s", ty: Type::Any }],
            &[],
            &[Instr::Call { dst: 2, callee: Callee::Function(0), args: &[R(0), R(1)] }, Instr::Ret(R(2))],
        ),
        // the second half of x, as bytes
        function(
            "view",
            &[Param { name: "x", ty: Type::Any }],
            &[],
            &[
                builtin(1, &VIEW, &[R(0), Imm(8), Const(0), Const(1)]),
                builtin(2, &SHAPE_OF, &[R(1)]),
                builtin(3, &DIM, &[R(2), Imm(0)]),
                builtin(4, &READ_SCALAR, &[R(1)]),
                builtin(5, &ADD, &[R(3), R(4)]),
                Instr::Ret(R(5)),
            ],
        ),
    ];
    static PROGRAM: Program = program(&FUNCTIONS, &[Constant::Shape(&[8]), Constant::DType(DType::U8)]);
    let mut arena = Arena::<0>::new();
    // SAFETY: the program obeys the rules.
    let mut state = unsafe { State::new(&PROGRAM, &[], &mut arena) };
    let x = [1u32, 2, 3, 4];
    let mut room = Room::new();
    let args = [Arg::input(&x, &[4]), Arg::input(&[2i64, 2], &[2])];
    let Ok(Value::Tensor(tensor)) = state.call(0, &args, &mut room) else { panic!("no tensor") };
    // SAFETY: `x` and `room` are alive.
    let (shape, data) = unsafe { (tensor.shape().dims(), tensor.as_slice::<u32>()) };
    assert_eq!((shape, data), (&[2i64, 2][..], Some(&x[..])));
    // SAFETY: as above.
    assert_eq!(unsafe { tensor.as_slice::<i32>() }, None);

    let found = state.call(1, &args, &mut Room::new());
    let rule = "a returned shape lies in the callee's frame";
    assert_eq!(found, Err(Error::Malformed { function: "caller", rule }));
    let bad = [Arg::input(&x, &[4]), Arg::input(&[2i64, 3], &[2])];
    assert!(matches!(state.call(0, &bad, &mut Room::new()), Err(Error::WrongLength { argument: "reshape", .. })));

    assert_eq!(state.call(2, &[Arg::input(&x, &[4])], &mut Room::new()), Ok(Value::Int(8 + 3)));
    assert!(state.call(2, &[Arg::input(&x[..3], &[3])], &mut Room::new()).is_err());
}

#[test]
fn symbols_are_never_below_zero() {
    static CAST: Param = Param { name: "s", ty: Type::Shape(Some(&[Dim::Bind(3, "n")])) };
    static FUNCTIONS: [Function; 1] = [function(
        "cast",
        &[Param { name: "t", ty: Type::Any }],
        &[],
        &[builtin(1, &TENSOR_TO_SHAPE, &[Imm(0), R(0)]), builtin(2, &MATCH_CAST, &[R(1), Const(0)]), Instr::Ret(R(3))],
    )];
    static PROGRAM: Program = program(&FUNCTIONS, &[Constant::Param(CAST)]);
    let mut arena = Arena::<0>::new();
    // SAFETY: the program obeys the rules.
    let mut state = unsafe { State::new(&PROGRAM, &[], &mut arena) };
    for n in [0i64, 3, -1] {
        let found = state.call(0, &[Arg::input(&[n], &[1])], &mut Room::new());
        let wanted = if n < 0 { Err(Error::BadShape { argument: "s" }) } else { Ok(Value::Int(n)) };
        assert_eq!(found, wanted);
    }
}

#[test]
fn shapes_become_tensors_and_bounds_hold() {
    static FUNCTIONS: [Function; 1] = [Function {
        workspace_bytes: 0,
        frame: FrameSize { registers: 12, ints: 4, pointers: 0, arena: 0 },
        ..function(
            "main",
            &[Param { name: "x", ty: f32s(&[Dim::Bind(3, "n"), Dim::Bind(4, "m")]) }],
            &[
                Param { name: "shape", ty: Type::Tensor { dtype: Some(DType::I64), shape: Some(&[Dim::Imm(2)]) } },
                Param { name: "out", ty: f32s(&[Dim::Imm(2)]) },
            ],
            &[
                builtin(VOID, &AT_MOST, &[R(3), Imm(5), Const(0)]),
                builtin(5, &SHAPE_OF, &[R(0)]),
                builtin(VOID, &SHAPE_TO_TENSOR, &[R(5), Out(0)]),
                builtin(VOID, &FILL, &[Out(1), Imm(0xCB)]),
                Instr::Ret(Operand::None),
            ],
        )
    }];
    static PROGRAM: Program = program(&FUNCTIONS, &[Constant::Param(Param { name: "n", ty: Type::Any })]);
    assert_eq!(PROGRAM.verify(), Ok(()));
    let call = |n: usize| {
        let (mut arena, x, mut shape, mut out) = (Arena::<0>::new(), [0f32; 12], [0i64; 2], [0f32; 2]);
        // SAFETY: the program obeys the rules.
        let mut state = unsafe { State::new(&PROGRAM, &[], &mut arena) };
        let dims = [dim(n), 2];
        let args = [Arg::input(&x[..2 * n], &dims), Arg::output(&mut shape, &[2]), Arg::output(&mut out, &[2])];
        let result = state.call(0, &args, &mut Storage::<12, 4, 0>::new());
        result.map(|_| (shape, out.map(f32::to_bits)))
    };
    assert_eq!(call(5), Ok(([5, 2], [0xCBCB_CBCB; 2])));
    assert_eq!(call(6), Err(Error::AboveBound { symbol: "n", most: 5, found: 6 }));
}

#[test]
fn extents_are_not_negative() {
    static FUNCTIONS: [Function; 1] = [function(
        "main",
        &[Param { name: "s", ty: Type::Any }],
        &[],
        &[
            builtin(1, &TENSOR_TO_SHAPE, &[Imm(0), R(0)]),
            builtin(VOID, &MATCH_CAST, &[R(1), Const(0)]),
            Instr::Ret(R(3)),
        ],
    )];
    static PROGRAM: Program = program(
        &FUNCTIONS,
        &[Constant::Param(Param { name: "t", ty: Type::Shape(Some(&[Dim::Bind(2, "n"), Dim::Bind(3, "m")])) })],
    );
    let mut arena = Arena::<0>::new();
    // SAFETY: the program obeys the rules.
    let mut state = unsafe { State::new(&PROGRAM, &[], &mut arena) };
    let mut call = |s: [i64; 2]| state.call(0, &[Arg::input(&s, &[2])], &mut Room::new());
    assert_eq!(call([3, 0]), Ok(Value::Int(0)));
    assert_eq!(call([3, -1]), Err(Error::BadShape { argument: "t" }));
}
