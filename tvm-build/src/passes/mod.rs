//! The passes by name.

pub mod relax;
pub mod tir;

use crate::pass::Pass;

/// Every pass, Relax passes first, each list sorted by name.
pub fn all() -> impl Iterator<Item = &'static Pass> {
    relax::PASSES.iter().chain(tir::PASSES).copied()
}

/// The pass of a name.
pub fn lookup(name: &str) -> Option<&'static Pass> {
    all().find(|p| p.name == name)
}
