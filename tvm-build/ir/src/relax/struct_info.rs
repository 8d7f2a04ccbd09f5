//! Structural information: what is known of a value at compile time (upstream now calls it `Type`).

use crate::dtype::DType;
use crate::prim::{PrimExpr, Var, free_vars, substitute};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum StructInfo {
    /// Anything.
    Object,
    /// A scalar of a type, and its symbolic value where known.
    Prim(DType, Option<PrimExpr>),
    /// A shape.
    Shape(Dims),
    /// A tensor.
    Tensor(TensorInfo),
    /// A tuple, field by field.
    Tuple(Vec<StructInfo>),
    /// A function.
    Func(Box<FuncInfo>),
}

/// What is known of the dimensions of a tensor or shape. Static shapes are the special case of `Known`.
#[derive(Clone, PartialEq, Debug)]
pub enum Dims {
    /// Not even the rank.
    Unknown,
    /// The rank.
    Rank(usize),
    /// Every dimension, as an `int64` expression.
    Known(Vec<PrimExpr>),
}

/// What is known of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorInfo {
    /// Dimensions.
    pub dims: Dims,
    /// Element type; `None` when not known.
    pub dtype: Option<DType>,
}

/// What is known of a function.
#[derive(Clone, PartialEq, Debug)]
pub struct FuncInfo {
    /// Parameters; `None` when not known.
    pub params: Option<Vec<StructInfo>>,
    /// Result.
    pub ret: StructInfo,
    /// Whether calls have no side effect.
    pub pure: bool,
}

impl Dims {
    /// The rank, where known.
    pub fn rank(&self) -> Option<usize> {
        match self {
            Dims::Unknown => None,
            Dims::Rank(n) => Some(*n),
            Dims::Known(d) => Some(d.len()),
        }
    }

    /// The dimensions, where known.
    pub fn known(&self) -> Option<&[PrimExpr]> {
        match self {
            Dims::Known(d) => Some(d),
            _ => None,
        }
    }

    /// The dimensions, when all are integers.
    pub fn fixed(&self) -> Option<Vec<i64>> {
        self.known()?.iter().map(PrimExpr::as_int).collect()
    }
}

impl TensorInfo {
    /// A tensor of known shape and type.
    pub fn new(dims: Vec<PrimExpr>, dtype: DType) -> TensorInfo {
        TensorInfo { dims: Dims::Known(dims), dtype: Some(dtype) }
    }
}

impl StructInfo {
    /// A tensor of known shape and type.
    pub fn tensor(dims: Vec<PrimExpr>, dtype: DType) -> StructInfo {
        StructInfo::Tensor(TensorInfo::new(dims, dtype))
    }

    /// A tensor of fixed shape.
    pub fn tensor_fixed(dims: &[i64], dtype: DType) -> StructInfo {
        StructInfo::tensor(dims.iter().map(|d| PrimExpr::i64(*d)).collect(), dtype)
    }

    /// The empty tuple.
    pub fn unit() -> StructInfo {
        StructInfo::Tuple(Vec::new())
    }

    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&TensorInfo> {
        match self {
            StructInfo::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// The tensors of a tensor or (nested) tuple of tensors, in order; `None` when there is anything else.
    pub fn tensors(&self) -> Option<Vec<&TensorInfo>> {
        match self {
            StructInfo::Tensor(t) => Some(vec![t]),
            StructInfo::Tuple(fields) => {
                let mut out = Vec::new();
                for f in fields {
                    out.extend(f.tensors()?);
                }
                Some(out)
            }
            _ => None,
        }
    }

    /// The same with every dimension and value mapped.
    #[must_use]
    pub fn map_exprs(&self, f: &mut dyn FnMut(&PrimExpr) -> PrimExpr) -> StructInfo {
        fn dims(d: &Dims, f: &mut dyn FnMut(&PrimExpr) -> PrimExpr) -> Dims {
            match d {
                Dims::Known(v) => Dims::Known(v.iter().map(f).collect()),
                other => other.clone(),
            }
        }
        match self {
            StructInfo::Object => StructInfo::Object,
            StructInfo::Prim(d, v) => StructInfo::Prim(*d, v.as_ref().map(f)),
            StructInfo::Shape(d) => StructInfo::Shape(dims(d, f)),
            StructInfo::Tensor(t) => StructInfo::Tensor(TensorInfo { dims: dims(&t.dims, f), dtype: t.dtype }),
            StructInfo::Tuple(fields) => StructInfo::Tuple(fields.iter().map(|s| s.map_exprs(f)).collect()),
            StructInfo::Func(func) => StructInfo::Func(Box::new(FuncInfo {
                params: func.params.as_ref().map(|p| p.iter().map(|s| s.map_exprs(f)).collect()),
                ret: func.ret.map_exprs(f),
                pure: func.pure,
            })),
        }
    }

    /// Puts expressions for symbolic variables.
    #[must_use]
    pub fn substitute(&self, vars: &BTreeMap<Var, PrimExpr>) -> StructInfo {
        self.map_exprs(&mut |e| substitute(e, vars))
    }

    /// What can be said of it with these symbolic variables alone: shapes and values over others are forgotten.
    #[must_use]
    pub fn over(&self, vars: &BTreeSet<Var>) -> StructInfo {
        let told = |e: &PrimExpr| free_vars(e).is_subset(vars);
        let dims = |d: &Dims| match d {
            Dims::Known(v) if !v.iter().all(told) => Dims::Rank(v.len()),
            other => other.clone(),
        };
        match self {
            StructInfo::Prim(d, v) => StructInfo::Prim(*d, v.clone().filter(told)),
            StructInfo::Shape(d) => StructInfo::Shape(dims(d)),
            StructInfo::Tensor(t) => StructInfo::Tensor(TensorInfo { dims: dims(&t.dims), dtype: t.dtype }),
            StructInfo::Tuple(fields) => StructInfo::Tuple(fields.iter().map(|f| f.over(vars)).collect()),
            StructInfo::Object | StructInfo::Func(_) => self.clone(),
        }
    }

    /// The variables that stand alone as a dimension or value: what a parameter of this struct info tells.
    pub fn told_vars(&self) -> BTreeSet<Var> {
        let mut vars = BTreeSet::new();
        self.visit_exprs(&mut |e| vars.extend(e.as_var().cloned()));
        vars
    }

    /// Calls `f` on every dimension and value.
    pub fn visit_exprs(&self, f: &mut dyn FnMut(&PrimExpr)) {
        let _ = self.map_exprs(&mut |e| {
            f(e);
            e.clone()
        });
    }
}
