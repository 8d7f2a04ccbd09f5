//! Relax functions, bindings and leaves.

use super::doc::{Doc, float, quoted, tuple};
use super::{Declared, Printer};
use crate::attrs::Attrs;
use crate::constant::Constant;
use crate::dtype::DType;
use crate::prim::PrimKind;
use crate::relax::{Binding, Block, Body, Call, CallTir, Expr, Function, If, Leaf, Loop, StructInfo, Var, leaf_vars};
use crate::syntax::Dialect;
use crate::syntax::literal::{Number, decode};
use std::collections::BTreeSet;

impl Printer {
    /// `X.func_attr({…})`, without the symbol that the name implies.
    pub(super) fn func_attrs(&mut self, prefix: &str, name: &str, attrs: &Attrs) {
        let mut attrs = attrs.clone();
        if attrs.get("global_symbol").and_then(|v| v.as_str()) == Some(name) {
            attrs.remove("global_symbol");
        }
        if !attrs.is_empty() {
            let text = self.attrs(&attrs);
            self.line(format!("{prefix}.func_attr({text})"));
        }
    }

    /// A function with its decorator. A local one has no symbol and is not marked private.
    pub(super) fn function(&mut self, name: &str, f: &Function, local: bool) {
        self.literal = DType::I64;
        let outer = self.function_frame;
        let outer_declared = std::mem::take(&mut self.undeclared);
        self.names.push();
        self.function_frame = self.names.depth() - 1;
        self.in_signature = true;
        let mut params = Vec::new();
        for p in &f.params {
            let info = self.sinfo(p.info());
            let name = self.names.define_relax(p);
            params.push(format!("{name}: {info}"));
        }
        let ret = self.sinfo(&f.ret);
        self.in_signature = false;
        self.func_vars.clear();
        if self.dialect == Dialect::V0_27 {
            let mut names: Vec<_> =
                std::mem::take(&mut self.undeclared).into_iter().filter_map(Declared::var).collect();
            names.sort_unstable();
            self.type_vars.extend(names);
        }
        let outer_used = std::mem::replace(&mut self.used, used_vars(&f.body));
        let mut flags = Vec::new();
        if !f.pure {
            flags.push("pure=False");
        }
        if !local && f.is_private() {
            flags.push("private=True");
        }
        let flags = if flags.is_empty() { String::new() } else { format!("({})", flags.join(", ")) };
        self.line(format!("@R.function{flags}"));
        self.line(format!("def {name}({}) -> {ret}:", params.join(", ")));
        self.indent += 1;
        self.declare();
        let body = self.captured(|p| {
            p.body(&f.body);
            let result = p.leaf(&f.body.result);
            p.line(format!("return {result}"));
        });
        self.func_attrs("R", name, &f.attrs);
        let module = self.undeclared.contains(&Declared::Module);
        if local {
            self.undeclared.retain(|d| *d != Declared::Module);
        }
        self.declare();
        self.undeclared = outer_declared;
        if local && module {
            self.use_module();
        }
        self.lines.extend(body);
        self.indent -= 1;
        self.names.pop();
        self.function_frame = outer;
        self.used = outer_used;
    }

    /// Declares the symbolic variables met since the last call.
    fn declare(&mut self) {
        for d in std::mem::take(&mut self.undeclared) {
            match d {
                Declared::Var(name, dtype) => self.line(format!("{name} = T.{dtype}()")),
                Declared::Module => self.line("cls = Module"),
            }
        }
    }

    /// The function names others of the module.
    fn use_module(&mut self) {
        if !self.undeclared.contains(&Declared::Module) {
            self.undeclared.push(Declared::Module);
        }
    }

    fn body(&mut self, body: &Body) {
        body.blocks.iter().for_each(|b| self.block_of(b));
    }

    fn block_of(&mut self, b: &Block) {
        match b {
            Block::Plain(bindings) => bindings.iter().for_each(|b| self.binding(b)),
            Block::Dataflow { bindings, outputs } => {
                self.line("with R.dataflow():");
                self.indent += 1;
                bindings.iter().for_each(|b| self.binding(b));
                let names: Vec<String> = outputs.iter().map(|v| self.relax_var(v)).collect();
                self.line(format!("R.output({})", names.join(", ")));
                self.indent -= 1;
            }
        }
    }

    fn relax_var(&mut self, v: &Var) -> String {
        match self.names.relax(v) {
            Some(n) => n.to_string(),
            None => self.names.define_relax(v).to_string(),
        }
    }

    fn binding(&mut self, b: &Binding) {
        match &b.value {
            Expr::If(i) => return self.if_binding(b, i),
            Expr::Function(f) => {
                let name = self.names.define_relax(&b.var);
                self.function(&name, f, true);
                return self.line("");
            }
            _ => {}
        }
        let value = self.value(&b.value);
        let call = !matches!(b.value, Expr::Leaf(_) | Expr::Tuple(_) | Expr::TupleGetItem(..) | Expr::MatchCast(..));
        if call && *b.var.info() == StructInfo::unit() && !self.used.contains(&b.var) {
            return self.line(value);
        }
        let hide = match &b.value {
            Expr::CallTir(c) => c.inplace.is_empty() && c.out == *b.var.info(),
            Expr::CallDps { out, .. } => out == b.var.info(),
            Expr::Loop(l) => *b.var.info() == StructInfo::Tuple(l.out.clone()),
            _ => false,
        };
        let annotation = if hide { String::new() } else { format!(": {}", self.sinfo(b.var.info())) };
        let name = self.names.define_relax(&b.var);
        self.line(format!("{name}{annotation} = {value}"));
    }

    fn if_binding(&mut self, b: &Binding, i: &If) {
        let cond = self.leaf(&i.cond);
        let name = {
            let frame = self.names.depth() - 1;
            self.names.unique(b.var.name(), frame)
        };
        self.line(format!("if {cond}:"));
        self.branch(&name, b.var.info(), &i.then);
        self.line("else:");
        self.branch(&name, b.var.info(), &i.otherwise);
        self.names.alias_relax(&b.var, &name);
    }

    fn branch(&mut self, name: &str, info: &StructInfo, body: &Body) {
        self.indent += 1;
        self.names.push();
        self.body(body);
        let result = self.leaf(&body.result);
        let info = body.result.info().unwrap_or_else(|| info.clone());
        let info = self.sinfo(&info);
        self.line(format!("{name}: {info} = {result}"));
        self.names.pop();
        self.indent -= 1;
    }

    fn leaves(&mut self, list: &[Leaf]) -> Vec<String> {
        list.iter().map(|l| self.leaf(l)).collect()
    }

    fn leaf(&mut self, l: &Leaf) -> String {
        match l {
            Leaf::Var(v) => self.relax_var(v),
            Leaf::Const(c) => self.constant(c),
            Leaf::Global(g) => {
                self.use_module();
                format!("cls.{}", g.0)
            }
            Leaf::Prim(e) => {
                let text = match (self.dialect, e.kind()) {
                    (Dialect::V0_27, PrimKind::Int(v)) if e.dtype().is_bool() => {
                        if *v != 0 { "True" } else { "False" }.into()
                    }
                    _ => self.prim(e),
                };
                if self.dialect == Dialect::V0_27 { text } else { format!("R.prim_value({text})") }
            }
            Leaf::Shape(dims) => format!("R.shape([{}])", self.shape(dims).join(", ")),
            Leaf::Str(s) => format!("R.str({})", quoted(s)),
            Leaf::DType(d) => format!("R.dtype(\"{d}\")"),
            Leaf::Tuple(items) if items.is_empty() => "R.tuple()".into(),
            Leaf::Tuple(items) => {
                let docs = self.leaves(items);
                tuple(&docs)
            }
            Leaf::Absent => "None".into(),
        }
    }

    fn constant(&mut self, c: &Constant) -> String {
        let scalar = if c.shape().is_empty() { decode(c.dtype(), c.data()) } else { None };
        if let Some(n) = scalar {
            let digits = match n {
                Number::Int(v) => v.to_string(),
                Number::Float(v) => float(v),
                Number::Bool(b) => if b { "True" } else { "False" }.into(),
            };
            return format!("R.const({digits}, \"{}\")", c.dtype());
        }
        let index = match self.constants.iter().position(|x| x.same_as(c)) {
            Some(i) => i,
            None => {
                self.constants.push(c.clone());
                self.constants.len() - 1
            }
        };
        let key = if self.dialect == Dialect::V0_27 { "ir.GenericConst" } else { "relax.expr.Constant" };
        format!("metadata[\"{key}\"][{index}]")
    }

    fn value(&mut self, e: &Expr) -> String {
        match e {
            Expr::Leaf(Leaf::Tuple(items)) | Expr::Tuple(items) if items.len() > 1 => self.leaves(items).join(", "),
            Expr::Leaf(l) => self.leaf(l),
            Expr::Call(c) => self.call(c),
            Expr::CallTir(c) => self.call_tir(c),
            Expr::CallDps { symbol, args, out } => {
                let args = self.leaves(args);
                let out = self.out_info(out);
                format!("R.call_dps_packed({}, {}, {}={out})", quoted(symbol), dps_args(&args), self.out_word())
            }
            Expr::CallFunc { callee, args } => {
                let callee = self.leaf(callee);
                let args = self.leaves(args);
                Doc::call(&callee, &args).text
            }
            Expr::CallPacked { symbol, args, ret, pure } => {
                let mut docs = vec![quoted(symbol)];
                docs.extend(self.leaves(args));
                let infos: Vec<String> = match ret {
                    StructInfo::Tuple(fields) if fields.len() > 1 => fields.iter().map(|f| self.sinfo(f)).collect(),
                    other => vec![self.sinfo(other)],
                };
                let word = if self.dialect == Dialect::V0_27 { "ty_args" } else { "sinfo_args" };
                docs.push(format!("{word}={}", tuple(&infos)));
                Doc::call(if *pure { "R.call_pure_packed" } else { "R.call_packed" }, &docs).text
            }
            Expr::Tuple(items) if items.is_empty() => "R.tuple()".into(),
            Expr::Tuple(items) => {
                let docs = self.leaves(items);
                tuple(&docs)
            }
            Expr::TupleGetItem(l, i) => format!("{}[{i}]", self.leaf(l)),
            Expr::MatchCast(l, info) => {
                let (leaf, info) = (self.leaf(l), self.sinfo(info));
                format!("R.match_cast({leaf}, {info})")
            }
            Expr::Loop(l) => self.loop_call(l),
            // Bindings of these have a form of their own; see `binding`.
            Expr::If(i) => format!("R.tuple({})", self.leaf(&i.cond)),
            Expr::Function(_) => "R.tuple()".into(),
        }
    }

    fn out_word(&self) -> &'static str {
        if self.dialect == Dialect::V0_27 { "out_ty" } else { "out_sinfo" }
    }

    fn call_tir(&mut self, c: &CallTir) -> String {
        self.use_module();
        let args = self.leaves(&c.args);
        let out = self.out_info(&c.out);
        let word = if c.inplace.is_empty() { "R.call_tir" } else { "R.call_tir_inplace" };
        let mut text = format!("{word}(cls.{}, {}, {}={out}", c.func.0, dps_args(&args), self.out_word());
        if !c.inplace.is_empty() {
            let indices: Vec<String> = c.inplace.iter().map(i64::to_string).collect();
            text.push_str(&format!(", inplace_indices=[{}]", indices.join(", ")));
        }
        if !c.tir_vars.is_empty() {
            let dims = self.shape(&c.tir_vars);
            text.push_str(&format!(", tir_vars=R.shape([{}])", dims.join(", ")));
        }
        text + ")"
    }

    fn loop_call(&mut self, l: &Loop) -> String {
        let body = self.leaf(&l.body);
        let (captured, carried) = (self.leaves(&l.captured), self.leaves(&l.carried));
        let mut text = format!("R.while_loop({body}, {}, {}", dps_args(&captured), dps_args(&carried));
        for (word, leaf) in [("trip_count", &l.trip_count), ("cond", &l.cond)] {
            if *leaf != Leaf::Absent {
                text.push_str(&format!(", {word}={}", self.leaf(leaf)));
            }
        }
        let infos: Vec<String> = l.out.iter().map(|s| self.sinfo(s)).collect();
        text + &format!(", {}=[{}])", self.out_word(), infos.join(", "))
    }

    fn call(&mut self, c: &Call) -> String {
        let def = c.op.def();
        let mut args = c.args.as_slice();
        while let [rest @ .., Leaf::Absent] = args {
            args = rest;
        }
        let mut docs = self.leaves(args);
        for (d, v) in def.attrs.iter().zip(&c.attrs) {
            docs.push(format!("{}={}", d.name, self.attr(v)));
        }
        Doc::call(&format!("R.{}", def.name), &docs).text
    }
}

/// Inputs of a call in destination-passing style.
fn dps_args(args: &[String]) -> String {
    if args.is_empty() { "R.tuple()".into() } else { tuple(args) }
}

/// The variables that a body reads.
fn used_vars(body: &Body) -> BTreeSet<Var> {
    let mut used: BTreeSet<Var> = body.bindings().flat_map(|b| leaf_vars(&b.value)).collect();
    for b in &body.blocks {
        if let Block::Dataflow { outputs, .. } = b {
            used.extend(outputs.iter().cloned());
        }
    }
    used.extend(leaf_vars(&Expr::Leaf(body.result.clone())));
    used
}
