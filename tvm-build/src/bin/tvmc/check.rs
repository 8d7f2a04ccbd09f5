//! `tvmc check`

use crate::args::CheckArgs;
use crate::session::{Failure, Session};
use tvm_build::compile::{Options, compile_module};

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut session = Session::new();
    let target = session.target(&args.target)?;
    let module = session.load(&args.model)?;
    session.progress("compiling");
    let artifacts = session.check(compile_module(module, &Options::new("model", target)))?;
    println!(
        "{}: no faults; arena {} bytes, weights {} bytes",
        args.model.model.display(),
        artifacts.program.arena_bytes(),
        artifacts.weights.len()
    );
    Ok(())
}
