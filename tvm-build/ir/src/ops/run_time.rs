//! Extents that are known when something has run, in the lowerings of ops with such results.

use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{PrimExpr, Var};
use crate::relax::build::BindingBuilder;
use crate::relax::{Dims, Leaf, StructInfo};

/// Binds new symbolic variables of these names to the elements of a vector of `int64`, each of which is at most what
/// `most` says: the bound for memory.
pub(super) fn bind_extents(
    builder: &mut BindingBuilder,
    values: Leaf,
    most: Vec<PrimExpr>,
    names: &[&str],
) -> Result<Vec<PrimExpr>, Diag> {
    let shape = builder.call("tensor_to_shape", vec![values], &[])?;
    let bounded = builder.call("at_most", vec![shape, Leaf::Shape(most)], &[])?;
    let vars: Vec<Var> = names.iter().map(|name| Var::new(*name, DType::I64)).collect();
    vars.iter().for_each(|v| builder.analyzer.assume_nonnegative(v));
    let dims: Vec<PrimExpr> = vars.iter().map(Var::expr).collect();
    builder.match_cast(bounded, StructInfo::Shape(Dims::Known(dims.clone())));
    Ok(dims)
}

/// The first elements along the first axis, as many as `count` says, which is at most its extent.
pub(super) fn first(builder: &mut BindingBuilder, x: Leaf, count: &PrimExpr) -> Result<Leaf, Diag> {
    let one = |e: PrimExpr| Leaf::Tuple(vec![Leaf::Prim(e)]);
    let args = vec![x, one(PrimExpr::i64(0)), one(PrimExpr::i64(0)), one(count.clone())];
    builder.call("strided_slice", args, &[("assume_inbound", true.into())])
}

/// The number of elements.
pub(super) fn count(dims: &[PrimExpr]) -> PrimExpr {
    let all = dims.iter().fold(PrimExpr::i64(1), |a, b| a * b);
    crate::arith::Analyzer::new().simplify(&all)
}
