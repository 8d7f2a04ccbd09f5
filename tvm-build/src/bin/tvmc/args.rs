//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tvm_build::dims::DimBounds;

/// Compiles models to native code ahead of time.
///
/// MODEL is an .onnx file or TVMScript text (.py, .tvm; `-` reads it from standard input).
/// Exit codes: 0 fine, 1 the model or the result is at fault (a message says what), 2 usage.
#[derive(Parser)]
#[command(name = "tvmc", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Report everything that would stop a build of MODEL, all at once
    Check(CheckArgs),
    /// Print MODEL as TVMScript or in the Rust spelling, at any stage of the pipeline
    Show(ShowArgs),
    /// Write C sources, header, weights, static library and a report of MODEL to a folder
    Compile(CompileArgs),
    /// Compile MODEL for this machine and run it once
    ///
    /// Values are arrays of an .npz archive, of numbers or strings (Unicode, UTF-8 bytes, or objects that are strings). The items of a
    /// sequence or optional are arrays INPUT/0, INPUT/1, …, those of lists of lists INPUT/0/0, …; a list without arrays has no
    /// items, and the value of an optional may stand under INPUT alone. Or they are files of a folder as ONNX's tests have them,
    /// input_0.pb, … and output_0.pb, …: a serialized TensorProto, SequenceProto or OptionalProto each.
    Run(RunArgs),
    /// Compile MODEL for this machine and measure its latency
    Bench(BenchArgs),
    /// Run the ONNX cases of a folder and compare their results; the last line is `N passed, M failed`
    OnnxSuite(SuiteArgs),
    /// Run one case and print its outcome on a line
    #[command(hide = true)]
    OnnxCase(CaseArgs),
    /// List the passes and pipelines that `show` can run, and the targets
    List,
}

/// What to compile, and for what.
#[derive(Args)]
pub struct ModelArgs {
    /// An .onnx file, or TVMScript text (.py, .tvm; `-` for standard input)
    pub model: PathBuf,
    /// A symbolic dimension's number or range, as batch=4 or batch=1..8; may be given several times
    #[arg(long = "bound", value_name = "NAME=RANGE", value_parser = DimBounds::parse)]
    pub bounds: Vec<(String, RangeInclusive<i64>)>,
    /// An initializer of an ONNX model that is an input too and stays one, for other values; `main_defaults` gives its own, which
    /// `run` takes if it is given none. May be given several times
    #[arg(long, value_name = "NAME")]
    pub overridable: Vec<String>,
}

/// What to compile for.
#[derive(Args)]
pub struct TargetArgs {
    /// Target, as x86-64-v3; the default is this machine. `tvmc list` names them
    #[arg(long)]
    pub target: Option<String>,
}

#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Declares an external function: 'fn f(x: *const f32, n: usize, y: *mut f32)'
    #[arg(long = "extern-fn", value_name = "SIGNATURE")]
    pub extern_fns: Vec<String>,
    /// Declares the functions of a C header (with the feature bindgen)
    #[arg(long = "c-header", value_name = "FILE")]
    pub c_headers: Vec<PathBuf>,
}

/// TVMScript as which TVM prints it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DialectArg {
    /// The tutorial's: T.block, out_sinfo, tir.noalias
    Tutorial,
    /// TVM 0.27's: T.sblock, out_ty, tirx.noalias
    #[value(name = "0.27")]
    V0_27,
}

#[derive(Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Run a named pipeline first, as `zero`
    #[arg(long, conflicts_with = "pass")]
    pub pipeline: Option<String>,
    /// Run passes first, in order, as 'LegalizeOps,FuseOps(fuse_opt_level=2)'
    #[arg(long)]
    pub pass: Option<String>,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Spelling of the output
    #[arg(long, value_enum, default_value = "tutorial")]
    pub dialect: DialectArg,
    /// Print the Rust spelling, as `ir_module!` reads it
    #[arg(long, conflicts_with_all = ["dialect", "func"])]
    pub rust: bool,
    /// Print this function alone
    #[arg(long)]
    pub func: Option<String>,
}

#[derive(Args)]
pub struct CompileArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Folder to write to; made when missing
    #[arg(long)]
    pub out: PathBuf,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Name of the module and prefix of its files; the default is the model file's
    #[arg(long)]
    pub name: Option<String>,
    /// Say on standard error how long each pass and phase took
    #[arg(long)]
    pub times: bool,
}

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// An .npz archive of the inputs by parameter name, or input_0, input_1, … by position; or a folder of input_0.pb, …
    #[arg(long)]
    pub inputs: PathBuf,
    /// Where to write output_0, output_1, …: an .npz archive, or a folder, existing or with a / at its end, for output_0.pb, …
    #[arg(long)]
    pub outputs: Option<PathBuf>,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Threads that a call may use; kernels run on one, and more are refused until schedules are parallel
    #[arg(long, default_value_t = 1, value_parser = threads)]
    #[allow(dead_code, reason = "checked when it is read")]
    pub threads: u32,
    /// Function to run
    #[arg(long, default_value = "main")]
    pub func: String,
    /// Run the function this many times and report the growth of the process's memory
    #[arg(long, default_value_t = 1)]
    pub repeat: u64,
}

#[derive(Args)]
pub struct BenchArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Threads that a call may use; kernels run on one, and more are refused until schedules are parallel
    #[arg(long, default_value_t = 1, value_parser = threads)]
    #[allow(dead_code, reason = "checked when it is read")]
    pub threads: u32,
    /// Function to measure; its inputs are random
    #[arg(long, default_value = "main")]
    pub func: String,
    /// Seconds to measure for
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Value of a symbolic dimension, as n=16; may be given several times
    #[arg(long = "dim", value_name = "NAME=N")]
    pub dims: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Each case is a folder DIR/CASE with model.onnx, tolerance (relative, absolute) and set_K/{input,output}_I.pb.
#[derive(Args)]
pub struct SuiteArgs {
    /// Folder of cases
    pub dir: PathBuf,
    /// Write the outcome of every case to this file
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Run only the cases whose names contain this
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Where a model cannot be compiled for every value of an input (a shape or axes), compile it for the case's:
    /// integer inputs of rank 0 or 1 first, then every small input. The report says how many cases needed it
    #[arg(long)]
    pub bind_inputs: bool,
    /// Cases at once; the default is the number of processors
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Fill memory that is no longer in use, so that a read of it shows
    #[arg(long)]
    pub poison: bool,
    /// Only import and compile to C, for cases without values: what `check` does
    #[arg(long, conflicts_with = "bind_inputs")]
    pub check: bool,
    /// List of the cases that do not pass, a line each: name, tab, reason. The run succeeds if it agrees. With
    /// TVM_BLESS=1 in the environment the file is rewritten
    #[arg(long, value_name = "FILE")]
    pub expected: Option<PathBuf>,
    /// Keep compiled kernels in this folder: what has not changed since the last run is not compiled again
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args)]
pub struct CaseArgs {
    /// Folder of the case
    pub dir: PathBuf,
    /// Fill memory that is no longer in use
    #[arg(long)]
    pub poison: bool,
    /// Compile for values of inputs where a model cannot be compiled for all
    #[arg(long)]
    pub bind_inputs: bool,
    /// Only import and compile to C
    #[arg(long)]
    pub check: bool,
    /// Keep compiled kernels in this folder
    #[arg(long)]
    pub cache: Option<PathBuf>,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// A number of threads that there are kernels for.
fn threads(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(1) => Ok(1),
        Ok(_) => Err("no schedule is parallel yet: kernels run on one thread".into()),
        Err(_) => Err("not a number of threads".into()),
    }
}
