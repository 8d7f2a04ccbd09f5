//! Pipelines: passes in order. They are plain lists; a user's own pipeline is a `Vec<Step>` too.

use crate::pass::{Pass, Step};
use crate::passes;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::span::Span;

pub use crate::pass_spec::parse_steps;

/// A named pipeline.
pub struct Pipeline {
    /// Its name, as `zero`.
    pub name: &'static str,
    /// What it is for, in one line.
    pub doc: &'static str,
    /// Its passes with their arguments.
    pub steps: fn() -> Vec<Step>,
}

static PIPELINES: &[Pipeline] = &[
    Pipeline {
        name: "default",
        doc: "prepares the graph for inference, then fuses: what builds use before kernels are scheduled",
        steps: default_steps,
    },
    Pipeline { name: "zero", doc: "lowers and fuses, no more: the tutorial's pipeline", steps: || steps_of(ZERO) },
];

/// TVM's zero pipeline.
const ZERO: &[&str] = &[
    "LegalizeOps",
    // Reads the PrimFuncs that LegalizeOps made.
    "AnnotateTIROpPattern",
    // Before fusion: a folded binding is a constant, which no group computes again.
    "FoldConstant",
    // Reads op_pattern.
    "FuseOps",
    "FuseTIR",
];

const DEFAULT: &[&str] = &[
    // The patterns of graph passes are clearer without names for names.
    "CanonicalizeBindings",
    // Weights that are prepared alike are prepared once …
    "EliminateCommonSubexpr",
    // … and patterns of graph passes see the constants that they are then.
    "FoldConstant",
    // Batch norm goes into the weights of the conv before it, where both are constants …
    "FoldBatchnormToConv2D",
    // … and into element-wise ops elsewhere.
    "DecomposeOpsForInference",
    // What both passes above did to weights is computed now.
    "FoldConstant",
    // Equal subgraphs, as exporters write them for shapes, are lowered once.
    "EliminateCommonSubexpr",
    "CanonicalizeBindings",
    "DeadCodeElimination",
    "LegalizeOps",
    "AnnotateTIROpPattern",
    // What only lowering showed to be constant.
    "FoldConstant",
    "FuseOps",
    "FuseTIR",
    "DeadCodeElimination",
];

/// The passes of the pipeline `default`.
pub fn default_steps() -> Vec<Step> {
    steps_of(DEFAULT)
}

/// The passes of a list that exist; a test checks that all do.
fn steps_of(names: &[&str]) -> Vec<Step> {
    names.iter().filter_map(|n| passes::lookup(n)).map(Step::new).collect()
}

/// Every named pipeline, sorted by name.
pub fn all() -> impl Iterator<Item = &'static Pipeline> {
    PIPELINES.iter()
}

/// The pipeline of a name.
pub fn lookup(name: &str) -> Option<&'static Pipeline> {
    all().find(|p| p.name == name)
}

/// The pass of a name. The error lists names that are like it.
pub fn pass(name: &str) -> Result<&'static Pass, Diags> {
    passes::lookup(name).ok_or_else(|| {
        let lower = name.to_lowercase();
        let like: Vec<&str> = passes::all()
            .map(|p| p.name)
            .filter(|n| {
                let n = n.to_lowercase();
                n.contains(&lower) || lower.contains(&n) || n.chars().zip(lower.chars()).take(5).all(|(a, b)| a == b)
            })
            .collect();
        let diag = Diag::error(Span::NONE, format!("there is no pass {name}"));
        match like.as_slice() {
            [] => diag.help("tvmc list shows the passes"),
            like => diag.help(format!("is it {}?", like.join(" or "))),
        }
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipelines_name_passes_that_exist() {
        for list in [ZERO, DEFAULT] {
            for name in list {
                assert!(pass(name).is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn unknown_pass_is_reported_with_a_suggestion() {
        let Err(e) = pass("FuseOp") else { panic!("found") };
        assert!(e.to_string().contains("FuseOps"), "{e}");
    }
}
