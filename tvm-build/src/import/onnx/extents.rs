//! Extents that are known at run time only.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{PrimExpr, Var};
use tvm_ir::relax::{Dims, StructInfo};

use super::cx::OpCx;
use super::emit::{Emitter, Fail};
use super::fold::{Known, shape_value};
use super::limits::{MAX_LENGTH, check_rank};
use super::value::Value;

impl Emitter {
    /// The dimensions whose extents the elements of `extents` are, a tensor of integers of rank 1 (or 0, for one
    /// dimension): as many as `known` has. Elements that are known now are themselves. For the others
    /// `R.tensor_to_shape` and `R.match_cast` bind new symbolic variables; where `known` states an extent, the same
    /// `match_cast` checks it at run time. A symbolic variable is never below zero: an element that is negative at
    /// run time is an error there, so `extents` holds final extents (no -1 of Reshape). An element that is known to be
    /// one that was bound before is its variable. Errors: a tensor of another
    /// rank, length or type.
    pub(crate) fn run_time_dims(&mut self, extents: &Value, known: &[Option<PrimExpr>]) -> Result<Vec<PrimExpr>, Fail> {
        check_rank(known.len())?;
        if let Some(values) = extents.known_ints() {
            if values.len() != known.len() {
                return Err(format!("{} extents are given for {} dimensions", values.len(), known.len()).into());
            }
            let analyzer = &self.function.bindings().analyzer;
            let same = |(v, k): (&PrimExpr, &Option<PrimExpr>)| k.as_ref().is_none_or(|k| analyzer.prove_equal(v, k));
            if values.iter().zip(known).all(same) {
                return Ok(values);
            }
            let differ = |(v, k): &(&PrimExpr, &Option<PrimExpr>)| {
                v.as_int().is_some_and(|v| k.as_ref().and_then(PrimExpr::as_int).is_some_and(|k| k != v))
            };
            if let Some((value, Some(known))) = values.iter().zip(known).find(differ) {
                return Err(format!("an extent is {value:?}, and it must be {known:?}").into());
            }
        }
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let info = extents.tensor_info().ok_or("the extents are not a tensor")?;
        let count = i64::try_from(known.len()).unwrap_or(i64::MAX);
        let length = match &info.dims {
            Dims::Known(dims) if dims.is_empty() => Some(1),
            Dims::Known(dims) if dims.len() == 1 => dims[0].as_int(),
            Dims::Rank(1) | Dims::Unknown => None,
            _ => return Err("the extents must be a tensor of one axis".into()),
        };
        if length.is_some_and(|n| n != count) {
            return Err(format!("{} extents are given for {count} dimensions", length.unwrap_or(0)).into());
        }
        let mut tensor = extents.clone();
        if info.dtype.is_none_or(|d| !d.is_integer()) {
            return Err("the extents must be integers".into());
        }
        if info.dtype != Some(DType::I64) {
            tensor = self.call("astype", vec![tensor], vec![("dtype", AttrValue::DType(DType::I64))])?;
        }
        if info.dims.rank() == Some(0) {
            tensor = self.call("reshape", vec![tensor, Value::shape(vec![PrimExpr::i64(1)])], vec![])?;
        }
        if length.is_none() {
            let leaf = self.bind(&tensor)?;
            let checked = StructInfo::tensor(vec![PrimExpr::i64(count)], DType::I64);
            tensor = self.function.bindings().match_cast(leaf, checked).into();
        }
        let mut known = known.to_vec();
        let elements = self.told_extents(extents, known.len());
        let mut checks = false;
        for (element, known) in elements.iter().zip(&mut known) {
            let told = element.as_ref().and_then(|(_, dim)| dim.clone());
            checks |= match (&told, &known) {
                (Some(told), Some(known)) => !self.function.bindings().analyzer.prove_equal(told, known),
                (told, _) => told.is_none(),
            };
            *known = known.take().or(told);
        }
        if let (false, Some(dims)) = (checks, known.iter().cloned().collect::<Option<Vec<_>>>()) {
            return Ok(dims);
        }
        let shape = self.call("tensor_to_shape", vec![tensor], vec![])?;
        let leaf = self.bind(&shape)?;
        let builder = self.function.bindings();
        let mut dims = Vec::with_capacity(known.len());
        for extent in &known {
            dims.push(match extent {
                Some(extent) => extent.clone(),
                None => {
                    let var = Var::new("n", DType::I64);
                    builder.analyzer.assume_nonnegative(&var);
                    var.expr()
                }
            });
        }
        builder.match_cast(leaf, StructInfo::Shape(Dims::Known(dims.clone())));
        for (element, dim) in elements.into_iter().zip(&dims) {
            if let Some((element, None)) = element {
                self.elements.bind_extent(element, dim.clone());
            }
        }
        Ok(dims)
    }

    /// What is known of each of `count` extents: an expression over elements, and the dimension that it is known to be.
    fn told_extents(&mut self, extents: &Value, count: usize) -> Vec<Option<(PrimExpr, Option<PrimExpr>)>> {
        let Some(Known::Exprs(tensor)) = self.elements.of(extents) else { return vec![None; count] };
        let analyzer = &self.function.bindings().analyzer;
        let told = |e: &PrimExpr| {
            let e = analyzer.simplify(&e.cast(DType::I64));
            let value = shape_value(&e, analyzer).filter(|e| self.elements.told(e));
            let dim = value.filter(|e| analyzer.prove(&e.clone().ge(0))).or_else(|| self.elements.extent(&e));
            Some((e, dim))
        };
        let mut all: Vec<_> = tensor.elements.iter().map(told).collect();
        all.resize(count, None);
        all
    }
}

impl OpCx<'_> {
    /// The dimensions that the whole tensor `extents` of rank 1 and known length holds; see
    /// [`Emitter::run_time_dims`].
    pub(crate) fn run_time_dims_of(&mut self, extents: &Value, role: &str) -> Result<Vec<PrimExpr>, Fail> {
        let rank = self.length(extents, role)?;
        self.run_time_dims(extents, rank)
    }

    /// The number of elements of a tensor of rank 0 or 1 that says something of each axis or output.
    pub(crate) fn length(&self, list: &Value, role: &str) -> Result<usize, Fail> {
        let dims = self.dims(list, role)?;
        let length = match &dims[..] {
            [] => Some(1),
            [length] => length.as_int().and_then(|n| usize::try_from(n).ok()),
            _ => return Err(format!("{role} must be a tensor of one axis, not of shape {dims:?}").into()),
        };
        let unknown =
            || Fail::limit(format!("the number of elements of {role} must be known when the model is imported"));
        let length = length.ok_or_else(unknown)?;
        if length > MAX_LENGTH {
            return Err(format!("{role} has {length} elements, and at most {MAX_LENGTH} are allowed").into());
        }
        Ok(length)
    }

    /// The dimensions that a tensor of `rank` final extents gives at run time; see [`Emitter::run_time_dims`].
    pub(crate) fn run_time_dims(&mut self, extents: &Value, rank: usize) -> Result<Vec<PrimExpr>, Fail> {
        self.emitter.run_time_dims(extents, &vec![None; rank])
    }

    /// As [`OpCx::run_time_dims`], where some extents are known: they are checked.
    pub(crate) fn run_time_dims_beside(
        &mut self,
        extents: &Value,
        known: &[Option<PrimExpr>],
    ) -> Result<Vec<PrimExpr>, Fail> {
        self.emitter.run_time_dims(extents, known)
    }
}

#[cfg(test)]
mod tests {
    use tvm_ir::interp::TensorBuf;
    use tvm_ir::interp::relax::{Value as Datum, run_function};

    use super::super::tests::make::*;
    use super::*;

    #[test]
    fn extents_given_at_run_time() {
        let mut model = model(13, "2", vec![], vec![node("ConstantOfShape", &["x"], &["y"])]);
        let input = model.graph.as_mut().unwrap().input.first_mut().unwrap();
        *input = int_value("x", "2");
        let module = import(&model).unwrap();
        let run = |extents: &[i64]| {
            let x = TensorBuf::from_i64(DType::I64, &[2], extents).unwrap();
            run_function(&module, "main", &[Datum::tensor(x)]).map(|y| y.as_tensor().unwrap().shape)
        };
        assert_eq!(run(&[2, 3]).unwrap(), [2, 3]);
        assert_eq!(run(&[0, 3]).unwrap(), [0, 3]);
        assert!(run(&[-1, 3]).is_err());
    }
}
