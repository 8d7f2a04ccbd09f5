//! Struct info: annotations, and how they fit what is inferred.

use super::ast::{Expr, ExprKind};
use super::lower_prim::Lowered;
use super::scope::{Args, Entity, Lower, consequence, suggest};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{PrimExpr, Var, free_vars};
use crate::relax::{Dims, FuncInfo, StructInfo, TensorInfo};
use crate::span::Span;
use std::collections::BTreeMap;

fn is_identifier(s: &str) -> bool {
    s.chars().all(|c| c.is_alphanumeric() || c == '_') && s.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

impl Lower<'_> {
    /// Declares the symbolic variables that a signature's annotation names in quotes.
    pub(super) fn declare_symbols(&mut self, e: &Expr) {
        let dims = |cx: &mut Self, items: &[Expr]| {
            for i in items {
                if let Some(s) = i.str().filter(|s| is_identifier(s)) {
                    cx.symbol(s, DType::I64, i.span);
                }
            }
        };
        match &e.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                dims(self, items);
                items.iter().for_each(|i| self.declare_symbols(i));
            }
            ExprKind::Call { args, keywords, func } => {
                args.iter().for_each(|a| self.declare_symbols(a));
                for k in keywords {
                    self.declare_symbols(&k.value);
                    if k.name == "value" && func.path().as_deref() == Some("R.Prim") {
                        dims(self, std::slice::from_ref(&k.value));
                    }
                }
            }
            _ => {}
        }
    }

    /// The symbolic variable of a name; declared for the function when it is new.
    pub(super) fn symbol(&mut self, name: &Name, dtype: DType, span: Span) -> Var {
        if let Some(Entity::Prim(v)) = self.scope.lookup(name, span) {
            return v;
        }
        let var = Var::at(name.clone(), dtype, span);
        self.scope.define_in_function(name, Entity::Prim(var.clone()), span);
        var
    }

    /// A dimension: an expression, or one in quotes.
    pub(super) fn shape_dim(&mut self, e: &Expr) -> Lowered<PrimExpr> {
        let v = match e.str() {
            Some(s) if is_identifier(s) => self.symbol(s, DType::I64, e.span).expr(),
            Some(s) => {
                let base = usize::try_from(e.span.start).unwrap_or(0) + 1;
                let inner = super::grammar::parse_fragment(self.source, s, base)
                    .map_err(|ds| ds.0.into_iter().next().unwrap_or_else(|| Diag::error(e.span, "not a dimension")))?;
                self.number(&inner)?
            }
            None => self.number(e)?,
        };
        if !v.dtype().is_integer() {
            return Err(Diag::error(e.span, format!("a dimension must be an integer, not {}", v.dtype())));
        }
        if v.as_int().is_some_and(|n| n < 0) {
            return Err(Diag::error(e.span, "a dimension cannot be negative"));
        }
        Ok(v.cast(DType::I64))
    }

    /// The dimensions of a tuple or list.
    pub(super) fn shape_dims(&mut self, e: &Expr) -> Lowered<Vec<PrimExpr>> {
        match e.items() {
            Some(items) => items.iter().map(|i| self.shape_dim(i)).collect(),
            None => Err(Diag::error(e.span, "expected a tuple of dimensions, as (n, 4)")),
        }
    }

    /// An annotation.
    pub(super) fn sinfo(&mut self, e: &Expr) -> Lowered<StructInfo> {
        if matches!(e.kind, ExprKind::Broken) {
            return Err(consequence());
        }
        if let Some(items) = e.items() {
            return Ok(StructInfo::Tuple(items.iter().map(|i| self.sinfo(i)).collect::<Result<_, _>>()?));
        }
        let (path, args, keywords) = match e.call() {
            Some(c) => c,
            None => (e.path().unwrap_or_default(), &[][..], &[][..]),
        };
        let mut a = Args::new(&path, e.span, args, keywords);
        let info = match path.as_str() {
            "R.Object" | "R.Any" => StructInfo::Object,
            "R.Tensor" => self.tensor_info(&mut a, e.span)?,
            "R.Shape" => match a.take("values")? {
                Some(v) if !matches!(v.kind, ExprKind::None) => StructInfo::Shape(Dims::Known(self.shape_dims(v)?)),
                _ => StructInfo::Shape(self.rank(a.keyword("ndim"))?),
            },
            "R.Prim" => match (a.take("dtype")?, a.keyword("value")) {
                (None, Some(v)) => {
                    let v = if v.str().is_some() { self.shape_dim(v)? } else { self.number(v)? };
                    StructInfo::Prim(v.dtype(), Some(v))
                }
                (Some(d), None) => StructInfo::Prim(self.dtype(d)?, None),
                _ => return Err(Diag::error(e.span, "R.Prim takes a dtype or value=")),
            },
            "R.Tuple" => {
                let fields = match a.rest() {
                    [one] if one.items().is_some() => one.items().unwrap_or_default(),
                    many => many,
                };
                StructInfo::Tuple(fields.iter().map(|f| self.sinfo(f)).collect::<Result<_, _>>()?)
            }
            "R.Callable" => {
                let params = match a.take("params")? {
                    Some(p) => match p.items() {
                        Some(items) => Some(items.iter().map(|i| self.sinfo(i)).collect::<Result<_, _>>()?),
                        None => Some(vec![self.sinfo(p)?]),
                    },
                    None => None,
                };
                let ret = match a.take("ret")? {
                    Some(r) => self.sinfo(r)?,
                    None => StructInfo::Object,
                };
                let pure = match a.take("purity")? {
                    Some(Expr { kind: ExprKind::Bool(b), .. }) => *b,
                    None => true,
                    Some(other) => return Err(Diag::error(other.span, "purity is True or False")),
                };
                StructInfo::Func(Box::new(FuncInfo { params, ret, pure }))
            }
            other => {
                if let Some(Ok(dtype)) = other.strip_prefix("T.").map(str::parse::<DType>) {
                    return Ok(StructInfo::Prim(dtype, None));
                }
                let known = ["R.Tensor", "R.Shape", "R.Prim", "R.Tuple", "R.Object", "R.Any", "R.Callable"];
                let d = Diag::error(e.span, "expected a type, as R.Tensor((1, 4), dtype=\"float32\")");
                return Err(suggest(d, other, known.into_iter()));
            }
        };
        a.finish()?;
        Ok(info)
    }

    fn rank(&mut self, e: Option<&Expr>) -> Lowered<Dims> {
        let Some(e) = e else { return Ok(Dims::Unknown) };
        match self.number(e)?.as_int() {
            Some(-1) => Ok(Dims::Unknown),
            Some(n @ 0..=64) => Ok(Dims::Rank(usize::try_from(n).unwrap_or(0))),
            _ => Err(Diag::error(e.span, "ndim must be an integer from 0 to 64")),
        }
    }

    fn shape_var(&mut self, e: &Expr) -> Option<Dims> {
        match self.scope.lookup(e.name()?, e.span)? {
            Entity::Relax(v) => match v.info() {
                StructInfo::Shape(dims) => Some(dims.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    fn tensor_info(&mut self, a: &mut Args<'_>, span: Span) -> Lowered<StructInfo> {
        let mut first = a.take("shape")?;
        let mut dtype = None;
        if let Some(e) = first.filter(|e| e.str().is_some()) {
            // R.Tensor("float32")
            dtype = Some(e);
            first = None;
        }
        let dtype = match dtype {
            Some(d) => Some(d),
            None => a.take("dtype")?,
        };
        let dtype = match dtype {
            Some(d) => Some(self.dtype(d)?).filter(|d| !d.is_void()),
            None => None,
        };
        let ndim = self.rank(a.keyword("ndim"))?;
        let dims = match first {
            None | Some(Expr { kind: ExprKind::None, .. }) => ndim,
            // A shape variable: what is known of its value.
            Some(e) if self.shape_var(e).is_some() => self.shape_var(e).unwrap_or(Dims::Unknown),
            Some(e) => {
                let dims = self.shape_dims(e)?;
                if ndim.rank().is_some_and(|n| n != dims.len()) {
                    return Err(Diag::error(span, format!("ndim does not fit the {} dimensions", dims.len())));
                }
                Dims::Known(dims)
            }
        };
        Ok(StructInfo::Tensor(TensorInfo { dims, dtype }))
    }
}

/// Why an annotation contradicts what is inferred; `None` when it does not (it may say less).
pub(super) fn contradiction(ann: &StructInfo, inferred: &StructInfo) -> Option<String> {
    let dims = |a: &Dims, b: &Dims| -> Option<String> {
        match (a.rank(), b.rank()) {
            (Some(x), Some(y)) if x != y => return Some(format!("{x} dimensions, not {y}")),
            _ => {}
        }
        let (a, b) = (a.known()?, b.known()?);
        a.iter().zip(b).enumerate().find_map(|(i, (x, y))| match (x.as_int(), y.as_int()) {
            (Some(x), Some(y)) if x != y => Some(format!("dimension {i} is {x}, not {y}")),
            _ => None,
        })
    };
    match (ann, inferred) {
        (StructInfo::Object, _) | (_, StructInfo::Object) => None,
        (StructInfo::Tensor(a), StructInfo::Tensor(b)) => dims(&a.dims, &b.dims).or_else(|| match (a.dtype, b.dtype) {
            (Some(x), Some(y)) if x != y => Some(format!("dtype {x}, not {y}")),
            _ => None,
        }),
        (StructInfo::Shape(a), StructInfo::Shape(b)) => dims(a, b),
        (StructInfo::Prim(a, _), StructInfo::Prim(b, _)) => (a != b).then(|| format!("{a}, not {b}")),
        (StructInfo::Tuple(a), StructInfo::Tuple(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(i, (x, y))| Some(format!("field {i}: {}", contradiction(x, y)?)))
        }
        (StructInfo::Tuple(a), StructInfo::Tuple(b)) => Some(format!("{} fields, not {}", a.len(), b.len())),
        (StructInfo::Func(_), StructInfo::Func(_)) => None,
        _ => Some(format!("{}, not {}", crate::ops::show_info(ann), crate::ops::show_info(inferred))),
    }
}

/// Binds the variables of a parameter's info to what the argument has in their place.
pub(super) fn bind_dims(param: &StructInfo, arg: &StructInfo, map: &mut BTreeMap<Var, PrimExpr>) {
    let mut bind = |p: &PrimExpr, a: &PrimExpr| {
        if let Some(v) = p.as_var() {
            map.entry(v.clone()).or_insert_with(|| a.clone());
        }
    };
    match (param, arg) {
        (StructInfo::Tensor(TensorInfo { dims: p, .. }), StructInfo::Tensor(TensorInfo { dims: a, .. }))
        | (StructInfo::Shape(p), StructInfo::Shape(a)) => {
            if let (Some(p), Some(a)) = (p.known(), a.known()) {
                p.iter().zip(a).for_each(|(p, a)| bind(p, a));
            }
        }
        (StructInfo::Prim(_, Some(p)), StructInfo::Prim(_, Some(a))) => bind(p, a),
        (StructInfo::Tuple(p), StructInfo::Tuple(a)) => p.iter().zip(a).for_each(|(p, a)| bind_dims(p, a, map)),
        _ => {}
    }
}

/// `info`, made of `original` by a substitution, with dimensions forgotten where `original` names others than `map` has.
pub(super) fn forget(info: &StructInfo, original: &StructInfo, map: &BTreeMap<Var, PrimExpr>) -> StructInfo {
    let mut left = false;
    original.visit_exprs(&mut |e| left |= free_vars(e).iter().any(|v| !map.contains_key(v)));
    match info {
        StructInfo::Tensor(t) if left => {
            let dims = t.dims.rank().map_or(Dims::Unknown, Dims::Rank);
            StructInfo::Tensor(TensorInfo { dims, dtype: t.dtype })
        }
        StructInfo::Shape(d) if left => StructInfo::Shape(d.rank().map_or(Dims::Unknown, Dims::Rank)),
        StructInfo::Tuple(fields) if left => match original {
            StructInfo::Tuple(o) => StructInfo::Tuple(fields.iter().zip(o).map(|(f, o)| forget(f, o, map)).collect()),
            _ => StructInfo::Object,
        },
        StructInfo::Prim(d, Some(_)) if left => StructInfo::Prim(*d, None),
        other => other.clone(),
    }
}
