//! The one printer of statements of C-like languages; expressions are in `expr`.

use super::bounds::{Bounds, Interval};
use super::ctype::ctype;
use super::dialect::Dialect;
use super::expr::{Place, Prec, Text};
use super::prelude;
use super::visit::Uses;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::lowered::{Expr, Kernel, Local, LoopKind, Param, Stmt};
use tvm_ir::name::{Name, NameSupply};
use tvm_ir::span::Span;

/// Words that no variable of a kernel may be named.
const RESERVED: &[&str] = &[
    "args", "asm", "auto", "break", "case", "char", "const", "continue", "ctx", "data", "default", "dims", "do",
    "double", "else", "enum", "extern", "float", "for", "goto", "if", "inline", "int", "int16_t", "int32_t", "int64_t",
    "int8_t", "long", "main", "register", "restrict", "return", "self", "short", "signed", "size_t", "sizeof",
    "static", "status", "struct", "switch", "task", "typedef", "typeof", "uint16_t", "uint32_t", "uint64_t", "uint8_t",
    "union", "unix", "linux", "unsigned", "void", "volatile", "while",
];

/// What is known of a variable of the kernel.
#[derive(Clone)]
struct VarInfo {
    /// Its name in the text.
    text: String,
    /// Type of the value, or of the elements of a pointer or array.
    dtype: DType,
    kind: VarKind,
}

#[derive(Clone, Copy, PartialEq)]
enum VarKind {
    Value,
    Pointer { written: bool, noalias: bool },
}

/// Prints one kernel.
pub(crate) struct Printer<'a> {
    dialect: &'a dyn Dialect,
    symbol: &'a str,
    /// C functions called, with their prototypes.
    externs: &'a mut BTreeMap<Name, String>,
    /// Added to the codes of assertions.
    message_base: u32,
    vars: BTreeMap<Local, VarInfo>,
    names: NameSupply,
    pub(crate) bounds: Bounds,
    uses: Uses,
    out: String,
    indent: usize,
    /// Task functions of parallel loops, printed before the kernel.
    tasks: String,
    task_count: usize,
    in_task: bool,
}

/// Text of a kernel: its task functions and the function itself, under `symbol`. Codes of assertions are `message_base`
/// more than the kernel's own.
pub(crate) fn print_kernel(
    kernel: &Kernel,
    symbol: &str,
    dialect: &dyn Dialect,
    message_base: u32,
    externs: &mut BTreeMap<Name, String>,
) -> Result<String, Diag> {
    let mut names = NameSupply::new();
    for word in RESERVED.iter().copied().chain(prelude::libm()) {
        names.reserve(word);
        names.reserve(format!("{word}f"));
    }
    names.reserve(symbol);
    let mut p = Printer {
        dialect,
        symbol,
        externs,
        message_base,
        vars: BTreeMap::new(),
        names,
        bounds: Bounds::default(),
        uses: Uses::of(&kernel.body),
        out: String::new(),
        indent: 1,
        tasks: String::new(),
        task_count: 0,
        in_task: false,
    };
    p.kernel(kernel).map_err(|d| d.note(format!("in kernel `{}`, from {}", kernel.name, kernel.origin)))
}

impl Printer<'_> {
    /// The name of a variable in the text.
    pub(crate) fn name(&self, var: &Local) -> Result<&str, Diag> {
        self.info(var).map(|i| i.text.as_str())
    }

    /// The element type of a pointer or array.
    pub(crate) fn element(&self, var: &Local) -> Result<DType, Diag> {
        self.info(var).map(|i| i.dtype)
    }

    fn info(&self, var: &Local) -> Result<&VarInfo, Diag> {
        self.vars.get(var).ok_or_else(|| Diag::error(Span::NONE, format!("variable `{}` is not declared", var.0)))
    }

    fn declare(&mut self, var: &Local, dtype: DType, kind: VarKind) -> String {
        let mut hint: String = var.0.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if hint.is_empty() || hint.starts_with(|c: char| c.is_ascii_digit() || c == '_') || hint.starts_with("tvm_") {
            hint.insert(0, 'v');
        }
        let text = self.names.fresh_underscore(&hint).to_string();
        self.vars.insert(var.clone(), VarInfo { text: text.clone(), dtype, kind });
        text
    }

    fn line(&mut self, s: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(s);
        self.out.push('\n');
    }

    fn kernel(&mut self, kernel: &Kernel) -> Result<String, Diag> {
        let (mut pointers, mut scalars) = (0, 0);
        for p in &kernel.params {
            match p {
                Param::Pointer { var, dtype, written, noalias } => {
                    let kind = VarKind::Pointer { written: *written, noalias: *noalias };
                    self.declare(var, *dtype, kind);
                    if self.uses.named.contains(var) {
                        let line = self.pointer(var, &format!("args[{pointers}]"))?;
                        self.line(&line);
                    }
                    pointers += 1;
                }
                Param::Scalar { var, dtype } => {
                    let name = self.declare(var, *dtype, VarKind::Value);
                    let t = ctype(*dtype)?;
                    let from = format!("dims[{scalars}]");
                    let value = if dtype.is_float() {
                        prelude::scalar_cast(&format!("tvm_bits_i64_f64({from})"), DType::F64, *dtype)?
                    } else if *dtype == DType::I64 {
                        from
                    } else {
                        prelude::scalar_cast(&from, DType::I64, *dtype)?
                    };
                    if self.uses.named.contains(var) {
                        self.line(&format!("const {t} {name} = {value};"));
                    }
                    scalars += 1;
                }
            }
        }
        self.stmts(&kernel.body)?;
        let used = |word: &str| {
            let pattern = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
            self.out.split(pattern).any(|w| w == word)
        };
        let unused: Vec<&str> = ["args", "dims", "ctx"].into_iter().filter(|w| !used(w)).collect();
        for word in unused {
            self.line(&format!("(void){word};"));
        }
        self.line("return 0;");
        let mut text = std::mem::take(&mut self.tasks);
        let origin = if kernel.origin.is_empty() { kernel.name.as_str() } else { &kernel.origin };
        let _ = writeln!(text, "/* {} */", comment(origin));
        let qualifier = self.dialect.kernel_qualifier();
        let head = "(void *const *args, const int64_t *dims, const tvm_context *ctx)";
        let _ = writeln!(text, "{qualifier}int32_t {s}{head};", s = self.symbol);
        let _ = writeln!(text, "{qualifier}int32_t {s}{head}\n{{", s = self.symbol);
        text.push_str(&self.out);
        text.push_str("}\n");
        Ok(text)
    }

    /// Declaration of a pointer variable with an initial value.
    fn pointer(&self, var: &Local, value: &str) -> Result<String, Diag> {
        let info = self.info(var)?;
        let VarKind::Pointer { written, noalias } = info.kind else {
            return Err(Diag::error(Span::NONE, format!("`{}` is no pointer", var.0)));
        };
        let restrict = if noalias { self.dialect.restrict() } else { "" };
        let constant = if written { "" } else { "const " };
        Ok(format!("{constant}{} *{restrict}{} = {value};", ctype(info.dtype)?, info.text))
    }

    fn block(&mut self, head: &str, body: &[Stmt]) -> Result<(), Diag> {
        self.line(&format!("{head} {{"));
        self.indent += 1;
        self.stmts(body)?;
        self.indent -= 1;
        Ok(())
    }

    fn stmts(&mut self, stmts: &[Stmt]) -> Result<(), Diag> {
        stmts.iter().try_for_each(|s| self.stmt(s))
    }

    fn stmt(&mut self, s: &Stmt) -> Result<(), Diag> {
        match s {
            Stmt::For { var, dtype, min, extent, kind, body } => self.for_loop(var, *dtype, (min, extent), kind, body),
            Stmt::If { cond, then, otherwise } => {
                let cond = self.expr(cond, Place::Index)?.s;
                self.block(&format!("if ({cond})"), then)?;
                if !otherwise.is_empty() {
                    self.block("} else", otherwise)?;
                }
                self.line("}");
                Ok(())
            }
            Stmt::While { cond, body } => {
                let cond = self.expr(cond, Place::Value)?.s;
                self.block(&format!("while ({cond})"), body)?;
                self.line("}");
                Ok(())
            }
            Stmt::Let { var, value } => {
                let text = self.expr(value, Place::Index)?.s;
                if value.dtype.is_integer() {
                    let interval = self.bounds.interval(value);
                    self.bounds.bind(var, interval);
                }
                if !self.uses.named.contains(var) {
                    self.vars
                        .insert(var.clone(), VarInfo { text: String::new(), dtype: value.dtype, kind: VarKind::Value });
                    self.line(&format!("(void)({text});"));
                    return Ok(());
                }
                let name = self.declare(var, value.dtype, VarKind::Value);
                self.line(&format!("const {} {name} = {text};", ctype(value.dtype)?));
                Ok(())
            }
            Stmt::Array { var, dtype, len, space } => {
                let name = self.declare(var, *dtype, VarKind::Pointer { written: true, noalias: false });
                let space = self.dialect.space(*space)?;
                let bytes = dtype.bytes().saturating_mul(*len);
                let aligned = dtype.lanes == 1 && bytes >= 16 && self.dialect.has_vectors();
                let align = if aligned { " __attribute__((aligned(64)))" } else { "" };
                self.line(&format!("{space}{} {name}[{}]{align};", ctype(*dtype)?, len.max(&1)));
                if !self.uses.loaded.contains(var) {
                    self.line(&format!("(void){name};"));
                }
                Ok(())
            }
            Stmt::Workspace { var, dtype, offset } => self.workspace(var, *dtype, *offset),
            Stmt::Store { pointer, index, value, aligned } => {
                let value_text = self.expr(value, Place::Value)?.s;
                let at = self.expr(index, Place::Index)?.s;
                let (name, element) = (self.name(pointer)?.to_owned(), self.element(pointer)?);
                if element.lanes == value.dtype.lanes {
                    self.line(&format!("{name}[{at}] = {value_text};"));
                } else {
                    let mode = if *aligned { 'a' } else { 'u' };
                    self.line(&format!("*({}{mode} *)&{name}[{at}] = {value_text};", ctype(value.dtype)?));
                }
                Ok(())
            }
            Stmt::Assert { cond, code } => {
                let cond = self.expr(cond, Place::Value)?;
                let code = self.message_base + code;
                self.line(&format!("if (!{}) return {code};", cond.within(Prec::Atom)));
                Ok(())
            }
            Stmt::Evaluate(e) => {
                let text = self.expr(e, Place::Value)?.s;
                self.line(&format!("(void)({text});"));
                Ok(())
            }
            Stmt::Barrier(space) => {
                let text = self.dialect.barrier(*space)?;
                self.line(&text);
                Ok(())
            }
            Stmt::Comment(text) => {
                self.line(&format!("/* {} */", comment(text)));
                Ok(())
            }
        }
    }

    fn workspace(&mut self, var: &Local, dtype: DType, offset: u64) -> Result<(), Diag> {
        if self.in_task {
            return Err(Diag::error(
                Span::NONE,
                format!("`{}`: scratch memory allocated inside a parallel loop", var.0),
            )
            .help("allocate it outside of the loop, or make it small enough for the stack"));
        }
        let kind = VarKind::Pointer { written: true, noalias: true };
        let name = self.declare(var, dtype, kind);
        if !self.uses.named.contains(var) {
            return Ok(());
        }
        let t = ctype(dtype)?;
        let restrict = self.dialect.restrict();
        self.line(&format!("{t} *{restrict}{name} = ({t} *)(void *)((unsigned char *)ctx->workspace + {offset});"));
        Ok(())
    }

    fn for_loop(
        &mut self,
        var: &Local,
        dtype: DType,
        (min, extent): (&Expr, &Expr),
        kind: &LoopKind,
        body: &[Stmt],
    ) -> Result<(), Diag> {
        let range = self.bounds.loop_range(min, extent);
        if *kind == LoopKind::Parallel && self.dialect.has_tasks() && !self.in_task {
            return self.parallel(var, dtype, (min, extent), range, body);
        }
        let first = self.expr(min, Place::Index)?;
        let t = ctype(dtype)?;
        if let LoopKind::Thread(axis) = kind {
            let thread = self.dialect.thread_index(axis)?;
            let name = self.declare(var, dtype, VarKind::Value);
            self.bounds.bind(var, range);
            self.line(&format!("const {t} {name} = {} + ({t}){thread};", first.within(Prec::Add)));
            return self.stmts(body);
        }
        let end = self.end(min, extent)?;
        let name = self.declare(var, dtype, VarKind::Value);
        self.bounds.bind(var, range);
        if *kind == LoopKind::UnrollHint && !self.dialect.unroll_hint().is_empty() {
            let hint = self.dialect.unroll_hint().to_owned();
            self.line(&hint);
        }
        self.block(&format!("for ({t} {name} = {}; {name} < {end}; ++{name})", first.s), body)?;
        self.line("}");
        Ok(())
    }

    /// `min + extent`
    fn end(&mut self, min: &Expr, extent: &Expr) -> Result<String, Diag> {
        use tvm_ir::lowered::ExprKind::{Binary, Int};
        let end = match (&min.kind, &extent.kind) {
            (Int(0), _) => extent.clone(),
            (Int(a), Int(n)) => Expr { dtype: min.dtype, kind: Int(a.saturating_add(*n)) },
            _ => Expr {
                dtype: min.dtype,
                kind: Binary(tvm_ir::prim::BinOp::Add, Box::new(min.clone()), Box::new(extent.clone())),
            },
        };
        Ok(self.expr(&end, Place::Index)?.within(Prec::Add))
    }

    /// A loop whose iterations are tasks: a function of the task's number, and a struct of what it captures.
    fn parallel(
        &mut self,
        var: &Local,
        dtype: DType,
        (min, extent): (&Expr, &Expr),
        range: Interval,
        body: &[Stmt],
    ) -> Result<(), Diag> {
        let mut inner = Uses::of(body);
        inner.expr(min);
        let captured: BTreeSet<Local> = inner
            .named
            .iter()
            .filter(|v| *v != var && !inner.declared.contains(*v) && self.vars.contains_key(*v))
            .cloned()
            .collect();
        let task = format!("{}_task{}", self.symbol, self.task_count);
        self.task_count += 1;

        let mut text = format!("struct {task} {{\n");
        let mut values = Vec::new();
        let mut unpack = String::new();
        for v in &captured {
            let info = self.info(v)?.clone();
            let (t, name) = (ctype(info.dtype)?, &info.text);
            match info.kind {
                VarKind::Value => {
                    let _ = writeln!(text, "    {t} {name};");
                    let _ = writeln!(unpack, "    const {t} {name} = self->{name};");
                }
                VarKind::Pointer { written, .. } => {
                    let constant = if written { "" } else { "const " };
                    let _ = writeln!(text, "    {constant}{t} *{name};");
                    let _ = writeln!(unpack, "    {}", self.pointer(v, &format!("self->{name}"))?);
                }
            }
            values.push(name.clone());
        }
        if captured.is_empty() {
            text.push_str("    int unused;\n");
            values.push("0".to_owned());
        }
        text.push_str("};\n\n");

        let outer = std::mem::take(&mut self.out);
        let indent = std::mem::replace(&mut self.indent, 1);
        self.in_task = true;
        let first = self.expr(min, Place::Index)?;
        let name = self.declare(var, dtype, VarKind::Value);
        self.bounds.bind(var, range);
        let t = ctype(dtype)?;
        let index = if dtype == DType::I64 { "task".to_owned() } else { format!("({t})task") };
        let index = if first.s == "0" { index } else { format!("{} + {index}", first.within(Prec::Add)) };
        if inner.named.contains(var) {
            self.line(&format!("const {t} {name} = {index};"));
        } else {
            self.line("(void)task;");
        }
        self.stmts(body)?;
        self.line("return 0;");
        self.in_task = false;
        let inside = std::mem::replace(&mut self.out, outer);
        self.indent = indent;

        let _ = writeln!(text, "static int32_t {task}(int64_t task, void *data)\n{{");
        if captured.is_empty() {
            text.push_str("    (void)data;\n");
        } else {
            let _ = writeln!(text, "    const struct {task} *self = data;");
        }
        let _ = writeln!(text, "{unpack}{inside}}}\n");
        self.tasks.push_str(&text);

        let count = self.expr(extent, Place::Index)?.s;
        self.line("{");
        self.indent += 1;
        self.line(&format!("struct {task} data = {{ {} }};", values.join(", ")));
        self.line("int32_t status = 0;");
        self.line("if (ctx->parallel_for) {");
        self.line(&format!("    status = ctx->parallel_for(ctx->opaque, {count}, {task}, &data);"));
        self.line("} else {");
        self.line(&format!("    for (int64_t i = 0; i < {count} && status == 0; ++i) status = {task}(i, &data);"));
        self.line("}");
        self.line("if (status != 0) return status;");
        self.indent -= 1;
        self.line("}");
        Ok(())
    }

    /// A call of a C function, and its prototype.
    pub(crate) fn call_extern(&mut self, dtype: DType, f: &Name, args: &[Expr]) -> Result<Text, Diag> {
        let identifier = |s: &str| {
            !s.is_empty()
                && !s.starts_with(|c: char| c.is_ascii_digit())
                && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if !identifier(f) || RESERVED.contains(&f.as_str()) || dtype.lanes > 1 {
            return Err(Diag::error(Span::NONE, format!("cannot call `{f}` as a C function that returns `{dtype}`")));
        }
        let (mut texts, mut types) = (Vec::new(), Vec::new());
        for a in args {
            texts.push(self.expr(a, Place::Value)?.s);
            types.push(ctype(a.dtype)?);
        }
        let result = if dtype.is_void() { "void".to_owned() } else { ctype(dtype)? };
        let parameters = if types.is_empty() { "void".to_owned() } else { types.join(", ") };
        let prototype = format!("{result} {f}({parameters});");
        let known = self.externs.entry(f.clone()).or_insert_with(|| prototype.clone());
        if *known != prototype {
            return Err(Diag::error(Span::NONE, format!("C function `{f}` is called with different types"))
                .note(format!("once as `{known}`"))
                .note(format!("once as `{prototype}`")));
        }
        Ok(Text::atom(format!("{f}({})", texts.join(", "))))
    }
}

/// Text that can stand in a comment.
fn comment(s: &str) -> String {
    s.replace("*/", "* /").replace("/*", "/ *").replace(['\n', '\r'], " ")
}
