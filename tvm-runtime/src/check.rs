//! Checks of values against the types of a signature.

use crate::bytecode::{Dim, Param, Type};
use crate::error::{Error, Kind};
use crate::tensor::{ShapeRef, Value};
use crate::vm::{Fail, Frame};

impl Frame<'_> {
    /// Compares `value` with the type of `param`, binding the symbols it binds.
    pub(crate) fn check(&mut self, value: Value, param: &Param) -> Result<(), Fail> {
        let argument = param.name;
        let expected = match (param.ty, value) {
            (Type::Any, _)
            | (Type::Float, Value::Float(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::List, Value::List(_)) => return Ok(()),
            (Type::Tensor { dtype, shape }, Value::Tensor(tensor)) => {
                if let Some(expected) = dtype.filter(|&d| d != tensor.dtype) {
                    return Err(self.fail(Error::WrongDType { argument, expected, found: tensor.dtype }));
                }
                return shape.map_or(Ok(()), |dims| self.check_shape(tensor.shape, dims, argument));
            }
            (Type::Shape(dims), Value::Shape(shape)) => {
                return dims.map_or(Ok(()), |dims| self.check_shape(shape, dims, argument));
            }
            (Type::Int(dim), Value::Int(found)) => return self.check_dim(found, dim, argument, 0),
            (Type::Tensor { .. }, _) => Kind::Tensor,
            (Type::Shape(_), _) => Kind::Shape,
            (Type::Int(_), _) => Kind::Int,
            (Type::Float, _) => Kind::Float,
            (Type::Bool, _) => Kind::Bool,
            (Type::List, _) => Kind::List,
        };
        Err(self.fail(Error::WrongKind { argument, expected, found: value.kind() }))
    }

    fn check_shape(&mut self, shape: ShapeRef, dims: &[Dim], argument: &'static str) -> Result<(), Fail> {
        let found = usize::from(shape.rank);
        if found != dims.len() {
            return Err(self.fail(Error::WrongRank { argument, expected: dims.len(), found }));
        }
        for (axis, &dim) in dims.iter().enumerate() {
            let extent = self.dims(shape).get(axis).copied().unwrap_or(-1);
            if extent < 0 && matches!(dim, Dim::Bind(..)) {
                return Err(self.fail(Error::BadShape { argument }));
            }
            self.check_dim(extent, dim, argument, axis)?;
        }
        Ok(())
    }

    fn check_dim(&mut self, found: i64, dim: Dim, argument: &'static str, axis: usize) -> Result<(), Fail> {
        match dim {
            Dim::Any => Ok(()),
            Dim::Imm(expected) if found == expected => Ok(()),
            Dim::Imm(expected) => Err(self.fail(Error::WrongDim { argument, axis, expected, found })),
            Dim::Bind(reg, _) => self.set(reg, Value::Int(found)),
            Dim::Same(reg, symbol) => match self.reg(reg)? {
                Value::Int(bound) if bound == found => Ok(()),
                Value::Int(bound) => Err(self.fail(Error::WrongSymbol { argument, axis, symbol, bound, found })),
                _ => Err(self.malformed("a symbol is compared before it is bound")),
            },
        }
    }
}
