//! Right sides of bindings, and leaves; nested calls are bound to fresh names.

use super::ast::{BinaryOp, Expr, ExprKind, Keyword, UnaryOp};
use super::literal::{Number, encode};
use super::lower_prim::Lowered;
use super::lower_relax::{RelaxLower, is_none};
use super::lower_sinfo::{bind_dims, forget};
use super::scope::{Args, Entity, Signature, consequence, suggest};
use crate::attrs::AttrValue;
use crate::constant::{Bytes, Constant};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::ops;
use crate::prim::{BinOp, CmpOp, PrimExpr};
use crate::relax::verify::misfit;
use crate::relax::{ArgKind, Expr as Value, GlobalVar, Leaf, Op, StructInfo};
use crate::span::Span;
use std::collections::BTreeMap;

impl RelaxLower<'_, '_> {
    /// A leaf; what is not one is bound to a fresh name.
    pub(super) fn leaf(&mut self, e: &Expr) -> Lowered<Leaf> {
        if let Some(l) = self.direct_leaf(e)? {
            return Ok(l);
        }
        let (value, info) = self.value(e)?;
        if let Value::Leaf(l) = value {
            return Ok(l);
        }
        Ok(Leaf::Var(self.bind_nested(value, info, e.callee_span())))
    }

    /// Whether an expression is a scalar one: a literal, a `T` call, or an operator over such.
    fn is_scalar(&mut self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
            ExprKind::Name(n) => matches!(self.cx.scope.lookup(n, e.span), Some(Entity::Prim(_))),
            ExprKind::Unary(_, a) => self.is_scalar(a),
            ExprKind::Binary(_, a, b) | ExprKind::Compare(_, a, b) => self.is_scalar(a) && self.is_scalar(b),
            ExprKind::Call { func, .. } => func.path().is_some_and(|p| p.starts_with("T.")),
            _ => false,
        }
    }

    fn scalar(&mut self, e: &Expr) -> Lowered<PrimExpr> {
        match &e.kind {
            ExprKind::Float(v) => Ok(PrimExpr::float(DType::F64, *v)),
            ExprKind::Unary(UnaryOp::Neg, x) if matches!(x.kind, ExprKind::Float(_)) => {
                let v = self.scalar(x)?.as_float().unwrap_or(0.0);
                Ok(PrimExpr::float(DType::F64, -v))
            }
            _ => self.cx.number(e),
        }
    }

    fn direct_leaf(&mut self, e: &Expr) -> Lowered<Option<Leaf>> {
        if self.is_scalar(e) {
            return Ok(Some(Leaf::Prim(self.scalar(e)?)));
        }
        Ok(Some(match &e.kind {
            ExprKind::Name(n) => match self.resolve(n, e.span)? {
                Entity::Relax(v) => Leaf::Var(v),
                Entity::Prim(v) => Leaf::Prim(v.expr()),
                Entity::Module | Entity::Broken => {
                    return Err(Diag::error(e.span, format!("`{n}` is the module, not a value")));
                }
                Entity::Buffer(_) | Entity::Handle(_) => {
                    return Err(Diag::error(e.span, format!("`{n}` is not a graph-level value")));
                }
            },
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                Leaf::Tuple(items.iter().map(|i| self.leaf(i)).collect::<Result<_, _>>()?)
            }
            ExprKind::Attr(base, name) => match self.module_member(base)? {
                true => self.global(name, e.span)?,
                false => {
                    return Err(Diag::error(
                        e.span,
                        match e.path() {
                            Some(path) => format!("`{path}` is not a value"),
                            None => format!("a value has no attribute `{name}`"),
                        },
                    ));
                }
            },
            ExprKind::Index(base, items) => match metadata_kind(base) {
                Some(_) => Leaf::Const(self.metadata(items, e.span)?),
                None => return Ok(None),
            },
            ExprKind::Str(_) => {
                return Err(Diag::error(e.span, "a string is not a value here").help("write R.str(\"…\")"));
            }
            ExprKind::Broken => return Err(consequence()),
            ExprKind::None => return Err(Diag::error(e.span, "None is not a value here")),
            ExprKind::Call { func, args, keywords } => {
                let Some(path) = func.path() else { return Ok(None) };
                let mut a = Args::new(&path, func.span, args, keywords);
                let leaf = match path.as_str() {
                    "R.const" => {
                        let value = a.need("value")?;
                        let dtype = a.take("dtype")?;
                        Leaf::Const(self.constant(value, dtype)?)
                    }
                    "R.shape" => Leaf::Shape(self.cx.shape_dims(a.need("value")?)?),
                    "R.prim_value" => Leaf::Prim(self.scalar(a.need("value")?)?),
                    "R.str" => Leaf::Str(self.cx.string(a.need("value")?)?),
                    "R.dtype" => Leaf::DType(self.cx.dtype(a.need("value")?)?),
                    "R.tuple" => Leaf::Tuple(a.rest().iter().map(|i| self.leaf(i)).collect::<Result<_, _>>()?),
                    _ => return Ok(None),
                };
                a.finish()?;
                leaf
            }
            _ => return Ok(None),
        }))
    }

    /// Whether an expression is the module (`cls`, `Module`).
    fn module_member(&mut self, base: &Expr) -> Lowered<bool> {
        match base.name() {
            Some(n) if n != "R" && n != "T" && n != "I" => Ok(matches!(self.resolve(n, base.span)?, Entity::Module)),
            _ => Ok(false),
        }
    }

    fn global(&mut self, name: &crate::name::Name, span: Span) -> Lowered<Leaf> {
        match self.cx.signatures.get(name) {
            Some(Signature::Broken) => return Err(consequence()),
            Some(_) => return Ok(Leaf::Global(GlobalVar(name.clone()))),
            None => {}
        }
        let d = Diag::error(span, format!("the module has no function `{name}`"));
        Err(suggest(d, name, self.cx.signatures.keys().map(|n| n.as_str())))
    }

    fn metadata(&mut self, items: &[Expr], span: Span) -> Lowered<Constant> {
        let index = match items {
            [Expr { kind: ExprKind::Int(v), .. }] => usize::try_from(*v).ok(),
            _ => None,
        };
        let constants = &self.cx.options.constants;
        index.and_then(|i| constants.get(i)).cloned().ok_or_else(|| {
            Diag::error(span, format!("no such constant: {} are given with this text", constants.len()))
                .help("give the constants of the text, or write R.const")
        })
    }

    fn constant(&mut self, value: &Expr, dtype: Option<&Expr>) -> Lowered<Constant> {
        let mut shape = Vec::new();
        let mut flat = Vec::new();
        collect(value, 0, &mut shape, &mut flat)?;
        let dtype = match dtype {
            Some(d) => self.cx.dtype(d)?,
            None => match flat.first() {
                Some((Number::Int(_), _)) => DType::I32,
                Some((Number::Bool(_), _)) => DType::BOOL,
                Some((Number::Float(_), _)) | None => DType::F32,
            },
        };
        let mut data = Vec::new();
        for (n, span) in flat {
            let bytes = encode(dtype, n).ok_or_else(|| {
                Diag::error(
                    span,
                    match n {
                        Number::Int(v) => format!("the integer {v} does not fit {dtype}"),
                        Number::Float(v) => format!("{v:?} is no {dtype}"),
                        Number::Bool(v) => format!("{v} is no {dtype}"),
                    },
                )
            })?;
            data.extend(bytes);
        }
        Constant::new(dtype, shape, Bytes::new(data))
            .map_err(|_| Diag::error(value.span, format!("constants of {dtype} cannot be written out")))
    }

    fn leaf_info(&self, l: &Leaf) -> StructInfo {
        match l {
            Leaf::Global(g) => match self.cx.signatures.get(&g.0) {
                Some(Signature::Relax { params, ret }) => {
                    let ret = ret.clone().unwrap_or(StructInfo::Object);
                    let f = crate::relax::FuncInfo { params: Some(params.clone()), ret, pure: true };
                    StructInfo::Func(Box::new(f))
                }
                _ => StructInfo::Object,
            },
            other => other.info().unwrap_or(StructInfo::Object),
        }
    }

    /// The right side of a binding, and what is known of it.
    pub(super) fn value(&mut self, e: &Expr) -> Lowered<(Value, StructInfo)> {
        match &e.kind {
            ExprKind::Tuple(items) => {
                let leaves = items.iter().map(|i| self.leaf(i)).collect::<Result<Vec<_>, _>>()?;
                let info = StructInfo::Tuple(leaves.iter().map(|l| self.leaf_info(l)).collect());
                return Ok((Value::Tuple(leaves), info));
            }
            ExprKind::Index(base, items) if metadata_kind(base).is_none() => return self.field(base, items, e.span),
            ExprKind::Call { func, args, keywords }
                if func.path().as_deref() == Some("R.tuple") && keywords.is_empty() =>
            {
                let leaves = args.iter().map(|i| self.leaf(i)).collect::<Result<Vec<_>, _>>()?;
                let info = StructInfo::Tuple(leaves.iter().map(|l| self.leaf_info(l)).collect());
                return Ok((Value::Tuple(leaves), info));
            }
            _ => {}
        }
        if let Some(l) = self.direct_leaf(e)? {
            let info = self.leaf_info(&l);
            return Ok((Value::Leaf(l), info));
        }
        match &e.kind {
            ExprKind::Unary(op, a) => match op {
                UnaryOp::Neg => self.op("negative", &[a], e.span),
                UnaryOp::Not => self.op("logical_not", &[a], e.span),
                UnaryOp::Invert => self.op("bitwise_not", &[a], e.span),
                UnaryOp::Pos => self.value(a),
            },
            ExprKind::Binary(op, a, b) => {
                let name = match op {
                    BinaryOp::Prim(BinOp::Add) => "add",
                    BinaryOp::Prim(BinOp::Sub) => "subtract",
                    BinaryOp::Prim(BinOp::Mul) => "multiply",
                    BinaryOp::Prim(BinOp::FloorDiv) => "floor_divide",
                    BinaryOp::Prim(BinOp::FloorMod) => "floor_mod",
                    BinaryOp::Prim(BinOp::BitAnd) => "bitwise_and",
                    BinaryOp::Prim(BinOp::BitOr) => "bitwise_or",
                    BinaryOp::Prim(BinOp::BitXor) => "bitwise_xor",
                    BinaryOp::Prim(BinOp::Shl) => "left_shift",
                    BinaryOp::Prim(BinOp::Shr) => "right_shift",
                    BinaryOp::TrueDiv => "divide",
                    BinaryOp::Pow => "power",
                    BinaryOp::MatMul => "matmul",
                    BinaryOp::And => "logical_and",
                    BinaryOp::Or => "logical_or",
                    BinaryOp::Prim(_) => return Err(Diag::error(e.span, "no such operator of tensors")),
                };
                self.op(name, &[a, b], e.span)
            }
            ExprKind::Compare(op, a, b) => {
                let name = match op {
                    CmpOp::Eq => "equal",
                    CmpOp::Ne => "not_equal",
                    CmpOp::Lt => "less",
                    CmpOp::Le => "less_equal",
                    CmpOp::Gt => "greater",
                    CmpOp::Ge => "greater_equal",
                };
                self.op(name, &[a, b], e.span)
            }
            ExprKind::Call { func, args, keywords } => self.call(func, args, keywords, e.span),
            _ => Err(Diag::error(e.span, "not a value")),
        }
    }

    fn field(&mut self, base: &Expr, items: &[Expr], span: Span) -> Lowered<(Value, StructInfo)> {
        let [Expr { kind: ExprKind::Int(index), span: at, .. }] = items else {
            return Err(Diag::error(span, "a field is written t[0]").help("parts of a tensor: R.strided_slice, R.take"));
        };
        let at = *at;
        let leaf = self.leaf(base)?;
        let index = usize::try_from(*index).unwrap_or(usize::MAX);
        let info = match self.leaf_info(&leaf) {
            StructInfo::Tuple(fields) => match fields.get(index) {
                Some(f) => f.clone(),
                None => {
                    let d = Diag::error(at, format!("a tuple of {} has no field {index}", fields.len()));
                    return Err(match fields.len() {
                        0 => d,
                        1 => d.help("its field is 0"),
                        n => d.help(format!("its fields are 0 to {}", n - 1)),
                    });
                }
            },
            StructInfo::Object => StructInfo::Object,
            other => {
                return Err(Diag::error(span, format!("{} has no fields", ops::show_info(&other)))
                    .help("parts of a tensor: R.strided_slice, R.take"));
            }
        };
        match leaf {
            Leaf::Tuple(mut fields) if index < fields.len() => Ok((Value::Leaf(fields.swap_remove(index)), info)),
            leaf => Ok((Value::TupleGetItem(leaf, index), info)),
        }
    }

    fn op(&mut self, name: &str, args: &[&Expr], span: Span) -> Lowered<(Value, StructInfo)> {
        let Some(op) = ops::lookup(name) else { return Err(Diag::error(span, format!("there is no op R.{name}"))) };
        let leaves = args.iter().map(|a| self.leaf(a)).collect::<Result<Vec<_>, _>>()?;
        let given: Vec<Given<'_>> = op.def().args.iter().map(|a| a.name).zip(args.iter().copied()).collect();
        self.inferred(op, leaves, &[], &given, (span, span))
    }

    /// A call of an op with what is inferred of its result; an error points at the operand at fault. The places are those
    /// of the call and of the op's name.
    fn inferred(
        &self,
        op: Op,
        leaves: Vec<Leaf>,
        attrs: &[(&str, AttrValue)],
        given: &[Given<'_>],
        (span, callee): (Span, Span),
    ) -> Lowered<(Value, StructInfo)> {
        let done = ops::make_call(op, leaves, attrs, span).and_then(|call| {
            let info = ops::infer(&call, &self.cx.analyzer)?;
            Ok((Value::Call(call), info))
        });
        done.map_err(|d| blame(d, op, given, (span, callee)))
    }

    fn call(&mut self, func: &Expr, args: &[Expr], keywords: &[Keyword], span: Span) -> Lowered<(Value, StructInfo)> {
        if let ExprKind::Attr(base, name) = &func.kind {
            if self.module_member(base)? {
                let callee = self.global(name, func.span)?;
                return self.call_func(callee, args, keywords, func.span);
            }
        }
        let path = func.path().ok_or_else(|| Diag::error(func.span, "this cannot be called"))?;
        let Some(op) = path.strip_prefix("R.") else {
            let callee = self.leaf(func)?;
            return self.call_func(callee, args, keywords, func.span);
        };
        if let Some(special) = self.special_call(op, args, keywords, func.span)? {
            return Ok(special);
        }
        let Some(found) = ops::lookup(op) else {
            let d = Diag::error(func.span, format!("there is no op R.{op}"));
            return Err(match ops::suggest(op).first() {
                Some(s) => d.help(format!("did you mean R.{s}?")),
                None => d,
            });
        };
        let def = found.def();
        let what = format!("R.{}", def.name);
        let mut a = Args::new(&what, func.span, args, keywords);
        let (mut leaves, mut given) = (Vec::new(), Vec::new());
        for arg in def.args {
            let e = a.take(arg.name)?;
            given.extend(e.map(|e| (arg.name, e)));
            leaves.push(match e {
                None => Leaf::Absent,
                Some(e) if is_none(e) && arg.optional => Leaf::Absent,
                Some(e) => self.argument(e, arg.kind)?,
            });
        }
        let mut attrs = Vec::new();
        for attr in def.attrs {
            if let Some(e) = a.take(attr.name)? {
                given.push((attr.name, e));
                attrs.push((attr.name, self.cx.attr(e)?));
            }
        }
        a.finish().map_err(|d| if d.help.is_none() { d.help(ops::signature(found)) } else { d })?;
        self.inferred(found, leaves, &attrs, &given, (span, func.span))
    }

    fn argument(&mut self, e: &Expr, kind: ArgKind) -> Lowered<Leaf> {
        let items = e.items();
        match kind {
            ArgKind::Shape if items.is_some() => Ok(Leaf::Shape(self.cx.shape_dims(e)?)),
            ArgKind::Tensor if self.is_scalar(e) => {
                Err(Diag::error(e.span, "a number stands where a tensor is wanted")
                    .help("write R.const(…, \"float32\")"))
            }
            _ => self.leaf(e),
        }
    }

    fn call_func(
        &mut self,
        callee: Leaf,
        written: &[Expr],
        keywords: &[Keyword],
        at: Span,
    ) -> Lowered<(Value, StructInfo)> {
        if let Some(k) = keywords.first() {
            return Err(Diag::error(k.span, "functions take arguments by position"));
        }
        let args = written.iter().map(|a| self.leaf(a)).collect::<Result<Vec<_>, _>>()?;
        if let Leaf::Global(g) = &callee {
            if let Some(Signature::Prim(_)) = self.cx.signatures.get(&g.0) {
                // As CallTIRRewrite leaves it: outputs are among the arguments.
                if self.bare_call && !self.in_dataflow {
                    return Ok((Value::CallFunc { callee, args }, StructInfo::unit()));
                }
                return Err(Diag::error(at, format!("`{}` is a PrimFunc", g.0))
                    .help(format!("call it with R.call_tir(cls.{}, (…), out_sinfo=…)", g.0)));
            }
        }
        let info = match self.leaf_info(&callee) {
            StructInfo::Func(f) => {
                let mut map = BTreeMap::new();
                if let Some(params) = &f.params {
                    if params.len() != args.len() {
                        let count = |n: usize| format!("{n} argument{}", if n == 1 { "" } else { "s" });
                        let name = match &callee {
                            Leaf::Global(g) => format!("`{}`", g.0),
                            _ => "the function".to_string(),
                        };
                        let given = if args.len() == 1 { "is" } else { "are" };
                        let d = format!("{name} takes {}, {} {given} given", count(params.len()), args.len());
                        let place = written.get(params.len()).map_or(at, |extra| extra.span);
                        return Err(Diag::error(place, d));
                    }
                    for (p, a) in params.iter().zip(&args) {
                        bind_dims(p, &self.leaf_info(a), &mut map);
                    }
                    for (i, (p, (a, e))) in params.iter().zip(args.iter().zip(written)).enumerate() {
                        if let Some(wrong) = misfit(p, &self.leaf_info(a), &map, &self.cx.analyzer) {
                            let name = match &callee {
                                Leaf::Global(g) => format!("`{}`", g.0),
                                _ => "the call".to_string(),
                            };
                            return Err(Diag::error(e.span, format!("argument {i} of {name} {wrong}")));
                        }
                    }
                }
                forget(&f.ret.substitute(&map), &f.ret, &map)
            }
            StructInfo::Object => StructInfo::Object,
            other => return Err(Diag::error(at, format!("{} cannot be called", ops::show_info(&other)))),
        };
        Ok((Value::CallFunc { callee, args }, info))
    }
}

/// An operand of a call and what is written for it.
type Given<'x> = (&'static str, &'x Expr);

/// An error of a call where it belongs: at the operand at fault, or at the op's name. Operands that are names are called by
/// them.
fn blame(mut d: Diag, op: Op, given: &[Given<'_>], (span, callee): (Span, Span)) -> Diag {
    let fault = ops::operand_at_fault(op.def(), &d.message);
    let place = fault.and_then(|f| given.iter().find(|(n, _)| *n == f)).map_or(callee, |(_, e)| part(e, &d.message));
    match d.labels.first_mut() {
        Some(first) if first.span == span => first.span = place,
        Some(_) => {}
        None => d = d.at(place),
    }
    let as_written = |e: &Expr| match &e.kind {
        ExprKind::Name(n) => Some(n.to_string()),
        ExprKind::Int(v) => Some(v.to_string()),
        ExprKind::Float(v) => Some(format!("{v:?}")),
        ExprKind::Call { args, .. } => {
            let path = e.call().map(|(path, ..)| path)?;
            Some(format!("{path}({})", if args.is_empty() { "" } else { "…" }))
        }
        _ => None,
    };
    // Attributes are called by their own names.
    let is_argument = |n: &str| op.def().args.iter().any(|a| a.name == n);
    let arguments = given.iter().filter(|(n, _)| is_argument(n));
    let written: Vec<(&str, String)> = arguments.filter_map(|(n, e)| Some((*n, as_written(e)?))).collect();
    d.message = ops::with_written_names(&d.message, &written);
    d.notes.iter_mut().for_each(|n| *n = ops::with_written_names(n, &written));
    d.help = d.help.map(|h| if h.starts_with("the op is ") { h } else { ops::with_written_names(&h, &written) });
    d
}

/// Where in an operand that is written as a list the fault is: "tensor 1" of a tuple, "axis 5" of a list of axes.
fn part(e: &Expr, message: &str) -> Span {
    let Some(items) = e.items() else { return e.span };
    let number = |word: &str| {
        let rest = message.rsplit_once(word)?.1;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
        rest[..end].parse::<i128>().ok()
    };
    let value = |e: &Expr| match &e.kind {
        ExprKind::Int(v) => Some(*v),
        ExprKind::Unary(UnaryOp::Neg, x) => match x.kind {
            ExprKind::Int(v) => v.checked_neg(),
            _ => None,
        },
        _ => None,
    };
    let tensor = number("tensor ").and_then(|i| usize::try_from(i).ok()).and_then(|i| items.get(i));
    let axis = number("axis ").and_then(|a| items.iter().rev().find(|e| value(e) == Some(a)));
    tensor.or(axis).map_or(e.span, |e| e.span)
}

/// The key of `metadata["…"]`.
fn metadata_kind(e: &Expr) -> Option<&str> {
    match &e.kind {
        ExprKind::Index(base, items) if base.name().is_some_and(|n| n == "metadata") => {
            items.first().and_then(|i| i.str()).map(|s| s.as_str())
        }
        _ => None,
    }
}

/// Flattens nested lists of numbers; all lists of a level must be equally long.
fn collect(e: &Expr, level: usize, shape: &mut Vec<u64>, out: &mut Vec<(Number, Span)>) -> Lowered<()> {
    if let Some(items) = e.items() {
        let n = u64::try_from(items.len()).unwrap_or(u64::MAX);
        match shape.get(level) {
            None if out.is_empty() => shape.push(n),
            Some(want) if *want == n => {}
            _ => return Err(Diag::error(e.span, "the lists of a constant are not equally long")),
        }
        return items.iter().try_for_each(|i| collect(i, level + 1, shape, out));
    }
    if level != shape.len() {
        return Err(Diag::error(e.span, "the lists of a constant are not equally deep"));
    }
    let number = match &e.kind {
        ExprKind::Int(v) => Number::Int(*v),
        ExprKind::Float(v) => Number::Float(*v),
        ExprKind::Bool(v) => Number::Bool(*v),
        ExprKind::Str(s) => match s.as_str() {
            "inf" => Number::Float(f64::INFINITY),
            "-inf" => Number::Float(f64::NEG_INFINITY),
            "nan" => Number::Float(f64::NAN),
            _ => return Err(Diag::error(e.span, "expected a number")),
        },
        ExprKind::Unary(UnaryOp::Neg, x) => match &x.kind {
            ExprKind::Int(v) => Number::Int(-*v),
            ExprKind::Float(v) => Number::Float(-*v),
            _ => return Err(Diag::error(e.span, "expected a number")),
        },
        _ => return Err(Diag::error(e.span, "expected a number")),
    };
    out.push((number, e.span));
    Ok(())
}
