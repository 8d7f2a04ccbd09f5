//! Passes written as text: `LegalizeOps,FuseOps(fuse_opt_level=2)`.

use crate::pass::Step;
use tvm_ir::attrs::{AttrValue, Attrs};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::relax::AttrKind;
use tvm_ir::span::Span;

/// Reads passes with their arguments: names separated by commas, arguments `name=value` in parentheses, values as in
/// Python (`1`, `2.5`, `True`, `None`, `"text"`, `[1, 2]`; a bare word is text). Errors say where in the text.
pub fn parse_steps(spec: &str) -> Result<Vec<Step>, Diags> {
    let mut r = Reader { text: spec, at: 0 };
    let mut steps = Vec::new();
    r.space();
    while !r.rest().is_empty() {
        steps.push(r.step()?);
        r.space();
        if !r.rest().is_empty() {
            r.expect(',')?;
            r.space();
        }
    }
    Ok(steps)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// Lists in lists in lists …: none of a pass's parameters is like that.
const MAX_DEPTH: usize = 16;

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn error(&self, what: impl std::fmt::Display) -> Diags {
        let column = self.text.get(..self.at).map_or(0, |s| s.chars().count()) + 1;
        Diag::error(Span::NONE, format!("pass list, column {column}: {what}"))
            .note(self.text.to_owned())
            .help("write passes as LegalizeOps,FuseOps(fuse_opt_level=2)")
            .into()
    }

    fn expect(&mut self, c: char) -> Result<(), Diags> {
        if self.take(c) {
            return Ok(());
        }
        let found = self.rest().chars().next().map_or("the end".into(), |f| format!("'{f}'"));
        Err(self.error(format!("expected '{c}', found {found}")))
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c: char| !(c.is_alphanumeric() || "_.+-".contains(c))).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    fn step(&mut self) -> Result<Step, Diags> {
        let name = self.word();
        if name.is_empty() {
            return Err(self.error("expected the name of a pass"));
        }
        let pass = crate::pipeline::pass(name)?;
        let mut args = Attrs::new();
        self.space();
        if self.take('(') {
            self.space();
            while !self.take(')') {
                let name = self.word();
                if name.is_empty() {
                    return Err(self.error("expected the name of an argument"));
                }
                let Some(param) = pass.params.iter().find(|p| p.name == name) else {
                    let known: Vec<&str> = pass.params.iter().map(|p| p.name).collect();
                    return Err(self.error(format!(
                        "{} has no parameter {name}; it has: {}",
                        pass.name,
                        known.join(", ")
                    )));
                };
                self.space();
                self.expect('=')?;
                self.space();
                let value = self.value(0)?;
                if !fits(param.kind, &value) {
                    return Err(self.error(format!("{}: {name} takes {:?}", pass.name, param.kind)));
                }
                args.insert(name.into(), value);
                self.space();
                if !self.rest().starts_with(')') {
                    self.expect(',')?;
                    self.space();
                }
            }
        }
        Ok(Step { pass, args })
    }

    fn value(&mut self, depth: usize) -> Result<AttrValue, Diags> {
        if depth > MAX_DEPTH {
            return Err(self.error("too deeply nested"));
        }
        for (open, close) in [('[', ']'), ('(', ')')] {
            if self.take(open) {
                let mut items = Vec::new();
                self.space();
                while !self.take(close) {
                    items.push(self.value(depth + 1)?);
                    self.space();
                    if !self.rest().starts_with(close) {
                        self.expect(',')?;
                        self.space();
                    }
                }
                return Ok(AttrValue::List(items));
            }
        }
        for quote in ['"', '\''] {
            if self.take(quote) {
                let rest = self.rest();
                let Some(len) = rest.find(quote) else { return Err(self.error("the text does not end")) };
                self.at += len + 1;
                return Ok(AttrValue::Str(rest[..len].into()));
            }
        }
        let word = self.word();
        Ok(match word {
            "" => return Err(self.error("expected a value")),
            "None" => AttrValue::None,
            "True" | "true" => AttrValue::Bool(true),
            "False" | "false" => AttrValue::Bool(false),
            _ => match (word.parse::<i64>(), word.parse::<f64>()) {
                (Ok(v), _) => AttrValue::Int(v),
                (_, Ok(v)) => AttrValue::Float(v),
                _ => AttrValue::Str(word.into()),
            },
        })
    }
}

fn fits(kind: AttrKind, value: &AttrValue) -> bool {
    match kind {
        AttrKind::Bool => value.as_bool().is_some(),
        AttrKind::Int => value.as_int().is_some(),
        AttrKind::OptInt => value.as_int().is_some() || *value == AttrValue::None,
        AttrKind::Float => value.as_float().is_some(),
        AttrKind::Str => value.as_str().is_some(),
        AttrKind::DType => value.as_str().is_some_and(|s| s.parse::<tvm_ir::dtype::DType>().is_ok()),
        AttrKind::Ints => value.as_ints().is_some(),
        AttrKind::OptInts => value.as_ints().is_some() || *value == AttrValue::None,
        AttrKind::Any => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_with_arguments() {
        let steps = parse_steps(
            " LegalizeOps, FuseOps( fuse_opt_level = 2 ,max_depth=8),DeadCodeElimination(entry_functions=['a', b]) ",
        );
        let steps = steps.unwrap();
        assert_eq!(steps.len(), 3);
        assert_eq!(steps[1].args["fuse_opt_level"], AttrValue::Int(2));
        assert_eq!(steps[1].args["max_depth"], AttrValue::Int(8));
        let names = AttrValue::List(vec![AttrValue::Str("a".into()), AttrValue::Str("b".into())]);
        assert_eq!(steps[2].args["entry_functions"], names);
        assert!(parse_steps("").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (spec, says) in [
            ("LegalizeOps FuseOps", "column 13: expected ','"),
            ("FuseOps(level=2)", "no parameter level"),
            ("FuseOps(fuse_opt_level=high)", "takes Int"),
            ("FuseOps(fuse_opt_level=", "expected a value"),
            ("FuseOps(fuse_opt_level", "expected '='"),
            ("DeadCodeElimination(entry_functions='a)", "does not end"),
            ("Fuseops2", "no pass"),
            (",", "expected the name of a pass"),
        ] {
            let Err(e) = parse_steps(spec) else { panic!("{spec} is read") };
            assert!(e.to_string().contains(says), "{spec}: {e}");
        }
    }
}
