//! Struct info.

use super::Printer;
use super::doc::{quoted, tuple};
use crate::prim::{PrimExpr, free_vars};
use crate::relax::{Dims, StructInfo};
use crate::syntax::Dialect;

impl Printer {
    /// A dimension. In a signature, what names the function's own variables stands in quotes.
    fn dim(&mut self, e: &PrimExpr) -> String {
        let mut own = false;
        if self.in_signature {
            for v in free_vars(e) {
                if self.names.prim(&v).is_none() {
                    self.func_vars.push(v.clone());
                }
                own |= self.func_vars.contains(&v);
            }
        }
        let text = self.prim(e);
        let bare = self.dialect == Dialect::V0_27 && e.as_var().is_some();
        if own && !bare { quoted(&text) } else { text }
    }

    pub(super) fn shape(&mut self, dims: &[PrimExpr]) -> Vec<String> {
        dims.iter().map(|d| self.dim(d)).collect()
    }

    /// An annotation.
    pub(super) fn sinfo(&mut self, s: &StructInfo) -> String {
        match s {
            StructInfo::Object if self.dialect == Dialect::V0_27 => "R.Any".into(),
            StructInfo::Object => "R.Object".into(),
            StructInfo::Prim(d, value) => match (value, self.dialect) {
                // Today's dialect has no word for the value; ours reads this one.
                (Some(v), _) => format!("R.Prim(value={})", self.dim(v)),
                (None, Dialect::V0_27) => format!("T.{d}"),
                (None, Dialect::Tutorial) => format!("R.Prim(\"{d}\")"),
            },
            StructInfo::Shape(Dims::Known(dims)) => format!("R.Shape([{}])", self.shape(dims).join(", ")),
            StructInfo::Shape(Dims::Rank(n)) => format!("R.Shape(ndim={n})"),
            StructInfo::Shape(Dims::Unknown) => "R.Shape(ndim=-1)".into(),
            StructInfo::Tensor(t) => {
                let mut parts = Vec::new();
                if let Dims::Known(dims) = &t.dims {
                    parts.push(tuple(&self.shape(dims)));
                }
                if let Some(d) = t.dtype {
                    parts.push(format!("dtype=\"{d}\""));
                }
                if let Dims::Rank(n) = t.dims {
                    parts.push(format!("ndim={n}"));
                }
                if parts.is_empty() { "R.Tensor".into() } else { format!("R.Tensor({})", parts.join(", ")) }
            }
            StructInfo::Tuple(fields) if fields.is_empty() => "R.Tuple".into(),
            StructInfo::Tuple(fields) => {
                let docs: Vec<String> = fields.iter().map(|f| self.sinfo(f)).collect();
                format!("R.Tuple({})", docs.join(", "))
            }
            StructInfo::Func(f) => match &f.params {
                Some(params) => {
                    let params: Vec<String> = params.iter().map(|p| self.sinfo(p)).collect();
                    let pure = if f.pure { "True" } else { "False" };
                    format!("R.Callable({}, {}, {pure})", tuple(&params), self.sinfo(&f.ret))
                }
                None => "R.Callable".into(),
            },
        }
    }

    /// The outputs of a call in destination-passing style: a list when there are several.
    pub(super) fn out_info(&mut self, s: &StructInfo) -> String {
        match s {
            StructInfo::Tuple(fields) => {
                let docs: Vec<String> = fields.iter().map(|f| self.sinfo(f)).collect();
                format!("[{}]", docs.join(", "))
            }
            other => self.sinfo(other),
        }
    }
}
