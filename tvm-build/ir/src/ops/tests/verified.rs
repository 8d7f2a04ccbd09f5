//! What ops lower to is well-formed and stays in bounds.

use super::samples::samples;
use super::symbolic::made_symbolic;
use crate::arith::Analyzer;
use crate::diag::Severity;
use crate::ops::{infer, legalize};
use crate::relax::{Call, Legalized};
use crate::tir::verify::{verify, verify_bounds};

/// Ops that lose a relation between their arguments when extents become symbols: an index, a part, a count of gates or channels
/// is then too large for some sizes.
const RELATED: &[&str] = &[
    "broadcast_to",
    "collapse_to",
    "dynamic_pad",
    "dynamic_slice",
    "nn.conv2d",
    "nn.deformable_conv2d",
    "nn.gru",
    "nn.linear_attention",
    "nn.lstm",
    "nn.pad",
    "split",
    "stft",
    "take",
];

fn problems(call: &Call) -> Vec<String> {
    let Ok(info) = infer(call, &Analyzer::new()) else { return Vec::new() };
    let Ok(Legalized::Tir { func, .. }) = legalize(call, &info) else { return Vec::new() };
    let name = call.op.name();
    let mut text = Vec::new();
    if let Err(d) = verify(&func) {
        text.extend(d.0.iter().map(|d| format!("{name}: {d} ({})", d.notes.join(", "))));
    }
    for d in verify_bounds(&func).0 {
        if d.severity == Severity::Error || !d.message.contains("depends on data") {
            text.push(format!("{name}: {d}"));
        }
    }
    text
}

#[test]
fn lowered_samples_are_well_formed_and_in_bounds() {
    let text: Vec<String> = samples().iter().flat_map(|(call, ..)| problems(call)).collect();
    assert!(text.is_empty(), "{}", text.join("\n"));
}

#[test]
fn symbolic_samples_are_well_formed_and_in_bounds() {
    let calls = samples().into_iter().filter(|(call, ..)| !RELATED.contains(&call.op.name()));
    let text: Vec<String> = calls.flat_map(|(call, ..)| problems(&made_symbolic(&call).0)).collect();
    assert!(text.is_empty(), "{}", text.join("\n"));
}
