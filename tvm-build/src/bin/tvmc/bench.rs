//! `tvmc bench`

use crate::args::BenchArgs;
use crate::session::{Failure, Session};
use std::time::{Duration, Instant};
use tvm_build::vm::{Entry, EntryKind};
use tvm_ir::arith::Analyzer;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, PrimKind, Var, rewrite};
use tvm_ir::span::Span;
use tvm_runtime::TypeCode;
use tvm_runtime::host::HostTensor;

pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    let dims = args.dims.iter().map(|d| parse_dim(d)).collect::<Result<Vec<_>, _>>()?;
    let mut session = Session::new();
    let mut module = session.load_to_run(&args.model, &args.target)?;
    let entry = module.entry(&args.func).map_err(|d| session.fail(&d.into()))?;
    let mut inputs = random_inputs(entry, &dims).map_err(|d| session.fail(&d.into()))?;
    session.progress("measuring");
    let mut times = Vec::new();
    let outputs = module
        .repeat(&args.func, &mut inputs, &mut |call| {
            let limit = Duration::from_secs_f64(args.seconds.clamp(0.0, 3600.0));
            call()?;
            // Short calls are timed in batches, so that reading the clock does not count.
            let start = Instant::now();
            call()?;
            let once = start.elapsed().max(Duration::from_nanos(50));
            let batch = u32::try_from((Duration::from_micros(20).as_nanos() / once.as_nanos()).max(1)).unwrap_or(1);
            let start = Instant::now();
            while start.elapsed() < limit || times.is_empty() {
                let begin = Instant::now();
                for _ in 0..batch {
                    call()?;
                }
                times.push(begin.elapsed().as_secs_f64() * 1e6 / f64::from(batch));
            }
            Ok(())
        })
        .map_err(|d| session.fail(&d.into()))?;
    drop(outputs);
    times.sort_by(f64::total_cmp);
    let at = |q: f64| times.get(((times.len() - 1) as f64 * q) as usize).copied().unwrap_or(0.0);
    let (min, median, p99) = (at(0.0), at(0.5), at(0.99));
    let facts = session.facts.clone().unwrap_or_default();
    if args.json {
        println!(
            "{{\"min_us\": {min:.3}, \"median_us\": {median:.3}, \"p99_us\": {p99:.3}, \"samples\": {}, \
             \"arena_bytes\": {}, \"weight_bytes\": {}, \"code_bytes\": {}, \"target\": \"{}\"}}",
            times.len(),
            facts.arena_bytes,
            facts.weight_bytes,
            facts.code_bytes,
            facts.target
        );
    } else {
        println!("latency  min {min:.2} us, median {median:.2} us, p99 {p99:.2} us ({} samples)", times.len());
        println!("arena    {} bytes", facts.arena_bytes);
        println!("weights  {} bytes", facts.weight_bytes);
        println!("code     {} bytes of shared library for {}", facts.code_bytes, facts.target);
    }
    Ok(())
}

fn parse_dim(text: &str) -> Result<(String, i64), Failure> {
    text.split_once('=')
        .and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .ok_or_else(|| Failure::Usage(format!("'--dim {text}' is not of the form NAME=N")))
}

/// Inputs with values that real ones could have: floats in -1 to 1, integers and bools 0 or 1.
fn random_inputs(entry: &Entry, dims: &[(String, i64)]) -> Result<Vec<HostTensor>, Diag> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let named = |v: &Var| dims.iter().find(|(n, _)| *v.name() == *n.as_str()).map(|(_, n)| *n);
    let mut inputs = Vec::new();
    for param in &entry.params {
        let EntryKind::Tensor(Some(dtype), Some(shape)) = &param.kind else {
            return Err(Diag::error(Span::NONE, format!("{}: only tensors of known rank are made up", param.name))
                .help("use `tvmc run` with real inputs"));
        };
        let mut extents = Vec::new();
        for dim in shape {
            let bound = rewrite(dim, &mut |e| match e.kind() {
                PrimKind::Var(v) => named(v).map(|n| PrimExpr::int(v.dtype(), n)),
                _ => None,
            });
            let Some(n) = Analyzer::new().simplify(&bound).as_int() else {
                return Err(Diag::error(Span::NONE, format!("{}: the dimension {dim:?} is symbolic", param.name))
                    .help("give its value, as in `--dim n=16`"));
            };
            extents.push(n);
        }
        let count = extents.iter().try_fold(1usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?)).unwrap_or(0);
        let mut bytes = Vec::new();
        for _ in 0..dtype.units(count) {
            let random = next();
            let unit = (random >> 40) as f32 / (1u32 << 23) as f32 - 1.0;
            match (dtype.code, dtype.bits) {
                (TypeCode::Float, 32) => bytes.extend(unit.to_le_bytes()),
                (TypeCode::Float, 64) => bytes.extend(f64::from(unit).to_le_bytes()),
                (TypeCode::Float, 16) => bytes.extend(tvm_runtime::F16::from_f32(unit).0.to_le_bytes()),
                (TypeCode::BFloat, 16) => bytes.extend(tvm_runtime::Bf16::from_f32(unit).0.to_le_bytes()),
                _ => {
                    bytes.push((random & 1) as u8);
                    bytes.resize(bytes.len() + dtype.bytes().saturating_sub(1), 0);
                }
            }
        }
        inputs.push(
            HostTensor::new(*dtype, &extents, &bytes).ok_or_else(|| {
                Diag::error(Span::NONE, format!("{}: no tensor has the shape {extents:?}", param.name))
            })?,
        );
    }
    Ok(inputs)
}
