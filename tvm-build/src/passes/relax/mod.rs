//! Relax passes: one file a pass.

use crate::pass::Pass;

/// Sorted by name.
pub static PASSES: &[&Pass] = &[];
