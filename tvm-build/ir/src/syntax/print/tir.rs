//! PrimFuncs and their statements.

use super::doc::{quoted, tuple};
use super::{Declared, Printer};
use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{Buffer, PrimExpr, PrimKind, Scope, Var, free_vars};
use crate::syntax::Dialect;
use crate::tir::{Block, For, ForKind, LetStmt, Param, PrimFunc, Stmt, visit_stmt};

/// Whether a buffer can stand in the signature: compact, in main memory, of a fixed shape.
fn is_simple(b: &Buffer) -> bool {
    b.strides.is_empty()
        && b.elem_offset.as_ref().is_none_or(|o| o.is_int(0))
        && b.scope == Scope::Global
        && b.shape.iter().all(|d| free_vars(d).is_empty())
}

impl Printer {
    /// A function with its decorator.
    pub(super) fn prim_func(&mut self, name: &str, f: &PrimFunc) {
        self.literal = DType::I32;
        self.names.push();
        self.function_frame = self.names.depth() - 1;
        let mut flags = Vec::new();
        if f.is_private() {
            flags.push("private=True");
        }
        if self.dialect == Dialect::V0_27 {
            flags.push("s_tir=True");
        }
        let flags = if flags.is_empty() { String::new() } else { format!("({})", flags.join(", ")) };
        let mut matched = Vec::new();
        let (mut params, mut printed) = (Vec::new(), Vec::new());
        // Scalars first: shapes may name them, wherever they stand.
        if self.dialect == Dialect::V0_27 {
            for p in &f.params {
                if let Param::Scalar(v) = p {
                    self.names.define_prim(v);
                }
            }
        }
        for p in &f.params {
            params.push(match p {
                Param::Scalar(v) => {
                    let name = match self.names.prim(v) {
                        Some(n) => n.clone(),
                        None => self.names.define_prim(v),
                    };
                    printed.push(v.clone());
                    format!("{name}: T.{}", v.dtype())
                }
                Param::Buffer(b) if is_simple(b) || self.dialect == Dialect::V0_27 => {
                    let name = self.names.define_buffer(b);
                    let shape = self.signature_dims(&b.shape, &printed);
                    let rest = self.buffer_keywords(b);
                    format!("{name}: T.Buffer({shape}, \"{}\"{rest})", b.dtype)
                }
                Param::Buffer(b) => {
                    let frame = self.function_frame;
                    let handle = self.names.unique(&format!("var_{}", b.name), frame);
                    matched.push((handle.clone(), b.clone()));
                    format!("{handle}: T.handle")
                }
            });
        }
        self.line(format!("@T.prim_func{flags}"));
        self.line(format!("def {name}({}):", params.join(", ")));
        self.indent += 1;
        let body = self.captured(|p| p.prim_func_body(name, f, &matched));
        let declared = std::mem::take(&mut self.undeclared);
        let mut type_vars = Vec::new();
        for d in declared {
            let Declared::Var(n, dtype) = d else { continue };
            if self.dialect == Dialect::V0_27 && dtype == DType::I64 {
                type_vars.push(n);
            } else {
                self.line(format!("{n} = T.{dtype}()"));
            }
        }
        type_vars.sort_unstable();
        self.type_vars.extend(type_vars);
        if body.is_empty() {
            self.line("pass");
        }
        self.lines.extend(body);
        self.indent -= 1;
        self.names.pop();
    }

    fn prim_func_body(&mut self, name: &str, f: &PrimFunc, matched: &[(Name, Buffer)]) {
        self.func_attrs("T", name, &f.attrs);
        for (handle, b) in matched {
            let fresh = self.new_shape_vars(b);
            match fresh.as_slice() {
                [] => {}
                [v] => {
                    let n = self.names.define_prim(v);
                    self.line(format!("{n} = T.{}()", v.dtype()));
                }
                many => {
                    let names: Vec<String> = many.iter().map(|v| self.names.define_prim(v).to_string()).collect();
                    let types: Vec<String> = many.iter().map(|v| format!("T.{}()", v.dtype())).collect();
                    self.line(format!("{} = {}", names.join(", "), types.join(", ")));
                }
            }
            let name = self.names.define_buffer(b);
            let args = self.buffer_args(b);
            self.line(format!("{name} = T.match_buffer({handle}, {args})"));
        }
        match implicit_root(f) {
            Some(root) => {
                let word = self.block_word();
                self.line(format!("# with T.{word}(\"root\"):"));
                self.allocs(&root.allocs);
                self.stmt(&root.body);
            }
            None => self.stmt(&f.body),
        }
    }

    /// The shape of a buffer in a signature: a variable that Python does not know there stands in quotes.
    fn signature_dims(&mut self, dims: &[PrimExpr], printed: &[Var]) -> String {
        let mut docs = Vec::new();
        for d in dims {
            let unknown = d.as_var().is_some_and(|v| match self.names.prim(v) {
                Some(n) => !printed.contains(v) && !self.undeclared.contains(&Declared::Var(n.clone(), v.dtype())),
                None => v.dtype() != DType::I64,
            });
            let text = self.prim(d);
            docs.push(if unknown { quoted(&text) } else { text });
        }
        tuple(&docs)
    }

    /// Variables of a buffer's shape and strides that nothing defines yet, in order.
    fn new_shape_vars(&mut self, b: &Buffer) -> Vec<Var> {
        let mut out: Vec<Var> = Vec::new();
        for e in b.shape.iter().chain(b.strides.iter().filter(|s| !quotable(s))).chain(&b.elem_offset) {
            for v in free_vars(e) {
                if self.names.prim(&v).is_none() && !out.contains(&v) {
                    out.push(v);
                }
            }
        }
        out
    }

    pub(super) fn block_word(&self) -> &'static str {
        if self.dialect == Dialect::V0_27 { "sblock" } else { "block" }
    }

    fn buffer_keywords(&mut self, b: &Buffer) -> String {
        let mut out = String::new();
        if !b.strides.is_empty() {
            let mut docs = Vec::new();
            for s in &b.strides {
                let unknown = s.as_var().filter(|v| quotable(s) && self.names.prim(v).is_none());
                docs.push(match unknown {
                    Some(v) => {
                        let frame = self.function_frame;
                        quoted(&self.names.define_prim_in(v, frame))
                    }
                    None => self.prim(s),
                });
            }
            out.push_str(&format!(", strides={}", tuple(&docs)));
        }
        if let Some(o) = b.elem_offset.as_ref().filter(|o| !o.is_int(0)) {
            out.push_str(&format!(", elem_offset={}", self.prim(o)));
        }
        if b.scope != Scope::Global {
            out.push_str(&format!(", scope={}", quoted(b.scope.as_str())));
        }
        out
    }

    fn buffer_args(&mut self, b: &Buffer) -> String {
        let shape = self.dims(&b.shape);
        let dtype = if b.dtype == DType::F32 { String::new() } else { format!(", \"{}\"", b.dtype) };
        format!("{shape}{dtype}{}", self.buffer_keywords(b))
    }

    pub(super) fn allocs(&mut self, allocs: &[Buffer]) {
        let word = if self.dialect == Dialect::V0_27 { "sblock_alloc_buffer" } else { "alloc_buffer" };
        for b in allocs {
            let name = self.names.define_buffer(b);
            let args = self.buffer_args(b);
            self.line(format!("{name} = T.{word}({args})"));
        }
    }

    /// A statement in a frame of its own, indented.
    pub(super) fn nested(&mut self, s: &Stmt) {
        self.indent += 1;
        self.names.push();
        let before = self.lines.len();
        self.stmt(s);
        if self.lines.len() == before {
            self.line("pass");
        }
        self.names.pop();
        self.indent -= 1;
    }

    pub(super) fn stmt(&mut self, s: &Stmt) {
        self.stmt_at(s, true);
    }

    /// `last`: nothing follows in the enclosing list, so that a let needs no block of its own.
    fn stmt_at(&mut self, s: &Stmt, last: bool) {
        match s {
            Stmt::Seq(stmts) => {
                for (i, s) in stmts.iter().enumerate() {
                    self.stmt_at(s, last && i + 1 == stmts.len());
                }
            }
            Stmt::For(f) => self.for_loop(f),
            Stmt::Block(b) => self.block(b),
            Stmt::Store(s) => {
                let value = self.prim(&s.value);
                let target = self.element(&s.buffer, &s.indices, true);
                self.line(format!("{target} = {value}"));
            }
            Stmt::Let(l) => self.let_stmt(l, last),
            Stmt::If(i) => {
                let cond = self.prim(&i.cond);
                self.line(format!("if {cond}:"));
                self.nested(&i.then);
                if let Some(e) = &i.otherwise {
                    self.line("else:");
                    self.nested(e);
                }
            }
            Stmt::While(w) => {
                let cond = self.prim(&w.cond);
                self.line(format!("while {cond}:"));
                self.nested(&w.body);
            }
            Stmt::Assert(a) => {
                let cond = self.prim(&a.cond);
                let message = quoted(&a.message);
                self.line(match self.dialect {
                    Dialect::Tutorial => format!("assert {cond}, {message}"),
                    Dialect::V0_27 => format!("assert {cond}, (\"RuntimeError\", [{message}])"),
                });
            }
            Stmt::Evaluate(e) => {
                let text = self.prim(e);
                // An operator is a call too, but not one in the text.
                let call = matches!(e.kind(), PrimKind::Call(..) | PrimKind::CallExtern(..)) && text.starts_with("T.");
                self.line(if call { text } else { format!("T.evaluate({text})") });
            }
        }
    }

    fn let_stmt(&mut self, l: &LetStmt, last: bool) {
        let value = self.prim(&l.value);
        let dtype = l.var.dtype();
        match self.dialect {
            Dialect::Tutorial if !last => {
                self.names.push();
                let name = self.names.define_prim(&l.var);
                self.line(format!("with T.LetStmt({value}) as {name}:"));
                self.nested(&l.body);
                self.names.pop();
            }
            dialect => {
                let name = self.names.define_prim(&l.var);
                self.line(match dialect {
                    Dialect::Tutorial => format!("{name}: T.{dtype} = {value}"),
                    Dialect::V0_27 => format!("{name}: T.let[T.{dtype}] = {value}"),
                });
                self.stmt_at(&l.body, last);
            }
        }
    }

    fn for_loop(&mut self, f: &For) {
        let mut grid: Vec<&For> = Vec::new();
        let mut next = Some(f);
        while let Some(l) = next {
            let depends = free_vars(&l.extent).iter().any(|v| grid.iter().any(|g| g.var == *v));
            if l.kind != ForKind::Serial || !l.min.is_int(0) || !l.annotations.is_empty() || depends {
                break;
            }
            grid.push(l);
            next = match &l.body {
                Stmt::For(inner) => Some(inner),
                _ => None,
            };
        }
        self.names.push();
        let open = self.open_loops.len();
        let body = if grid.len() > 1 {
            let extents: Vec<String> = grid.iter().map(|l| self.prim(&l.extent)).collect();
            let vars: Vec<String> = grid.iter().map(|l| self.names.define_prim(&l.var).to_string()).collect();
            self.line(format!("for {} in T.grid({}):", vars.join(", "), extents.join(", ")));
            for l in &grid {
                self.open_loops.push((l.var.clone(), l.min.clone(), l.extent.clone()));
            }
            grid.last().map_or(&f.body, |l| &l.body)
        } else {
            let head = self.loop_head(f);
            let var = self.names.define_prim(&f.var);
            self.line(format!("for {var} in {head}:"));
            self.open_loops.push((f.var.clone(), f.min.clone(), f.extent.clone()));
            &f.body
        };
        self.nested(body);
        self.open_loops.truncate(open);
        self.names.pop();
    }

    fn loop_head(&mut self, f: &For) -> String {
        let mut args = Vec::new();
        if f.min.is_int(0) {
            args.push(self.prim(&f.extent));
        } else {
            let stop = f.min.clone() + f.extent.clone();
            args.push(self.prim(&f.min));
            args.push(self.prim(&stop));
        }
        let word = match &f.kind {
            ForKind::Serial if f.annotations.is_empty() => "range",
            ForKind::Serial => "T.serial",
            ForKind::Parallel => "T.parallel",
            ForKind::Vectorized => "T.vectorized",
            ForKind::Unrolled => "T.unroll",
            ForKind::ThreadBinding(axis) => {
                args.push(format!("thread={}", quoted(axis)));
                "T.thread_binding"
            }
        };
        if !f.annotations.is_empty() {
            args.push(format!("annotations={}", self.attrs(&f.annotations)));
        }
        format!("{word}({})", args.join(", "))
    }
}

/// Whether a stride can be written as a name in quotes, which declares an `int32` variable.
fn quotable(stride: &PrimExpr) -> bool {
    stride.as_var().is_some_and(|v| v.dtype() == DType::I32)
}

/// The root block that is printed as a comment.
fn implicit_root(f: &PrimFunc) -> Option<&Block> {
    let root = f.root().filter(|b| b.name == "root" && b.predicate.is_int(1))?;
    if !root.annotations.is_empty() || !root.reads.is_empty() || !root.writes.is_empty() || root.init.is_some() {
        return None;
    }
    let holds_blocks = match &root.body {
        Stmt::Block(b) => !b.iters.is_empty(),
        body => {
            let mut found = false;
            visit_stmt(body, &mut |s| found |= matches!(s, Stmt::Block(_)));
            found
        }
    };
    (!root.allocs.is_empty() || holds_blocks).then_some(root)
}

/// `(min, min + extent)`, or the extent alone when `min` is zero.
pub(super) fn domain(p: &mut Printer, min: &PrimExpr, extent: &PrimExpr) -> String {
    if min.is_int(0) {
        return p.prim(extent);
    }
    let stop = min.clone() + extent.clone();
    let docs = [p.prim(min), p.prim(&stop)];
    tuple(&docs)
}
