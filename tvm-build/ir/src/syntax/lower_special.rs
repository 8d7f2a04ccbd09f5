//! Calls with a form of their own: `call_tir` and its kin, `match_cast`.

use super::ast::{Expr, Keyword};
use super::lower_prim::Lowered;
use super::lower_relax::RelaxLower;
use super::scope::{Args, Signature};
use crate::diag::Diag;
use crate::name::Name;
use crate::prim::PrimExpr;
use crate::relax::verify::{CallPart, call_tir_faults};
use crate::relax::{CallTir, Expr as Value, GlobalVar, Leaf, Loop, StructInfo, TensorInfo};
use crate::span::Span;

impl RelaxLower<'_, '_> {
    /// A call of `R.name` that is not of the op table; `None` when it is.
    pub(super) fn special_call(
        &mut self,
        name: &str,
        args: &[Expr],
        keywords: &[Keyword],
        span: Span,
    ) -> Lowered<Option<(Value, StructInfo)>> {
        let what = format!("R.{name}");
        let mut a = Args::new(&what, span, args, keywords);
        let out = match name {
            "call_tir" | "call_tir_inplace" => {
                let func = self.prim_func(a.need("func")?)?;
                let written = a.need("args")?;
                let inputs = self.inputs(written)?;
                let inplace = match a.keyword("inplace_indices") {
                    Some(e) => {
                        let at = e.span;
                        let v = self.cx.attr(e)?;
                        v.as_ints().ok_or_else(|| Diag::error(at, "expected a list of integers"))?
                    }
                    None if name == "call_tir_inplace" => {
                        return Err(Diag::error(span, "R.call_tir_inplace: argument `inplace_indices` is missing"));
                    }
                    None => Vec::new(),
                };
                let out = self.out_info(&mut a, span)?;
                let tir_vars = match a.take("tir_vars")? {
                    Some(e) => self.tir_vars(e)?,
                    None => Vec::new(),
                };
                let call = CallTir { func, args: inputs, out: out.clone(), tir_vars, inplace };
                let types = keywords.iter().find(|k| k.name == "out_sinfo" || k.name == "out_ty").map(|k| &k.value);
                self.check_call_tir(&call, written, types.or(args.get(2)), span)?;
                (Value::CallTir(call), out)
            }
            "call_dps_packed" => {
                let symbol = self.symbol(a.need("func")?)?;
                let args = self.inputs(a.need("args")?)?;
                let out = self.out_info(&mut a, span)?;
                (Value::CallDps { symbol, args, out: out.clone() }, out)
            }
            "call_packed" | "call_pure_packed" => {
                let symbol = self.symbol(a.need("func")?)?;
                let args = a.rest().iter().map(|x| self.leaf(x)).collect::<Result<Vec<_>, _>>()?;
                let info = a.keyword("sinfo_args").or(a.keyword("ty_args"));
                let ret = match info {
                    Some(e) => match e.items() {
                        Some([one]) => self.cx.sinfo(one)?,
                        _ => self.cx.sinfo(e)?,
                    },
                    None => StructInfo::Object,
                };
                let pure = name == "call_pure_packed";
                (Value::CallPacked { symbol, args, ret: ret.clone(), pure }, ret)
            }
            "match_cast" => {
                let leaf = self.leaf(a.need("value")?)?;
                let at = a.need("struct_info")?;
                self.cx.declare_symbols(at);
                let info = self.cx.sinfo(at)?;
                (Value::MatchCast(leaf, info.clone()), info)
            }
            "while_loop" => {
                let body = self.leaf(a.need("body")?)?;
                let (captured, carried) = (self.inputs(a.need("captured")?)?, self.inputs(a.need("carried")?)?);
                let mut optional = |s: &mut Self, name| match a.keyword(name) {
                    Some(e) => s.leaf(e),
                    None => Ok(Leaf::Absent),
                };
                let (trip_count, cond) = (optional(self, "trip_count")?, optional(self, "cond")?);
                let e = a
                    .keyword("out_ty")
                    .or(a.keyword("out_sinfo"))
                    .ok_or_else(|| Diag::error(span, "argument `out_sinfo` is missing"))?;
                self.cx.declare_symbols(e);
                let each = e.items().ok_or_else(|| Diag::error(e.span, "expected a list of types"))?;
                let out = each.iter().map(|x| self.cx.sinfo(x)).collect::<Result<Vec<_>, _>>()?;
                let info = StructInfo::Tuple(out.clone());
                (Value::Loop(Box::new(Loop { body, trip_count, cond, captured, carried, out })), info)
            }
            "output" | "func_attr" | "dataflow" => {
                return Err(Diag::error(span, format!("{what} is a statement, not a value")));
            }
            _ => return Ok(None),
        };
        a.finish()?;
        Ok(Some(out))
    }

    /// The symbol of an external function: a string, or the name of an `R.ExternFunc` of the module.
    fn symbol(&mut self, e: &Expr) -> Lowered<Name> {
        if e.str().is_some() {
            return self.cx.string(e);
        }
        if let Leaf::Global(g) = self.leaf(e)? {
            if let Some(Signature::Extern(symbol)) = self.cx.signatures.get(&g.0) {
                return Ok(symbol.clone());
            }
        }
        Err(Diag::error(e.span, "expected an external function")
            .help("write its symbol, as \"f\", or the name of an R.ExternFunc of the module"))
    }

    /// What is given must fit the parameters; an error points at the argument or type at fault.
    fn check_call_tir(&self, c: &CallTir, args: &Expr, types: Option<&Expr>, at: Span) -> Lowered<()> {
        let Some(Signature::Prim(Some(callee))) = self.cx.signatures.get(&c.func.0) else { return Ok(()) };
        let outputs = c.out.tensors().unwrap_or_default();
        // An output that overwrites an argument has no parameter of its own.
        let own = |(i, _): &(usize, &TensorInfo)| c.inplace.get(*i).is_none_or(|v| *v < 0);
        let fresh: Vec<(usize, &TensorInfo)> = outputs.into_iter().enumerate().filter(own).collect();
        let tensors: Vec<&TensorInfo> = fresh.iter().map(|(_, t)| *t).collect();
        let infos: Vec<Option<StructInfo>> = c.args.iter().map(Leaf::info).collect();
        let faults = call_tir_faults(&c.func.0, callee, &infos, &tensors, &c.tir_vars, &c.inplace, &self.cx.analyzer);
        let Some((part, message)) = faults.into_iter().next() else { return Ok(()) };
        let item = |e: &Expr, i: usize| e.items().and_then(|items| items.get(i)).map_or(e.span, |e| e.span);
        let place = match (part, types) {
            (CallPart::Argument(i), _) => item(args, i),
            (CallPart::Output(i), Some(t)) => item(t, fresh.get(i).map_or(i, |(i, _)| *i)),
            _ => at,
        };
        Err(Diag::error(place, format!("R.call_tir: {message}")))
    }

    fn prim_func(&mut self, e: &Expr) -> Lowered<GlobalVar> {
        match self.leaf(e)? {
            Leaf::Global(g) => match self.cx.signatures.get(&g.0) {
                Some(Signature::Relax { .. }) => Err(Diag::error(e.span, format!("`{}` is a Relax function", g.0))
                    .help(format!("call it: cls.{}(…)", g.0))),
                _ => Ok(g),
            },
            _ => Err(Diag::error(e.span, "expected a PrimFunc of the module, as cls.add")),
        }
    }

    /// The inputs of a call in destination-passing style: a tuple, or one leaf.
    fn inputs(&mut self, e: &Expr) -> Lowered<Vec<Leaf>> {
        match self.leaf(e)? {
            Leaf::Tuple(items) => Ok(items),
            one => Ok(vec![one]),
        }
    }

    fn out_info(&mut self, a: &mut Args<'_>, span: Span) -> Lowered<StructInfo> {
        let e = match a.keyword("out_ty") {
            Some(e) => e,
            None => a.take("out_sinfo")?.ok_or_else(|| Diag::error(span, "argument `out_sinfo` is missing"))?,
        };
        let info = self.cx.sinfo(e)?;
        match info.tensors() {
            Some(_) => Ok(info),
            None => Err(Diag::error(e.span, "the outputs must be tensors")
                .help("write R.Tensor((1, 4), dtype=\"float32\"), or several")),
        }
    }

    fn tir_vars(&mut self, e: &Expr) -> Lowered<Vec<PrimExpr>> {
        match e.call() {
            Some((path, [dims], [])) if path == "R.shape" => self.cx.shape_dims(dims),
            _ => self.cx.shape_dims(e),
        }
    }
}
