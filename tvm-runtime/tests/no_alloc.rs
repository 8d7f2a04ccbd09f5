//! A call allocates nothing, whether shapes are static or computed.

use core::ffi::c_void;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use tvm_runtime::builtin::{ALLOC_TENSOR, MAKE_SHAPE, MATCH_CAST, MUL};
use tvm_runtime::*;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// `out[i] = a[i] + 1` for `dims[0]` floats.
unsafe extern "C" fn increment(args: *const *mut c_void, dims: *const i64, _: *const Context) -> i32 {
    // SAFETY: the program passes two tensors of `dims[0]` floats.
    unsafe {
        let (a, out) = ((*args).cast::<f32>(), (*args.add(1)).cast::<f32>());
        for i in 0..*dims as usize {
            out.add(i).write(a.add(i).read() + 1.0);
        }
    }
    0
}

const F32: Option<DType> = Some(DType::F32);
use Operand::{Const, Imm, Out, Reg as R};

static FUNCTION: Function = Function {
    name: "main",
    params: &[Param { name: "x", ty: Type::Tensor { dtype: F32, shape: Some(&[Dim::Bind(2, "n"), Dim::Imm(2)]) } }],
    outs: &[Param { name: "out", ty: Type::Tensor { dtype: F32, shape: Some(&[Dim::Any]) } }],
    registers: 6,
    heap: 1,
    arena_bytes: 256,
    workspace_bytes: 0,
    frame: FrameSize { registers: 6, ints: 4, pointers: 3, arena: 256 },
    code: &[
        Instr::Call { dst: 3, callee: Callee::Builtin(&MUL), args: &[R(2), Imm(2)] },
        Instr::Call { dst: VOID, callee: Callee::Builtin(&MATCH_CAST), args: &[Out(0), Const(0)] },
        Instr::Call { dst: 4, callee: Callee::Builtin(&MAKE_SHAPE), args: &[Imm(0), R(3)] },
        Instr::Call { dst: 5, callee: Callee::Builtin(&ALLOC_TENSOR), args: &[Imm(0), R(4), Const(1)] },
        Instr::Call { dst: VOID, callee: Callee::Kernel(0), args: &[R(0), R(5), R(3)] },
        Instr::Call { dst: VOID, callee: Callee::Kernel(0), args: &[R(5), Out(0), R(3)] },
        Instr::Ret(Operand::None),
    ],
};

static PROGRAM: Program = Program {
    functions: &[FUNCTION],
    constants: &[
        Constant::Param(Param { name: "out", ty: Type::Tensor { dtype: F32, shape: Some(&[Dim::Same(3, "2 * n")]) } }),
        Constant::DType(DType::F32),
    ],
    kernels: &[KernelTable { level: IsaLevel::Baseline, kernels: &[increment] }],
    kernel_names: &["increment"],
    externs: &[],
    messages: &[],
    weight_bytes: 0,
};

#[test]
fn calls_allocate_nothing() {
    assert_eq!(FUNCTION.required_frame(&[]), FUNCTION.frame);
    // SAFETY: the program above obeys the rules.
    let mut state = unsafe { State::new(&PROGRAM, &[], ArenaRef::heap(256)) };
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    assert!(before > 0, "the arena is counted");
    let (x, mut out) = ([1f32; 8], [0f32; 8]);
    for i in 0..if cfg!(miri) { 100 } else { 10_000 } {
        let n = 1 + i % 4;
        let (x_shape, out_shape) = ([dim(n), 2], [dim(2 * n)]);
        let args = [Arg::input(&x[..2 * n], &x_shape), Arg::output(&mut out[..2 * n], &out_shape)];
        let found = state.call(0, &args, &mut Storage::<6, 4, 3>::new());
        assert_eq!(found, Ok(Value::None));
        assert_eq!(out[2 * n - 1], 3.0);
        let wrong = state.call(0, &[Arg::int(1)], &mut Storage::<6, 4, 3>::new());
        assert_eq!(wrong, Err(Error::ArgumentCount { expected: 2, found: 1 }));
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
}
