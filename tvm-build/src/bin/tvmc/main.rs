//! `tvmc`: the compiler as a program.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub,
    reason = "a program, not a library: it talks to its user"
)]

mod args;
mod list;
mod session;
mod show;

use args::{Cli, Command};
use clap::Parser;
use session::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Show(a) => show::run(&a),
        Command::List => list::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
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
