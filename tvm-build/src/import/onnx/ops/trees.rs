//! Operators of the set ai.onnx.ml.

use std::collections::BTreeMap;

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::{Fail, constant_of};
use crate::import::onnx::tensor::Tensor;
use crate::import::onnx::value::{Value, constant, int_constant, ints_of, numbers_of};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[
    ("ArrayFeatureExtractor", 1, array_feature_extractor),
    ("Binarizer", 1, binarizer),
    ("TreeEnsemble", 5, tree_ensemble),
];

fn array_feature_extractor(cx: &mut OpCx<'_>) -> Outputs {
    let (x, y) = (cx.input(0, "X")?, cx.input(1, "Y")?);
    let (dims, indices) = (cx.dims(&x, "X")?, cx.dims(&y, "Y")?);
    let last = dims.last().ok_or("X has no axes")?;
    let y = cx.reshape(&y, vec![super::ints::product(&indices)])?;
    let extent = cx.emitter.materialize(std::slice::from_ref(last), true)?;
    let y = cx.apply("checked_index", &[&y, &extent])?;
    let mut out = cx.call("take", vec![x, y], vec![("axis", (-1).into())])?;
    // A list counts as a table of one row.
    if dims.len() == 1 {
        out = cx.call("expand_dims", vec![out], vec![("axis", vec![0].into())])?;
    }
    Ok(vec![out])
}

fn binarizer(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let threshold = f64::from(cx.node.float_or("threshold", 0.0)?);
    let dtype = cx.dtype(&x, "X")?;
    let threshold = cx.scalar(threshold, dtype)?;
    let above = cx.apply("greater", &[&x, &threshold])?;
    Ok(vec![cx.call("astype", vec![above], vec![("dtype", AttrValue::DType(dtype))])?])
}

/// Keys or values of a LabelEncoder: an attribute of numbers, or from version 4 on a tensor.
fn labels(cx: &OpCx<'_>, kind: &str) -> Result<(DType, Vec<f64>, Vec<i64>), Fail> {
    let name = |suffix: &str| format!("{kind}_{suffix}");
    if cx.node.strings(&name("strings"))?.is_some() {
        return Err(Fail::limit(format!("attribute '{}': strings are not supported", name("strings"))));
    }
    if let Some(floats) = cx.node.floats(&name("floats"))? {
        return Ok((DType::F32, floats.iter().copied().map(f64::from).collect(), Vec::new()));
    }
    if let Some(ints) = cx.node.ints(&name("int64s"))? {
        return Ok((DType::I64, Vec::new(), ints.to_vec()));
    }
    let tensor = cx.node.tensor(&name("tensor"))?;
    let constant = constant(tensor.ok_or_else(|| format!("the attribute with {kind} is missing"))?)?;
    match (ints_of(&constant), numbers_of(&constant)) {
        (Some(ints), _) => Ok((constant.dtype(), Vec::new(), ints)),
        (None, Some(floats)) => Ok((constant.dtype(), floats, Vec::new())),
        (None, None) => Err(format!("the {kind} must be numbers").into()),
    }
}

/// The label of a number, or the default where it is no key. Of equal keys the last counts; NaN is a key as others are.
pub(super) fn label_encoder(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let (key_type, mut keys, mut int_keys) = labels(cx, "keys")?;
    let (value_type, mut values, mut int_values) = labels(cx, "values")?;
    let count = keys.len().max(int_keys.len());
    if count == 0 || values.len().max(int_values.len()) != count {
        return Err("there must be as many values as keys, and one at least".into());
    }
    let default = match (cx.node.tensor("default_tensor")?, cx.node.float("default_float")?) {
        (Some(tensor), _) => cx.reshape(&constant(tensor)?.into(), Vec::new())?,
        (None, number) if value_type.is_float() => cx.scalar(f64::from(number.unwrap_or(-0.0)), value_type)?,
        (None, _) => {
            let default = cx.node.int_or("default_int64", -1)?;
            int_constant(&[default], true).ok_or("the default has no constant")?.into()
        }
    };
    cx.node.int("default_int64")?;
    cx.node.string("default_string")?;
    let own = cx.dtype(&x, "X")?;
    if own != key_type {
        return Err(format!("X is {own}, and the keys are {key_type}").into());
    }
    keys.reverse();
    int_keys.reverse();
    values.reverse();
    int_values.reverse();
    let list = |floats: &[f64], ints: &[i64], dtype: DType| -> Result<Value, Fail> {
        let made = if dtype == DType::I64 {
            int_constant(ints, false)
        } else {
            let numbers: Vec<f64> =
                if floats.is_empty() { ints.iter().map(|v| *v as f64).collect() } else { floats.to_vec() };
            constant_of(&numbers, vec![numbers.len() as u64], dtype)
        };
        Ok(made.ok_or_else(|| Fail::limit(format!("labels of {dtype} are not supported")))?.into())
    };
    let (keys, values) = (list(&keys, &int_keys, key_type)?, list(&values, &int_values, value_type)?);
    let wide = cx.call("expand_dims", vec![x], vec![("axis", vec![-1].into())])?;
    let mut same = cx.apply("equal", &[&wide, &keys])?;
    if own.is_float() {
        let (a, b) = (cx.apply("isnan", &[&wide])?, cx.apply("isnan", &[&keys])?);
        let both = cx.apply("logical_and", &[&a, &b])?;
        same = cx.apply("logical_or", &[&same, &both])?;
    }
    let same = cx.call("astype", vec![same], vec![("dtype", AttrValue::DType(DType::I32))])?;
    let place = cx.call("argmax", vec![same.clone()], vec![("axis", (-1).into())])?;
    let found = cx.call("max", vec![same], vec![("axis", vec![-1].into())])?;
    let found = cx.call("astype", vec![found], vec![("dtype", AttrValue::DType(DType::BOOL))])?;
    let label = cx.call("take", vec![values, place], vec![("axis", 0.into())])?;
    Ok(vec![cx.apply("where", &[&found, &label, &default])?])
}

/// Most nodes of all trees, and most nodes on a way from a root.
const MAX_NODES: usize = 1 << 24;

/// The mode of nodes that hold where a value is a member of a set, and that of equal values.
const MEMBER: i64 = 6;
const EQUAL: i64 = 4;

/// Nodes as `R.tree_ensemble` reads them: below zero are leaves.
#[derive(Default)]
struct Nodes {
    features: Vec<i64>,
    modes: Vec<i64>,
    splits: Vec<f64>,
    missing: Vec<i64>,
    if_true: Vec<i64>,
    if_false: Vec<i64>,
}

fn numbers(tensor: Option<&Tensor>, name: &str) -> Result<Option<Vec<f64>>, Fail> {
    let Some(tensor) = tensor else { return Ok(None) };
    let numbers = constant(tensor)?;
    let numbers = numbers_of(&numbers).ok_or_else(|| format!("attribute '{name}' must be numbers"))?;
    Ok(Some(numbers))
}

fn tree_ensemble(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let dtype = cx.dtype(&x, "X")?;
    let need = |name: &str| -> Result<Vec<i64>, Fail> {
        Ok(cx.node.ints(name)?.ok_or_else(|| format!("attribute '{name}' is missing"))?.to_vec())
    };
    let (roots, features) = (need("tree_roots")?, need("nodes_featureids")?);
    let (if_true, if_false) = (need("nodes_truenodeids")?, need("nodes_falsenodeids")?);
    let (true_leafs, false_leafs) = (need("nodes_trueleafs")?, need("nodes_falseleafs")?);
    let targets = need("leaf_targetids")?;
    let missing = cx.node.ints("nodes_missing_value_tracks_true")?.map_or(vec![0; features.len()], <[i64]>::to_vec);
    // How often a node was passed in training is of no account.
    cx.node.tensor("nodes_hitrates")?;
    let modes = cx.node.tensor("nodes_modes")?.ok_or("attribute 'nodes_modes' is missing")?;
    let modes = ints_of(&constant(modes)?).ok_or("attribute 'nodes_modes' must be integers")?;
    let splits =
        numbers(cx.node.tensor("nodes_splits")?, "nodes_splits")?.ok_or("attribute 'nodes_splits' is missing")?;
    let weights =
        numbers(cx.node.tensor("leaf_weights")?, "leaf_weights")?.ok_or("attribute 'leaf_weights' is missing")?;
    let members = numbers(cx.node.tensor("membership_values")?, "membership_values")?.unwrap_or_default();
    let aggregate = match cx.node.int_or("aggregate_function", 1)? {
        0 => "average",
        1 => "sum",
        2 => "min",
        3 => "max",
        other => return Err(format!("attribute 'aggregate_function' cannot be {other}").into()),
    };
    let transform = cx.node.int_or("post_transform", 0)?;
    let n_targets = match cx.node.int("n_targets")? {
        Some(n) => n,
        None => targets.iter().max().map_or(0, |last| last.saturating_add(1)),
    };
    let count = features.len();
    let lists =
        [if_true.len(), if_false.len(), true_leafs.len(), false_leafs.len(), missing.len(), modes.len(), splits.len()];
    if count == 0 || count > MAX_NODES || lists.iter().any(|n| *n != count) {
        return Err(format!("the lists of nodes must be of one length, not {count} and {lists:?}").into());
    }
    if targets.is_empty() || weights.len() != targets.len() || targets.iter().any(|t| !(0..n_targets).contains(t)) {
        return Err("the lists of leaves must be of one length, with targets below 'n_targets'".into());
    }
    let to = |id: i64, leaf: bool| -> Result<i64, Fail> {
        let most = if leaf { targets.len() } else { count };
        match usize::try_from(id) {
            Ok(at) if at < most => Ok(if leaf { -1 - id } else { id }),
            _ => Err(format!("there is no {} {id}", if leaf { "leaf" } else { "node" }).into()),
        }
    };
    let mut nodes = Nodes::default();
    for i in 0..count {
        nodes.if_true.push(to(if_true[i], true_leafs[i] != 0)?);
        nodes.if_false.push(to(if_false[i], false_leafs[i] != 0)?);
        if !(0..=MEMBER).contains(&modes[i]) || features[i] < 0 {
            return Err(format!("node {i} has mode {} and feature {}", modes[i], features[i]).into());
        }
    }
    (nodes.features, nodes.modes, nodes.splits, nodes.missing) = (features, modes, splits, missing);
    // A tree of one leaf is written as a node whose ways both go to it.
    let mut starts = Vec::with_capacity(roots.len());
    for root in roots {
        let root = to(root, false)?;
        let at = usize::try_from(root).map_err(|_| "a root is out of range")?;
        let lone = true_leafs[at] != 0 && false_leafs[at] != 0 && if_true[at] == if_false[at];
        starts.push(if lone { nodes.if_true[at] } else { root });
    }
    let order = visited(&nodes, &starts)?;
    nodes.spread(&order, &members)?;
    let depth = depth(&nodes, &starts)?;
    if starts.is_empty() || n_targets < 1 {
        return Err("there must be trees and targets".into());
    }
    let list = |values: &[i64]| -> Result<Value, Fail> {
        Ok(int_constant(values, false).ok_or("a list of nodes is too long")?.into())
    };
    let float = |values: &[f64]| -> Result<Value, Fail> {
        let constant = constant_of(values, vec![values.len() as u64], dtype);
        Ok(constant.ok_or_else(|| Fail::limit(format!("trees of {dtype} are not supported")))?.into())
    };
    let args = vec![
        x,
        list(&starts)?,
        list(&nodes.features)?,
        list(&nodes.modes)?,
        float(&nodes.splits)?,
        list(&nodes.missing)?,
        list(&nodes.if_true)?,
        list(&nodes.if_false)?,
        list(&targets)?,
        float(&weights)?,
    ];
    let attrs = vec![("n_targets", n_targets.into()), ("depth", depth.into()), ("aggregate", aggregate.into())];
    let out = cx.call("tree_ensemble", args, attrs)?;
    Ok(vec![match transform {
        0 => out,
        1 => cx.call("nn.softmax", vec![out], vec![("axis", 1.into())])?,
        2 => cx.apply("sigmoid", &[&out])?,
        other => return Err(Fail::limit(format!("attribute 'post_transform' {other} is not supported"))),
    }])
}

/// The nodes that the trees reach, each before those it goes to, those of the true way first. Errors: a way that comes back.
fn visited(nodes: &Nodes, roots: &[i64]) -> Result<Vec<usize>, Fail> {
    let mut order = Vec::new();
    for root in roots {
        let mut open = vec![*root];
        while let Some(at) = open.pop() {
            let Ok(at) = usize::try_from(at) else { continue };
            if order.len() >= nodes.if_true.len() {
                return Err("the nodes do not form trees: one is reached twice".into());
            }
            order.push(at);
            open.extend([nodes.if_false[at], nodes.if_true[at]]);
        }
    }
    Ok(order)
}

impl Nodes {
    /// Writes nodes of sets as chains of nodes of single values. The values of each set end with a NaN, in the order that
    /// the nodes are reached in.
    fn spread(&mut self, order: &[usize], members: &[f64]) -> Result<(), Fail> {
        let mut sets = members.split(|v| v.is_nan());
        for &at in order {
            if self.modes[at] != MEMBER {
                continue;
            }
            let set = sets.next().ok_or("attribute 'membership_values' has too few sets")?;
            let (yes, no) = (self.if_true[at], self.if_false[at]);
            let mut place = at;
            self.modes[at] = EQUAL;
            // No value is equal to this one.
            self.splits[at] = set.first().copied().unwrap_or(f64::NAN);
            for value in set.iter().skip(1) {
                let next = self.modes.len();
                if next >= MAX_NODES {
                    return Err("the sets of the trees have too many values".into());
                }
                self.if_false[place] = i64::try_from(next).map_err(|_| "too many nodes")?;
                self.features.push(self.features[at]);
                self.modes.push(EQUAL);
                self.splits.push(*value);
                self.missing.push(0);
                self.if_true.push(yes);
                self.if_false.push(no);
                place = next;
            }
        }
        Ok(())
    }
}

/// The most nodes on a way; the ways are known to end.
fn depth(nodes: &Nodes, roots: &[i64]) -> Result<i64, Fail> {
    let mut depths: BTreeMap<usize, i64> = BTreeMap::new();
    let mut open: Vec<(usize, i64)> = roots.iter().filter_map(|r| usize::try_from(*r).ok()).map(|r| (r, 1)).collect();
    let mut most = 0;
    let mut steps = 0usize;
    while let Some((at, own)) = open.pop() {
        steps += 1;
        if steps > 4 * MAX_NODES {
            return Err("the trees are too large".into());
        }
        most = most.max(own);
        if depths.insert(at, own).is_some_and(|old| old >= own) {
            continue;
        }
        for next in [nodes.if_true[at], nodes.if_false[at]] {
            if let Ok(next) = usize::try_from(next) {
                open.push((next, own + 1));
            }
        }
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(if_true: &[i64], if_false: &[i64]) -> Nodes {
        let n = if_true.len();
        Nodes {
            features: vec![0; n],
            modes: vec![0; n],
            splits: vec![0.0; n],
            missing: vec![0; n],
            if_true: if_true.to_vec(),
            if_false: if_false.to_vec(),
        }
    }

    #[test]
    fn trees_are_trees() {
        let fine = nodes(&[1, -1, -2], &[2, -3, -4]);
        assert_eq!(visited(&fine, &[0]).unwrap(), [0, 1, 2]);
        assert_eq!(depth(&fine, &[0]).unwrap(), 2);
        assert!(visited(&nodes(&[1, 0], &[-1, -1]), &[0]).is_err());
        assert_eq!(depth(&fine, &[-1]).unwrap(), 0);
    }

    #[test]
    fn sets_become_chains() {
        let mut own = nodes(&[-1, -2], &[1, -3]);
        own.modes = vec![MEMBER, MEMBER];
        own.spread(&[0, 1], &[1.0, 2.0, f64::NAN, f64::NAN]).unwrap();
        assert_eq!(own.modes, [EQUAL; 3]);
        assert_eq!((own.splits[0], own.splits[2]), (1.0, 2.0));
        assert!(own.splits[1].is_nan());
        assert_eq!((own.if_true, own.if_false), (vec![-1, -2, -1], vec![2, -3, 1]));
        let mut short = nodes(&[-1], &[-2]);
        short.modes = vec![MEMBER];
        assert!(short.spread(&[0], &[]).is_ok());
    }
}
