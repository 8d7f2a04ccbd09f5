//! Programs written by hand, with kernels in Rust.

mod calls;
mod dynamic;
mod entry;
mod half;
mod narrow;
mod overflow;
mod text;

use crate::*;
use core::ffi::c_void;

/// 64 zero bytes at the alignment of weights.
#[repr(align(64))]
pub(super) struct Aligned<T>(pub(super) T);

pub(super) const F4: TensorType = TensorType { dtype: DType::F32, shape: &[4] };
pub(super) const F4_PARAM: Type = Type::Tensor { dtype: Some(DType::F32), shape: Some(&[Dim::Imm(4)]) };

/// `out[i] = a[i] + b[i]` for 4 floats.
pub(super) unsafe extern "C" fn add4(args: *const *mut c_void, _: *const i64, _: *const Context) -> i32 {
    // SAFETY: the tests pass three tensors of 4 floats.
    unsafe {
        for i in 0..4 {
            let (a, b, out) = ((*args).cast::<f32>(), (*args.add(1)).cast::<f32>(), (*args.add(2)).cast::<f32>());
            out.add(i).write(a.add(i).read() + b.add(i).read());
        }
    }
    0
}

/// `out[i] = 2 * a[i]` for `dims[0]` floats, by way of the workspace; message 2 if there are none.
pub(super) unsafe extern "C" fn double(args: *const *mut c_void, dims: *const i64, ctx: *const Context) -> i32 {
    // SAFETY: the tests pass two tensors of `dims[0]` floats and as much workspace.
    unsafe {
        let n = *dims as usize;
        if n == 0 {
            return 2;
        }
        let (a, out, scratch) = ((*args).cast::<f32>(), (*args.add(1)).cast::<f32>(), (*ctx).workspace.cast::<f32>());
        assert_eq!(scratch.addr() % ALIGN, 0);
        assert!((*ctx).workspace_bytes >= n * 4);
        scratch.copy_from_nonoverlapping(a, n);
        for i in 0..n {
            out.add(i).write(2.0 * scratch.add(i).read());
        }
    }
    0
}

/// Program with the kernels `add4` and `double`.
pub(super) const fn program(functions: &'static [Function], constants: &'static [Constant]) -> Program {
    Program {
        functions,
        constants,
        kernels: &[KernelTable { level: IsaLevel::Baseline, kernels: &[add4, double] }],
        kernel_names: &["add4", "double"],
        externs: &[],
        messages: &["never", "n must be positive"],
        weight_bytes: 0,
    }
}

/// Function without arena; `frame` is generous.
pub(super) const fn function(
    name: &'static str,
    params: &'static [Param],
    outs: &'static [Param],
    code: &'static [Instr],
) -> Function {
    Function {
        name,
        params,
        outs,
        registers: 12,
        heap: 4,
        arena_bytes: 0,
        workspace_bytes: 0,
        frame: FrameSize { registers: 40, ints: 20, pointers: 4, arena: 0 },
        code,
    }
}

pub(super) type Room = Storage<40, 20, 4>;

#[test]
fn static_program_runs_kernels_on_constants() {
    // out = (x + w) + x, the sum in the arena.
    static FUNCTIONS: [Function; 1] = [Function {
        registers: 2,
        heap: 0,
        arena_bytes: 16,
        frame: FrameSize { registers: 2, ints: 3, pointers: 3, arena: 64 },
        ..function(
            "main",
            &[Param { name: "x", ty: F4_PARAM }],
            &[Param { name: "out", ty: F4_PARAM }],
            &[
                Instr::Call {
                    dst: VOID,
                    callee: Callee::Kernel(0),
                    args: &[Operand::Reg(0), Operand::Const(0), Operand::Const(1)],
                },
                Instr::Call {
                    dst: VOID,
                    callee: Callee::Kernel(0),
                    args: &[Operand::Const(1), Operand::Reg(0), Operand::Out(0)],
                },
                Instr::Ret(Operand::None),
            ],
        )
    }];
    static PROGRAM: Program = Program {
        weight_bytes: 16,
        ..program(&FUNCTIONS, &[Constant::Weight { offset: 0, ty: F4 }, Constant::Arena { offset: 0, ty: F4 }])
    };
    assert_eq!(FUNCTIONS[0].required_frame(&[]), FUNCTIONS[0].frame);
    let mut weights = Aligned([0u8; 16]);
    for (bytes, value) in weights.0.chunks_exact_mut(4).zip([1f32, 2.0, 3.0, 4.0]) {
        bytes.copy_from_slice(&value.to_ne_bytes());
    }
    let mut arena = Arena::<64>::new();
    // SAFETY: the program above obeys the rules.
    let mut state = unsafe { State::new(&PROGRAM, &weights.0, &mut arena) };
    for scale in [1f32, 10.0] {
        let (x, mut out) = ([scale; 4], [0f32; 4]);
        let args = [Arg::input(&x, &[4]), Arg::output(&mut out, &[4])];
        assert_eq!(state.call(0, &args, &mut Storage::<2, 3, 3>::new()), Ok(Value::None));
        assert_eq!(out, [1.0, 2.0, 3.0, 4.0].map(|w| w + 2.0 * scale));
    }
    let mut small = Arena::<63>::new();
    // SAFETY: as above.
    let mut state = unsafe { State::new(&PROGRAM, &weights.0, &mut small) };
    let (x, mut out) = ([0f32; 4], [0f32; 4]);
    let args = [Arg::input(&x, &[4]), Arg::output(&mut out, &[4])];
    assert_eq!(
        state.call(0, &args, &mut Storage::<2, 3, 3>::new()),
        Err(Error::ArenaTooSmall { needed: 64, available: 63 })
    );
    assert_eq!(state.call(0, &args, &mut Storage::<2, 3, 2>::new()), Err(Error::StorageTooSmall));
}

#[test]
fn weights_are_compared_with_the_program() {
    static FUNCTIONS: [Function; 1] = [function("main", &[], &[], &[Instr::Ret(Operand::None)])];
    static PROGRAM: Program = Program { weight_bytes: 8, ..program(&FUNCTIONS, &[]) };
    let weights = Aligned([0u8; 16]);
    for part in [&weights.0[..4], &weights.0[1..]] {
        let mut arena = Arena::<0>::new();
        // SAFETY: the program reads no weights.
        let mut state = unsafe { State::new(&PROGRAM, part, &mut arena) };
        let found = state.call(0, &[], &mut Room::new());
        assert_eq!(found, Err(Error::BadWeights { needed: 8, available: part.len() }));
    }
}

#[test]
fn state_may_move_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<State<'static>>();
}

#[test]
fn kernels_are_those_of_the_highest_level_that_fits() {
    unsafe extern "C" fn baseline(_: *const *mut c_void, _: *const i64, _: *const Context) -> i32 {
        1
    }
    unsafe extern "C" fn v3(_: *const *mut c_void, _: *const i64, _: *const Context) -> i32 {
        2
    }
    unsafe extern "C" fn v4(_: *const *mut c_void, _: *const i64, _: *const Context) -> i32 {
        3
    }
    static FUNCTIONS: [Function; 1] = [function(
        "main",
        &[],
        &[],
        &[Instr::Call { dst: VOID, callee: Callee::Kernel(0), args: &[] }, Instr::Ret(Operand::None)],
    )];
    static PROGRAM: Program = Program {
        kernels: &[
            KernelTable { level: IsaLevel::Baseline, kernels: &[baseline] },
            KernelTable { level: IsaLevel::V3, kernels: &[v3] },
            KernelTable { level: IsaLevel::V4, kernels: &[v4] },
        ],
        messages: &["baseline", "v3", "v4"],
        ..program(&FUNCTIONS, &[])
    };
    assert!(IsaLevel::Baseline < IsaLevel::V3 && IsaLevel::V3 < IsaLevel::V4);
    let mut arena = Arena::<0>::new();
    // SAFETY: the kernels touch nothing.
    let found = unsafe { State::new(&PROGRAM, &[], &mut arena) }.call(0, &[], &mut Room::new());
    let message = PROGRAM.messages[isa_level() as usize];
    assert_eq!(found, Err(Error::Kernel { kernel: "add4", message }));
}

#[test]
fn kernels_reach_the_pool() {
    unsafe extern "C" fn pool(opaque: *mut c_void, tasks: i64, body: Task, data: *mut c_void) -> i32 {
        // SAFETY: `opaque` is the counter below; the kernel's task and its data are used as it asks.
        unsafe { *opaque.cast::<i64>() += tasks };
        // SAFETY: as above.
        (0..tasks).map(|task| unsafe { body(task, data) }).max().unwrap_or(0)
    }
    unsafe extern "C" fn square(task: i64, data: *mut c_void) -> i32 {
        // SAFETY: `data` are 4 integers.
        unsafe { data.cast::<i64>().add(task as usize).write(task * task) };
        0
    }
    unsafe extern "C" fn squares(args: *const *mut c_void, _: *const i64, ctx: *const Context) -> i32 {
        // SAFETY: the program passes a tensor of 4 integers.
        unsafe { ((*ctx).parallel_for.unwrap())((*ctx).opaque, 4, square, *args) }
    }
    static FUNCTIONS: [Function; 1] = [function(
        "main",
        &[],
        &[Param { name: "out", ty: Type::Tensor { dtype: Some(DType::I64), shape: Some(&[Dim::Imm(4)]) } }],
        &[Instr::Call { dst: VOID, callee: Callee::Kernel(0), args: &[Operand::Out(0)] }, Instr::Ret(Operand::None)],
    )];
    static PROGRAM: Program = Program {
        kernels: &[KernelTable { level: IsaLevel::Baseline, kernels: &[squares] }],
        ..program(&FUNCTIONS, &[])
    };
    let (mut arena, mut tasks, mut out) = (Arena::<0>::new(), 0i64, [0i64; 4]);
    // SAFETY: the program obeys the rules.
    let mut state = unsafe { State::new(&PROGRAM, &[], &mut arena) };
    // SAFETY: `pool` runs each task once; `tasks` outlives the state.
    unsafe { state.set_parallel(pool, (&raw mut tasks).cast()) };
    assert_eq!(state.call(0, &[Arg::output(&mut out, &[4])], &mut Room::new()), Ok(Value::None));
    assert_eq!((out, tasks), ([0, 1, 4, 9], 4));
}
