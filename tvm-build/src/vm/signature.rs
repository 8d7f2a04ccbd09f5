//! Types of parameters and outputs, and what is checked of them.

use super::dtype::run_dtype;
use super::emit::Emitter;
use super::table::{leak, leak_str};
use tvm_ir::arith::IntBound;
use tvm_ir::diag::Diag;
use tvm_ir::ops::show_dims;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Dims, StructInfo};
use tvm_runtime::builtin;
use tvm_runtime::{Dim, Operand, Param, Reg, Type};

impl Emitter<'_> {
    /// Parameters and outputs with what the VM checks on entry; compound extents are checked by the first instructions.
    pub(super) fn signature(&mut self) -> Result<(&'static [Param], &'static [Param]), Diag> {
        let (mut params, mut outs, mut later) = (Vec::new(), Vec::new(), Vec::new());
        let lin = self.lin;
        for (i, p) in lin.params.iter().enumerate() {
            let info = match (&p.scalar, &p.info) {
                (Some(e), StructInfo::Prim(d, _)) => StructInfo::Prim(*d, Some(e.clone())),
                _ => p.info.clone(),
            };
            let (param, complete) = self.entry(&p.name, &info, i)?;
            params.push(param);
            if !complete {
                later.push((Operand::Reg(i as Reg), p.name.clone(), info));
            }
        }
        for (i, o) in lin.outs.iter().enumerate() {
            let info = StructInfo::tensor(o.dims.clone(), o.dtype);
            let (param, complete) = self.entry(&o.name, &info, lin.params.len() + i)?;
            outs.push(param);
            if !complete {
                later.push((Operand::Out(i as u16), o.name.clone(), info));
            }
        }
        for (operand, name, info) in later {
            let param = self
                .checked(&name, &info, &mut |d| d.fail(format!("has an extent of {name} that no parameter tells")))?;
            let ty = self.constants.param(param)?;
            self.run(&builtin::MATCH_CAST, vec![operand, ty]);
        }
        self.check_bounds()?;
        Ok((leak(params), leak(outs)))
    }

    /// The type of a parameter or output that holds on entry, and whether it says all.
    fn entry(&mut self, name: &str, info: &StructInfo, reg: usize) -> Result<(Param, bool), Diag> {
        let mut complete = true;
        let ty = match info {
            StructInfo::Tensor(t) => {
                let dtype = match t.dtype {
                    Some(d) => Some(run_dtype(d).ok_or_else(|| {
                        self.fail(format!("has the parameter or output {name} of {d}, which entry points cannot take"))
                            .help("cast it inside of the model")
                    })?),
                    None => None,
                };
                Type::Tensor { dtype, shape: self.bind_dims(&t.dims, &mut complete)? }
            }
            StructInfo::Object => Type::List,
            StructInfo::Shape(dims) => Type::Shape(self.bind_dims(dims, &mut complete)?),
            StructInfo::Prim(d, e) if d.is_float() => {
                self.bind_scalar(e.as_ref(), reg);
                Type::Float
            }
            StructInfo::Prim(d, e) if d.is_bool() => {
                self.bind_scalar(e.as_ref(), reg);
                Type::Bool
            }
            StructInfo::Prim(_, e) => Type::Int(match e {
                Some(e) => self.bind_dim(e, &mut complete)?,
                None => Dim::Any,
            }),
            _ => Type::Any,
        };
        Ok((Param { name: leak_str(name), ty }, complete))
    }

    /// A float or bool parameter: its register is the variable.
    fn bind_scalar(&mut self, e: Option<&PrimExpr>, reg: usize) {
        if let (Some(v), Ok(reg)) = (e.and_then(PrimExpr::as_var), Reg::try_from(reg)) {
            self.scope.symbols.insert(v.clone(), reg);
        }
    }

    pub(super) fn bind_dims(&mut self, dims: &Dims, complete: &mut bool) -> Result<Option<&'static [Dim]>, Diag> {
        Ok(match dims {
            Dims::Unknown => None,
            Dims::Rank(n) => Some(leak(vec![Dim::Any; *n])),
            Dims::Known(dims) => {
                let dims = dims.iter().map(|d| self.bind_dim(d, complete)).collect::<Result<_, _>>()?;
                Some(leak(dims))
            }
        })
    }

    /// What is checked of an extent without computing anything; a new variable is bound.
    pub(super) fn bind_dim(&mut self, e: &PrimExpr, complete: &mut bool) -> Result<Dim, Diag> {
        if let Some(v) = e.as_int() {
            return Ok(Dim::Imm(v));
        }
        if let Some(v) = e.as_var() {
            let name = leak_str(v.name());
            if let Some(reg) = self.scope.symbols.get(v) {
                return Ok(Dim::Same(*reg, name));
            }
            let reg = self.register()?;
            self.scope.symbols.insert(v.clone(), reg);
            if let Some(bound) = self.lin.bounds.get(v.name()) {
                if bound.min > 0 {
                    self.unchecked.push((name, reg, &builtin::AT_LEAST, Operand::Imm(bound.min)));
                }
                if bound.max != IntBound::POS_INF {
                    self.unchecked.push((name, reg, &builtin::AT_MOST, Operand::Imm(bound.max)));
                }
            }
            if let Some(m) = self.lin.most.iter().find(|m| m.check && m.var == *v) {
                let most = self.eval(&m.most)?;
                self.unchecked.push((name, reg, &builtin::AT_MOST, most));
            }
            return Ok(Dim::Bind(reg, name));
        }
        *complete = false;
        Ok(Dim::Any)
    }

    /// The type of a value all of whose extents can be computed.
    pub(super) fn checked(
        &mut self,
        name: &str,
        info: &StructInfo,
        unknown: &mut dyn FnMut(&Self) -> Diag,
    ) -> Result<Param, Diag> {
        let mut dim = |this: &mut Self, e: &PrimExpr| -> Result<Dim, Diag> {
            if !tvm_ir::prim::free_vars(e).iter().all(|v| this.scope.symbols.contains_key(v)) {
                return Err(unknown(this));
            }
            Ok(match this.eval(e)? {
                Operand::Imm(v) => Dim::Imm(v),
                Operand::Reg(reg) => {
                    Dim::Same(reg, leak_str(show_dims(std::slice::from_ref(e)).trim_matches(['(', ')', ','])))
                }
                _ => Dim::Any,
            })
        };
        let mut dims = |this: &mut Self, d: &Dims| -> Result<Option<&'static [Dim]>, Diag> {
            match d {
                Dims::Known(d) => Ok(Some(leak(d.iter().map(|e| dim(this, e)).collect::<Result<_, _>>()?))),
                Dims::Rank(n) => Ok(Some(leak(vec![Dim::Any; *n]))),
                Dims::Unknown => Ok(None),
            }
        };
        let ty = match info {
            StructInfo::Tensor(t) => Type::Tensor { dtype: t.dtype.and_then(run_dtype), shape: dims(self, &t.dims)? },
            StructInfo::Shape(d) => Type::Shape(dims(self, d)?),
            StructInfo::Prim(d, Some(e)) if d.is_integer() => Type::Int(dim(self, e)?),
            _ => Type::Any,
        };
        Ok(Param { name: leak_str(name), ty })
    }
}
