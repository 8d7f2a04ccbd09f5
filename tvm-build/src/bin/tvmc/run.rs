//! `tvmc run`

use crate::args::RunArgs;
use crate::session::{Failure, Session};
use crate::tensors;
use tvm_build::npz;
use tvm_runtime::host::CountingAllocator;

pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let mut session = Session::new();
    let arrays = npz::read(&args.inputs).map_err(|e| Failure::Model(format!("error: {e}")))?;
    let mut module = session.load_to_run(&args.model, &args.target)?;
    let entry = module.entry(&args.func).map_err(|d| session.fail(&d.into()))?;
    let mut inputs = tensors::inputs(entry, arrays).map_err(|d| session.fail(&d.into()))?;
    session.progress("running");
    let mut report = String::new();
    let outputs = module
        .repeat(&args.func, &mut inputs, &mut |call| {
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
    let arrays = tensors::arrays(&outputs).map_err(|d| session.fail(&d.into()))?;
    match &args.outputs {
        Some(path) => npz::write(path, arrays.iter().map(|(n, a)| (n.as_str(), a)))
            .map_err(|e| Failure::Model(format!("error: {e}")))?,
        None => arrays.iter().for_each(|(name, array)| println!("{name} {}", tensors::preview(array))),
    }
    Ok(())
}

/// Memory of this process that is in use, where the system says.
fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
}
