//! What a user knows of symbolic dimensions: ranges that memory is planned for, or numbers.

use crate::passes::relax::{bind_symbolic_vars, symbolic_vars, unknown_symbol};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use tvm_ir::attrs::{AttrValue, Attrs};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::name::Name;
use tvm_ir::span::Span;

/// Ranges of symbolic dimensions, by name. A range of one number makes the dimension that number.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct DimBounds(BTreeMap<Name, RangeInclusive<i64>>);

impl DimBounds {
    /// Adds a range; a later one of the same name replaces it.
    pub fn insert(&mut self, name: impl Into<Name>, range: RangeInclusive<i64>) {
        self.0.insert(name.into(), range);
    }

    /// Reads `name=8` or `name=1..8`, the end included.
    pub fn parse(text: &str) -> Result<(String, RangeInclusive<i64>), String> {
        let expected = || format!("'{text}' is not NAME=N or NAME=LEAST..MOST");
        let (name, range) = text.split_once('=').ok_or_else(expected)?;
        let number = |t: &str| t.trim_start_matches('=').parse::<i64>().map_err(|_| expected());
        let range = match range.split_once("..") {
            Some((least, most)) => number(least)?..=number(most)?,
            None => number(range)?..=number(range)?,
        };
        Ok((name.to_owned(), range))
    }

    /// Errors for the names that are not among the `known` ones.
    pub fn unknown(&self, known: &[Name]) -> Diags {
        let unknown = self.0.keys().filter(|n| !known.contains(n));
        Diags(unknown.map(|name| unknown_symbol(name, known.to_vec())).collect())
    }

    /// Applies those ranges whose dimensions the module has: numbers are put in, other ranges become the attributes
    /// `tir_var_lower_bound` and `tir_var_upper_bound` of the public functions, by which memory is planned and which
    /// entry points check. Errors: a range that is empty or begins below 0.
    pub fn apply(&self, module: &mut IRModule) -> Result<(), Diags> {
        let mut diags = Diags::new();
        for (name, range) in &self.0 {
            if range.is_empty() || *range.start() < 0 {
                let (least, most) = (range.start(), range.end());
                let message = format!("the dimension {name} cannot lie in {least}..={most}");
                diags.push(Diag::error(Span::NONE, message).help("write a range from 0 on, its smaller end first"));
            }
        }
        if !diags.0.is_empty() {
            return Err(diags);
        }
        let have = symbols(module);
        let here = |name: &Name| have.contains(name);
        let fixed = self.0.iter().filter(|(n, r)| here(n) && r.start() == r.end());
        let fixed: BTreeMap<Name, i64> = fixed.map(|(n, r)| (n.clone(), *r.start())).collect();
        bind_symbolic_vars(module, &fixed)?;
        let ranges: Vec<_> = self.0.iter().filter(|(n, r)| here(n) && r.start() < r.end()).collect();
        for func in module.funcs.values_mut() {
            let Func::Relax(f) = func else { continue };
            if f.is_private() {
                continue;
            }
            let vars = symbolic_vars(f);
            let own: Vec<_> = ranges.iter().filter(|(n, _)| vars.iter().any(|v| v.name() == *n)).collect();
            for (attr, end) in [("tir_var_lower_bound", true), ("tir_var_upper_bound", false)] {
                let mut map = match f.attrs.get(attr) {
                    Some(AttrValue::Map(map)) => map.clone(),
                    _ => Attrs::default(),
                };
                for (name, range) in &own {
                    map.insert((*name).clone(), AttrValue::Int(if end { *range.start() } else { *range.end() }));
                }
                if !own.is_empty() {
                    f.attrs.insert(attr.into(), AttrValue::Map(map));
                }
            }
        }
        Ok(())
    }
}

/// The symbolic dimensions in the parameters of public functions.
pub fn symbols(module: &IRModule) -> Vec<Name> {
    let mut names = Vec::new();
    for func in module.funcs.values() {
        match func {
            Func::Relax(f) if !f.is_private() => names.extend(symbolic_vars(f).iter().map(|v| v.name().clone())),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use tvm_ir::span::SourceMap;
    use tvm_ir::syntax::{Dialect, ParseOptions, parse_module, print_module};

    const TEXT: &str = r#"
from tvm.script import relax as R
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), dtype="float32"), y: R.Tensor(("m * 2",), dtype="float32")) -> R.Tensor(("n", "m"), dtype="float32"):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            lv: R.Tensor((n, m), dtype="float32") = R.nn.relu(x)
            R.output(lv)
        return lv
"#;

    fn module() -> IRModule {
        parse_module(&mut SourceMap::default(), "m", TEXT, ParseOptions::default()).unwrap()
    }

    fn bounds(text: &[&str]) -> DimBounds {
        let mut all = DimBounds::default();
        for t in text {
            let (name, range) = DimBounds::parse(t).unwrap();
            all.insert(name, range);
        }
        all
    }

    #[test]
    fn numbers_are_put_in_and_ranges_are_attributes() {
        let mut m = module();
        bounds(&["m=3", "n=1..8"]).apply(&mut m).unwrap();
        let text = print_module(&m, Dialect::default());
        assert!(
            text.contains(r#"x: R.Tensor(("n", 3), dtype="float32"), y: R.Tensor((6,), dtype="float32")"#),
            "{text}"
        );
        assert!(text.contains(r#""tir_var_lower_bound": {"n": 1}"#), "{text}");
        assert!(text.contains(r#""tir_var_upper_bound": {"n": 8}"#), "{text}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let text = bounds(&["k=3"]).unknown(&symbols(&module())).to_string();
        assert!(text.contains("there is no symbolic dimension `k`") && text.contains("m, n"), "{text}");
        let text = bounds(&["n=5..2", "m=-1"]).apply(&mut module()).unwrap_err().to_string();
        assert!(text.contains("n cannot lie in 5..=2") && text.contains("m cannot lie in -1..=-1"), "{text}");
        for bad in ["n", "n=", "n=a", "n=1.."] {
            assert!(DimBounds::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(DimBounds::parse("n=1..=8").unwrap().1, 1..=8);
    }
}
