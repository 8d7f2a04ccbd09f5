//! Surface functions to PrimFuncs: signature and statements.

use super::ast::{Expr, ExprKind, FuncDef, Ident, Stmt as Surface, StmtKind};
use super::lower_prim::{Lowered, extent_of};
use super::scope::{Args, Entity, Lower, suggest};
use crate::attrs::Attrs;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{Buffer, PrimExpr, PrimKind, Var};
use crate::span::Span;
use crate::tir::verify::THREAD_AXES;
use crate::tir::{
    AssertStmt, Block, For, ForKind, IfStmt, IterVar, LetStmt, Param, PrimFunc, Region, Stmt, Store, While, visit_stmt,
};

/// Deepest nesting of lets: walking statements needs bounded stack.
const MAX_LETS: usize = 200;

/// A block being read.
#[derive(Default)]
pub(super) struct OpenBlock {
    pub(super) iters: Vec<IterVar>,
    pub(super) predicate: Option<PrimExpr>,
    pub(super) reads: Option<Vec<Region>>,
    pub(super) writes: Option<Vec<Region>>,
    pub(super) allocs: Vec<Buffer>,
    pub(super) init: Option<Stmt>,
    pub(super) annotations: Attrs,
}

/// A function being read.
pub(super) struct TirLower<'c, 'a> {
    pub(super) cx: &'c mut Lower<'a>,
    pub(super) params: Vec<Option<Param>>,
    pub(super) attrs: Attrs,
    /// Open blocks; the first is the root.
    pub(super) blocks: Vec<OpenBlock>,
    /// Loops around, for `T.axis.remap`.
    pub(super) loops: Vec<(Var, crate::prim::Range)>,
    /// Lets around.
    lets: usize,
}

/// A PrimFunc. Errors go to `cx.diags`; `None` when there were any in the signature.
pub(super) fn lower_prim_func(cx: &mut Lower<'_>, def: &FuncDef, private: bool) -> PrimFunc {
    cx.literal = DType::I32;
    cx.scope.push();
    for p in &def.type_params {
        cx.scope.type_vars.insert(p.name.clone());
    }
    let mut lower = TirLower {
        cx,
        params: vec![None; def.params.len()],
        attrs: Attrs::new(),
        blocks: vec![OpenBlock::default()],
        loops: Vec::new(),
        lets: 0,
    };
    lower.signature(def);
    let body = lower.stmts(&def.body);
    let root = lower.blocks.pop().unwrap_or_default();
    let mut params = Vec::new();
    for (p, d) in lower.params.iter().zip(&def.params) {
        match p {
            Some(p) => params.push(p.clone()),
            None if lower.cx.failed => {}
            None => lower.cx.diags.push(Diag::error(
                d.ident.span,
                format!("no T.match_buffer names the buffer of handle `{}`", d.ident.name),
            )),
        }
    }
    let mut attrs = lower.attrs;
    if !private && !attrs.contains_key("global_symbol") {
        attrs.insert("global_symbol".into(), def.ident.name.clone().into());
    }
    cx.scope.pop();
    PrimFunc { params, attrs, body: with_root(root, body), span: def.ident.span }
}

/// The body under a root block where it holds blocks or allocations.
fn with_root(root: OpenBlock, body: Stmt) -> Stmt {
    let mut has_block = false;
    visit_stmt(&body, &mut |s| has_block |= matches!(s, Stmt::Block(_)));
    let is_root = matches!(&body, Stmt::Block(b) if b.iters.is_empty());
    if !root.allocs.is_empty() || (has_block && !is_root) {
        Stmt::Block(Box::new(Block::root(root.allocs, body)))
    } else {
        body
    }
}

impl TirLower<'_, '_> {
    fn signature(&mut self, def: &FuncDef) {
        for (i, p) in def.params.iter().enumerate() {
            let Some(a) = &p.annotation else {
                self.cx.diags.push(
                    Diag::error(p.ident.span, format!("parameter `{}` has no type", p.ident.name))
                        .help("write T.Buffer(shape, dtype), T.int64, T.handle, …"),
                );
                self.cx.define(&p.ident, Entity::Broken);
                continue;
            };
            let path = a.call().map(|(p, ..)| p).or_else(|| a.path()).unwrap_or_default();
            match path.as_str() {
                "T.Buffer" => {}
                "T.handle" => self.cx.define(&p.ident, Entity::Handle(i)),
                _ => match path.strip_prefix("T.").map(str::parse::<DType>) {
                    Some(Ok(dtype)) => {
                        let var = Var::at(p.ident.name.clone(), dtype, p.ident.span);
                        self.cx.define(&p.ident, Entity::Prim(var.clone()));
                        self.params[i] = Some(Param::Scalar(var));
                    }
                    _ => {
                        self.cx.define(&p.ident, Entity::Broken);
                        self.cx.failed = true;
                        if !matches!(a.kind, ExprKind::Broken) {
                            let d = Diag::error(a.callee_span(), "not the type of a parameter");
                            let known = ["T.Buffer", "T.handle", "T.int64", "T.int32", "T.float32", "T.bool"];
                            let d = suggest(d, &path, known.into_iter());
                            self.cx.diags.push(match d.help {
                                Some(_) => d,
                                None => d.help("write T.Buffer(shape, dtype), T.int64, T.handle, …"),
                            });
                        }
                    }
                },
            }
        }
        for (i, p) in def.params.iter().enumerate() {
            let call = p.annotation.as_ref().and_then(|a| a.call().map(|c| (a.span, c)));
            if let Some((span, (_, args, keywords))) = call.filter(|(_, (path, ..))| path == "T.Buffer") {
                let args = Args::new("T.Buffer", span, args, keywords);
                if let Some(b) = self.buffer_of(&p.ident, args) {
                    self.params[i] = Some(Param::Buffer(b));
                }
            }
        }
        if let Some(r) = def.ret.as_ref().filter(|r| !matches!(r.kind, ExprKind::None | ExprKind::Broken)) {
            let d = Diag::error(r.span, "a PrimFunc returns nothing");
            self.cx.diags.push(d.help("take the output as a parameter, a buffer, and store into it"));
        }
    }

    fn buffer_of(&mut self, ident: &Ident, args: Args<'_>) -> Option<Buffer> {
        let made = self.make_buffer(ident, args);
        let buffer = self.cx.keep(made);
        self.cx.define(ident, buffer.clone().map_or(Entity::Broken, Entity::Buffer));
        buffer
    }

    pub(super) fn error<T>(&mut self, r: Lowered<T>) -> Option<T> {
        self.cx.keep(r)
    }

    /// Statements in order; a let takes the rest as its body.
    pub(super) fn stmts(&mut self, list: &[Surface]) -> Stmt {
        let outer = self.lets;
        // For each let: what stands before it, its variable and its value.
        let mut lets = Vec::new();
        let mut out = Vec::new();
        for s in list {
            if let Some((target, annotation, value)) = as_let(s) {
                if let Some((ident, v)) = self.let_binding(target, annotation, value) {
                    let var = Var::at(ident.name.clone(), v.dtype(), ident.span);
                    self.cx.define(&ident, Entity::Prim(var.clone()));
                    lets.push((std::mem::take(&mut out), var, v));
                    self.lets += 1;
                    if self.lets > MAX_LETS {
                        let d =
                            Diag::error(ident.span, format!("more than {MAX_LETS} variables in scope of each other"));
                        self.cx.diags.push(d.help("keep values in buffers"));
                        break;
                    }
                }
                continue;
            }
            let lowered = self.stmt(s);
            match self.error(lowered) {
                Some(s) => out.extend(s),
                None => self.recover(s),
            }
        }
        self.lets = outer;
        lets.into_iter().rev().fold(Stmt::seq(out), |body, (mut before, var, value)| {
            before.push(Stmt::Let(Box::new(LetStmt { var, value, body })));
            Stmt::seq(before)
        })
    }

    /// Defines what a failed declaration would have defined.
    fn recover(&mut self, s: &Surface) {
        if let StmtKind::Assign { target, .. } = &s.kind {
            for t in target.items().unwrap_or(std::slice::from_ref(target)) {
                if let Some(n) = t.name().filter(|n| self.cx.scope.declared(n).is_none()) {
                    self.cx.scope.define(n, Entity::Broken, t.span);
                }
            }
        }
    }

    /// Statements in a frame of their own.
    pub(super) fn scoped(&mut self, list: &[Surface]) -> Stmt {
        self.cx.scope.push();
        let s = self.stmts(list);
        self.cx.scope.pop();
        s
    }

    fn let_binding(&mut self, target: &Expr, annotation: Option<&Expr>, value: &Expr) -> Option<(Ident, PrimExpr)> {
        let ident = Ident { name: target.name()?.clone(), span: target.span };
        let lowered = self.cx.number(value);
        let v = self.error(lowered);
        let Some(v) = v else {
            self.cx.define(&ident, Entity::Broken);
            return None;
        };
        let Some(a) = annotation else { return Some((ident, v)) };
        let inner = match &a.kind {
            ExprKind::Index(base, items) if base.path().as_deref() == Some("T.let") && items.len() == 1 => &items[0],
            _ => a,
        };
        let dtype = self.cx.dtype(inner);
        let dtype = self.error(dtype)?;
        if v.dtype() == dtype {
            return Some((ident, v));
        }
        if matches!(v.kind(), PrimKind::Int(_) | PrimKind::Float(_)) {
            return Some((ident, v.cast(dtype)));
        }
        let d = Diag::error(value.span, format!("`{}` is declared {dtype} but its value is {}", ident.name, v.dtype()));
        self.cx.diags.push(d.label(a.span, "declared here"));
        None
    }

    fn stmt(&mut self, s: &Surface) -> Lowered<Option<Stmt>> {
        Ok(match &s.kind {
            StmtKind::Pass => None,
            StmtKind::Expr(e) => return self.expr_stmt(e),
            StmtKind::Assign { target, value: Some(value), .. } => match &target.kind {
                ExprKind::Index(base, items) => Some(self.store(base, items, value, (target.span, s.span))?),
                _ => {
                    self.declare(target, value)?;
                    None
                }
            },
            StmtKind::Assign { target, .. } => {
                return Err(Diag::error(target.span, "a declaration without a value").help("write `name = T.int64()`"));
            }
            StmtKind::For { target, iter, body } => Some(self.for_loop(target, iter, body, s.span)?),
            StmtKind::While { cond, body } => {
                let cond = self.cx.condition(cond)?;
                Some(Stmt::While(Box::new(While { cond, body: self.scoped(body) })))
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.cx.condition(cond)?;
                let then = self.scoped(then);
                let otherwise = if otherwise.is_empty() { None } else { Some(self.scoped(otherwise)) };
                Some(Stmt::If(Box::new(IfStmt { cond, then, otherwise })))
            }
            StmtKind::With { value, target, body } => self.with(value, target.as_ref(), body, s.span)?,
            StmtKind::Assert { cond, message } => {
                let cond = self.cx.condition(cond)?;
                let message = match message {
                    Some(m) => assert_message(m)?,
                    None => Name::from(""),
                };
                Some(Stmt::Assert(Box::new(AssertStmt { cond, message })))
            }
            StmtKind::Return(_) => {
                return Err(Diag::error(s.span, "a PrimFunc has no `return`; it writes its buffers"));
            }
            StmtKind::Def(d) => return Err(Diag::error(d.ident.span, "a function inside a PrimFunc")),
            StmtKind::Class(c) => return Err(Diag::error(c.ident.span, "a class inside a PrimFunc")),
        })
    }

    /// `base[items] = value`; the places are those of the target and of the statement.
    fn store(&mut self, base: &Expr, items: &[Expr], value: &Expr, (at, span): (Span, Span)) -> Lowered<Stmt> {
        let buffer = self.cx.buffer(base)?;
        let indices = self.cx.indices(&buffer, items, at)?;
        let mut v = self.cx.number(value)?;
        let lanes = indices.last().map_or(1, |i| i.dtype().lanes);
        let want = buffer.dtype.with_lanes(buffer.dtype.lanes.saturating_mul(lanes));
        if v.dtype() != want {
            if let (PrimKind::Int(i), true) = (v.kind(), want.is_integer()) {
                self.cx.int(want.scalar(), i128::from(*i), value.span)?;
            }
            if let (PrimKind::Float(x), false) = (v.kind(), want.is_float()) {
                let d = format!("{x:?} is stored to `{}`, which holds {want}", buffer.name);
                return Err(Diag::error(value.span, d).help(format!(
                    "store an integer, or convert it, which rounds toward zero: T.Cast(\"{want}\", …)"
                )));
            }
            let literal = matches!(v.kind(), PrimKind::Int(_) | PrimKind::Float(_)) || v.as_int().is_some();
            if literal || v.dtype() == want.scalar() {
                v = v.cast(want);
            } else {
                return Err(Diag::error(
                    value.span,
                    format!("{} is stored to `{}`, which holds {want}", v.dtype(), buffer.name),
                )
                .help(format!("cast it: T.Cast(\"{want}\", …)")));
            }
        }
        Ok(Stmt::Store(Box::new(Store { buffer, indices, value: v, span })))
    }

    /// The name of an axis of a GPU's grid.
    fn thread_axis(&mut self, e: &Expr) -> Lowered<Name> {
        let axis = self.cx.string(e)?;
        if THREAD_AXES.contains(&axis.as_str()) || axis.starts_with("vthread") {
            return Ok(axis);
        }
        let d = Diag::error(e.span, format!("there is no thread axis \"{axis}\""));
        let d = suggest(d, &axis, THREAD_AXES.iter().copied());
        Err(if d.help.is_some() { d } else { d.help(format!("known are {}", THREAD_AXES.join(", "))) })
    }

    fn for_loop(&mut self, target: &Expr, iter: &Expr, body: &[Surface], span: Span) -> Lowered<Stmt> {
        let Some((path, args, keywords)) = iter.call() else {
            return Err(Diag::error(iter.span, "a loop runs over range(…), T.grid(…), T.parallel(…), …"));
        };
        let targets: Vec<&Expr> = target.items().map_or_else(|| vec![target], |t| t.iter().collect());
        let mut names = Vec::new();
        for t in targets {
            let name = t.name().ok_or_else(|| Diag::error(t.span, "expected the name of a loop variable"))?;
            names.push(Ident { name: name.clone(), span: t.span });
        }
        let mut a = Args::new(&path, iter.callee_span(), args, keywords);
        let mut kind = ForKind::Serial;
        let mut annotations = Attrs::new();
        let mut ranges = Vec::new();
        match path.as_str() {
            "T.grid" => {
                for e in a.rest() {
                    let extent = self.cx.number(e)?;
                    ranges.push((PrimExpr::int(extent.dtype(), 0), extent));
                }
            }
            "range" | "T.serial" | "T.parallel" | "T.vectorized" | "T.unroll" | "T.thread_binding" => {
                let first = self.cx.number(a.need("start")?)?;
                let (min, extent) = match a.take("stop")? {
                    Some(stop) => {
                        let stop = self.cx.number(stop)?;
                        let extent = extent_of(self.cx, &first, &stop);
                        let dtype =
                            if first.dtype().bits >= extent.dtype().bits { first.dtype() } else { extent.dtype() };
                        (first.cast(dtype), extent.cast(dtype))
                    }
                    None => (PrimExpr::int(first.dtype(), 0), first),
                };
                ranges.push((min, extent));
                if let Some(e) = a.keyword("annotations") {
                    annotations = self.cx.attrs(e)?;
                }
                kind = match path.as_str() {
                    "T.parallel" => ForKind::Parallel,
                    "T.vectorized" => ForKind::Vectorized,
                    "T.unroll" => ForKind::Unrolled,
                    "T.thread_binding" => ForKind::ThreadBinding(self.thread_axis(a.need("thread")?)?),
                    _ => ForKind::Serial,
                };
            }
            other => {
                let known =
                    ["T.grid", "range", "T.serial", "T.parallel", "T.vectorized", "T.unroll", "T.thread_binding"];
                let d = Diag::error(iter.callee_span(), format!("`{other}` is no loop"));
                return Err(suggest(d, other, known.into_iter()));
            }
        }
        a.finish()?;
        if names.len() != ranges.len() {
            let (n, m) = (names.len(), ranges.len());
            let [a, b] = [n, m].map(|k| if k == 1 { "" } else { "s" });
            let d = Diag::error(target.span, format!("{n} loop variable{a} for {m} extent{b}"));
            return Err(d.help("name one variable for each extent, as (i, j)"));
        }
        for (min, extent) in &ranges {
            for e in [min, extent] {
                if !e.dtype().is_integer() {
                    return Err(Diag::error(
                        e.span().or(iter.span),
                        format!("an extent must be an integer, not {}", e.dtype()),
                    ));
                }
            }
        }
        self.cx.scope.push();
        let mut vars = Vec::new();
        for (ident, (min, extent)) in names.iter().zip(&ranges) {
            let var = Var::at(ident.name.clone(), extent.dtype(), ident.span);
            self.cx.define(ident, Entity::Prim(var.clone()));
            self.loops.push((var.clone(), crate::prim::Range { min: min.clone(), extent: extent.clone() }));
            vars.push(var);
        }
        let mut stmt = self.stmts(body);
        self.loops.truncate(self.loops.len() - vars.len());
        self.cx.scope.pop();
        for (i, (var, (min, extent))) in vars.into_iter().zip(ranges).enumerate().rev() {
            let annotations = if i == 0 { std::mem::take(&mut annotations) } else { Attrs::new() };
            stmt = Stmt::For(Box::new(For { var, min, extent, kind: kind.clone(), annotations, body: stmt, span }));
        }
        Ok(stmt)
    }
}

/// Target, annotation and value of a statement that binds a scalar variable.
fn as_let(s: &Surface) -> Option<(&Expr, Option<&Expr>, &Expr)> {
    let StmtKind::Assign { target, annotation, value: Some(value) } = &s.kind else { return None };
    target.name()?;
    let declares = value.call().is_some_and(|(p, args, _)| {
        p.starts_with("T.axis.")
            || matches!(p.as_str(), "T.match_buffer" | "T.alloc_buffer" | "T.sblock_alloc_buffer")
            || (args.is_empty() && p.strip_prefix("T.").is_some_and(|d| d.parse::<DType>().is_ok()))
    });
    (annotation.is_some() || !declares).then_some((target, annotation.as_ref(), value))
}

fn assert_message(m: &Expr) -> Lowered<Name> {
    if let Some(s) = m.str() {
        return Ok(s.clone());
    }
    // Today's dialect: ("RuntimeError", ["message", …])
    let parts = match m.items() {
        Some([_, parts]) => parts.items(),
        _ => None,
    };
    if let Some(parts) = parts {
        let texts: Option<Vec<&str>> = parts.iter().map(|p| p.str().map(Name::as_str)).collect();
        if let Some(texts) = texts {
            return Ok(texts.concat().into());
        }
    }
    Err(Diag::error(m.span, "the message of an assert must be a string"))
}
