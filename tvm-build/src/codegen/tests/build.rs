//! Building lowered kernels and running them as programs.

use crate::codegen::{C99, EmitOptions, emit, symbol};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use tvm_ir::dtype::DType;
use tvm_ir::lowered::{Expr, ExprKind, Kernel, Local, LoopKind, Param, Stmt};
use tvm_ir::prim::{BinOp, CmpOp, Intrinsic};
use tvm_ir::target::Target;

pub(super) fn e(dtype: DType, kind: ExprKind) -> Expr {
    Expr { dtype, kind }
}

pub(super) fn local(name: &str) -> Local {
    Local(name.into())
}

pub(super) fn var(name: &str, dtype: DType) -> Expr {
    e(dtype, ExprKind::Var(local(name)))
}

pub(super) fn int(dtype: DType, v: i64) -> Expr {
    e(dtype, ExprKind::Int(v))
}

pub(super) fn float(dtype: DType, v: f64) -> Expr {
    e(dtype, ExprKind::Float(v))
}

pub(super) fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    e(a.dtype, ExprKind::Binary(op, Box::new(a), Box::new(b)))
}

pub(super) fn cmp(op: CmpOp, a: Expr, b: Expr) -> Expr {
    e(DType::BOOL.with_lanes(a.dtype.lanes), ExprKind::Cmp(op, Box::new(a), Box::new(b)))
}

pub(super) fn select(c: Expr, a: Expr, b: Expr) -> Expr {
    e(a.dtype, ExprKind::Select(Box::new(c), Box::new(a), Box::new(b)))
}

pub(super) fn cast(a: Expr, to: DType) -> Expr {
    e(to, ExprKind::Cast(Box::new(a)))
}

pub(super) fn call(f: Intrinsic, dtype: DType, args: Vec<Expr>) -> Expr {
    e(dtype, ExprKind::Call(f, args))
}

pub(super) fn broadcast(a: Expr, lanes: u16) -> Expr {
    e(a.dtype.with_lanes(lanes), ExprKind::Broadcast(Box::new(a)))
}

pub(super) fn load(pointer: &str, dtype: DType, index: Expr) -> Expr {
    e(dtype, ExprKind::Load { pointer: local(pointer), index: Box::new(index), aligned: false })
}

pub(super) fn store(pointer: &str, index: Expr, value: Expr) -> Stmt {
    Stmt::Store { pointer: local(pointer), index, value, aligned: false }
}

pub(super) fn for_loop(name: &str, extent: i64, body: Vec<Stmt>) -> Stmt {
    kind_loop(name, extent, LoopKind::Serial, body)
}

pub(super) fn kind_loop(name: &str, extent: i64, kind: LoopKind, body: Vec<Stmt>) -> Stmt {
    let (min, extent) = (int(DType::I64, 0), int(DType::I64, extent));
    Stmt::For { var: local(name), dtype: DType::I64, min, extent, kind, body }
}

pub(super) fn kernel(name: &str, params: &[(&str, DType, bool)], body: Vec<Stmt>) -> Kernel {
    let params = params
        .iter()
        .map(|(n, d, written)| Param::Pointer { var: local(n), dtype: *d, written: *written, noalias: true })
        .collect();
    Kernel { name: name.into(), origin: format!("R.{name}(…)"), params, body, workspace: 0, messages: Vec::new() }
}

/// `out[i] = f(inputs[i]…)` over `n` elements, `lanes` at a time.
pub(super) fn map(inputs: &[DType], out: DType, n: i64, lanes: u16, f: impl Fn(Vec<Expr>) -> Expr) -> Kernel {
    let names = ["x", "y", "z"];
    let i = bin(BinOp::Mul, var("i", DType::I64), int(DType::I64, i64::from(lanes)));
    let args = inputs.iter().zip(names).map(|(d, n)| load(n, d.with_lanes(lanes), i.clone())).collect();
    let body = store("out", i.clone(), f(args));
    let mut params: Vec<_> = inputs.iter().zip(names).map(|(d, n)| (n, *d, false)).collect();
    params.push(("out", out, true));
    kernel("map", &params, vec![for_loop("i", n / i64::from(lanes), vec![body])])
}

static COUNT: AtomicU32 = AtomicU32::new(0);

fn compilers() -> Vec<&'static str> {
    let found: Vec<&str> = ["gcc", "clang"]
        .into_iter()
        .filter(|c| Command::new(c).arg("--version").output().is_ok_and(|o| o.status.success()))
        .collect();
    assert!(!found.is_empty(), "these tests need gcc or clang");
    found
}

/// Whether this machine runs what is compiled for a target.
pub(super) fn runs_here(target: &Target) -> bool {
    match target.name.as_str() {
        "generic" => true,
        "x86-64" => cfg!(target_arch = "x86_64"),
        #[cfg(target_arch = "x86_64")]
        "x86-64-v3" => std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"),
        #[cfg(target_arch = "x86_64")]
        "x86-64-v4" => std::is_x86_feature_detected!("avx512bw") && std::is_x86_feature_detected!("avx512vl"),
        "aarch64" => cfg!(target_arch = "aarch64"),
        _ => false,
    }
}

fn scratch() -> PathBuf {
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("tvm-codegen-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A call of a kernel: the contents of its buffers before it in calling order, and its scalars.
pub(super) struct Job {
    pub(super) kernel: Kernel,
    pub(super) buffers: Vec<Vec<u8>>,
    pub(super) dims: Vec<i64>,
}

impl Job {
    pub(super) fn new(kernel: Kernel, buffers: Vec<Vec<u8>>) -> Job {
        Job { kernel, buffers, dims: Vec::new() }
    }
}

/// Runs a kernel under every compiler at hand, for the plainest and the most capable target of this machine; all must
/// compile it without a warning. The results are the contents of the buffers after the call.
pub(super) fn run(kernel: &Kernel, buffers: &[Vec<u8>], dims: &[i64]) -> Vec<Vec<Vec<u8>>> {
    let job = Job { kernel: kernel.clone(), buffers: buffers.to_vec(), dims: dims.to_vec() };
    run_jobs(&mut [job]).into_iter().map(|mut r| r.remove(0)).collect()
}

/// As [`run`], several kernels in one program (they are renamed); for each way of compiling, the buffers of each job.
pub(super) fn run_jobs(jobs: &mut [Job]) -> Vec<Vec<Vec<Vec<u8>>>> {
    let targets: Vec<Target> = Target::all().into_iter().filter(runs_here).collect();
    run_on(jobs, &[&targets[0], &targets[targets.len() - 1]])
}

/// As [`run`], for every target of this machine.
pub(super) fn run_everywhere(kernel: &Kernel, buffers: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
    let targets: Vec<Target> = Target::all().into_iter().filter(runs_here).collect();
    let job = Job::new(kernel.clone(), buffers.to_vec());
    run_on(&mut [job], &targets.iter().collect::<Vec<_>>()).into_iter().map(|mut r| r.remove(0)).collect()
}

/// As [`run_jobs`], for the given targets.
pub(super) fn run_on(jobs: &mut [Job], targets: &[&Target]) -> Vec<Vec<Vec<Vec<u8>>>> {
    for (i, job) in jobs.iter_mut().enumerate() {
        job.kernel.name = format!("{}{i}", job.kernel.name).into();
    }
    let mut results = Vec::new();
    for target in targets {
        for cc in compilers() {
            let dir = scratch();
            results.push(run_with(jobs, target, cc, &dir).unwrap_or_else(|text| {
                panic!("{cc} {}: {text}\n{}", target.name, sources(jobs, target));
            }));
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
    results
}

fn sources(jobs: &[Job], target: &Target) -> String {
    let kernels: Vec<Kernel> = jobs.iter().map(|j| j.kernel.clone()).collect();
    emit(&kernels, target, &C99, &options()).unwrap().remove(0).text
}

pub(super) fn options() -> EmitOptions<'static> {
    EmitOptions { stem: "kernels", prefix: "t__", suffix: "", files: 1 }
}

pub(super) fn source(kernel: &Kernel, target: &Target) -> String {
    emit(std::slice::from_ref(kernel), target, &C99, &options()).unwrap().remove(0).text
}

fn run_with(jobs: &[Job], target: &Target, cc: &str, dir: &Path) -> Result<Vec<Vec<Vec<u8>>>, String> {
    std::fs::write(dir.join("kernel.c"), sources(jobs, target)).unwrap();
    std::fs::write(dir.join("tvm_runtime.h"), tvm_runtime::C_HEADER).unwrap();
    std::fs::write(dir.join("main.c"), harness(jobs)).unwrap();
    let contents: Vec<u8> = jobs.iter().flat_map(|j| j.buffers.concat()).collect();
    std::fs::write(dir.join("in.bin"), contents).unwrap();
    let mut strict = Command::new(cc);
    strict.current_dir(dir).args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2"]);
    strict.args(["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]);
    let object = strict.args(&target.flags).args(["-c", "kernel.c", "-o", "kernel.o"]).output().unwrap();
    if !object.status.success() {
        return Err(String::from_utf8_lossy(&object.stderr).into_owned());
    }
    let mut link = Command::new(cc);
    link.current_dir(dir).args(["-std=gnu11", "main.c", "kernel.o", "-o", "program", "-lm"]);
    let link = link.output().unwrap();
    if !link.status.success() {
        return Err(String::from_utf8_lossy(&link.stderr).into_owned());
    }
    let ran = Command::new(dir.join("program")).current_dir(dir).output().unwrap();
    if !ran.status.success() {
        return Err(format!("ended with {:?}", ran.status.code()));
    }
    let bytes = std::fs::read(dir.join("out.bin")).unwrap();
    let mut rest = bytes.as_slice();
    let mut take = |b: &Vec<u8>| {
        let (head, tail) = rest.split_at(b.len());
        rest = tail;
        head.to_vec()
    };
    Ok(jobs.iter().map(|j| j.buffers.iter().map(&mut take).collect()).collect())
}

/// A program that calls the kernels one after the other: `in.bin` holds the buffers before, `out.bin` after. It ends with
/// the code of the first assertion that failed.
fn harness(jobs: &[Job]) -> String {
    let mut main = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include \"tvm_runtime.h\"\n");
    main.push_str(
        "static int32_t run(void *o, int64_t n, tvm_task body, void *data) {\n    (void)o;\n    \
         for (int64_t i = n - 1; i >= 0; --i) { int32_t s = body(i, data); if (s) return s; }\n    return 0;\n}\n",
    );
    let parameters = "void *const *args, const int64_t *dims, const tvm_context *ctx";
    for j in jobs {
        main.push_str(&format!("extern int32_t {}({parameters});\n", symbol(&j.kernel, &options())));
    }
    main.push_str("int main(void) {\n    FILE *in = fopen(\"in.bin\", \"rb\"), *out = fopen(\"out.bin\", \"wb\");\n");
    main.push_str(&format!("    tvm_context ctx = {{ run, 0, aligned_alloc(64, {0}), {0} }};\n", 1 << 16));
    for j in jobs {
        main.push_str("    {\n    void *args[16];\n");
        for (i, b) in j.buffers.iter().enumerate() {
            let (bytes, padded) = (b.len(), b.len().next_multiple_of(64).max(64));
            main.push_str(&format!("    args[{i}] = aligned_alloc(64, {padded});\n"));
            main.push_str(&format!("    if (fread(args[{i}], 1, {bytes}, in) != {bytes}) return 90;\n"));
        }
        let list: Vec<String> = j.dims.iter().map(|d| format!("(int64_t)UINT64_C({})", *d as u64)).collect();
        main.push_str(&format!("    int64_t dims[] = {{ 0, {} }};\n", list.join(", ")));
        let name = symbol(&j.kernel, &options());
        main.push_str(&format!("    int32_t status = {name}(args, dims + 1, &ctx);\n    if (status) return status;\n"));
        for (i, b) in j.buffers.iter().enumerate() {
            main.push_str(&format!("    fwrite(args[{i}], 1, {}, out);\n", b.len()));
        }
        main.push_str("    }\n");
    }
    main.push_str("    fclose(out);\n    return 0;\n}\n");
    main
}

/// Little-endian bytes of numbers.
macro_rules! bytes {
    ($v:expr) => {
        $v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()
    };
}
pub(super) use bytes;
