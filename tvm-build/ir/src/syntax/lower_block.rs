//! Blocks, buffers and the declarations of TensorIR.

use super::ast::{Expr, ExprKind, Ident, Stmt as Surface};
use super::lower_prim::Lowered;
use super::lower_tir::{OpenBlock, TirLower};
use super::scope::{Args, Entity, consequence, suggest};
use crate::arith::Analyzer;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, BufferNode, PrimExpr, PrimKind, Range, Scope, Var};
use crate::span::Span;
use crate::tir::{Block, IterKind, IterVar, LetStmt, Param, Region, Stmt, access_regions};

/// What may be called as a statement, for suggestions.
const STATEMENTS: &[&str] =
    &["T.reads", "T.writes", "T.where", "T.block_attr", "T.sblock_attr", "T.func_attr", "T.evaluate"];

impl TirLower<'_, '_> {
    /// A buffer from the arguments of `T.Buffer`, `T.match_buffer` or `T.alloc_buffer`.
    pub(super) fn make_buffer(&mut self, ident: &Ident, mut a: Args<'_>) -> Lowered<Buffer> {
        let shape = a.need("shape")?;
        let shape = self.dims(shape)?;
        let dtype = match a.take("dtype")? {
            Some(e) => self.cx.dtype(e)?,
            None => DType::F32,
        };
        if dtype.is_void() {
            return Err(Diag::error(ident.span, format!("buffer `{}` has no element type", ident.name)));
        }
        let strides = match a.keyword("strides") {
            Some(e) => self.dims(e)?,
            None => Vec::new(),
        };
        if !strides.is_empty() && strides.len() != shape.len() {
            return Err(Diag::error(ident.span, format!("{} strides for {} dimensions", strides.len(), shape.len())));
        }
        let elem_offset = match a.keyword("elem_offset") {
            Some(Expr { kind: ExprKind::None, .. }) | None => None,
            Some(e) => Some(self.dim(e)?).filter(|o| !o.is_int(0)),
        };
        let scope = match a.keyword("scope") {
            Some(e) => Scope::parse(&self.cx.string(e)?),
            None => Scope::Global,
        };
        for (name, plain) in [("align", 64), ("offset_factor", 1)] {
            let usual = |e: &&Expr| matches!(e.kind, ExprKind::Int(v) if v == plain || v == 0 || v == -1);
            if let Some(e) = a.keyword(name).filter(|e| !usual(e)) {
                return Err(Diag::error(e.span, format!("{name} other than {plain} is not supported")));
            }
        }
        a.finish()?;
        let (name, span) = (ident.name.clone(), ident.span);
        Ok(Buffer::from_node(BufferNode { name, dtype, shape, strides, elem_offset, scope, span }))
    }

    fn dims(&mut self, e: &Expr) -> Lowered<Vec<PrimExpr>> {
        match e.items() {
            Some(items) => items.iter().map(|i| self.dim(i)).collect(),
            None => Ok(vec![self.dim(e)?]),
        }
    }

    fn dim(&mut self, e: &Expr) -> Lowered<PrimExpr> {
        if let Some(s) = e.str() {
            // A name in quotes declares a variable.
            let known = self.cx.scope.declared(s);
            return match known {
                Some(Entity::Prim(v)) => Ok(v.expr()),
                _ => {
                    let var = Var::at(s.clone(), DType::I32, e.span);
                    self.cx.scope.define_in_function(s, Entity::Prim(var.clone()), e.span);
                    Ok(var.expr())
                }
            };
        }
        let v = self.cx.number(e)?;
        if !v.dtype().is_integer() {
            return Err(Diag::error(e.span, format!("a dimension must be an integer, not {}", v.dtype())));
        }
        if v.as_int().is_some_and(|n| n < 0) {
            return Err(Diag::error(e.span, "a dimension cannot be negative"));
        }
        Ok(v)
    }

    /// `name = T.match_buffer(…)` and the other declarations.
    pub(super) fn declare(&mut self, target: &Expr, value: &Expr) -> Lowered<()> {
        if matches!(value.kind, ExprKind::Broken) {
            return Err(consequence());
        }
        if let (Some(names), Some(values)) = (target.items(), value.items()) {
            if names.len() != values.len() {
                return Err(Diag::error(target.span, format!("{} names for {} values", names.len(), values.len())));
            }
            return names.iter().zip(values).try_for_each(|(n, v)| self.declare(n, v));
        }
        let Some((path, args, keywords)) = value.call() else {
            return Err(Diag::error(target.span, "cannot assign to this"));
        };
        if path == "T.axis.remap" {
            return self.remap(target, args, value.callee_span());
        }
        let Some(name) = target.name() else { return Err(Diag::error(target.span, "cannot assign to this")) };
        let ident = Ident { name: name.clone(), span: target.span };
        let mut a = Args::new(&path, value.callee_span(), args, keywords);
        match path.as_str() {
            "T.match_buffer" => {
                let handle = a.need("param")?;
                let position = match handle.name().and_then(|n| self.cx.scope.lookup(n, handle.span)) {
                    Some(Entity::Handle(i)) => i,
                    _ => return Err(Diag::error(handle.span, "T.match_buffer needs a parameter of type T.handle")),
                };
                let buffer = self.make_buffer(&ident, a)?;
                self.cx.define(&ident, Entity::Buffer(buffer.clone()));
                match &mut self.params[position] {
                    Some(_) => return Err(Diag::error(handle.span, "the handle has a buffer already")),
                    slot => *slot = Some(Param::Buffer(buffer)),
                }
            }
            "T.alloc_buffer" | "T.sblock_alloc_buffer" => {
                let buffer = self.make_buffer(&ident, a)?;
                self.cx.define(&ident, Entity::Buffer(buffer.clone()));
                if let Some(b) = self.blocks.last_mut() {
                    b.allocs.push(buffer);
                }
            }
            p if p.starts_with("T.axis.") => self.axis(&ident, p, value.callee_span(), a)?,
            p => match p.strip_prefix("T.").map(str::parse::<DType>) {
                Some(Ok(dtype)) => self.symbol(&ident, dtype)?,
                _ => return Err(Diag::error(target.span, "cannot assign to this")),
            },
        }
        Ok(())
    }

    /// `n = T.int64()`
    fn symbol(&mut self, ident: &Ident, dtype: DType) -> Lowered<()> {
        match self.cx.scope.lookup(&ident.name, ident.span) {
            Some(Entity::Prim(v)) if v.dtype() == dtype => return Ok(()),
            _ => {}
        }
        let var = Var::at(ident.name.clone(), dtype, ident.span);
        self.cx.define(ident, Entity::Prim(var));
        Ok(())
    }

    fn add_iter(&mut self, ident: &Ident, dom: Range, kind: IterKind, binding: PrimExpr) -> Lowered<()> {
        let dtype = if binding.dtype().bits > dom.extent.dtype().bits { binding.dtype() } else { dom.extent.dtype() };
        let binding = if matches!(binding.kind(), PrimKind::Int(_)) { binding.cast(dtype) } else { binding };
        let var = Var::at(ident.name.clone(), dtype, ident.span);
        self.cx.define(ident, Entity::Prim(var.clone()));
        if let Some(b) = self.blocks.last_mut() {
            b.iters.push(IterVar { var, dom, kind, binding });
        }
        Ok(())
    }

    fn axis(&mut self, ident: &Ident, path: &str, at: Span, mut a: Args<'_>) -> Lowered<()> {
        let kind = match path {
            "T.axis.spatial" | "T.axis.S" => IterKind::Spatial,
            "T.axis.reduce" | "T.axis.R" => IterKind::Reduce,
            "T.axis.scan" => IterKind::Ordered,
            "T.axis.opaque" => IterKind::Opaque,
            other => {
                let known = ["T.axis.spatial", "T.axis.reduce", "T.axis.scan", "T.axis.opaque", "T.axis.remap"];
                return Err(suggest(Diag::error(at, format!("unknown axis `{other}`")), other, known.into_iter()));
            }
        };
        if self.blocks.len() < 2 {
            return Err(
                Diag::error(at, format!("{path} outside of a block")).help("open one: `with T.block(\"name\"):`")
            );
        }
        let at = a.need("dom")?;
        let dom = match at.items() {
            Some([min, stop]) => {
                let (min, stop) = (self.cx.number(min)?, self.cx.number(stop)?);
                let extent = super::lower_prim::extent_of(self.cx, &min, &stop);
                Range { min, extent }
            }
            Some(_) => return Err(Diag::error(at.span, "a domain is an extent, or (start, stop)")),
            None => Range::to(self.cx.number(at)?),
        };
        let binding = self.cx.number(a.need("binding")?)?;
        a.finish()?;
        for e in [&dom.min, &dom.extent, &binding] {
            if !e.dtype().is_integer() {
                let place = e.span().or(at.span);
                return Err(Diag::error(place, format!("an axis needs integers, not {}", e.dtype())));
            }
        }
        self.add_iter(ident, dom, kind, binding)
    }

    fn remap(&mut self, target: &Expr, args: &[Expr], span: Span) -> Lowered<()> {
        if self.blocks.len() < 2 {
            return Err(
                Diag::error(span, "T.axis.remap outside of a block").help("open one: `with T.block(\"name\"):`")
            );
        }
        let [kinds, values] = args else {
            return Err(Diag::error(span, "T.axis.remap takes kinds and loop variables"));
        };
        let (text, values) = (self.cx.string(kinds)?, values.items().unwrap_or_default());
        let targets: Vec<&Expr> = target.items().map_or_else(|| vec![target], |t| t.iter().collect());
        if targets.len() != values.len() || text.chars().count() != values.len() {
            let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
            let d = format!(
                "T.axis.remap: {}, {} and {}",
                count(targets.len(), "name"),
                count(text.chars().count(), "kind"),
                count(values.len(), "loop variable")
            );
            return Err(Diag::error(kinds.span, d)
                .help("give each iterator a kind, S (spatial) or R (reduce), and a loop variable"));
        }
        for ((t, kind), value) in targets.into_iter().zip(text.chars()).zip(values) {
            let kind = match kind {
                'S' => IterKind::Spatial,
                'R' => IterKind::Reduce,
                other => {
                    return Err(Diag::error(kinds.span, format!("unknown kind '{other}'")).help("kinds are S and R"));
                }
            };
            let name = t.name().ok_or_else(|| Diag::error(t.span, "expected a name"))?;
            let v = self.cx.number(value)?;
            let dom = v.as_var().and_then(|v| self.loops.iter().rev().find(|(l, _)| l == v)).map(|(_, r)| r.clone());
            let Some(dom) = dom else {
                return Err(Diag::error(value.span, "T.axis.remap needs the variable of a loop around the block")
                    .help("write T.axis.spatial(extent, value)"));
            };
            self.add_iter(&Ident { name: name.clone(), span: t.span }, dom, kind, v)?;
        }
        Ok(())
    }

    /// `with T.block("name"):`, `with T.init():`, `with T.LetStmt(value) as x:`
    pub(super) fn with(
        &mut self,
        value: &Expr,
        target: Option<&Expr>,
        body: &[Surface],
        span: Span,
    ) -> Lowered<Option<Stmt>> {
        let Some((path, args, keywords)) = value.call() else {
            return Err(Diag::error(value.span, "expected T.block(\"name\") or T.init()"));
        };
        let mut a = Args::new(&path, value.callee_span(), args, keywords);
        match path.as_str() {
            "T.block" | "T.sblock" => {
                let name = match a.take("name")? {
                    Some(e) => self.cx.string(e)?,
                    None => "".into(),
                };
                a.finish()?;
                self.blocks.push(OpenBlock::default());
                let body = self.scoped(body);
                let OpenBlock { iters, predicate, reads, writes, allocs, init, annotations } =
                    self.blocks.pop().unwrap_or_default();
                let predicate = predicate.unwrap_or_else(|| PrimExpr::bool(true));
                let (reads, writes) = regions(reads, writes, &allocs, init.as_ref(), &body, &self.cx.analyzer);
                let block = Block { name, iters, predicate, reads, writes, allocs, init, body, annotations, span };
                Ok(Some(Stmt::Block(Box::new(block))))
            }
            "T.init" => {
                a.finish()?;
                let init = self.scoped(body);
                match self.blocks.last_mut() {
                    Some(b) if b.init.is_none() => b.init = Some(init),
                    _ => return Err(Diag::error(value.span, "a block has one T.init")),
                }
                if self.blocks.len() < 2 {
                    return Err(Diag::error(value.span, "T.init outside of a block"));
                }
                Ok(None)
            }
            "T.LetStmt" => {
                let v = self.cx.number(a.need("value")?)?;
                a.finish()?;
                let Some(name) = target.and_then(Expr::name) else {
                    return Err(Diag::error(value.span, "T.LetStmt needs a name: `with T.LetStmt(value) as x:`"));
                };
                let var = Var::at(name.clone(), v.dtype(), target.map_or(span, |t| t.span));
                self.cx.scope.push();
                self.cx.scope.define(name, Entity::Prim(var.clone()), var.span());
                let body = self.stmts(body);
                self.cx.scope.pop();
                Ok(Some(Stmt::Let(Box::new(LetStmt { var, value: v, body }))))
            }
            other => Err(suggest(
                Diag::error(value.callee_span(), format!("`{other}` cannot be opened with `with`")),
                other,
                ["T.block", "T.init"].into_iter(),
            )),
        }
    }

    /// A call that stands as a statement.
    pub(super) fn expr_stmt(&mut self, e: &Expr) -> Lowered<Option<Stmt>> {
        let Some((path, args, keywords)) = e.call() else {
            return Err(
                Diag::error(e.span, "this expression does nothing").help("store its value in a buffer, or remove it")
            );
        };
        let mut a = Args::new(&path, e.callee_span(), args, keywords);
        match path.as_str() {
            "T.reads" | "T.writes" => {
                let mut regions = Vec::new();
                let list = match a.rest() {
                    [one] => one.items().unwrap_or(std::slice::from_ref(one)),
                    many => many,
                };
                a.finish()?;
                for r in list {
                    let (buffer, ranges) = self.cx.region(r)?;
                    regions.push(Region { buffer, ranges });
                }
                let block = self.open_block(e.callee_span(), &path)?;
                if path == "T.reads" { block.reads = Some(regions) } else { block.writes = Some(regions) }
            }
            "T.where" => {
                let cond = self.cx.condition(a.need("predicate")?)?;
                a.finish()?;
                self.open_block(e.callee_span(), &path)?.predicate = Some(cond);
            }
            "T.block_attr" | "T.sblock_attr" => {
                let attrs = self.cx.attrs(a.need("attrs")?)?;
                a.finish()?;
                self.open_block(e.callee_span(), &path)?.annotations = attrs;
            }
            "T.func_attr" => {
                let attrs = self.cx.attrs(a.need("attrs")?)?;
                a.finish()?;
                self.attrs.extend(attrs);
            }
            "T.evaluate" => {
                let v = self.cx.prim(a.need("value")?)?;
                a.finish()?;
                return Ok(Some(Stmt::Evaluate(v)));
            }
            _ => {
                let v = self.cx.prim(e).map_err(|d| match d.help {
                    Some(_) => d,
                    None => suggest(d, &path, STATEMENTS.iter().copied()),
                })?;
                if matches!(v.kind(), PrimKind::Call(..) | PrimKind::CallExtern(..)) {
                    return Ok(Some(Stmt::Evaluate(v)));
                }
                return Err(Diag::error(e.span, "the value of this expression is not used")
                    .help("store it, or write T.evaluate(…)"));
            }
        }
        Ok(None)
    }

    fn open_block(&mut self, span: Span, path: &str) -> Lowered<&mut OpenBlock> {
        match self.blocks.len() {
            0 | 1 => {
                Err(Diag::error(span, format!("{path} outside of a block")).help("open one: `with T.block(\"name\"):`"))
            }
            n => Ok(&mut self.blocks[n - 1]),
        }
    }
}

/// The declared regions, and those of the accesses where none are declared.
fn regions(
    reads: Option<Vec<Region>>,
    writes: Option<Vec<Region>>,
    allocs: &[Buffer],
    init: Option<&Stmt>,
    body: &Stmt,
    analyzer: &Analyzer,
) -> (Vec<Region>, Vec<Region>) {
    if let (Some(reads), Some(writes)) = (&reads, &writes) {
        return (reads.clone(), writes.clone());
    }
    let (mut found_reads, mut found_writes) = access_regions(init, body, analyzer);
    found_reads.retain(|r| !allocs.contains(&r.buffer));
    found_writes.retain(|r| !allocs.contains(&r.buffer));
    (reads.unwrap_or(found_reads), writes.unwrap_or(found_writes))
}
