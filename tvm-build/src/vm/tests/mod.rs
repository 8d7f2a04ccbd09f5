//! Programs from TVMScript, planned, emitted and run with kernels in Rust.
#![allow(unsafe_code, reason = "test kernels are C functions")]

mod dynamic;
mod errors;
mod lists;
mod loops;
mod native;
mod plans;
mod random;
mod returned;
mod rust_text;

use super::*;
use crate::lower::lower_to_kernels;
use core::ffi::c_void;
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::{ParseOptions, parse_module};
use tvm_ir::target::Target;
use tvm_runtime::host::{HostStorage, HostTensor, Session};
use tvm_runtime::{Context, DType, Error, IsaLevel, Kernel, KernelTable};

/// Vectors of `n` floats: the PrimFuncs that `KERNELS` implement, in this order by name.
const PRIM_FUNCS: &str = r#"
    @T.prim_func(private=True)
    def add(a: T.handle, b: T.handle, o: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        O = T.match_buffer(o, (n,))
        for i in range(n):
            with T.block("add"):
                v = T.axis.spatial(n, i)
                O[v] = A[v] + B[v]

    @T.prim_func(private=True)
    def double(a: T.handle, o: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        A = T.match_buffer(a, (n,))
        O = T.match_buffer(o, (n,))
        for i in range(n):
            with T.block("double"):
                v = T.axis.spatial(n, i)
                O[v] = A[v] + A[v]

    @T.prim_func(private=True)
    def reverse(a: T.handle, o: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        A = T.match_buffer(a, (n,))
        O = T.match_buffer(o, (n,))
        for i in range(n):
            with T.block("reverse"):
                v = T.axis.spatial(n, i)
                O[v] = A[n - 1 - v]

    @T.prim_func(private=True)
    def split(a: T.handle, o: T.handle, p: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        A = T.match_buffer(a, (n,))
        O = T.match_buffer(o, (n,))
        P = T.match_buffer(p, (n,))
        for i in range(n):
            with T.block("split"):
                v = T.axis.spatial(n, i)
                O[v] = A[v] + T.float32(1)
                P[v] = A[v] - T.float32(1)
"#;

/// Buffers of `dims[0]` floats.
unsafe fn floats<'a>(args: *const *mut c_void, dims: *const i64, i: usize) -> &'a [std::cell::Cell<f32>] {
    // SAFETY: the programs pass tensors of `dims[0]` floats, which may be the same.
    unsafe { std::slice::from_raw_parts((*args.add(i)).cast(), *dims as usize) }
}

unsafe extern "C" fn add(args: *const *mut c_void, dims: *const i64, _: *const Context) -> i32 {
    // SAFETY: as the PrimFunc says.
    let [a, b, o] = [0, 1, 2].map(|i| unsafe { floats(args, dims, i) });
    (0..o.len()).for_each(|i| o[i].set(a[i].get() + b[i].get()));
    0
}

unsafe extern "C" fn double(args: *const *mut c_void, dims: *const i64, _: *const Context) -> i32 {
    // SAFETY: as the PrimFunc says.
    let [a, o] = [0, 1].map(|i| unsafe { floats(args, dims, i) });
    (0..o.len()).for_each(|i| o[i].set(2.0 * a[i].get()));
    0
}

unsafe extern "C" fn reverse(args: *const *mut c_void, dims: *const i64, _: *const Context) -> i32 {
    // SAFETY: as the PrimFunc says.
    let [a, o] = [0, 1].map(|i| unsafe { floats(args, dims, i) });
    (0..o.len()).for_each(|i| o[i].set(a[o.len() - 1 - i].get()));
    0
}

unsafe extern "C" fn split(args: *const *mut c_void, dims: *const i64, _: *const Context) -> i32 {
    // SAFETY: as the PrimFunc says.
    let [a, o, p] = [0, 1, 2].map(|i| unsafe { floats(args, dims, i) });
    for i in 0..o.len() {
        let v = a[i].get();
        o[i].set(v + 1.0);
        p[i].set(v - 1.0);
    }
    0
}

static KERNELS: &[Kernel] = &[add, double, reverse, split];
static TABLES: &[KernelTable] = &[KernelTable { level: IsaLevel::Baseline, kernels: KERNELS }];

/// The module of Relax functions over the PrimFuncs above.
fn module(relax: &str) -> IRModule {
    let text = format!("@I.ir_module\nclass Module:\n{PRIM_FUNCS}\n{relax}");
    let mut sources = SourceMap::default();
    match parse_module(&mut sources, "test.py", &text, ParseOptions::default()) {
        Ok(m) => m,
        Err(d) => panic!("{}\n{text}", tvm_ir::render::render_all(&d, &sources)),
    }
}

fn try_compile(module: &IRModule, options: &Options) -> Result<Compiled, Diags> {
    let mut kernels = lower_to_kernels(module, &Target::default()).unwrap();
    compile(module, &mut kernels, options)
}

fn compiled(relax: &str, options: &Options) -> Compiled {
    try_compile(&module(relax), options).unwrap_or_else(|e| panic!("{e}"))
}

const POISON: Options = Options { reuse_in_place: true, poison: true };

fn vector(values: &[f32]) -> HostTensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostTensor::new(DType::F32, &[values.len() as i64], &bytes).unwrap()
}

fn values(t: &HostTensor) -> Vec<f32> {
    t.bytes().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Calls `main` with inputs; `outs` are the lengths of its outputs.
fn run(c: &Compiled, inputs: &[&[f32]], outs: &[i64]) -> Result<Vec<Vec<f32>>, Error> {
    let program = c.program.to_static(TABLES);
    // SAFETY: kernels and weights belong to the program.
    let mut session = unsafe { Session::new(program, c.weights.to_aligned()) }.unwrap();
    session.reserve(1 << 16).unwrap();
    let main = session.function("main").unwrap();
    let mut inputs: Vec<HostTensor> = inputs.iter().map(|v| vector(v)).collect();
    let mut outs: Vec<HostTensor> = outs.iter().map(|n| HostTensor::zeroed(DType::F32, &[*n]).unwrap()).collect();
    let args: Vec<_> =
        inputs.iter_mut().map(HostTensor::input).chain(outs.iter_mut().map(HostTensor::output)).collect();
    session.call(main, &args, &mut HostStorage::new(&program.functions[main]))?;
    Ok(outs.iter().map(values).collect())
}

/// The outputs of `main`, which must be the same with and without poison and reuse.
fn results(relax: &str, inputs: &[&[f32]], outs: &[i64]) -> Vec<Vec<f32>> {
    let plain = Options { reuse_in_place: false, poison: false };
    let expected = run(&compiled(relax, &plain), inputs, outs).unwrap();
    for options in [Options::default(), POISON] {
        assert_eq!(run(&compiled(relax, &options), inputs, outs).unwrap(), expected, "{options:?}");
    }
    expected
}
