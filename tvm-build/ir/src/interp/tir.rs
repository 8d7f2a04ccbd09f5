//! From [`PrimFunc`]s with known shapes to machine code.

use super::buf::TensorBuf;
use super::build::{Builder, Lin};
use super::emit::MemRef;
use super::flow::Flow;
use super::instr::{Code, Op};
use super::layout::{Layout, key};
use super::memory::Memory;
use super::{Options, build::Site};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, Intrinsic, PrimExpr, PrimKind, Var};
use crate::span::Span;
use crate::tir::{Block, For, ForKind, IterKind, PrimFunc, Stmt};
use std::collections::BTreeMap;

/// Lanes of a value; one of scalars.
type Lanes = Vec<Lin>;

pub(super) struct Compiler<'a> {
    pub(super) b: Builder,
    pub(super) vars: BTreeMap<Var, Lanes>,
    pub(super) buffers: BTreeMap<usize, Layout>,
    pub(super) memory: Memory<'static>,
    pub(super) options: &'a Options,
    /// Thread-bound loops around.
    threads: u32,
    pub(super) span: Span,
}

/// Vectors wider than this are refused: each lane is code of its own.
const MAX_LANES: u16 = 1024;

pub(super) struct Compiled {
    pub(super) code: Code,
    pub(super) sites: Vec<Site>,
    pub(super) memory: Memory<'static>,
}

/// Compiles a function for the shapes and scalars of the arguments.
pub(super) fn compile(func: &PrimFunc, args: &[TensorBuf], options: &Options) -> Result<Compiled, Diag> {
    if args.len() != func.params.len() {
        let message = format!("{} arguments for a function of {} parameters", args.len(), func.params.len());
        return Err(Diag::error(func.span, message));
    }
    let mut c = Compiler {
        b: Builder::new(),
        vars: BTreeMap::new(),
        buffers: BTreeMap::new(),
        memory: Memory::default(),
        options,
        threads: 0,
        span: func.span,
    };
    c.bind_params(func, args)?;
    c.stmt(&func.body)?;
    let memory = c.memory;
    let (code, sites) = c.b.finish()?;
    Ok(Compiled { code, sites, memory })
}

impl Flow for Compiler<'_> {
    fn builder(&mut self) -> &mut Builder {
        &mut self.b
    }
}

impl Compiler<'_> {
    pub(super) fn error<T>(&self, message: String) -> Result<T, Diag> {
        Err(Diag::error(self.span, message))
    }

    /// Sets the place that errors point to; gives the one before.
    pub(super) fn enter_span(&mut self, span: Span) -> Span {
        let outer = self.span;
        self.span = span.or(outer);
        outer
    }

    // Statements.

    fn stmt(&mut self, s: &Stmt) -> Result<(), Diag> {
        match s {
            Stmt::Seq(stmts) => stmts.iter().try_for_each(|s| self.stmt(s)),
            Stmt::For(f) => self.for_loop(f),
            Stmt::Block(b) => self.block(b),
            Stmt::Store(s) => {
                let outer = self.enter_span(s.span);
                let value = self.expr(&s.value)?;
                let (mem, places) = self.places(&s.buffer, &s.indices)?;
                if s.value.dtype().scalar() != mem.dtype || value.len() != places.len() {
                    return self.error(format!(
                        "a value of type {} is stored to buffer `{}` of type {}",
                        s.value.dtype(),
                        s.buffer.name,
                        s.buffer.dtype
                    ));
                }
                for (place, v) in places.iter().zip(&value) {
                    self.b.store(mem, place, v);
                }
                self.span = outer;
                Ok(())
            }
            Stmt::Let(l) => {
                let value = self.expr(&l.value)?;
                self.vars.insert(l.var.clone(), value);
                self.stmt(&l.body)
            }
            Stmt::If(i) => {
                let cond = self.scalar(&i.cond)?;
                self.branch(&cond, |s| s.stmt(&i.then), |s| i.otherwise.as_ref().map_or(Ok(()), |o| s.stmt(o)))
            }
            Stmt::While(w) => self.repeat(|s| s.scalar(&w.cond), |s| s.stmt(&w.body)),
            Stmt::Assert(a) => {
                let cond = self.scalar(&a.cond)?;
                self.require(&cond, a.cond.span().or(self.span), format!("assertion failed: {}", a.message));
                Ok(())
            }
            Stmt::Evaluate(e) => self.evaluate(e),
        }
    }

    fn evaluate(&mut self, e: &PrimExpr) -> Result<(), Diag> {
        if let PrimKind::Call(Intrinsic::StorageSync, _) = e.kind() {
            if self.threads > 0 {
                let message = "a barrier between threads cannot be run one thread after another";
                return Err(
                    Diag::error(e.span().or(self.span), message).help("interpret the function before thread binding")
                );
            }
            return Ok(());
        }
        if e.dtype().is_void() {
            return match e.kind() {
                PrimKind::CallExtern(name, _) => self.error(format!("extern function `{name}` cannot be interpreted")),
                _ => Ok(()),
            };
        }
        self.expr(e).map(|_| ())
    }

    fn for_loop(&mut self, f: &For) -> Result<(), Diag> {
        let outer_span = self.enter_span(f.span);
        let threaded = matches!(f.kind, ForKind::ThreadBinding(_));
        self.threads += u32::from(threaded);
        let (min, extent) = (self.scalar(&f.min)?, self.scalar(&f.extent)?);
        self.counted(&min, &extent, f.span, |s, v| {
            s.vars.insert(f.var.clone(), vec![v]);
            s.stmt(&f.body)
        })?;
        self.threads -= u32::from(threaded);
        self.span = outer_span;
        Ok(())
    }

    fn block(&mut self, block: &Block) -> Result<(), Diag> {
        let outer_span = self.enter_span(block.span);
        let predicate = self.scalar(&block.predicate)?;
        self.branch(&predicate, |s| s.block_inside(block), |_| Ok(()))?;
        self.span = outer_span;
        Ok(())
    }

    fn block_inside(&mut self, block: &Block) -> Result<(), Diag> {
        let mut first = Lin::constant(1);
        for i in &block.iters {
            let value = self.scalar(&i.binding)?;
            if i.kind == IterKind::Reduce && block.init.is_some() {
                let start = self.scalar(&i.dom.min)?;
                let at_start = self.b.cmp(crate::prim::CmpOp::Eq, i.var.dtype(), &value, &start, self.span)?;
                first = self.b.bits(Op::And, &first, &at_start);
            }
            self.vars.insert(i.var.clone(), vec![value]);
        }
        for buffer in &block.allocs {
            self.alloc(buffer)?;
        }
        if let Some(init) = &block.init {
            self.branch(&first, |s| s.stmt(init), |_| Ok(()))?;
        }
        self.stmt(&block.body)
    }

    // Memory.

    /// Where the lanes of an access lie.
    fn places(&mut self, buffer: &Buffer, indices: &[PrimExpr]) -> Result<(MemRef, Vec<Lin>), Diag> {
        let Some(layout) = self.buffers.get(&key(buffer)).cloned() else {
            return self.error(format!("buffer `{}` is neither a parameter nor allocated around its use", buffer.name));
        };
        if indices.len() != layout.shape.len() {
            return self.error(format!(
                "{} indices for buffer `{}` of rank {}",
                indices.len(),
                buffer.name,
                layout.shape.len()
            ));
        }
        let mut lanes: Vec<Lanes> = Vec::new();
        for e in indices {
            lanes.push(self.expr(e)?);
        }
        let count = lanes.iter().map(Vec::len).max().unwrap_or(1);
        let mut places = Vec::new();
        for lane in 0..count {
            let mut place = Lin::constant(layout.offset);
            for (dim, (index, (extent, stride))) in
                lanes.iter().zip(layout.shape.iter().zip(&layout.strides)).enumerate()
            {
                let Some(index) = index.get(if index.len() == 1 { 0 } else { lane }) else {
                    return self.error(format!("indices of buffer `{}` differ in lanes", buffer.name));
                };
                self.b.check(index, *extent, self.span, || {
                    format!(
                        "index {{}} of dimension {dim} of buffer `{}` is out of bounds (extent {extent})",
                        buffer.name
                    )
                });
                place = match place.add(index, *stride) {
                    Some(p) => p,
                    None => return self.error(format!("an index of buffer `{}` overflows", buffer.name)),
                };
            }
            let width = i64::from(buffer.dtype.lanes);
            for l in 0..width {
                places.push(Lin { terms: place.terms.clone(), base: place.base.saturating_add(l) });
            }
        }
        Ok((layout.mem, places))
    }

    // Expressions.

    pub(super) fn scalar(&mut self, e: &PrimExpr) -> Result<Lin, Diag> {
        match self.expr(e)?.as_slice() {
            [one] => Ok(one.clone()),
            lanes => self.error(format!("expected a scalar, found {} lanes", lanes.len())),
        }
    }

    fn expr(&mut self, e: &PrimExpr) -> Result<Lanes, Diag> {
        if e.span().is_none() {
            return self.expr_kind(e);
        }
        let outer = std::mem::replace(&mut self.span, e.span());
        let out = self.expr_kind(e);
        self.span = outer;
        out
    }

    fn zip(
        &mut self,
        a: &PrimExpr,
        b: &PrimExpr,
        mut f: impl FnMut(&mut Builder, &Lin, &Lin) -> Result<Lin, Diag>,
    ) -> Result<Lanes, Diag> {
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        if x.len() != y.len() {
            return self.error(format!("operands of {} and {} lanes", x.len(), y.len()));
        }
        x.iter().zip(&y).map(|(x, y)| f(&mut self.b, x, y)).collect()
    }

    fn expr_kind(&mut self, e: &PrimExpr) -> Result<Lanes, Diag> {
        let span = self.span;
        let dtype = e.dtype().scalar();
        if e.dtype().lanes > MAX_LANES {
            return self.error(format!(
                "a vector of {} lanes is too wide to interpret (at most {MAX_LANES})",
                e.dtype().lanes
            ));
        }
        match e.kind() {
            PrimKind::Var(v) => match self.vars.get(v) {
                Some(value) => Ok(value.clone()),
                None => self.error(format!("variable `{}` has no value here", v.name())),
            },
            PrimKind::Int(v) => Ok(vec![self.b.int_literal(dtype, *v)]),
            PrimKind::Float(v) => Ok(vec![self.b.float_literal(dtype, *v, span)?]),
            PrimKind::Str(_) => self.error("a string has no value".to_string()),
            PrimKind::Binary(op, a, b) => self.zip(a, b, |s, x, y| s.binary(*op, dtype, x, y, span)),
            PrimKind::Cmp(op, a, b) => {
                let d = a.dtype().scalar();
                self.zip(a, b, |s, x, y| s.cmp(*op, d, x, y, span))
            }
            PrimKind::And(a, b) if dtype == e.dtype() => {
                let no = Lin::constant(0);
                let x = self.scalar(a)?;
                Ok(vec![self.lazy(e.dtype(), &x, |s| s.scalar(b), |_| Ok(no), can_fail(b))?])
            }
            PrimKind::Or(a, b) if dtype == e.dtype() => {
                let yes = Lin::constant(1);
                let x = self.scalar(a)?;
                Ok(vec![self.lazy(e.dtype(), &x, |_| Ok(yes), |s| s.scalar(b), can_fail(b))?])
            }
            PrimKind::And(a, b) => self.zip(a, b, |s, x, y| Ok(s.bits(Op::And, x, y))),
            PrimKind::Or(a, b) => self.zip(a, b, |s, x, y| Ok(s.bits(Op::Or, x, y))),
            PrimKind::Not(a) => {
                let x = self.expr(a)?;
                Ok(x.iter().map(|x| self.b.not(x)).collect())
            }
            PrimKind::Select(c, a, b) => {
                let c = self.expr(c)?;
                if let ([one], true) = (c.as_slice(), dtype == e.dtype()) {
                    let fails = can_fail(a) || can_fail(b);
                    return Ok(vec![self.lazy(dtype, one, |s| s.scalar(a), |s| s.scalar(b), fails)?]);
                }
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                let at =
                    |l: &Lanes, i: usize| l.get(if l.len() == 1 { 0 } else { i }).cloned().unwrap_or(Lin::constant(0));
                Ok((0..x.len().max(y.len()))
                    .map(|i| self.b.select(dtype, &at(&c, i), &at(&x, i), &at(&y, i)))
                    .collect())
            }
            PrimKind::Cast(a) => {
                let (from, x) = (a.dtype().scalar(), self.expr(a)?);
                x.iter().map(|x| self.b.cast(from, dtype, x, span)).collect()
            }
            PrimKind::Load(buffer, indices) => {
                let (mem, places) = self.places(buffer, indices)?;
                places.iter().map(|p| self.b.load(mem, p, span, &buffer.name)).collect()
            }
            PrimKind::Let(v, value, body) => {
                let value = self.expr(value)?;
                self.vars.insert(v.clone(), value);
                self.expr(body)
            }
            PrimKind::Ramp(base, stride) => {
                let (base, stride) = (self.scalar(base)?, self.scalar(stride)?);
                let mut out = Vec::new();
                for lane in 0..i64::from(e.dtype().lanes) {
                    let step = self.b.binary(crate::prim::BinOp::Mul, dtype, &stride, &Lin::constant(lane), span)?;
                    out.push(self.b.binary(crate::prim::BinOp::Add, dtype, &base, &step, span)?);
                }
                Ok(out)
            }
            PrimKind::Broadcast(x) => {
                let x = self.scalar(x)?;
                Ok(vec![x; usize::from(e.dtype().lanes)])
            }
            PrimKind::Call(f, args) => self.call(e, *f, args),
            PrimKind::CallExtern(name, _) => self.error(format!("extern function `{name}` cannot be interpreted")),
        }
    }

    fn call(&mut self, e: &PrimExpr, f: Intrinsic, args: &[PrimExpr]) -> Result<Lanes, Diag> {
        let span = self.span;
        let dtype = e.dtype().scalar();
        match (f, args) {
            (Intrinsic::IfThenElse, [c, a, b]) => {
                let c = self.scalar(c)?;
                if e.dtype().lanes == 1 {
                    return Ok(vec![self.lazy(dtype, &c, |s| s.scalar(a), |s| s.scalar(b), true)?]);
                }
                self.lazy_lanes(e.dtype(), &c, a, b)
            }
            (Intrinsic::Reinterpret, [a]) => {
                let (from, x) = (a.dtype().scalar(), self.expr(a)?);
                x.iter().map(|x| self.b.reinterpret(from, dtype, x, span)).collect()
            }
            (Intrinsic::StorageSync, _) => self.error("a barrier has no value".to_string()),
            _ => {
                let dtypes: Vec<DType> = args.iter().map(|a| a.dtype().scalar()).collect();
                let lanes = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>, _>>()?;
                let count = lanes.iter().map(Vec::len).max().unwrap_or(1);
                let mut out = Vec::new();
                for i in 0..count {
                    let one: Vec<Lin> =
                        lanes.iter().filter_map(|l| l.get(if l.len() == 1 { 0 } else { i }).cloned()).collect();
                    out.push(self.b.call(f, &one, &dtypes, span)?);
                }
                Ok(out)
            }
        }
    }

    fn lazy_lanes(&mut self, dtype: DType, cond: &Lin, a: &PrimExpr, b: &PrimExpr) -> Result<Lanes, Diag> {
        let out: Vec<u16> = (0..dtype.lanes).map(|_| self.variable(dtype)).collect();
        let fill = |s: &mut Self, e: &PrimExpr| -> Result<(), Diag> {
            let lanes = s.expr(e)?;
            out.iter().zip(&lanes).for_each(|(to, v)| s.assign(*to, v));
            Ok(())
        };
        self.branch(cond, |s| fill(s, a), |s| fill(s, b))?;
        Ok(out.into_iter().map(Lin::reg).collect())
    }
}

/// Whether computing an expression may be an error: it reads memory, divides, or calls out.
fn can_fail(e: &PrimExpr) -> bool {
    use crate::prim::BinOp;
    let mut found = false;
    crate::prim::visit(e, &mut |n| {
        found |= match n.kind() {
            PrimKind::Load(..) | PrimKind::CallExtern(..) => true,
            PrimKind::Binary(
                BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod | BinOp::Shl | BinOp::Shr,
                _,
                y,
            ) => n.dtype().is_integer() && y.as_int().is_none_or(|v| v == 0),
            _ => false,
        };
    });
    found
}
