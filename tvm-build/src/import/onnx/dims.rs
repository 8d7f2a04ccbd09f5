//! Names of values and of dimensions.

use std::collections::{BTreeMap, BTreeSet};

use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, PrimExpr, Var};

use super::graph::{Dim, Type, ValueInfo};

/// Longest name that is read as an expression; it bounds how deep the expression is.
const MAX_EXPRESSION: usize = 200;

/// Longest identifier that is made of a name.
const MAX_IDENTIFIER: usize = 80;

/// The symbolic variables of a model: one a name.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    vars: BTreeMap<String, Var>,
    /// Names that are an extent of their own somewhere in the inputs, and so have a value at run time.
    alone: BTreeSet<String>,
    unknown: usize,
}

impl Symbols {
    /// The symbols of a model with these inputs.
    pub(super) fn of_inputs<'a>(inputs: impl Iterator<Item = &'a ValueInfo>) -> Symbols {
        let mut alone = BTreeSet::new();
        for input in inputs {
            if let Some(Type::Tensor { shape: Some(dims), .. }) = &input.ty {
                alone.extend(dims.iter().filter_map(|d| match d {
                    Dim::Named(name) => Some(compact(name)),
                    Dim::Fixed(_) | Dim::Unknown => None,
                }));
            }
        }
        alone.retain(|name| name.parse::<i64>().is_err());
        Symbols { vars: BTreeMap::new(), alone, unknown: 0 }
    }

    /// The extent of a dimension. A name that is an expression of other names (`2*batch`) is that expression if
    /// the inputs give each of those names; any other name is a variable. Unknown extents are variables of their own.
    pub(super) fn dim(&mut self, dim: &Dim) -> Result<PrimExpr, String> {
        match dim {
            Dim::Fixed(extent) => {
                i64::try_from(*extent).map(PrimExpr::i64).map_err(|_| format!("dimension {extent} is too large"))
            }
            Dim::Named(name) => {
                let name = compact(name);
                // Exporters write this for every extent that varies: it is no name.
                if name == "?" {
                    return self.dim(&Dim::Unknown);
                }
                if let Ok(value) = name.parse::<i64>() {
                    return Ok(PrimExpr::i64(value));
                }
                if let Some(expr) = self.expression(&name) {
                    return Ok(expr);
                }
                Ok(self.var(&name).expr())
            }
            Dim::Unknown => {
                let name = format!("dim_{}", self.unknown);
                self.unknown += 1;
                Ok(Var::new(name, DType::I64).expr())
            }
        }
    }

    fn var(&mut self, name: &str) -> Var {
        self.vars.entry(name.to_owned()).or_insert_with(|| Var::new(identifier(name, "dim_"), DType::I64)).clone()
    }

    fn expression(&mut self, text: &str) -> Option<PrimExpr> {
        if text.len() > MAX_EXPRESSION || !text.contains(['+', '-', '*', '/']) {
            return None;
        }
        let mut parser = Parser { rest: text, symbols: self };
        let expr = parser.sum()?;
        parser.rest.is_empty().then_some(expr)
    }
}

/// Reads an expression of `+ - * / //` over integers and names, without blanks. Division rounds down.
struct Parser<'a, 's> {
    rest: &'a str,
    symbols: &'s mut Symbols,
}

impl Parser<'_, '_> {
    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn sum(&mut self) -> Option<PrimExpr> {
        let mut value = self.product()?;
        loop {
            let op = if self.take("+") {
                BinOp::Add
            } else if self.take("-") {
                BinOp::Sub
            } else {
                return Some(value);
            };
            value = PrimExpr::binary(op, value, self.product()?);
        }
    }

    fn product(&mut self) -> Option<PrimExpr> {
        let mut value = self.term()?;
        loop {
            let op = if self.take("*") {
                BinOp::Mul
            } else if self.take("//") || self.take("/") {
                BinOp::FloorDiv
            } else {
                return Some(value);
            };
            let right = self.term()?;
            if op == BinOp::FloorDiv && right.is_int(0) {
                return None;
            }
            value = PrimExpr::binary(op, value, right);
        }
    }

    fn term(&mut self) -> Option<PrimExpr> {
        let end = self.rest.find(['+', '-', '*', '/']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if let Ok(value) = word.parse::<i64>() {
            return Some(PrimExpr::i64(value));
        }
        if !self.symbols.alone.contains(word) {
            return None;
        }
        Some(self.symbols.var(word).expr())
    }
}

fn compact(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).collect()
}

/// `name` as an identifier: letters, digits and underscores, with `prefix` before what does not start as one. A long
/// name is cut; two names may give one identifier.
pub(super) fn identifier(name: &str, prefix: &str) -> String {
    let mut out = String::with_capacity(name.len());
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.push_str(prefix);
    }
    out.extend(name.chars().take(MAX_IDENTIFIER).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::onnx::data_type::DataType;

    fn symbols(names: &[&str]) -> Symbols {
        let dims = names.iter().map(|n| Dim::Named((*n).to_owned())).collect();
        let ty = Some(Type::Tensor { dtype: DataType::Float, shape: Some(dims) });
        Symbols::of_inputs([ValueInfo { name: "x".into(), ty }].iter())
    }

    fn text(symbols: &mut Symbols, name: &str) -> String {
        format!("{:?}", symbols.dim(&Dim::Named(name.to_owned())).unwrap())
    }

    #[test]
    fn names_and_expressions() {
        let mut s = symbols(&["N", "seq len", "N+1"]);
        assert_eq!(text(&mut s, "N"), "N");
        assert_eq!(text(&mut s, "N + 1"), "Add(N, 1)");
        assert_eq!(text(&mut s, "2*N + seq len//4"), "Add(Mul(2, N), FloorDiv(seqlen, 4))");
        assert_eq!(text(&mut s, "7"), "7");
        // No input gives M, so this is the name of an extent and not an expression.
        assert_eq!(text(&mut s, "M*2"), "M_2");
        assert_eq!(text(&mut s, "N/0"), "N_0");
        assert_eq!(text(&mut s, "N+"), "N_");
        let (a, b) = (s.dim(&Dim::Named("N".into())).unwrap(), s.dim(&Dim::Named("N".into())).unwrap());
        assert_eq!(a, b);
        assert_ne!(s.dim(&Dim::Unknown).unwrap(), s.dim(&Dim::Unknown).unwrap());
        let varies = || Dim::Named("?".into());
        assert_ne!(s.dim(&varies()).unwrap(), s.dim(&varies()).unwrap());
        assert!(s.dim(&Dim::Fixed(u64::MAX)).is_err());
    }

    #[test]
    fn identifiers() {
        assert_eq!(identifier("fc1.weight", "input_"), "fc1_weight");
        assert_eq!(identifier("0.y:0", "input_"), "input_0_y_0");
        assert_eq!(identifier("/a/B", "input_"), "input__a_B");
        assert_eq!(identifier("x", "input_"), "x");
    }
}
