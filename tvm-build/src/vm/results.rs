//! What a function gives: outputs that the caller provides, and tensors that it returns.

use super::build::Builder;
use super::linear::{Linear, Origin, OutSlot, ReturnSlot, Step, StorageId, TensorId, Val};
use std::collections::BTreeSet;
use tvm_ir::diag::Diag;
use tvm_ir::ops::show_info;
use tvm_ir::prim::{PrimExpr, free_vars};
use tvm_ir::relax::{Function, StructInfo, TensorInfo};

impl Builder<'_, '_> {
    /// Has results written to the caller's outputs: directly where the memory is this function's and given back once.
    /// A result whose shape no parameter tells is returned.
    pub(super) fn results(&mut self, f: &Function, result: &Val, steps: &mut Vec<Step>) -> Result<(), Diag> {
        let tensors = result.tensors();
        let infos = flat(&f.ret);
        if infos.len() != tensors.len() || result.flat().len() != tensors.len() {
            let m = format!("function {} returns {}", self.lin.name, show_info(&f.ret));
            return Err(Diag::error(f.span, m).help("a compiled function returns tensors, lists and tuples of them"));
        }
        let mut kept = Vec::new();
        for (i, (tensor, info)) in tensors.iter().zip(&infos).enumerate() {
            let name = if tensors.len() == 1 { "out".to_string() } else { format!("out{i}") };
            let Some(info) = info.as_tensor().filter(|_| !self.lin.is_list(*tensor)) else {
                if !self.lin.is_list(*tensor) {
                    let m = format!("function {} returns {}", self.lin.name, show_info(&f.ret));
                    return Err(Diag::error(f.span, m).help("what is returned as R.Object must be a list"));
                }
                kept.push((*tensor, ReturnSlot { name, position: i, rank: Some(0), dtype: None }));
                continue;
            };
            match (info.dims.known(), info.dtype) {
                (Some(dims), Some(dtype)) if self.told(dims) => {
                    let slot = OutSlot { name, position: i, dims: dims.to_vec(), dtype };
                    self.output(*tensor, slot, f, steps)?;
                }
                _ => kept.push((*tensor, self.return_slot(*tensor, name, i, info, f)?)),
            }
        }
        let (mut returned, mut seen) = (Vec::new(), BTreeSet::new());
        for (tensor, slot) in kept {
            returned.push(self.outliving(tensor, &mut seen, steps));
            self.lin.returned.push(slot);
        }
        if !returned.is_empty() {
            steps.push(Step::Return { tensors: returned });
        }
        Ok(())
    }

    /// Whether parameters tell dimensions.
    fn told(&self, dims: &[PrimExpr]) -> bool {
        dims.iter().all(|d| free_vars(d).is_subset(&self.lin.entry))
    }

    fn output(&mut self, tensor: TensorId, slot: OutSlot, f: &Function, steps: &mut Vec<Step>) -> Result<(), Diag> {
        let count = self.lin.outs.len();
        let out = Origin::Out(u16::try_from(count).map_err(|_| Diag::error(f.span, "too many outputs"))?);
        let root = self.lin.storage_of(tensor);
        if self.lin.storages[root].origin == Origin::Made && self.fits(root, &slot.dims, slot.dtype) {
            self.lin.storages[root].origin = out;
        } else {
            let to = self.lin.add(slot.name.as_str().into(), Some(slot.dims.clone()), Some(slot.dtype), out);
            steps.push(Step::Copy { from: tensor, to });
        }
        self.lin.outs.push(slot);
        Ok(())
    }

    fn return_slot(
        &self,
        tensor: TensorId,
        name: String,
        position: usize,
        info: &TensorInfo,
        f: &Function,
    ) -> Result<ReturnSlot, Diag> {
        let own = &self.lin.tensors[tensor];
        let Some(dtype) = info.dtype.or(own.dtype) else {
            let m = format!("the element type of what {} returns is known at run time only", self.lin.name);
            return Err(Diag::error(f.span, m).help("give it one with R.match_cast"));
        };
        let rank = own.dims.as_ref().map(Vec::len).or(info.dims.rank());
        Ok(ReturnSlot { name, position, rank, dtype: Some(dtype) })
    }

    /// The tensor, or a copy where its memory is the caller's or returned already (`seen`).
    fn outliving(&mut self, tensor: TensorId, seen: &mut BTreeSet<StorageId>, steps: &mut Vec<Step>) -> TensorId {
        if self.lin.is_list(tensor) {
            return tensor;
        }
        let sources = sources(&self.lin, steps, self.lin.storage_of(tensor));
        let theirs = |s: &StorageId| matches!(self.lin.storages[*s].origin, Origin::Param(_) | Origin::Out(_));
        let own = !sources.iter().any(theirs) && sources.is_disjoint(seen);
        seen.extend(sources);
        if own {
            return tensor;
        }
        let name = self.lin.tensors[tensor].name.clone();
        let to = self.lin.add(name, None, self.lin.tensors[tensor].dtype, Origin::Value);
        steps.push(Step::Clone { from: tensor, to });
        to
    }
}

/// What a result holds that is no tuple, in order; nothing, if it holds anything but tensors and objects.
pub(super) fn flat(info: &StructInfo) -> Vec<&StructInfo> {
    fn go<'a>(info: &'a StructInfo, out: &mut Vec<&'a StructInfo>) -> bool {
        match info {
            StructInfo::Tuple(fields) => fields.iter().all(|f| go(f, out)),
            StructInfo::Tensor(_) | StructInfo::Object => {
                out.push(info);
                true
            }
            _ => false,
        }
    }
    let mut out = Vec::new();
    if go(info, &mut out) { out } else { Vec::new() }
}

/// The root storages whose memory a storage can be: itself, or for a value what branches move to it.
pub(super) fn sources(lin: &Linear, steps: &[Step], storage: StorageId) -> BTreeSet<StorageId> {
    let mut moves = Vec::new();
    moves_in(lin, steps, &mut moves);
    let mut found = BTreeSet::from([storage]);
    // What is moved later comes first, so that one walk finds all.
    for (from, to) in moves.into_iter().rev() {
        if found.contains(&to) {
            found.insert(from);
        }
    }
    found
}

/// `(from, to)` of every move, in order.
pub(super) fn moves_in(lin: &Linear, steps: &[Step], moves: &mut Vec<(StorageId, StorageId)>) {
    for step in steps {
        match step {
            Step::Move { from, to } => moves.push((lin.storage_of(*from), lin.storage_of(*to))),
            Step::If { then, otherwise, .. } => {
                moves_in(lin, then, moves);
                moves_in(lin, otherwise, moves);
            }
            _ => {}
        }
    }
}
