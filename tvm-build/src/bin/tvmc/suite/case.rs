//! One case, in a process of its own: `tvmc onnx-case`.

use super::compare::{Tolerance, View, compare};
use super::outcome::{Outcome, Stage};
use crate::args::CaseArgs;
use crate::session::{Failure, Scratch, Session};
use crate::tensors::value;
use std::path::{Path, PathBuf};
use tvm_build::compile::{Options, compile_module};
use tvm_build::host::HostModule;
use tvm_build::import::onnx::{self, Datum, ImportOptions, Limits, Port};
use tvm_build::toolchain::Toolchain;
use tvm_build::vm::{Entry, EntryKind};
use tvm_ir::diag::Diags;
use tvm_ir::dtype::DType;
use tvm_ir::module::IRModule;
use tvm_ir::span::SourceMap;
use tvm_runtime::host::HostValue;

/// Prints the outcome on a line. Fails only if the command line is at fault.
pub fn run(args: &CaseArgs) -> Result<(), Failure> {
    let session = Session::new();
    let target = session.target(&args.target)?;
    let mut options = Options::new("case", target);
    options.files = 1;
    options.vm.poison = args.poison;
    let scratch = Scratch::new().map_err(|e| Failure::Model(format!("error: no temporary folder: {e}")))?;
    let mut case =
        Case { dir: &args.dir, options: &options, folder: scratch.path(), cache: args.cache.clone(), modules: 0 };
    let mut outcome = if args.check { case.check() } else { case.outcome(Bind::Nothing) };
    if args.bind_inputs {
        for bind in [Bind::Integers, Bind::Small] {
            if !outcome.refused() {
                break;
            }
            // What was refused first is the reason, unless something worse comes.
            let bound = case.outcome(bind);
            if !bound.refused() {
                outcome = bound;
            }
        }
    }
    println!("{}", outcome.line());
    Ok(())
}

/// Which inputs become constants of the compiled module.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bind {
    /// None.
    Nothing,
    /// Integers and truth values of rank 0 and 1: shapes, axes, numbers of things.
    Integers,
    /// Also every other input of rank 0 and 1.
    Small,
}

impl Bind {
    fn takes(self, port: &Port, datum: &Datum) -> bool {
        let small = |integer: bool| match datum {
            Datum::Tensor { dtype, shape, data } => {
                shape.len() < 2 && data.len() <= 1024 && (!integer || !dtype.is_float())
            }
            _ => false,
        };
        match self {
            Bind::Nothing => false,
            _ if port.constant => true,
            Bind::Integers => small(true),
            Bind::Small => small(false),
        }
    }
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

/// A case and where its modules are compiled.
struct Case<'a> {
    dir: &'a Path,
    options: &'a Options,
    folder: &'a Path,
    cache: Option<PathBuf>,
    modules: usize,
}

impl Case<'_> {
    /// Imports the model and makes C of it.
    fn check(&self) -> Outcome {
        let path = self.dir.join("model.onnx");
        let loaded =
            onnx::load(&path, ImportOptions::default(), &mut SourceMap::default()).map_err(fail(Stage::Import));
        let made = loaded.and_then(|l| compile_module(l.module, self.options).map_err(fail(Stage::Compile)));
        made.map_or_else(|outcome| outcome, |_| Outcome::passed(0))
    }

    fn outcome(&mut self, bind: Bind) -> Outcome {
        match self.run(bind) {
            Ok(bound) => Outcome::passed(bound),
            Err(outcome) => outcome,
        }
    }

    /// Runs every set; gives the number of inputs that were made constants.
    fn run(&mut self, bind: Bind) -> Result<usize, Outcome> {
        let limits = Limits::default();
        let mut sources = SourceMap::default();
        let path = self.dir.join("model.onnx");
        let text = std::fs::read_to_string(self.dir.join("tolerance"));
        let tolerance = text.ok().and_then(|t| Tolerance::parse(&t)).ok_or_else(|| bad_case("no tolerance".into()))?;
        let ports = onnx::ports(&path, &limits, &mut sources).map_err(fail(Stage::Import))?;
        let mut most = 0;
        let mut compiled: Option<HostModule> = None;
        let sets = (0..).map(|k| self.dir.join(format!("set_{k}"))).take_while(|set| set.is_dir());
        let sets: Vec<PathBuf> = sets.collect();
        for set in &sets {
            let (mut bound, mut given, mut overridable) = (Vec::new(), Vec::new(), Vec::new());
            for (i, port) in ports.inputs.iter().enumerate() {
                if port.constant && !value_path(set, "input", i).exists() {
                    continue;
                }
                let datum = read(set, "input", i, port, &limits)?;
                if bind.takes(port, &datum) {
                    bound.push((port.name.clone(), datum));
                } else {
                    // The model has a value for it, and the case another.
                    overridable.extend(port.constant.then(|| port.name.clone()));
                    given.push((port, datum));
                }
            }
            most = most.max(bound.len());
            let mut host = match compiled.take().filter(|_| bound.is_empty() && overridable.is_empty()) {
                Some(host) => host,
                None => {
                    let options = ImportOptions { inputs: bound, overridable, ..ImportOptions::default() };
                    let loaded = onnx::load(&path, options, &mut sources);
                    self.compile(loaded.map_err(fail(Stage::Import))?.module)?
                }
            };
            run_set(&mut host, set, &given, &ports.outputs, tolerance, &limits)?;
            compiled = Some(host);
        }
        if sets.is_empty() { Err(bad_case("it has no set_0".into())) } else { Ok(most) }
    }

    fn compile(&mut self, module: IRModule) -> Result<HostModule, Outcome> {
        let artifacts = compile_module(module, self.options).map_err(fail(Stage::Compile))?;
        // A folder each: a library is loaded once by its path.
        let folder = self.folder.join(self.modules.to_string());
        self.modules += 1;
        // The kernels are tiny and run once: the time goes to the C compiler.
        let toolchain = Toolchain { opt_level: 1, jobs: 1, cache: self.cache.clone(), ..Toolchain::for_host(folder) };
        HostModule::load_with(&artifacts, &toolchain).map_err(fail(Stage::C))
    }
}

fn run_set(
    host: &mut HostModule,
    set: &Path,
    given: &[(&Port, Datum)],
    outputs: &[Port],
    tolerance: Tolerance,
    limits: &Limits,
) -> Result<(), Outcome> {
    let entry = host.entry("main").map_err(|d| fail(Stage::Run)(d.into()))?.clone();
    let inputs = given.iter().enumerate().map(|(i, (port, datum))| input(host, &entry, i, port, datum));
    let mut inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let results = host.run_values("main", &mut inputs).map_err(|d| fail(Stage::Run)(d.into()))?;
    if results.len() != outputs.len() {
        let (n, m) = (results.len(), outputs.len());
        return Err(Outcome::failed(Stage::Mismatch, format!("there are {n} outputs, expected {m}")));
    }
    for (i, (port, actual)) in outputs.iter().zip(&results).enumerate() {
        let wanted = read(set, "output", i, port, limits)?;
        output(host, port, actual, &wanted, tolerance)?;
    }
    Ok(())
}

fn value_path(set: &Path, role: &str, i: usize) -> PathBuf {
    set.join(format!("{role}_{i}.pb"))
}

fn read(set: &Path, role: &str, i: usize, port: &Port, limits: &Limits) -> Result<Datum, Outcome> {
    onnx::read_datum(&value_path(set, role, i), &port.kind, limits).map_err(bad_case)
}

fn input(host: &mut HostModule, entry: &Entry, at: usize, port: &Port, datum: &Datum) -> Result<HostValue, Outcome> {
    let error = |reason: String| Outcome::failed(Stage::Run, format!("input {}: {reason}", port.name));
    let wanted = match entry.params.get(at).map(|p| &p.kind) {
        Some(EntryKind::Tensor(wanted, _)) => *wanted,
        _ => None,
    };
    value(host, datum, wanted).map_err(error)
}

fn output(
    host: &mut HostModule,
    port: &Port,
    actual: &HostValue,
    wanted: &Datum,
    tolerance: Tolerance,
) -> Result<(), Outcome> {
    let error = |reason: String| Outcome::failed(Stage::Mismatch, format!("output {}: {reason}", port.name));
    same(host, actual, wanted, tolerance).map_err(error)
}

fn same(host: &mut HostModule, actual: &HostValue, wanted: &Datum, tolerance: Tolerance) -> Result<(), String> {
    let items: Vec<&Datum> = match (actual, wanted) {
        (HostValue::Tensor(actual), Datum::Tensor { dtype, shape, data }) => {
            let own = actual.dtype();
            let own: DType = own.to_string().parse().map_err(|_| format!("{own} cannot be compared"))?;
            let extents: Vec<u64> = actual.shape().iter().map(|d| d.unsigned_abs()).collect();
            let actual = View { dtype: own, shape: &extents, data: actual.bytes() };
            return compare(actual, View { dtype: *dtype, shape, data }, tolerance);
        }
        (HostValue::Tensor(actual), Datum::Strings { shape, strings }) => {
            let extents: Vec<u64> = actual.shape().iter().map(|d| d.unsigned_abs()).collect();
            return match host.texts(actual) {
                Some(found) if found == *strings && extents == *shape => Ok(()),
                found => Err(format!("it is {extents:?} {found:?}, expected {shape:?} {strings:?}")),
            };
        }
        (HostValue::List(_), Datum::Sequence(items)) => items.iter().collect(),
        (HostValue::List(_), Datum::Optional(item)) => item.iter().map(|item| &**item).collect(),
        (HostValue::Tensor(_), _) => return Err("a tensor, expected is another kind of value".into()),
        (HostValue::List(_), _) => return Err("a list, expected is another kind of value".into()),
    };
    let HostValue::List(list) = actual else { return Ok(()) };
    if list.items().len() != items.len() {
        return Err(format!("it has {} items, expected {}", list.items().len(), items.len()));
    }
    let mut each = list.items().iter().zip(items).enumerate();
    each.try_for_each(|(i, (a, w))| same(host, a, w, tolerance).map_err(|e| format!("item {i}: {e}")))
}
