//! Relax and TensorIR inline in Rust.
//!
//! ```ignore
//! // build.rs:  tvm_build::Build::new().rust_source("src/main.rs").compile();
//! tvm_macros::ir_module! {
//!     pub mod mlp {
//!         #[R::function]
//!         pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>, b: R::Tensor<f32, 256>) -> R::Tensor<f32, N, 256> {
//!             let h = R::matmul(x, R::permute_dims(w)) + b;
//!             R::nn::relu(h)
//!         }
//!     }
//! }
//! ```
//!
//! The module `mlp` has the type `Module` that the build script generated, and `TVMSCRIPT`, the module as text.
//! Errors are reported at the tokens at fault, all at once.
//!
//! # The Rust spelling
//!
//! Everything is valid Rust syntax. Names are TVMScript's with `::`; a name that is a keyword of Rust is raw, as
//! `R::r#where`. `tvmc show --rust MODEL` prints any module in this spelling.
//!
//! | TVMScript | Rust spelling |
//! |---|---|
//! | `class Module:` | `pub mod name { … }` |
//! | `I.module_attrs({"a": 1})` | `#[I::module_attrs(a = 1)]` above the module |
//! | `@R.function`, `@R.function(private=True)` | `#[R::function] pub fn`, `#[R::function] fn` |
//! | `@R.function(pure=False)` | `#[R::function(pure = false)]` |
//! | `@T.prim_func(private=True)` | `#[T::prim_func] fn` |
//! | `R.func_attr({"num_input": 1, "a.b": 2})` | `#[R::func_attr(num_input = 1, "a.b" = 2)]` above the function |
//! | `f = R.ExternFunc("symbol")` | `static f: R::ExternFunc = "symbol";` |
//! | `R.Tensor((1, n), "float32")` | `R::Tensor<f32, 1, n>` |
//! | `R.Tensor(("n + 1",))` | `R::Tensor<_, { n + 1 }>` |
//! | `R.Tensor((), "float32")` | `R::Tensor<f32, ()>` |
//! | `R.Tensor(dtype="float32", ndim=2)` | `R::Tensor<f32, _, _>` |
//! | `R.Tensor(dtype="float32")`, `R.Tensor` | `R::Tensor<f32>`, `R::Tensor` |
//! | `R.Shape([1, n])`, `R.Shape(ndim=2)` | `R::Shape<1, n>`, `R::Shape<_, _>` |
//! | `R.Prim("int64")`, `R.Prim(value="n")` | `i64`, `R::Prim<n>` |
//! | `R.Tuple(A, B)`, `R.Object` | `(A, B)`, `R::Object` |
//! | `R.Callable((A, B), C, True)` | `fn(A, B) -> C` |
//! | `R.Callable((A,), C, False)` | `R::Callable<(A,), C, false>` |
//! | `T.Buffer((T.int64(16), n), "float32")`, `T.match_buffer` over such | `T::Buffer<f32, 16i64, n>` |
//! | `n: T.int64` | `n: i64` |
//! | `x = v`, `x: A = v` | `let x = v;`, `let x: A = v;` |
//! | `return x` | `x` at the end |
//! | `if c: … y = a` `else: … y = b` (Relax) | `let y = if c { …; a } else { …; b };` |
//! | `with R.dataflow(): …` | `R::dataflow({ … });` |
//! | `R.output(gv)` | `R::output(gv);` |
//! | `t[0]` of a tuple | `t.0` |
//! | `cls.f(x)` | `f(x)`; `self::f(x)` where a variable is named `f` |
//! | `R.call_tir(cls.f, (x,), out_sinfo=A)` | `R::call_tir::<A>(f, (x,))`; several outputs: `::<A, B>` |
//! | `R.match_cast(x, A)` | `R::match_cast::<A>(x)`; new names of dimensions are declared by it |
//! | `R.call_packed("f", x, sinfo_args=(A,))` | `R::call_packed::<A>("f", x)` |
//! | `R.const([1.0, 2.0], "float32")` | `R::constant([1.0, 2.0], f32)` |
//! | `R.nn.softmax(x, axis=1)` | `R::nn::softmax(x, axis = 1)` |
//! | `R.astype(x, dtype="float16")` | `R::astype(x, dtype = f16)` |
//! | `{"a": 1, "b.c": 2}` as a value | `I::dict(a = 1, "b.c" = 2)` |
//! | `T.float32(1.5)`, `T.int64(4)` | `1.5f32`, `4i64` |
//! | `T.Cast("float32", x)` | `x as f32` |
//! | `a and b`, `a or b`, `not a` | `a && b`, <code>a &#124;&#124; b</code>, `!a` |
//! | `a // b`, `a % b`, `~a` | `T::floordiv(a, b)`, `a % b` (rounds down), `T::bitwise_not(a)` |
//! | `A[i, j]`, `A[i]`, `A[()]` | `A[[i, j]]`, `A[i]`, `A[()]` |
//! | `A[i, 0:4]`, `A[0:8:2]` | `A[[i, 0..4]]`, `A[(0..8).step_by(2)]` |
//! | `for i in range(n)`, `range(a, b)` | `for i in 0..n`, `for i in a..b` |
//! | `for i, j in T.grid(4, n)` | `for (i, j) in T::grid(4, n)` |
//! | `for i in T.thread_binding(4, thread="threadIdx.x")` | `for i in T::thread_binding(4, thread = "threadIdx.x")` |
//! | `with T.block("b"): …` | `T::block("b", { … });` |
//! | `vi, vj = T.axis.remap("SR", [i, j])` | `let (vi, vj) = T::axis::remap("SR", [i, j]);` |
//! | `with T.init(): …` | `T::init({ … });` |
//! | `T.where(c)`, `T.reads(A[i])` | `T::r#where(c);`, `T::reads(A[i]);` |
//! | `A = T.alloc_buffer((4,), "float32", scope="local")` | `let A = T::alloc_buffer((4,), f32, scope = "local");` |
//! | `with T.LetStmt(v) as x: …` | `{ let x = v; … }` |
//! | `T.Let(x + 1, where={x: v})` | `{ let x = v; x + 1 }` |
//! | `assert c, "message"` | `assert!(c, "message");` |
//! | `T.func_attr({"tir.check_bounds": True})` | `#[T::check_bounds]` above the function |
//!
//! Scalar types are `f16 f32 f64 bf16 i8 … i64 u8 … u64 bool`, vectors `f32x4`, others by TVM's name; these words and
//! `R`, `T`, `I` name no variables. Symbolic dimensions are names: those of a signature belong to its function.
#![doc = include_str!("guide.md")]

mod expand;
mod report;

use proc_macro::TokenStream;

/// Modules of Relax and TensorIR functions, compiled by the build script; see the crate's documentation for the
/// spelling.
///
/// Each `mod name { … }` becomes a module with
///
/// - the items that the build script generated (`Module`, `State`, …), when it ran: `Build::rust_source` names this file;
/// - `TVMSCRIPT`, the module as TVMScript text;
/// - `FINGERPRINT`, by which a stale build is a compile error.
#[proc_macro]
pub fn ir_module(input: TokenStream) -> TokenStream {
    let out_dir = std::env::var_os("OUT_DIR").map(std::path::PathBuf::from);
    expand::ir_module(input.into(), out_dir.as_deref()).into()
}
