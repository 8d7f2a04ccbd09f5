//! The op table: one row an op, one file a family.
//!
//! A row ([`OpDef`]) declares an op's arguments and attributes, infers its struct info and makes it simpler.
//! To add an op, add a row to its family's file; a new family is one file, one `mod` line and one entry of `FILES`.

mod activation;
mod adaptive_pool;
mod attention;
mod batch_norm;
mod binary;
mod blame;
mod check;
mod checked_index;
mod collapse;
mod conv;
mod conv_transpose;
mod create;
mod cx;
mod deformable;
mod dynamic;
mod elementwise;
mod extents;
mod fail;
mod gate;
mod image;
mod join;
mod legalize;
mod linalg;
mod linear_attention;
mod list;
mod matmul;
mod memory;
mod merge;
mod ngram;
mod nms;
mod nonzero;
mod norm;
mod pad;
mod permute;
mod pool;
mod pool_index;
mod random;
mod range;
mod recurrent;
mod reduce;
mod reshape;
mod row;
mod run_time;
mod scan;
mod scatter;
mod search;
mod shape;
mod show;
mod signal;
mod slice;
mod sort;
mod spread;
mod take;
mod topi;
mod tree;
mod unary;
mod unique;
mod view_extents;
mod window;

pub(crate) use blame::{operand_at_fault, with_written_names};
pub use check::make_call;
pub(crate) use check::signature;
pub use legalize::legalize;
pub use show::{show_dims, show_info};

use crate::arith::Analyzer;
use crate::diag::Diag;
use crate::relax::{Call, InferCx, Op, OpDef, StructInfo};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The families.
static FILES: &[&[OpDef]] = &[
    activation::OPS,
    adaptive_pool::OPS,
    attention::OPS,
    batch_norm::OPS,
    binary::OPS,
    checked_index::OPS,
    collapse::OPS,
    conv::OPS,
    conv_transpose::OPS,
    create::FILLS,
    create::OPS,
    deformable::OPS,
    dynamic::OPS,
    elementwise::OPS,
    extents::OPS,
    fail::OPS,
    image::OPS,
    join::OPS,
    linalg::OPS,
    linear_attention::OPS,
    list::OPS,
    matmul::OPS,
    memory::OPS,
    ngram::OPS,
    nms::OPS,
    nonzero::OPS,
    norm::OPS,
    pad::OPS,
    permute::OPS,
    pool::OPS,
    pool_index::OPS,
    range::OPS,
    random::OPS,
    recurrent::OPS,
    reduce::OPS,
    reshape::OPS,
    scan::OPS,
    scatter::OPS,
    search::OPS,
    shape::OPS,
    signal::OPS,
    slice::OPS,
    sort::OPS,
    spread::OPS,
    take::OPS,
    tree::OPS,
    unary::OPS,
    unique::OPS,
    view_extents::OPS,
];

/// The op of a name after `R.`.
pub fn lookup(name: &str) -> Option<Op> {
    static INDEX: OnceLock<BTreeMap<&'static str, Op>> = OnceLock::new();
    INDEX.get_or_init(|| all().map(|d| (d.name, Op::new(d))).collect()).get(name).copied()
}

/// Every op, family by family.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FILES.iter().flat_map(|f| f.iter())
}

/// Names of the table most like a name, best first, for "did you mean".
pub fn suggest(name: &str) -> Vec<&'static str> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let mut scored: Vec<(usize, &'static str)> = all()
        .map(|d| (distance(name, d.name).min(1 + distance(last, d.name.rsplit('.').next().unwrap_or(d.name))), d.name))
        .filter(|(n, _)| *n <= 1 + name.len() / 3)
        .collect();
    scored.sort_unstable();
    let best = scored.first().map_or(0, |s| s.0);
    scored.into_iter().take_while(|s| s.0 == best).take(3).map(|(_, n)| n).collect()
}

/// Edits between two strings.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Struct info of a call. Errors name the op, the argument and both sides of what does not fit.
pub fn infer(call: &Call, analyzer: &Analyzer) -> Result<StructInfo, Diag> {
    check::check_call(call)?;
    (call.op.def().infer)(&InferCx { call, analyzer }).map_err(|d| d.at(call.span))
}

#[cfg(test)]
mod tests;
