//! Control flow, calls between functions, tuples, external functions, broken tables.

use super::*;
use crate::builtin::*;

const INT: Type = Type::Int(Dim::Any);
const fn call(dst: Reg, callee: Callee, args: &'static [Operand]) -> Instr {
    Instr::Call { dst, callee, args }
}
const fn builtin(dst: Reg, builtin: &'static Builtin, args: &'static [Operand]) -> Instr {
    call(dst, Callee::Builtin(builtin), args)
}
use Operand::{Const, Imm, Out, Reg as R};

fn run(program: &'static Program, index: usize, args: &[Arg<'_>]) -> Result<Value, Error> {
    assert_eq!(program.verify(), Ok(()));
    run_unverified(program, index, args)
}

fn run_unverified(program: &'static Program, index: usize, args: &[Arg<'_>]) -> Result<Value, Error> {
    let mut arena = Arena::<256>::new();
    // SAFETY: the programs of the tests obey the rules.
    unsafe { State::new(program, &[], &mut arena) }.call(index, args, &mut Room::new())
}

/// A slice that lives as long as the process, and is not lost to leak checkers.
fn keep<T: Sync + 'static>(value: T) -> &'static [T] {
    static KEPT: std::sync::Mutex<std::vec::Vec<&(dyn core::any::Any + Sync)>> =
        std::sync::Mutex::new(std::vec::Vec::new());
    let kept: &'static [T; 1] = std::boxed::Box::leak(std::boxed::Box::new([value]));
    KEPT.lock().unwrap().push(kept);
    kept
}

#[test]
fn a_loop_counts() {
    // sum of 1..=n by If and Goto
    static FUNCTIONS: [Function; 1] = [function(
        "sum",
        &[Param { name: "n", ty: INT }],
        &[],
        &[
            builtin(1, &COPY, &[Imm(0)]),
            Instr::If { cond: R(0), otherwise: 5 },
            builtin(1, &ADD, &[R(1), R(0)]),
            builtin(0, &SUB, &[R(0), Imm(1)]),
            Instr::Goto(1),
            Instr::Ret(R(1)),
        ],
    )];
    static PROGRAM: Program = program(&FUNCTIONS, &[]);
    assert_eq!(run(&PROGRAM, 0, &[Arg::int(10)]), Ok(Value::Int(55)));
    assert_eq!(run(&PROGRAM, 0, &[Arg::int(0)]), Ok(Value::Int(0)));
}

#[test]
fn a_condition_may_be_a_tensor() {
    static FUNCTIONS: [Function; 1] = [function(
        "main",
        &[Param { name: "c", ty: Type::Any }],
        &[],
        &[Instr::If { cond: R(0), otherwise: 2 }, Instr::Ret(Imm(1)), Instr::Ret(Imm(2))],
    )];
    static PROGRAM: Program = program(&FUNCTIONS, &[]);
    for (args, expected) in [
        (Arg::input(&[true], &[]), Ok(Value::Int(1))),
        (Arg::input(&[0i8], &[1]), Ok(Value::Int(2))),
        (Arg::bool(false), Ok(Value::Int(2))),
        (Arg::float(1.0), Err(Error::Malformed { function: "main", rule: "a condition must be a truth value" })),
    ] {
        assert_eq!(run(&PROGRAM, 0, &[args]), expected);
    }
}

/// `twice(x, out)`: x + x by way of its own arena; `main`: twice(twice(x)) + x.
static TWICE: [Function; 2] = [
    Function {
        arena_bytes: 16,
        ..function(
            "twice",
            &[Param { name: "x", ty: F4_PARAM }],
            &[Param { name: "out", ty: F4_PARAM }],
            &[
                call(VOID, Callee::Kernel(0), &[R(0), R(0), Const(0)]),
                builtin(VOID, &COPY_TENSOR, &[Const(0), Out(0)]),
                Instr::Ret(Operand::None),
            ],
        )
    },
    Function {
        arena_bytes: 80,
        frame: FrameSize { registers: 24, ints: 11, pointers: 3, arena: 192 },
        ..function(
            "main",
            &[Param { name: "x", ty: F4_PARAM }],
            &[Param { name: "out", ty: F4_PARAM }],
            &[
                call(VOID, Callee::Function(0), &[R(0), Const(0)]),
                call(VOID, Callee::Function(0), &[Const(0), Const(1)]),
                call(VOID, Callee::Kernel(0), &[Const(1), R(0), Out(0)]),
                Instr::Ret(Operand::None),
            ],
        )
    },
];

#[test]
fn callees_have_their_own_windows() {
    static PROGRAM: Program =
        program(&VERIFIED, &[Constant::Arena { offset: 0, ty: F4 }, Constant::Arena { offset: 64, ty: F4 }]);
    let twice = Function { frame: TWICE[0].required_frame(&[]), ..TWICE[0] };
    static VERIFIED: [Function; 2] =
        [Function { frame: FrameSize { registers: 12, ints: 7, pointers: 3, arena: 64 }, ..TWICE[0] }, TWICE[1]];
    assert_eq!(PROGRAM.verify(), Ok(()));
    assert_eq!(twice.frame, FrameSize { registers: 12, ints: 7, pointers: 3, arena: 64 });
    assert_eq!(TWICE[1].required_frame(&[twice]), TWICE[1].frame);
    let (x, mut out) = ([1f32, 2.0, 3.0, 4.0], [0f32; 4]);
    let mut arena = Arena::<192>::new();
    // SAFETY: the program obeys the rules.
    let mut state = unsafe { State::new(&PROGRAM, &[], &mut arena) };
    let args = [Arg::input(&x, &[4]), Arg::output(&mut out, &[4])];
    assert_eq!(state.call(1, &args, &mut Storage::<24, 11, 3>::new()), Ok(Value::None));
    assert_eq!(out, [5.0, 10.0, 15.0, 20.0]);
}

#[test]
fn tuples_come_back_from_callees() {
    static FUNCTIONS: [Function; 2] = [
        function(
            "pair",
            &[Param { name: "a", ty: INT }],
            &[],
            &[builtin(1, &MUL, &[R(0), Imm(10)]), builtin(2, &MAKE_TUPLE, &[Imm(3), R(0), R(1)]), Instr::Ret(R(2))],
        ),
        function(
            "main",
            &[],
            &[],
            &[
                call(0, Callee::Function(0), &[Imm(4)]),
                call(3, Callee::Function(0), &[Imm(5)]),
                builtin(6, &TUPLE_GETITEM, &[R(0), Imm(1)]),
                builtin(7, &TUPLE_GETITEM, &[R(3), Imm(0)]),
                builtin(8, &MAKE_TUPLE, &[Imm(9), R(6), R(7)]),
                Instr::Ret(R(8)),
            ],
        ),
    ];
    static PROGRAM: Program = program(&FUNCTIONS, &[]);
    let mut arena = Arena::<0>::new();
    let mut room = Room::new();
    // SAFETY: the program obeys the rules.
    let tuple = unsafe { State::new(&PROGRAM, &[], &mut arena) }.call(1, &[], &mut room).unwrap();
    assert_eq!(room.items(tuple), [Value::Int(40), Value::Int(5)]);
}

#[test]
fn external_functions_get_values() {
    fn negate(args: &[Value]) -> Result<Value, Error> {
        match args {
            [Value::Int(x)] => Ok(Value::Int(-x)),
            _ => Err(Error::Extern { name: "negate", message: "takes an integer" }),
        }
    }
    static FUNCTIONS: [Function; 1] = [function(
        "main",
        &[Param { name: "x", ty: Type::Any }],
        &[],
        &[call(1, Callee::Extern(0), &[R(0)]), Instr::Ret(R(1))],
    )];
    static PROGRAM: Program =
        Program { externs: &[Extern { name: "negate", call: negate }], ..program(&FUNCTIONS, &[]) };
    assert_eq!(run(&PROGRAM, 0, &[Arg::int(3)]), Ok(Value::Int(-3)));
    assert_eq!(
        run(&PROGRAM, 0, &[Arg::bool(true)]),
        Err(Error::Extern { name: "negate", message: "takes an integer" })
    );
}

#[test]
fn broken_tables_are_refused() {
    static FUNCTIONS: [Function; 8] = [
        function("recursive", &[], &[], &[call(VOID, Callee::Function(0), &[]), Instr::Ret(Imm(0))]),
        function("end", &[], &[], &[]),
        function("jump", &[], &[], &[Instr::Goto(9)]),
        function("register", &[], &[], &[Instr::Ret(R(12))]),
        function("constant", &[], &[], &[Instr::Ret(Const(1))]),
        function("kernel", &[], &[], &[call(VOID, Callee::Kernel(7), &[]), Instr::Ret(Imm(0))]),
        function("operand", &[], &[], &[builtin(0, &ADD, &[Imm(3)]), Instr::Ret(R(0))]),
        function("slot", &[], &[], &[builtin(0, &MAKE_SHAPE, &[Imm(3), Imm(1), Imm(2)]), Instr::Ret(R(0))]),
    ];
    static PROGRAM: Program = program(&FUNCTIONS, &[Constant::Int(1)]);
    for (i, one) in FUNCTIONS.iter().enumerate() {
        let refused = |found| matches!(found, Err(Error::Malformed { function, .. }) if function == one.name);
        assert!(refused(run_unverified(&PROGRAM, i, &[]).map(|_| ())), "{}", one.name);
        // A slot is an operand like any other: only the call sees it.
        let alone = keep(*one);
        assert_eq!(refused(Program { functions: alone, ..PROGRAM }.verify()), i < 7, "{}", one.name);
    }
    assert!(run_unverified(&PROGRAM, 8, &[]).is_err());
}

#[test]
fn the_verifier_knows_memory_and_frames() {
    const BASE: Function = function("f", &[], &[], &[Instr::Ret(Const(0))]);
    let verify = |one: Function, constant: Constant, weight_bytes| {
        let functions = keep(one);
        let constants = keep(constant);
        match (Program { weight_bytes, ..program(functions, constants) }).verify() {
            Err(Error::Malformed { rule, .. }) => rule,
            _ => "",
        }
    };
    let weight = |offset| Constant::Weight { offset, ty: F4 };
    let arena = |offset| Constant::Arena { offset, ty: F4 };
    let leaves = "a tensor leaves the arena or the weights";
    assert_eq!(verify(BASE, weight(64), 80), "");
    assert_eq!(verify(BASE, weight(64), 79), leaves);
    assert_eq!(verify(BASE, weight(usize::MAX - 63), 80), leaves);
    assert_eq!(verify(BASE, weight(16), 80), "a tensor is not aligned");
    let frame = FrameSize { arena: 64, ..BASE.frame };
    assert_eq!(verify(Function { arena_bytes: 16, frame, ..BASE }, arena(0), 0), "");
    assert_eq!(verify(Function { arena_bytes: 15, frame, ..BASE }, arena(0), 0), leaves);
    assert_eq!(verify(Function { arena_bytes: 16, ..BASE }, arena(0), 0), "the frame is smaller than required");
    assert_eq!(verify(BASE, Constant::DType(DType::F32), 0), "a type is not a value");
}

#[test]
fn integer_arithmetic_rounds_down_and_is_checked() {
    static FUNCTIONS: [Function; 3] = [
        function(
            "div",
            &[Param { name: "a", ty: INT }, Param { name: "b", ty: INT }],
            &[],
            &[builtin(2, &FLOORDIV, &[R(0), R(1)]), Instr::Ret(R(2))],
        ),
        function(
            "mod",
            &[Param { name: "a", ty: INT }, Param { name: "b", ty: INT }],
            &[],
            &[builtin(2, &FLOORMOD, &[R(0), R(1)]), Instr::Ret(R(2))],
        ),
        function(
            "mul",
            &[Param { name: "a", ty: INT }, Param { name: "b", ty: INT }],
            &[],
            &[builtin(2, &MUL, &[R(0), R(1)]), Instr::Ret(R(2))],
        ),
    ];
    static PROGRAM: Program = program(&FUNCTIONS, &[]);
    for (a, b, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (-6, 2, -3, 0)] {
        assert_eq!(run(&PROGRAM, 0, &[Arg::int(a), Arg::int(b)]), Ok(Value::Int(quotient)));
        assert_eq!(run(&PROGRAM, 1, &[Arg::int(a), Arg::int(b)]), Ok(Value::Int(rest)));
    }
    for (function, a, b, operation) in
        [(0, 1, 0, "floordiv"), (1, 1, 0, "floormod"), (0, i64::MIN, -1, "floordiv"), (2, i64::MAX, 2, "mul")]
    {
        assert_eq!(run(&PROGRAM, function, &[Arg::int(a), Arg::int(b)]), Err(Error::Arithmetic { operation }));
    }
}
