//! What a converter sees of the node it converts.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::TensorInfo;

use super::emit::{Emitter, Fail, scalar};
use super::limits::check_rank;
use super::reader::NodeReader;
use super::value::{Value, known_dims};

/// A node and the means to convert it. Every attribute and input that the converter does not ask for is an error.
pub(crate) struct OpCx<'a> {
    /// Attributes, and which inputs are there.
    pub(crate) node: NodeReader<'a>,
    /// Version of the operator set the node belongs to.
    pub(crate) opset: i64,
    /// The values of the inputs, `None` where one is left out.
    pub(crate) values: Vec<Option<Value>>,
    /// Where calls are made.
    pub(crate) emitter: &'a mut Emitter,
}

/// The outputs of a node; those at the end that the node does not ask for are dropped.
pub(crate) type Outputs = Result<Vec<Value>, Fail>;

impl OpCx<'_> {
    /// Input `index`, which the operator calls `role` and cannot do without.
    pub(crate) fn input(&self, index: usize, role: &str) -> Result<Value, Fail> {
        self.node.input(index, role)?;
        self.values.get(index).cloned().flatten().ok_or_else(|| format!("input {index} ({role}) is missing").into())
    }

    /// Input `index`, or `None` if it is left out.
    pub(crate) fn optional(&self, index: usize) -> Option<Value> {
        self.node.optional_input(index)?;
        self.values.get(index).cloned().flatten()
    }

    /// All inputs of a node that takes any number of them; at least one.
    pub(crate) fn variadic(&self, role: &str) -> Result<Vec<Value>, Fail> {
        (0..self.node.input_count().max(1)).map(|i| self.input(i, role)).collect()
    }

    /// The number of outputs that the node names.
    pub(crate) fn output_count(&self) -> usize {
        self.node.node().outputs.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1)
    }

    /// An error if the node asks for output `index`, which `why` is not supported.
    pub(crate) fn refuse_output(&self, index: usize, why: &str) -> Result<(), Fail> {
        if self.output_count() > index { Err(Fail::limit(format!("output {index}: {why}"))) } else { Ok(()) }
    }

    /// A call of the op table; see [`Emitter::call`].
    pub(crate) fn call(
        &mut self,
        op: &str,
        args: Vec<Value>,
        attrs: Vec<(&'static str, AttrValue)>,
    ) -> Result<Value, Fail> {
        self.emitter.call(op, args, attrs)
    }

    /// A call of an op of tensors only.
    pub(crate) fn apply(&mut self, op: &str, args: &[&Value]) -> Result<Value, Fail> {
        self.call(op, args.iter().map(|&v| v.clone()).collect(), vec![])
    }

    /// `R.reshape` to known dimensions. An extent of 0 is one: nothing is left of the value then but its type.
    pub(crate) fn reshape(&mut self, value: &Value, dims: Vec<PrimExpr>) -> Result<Value, Fail> {
        let info = value.tensor_info();
        let empty = |i: usize| info.as_ref().and_then(|t| t.dims.known()?.get(i)?.as_int()) == Some(0);
        if let Some(dtype) = info.as_ref().and_then(|t| t.dtype) {
            // To R.reshape a 0 is what the value has at this place.
            if dims.iter().enumerate().any(|(i, d)| d.is_int(0) && !empty(i)) {
                return self.call("zeros", vec![Value::shape(dims)], vec![("dtype", AttrValue::DType(dtype))]);
            }
        }
        self.call("reshape", vec![value.clone(), Value::shape(dims)], vec![])
    }

    /// The value in another element type.
    pub(crate) fn astype(&mut self, value: &Value, to: DType) -> Result<Value, Fail> {
        if self.dtype(value, "an input")? == to {
            return Ok(value.clone());
        }
        self.call("astype", vec![value.clone()], vec![("dtype", AttrValue::DType(to))])
    }

    /// A matrix product. Sums of 16-bit floats are kept in float32 and rounded once.
    pub(crate) fn matmul(&mut self, a: &Value, b: &Value) -> Result<Value, Fail> {
        let dtype = self.dtype(a, "A")?;
        if !dtype.is_float() || dtype.bits >= 32 || self.dtype(b, "B")? != dtype {
            return self.apply("matmul", &[a, b]);
        }
        let attrs = vec![("out_dtype", AttrValue::DType(DType::F32))];
        let sums = self.call("matmul", vec![a.clone(), b.clone()], attrs)?;
        self.astype(&sums, dtype)
    }

    /// A constant of rank 0.
    pub(crate) fn scalar(&self, value: f64, dtype: DType) -> Result<Value, Fail> {
        Ok(scalar(value, dtype).ok_or_else(|| format!("there is no constant {value} of {dtype}"))?.into())
    }

    /// What is known of a tensor, called `role` in messages.
    pub(crate) fn tensor(&self, value: &Value, role: &str) -> Result<TensorInfo, Fail> {
        value.tensor_info().ok_or_else(|| format!("{role} is not a tensor").into())
    }

    /// The element type of a tensor.
    pub(crate) fn dtype(&self, value: &Value, role: &str) -> Result<DType, Fail> {
        self.tensor(value, role)?.dtype.ok_or_else(|| format!("the element type of {role} is not known").into())
    }

    /// The rank of a tensor.
    pub(crate) fn rank(&self, value: &Value, role: &str) -> Result<usize, Fail> {
        let info = self.tensor(value, role)?;
        let unknown = || Fail::limit(format!("the rank of {role} must be known when the model is imported"));
        info.dims.rank().ok_or_else(unknown)
    }

    /// The dimensions of a tensor.
    pub(crate) fn dims(&self, value: &Value, role: &str) -> Result<Vec<PrimExpr>, Fail> {
        if value.tensor_info().is_some_and(|t| t.dims.known().is_none()) {
            return Err(Fail::limit(format!("the shape of {role} must be known when the model is imported")));
        }
        Ok(known_dims(value, role)?)
    }

    /// The dimensions of a tensor that must have `N` axes.
    pub(crate) fn dims_of<const N: usize>(&self, value: &Value, role: &str) -> Result<[PrimExpr; N], Fail> {
        let dims = self.dims(value, role)?;
        dims.try_into().map_err(|dims| format!("{role} must have {N} axes, and its shape is {dims:?}").into())
    }

    /// The elements of an input that must be constant integers.
    pub(crate) fn fixed_ints(&self, value: &Value, role: &str) -> Result<Vec<i64>, Fail> {
        value.fixed_ints().ok_or_else(|| Fail::limit(format!("{role} must be constant integers")))
    }

    /// Axes in `0..rank`, each once, from axes that may count from the end.
    pub(crate) fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>, Fail> {
        check_rank(rank)?;
        let mut out = Vec::with_capacity(axes.len().min(rank));
        for &axis in axes {
            let normal = self.axis(axis, rank)?;
            if out.contains(&normal) {
                return Err(format!("axis {axis} is given twice in {axes:?}").into());
            }
            out.push(normal);
        }
        Ok(out)
    }

    /// An axis in `0..rank` from one that may count from the end.
    pub(crate) fn axis(&self, axis: i64, rank: usize) -> Result<usize, Fail> {
        let signed = i64::try_from(rank).unwrap_or(i64::MAX);
        let normal = if axis < 0 { axis.saturating_add(signed) } else { axis };
        usize::try_from(normal)
            .ok()
            .filter(|&a| a < rank)
            .ok_or_else(|| format!("axis {axis} is out of range for rank {rank}").into())
    }
}

/// Axes as an attribute of a call.
pub(crate) fn axes_attr(axes: &[usize]) -> AttrValue {
    axes.iter().map(|&a| i64::try_from(a).unwrap_or(i64::MAX)).collect::<Vec<_>>().into()
}
