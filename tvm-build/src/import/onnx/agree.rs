//! Operands whose extents must agree, where that shows at run time only.

use tvm_ir::prim::{PrimExpr, visit};
use tvm_ir::relax::{Dims, Op, Pattern, StructInfo};

use super::emit::{Emitter, Fail};
use super::value::Value;

/// Whether a call with this result asks for operands that agree: only the rank of the result is known, or the op takes
/// extents for equal that do not show in its result.
pub(super) fn asks(op: Op, info: &StructInfo) -> bool {
    op.name() == "nn.batch_norm" || matches!(info, StructInfo::Tensor(t) if matches!(t.dims, Dims::Rank(_)))
}

/// An axis of an operand: its index among the operands, and the axis.
type Place = (usize, usize);

impl Emitter {
    /// The operands of a call that agree in their extents: those whose extents could not be proven to be what the others
    /// have are checked at run time, by `R.match_cast`. Extents of several operands along one axis of the result are
    /// equal or, where the op broadcasts, the number 1; an extent that is 1 at run time alone is an error there.
    /// `None`: nothing to check.
    pub(super) fn agree(&mut self, op: Op, values: &[Value], axis: Option<i64>) -> Result<Option<Vec<Value>>, Fail> {
        let (operands, tuple) = match values {
            [Value::Tuple(items), ..] if op.name() == "concat" => (items.as_slice(), true),
            _ => (values, false),
        };
        let mut shapes: Vec<Option<Vec<PrimExpr>>> = Vec::new();
        for value in operands {
            let info = value.tensor_info();
            let dims = info.as_ref().and_then(|t| t.dims.known().map(<[_]>::to_vec));
            if info.is_some() && dims.is_none() {
                return Ok(None);
            }
            shapes.push(dims);
        }
        let mut changed = vec![false; operands.len()];
        let analyzer = &self.function.bindings().analyzer;
        for Class { places, broadcasts } in classes(op, &shapes, axis) {
            let counts = |d: &PrimExpr| !broadcasts || !d.is_int(1);
            let extents = places.iter().filter_map(|place| extent(&shapes, *place));
            let wanted = extents.filter(|d| counts(d)).min_by_key(|d| complexity(d)).cloned();
            let Some(wanted) = wanted else { continue };
            for (operand, axis) in places {
                let Some(d) = shapes.get_mut(operand).and_then(Option::as_mut).and_then(|s| s.get_mut(axis)) else {
                    continue;
                };
                if counts(d) && !analyzer.prove_equal(d, &wanted) {
                    *d = wanted.clone();
                    changed[operand] = true;
                }
            }
        }
        if !changed.contains(&true) {
            return Ok(None);
        }
        let mut checked = Vec::with_capacity(operands.len());
        for ((value, dims), changed) in operands.iter().zip(shapes).zip(changed) {
            checked.push(match dims {
                Some(dims) if changed => self.of_shape(value, dims)?,
                _ => value.clone(),
            });
        }
        Ok(Some(if tuple {
            std::iter::once(Value::Tuple(checked)).chain(values.iter().skip(1).cloned()).collect()
        } else {
            checked
        }))
    }

    /// The tensor with these extents along these axes, where its own vary: that is checked at run time.
    pub(crate) fn of_extents(&mut self, value: &Value, known: &[(usize, i64)]) -> Result<Value, Fail> {
        let dims = value.tensor_info().and_then(|t| t.dims.known().map(<[_]>::to_vec));
        let Some(mut dims) = dims else { return Ok(value.clone()) };
        for &(axis, extent) in known {
            if let Some(d) = dims.get_mut(axis).filter(|d| d.as_int().is_none()) {
                *d = PrimExpr::i64(extent);
            }
        }
        self.of_shape(value, dims)
    }

    /// The tensor with these dimensions: those that it is not known to have are checked at run time.
    pub(crate) fn of_shape(&mut self, value: &Value, dims: Vec<PrimExpr>) -> Result<Value, Fail> {
        let Some(info) = value.tensor_info() else { return Ok(value.clone()) };
        let analyzer = &self.function.bindings().analyzer;
        let equal = |own: &[PrimExpr]| own.iter().zip(&dims).all(|(a, b)| analyzer.prove_equal(a, b));
        match (info.dims.known(), info.dtype) {
            (Some(own), _) if own.len() == dims.len() && equal(own) => Ok(value.clone()),
            (_, Some(dtype)) => {
                let leaf = self.bind(value)?;
                Ok(self.function.bindings().match_cast(leaf, StructInfo::tensor(dims, dtype)).into())
            }
            _ => Ok(value.clone()),
        }
    }
}

fn extent(shapes: &[Option<Vec<PrimExpr>>], (operand, axis): Place) -> Option<&PrimExpr> {
    shapes.get(operand)?.as_ref()?.get(axis)
}

/// Numbers first, then what has the fewest operations.
fn complexity(e: &PrimExpr) -> usize {
    if e.as_int().is_some() {
        return 0;
    }
    let mut count = 0;
    visit(e, &mut |_| count += 1);
    count
}

/// Axes that are alike.
struct Class {
    places: Vec<Place>,
    /// Whether an extent 1 goes with any other.
    broadcasts: bool,
}

/// The axes that an op wants to be alike, class by class.
fn classes(op: Op, shapes: &[Option<Vec<PrimExpr>>], axis: Option<i64>) -> Vec<Class> {
    let rank = |k: usize| shapes.get(k).and_then(|s| s.as_ref()).map_or(0, Vec::len);
    let all = 0..shapes.len();
    let most = all.clone().map(rank).max().unwrap_or(0);
    // Counted from the end, without the last `less`, of the operands that have the axis.
    let from_the_end = |less: usize| -> Vec<Class> {
        let places = |back: usize| all.clone().filter_map(|k| Some((k, rank(k).checked_sub(back)?))).collect();
        (less + 1..=most).map(|back| Class { places: places(back), broadcasts: true }).collect()
    };
    match op.name() {
        "concat" => {
            let Some(axis) = axis.and_then(|axis| isize::try_from(axis).ok()) else { return Vec::new() };
            let axis = if axis < 0 { most.checked_add_signed(axis) } else { usize::try_from(axis).ok() };
            let others = (0..most).filter(|a| Some(*a) != axis);
            others.map(|a| Class { places: all.clone().map(|k| (k, a)).collect(), broadcasts: false }).collect()
        }
        "matmul" => {
            let inner = rank(0).checked_sub(1).map(|a| vec![(0, a), (1, rank(1).saturating_sub(2))]);
            let mut classes = from_the_end(2);
            classes.extend(inner.map(|places| Class { places, broadcasts: false }));
            classes
        }
        "nn.batch_norm" => {
            let Some(axis) = axis.and_then(|axis| usize::try_from(axis).ok()) else { return Vec::new() };
            let places = all.map(|k| (k, if k == 0 { axis } else { 0 })).collect();
            vec![Class { places, broadcasts: false }]
        }
        _ if op.def().pattern == Pattern::Broadcast => from_the_end(0),
        _ => Vec::new(),
    }
}
