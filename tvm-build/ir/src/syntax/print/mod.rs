//! IR to TVMScript text. Printing is canonical and total: ill-formed IR prints too.

mod attr;
mod block;
mod doc;
mod names;
mod prim;
mod relax;
pub(super) mod rust;
mod sinfo;
mod tir;

use super::Dialect;
use crate::constant::Constant;
use crate::dtype::DType;
use crate::module::{Func, IRModule};
use crate::name::Name;
use crate::prim::{PrimExpr, Var};
use crate::relax::{self as rx, StructInfo};
use names::Names;
use std::collections::BTreeSet;

/// A line at the head of a function.
#[derive(Clone, PartialEq, Debug)]
enum Declared {
    /// `n = T.int64()`: a variable used without a definition.
    Var(Name, DType),
    /// `cls = Module`
    Module,
}

impl Declared {
    /// The name of a variable.
    fn var(self) -> Option<Name> {
        match self {
            Declared::Var(name, _) => Some(name),
            Declared::Module => None,
        }
    }
}

/// State of printing one text.
pub(super) struct Printer {
    dialect: Dialect,
    lines: Vec<String>,
    indent: usize,
    names: Names,
    /// Type of integers that need no `T.int64(…)`.
    literal: DType,
    /// Frame of the function being printed.
    function_frame: usize,
    /// What the function must declare, in order of first use.
    undeclared: Vec<Declared>,
    /// Symbolic variables that today's dialect declares before the module.
    type_vars: Vec<Name>,
    in_signature: bool,
    /// Symbolic variables of the signature being printed.
    func_vars: Vec<Var>,
    /// Loops around, with their domains.
    open_loops: Vec<(Var, PrimExpr, PrimExpr)>,
    /// Variables that the Relax function reads.
    used: BTreeSet<rx::Var>,
    constants: Vec<Constant>,
}

impl Printer {
    fn new(dialect: Dialect) -> Printer {
        Printer {
            dialect,
            lines: Vec::new(),
            indent: 0,
            names: Names::default(),
            literal: DType::I32,
            function_frame: 0,
            undeclared: Vec::new(),
            type_vars: Vec::new(),
            in_signature: false,
            func_vars: Vec::new(),
            open_loops: Vec::new(),
            used: BTreeSet::new(),
            constants: Vec::new(),
        }
    }

    fn line(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        self.lines.push(if text.is_empty() { String::new() } else { format!("{}{text}", "    ".repeat(self.indent)) });
    }

    /// The lines that `f` prints, taken out.
    fn captured(&mut self, f: impl FnOnce(&mut Self)) -> Vec<String> {
        let outer = std::mem::take(&mut self.lines);
        f(self);
        std::mem::replace(&mut self.lines, outer)
    }

    fn func(&mut self, name: &str, func: &Func) {
        match func {
            Func::Relax(f) => self.function(name, f, false),
            Func::Prim(f) => self.prim_func(name, f),
            Func::Extern(symbol) => self.line(format!("{name} = R.ExternFunc({})", doc::quoted(symbol))),
        }
    }

    /// The text: imports as comments, declarations, the lines.
    fn finish(self, module: bool) -> String {
        let used = |prefix: &str| {
            self.lines.iter().any(|l| {
                l.match_indices(prefix)
                    .any(|(i, _)| !l[..i].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.'))
            })
        };
        let mut head = Vec::new();
        if !self.type_vars.is_empty() {
            head.push("# from typing import TypeVar".to_string());
        }
        if module {
            head.push("# from tvm.script import ir as I".into());
        }
        let today = self.dialect == Dialect::V0_27;
        if used("T.") {
            head.push(format!("# from tvm.script import {} as T", if today { "tirx" } else { "tir" }));
            if today {
                head.push("# from tvm.tirx.layout import Axis".into());
            }
        }
        if used("R.") {
            head.push("# from tvm.script import relax as R".into());
        }
        head.push(String::new());
        let mut declared: Vec<&Name> = Vec::new();
        for n in &self.type_vars {
            if !declared.contains(&n) {
                declared.push(n);
                head.push(format!("{n} = TypeVar(\"{n}\")"));
            }
        }
        head.extend(self.lines);
        if !self.constants.is_empty() {
            head.push(String::new());
            head.push("# Metadata omitted. Use show_meta=True in script() method to show it.".into());
        }
        let mut text = head.join("\n");
        text.push('\n');
        text
    }
}

/// The text of a module, with a newline at the end. PrimFuncs come before Relax functions, each sorted by name.
pub fn print_module(module: &IRModule, dialect: Dialect) -> String {
    print_with_constants(module, dialect).0
}

/// The text of a module, and what `metadata["relax.expr.Constant"][i]` stands for in it.
pub fn print_with_constants(module: &IRModule, dialect: Dialect) -> (String, Vec<Constant>) {
    let mut p = Printer::new(dialect);
    p.line("@I.ir_module");
    p.line("class Module:");
    p.indent = 1;
    if !module.attrs.is_empty() {
        let attrs = p.attrs(&module.attrs);
        p.line(format!("I.module_attrs({attrs})"));
    }
    if module.funcs.is_empty() && module.attrs.is_empty() {
        p.line("pass");
    }
    let rank = |f: &Func| match f {
        Func::Prim(_) => 0,
        Func::Extern(_) => 1,
        Func::Relax(_) => 2,
    };
    let mut funcs: Vec<(&Name, &Func)> = module.funcs.iter().collect();
    funcs.sort_by_key(|(_, f)| rank(f));
    for (i, (name, f)) in funcs.into_iter().enumerate() {
        if i > 0 {
            p.line("");
        }
        p.func(name, f);
    }
    let constants = p.constants.clone();
    (p.finish(true), constants)
}

/// The text of one function under a name.
pub fn print_func(name: &str, func: &Func, dialect: Dialect) -> String {
    let mut p = Printer::new(dialect);
    p.func(name, func);
    p.finish(false)
}

/// The text of a scalar expression, as in a PrimFunc; free variables print by name.
pub fn print_prim_expr(e: &PrimExpr, dialect: Dialect) -> String {
    Printer::new(dialect).prim(e)
}

/// The text of struct info, as in a Relax function; free variables print by name.
pub fn print_struct_info(s: &StructInfo, dialect: Dialect) -> String {
    let mut p = Printer::new(dialect);
    p.literal = DType::I64;
    p.sinfo(s)
}
