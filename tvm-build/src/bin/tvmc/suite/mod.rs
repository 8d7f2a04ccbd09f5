//! `tvmc onnx-suite`: the cases of a folder, each in a process of its own, several at once.

pub mod case;
mod compare;
mod expected;
mod outcome;
mod report;

use crate::args::SuiteArgs;
use crate::session::Failure;
use expected::{Expected, heading};
use outcome::{Outcome, Stage};
use report::{CaseResult, Report};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Longest time of a case.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Most address space of a case and of the compilers it starts, in KB.
const MEMORY_LIMIT_KB: u64 = 6 << 20;

pub fn run(args: &SuiteArgs) -> Result<(), Failure> {
    let start = Instant::now();
    let cases = cases(&args.dir, args.filter.as_deref())?;
    let expected = args.expected.as_deref().map(read_expected).transpose()?;
    if let Some(cache) = &args.cache {
        std::fs::create_dir_all(cache)
            .map_err(|e| Failure::Usage(format!("cannot make the folder {}: {e}", cache.display())))?;
    }
    let program = std::env::current_exe().map_err(|e| Failure::Model(format!("error: {e}")))?;
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get())).max(1);
    let next = Mutex::new(cases.iter());
    let results = Mutex::new(Vec::new());
    let terminal = std::io::stderr().is_terminal();
    let work = || {
        while let Some(dir) = next.lock().ok().and_then(|mut n| n.next()) {
            let begin = Instant::now();
            let outcome = run_case(&program, dir, args);
            let name = dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let result = CaseResult { name, outcome, seconds: begin.elapsed().as_secs_f64() };
            let Ok(mut results) = results.lock() else { return };
            results.push(result);
            if terminal {
                let failed = results.iter().filter(|r| r.outcome.failure.is_some()).count();
                eprint!(
                    "\r[{:6.1} s] {} of {} cases, {failed} failed",
                    start.elapsed().as_secs_f64(),
                    results.len(),
                    cases.len()
                );
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(work);
        }
        work();
    });
    if terminal {
        eprintln!();
    }
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by(|a, b| a.name.cmp(&b.name));
    let report = Report { results, seconds: start.elapsed().as_secs_f64() };
    if let Some(path) = &args.json {
        std::fs::write(path, report.json())
            .map_err(|e| Failure::Model(format!("error: cannot write {}: {e}", path.display())))?;
    }
    print!("{}", report.text());
    match (expected, &args.expected) {
        (Some((expected, text)), Some(path)) => agrees(&report, &expected, &text, path, args.filter.is_some()),
        _ if report.failed() == 0 => Ok(()),
        _ => Err(Failure::Reported),
    }
}

fn read_expected(path: &Path) -> Result<(Expected, String), Failure> {
    let usage = |e: String| Failure::Usage(format!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| usage(e.to_string()))?;
    Ok((Expected::parse(&text).map_err(usage)?, text))
}

/// Compares with the list of cases that do not pass, or rewrites it.
fn agrees(report: &Report, expected: &Expected, text: &str, path: &Path, filtered: bool) -> Result<(), Failure> {
    let differences = expected.differences(&report.results, filtered);
    if differences.is_empty() {
        println!("as expected by {}", path.display());
        return Ok(());
    }
    if std::env::var_os("TVM_BLESS").is_some() && !filtered {
        println!("{} is rewritten: {} changes", path.display(), differences.len());
        return std::fs::write(path, expected.bless(&report.results, &heading(text)))
            .map_err(|e| Failure::Model(format!("error: cannot write {}: {e}", path.display())));
    }
    let lines = differences.join("\n");
    Err(Failure::Model(format!("error: {} changes against {}:\n{lines}", differences.len(), path.display())))
}

/// The folders that hold a model, by name.
fn cases(dir: &Path, filter: Option<&str>) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |e: std::io::Error| Failure::Usage(format!("cannot read the folder {}: {e}", dir.display()));
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let named = |f: &str| path.file_name().is_some_and(|n| n.to_string_lossy().contains(f));
        if path.join("model.onnx").is_file() && filter.is_none_or(named) {
            cases.push(path);
        }
    }
    cases.sort();
    if cases.is_empty() {
        return Err(Failure::Usage(format!("{} has no case: no folder with a model.onnx", dir.display())));
    }
    Ok(cases)
}

/// Runs a case in a process within limits of time and, where a shell can set it, of memory.
fn run_case(program: &Path, dir: &Path, args: &SuiteArgs) -> Outcome {
    let mut command = if cfg!(unix) {
        let mut shell = Command::new("sh");
        let limits = format!("ulimit -v {MEMORY_LIMIT_KB}; ulimit -t 120; exec \"$0\" \"$@\"");
        shell.arg("-c").arg(limits).arg(program);
        shell
    } else {
        Command::new(program)
    };
    command.arg("onnx-case").arg(dir);
    if args.poison {
        command.arg("--poison");
    }
    if args.bind_inputs {
        command.arg("--bind-inputs");
    }
    if args.check {
        command.arg("--check");
    }
    if let Some(cache) = &args.cache {
        command.arg("--cache").arg(cache);
    }
    if let Some(target) = &args.target.target {
        command.arg("--target").arg(target);
    }
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(e) => return Outcome::failed(Stage::Crash, format!("no process: {e}")),
    };
    // What it prints is read as it comes, so that it never waits for a reader.
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let err = scope.spawn(|| read_some(err));
        let out = scope.spawn(|| read_some(out));
        let begin = Instant::now();
        let mut pause = Duration::from_millis(2);
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) if begin.elapsed() > TIME_LIMIT => {
                    // It may just have ended.
                    let _ = child.kill();
                    let _ = child.wait();
                    break Err(Outcome::failed(Stage::Time, format!("more than {} s", TIME_LIMIT.as_secs())));
                }
                Ok(None) => std::thread::sleep(pause),
                Err(e) => break Err(Outcome::failed(Stage::Crash, e.to_string())),
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        let status = match status {
            Ok(status) => status,
            Err(outcome) => return outcome,
        };
        let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        match out.lines().last().and_then(Outcome::parse) {
            Some(outcome) if status.success() => outcome,
            _ => {
                let said = err.lines().filter(|l| !l.trim().is_empty()).take(2).collect::<Vec<_>>().join(" ");
                let reason: String = format!("{status}: {said}").chars().take(1000).collect();
                Outcome::failed(Stage::Crash, reason)
            }
        }
    })
}

/// What a process prints, up to a bound; the rest is read and dropped.
fn read_some(from: Option<impl Read>) -> String {
    let Some(mut from) = from else { return String::new() };
    let mut text = Vec::new();
    if from.by_ref().take(1 << 16).read_to_end(&mut text).is_ok() {
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    }
    String::from_utf8_lossy(&text).into_owned()
}
