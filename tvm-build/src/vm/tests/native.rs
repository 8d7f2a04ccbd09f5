//! Models through the whole pipeline: passes, lowering, C, a shared library, the VM.

use super::*;
use crate::codegen::{C99, EmitOptions, emit, symbol};
use crate::pipeline;
use crate::toolchain::{Toolchain, Unit};
use tvm_runtime::host::load_kernels;

const MLP: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 8), "float32"), w: R.Tensor((8, 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor((4, 4), "float32"):
        h = R.nn.relu(R.add(R.matmul(x, R.permute_dims(w)), b))
        g = R.add(R.matmul(h, w), x)
        s = R.nn.softmax(g, axis=-1)
        t = R.multiply(s, h)
        o = R.reshape(R.add(t, R.const([0.5], "float32")), (4, 4))
        return o
"#;

/// What `MLP` computes.
fn mlp(x: &[f32], w: &[f32], b: &[f32]) -> Vec<f32> {
    let at = |m: &[f32], i: usize, j: usize| m[i * 8 + j];
    let mut out = Vec::new();
    for i in 0..2 {
        let h: Vec<f32> =
            (0..8).map(|j| ((0..8).map(|k| at(x, i, k) * at(w, j, k)).sum::<f32>() + b[j]).max(0.0)).collect();
        let g: Vec<f32> = (0..8).map(|j| (0..8).map(|k| h[k] * at(w, k, j)).sum::<f32>() + at(x, i, j)).collect();
        let most = g.iter().copied().fold(f32::MIN, f32::max);
        let e: Vec<f32> = g.iter().map(|v| (v - most).exp()).collect();
        let sum: f32 = e.iter().sum();
        out.extend(e.iter().zip(&h).map(|(e, h)| e / sum * h + 0.5));
    }
    out
}

/// Compiles a text for this machine and calls `main`; the stem keeps files of tests apart.
fn build_and_run(
    stem: &str,
    text: &str,
    pipeline: &str,
    options: &Options,
    inputs: &mut [HostTensor],
    out: &mut HostTensor,
) -> Plan {
    let mut sources = SourceMap::default();
    let mut module = parse_module(&mut sources, "test.py", text, ParseOptions::default())
        .unwrap_or_else(|d| panic!("{}", tvm_ir::render::render_all(&d, &sources)));
    let target = Target::default();
    for step in (pipeline::lookup(pipeline).unwrap().steps)() {
        step.run(&mut module, &target).unwrap_or_else(|d| panic!("{d}"));
    }
    let mut kernels = lower_to_kernels(&module, &target).unwrap_or_else(|d| panic!("{d}"));
    let compiled = compile(&module, &mut kernels, options).unwrap_or_else(|d| panic!("{d}"));
    let kernels: Vec<_> = kernels.into_iter().map(|k| k.kernel).collect();
    let emit_options = EmitOptions { stem, prefix: stem, suffix: "", files: 1 };
    let files = emit(&kernels, &target, &C99, &emit_options).unwrap_or_else(|d| panic!("{d}"));
    let dir = std::env::temp_dir().join(format!("tvm-vm-{stem}-{}", std::process::id()));
    let toolchain = Toolchain { opt_level: 3, ..Toolchain::for_host(&dir) };
    toolchain.write_sources(&files).unwrap();
    let units: Vec<Unit> = files.iter().map(|f| Unit { file: f.name.clone(), flags: Vec::new() }).collect();
    let library = toolchain.shared_library(stem, &units).unwrap();
    let symbols: Vec<String> = kernels.iter().map(|k| symbol(k, &emit_options)).collect();
    let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
    // SAFETY: the library was made above.
    let loaded = unsafe { load_kernels(&library, &symbols) }.unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    let tables = vec![KernelTable { level: IsaLevel::Baseline, kernels: loaded }].leak();
    let program = compiled.program.to_static(tables);
    // SAFETY: kernels and weights belong to the program.
    let mut session = unsafe { Session::new(program, compiled.weights.to_aligned()) }.unwrap();
    let main = session.function("main").unwrap();
    let mut args: Vec<_> = inputs.iter_mut().map(HostTensor::input).collect();
    args.push(out.output());
    session.call(main, &args, &mut HostStorage::new(&program.functions[main])).unwrap();
    compiled.plans.last().unwrap().clone()
}

fn numbers(n: usize, scale: f32) -> Vec<f32> {
    (0..n).map(|i| ((i * 37 % 23) as f32 - 11.0) * scale).collect()
}

fn tensor(shape: &[i64], values: &[f32]) -> HostTensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostTensor::new(DType::F32, shape, &bytes).unwrap()
}

#[test]
fn a_model_gives_the_same_with_and_without_sharing() {
    let (x, w, b) = (numbers(16, 0.1), numbers(64, 0.05), numbers(8, 0.2));
    let expected = mlp(&x, &w, &b);
    let plain = Options { reuse_in_place: false, poison: false };
    for (stem, pipeline, options) in [
        ("mlp_a", "zero", plain),
        ("mlp_b", "zero", POISON),
        ("mlp_c", "default", Options::default()),
        ("mlp_d", "default", POISON),
    ] {
        let mut inputs = [tensor(&[2, 8], &x), tensor(&[8, 8], &w), tensor(&[8], &b)];
        let mut out = HostTensor::zeroed(DType::F32, &[4, 4]).unwrap();
        let plan = build_and_run(stem, MLP, pipeline, &options, &mut inputs, &mut out);
        for (found, expected) in values(&out).iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-5, "{stem}: {found} {expected}\n{plan}");
        }
    }
}
