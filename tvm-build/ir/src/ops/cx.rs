//! What inference rules and lowerings ask of their call.

use super::show::{show_dims, show_expr, show_tensor};
use crate::attrs::AttrValue;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr, PrimKind};
use crate::relax::{Dims, InferCx, Leaf, LowerCx, StructInfo, TensorInfo};

impl InferCx<'_> {
    /// An error about this call: `R.op: …`.
    pub(super) fn fail(&self, message: impl std::fmt::Display) -> Diag {
        Diag::error(self.call.span, format!("R.{}: {message}", self.call.op.name()))
    }

    /// The declared name of an argument.
    pub(super) fn arg_name(&self, i: usize) -> &'static str {
        self.call.op.def().args.get(i).map_or("", |a| a.name)
    }

    /// Struct info of an argument.
    pub(super) fn info(&self, i: usize) -> Result<StructInfo, Diag> {
        let info = self.call.args.get(i).and_then(Leaf::info);
        info.ok_or_else(|| self.fail(format!("argument `{}` must be given", self.arg_name(i))))
    }

    /// What is known of a tensor argument; a scalar is a tensor of rank 0.
    pub(super) fn tensor(&self, i: usize) -> Result<TensorInfo, Diag> {
        match self.info(i)? {
            StructInfo::Tensor(t) => Ok(t),
            StructInfo::Prim(dtype, _) => Ok(TensorInfo::new(Vec::new(), dtype)),
            _ => Err(self.fail(format!("argument `{}` must be a tensor", self.arg_name(i)))),
        }
    }

    /// Whether an optional argument is given.
    pub(super) fn is_given(&self, i: usize) -> bool {
        !matches!(self.call.args.get(i), None | Some(Leaf::Absent))
    }

    /// The fields of a tuple of tensors; an error when there is none.
    pub(super) fn tensors(&self, i: usize) -> Result<Vec<TensorInfo>, Diag> {
        let fields = match self.info(i)? {
            StructInfo::Tuple(fields) => fields,
            _ => Vec::new(),
        };
        let tensors: Vec<TensorInfo> = fields.iter().filter_map(|f| f.as_tensor().cloned()).collect();
        if tensors.is_empty() || tensors.len() != fields.len() {
            return Err(self.fail(format!("argument `{}` must be a tuple of at least one tensor", self.arg_name(i))));
        }
        Ok(tensors)
    }

    /// An integer attribute.
    pub(super) fn int(&self, name: &str) -> Result<i64, Diag> {
        self.call.attr(name).as_int().ok_or_else(|| self.fail(format!("attribute `{name}` must be an integer")))
    }

    /// A list attribute; `None` when it is `None`.
    pub(super) fn opt_ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.call.attr(name) {
            AttrValue::None => None,
            v => v.as_ints(),
        }
    }

    /// A list attribute.
    pub(super) fn ints(&self, name: &str) -> Result<Vec<i64>, Diag> {
        self.opt_ints(name).ok_or_else(|| self.fail(format!("attribute `{name}` must be a list of integers")))
    }

    /// A string attribute.
    pub(super) fn str(&self, name: &str) -> Result<&str, Diag> {
        self.call.attr(name).as_str().ok_or_else(|| self.fail(format!("attribute `{name}` must be a string")))
    }

    /// The type of a dtype attribute; `None` when it is left to inference.
    pub(super) fn dtype_attr(&self, name: &str) -> Option<DType> {
        self.call.attr(name).as_dtype().filter(|d| !d.is_void())
    }

    /// An axis of `-rank .. rank` as one of `0 .. rank`.
    pub(super) fn axis(&self, what: &str, axis: i64, rank: usize) -> Result<usize, Diag> {
        let n = i64::try_from(rank).unwrap_or(i64::MAX);
        let fixed = if axis < 0 { axis.saturating_add(n) } else { axis };
        usize::try_from(fixed).ok().filter(|a| *a < rank).ok_or_else(|| {
            self.fail(format!("{what} {axis} is out of range for rank {rank}")).help(if rank == 0 {
                "a tensor of rank 0 has no axes".to_string()
            } else {
                format!("axes are -{rank} to {}", rank - 1)
            })
        })
    }

    /// Axes in range, each once.
    pub(super) fn axes(&self, what: &str, axes: &[i64], rank: usize) -> Result<Vec<usize>, Diag> {
        let mut out = Vec::with_capacity(axes.len());
        for a in axes {
            let fixed = self.axis(what, *a, rank)?;
            if out.contains(&fixed) {
                return Err(self.fail(format!("{what} {a} is given twice")));
            }
            out.push(fixed);
        }
        Ok(out)
    }

    /// An error unless an argument has a rank.
    pub(super) fn expect_rank(&self, i: usize, t: &TensorInfo, rank: usize) -> Result<(), Diag> {
        match t.dims.rank() {
            Some(n) if n != rank => {
                let message =
                    format!("argument `{}` must have rank {rank}, it is {}", self.arg_name(i), show_tensor(t));
                Err(self.fail(message))
            }
            _ => Ok(()),
        }
    }

    /// Whether two dimensions are known to differ.
    pub(super) fn differ(&self, a: &PrimExpr, b: &PrimExpr) -> bool {
        let d = self.analyzer.simplify(&(a - b));
        d.as_int().is_some_and(|v| v != 0)
    }

    /// The common type of two arguments; unknown when one is. Errors when they differ.
    pub(super) fn common_dtype(&self, i: usize, j: usize) -> Result<Option<DType>, Diag> {
        let (a, b) = (self.tensor(i)?, self.tensor(j)?);
        match (a.dtype, b.dtype) {
            (Some(x), Some(y)) if x != y => {
                let (p, q) = (self.arg_name(i), self.arg_name(j));
                let d = self.fail(format!("`{p}` is {x} and `{q}` is {y}"));
                let help = |number: &PrimExpr, dtype: DType| {
                    format!("give the number the tensor's type: R.const({}, \"{dtype}\")", show_expr(number))
                };
                let is_number = |e: &PrimExpr| matches!(e.kind(), PrimKind::Int(_) | PrimKind::Float(_));
                Err(match (self.call.args.get(i), self.call.args.get(j)) {
                    (_, Some(Leaf::Prim(e))) if is_number(e) => d.help(help(e, x)),
                    (Some(Leaf::Prim(e)), _) if is_number(e) => d.help(help(e, y)),
                    _ => d.help(format!("convert one of them: R.astype({q}, \"{x}\")")),
                })
            }
            (Some(x), Some(_)) => Ok(Some(x)),
            _ => Ok(None),
        }
    }

    /// An error unless the type of an argument, where known, is of a family.
    pub(super) fn expect_dtype(&self, i: usize, want: &str, fits: impl Fn(DType) -> bool) -> Result<(), Diag> {
        match self.tensor(i)?.dtype {
            Some(d) if !fits(d) => {
                let name = self.arg_name(i);
                Err(self
                    .fail(format!("argument `{name}` must be {want}, it is {d}"))
                    .help(format!("convert it with R.astype({name}, …)")))
            }
            _ => Ok(()),
        }
    }

    /// Both shapes broadcast as numpy does. Where equality of symbolic dimensions is not proven, only the rank is known.
    pub(super) fn broadcast(&self, i: usize, j: usize) -> Result<Dims, Diag> {
        let (a, b) = (self.tensor(i)?, self.tensor(j)?);
        self.broadcast_dims(&a.dims, &b.dims).map_err(|(x, y)| {
            let (p, q) = (self.arg_name(i), self.arg_name(j));
            let (sa, sb) = (a.dims.known().unwrap_or(&[]), b.dims.known().unwrap_or(&[]));
            let message = format!(
                "`{p}` {} and `{q}` {} do not broadcast: {} against {}",
                show_dims(sa),
                show_dims(sb),
                show_expr(&x),
                show_expr(&y)
            );
            let diag = self.fail(message);
            match self.suggest_broadcast(sa, sb, q) {
                Some(help) => diag.help(help),
                None => diag,
            }
        })
    }

    /// As [`InferCx::broadcast`]; an error holds the two dimensions that do not fit.
    pub(super) fn broadcast_dims(&self, a: &Dims, b: &Dims) -> Result<Dims, (PrimExpr, PrimExpr)> {
        let (Some(ra), Some(rb)) = (a.rank(), b.rank()) else { return Ok(Dims::Unknown) };
        let rank = ra.max(rb);
        let (Some(da), Some(db)) = (a.known(), b.known()) else { return Ok(Dims::Rank(rank)) };
        let mut out = Vec::with_capacity(rank);
        let mut unproven = false;
        for back in (1..=rank).rev() {
            let x = ra.checked_sub(back).and_then(|d| da.get(d));
            let y = rb.checked_sub(back).and_then(|d| db.get(d));
            let dim = match (x, y) {
                (Some(x), Some(y)) if x == y => x,
                (Some(x), Some(y)) if x.is_int(1) => y,
                (Some(x), Some(y)) if y.is_int(1) => x,
                (Some(x), Some(y)) if x.as_int().is_some() && y.as_int().is_some() => {
                    return Err((x.clone(), y.clone()));
                }
                (Some(x), Some(y)) if self.analyzer.prove_equal(x, y) => x,
                (Some(x), Some(_)) => {
                    unproven = true;
                    x
                }
                (Some(d), None) | (None, Some(d)) => d,
                (None, None) => continue,
            };
            out.push(dim.clone());
        }
        Ok(if unproven { Dims::Rank(rank) } else { Dims::Known(out) })
    }

    /// A change to the second shape that would make it broadcast.
    fn suggest_broadcast(&self, a: &[PrimExpr], b: &[PrimExpr], name: &str) -> Option<String> {
        let fits = |d: Vec<PrimExpr>| self.broadcast_dims(&Dims::Known(a.to_vec()), &Dims::Known(d)).is_ok();
        if b.len() >= 2 {
            let mut swapped = b.to_vec();
            swapped.swap(b.len() - 1, b.len() - 2);
            if fits(swapped) {
                return Some(format!("transpose it: R.permute_dims({name})"));
            }
        }
        if let [only] = b {
            let at = a.iter().position(|d| d == only)?;
            let mut dims = vec![only.clone()];
            dims.resize(a.len() - at, PrimExpr::i64(1));
            return Some(format!("reshape it to {}", show_dims(&dims)));
        }
        None
    }

    /// A tensor result.
    pub(super) fn result(&self, dims: Dims, dtype: Option<DType>) -> Result<StructInfo, Diag> {
        Ok(StructInfo::Tensor(TensorInfo { dims, dtype }))
    }
}

/// What an operand of a lowering reads.
pub(super) enum Operand {
    /// Elements of a buffer.
    Buffer(Buffer),
    /// One scalar.
    Scalar(PrimExpr),
}

impl Operand {
    /// The element at an index of the broadcast result.
    pub(super) fn at(&self, out: &[PrimExpr], index: &[PrimExpr]) -> PrimExpr {
        match self {
            Operand::Scalar(e) => e.clone(),
            Operand::Buffer(b) => load_broadcast(b, out, index),
        }
    }
}

/// The element of a buffer at an index of a broadcast shape.
pub(super) fn load_broadcast(b: &Buffer, out: &[PrimExpr], index: &[PrimExpr]) -> PrimExpr {
    let skip = out.len().saturating_sub(b.shape.len());
    let at =
        b.shape.iter().zip(out.iter().zip(index).skip(skip)).map(|(own, (dim, i))| {
            if own.is_int(1) && !dim.is_int(1) { PrimExpr::int(i.dtype(), 0) } else { i.clone() }
        });
    PrimExpr::load(b, at.collect())
}

impl LowerCx<'_> {
    /// An error about this call: `R.op: …`.
    pub(super) fn fail(&self, message: impl std::fmt::Display) -> Diag {
        Diag::error(self.call.span, format!("R.{}: {message}", self.call.op.name()))
    }

    /// The buffer of a tensor argument.
    pub(super) fn buffer(&self, i: usize) -> Result<&Buffer, Diag> {
        self.inputs.get(i).and_then(|b| b.first()).ok_or_else(|| self.fail(format!("argument {i} has no buffer")))
    }

    /// A tensor or scalar argument.
    pub(super) fn operand(&self, i: usize) -> Result<Operand, Diag> {
        if let Some(b) = self.inputs.get(i).and_then(|b| b.first()) {
            return Ok(Operand::Buffer(b.clone()));
        }
        Ok(Operand::Scalar(self.scalar(i)?))
    }

    /// A scalar argument: a prim value, a constant of rank 0, or the element of a buffer of rank 0.
    pub(super) fn scalar(&self, i: usize) -> Result<PrimExpr, Diag> {
        if let Some(b) = self.inputs.get(i).and_then(|b| b.first()) {
            return Ok(PrimExpr::load(b, vec![PrimExpr::i64(0); b.shape.len()]));
        }
        match self.call.args.get(i) {
            Some(Leaf::Prim(e)) => Ok(e.clone()),
            Some(Leaf::Const(c)) => {
                super::legalize::scalar_constant(c).ok_or_else(|| self.fail("a constant that is no scalar"))
            }
            Some(Leaf::Var(v)) => match v.info() {
                StructInfo::Prim(_, Some(e)) => Ok(e.clone()),
                _ => Err(self.fail(format!("the value of the scalar `{}` is not known symbolically", v.name()))),
            },
            _ => Err(self.fail(format!("argument {i} is not a scalar"))),
        }
    }

    /// Shape of the one result.
    pub(super) fn out_dims(&self) -> Result<&[PrimExpr], Diag> {
        self.out_tensor()?.dims.known().ok_or_else(|| self.fail("the shape of the result is not known"))
    }

    /// Type of the one result.
    pub(super) fn out_dtype(&self) -> Result<DType, Diag> {
        self.out_tensor()?.dtype.ok_or_else(|| self.fail("the data type of the result is not known"))
    }

    /// The inference context of the same call, for its attribute readers.
    pub(super) fn with_infer<T>(&self, f: impl FnOnce(&InferCx<'_>) -> Result<T, Diag>) -> Result<T, Diag> {
        let analyzer = crate::arith::Analyzer::new();
        f(&InferCx { call: self.call, analyzer: &analyzer })
    }
}
