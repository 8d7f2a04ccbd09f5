//! The shape of a generated module: tables, typed entry points, no panic path where nothing can fail.
#![allow(missing_docs, reason = "generated modules are documented by the compiler")]

use core::ffi::c_void;
use tvm_runtime::{Arena, Context, Error};

/// What the object file of kernels and weights would hold.
mod object {
    use super::*;

    #[repr(align(64))]
    pub(super) struct Weights(pub(super) [u8; 16]);
    pub(super) static WEIGHTS: Weights = Weights([1; 16]);

    /// `out[i] = x[i] + w[i]` for 4 bytes each; any extent `dims[0]` of rows.
    pub(super) unsafe extern "C" fn add(args: *const *mut c_void, dims: *const i64, _: *const Context) -> i32 {
        // SAFETY: the program passes `dims[0]` rows of 4 bytes and weights of 4 bytes.
        unsafe {
            let (x, w, out) = ((*args).cast::<u8>(), (*args.add(1)).cast::<u8>(), (*args.add(2)).cast::<u8>());
            for i in 0..4 * *dims as usize {
                out.add(i).write(*x.add(i) + *w.add(i % 4));
            }
        }
        0
    }
}

pub mod tiny {
    use super::object;
    use tvm_runtime::*;

    pub const ARENA_BYTES: usize = 64;
    pub const WEIGHT_BYTES: usize = 16;

    static F0: Function = Function {
        name: "main",
        params: &[Param { name: "x", ty: Type::Tensor { dtype: Some(DType::U8), shape: Some(&[Dim::Imm(4)]) } }],
        outs: &[Param { name: "out", ty: Type::Tensor { dtype: Some(DType::U8), shape: Some(&[Dim::Imm(4)]) } }],
        registers: 2,
        heap: 0,
        arena_bytes: 4,
        workspace_bytes: 0,
        frame: FrameSize { registers: 2, ints: 4, pointers: 4, arena: 64 },
        code: &[
            Instr::Call {
                dst: VOID,
                callee: Callee::Kernel(0),
                args: &[Operand::Reg(0), Operand::Const(0), Operand::Const(1), Operand::Imm(1)],
            },
            Instr::Call {
                dst: VOID,
                callee: Callee::Kernel(0),
                args: &[Operand::Const(1), Operand::Const(0), Operand::Out(0), Operand::Imm(1)],
            },
            Instr::Ret(Operand::None),
        ],
    };

    static F1: Function = Function {
        name: "rows",
        params: &[Param {
            name: "x",
            ty: Type::Tensor { dtype: Some(DType::U8), shape: Some(&[Dim::Bind(2, "n"), Dim::Imm(4)]) },
        }],
        outs: &[Param {
            name: "out",
            ty: Type::Tensor { dtype: Some(DType::U8), shape: Some(&[Dim::Same(2, "n"), Dim::Imm(4)]) },
        }],
        registers: 3,
        heap: 0,
        arena_bytes: 0,
        workspace_bytes: 0,
        frame: FrameSize { registers: 3, ints: 4, pointers: 4, arena: 0 },
        code: &[
            Instr::Call {
                dst: VOID,
                callee: Callee::Kernel(0),
                args: &[Operand::Reg(0), Operand::Const(0), Operand::Out(0), Operand::Reg(2)],
            },
            Instr::Ret(Operand::None),
        ],
    };

    pub static PROGRAM: Program = Program {
        functions: &[F0, F1],
        constants: &[
            Constant::Weight { offset: 0, ty: TensorType { dtype: DType::U8, shape: &[4] } },
            Constant::Arena { offset: 0, ty: TensorType { dtype: DType::U8, shape: &[4] } },
        ],
        kernels: &[KernelTable { level: IsaLevel::Baseline, kernels: &[object::add] }],
        kernel_names: &["add"],
        externs: &[],
        messages: &[],
        weight_bytes: WEIGHT_BYTES,
    };

    pub struct Module<'a> {
        state: State<'a>,
    }

    impl Module<'static> {
        pub fn new() -> Self {
            // SAFETY: program, kernels and weights come from one compilation.
            Module { state: unsafe { State::new(&PROGRAM, &object::WEIGHTS.0, ArenaRef::heap(ARENA_BYTES)) } }
        }
    }

    impl Default for Module<'static> {
        fn default() -> Self {
            Self::new()
        }
    }

    impl<'a> Module<'a> {
        pub fn with_arena(arena: &'a mut Arena<ARENA_BYTES>) -> Self {
            // SAFETY: program, kernels and weights come from one compilation.
            Module { state: unsafe { State::new(&PROGRAM, &object::WEIGHTS.0, arena) } }
        }

        pub fn main(&mut self, x: &[u8; 4]) -> [u8; 4] {
            let mut out = [0; 4];
            self.main_into(x, &mut out);
            out
        }

        pub fn main_into(&mut self, x: &[u8; 4], out: &mut [u8; 4]) {
            let args = [Arg::input(x, &[4]), Arg::output(out, &[4])];
            let result = self.state.call(0, &args, &mut Storage::<2, 4, 4>::new());
            debug_assert!(result.is_ok(), "{result:?}");
        }

        pub fn rows_into(&mut self, x: &[u8], n: usize, out: &mut [u8]) -> Result<(), Error> {
            let (x_shape, out_shape) = ([dim(n), 4], [dim(n), 4]);
            let args = [Arg::input(x, &x_shape), Arg::output(out, &out_shape)];
            self.state.call(1, &args, &mut Storage::<3, 4, 4>::new()).map(|_| ())
        }
    }
}

#[test]
fn a_generated_module_runs() {
    assert_eq!(tiny::PROGRAM.verify(), Ok(()));
    let mut arena = Arena::new();
    for mut module in [tiny::Module::new(), tiny::Module::with_arena(&mut arena)] {
        assert_eq!(module.main(&[1, 2, 3, 4]), [3, 4, 5, 6]);
        let mut out = [0; 8];
        assert_eq!(module.rows_into(&[1; 8], 2, &mut out), Ok(()));
        assert_eq!(out, [2; 8]);
        let wrong = module.rows_into(&[1; 8], 3, &mut out);
        assert_eq!(wrong, Err(Error::WrongLength { argument: "x", expected: 12, found: 8 }));
    }
}
