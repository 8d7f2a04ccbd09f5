//! One case, in a process of its own: `tvmc onnx-case`.

use super::compare::{Tolerance, View, compare};
use super::outcome::{Outcome, Stage};
use crate::args::CaseArgs;
use crate::session::{Failure, Scratch, Session};
use std::path::Path;
use tvm_build::compile::{Options, compile_module};
use tvm_build::host::HostModule;
use tvm_build::import::onnx::{self, Datum, Limits, Port, Ports};
use tvm_build::toolchain::Toolchain;
use tvm_build::vm::{Entry, EntryKind, run_dtype};
use tvm_ir::diag::Diags;
use tvm_ir::dtype::DType;
use tvm_ir::span::SourceMap;
use tvm_runtime::host::HostTensor;

/// Prints the outcome on a line. Fails only if the command line is at fault.
pub fn run(args: &CaseArgs) -> Result<(), Failure> {
    let session = Session::new();
    let target = session.target(&args.target)?;
    let mut options = Options::new("case", target);
    options.files = 1;
    options.vm.poison = args.poison;
    let outcome = match case(&args.dir, &options) {
        Ok(()) => Outcome::passed(),
        Err(outcome) => outcome,
    };
    println!("{}", outcome.line());
    Ok(())
}

fn fail(stage: Stage) -> impl Fn(Diags) -> Outcome {
    move |diags| {
        let more = diags.0.len().saturating_sub(1);
        let mut reason = diags.0.first().map(|d| d.message.clone()).unwrap_or_default();
        if let Some(note) = diags.0.first().and_then(|d| d.notes.iter().find(|n| n.contains("error:"))) {
            reason.push_str(&format!(": {note}"));
        }
        if more > 0 {
            reason.push_str(&format!(" (and {more} more)"));
        }
        Outcome::failed(stage, reason)
    }
}

fn bad_case(reason: String) -> Outcome {
    Outcome::failed(Stage::Case, reason)
}

fn case(dir: &Path, options: &Options) -> Result<(), Outcome> {
    let limits = Limits::default();
    let mut sources = SourceMap::default();
    let path = dir.join("model.onnx");
    let text = std::fs::read_to_string(dir.join("tolerance"));
    let tolerance = text.ok().and_then(|t| Tolerance::parse(&t)).ok_or_else(|| bad_case("no tolerance".into()))?;
    let module = onnx::load(&path, &limits, &mut sources).map_err(fail(Stage::Import))?.module;
    let ports = onnx::ports(&path, &limits, &mut sources).map_err(fail(Stage::Import))?;
    let artifacts = compile_module(module, options).map_err(fail(Stage::Compile))?;
    let scratch = Scratch::new().map_err(|e| bad_case(format!("no temporary folder: {e}")))?;
    // The kernels are tiny and run once: the time goes to the C compiler.
    let toolchain = Toolchain { opt_level: 1, jobs: 1, ..Toolchain::for_host(scratch.path()) };
    let mut host = HostModule::load_with(&artifacts, &toolchain).map_err(fail(Stage::C))?;
    let mut sets = 0;
    loop {
        let set = dir.join(format!("set_{sets}"));
        if !set.is_dir() {
            break;
        }
        run_set(&mut host, &set, &ports, tolerance, &limits)?;
        sets += 1;
    }
    if sets == 0 { Err(bad_case("it has no set_0".into())) } else { Ok(()) }
}

fn run_set(
    host: &mut HostModule,
    set: &Path,
    ports: &Ports,
    tolerance: Tolerance,
    limits: &Limits,
) -> Result<(), Outcome> {
    let entry = host.entry("main").map_err(|d| fail(Stage::Run)(d.into()))?.clone();
    let mut inputs = Vec::new();
    for (i, port) in ports.inputs.iter().enumerate().filter(|(_, p)| !p.constant) {
        let datum = read(set, "input", i, port, limits)?;
        inputs.push(input(&entry, inputs.len(), port, &datum)?);
    }
    let outputs = host.run("main", &mut inputs).map_err(|d| fail(Stage::Run)(d.into()))?;
    if outputs.len() != ports.outputs.len() {
        let (n, m) = (outputs.len(), ports.outputs.len());
        return Err(Outcome::failed(Stage::Mismatch, format!("there are {n} outputs, expected {m}")));
    }
    for (i, (port, actual)) in ports.outputs.iter().zip(&outputs).enumerate() {
        let wanted = read(set, "output", i, port, limits)?;
        output(port, actual, &wanted, tolerance)?;
    }
    Ok(())
}

fn read(set: &Path, role: &str, i: usize, port: &Port, limits: &Limits) -> Result<Datum, Outcome> {
    onnx::read_datum(&set.join(format!("{role}_{i}.pb")), &port.kind, limits).map_err(bad_case)
}

fn input(entry: &Entry, at: usize, port: &Port, datum: &Datum) -> Result<HostTensor, Outcome> {
    let error = |reason: String| Outcome::failed(Stage::Run, format!("input {}: {reason}", port.name));
    let Datum::Tensor { dtype, shape, data } = datum else {
        return Err(error("only tensors of numbers can be passed".into()));
    };
    let dtype = run_dtype(*dtype).ok_or_else(|| error(format!("{dtype} cannot be passed")))?;
    if let Some(EntryKind::Tensor(Some(wanted), _)) = entry.params.get(at).map(|p| &p.kind)
        && *wanted != dtype
    {
        return Err(error(format!("the elements are {dtype}, the function takes {wanted}")));
    }
    let extents: Result<Vec<i64>, _> = shape.iter().map(|d| i64::try_from(*d)).collect();
    extents
        .ok()
        .and_then(|extents| HostTensor::new(dtype, &extents, data))
        .ok_or_else(|| error(format!("{} bytes do not fit the shape {shape:?}", data.len())))
}

fn output(port: &Port, actual: &HostTensor, wanted: &Datum, tolerance: Tolerance) -> Result<(), Outcome> {
    let error = |reason: String| Outcome::failed(Stage::Mismatch, format!("output {}: {reason}", port.name));
    let Datum::Tensor { dtype, shape, data } = wanted else {
        return Err(error("a tensor, expected is another kind of value".into()));
    };
    let actual_dtype: DType =
        actual.dtype().to_string().parse().map_err(|_| error(format!("{} cannot be compared", actual.dtype())))?;
    let extents: Vec<u64> = actual.shape().iter().map(|d| d.unsigned_abs()).collect();
    let actual = View { dtype: actual_dtype, shape: &extents, data: actual.bytes() };
    compare(actual, View { dtype: *dtype, shape, data }, tolerance).map_err(error)
}
