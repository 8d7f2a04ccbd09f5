//! `tvmc check`

use crate::args::CheckArgs;
use crate::session::{Failure, Session};
use tvm_build::compile::{Options, compile_module};
use tvm_build::external::{CTypes, Declaration, Externals};
use tvm_ir::diag::Diags;

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut session = Session::new();
    let target = session.target(&args.target)?;
    let module = session.load(&args.model)?;
    let externals = session.check(externals(args))?;
    session.progress("compiling");
    let options = Options { externals, ..Options::new("model", target) };
    let artifacts = session.check(compile_module(module, &options))?;
    println!(
        "{}: no faults; arena {} bytes, weights {} bytes",
        args.model.model.display(),
        artifacts.program.arena_bytes(),
        artifacts.weights.len()
    );
    Ok(())
}

/// The external functions that the command line declares.
fn externals(args: &CheckArgs) -> Result<Externals, Diags> {
    let (mut externals, mut diags) = (Externals::default(), Diags::new());
    let types = CTypes::from_cargo();
    for text in &args.extern_fns {
        if let Some(d) = diags.ok(Declaration::parse(text, "--extern-fn", types)) {
            externals.add(d);
        }
    }
    for path in &args.c_headers {
        diags.ok(externals.read_header(path, &[], types));
    }
    diags.into_result(externals)
}
