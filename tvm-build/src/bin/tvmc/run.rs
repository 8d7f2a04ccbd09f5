//! `tvmc run`

use crate::args::RunArgs;
use crate::session::{Failure, Session};
use crate::tensors;
use tvm_runtime::host::CountingAllocator;

pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let mut session = Session::new();
    let given = tensors::read(args).map_err(|d| session.fail(&d.into()))?;
    let mut module = session.load_to_run(&args.model, &args.target)?;
    let entry = module.entry(&args.func).map_err(|d| session.fail(&d.into()))?.clone();
    let mut inputs = tensors::inputs(&mut module, args, given).map_err(|d| session.fail(&d.into()))?;
    session.progress("running");
    let mut report = String::new();
    let outputs = module
        .repeat_values(&args.func, &mut inputs, &mut |call| {
            call()?;
            let resident = resident_kb();
            let allocations = CountingAllocator::count();
            for _ in 1..args.repeat {
                call()?;
            }
            if args.repeat > 1 {
                let more = CountingAllocator::count() - allocations;
                report = format!("{} runs: {more} allocations", args.repeat);
                if let (Some(before), Some(after)) = (resident, resident_kb()) {
                    report.push_str(&format!(", resident memory {before} KB before, {after} KB after"));
                }
            }
            Ok(())
        })
        .map_err(|d| session.fail(&d.into()))?;
    if !report.is_empty() {
        println!("{report}");
    }
    tensors::write(&mut module, args, &entry, &outputs).map_err(|d| session.fail(&d.into()))
}

/// Memory of this process that is in use, where the system says.
fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
}
