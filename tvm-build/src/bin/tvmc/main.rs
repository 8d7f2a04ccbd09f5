//! `tvmc`: the compiler as a program.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub,
    reason = "a program, not a library: it talks to its user"
)]

mod args;
mod bench;
mod check;
mod compile;
mod list;
mod run;
mod session;
mod show;
mod suite;
mod tensors;

use args::{Cli, Command};
use clap::Parser;
use session::Failure;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tvm_runtime::host::CountingAllocator = tvm_runtime::host::CountingAllocator;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Check(a) => check::run(&a),
        Command::Show(a) => show::run(&a),
        Command::Compile(a) => compile::run(&a),
        Command::Run(a) => run::run(&a),
        Command::Bench(a) => bench::run(&a),
        Command::OnnxSuite(a) => suite::run(&a),
        Command::OnnxCase(a) => suite::case::run(&a),
        Command::List => list::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Reported) => ExitCode::from(1),
        Err(Failure::Model(text)) => {
            eprintln!("{text}");
            ExitCode::from(1)
        }
        Err(Failure::Usage(text)) => {
            eprintln!("error: {text}\n\nFor more information, try '--help'.");
            ExitCode::from(2)
        }
    }
}
