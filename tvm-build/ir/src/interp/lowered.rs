//! From lowered [`Kernel`]s to machine code.

use super::Options;
use super::buf::{TensorBuf, element_count};
use super::build::{Builder, Lin};
use super::emit::{MemRef, class};
use super::flow::Flow;
use super::instr::Op;
use super::memory::Memory;
use super::tir::Compiled;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::lowered::{Expr, ExprKind, Kernel, Local, LoopKind, Param, Stmt};
use crate::prim::{BinOp, Intrinsic};
use crate::span::Span;
use std::borrow::Cow;
use std::collections::BTreeMap;

type Lanes = Vec<Lin>;

/// What a pointer points to.
#[derive(Clone)]
struct Pointer {
    mem: MemRef,
    /// Lanes of one element.
    lanes: i64,
    /// Scalar elements before the first.
    start: i64,
    /// Scalar elements from there on.
    len: i64,
    writable: bool,
}

struct Compiler<'a> {
    b: Builder,
    kernel: &'a Kernel,
    vars: BTreeMap<Local, Lanes>,
    pointers: BTreeMap<Local, Pointer>,
    memory: Memory<'static>,
    options: &'a Options,
    workspace: Option<usize>,
    threads: u32,
}

pub(super) fn param_name(p: &Param) -> &Local {
    match p {
        Param::Pointer { var, .. } | Param::Scalar { var, .. } => var,
    }
}

/// Compiles a kernel for the sizes and scalars of the arguments.
pub(super) fn compile(kernel: &Kernel, args: &[TensorBuf], options: &Options) -> Result<Compiled, Diag> {
    let mut c = Compiler {
        b: Builder::new(),
        kernel,
        vars: BTreeMap::new(),
        pointers: BTreeMap::new(),
        memory: Memory::default(),
        options,
        workspace: None,
        threads: 0,
    };
    c.bind_params(args)?;
    c.stmts(&kernel.body)?;
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
    fn error<T>(&self, message: impl std::fmt::Display) -> Result<T, Diag> {
        Err(Diag::error(Span::NONE, format!("kernel `{}`: {message}", self.kernel.name)))
    }

    fn bind_params(&mut self, args: &[TensorBuf]) -> Result<(), Diag> {
        if args.len() != self.kernel.params.len() {
            return self.error(format!("{} arguments for {} parameters", args.len(), self.kernel.params.len()));
        }
        for (i, (p, arg)) in self.kernel.params.iter().zip(args).enumerate() {
            let (var, dtype) = match p {
                Param::Pointer { var, dtype, .. } | Param::Scalar { var, dtype } => (var, *dtype),
            };
            if arg.dtype.scalar() != dtype.scalar() {
                return self.error(format!("argument `{var}` is of type {}, expected {dtype}", arg.dtype));
            }
            let bytes = element_count(&arg.shape).and_then(|n| arg.dtype.storage_bytes(u64::try_from(n).ok()?));
            if bytes != u64::try_from(arg.data.len()).ok() {
                return self.error(format!(
                    "argument `{var}` holds {} bytes, which does not fit its shape {:?}",
                    arg.data.len(),
                    arg.shape
                ));
            }
            let len = i64::try_from(arg.len()).unwrap_or(i64::MAX);
            let watched = self.options.poison && self.options.uninitialised.contains(&i);
            self.memory.data.push(Cow::default());
            self.memory.written.push(if watched { vec![false; arg.len()] } else { Vec::new() });
            match p {
                Param::Pointer { written, .. } => {
                    self.add_pointer(var, i, dtype, [0, len], *written, watched)?;
                }
                Param::Scalar { .. } => {
                    if len != 1 {
                        return self.error(format!("scalar `{var}` is given {len} values"));
                    }
                    let value = if dtype.is_float() {
                        self.b.float_literal(dtype, arg.get_f64(0), Span::NONE)?
                    } else {
                        self.b.int_literal(dtype, arg.get_i64(0))
                    };
                    self.vars.insert(var.clone(), vec![value]);
                }
            }
        }
        Ok(())
    }

    fn add_pointer(
        &mut self,
        var: &Local,
        mem: usize,
        dtype: DType,
        [start, len]: [i64; 2],
        writable: bool,
        watched: bool,
    ) -> Result<(), Diag> {
        class(dtype, Span::NONE)?;
        let Ok(mem) = u16::try_from(mem) else { return self.error("too many arrays") };
        let mem = MemRef { mem, dtype: dtype.scalar(), watched };
        let pointer = Pointer { mem, lanes: i64::from(dtype.lanes), start, len, writable };
        self.pointers.insert(var.clone(), pointer);
        Ok(())
    }

    /// New memory of so many scalar elements.
    fn allocate(&mut self, dtype: DType, elements: u64, watched: bool) -> Result<usize, Diag> {
        let bytes = dtype.scalar().storage_bytes(elements).filter(|b| *b <= self.options.max_bytes);
        let (Some(bytes), Ok(count)) = (bytes.and_then(|b| usize::try_from(b).ok()), usize::try_from(elements)) else {
            return self.error(format!("{elements} elements of {dtype} cannot be held"));
        };
        self.memory.data.push(vec![0; bytes].into());
        self.memory.written.push(if watched { vec![false; count] } else { Vec::new() });
        Ok(self.memory.data.len() - 1)
    }

    fn stmts(&mut self, stmts: &[Stmt]) -> Result<(), Diag> {
        stmts.iter().try_for_each(|s| self.stmt(s))
    }

    fn stmt(&mut self, s: &Stmt) -> Result<(), Diag> {
        match s {
            Stmt::For { var, min, extent, kind, body, .. } => {
                let threaded = matches!(kind, LoopKind::Thread(_));
                self.threads += u32::from(threaded);
                let (min, extent) = (self.scalar(min)?, self.scalar(extent)?);
                self.counted(&min, &extent, Span::NONE, |s, v| {
                    s.vars.insert(var.clone(), vec![v]);
                    s.stmts(body)
                })?;
                self.threads -= u32::from(threaded);
                Ok(())
            }
            Stmt::If { cond, then, otherwise } => {
                let cond = self.scalar(cond)?;
                self.branch(&cond, |s| s.stmts(then), |s| s.stmts(otherwise))
            }
            Stmt::While { cond, body } => self.repeat(|s| s.scalar(cond), |s| s.stmts(body)),
            Stmt::Let { var, value } => {
                let value = self.expr(value)?;
                self.vars.insert(var.clone(), value);
                Ok(())
            }
            Stmt::Array { var, dtype, len, .. } => {
                let Some(count) = len.checked_mul(u64::from(dtype.lanes)) else {
                    return self.error(format!("array `{var}` is too large"));
                };
                let watched = self.options.poison;
                let mem = self.allocate(*dtype, count, watched)?;
                let len = i64::try_from(count).unwrap_or(i64::MAX);
                self.add_pointer(var, mem, *dtype, [0, len], true, watched)?;
                let c = u16::try_from(mem).unwrap_or(0);
                self.b.effect(Op::Alloc, 0, [0, 0, c], 0);
                Ok(())
            }
            Stmt::Workspace { var, dtype, offset } => self.workspace(var, *dtype, *offset),
            Stmt::Store { pointer, index, value, aligned } => {
                let lanes = self.expr(value)?;
                let at = self.scalar(index)?;
                let p = self.pointer(pointer)?;
                if !p.writable {
                    return self.error(format!("a store through `{pointer}`, which is not declared written"));
                }
                if value.dtype.scalar() != p.mem.dtype {
                    return self
                        .error(format!("a value of type {} is stored to `{pointer}` of {}", value.dtype, p.mem.dtype));
                }
                let places = self.places(pointer, &p, &at, lanes.len(), *aligned)?;
                for (place, v) in places.iter().zip(&lanes) {
                    self.b.store(p.mem, place, v);
                }
                Ok(())
            }
            Stmt::Assert { cond, code } => {
                let cond = self.scalar(cond)?;
                let index = usize::try_from(*code).ok().and_then(|c| c.checked_sub(1));
                let Some(message) = index.and_then(|i| self.kernel.messages.get(i)) else {
                    return self.error(format!("assertion code {code} has no message"));
                };
                self.require(&cond, Span::NONE, format!("assertion failed: {message}"));
                Ok(())
            }
            Stmt::Evaluate(e) => match &e.kind {
                ExprKind::CallExtern(name, _) => self.error(format!("extern function `{name}` cannot be interpreted")),
                _ if e.dtype.is_void() => Ok(()),
                _ => self.expr(e).map(|_| ()),
            },
            Stmt::Barrier(_) if self.threads > 0 => {
                self.error("a barrier between threads cannot be run one thread after another")
            }
            Stmt::Barrier(_) | Stmt::Comment(_) => Ok(()),
        }
    }

    fn workspace(&mut self, var: &Local, dtype: DType, offset: u64) -> Result<(), Diag> {
        let mem = match self.workspace {
            Some(mem) => mem,
            None => self.allocate(DType::U8, self.kernel.workspace, false)?,
        };
        self.workspace = Some(mem);
        if offset % 64 != 0 || offset > self.kernel.workspace {
            return self.error(format!(
                "workspace offset {offset} of `{var}` is not a multiple of 64 within {}",
                self.kernel.workspace
            ));
        }
        let per = |bytes: u64| bytes.saturating_mul(dtype.per_byte()) / dtype.scalar().bytes().max(1);
        let [start, len] =
            [per(offset), per(self.kernel.workspace - offset)].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        self.add_pointer(var, mem, dtype, [start, len], true, false)
    }

    fn pointer(&self, var: &Local) -> Result<Pointer, Diag> {
        match self.pointers.get(var) {
            Some(p) => Ok(p.clone()),
            None => self.error(format!("`{var}` is no pointer or array here")),
        }
    }

    /// Where consecutive lanes from an element lie.
    fn places(&mut self, var: &Local, p: &Pointer, at: &Lin, count: usize, aligned: bool) -> Result<Vec<Lin>, Diag> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let Some(first) = Lin::constant(0).add(at, p.lanes) else {
            return self.error(format!("an index of `{var}` overflows"));
        };
        let name = &self.kernel.name;
        self.b.check(&first, p.len.saturating_sub(count - 1), Span::NONE, || {
            format!("kernel `{name}`: element {{}} of `{var}` is out of bounds ({count} of {})", p.len)
        });
        let bytes = u64::try_from(count).unwrap_or(0).saturating_mul(p.mem.dtype.bytes());
        if aligned && count > 1 && bytes <= 64 {
            let rest = self.b.binary(BinOp::FloorMod, DType::I64, &first, &Lin::constant(count), Span::NONE)?;
            self.b.check(&rest, 1, Span::NONE, || {
                format!("kernel `{name}`: an access of {bytes} bytes to `{var}` declared aligned is {{}} elements off")
            });
        }
        let base = |lane: i64| first.base.saturating_add(p.start).saturating_add(lane);
        Ok((0..count).map(|lane| Lin { terms: first.terms.clone(), base: base(lane) }).collect())
    }

    fn scalar(&mut self, e: &Expr) -> Result<Lin, Diag> {
        match self.expr(e)?.as_slice() {
            [one] => Ok(one.clone()),
            lanes => self.error(format!("expected a scalar, found {} lanes", lanes.len())),
        }
    }

    fn zip(
        &mut self,
        a: &Expr,
        b: &Expr,
        mut f: impl FnMut(&mut Builder, &Lin, &Lin) -> Result<Lin, Diag>,
    ) -> Result<Lanes, Diag> {
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        if x.len() != y.len() {
            return self.error(format!("operands of {} and {} lanes", x.len(), y.len()));
        }
        x.iter().zip(&y).map(|(x, y)| f(&mut self.b, x, y)).collect()
    }

    fn expr(&mut self, e: &Expr) -> Result<Lanes, Diag> {
        let none = Span::NONE;
        let dtype = e.dtype.scalar();
        let is_scalar = e.dtype.lanes == 1;
        match &e.kind {
            ExprKind::Var(v) => match self.vars.get(v) {
                Some(value) => Ok(value.clone()),
                None => self.error(format!("variable `{v}` has no value here")),
            },
            ExprKind::Int(v) => Ok(vec![self.b.int_literal(dtype, *v); usize::from(e.dtype.lanes)]),
            ExprKind::Float(v) => Ok(vec![self.b.float_literal(dtype, *v, none)?; usize::from(e.dtype.lanes)]),
            ExprKind::Binary(op, a, b) => self.zip(a, b, |s, x, y| s.binary(*op, dtype, x, y, none)),
            ExprKind::Cmp(op, a, b) => {
                let d = a.dtype.scalar();
                self.zip(a, b, |s, x, y| s.cmp(*op, d, x, y, none))
            }
            ExprKind::And(a, b) if is_scalar => {
                let x = self.scalar(a)?;
                Ok(vec![self.lazy(dtype, &x, |s| s.scalar(b), |_| Ok(Lin::constant(0)), can_fail(b))?])
            }
            ExprKind::Or(a, b) if is_scalar => {
                let x = self.scalar(a)?;
                Ok(vec![self.lazy(dtype, &x, |_| Ok(Lin::constant(1)), |s| s.scalar(b), can_fail(b))?])
            }
            ExprKind::And(a, b) => self.zip(a, b, |s, x, y| Ok(s.bits(Op::And, x, y))),
            ExprKind::Or(a, b) => self.zip(a, b, |s, x, y| Ok(s.bits(Op::Or, x, y))),
            ExprKind::Not(a) => {
                let x = self.expr(a)?;
                Ok(x.iter().map(|x| self.b.not(x)).collect())
            }
            ExprKind::Select(c, a, b) => self.select(dtype, is_scalar, [c, a, b]),
            ExprKind::Cast(a) => {
                let (from, x) = (a.dtype.scalar(), self.expr(a)?);
                x.iter().map(|x| self.b.cast(from, dtype, x, none)).collect()
            }
            ExprKind::Reinterpret(a) => {
                let (from, x) = (a.dtype.scalar(), self.expr(a)?);
                x.iter().map(|x| self.b.reinterpret(from, dtype, x, none)).collect()
            }
            ExprKind::Load { pointer, index, aligned } => {
                let at = self.scalar(index)?;
                let p = self.typed(pointer, dtype)?;
                let places = self.places(pointer, &p, &at, usize::from(e.dtype.lanes), *aligned)?;
                places.iter().map(|place| self.b.load(p.mem, place, none, &pointer.0)).collect()
            }
            ExprKind::Gather { pointer, index } => {
                let at = self.expr(index)?;
                let p = self.typed(pointer, dtype)?;
                let mut out = Vec::new();
                for lane in &at {
                    for place in self.places(pointer, &p, lane, 1, false)? {
                        out.push(self.b.load(p.mem, &place, none, &pointer.0)?);
                    }
                }
                Ok(out)
            }
            ExprKind::Broadcast(x) => Ok(vec![self.scalar(x)?; usize::from(e.dtype.lanes)]),
            ExprKind::Ramp(base, stride) => {
                let (base, stride) = (self.scalar(base)?, self.scalar(stride)?);
                let mut out = Vec::new();
                for lane in 0..i64::from(e.dtype.lanes) {
                    let step = self.b.binary(BinOp::Mul, dtype, &stride, &Lin::constant(lane), none)?;
                    out.push(self.b.binary(BinOp::Add, dtype, &base, &step, none)?);
                }
                Ok(out)
            }
            ExprKind::Call(f, args) => self.call(*f, args, dtype),
            ExprKind::CallExtern(name, _) => self.error(format!("extern function `{name}` cannot be interpreted")),
        }
    }

    fn typed(&self, pointer: &Local, dtype: DType) -> Result<Pointer, Diag> {
        let p = self.pointer(pointer)?;
        if p.mem.dtype != dtype {
            return self.error(format!("`{pointer}` of {} is read as {dtype}", p.mem.dtype));
        }
        Ok(p)
    }

    fn select(&mut self, dtype: DType, is_scalar: bool, [c, a, b]: [&Expr; 3]) -> Result<Lanes, Diag> {
        let c = self.expr(c)?;
        if let ([one], true) = (c.as_slice(), is_scalar) {
            return Ok(vec![self.lazy(dtype, one, |s| s.scalar(a), |s| s.scalar(b), can_fail(a) || can_fail(b))?]);
        }
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        let lane = |l: &Lanes, i: usize| l.get(if l.len() == 1 { 0 } else { i }).cloned();
        let mut out = Vec::new();
        for i in 0..x.len() {
            match (lane(&c, i), lane(&x, i), lane(&y, i)) {
                (Some(c), Some(x), Some(y)) => out.push(self.b.select(dtype, &c, &x, &y)),
                _ => return self.error("the operands of a select differ in lanes"),
            }
        }
        Ok(out)
    }

    fn call(&mut self, f: Intrinsic, args: &[Expr], dtype: DType) -> Result<Lanes, Diag> {
        if let (Intrinsic::IfThenElse, [c, a, b]) = (f, args) {
            return self.select(dtype, a.dtype.lanes == 1, [c, a, b]);
        }
        let dtypes: Vec<DType> = args.iter().map(|a| a.dtype.scalar()).collect();
        let lanes = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>, _>>()?;
        let count = lanes.iter().map(Vec::len).max().unwrap_or(1);
        let mut out = Vec::new();
        for i in 0..count {
            let one: Vec<Lin> = lanes.iter().filter_map(|l| l.get(if l.len() == 1 { 0 } else { i }).cloned()).collect();
            out.push(self.b.call(f, &one, &dtypes, Span::NONE)?);
        }
        Ok(out)
    }
}

/// Whether computing an expression may be an error.
fn can_fail(e: &Expr) -> bool {
    let own = match &e.kind {
        ExprKind::Load { .. } | ExprKind::Gather { .. } | ExprKind::CallExtern(..) => true,
        ExprKind::Binary(
            BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod | BinOp::Shl | BinOp::Shr,
            _,
            y,
        ) => e.dtype.is_integer() && !matches!(y.kind, ExprKind::Int(v) if v != 0),
        _ => false,
    };
    own || children(e).into_iter().any(can_fail)
}

fn children(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_) => Vec::new(),
        ExprKind::Binary(_, a, b)
        | ExprKind::Cmp(_, a, b)
        | ExprKind::And(a, b)
        | ExprKind::Or(a, b)
        | ExprKind::Ramp(a, b) => vec![a, b],
        ExprKind::Not(a) | ExprKind::Cast(a) | ExprKind::Reinterpret(a) | ExprKind::Broadcast(a) => vec![a],
        ExprKind::Load { index, .. } | ExprKind::Gather { index, .. } => vec![index],
        ExprKind::Select(a, b, c) => vec![a, b, c],
        ExprKind::Call(_, args) | ExprKind::CallExtern(_, args) => args.iter().collect(),
    }
}
