//! Attribute values and dictionaries.

use super::Printer;
use super::doc::{float, quoted};
use crate::attrs::{AttrValue, Attrs};
use crate::dtype::DType;
use crate::syntax::Dialect;

impl Printer {
    /// The value of an attribute of a call.
    pub(super) fn attr(&mut self, v: &AttrValue) -> String {
        match v {
            AttrValue::None => "None".into(),
            AttrValue::Bool(b) => if *b { "True" } else { "False" }.into(),
            AttrValue::Int(i) => i.to_string(),
            AttrValue::Float(f) => float(*f),
            AttrValue::Str(s) => quoted(s),
            AttrValue::DType(DType::VOID) if self.dialect == Dialect::V0_27 => "None".into(),
            AttrValue::DType(d) => format!("\"{d}\""),
            AttrValue::List(items) => {
                let docs: Vec<String> = items.iter().map(|i| self.attr(i)).collect();
                format!("[{}]", docs.join(", "))
            }
            AttrValue::Prim(e) => self.prim(e),
            AttrValue::Map(m) => self.attrs(m),
        }
    }

    /// A dictionary of attributes; bools are typed in the tutorial's dialect, as upstream has them.
    pub(super) fn attrs(&mut self, attrs: &Attrs) -> String {
        let mut docs = Vec::new();
        for (k, v) in attrs {
            let key = match (self.dialect, k.strip_prefix("tir.")) {
                (Dialect::V0_27, Some(rest)) => format!("tirx.{rest}"),
                _ => k.to_string(),
            };
            docs.push(format!("{}: {}", quoted(&key), self.member(v)));
        }
        format!("{{{}}}", docs.join(", "))
    }

    fn member(&mut self, v: &AttrValue) -> String {
        match v {
            AttrValue::Bool(b) if self.dialect == Dialect::Tutorial => {
                format!("T.bool({})", if *b { "True" } else { "False" })
            }
            AttrValue::DType(d) => format!("T.{d}"),
            AttrValue::List(items) => {
                let docs: Vec<String> = items.iter().map(|i| self.member(i)).collect();
                format!("[{}]", docs.join(", "))
            }
            other => self.attr(other),
        }
    }
}
