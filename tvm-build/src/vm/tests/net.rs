/// Compiled model: 64 bytes of arena, 16 bytes of weights, 4 kernels.
#[allow(dead_code, unsafe_code, reason = "what is used is the user's choice; kernels are C functions")]
#[allow(non_snake_case, clippy::too_many_arguments, clippy::type_complexity, clippy::wildcard_imports, reason = "signatures are the model's")]
pub mod net {
    use ::tvm_runtime::*;

    /// Bytes of the arena of [`Module::with_arena`].
    pub const ARENA_BYTES: usize = 64;
    /// Alignment of the arena and of the weights.
    pub const ARENA_ALIGN: usize = 64;
    /// Bytes of the weights.
    pub const WEIGHT_BYTES: usize = 16;

    unsafe extern "C" {
        #[link_name = "net_weights"]
        static WEIGHTS: [u8; WEIGHT_BYTES];
        fn tvmk_add(args: *const *mut ::core::ffi::c_void, dims: *const i64, ctx: *const Context) -> i32;
        fn tvmk_double(args: *const *mut ::core::ffi::c_void, dims: *const i64, ctx: *const Context) -> i32;
        fn tvmk_reverse(args: *const *mut ::core::ffi::c_void, dims: *const i64, ctx: *const Context) -> i32;
        fn tvmk_split(args: *const *mut ::core::ffi::c_void, dims: *const i64, ctx: *const Context) -> i32;
        fn tvmk_add_v3(args: *const *mut ::core::ffi::c_void, dims: *const i64, ctx: *const Context) -> i32;
        fn tvmk_double_v3(args: *const *mut ::core::ffi::c_void, dims: *const i64, ctx: *const Context) -> i32;
        fn tvmk_reverse_v3(args: *const *mut ::core::ffi::c_void, dims: *const i64, ctx: *const Context) -> i32;
        fn tvmk_split_v3(args: *const *mut ::core::ffi::c_void, dims: *const i64, ctx: *const Context) -> i32;
    }

    static FUNCTIONS: [Function; 4] = [
        Function {
            name: "big",
            params: &[Param { name: "x", ty: Type::Tensor { dtype: Some(DType::F32), shape: Some(&[Dim::Imm(20000)]) } }],
            outs: &[Param { name: "out", ty: Type::Tensor { dtype: Some(DType::F32), shape: Some(&[Dim::Imm(20000)]) } }],
            registers: 2,
            heap: 0,
            arena_bytes: 0,
            workspace_bytes: 0,
            frame: FrameSize { registers: 2, ints: 3, pointers: 3, arena: 0 },
            code: &[
                Instr::Call { dst: VOID, callee: Callee::Kernel(2), args: &[Operand::Reg(0), Operand::Out(0), Operand::Imm(20000)] }, // reverse
                Instr::Ret(Operand::None),
            ],
        },
        Function {
            name: "main",
            params: &[Param { name: "x", ty: Type::Tensor { dtype: Some(DType::F32), shape: Some(&[Dim::Imm(2), Dim::Imm(2)]) } }, Param { name: "type", ty: Type::Tensor { dtype: Some(DType::F32), shape: Some(&[Dim::Imm(4)]) } }],
            outs: &[Param { name: "out0", ty: Type::Tensor { dtype: Some(DType::F32), shape: Some(&[Dim::Imm(4)]) } }, Param { name: "out1", ty: Type::Tensor { dtype: Some(DType::F32), shape: Some(&[Dim::Imm(4)]) } }],
            registers: 4,
            heap: 0,
            arena_bytes: 16,
            workspace_bytes: 0,
            frame: FrameSize { registers: 4, ints: 4, pointers: 4, arena: 64 },
            code: &[
                Instr::Call { dst: VOID, callee: Callee::Kernel(0), args: &[Operand::Reg(1), Operand::Const(0), Operand::Const(1), Operand::Imm(4)] }, // add
                Instr::Call { dst: VOID, callee: Callee::Kernel(2), args: &[Operand::Const(1), Operand::Out(1), Operand::Imm(4)] }, // reverse
                Instr::Call { dst: VOID, callee: Callee::Kernel(1), args: &[Operand::Out(1), Operand::Out(0), Operand::Imm(4)] }, // double
                Instr::Ret(Operand::None),
            ],
        },
        Function {
            name: "narrow",
            params: &[Param { name: "q", ty: Type::Tensor { dtype: Some(DType::I4), shape: Some(&[Dim::Imm(5)]) } }, Param { name: "s", ty: Type::Tensor { dtype: Some(DType::F8E5M2), shape: Some(&[Dim::Bind(6, "n")]) } }, Param { name: "p", ty: Type::Tensor { dtype: Some(DType::U2), shape: Some(&[Dim::Same(6, "n")]) } }],
            outs: &[Param { name: "out0", ty: Type::Tensor { dtype: Some(DType::I4), shape: Some(&[Dim::Imm(5)]) } }, Param { name: "out1", ty: Type::Tensor { dtype: Some(DType::F8E5M2), shape: Some(&[Dim::Same(6, "n")]) } }, Param { name: "out2", ty: Type::Tensor { dtype: Some(DType::U2), shape: Some(&[Dim::Same(6, "n")]) } }],
            registers: 7,
            heap: 0,
            arena_bytes: 0,
            workspace_bytes: 0,
            frame: FrameSize { registers: 7, ints: 0, pointers: 0, arena: 0 },
            code: &[
                Instr::Call { dst: VOID, callee: Callee::Builtin(&builtin::COPY_TENSOR), args: &[Operand::Reg(0), Operand::Out(0)] },
                Instr::Call { dst: VOID, callee: Callee::Builtin(&builtin::COPY_TENSOR), args: &[Operand::Reg(1), Operand::Out(1)] },
                Instr::Call { dst: VOID, callee: Callee::Builtin(&builtin::COPY_TENSOR), args: &[Operand::Reg(2), Operand::Out(2)] },
                Instr::Ret(Operand::None),
            ],
        },
        Function {
            name: "rows",
            params: &[Param { name: "x", ty: Type::Tensor { dtype: Some(DType::F32), shape: Some(&[Dim::Bind(2, "n")]) } }],
            outs: &[Param { name: "out", ty: Type::Tensor { dtype: Some(DType::F32), shape: Some(&[Dim::Same(2, "n")]) } }],
            registers: 5,
            heap: 1,
            arena_bytes: 0,
            workspace_bytes: 0,
            frame: FrameSize { registers: 5, ints: 4, pointers: 3, arena: 0 },
            code: &[
                Instr::Call { dst: 3, callee: Callee::Builtin(&builtin::MAKE_SHAPE), args: &[Operand::Imm(0), Operand::Reg(2)] },
                Instr::Call { dst: 4, callee: Callee::Builtin(&builtin::ALLOC_TENSOR), args: &[Operand::Imm(0), Operand::Reg(3), Operand::Const(2)] },
                Instr::Call { dst: VOID, callee: Callee::Kernel(2), args: &[Operand::Reg(0), Operand::Reg(4), Operand::Reg(2)] }, // reverse
                Instr::Call { dst: VOID, callee: Callee::Kernel(2), args: &[Operand::Reg(4), Operand::Out(0), Operand::Reg(2)] }, // reverse
                Instr::Ret(Operand::None),
            ],
        },
    ];

    static CONSTANTS: [Constant; 3] = [
        Constant::Weight { offset: 0, ty: TensorType { dtype: DType::F32, shape: &[4] } },
        Constant::Arena { offset: 0, ty: TensorType { dtype: DType::F32, shape: &[4] } },
        Constant::DType(DType::F32),
    ];

    static KERNELS: [KernelTable; 2] = [
        KernelTable { level: IsaLevel::Baseline, kernels: &[
            tvmk_add,
            tvmk_double,
            tvmk_reverse,
            tvmk_split,
        ] },
        KernelTable { level: IsaLevel::V3, kernels: &[
            tvmk_add_v3,
            tvmk_double_v3,
            tvmk_reverse_v3,
            tvmk_split_v3,
        ] },
    ];

    /// The tables of this module.
    pub static PROGRAM: Program = Program {
        functions: &FUNCTIONS,
        constants: &CONSTANTS,
        kernels: &KERNELS,
        kernel_names: &["add", "double", "reverse", "split"],
        externs: &[],
        messages: &[],
        weight_bytes: WEIGHT_BYTES,
    };

    /// The model with its memory. Calls run on the calling thread.
    pub struct Module<'a> {
        state: State<'a>,
    }

    impl Module<'static> {
        /// The model, with an arena on the heap. Without memory for it the program ends, as it does for a `Vec`.
        pub fn new() -> Self {
            // SAFETY: program, kernels and weights come from one compilation.
            Module { state: unsafe { State::new(&PROGRAM, &WEIGHTS, ArenaRef::heap(ARENA_BYTES)) } }
        }

        /// As [`Module::new`], with an error where there is no memory for the arena.
        ///
        /// # Errors
        ///
        /// [`Error::ArenaMemory`].
        pub fn try_new() -> Result<Self, Error> {
            let arena = ArenaRef::try_heap(ARENA_BYTES)?;
            // SAFETY: program, kernels and weights come from one compilation.
            Ok(Module { state: unsafe { State::new(&PROGRAM, &WEIGHTS, arena) } })
        }
    }

    impl Default for Module<'static> {
        fn default() -> Self {
            Self::new()
        }
    }

    impl<'a> Module<'a> {
        /// The model, with an arena that the caller places.
        pub fn with_arena(arena: impl Into<ArenaRef<'a>>) -> Self {
            // SAFETY: program, kernels and weights come from one compilation.
            Module { state: unsafe { State::new(&PROGRAM, &WEIGHTS, arena) } }
        }

        /// The state behind the typed entry points.
        pub fn state(&mut self) -> &mut State<'a> {
            &mut self.state
        }
    }

    /// As many zeros as hold a tensor of this shape.
    fn zeros<T: Element>(argument: &'static str, zero: T, shape: &[i64]) -> Result<::std::vec::Vec<T>, Error> {
        let len = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?));
        let mut out = ::std::vec::Vec::new();
        match len {
            Some(len) if out.try_reserve_exact(T::DTYPE.units(len)).is_ok() => out.resize(T::DTYPE.units(len), zero),
            _ => return Err(Error::BadShape { argument }),
        }
        Ok(out)
    }

    impl<'a> Module<'a> {
        /// Runs `big` into given outputs.
        ///
        /// - `x`: (20000,) float32
        /// - `out`: (20000,) float32
        pub fn big_into(&mut self, x: &[f32; 20000], out: &mut [f32; 20000]) {
            let result = self.state.call(
                0,
                &[
                    Arg::input(x, &[20000]),
                    Arg::output(&mut *out, &[20000]),
                ],
                &mut Storage::<2, 3, 3>::new(),
            );
            debug_assert!(result.is_ok(), "{result:?}");
        }

        /// Runs `big` on arrays.
        ///
        /// # Errors
        ///
        /// Views that are not contiguous in row-major order, extents that do not fit each other, and what the model itself checks.
        pub fn big_nd(&mut self, x: ::ndarray::ArrayView1<'_, f32>) -> Result<::ndarray::Array1<f32>, Error> {
            let x_shape = nd::shape::<1, _, _>("x", &x)?;
            let out_shape: [i64; 1] = [20000];
            let mut out = zeros("out", 0.0, &out_shape)?;
            let result = self.state.call(
                0,
                &[
                    nd::input("x", &x, &x_shape)?,
                    Arg::output(&mut out, &out_shape),
                ],
                &mut Storage::<2, 3, 3>::new(),
            );
            result?;
            nd::array("out", out_shape.map(|d| usize::try_from(d).unwrap_or(usize::MAX)), out)
        }

        /// Runs `big`; gives `out`: (20000,) float32.
        ///
        /// - `x`: (20000,) float32
        pub fn big(&mut self, x: &[f32; 20000]) -> ::std::vec::Vec<f32> {
            let mut out = ::std::vec![0.0; 20000];
            let result = self.state.call(
                0,
                &[
                    Arg::input(x, &[20000]),
                    Arg::output(&mut out, &[20000]),
                ],
                &mut Storage::<2, 3, 3>::new(),
            );
            debug_assert!(result.is_ok(), "{result:?}");
            out
        }

        /// Runs `main` into given outputs.
        ///
        /// - `x`: (2, 2) float32
        /// - `r#type`: (4,) float32
        /// - `out0`: (4,) float32
        /// - `out1`: (4,) float32
        pub fn main_into(&mut self, x: &[f32; 4], r#type: &[f32; 4], out0: &mut [f32; 4], out1: &mut [f32; 4]) {
            let result = self.state.call(
                1,
                &[
                    Arg::input(x, &[2, 2]),
                    Arg::input(r#type, &[4]),
                    Arg::output(&mut *out0, &[4]),
                    Arg::output(&mut *out1, &[4]),
                ],
                &mut Storage::<4, 4, 4>::new(),
            );
            debug_assert!(result.is_ok(), "{result:?}");
        }

        /// Runs `main` on arrays.
        ///
        /// # Errors
        ///
        /// Views that are not contiguous in row-major order, extents that do not fit each other, and what the model itself checks.
        pub fn main_nd(&mut self, x: ::ndarray::ArrayView2<'_, f32>, r#type: ::ndarray::ArrayView1<'_, f32>) -> Result<(::ndarray::Array1<f32>, ::ndarray::Array1<f32>), Error> {
            let x_shape = nd::shape::<2, _, _>("x", &x)?;
            let type_shape = nd::shape::<1, _, _>("type", &r#type)?;
            let out0_shape: [i64; 1] = [4];
            let mut out0 = zeros("out0", 0.0, &out0_shape)?;
            let out1_shape: [i64; 1] = [4];
            let mut out1 = zeros("out1", 0.0, &out1_shape)?;
            let result = self.state.call(
                1,
                &[
                    nd::input("x", &x, &x_shape)?,
                    nd::input("type", &r#type, &type_shape)?,
                    Arg::output(&mut out0, &out0_shape),
                    Arg::output(&mut out1, &out1_shape),
                ],
                &mut Storage::<4, 4, 4>::new(),
            );
            result?;
            Ok((nd::array("out0", out0_shape.map(|d| usize::try_from(d).unwrap_or(usize::MAX)), out0)?, nd::array("out1", out1_shape.map(|d| usize::try_from(d).unwrap_or(usize::MAX)), out1)?))
        }

        /// Runs `main`; gives `out0`: (4,) float32 and `out1`: (4,) float32.
        ///
        /// - `x`: (2, 2) float32
        /// - `r#type`: (4,) float32
        pub fn main(&mut self, x: &[f32; 4], r#type: &[f32; 4]) -> ([f32; 4], [f32; 4]) {
            let mut out0 = [0.0; 4];
            let mut out1 = [0.0; 4];
            self.main_into(x, r#type, &mut out0, &mut out1);
            (out0, out1)
        }

        /// Runs `narrow` into given outputs.
        ///
        /// - `q`: (5,) int4, 2 elements a byte, the first in the lowest bits
        /// - `s`: (n,) float8_e5m2
        /// - `p`: (n,) uint2, 4 elements a byte, the first in the lowest bits
        /// - `n`: the extent n of these shapes
        /// - `out0`: (5,) int4, 2 elements a byte, the first in the lowest bits
        /// - `out1`: (n,) float8_e5m2
        /// - `out2`: (n,) uint2, 4 elements a byte, the first in the lowest bits
        ///
        /// # Errors
        ///
        /// Lengths or extents that do not fit each other, and what the model itself checks; see [`Error`].
        pub fn narrow_into(&mut self, q: &[I4x2; 3], s: &[F8E5M2], p: &[U2x4], n: usize, out0: &mut [I4x2; 3], out1: &mut [F8E5M2], out2: &mut [U2x4]) -> Result<(), Error> {
            let result = self.state.call(
                2,
                &[
                    Arg::input(q, &[5]),
                    Arg::input(s, &[dim(n)]),
                    Arg::input(p, &[dim(n)]),
                    Arg::output(&mut *out0, &[5]),
                    Arg::output(&mut *out1, &[dim(n)]),
                    Arg::output(&mut *out2, &[dim(n)]),
                ],
                &mut Storage::<7, 0, 0>::new(),
            );
            result.map(|_| ())
        }

        /// Runs `narrow`; gives `out0`: (5,) int4, 2 elements a byte, the first in the lowest bits and `out1`: (n,) float8_e5m2 and `out2`: (n,) uint2, 4 elements a byte, the first in the lowest bits.
        ///
        /// - `q`: (5,) int4, 2 elements a byte, the first in the lowest bits
        /// - `s`: (n,) float8_e5m2
        /// - `p`: (n,) uint2, 4 elements a byte, the first in the lowest bits
        /// - `n`: the extent n of these shapes
        ///
        /// # Errors
        ///
        /// Lengths or extents that do not fit each other, and what the model itself checks; see [`Error`].
        pub fn narrow(&mut self, q: &[I4x2; 3], s: &[F8E5M2], p: &[U2x4], n: usize) -> Result<(::std::vec::Vec<I4x2>, ::std::vec::Vec<F8E5M2>, ::std::vec::Vec<U2x4>), Error> {
            let mut out0 = ::std::vec![I4x2(0); 3];
            let mut out1 = zeros("out1", F8E5M2(0), &[dim(n)])?;
            let mut out2 = zeros("out2", U2x4(0), &[dim(n)])?;
            let result = self.state.call(
                2,
                &[
                    Arg::input(q, &[5]),
                    Arg::input(s, &[dim(n)]),
                    Arg::input(p, &[dim(n)]),
                    Arg::output(&mut out0, &[5]),
                    Arg::output(&mut out1, &[dim(n)]),
                    Arg::output(&mut out2, &[dim(n)]),
                ],
                &mut Storage::<7, 0, 0>::new(),
            );
            result.map(|_| (out0, out1, out2))
        }

        /// Runs `rows` into given outputs.
        ///
        /// - `x`: (n,) float32
        /// - `n`: the extent n of these shapes
        /// - `out`: (n,) float32
        ///
        /// # Errors
        ///
        /// Lengths or extents that do not fit each other, and what the model itself checks; see [`Error`].
        pub fn rows_into(&mut self, x: &[f32], n: usize, out: &mut [f32]) -> Result<(), Error> {
            let result = loop {
                let result = self.state.call(
                    3,
                    &[
                        Arg::input(x, &[dim(n)]),
                        Arg::output(&mut *out, &[dim(n)]),
                    ],
                    &mut Storage::<5, 4, 3>::new(),
                );
                // As much as is planned for these extents, at least what was asked for.
                let Err(Error::ArenaTooSmall { needed, .. }) = result else { break result };
                if let Err(error) = self.state.reserve(needed.max(usize::try_from(dim(n).saturating_mul(4).saturating_add(63).div_euclid(64).saturating_mul(64)).unwrap_or(0))) {
                    break Err(error);
                }
            };
            result.map(|_| ())
        }

        /// Bytes of the arena that `rows` needs for these extents.
        pub fn rows_arena_bytes(n: usize) -> usize {
            usize::try_from(dim(n).saturating_mul(4).saturating_add(63).div_euclid(64).saturating_mul(64)).unwrap_or(usize::MAX)
        }

        /// Runs `rows` on arrays.
        ///
        /// # Errors
        ///
        /// Views that are not contiguous in row-major order, extents that do not fit each other, and what the model itself checks.
        pub fn rows_nd(&mut self, x: ::ndarray::ArrayView1<'_, f32>) -> Result<::ndarray::Array1<f32>, Error> {
            let x_shape = nd::shape::<1, _, _>("x", &x)?;
            let out_shape: [i64; 1] = [x_shape[0]];
            let mut out = zeros("out", 0.0, &out_shape)?;
            let result = loop {
                let result = self.state.call(
                    3,
                    &[
                        nd::input("x", &x, &x_shape)?,
                        Arg::output(&mut out, &out_shape),
                    ],
                    &mut Storage::<5, 4, 3>::new(),
                );
                // As much as is planned for these extents, at least what was asked for.
                let Err(Error::ArenaTooSmall { needed, .. }) = result else { break result };
                if let Err(error) = self.state.reserve(needed.max(usize::try_from(x_shape[0].saturating_mul(4).saturating_add(63).div_euclid(64).saturating_mul(64)).unwrap_or(0))) {
                    break Err(error);
                }
            };
            result?;
            nd::array("out", out_shape.map(|d| usize::try_from(d).unwrap_or(usize::MAX)), out)
        }

        /// Runs `rows`; gives `out`: (n,) float32.
        ///
        /// - `x`: (n,) float32
        /// - `n`: the extent n of these shapes
        ///
        /// # Errors
        ///
        /// Lengths or extents that do not fit each other, and what the model itself checks; see [`Error`].
        pub fn rows(&mut self, x: &[f32], n: usize) -> Result<::std::vec::Vec<f32>, Error> {
            let mut out = zeros("out", 0.0, &[dim(n)])?;
            let result = loop {
                let result = self.state.call(
                    3,
                    &[
                        Arg::input(x, &[dim(n)]),
                        Arg::output(&mut out, &[dim(n)]),
                    ],
                    &mut Storage::<5, 4, 3>::new(),
                );
                // As much as is planned for these extents, at least what was asked for.
                let Err(Error::ArenaTooSmall { needed, .. }) = result else { break result };
                if let Err(error) = self.state.reserve(needed.max(usize::try_from(dim(n).saturating_mul(4).saturating_add(63).div_euclid(64).saturating_mul(64)).unwrap_or(0))) {
                    break Err(error);
                }
            };
            result.map(|_| out)
        }
    }
}
