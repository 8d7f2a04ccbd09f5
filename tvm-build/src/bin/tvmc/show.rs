//! `tvmc show`

use crate::args::{DialectArg, ShowArgs};
use crate::session::{Failure, Session};
use std::io::Write;
use std::path::Path;
use tvm_build::pass::{Instrument, Step, run_steps, verify};
use tvm_build::pipeline;
use tvm_ir::module::IRModule;
use tvm_ir::syntax::{Dialect, print_func, print_module, print_rust};

pub fn run(args: &ShowArgs) -> Result<(), Failure> {
    let mut session = Session::new();
    let target = session.target(&args.target)?;
    let steps = match (&args.pipeline, &args.pass) {
        (Some(name), _) => pipeline::lookup(name).map(|p| (p.steps)()).ok_or_else(|| {
            let known: Vec<&str> = pipeline::all().map(|p| p.name).collect();
            Failure::Usage(format!("unknown pipeline '{name}'; known are {}", known.join(", ")))
        })?,
        (None, Some(spec)) => pipeline::parse_steps(spec).map_err(|d| Failure::Usage(d.to_string()))?,
        (None, None) => Vec::new(),
    };
    let mut module = session.load(&args.model)?;
    let mut report = |step: &Step, _: &IRModule| session.progress(step.pass.name);
    let mut instrument = Instrument { verify: Some(verify), after: Some(&mut report), ..Instrument::default() };
    let done = run_steps(&steps, &mut module, &target, &mut instrument);
    session.check(done)?;
    let dialect = match args.dialect {
        DialectArg::Tutorial => Dialect::Tutorial,
        DialectArg::V0_27 => Dialect::V0_27,
    };
    let text = match &args.func {
        None if args.rust => {
            let (text, constants) = session.check(print_rust(&module, &module_name(&args.model.model)))?;
            if !constants.is_empty() {
                session.progress(&format!(
                    "{} constants are too large to be written out: I::metadata(i)",
                    constants.len()
                ));
            }
            text
        }
        None => print_module(&module, dialect),
        Some(name) => {
            let func = module.get(name).ok_or_else(|| {
                let names: Vec<&str> = module.funcs.keys().map(|n| n.as_str()).collect();
                Failure::Usage(format!("the module has no function '{name}'; it has {}", names.join(", ")))
            })?;
            print_func(name, func, dialect)
        }
    };
    // A closed pipe (`| head`) is the reader's choice, not an error.
    let _ = writeln!(std::io::stdout().lock(), "{}", text.trim_end_matches('\n'));
    Ok(())
}

/// The name of a file as a Rust identifier.
fn module_name(path: &Path) -> String {
    let stem = path.file_stem().map_or(String::new(), |s| s.to_string_lossy().to_lowercase());
    let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    match name.trim_matches('_') {
        "" => "module".into(),
        n if n.starts_with(|c: char| c.is_ascii_digit()) => format!("m{n}"),
        n => n.into(),
    }
}
