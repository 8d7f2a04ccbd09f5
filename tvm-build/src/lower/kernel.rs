//! A flat PrimFunc to a lowered kernel.

use super::expr::{When, flat_index};
use super::hoist::hoist_scalar_arithmetic;
use super::names::{Identifiers, Role};
use super::storage::{Place, Storage, plan};
use std::collections::BTreeMap;
use tvm_ir::diag::Diag;
use tvm_ir::lowered::{Kernel, Local, LoopKind, Param as KernelParam, Space, Stmt as Low};
use tvm_ir::name::Name;
use tvm_ir::prim::{Buffer, Intrinsic, PrimExpr, PrimKind, Var};
use tvm_ir::tir::{AssertStmt, Block, For, ForKind, Param, PrimFunc, Stmt, Store, visit_stmt};

/// Lowers a function that the TIR lowering passes have flattened. `symbol` is the kernel's name, `origin` goes into
/// comments. Errors name what has no lowered form.
pub fn to_kernel(f: &PrimFunc, symbol: Name, origin: &str) -> Result<Kernel, Diag> {
    let storage = plan(&f.body)?;
    let mut l = Lower {
        storage: &storage,
        ids: Identifiers::new(),
        vars: BTreeMap::new(),
        pointers: Vec::new(),
        messages: Vec::new(),
    };
    let noalias = f.attrs.get("tir.noalias").and_then(tvm_ir::attrs::AttrValue::as_bool).unwrap_or(false);
    let mut pointers = Vec::new();
    let mut scalars = Vec::new();
    for p in &f.params {
        match p {
            Param::Buffer(b) => {
                let var = l.declare_pointer(b);
                pointers.push(KernelParam::Pointer { var, dtype: b.dtype, written: is_written(&f.body, b), noalias });
            }
            Param::Scalar(v) => {
                let var = Local(l.ids.fresh(Role::Scalar, v.name()));
                l.vars.insert(v.clone(), var.clone());
                scalars.push(KernelParam::Scalar { var, dtype: v.dtype() });
            }
        }
    }
    let arguments: Vec<Local> = scalars.iter().map(|p| variable(p).clone()).collect();
    pointers.extend(scalars);
    let mut body = Vec::new();
    l.stmt(&f.body, &mut body)?;
    let body = hoist_scalar_arithmetic(body, &arguments, &mut l.ids);
    Ok(Kernel {
        name: symbol,
        origin: origin.into(),
        params: pointers,
        body,
        workspace: storage.workspace,
        messages: l.messages,
    })
}

fn variable(p: &KernelParam) -> &Local {
    match p {
        KernelParam::Pointer { var, .. } | KernelParam::Scalar { var, .. } => var,
    }
}

fn is_written(body: &Stmt, b: &Buffer) -> bool {
    let mut written = false;
    visit_stmt(body, &mut |s| written |= matches!(s, Stmt::Store(s) if s.buffer == *b));
    written
}

/// The lowering of one function.
pub(super) struct Lower<'a> {
    storage: &'a Storage,
    ids: Identifiers,
    vars: BTreeMap<Var, Local>,
    pointers: Vec<(Buffer, Local)>,
    messages: Vec<String>,
}

impl Lower<'_> {
    /// The local of a variable that is bound around.
    pub(super) fn var(&self, v: &Var) -> Result<Local, Diag> {
        self.vars
            .get(v)
            .cloned()
            .ok_or_else(|| Diag::error(v.span(), format!("variable {} is not bound where it is used", v.name())))
    }

    /// A new local for a loop or let variable.
    pub(super) fn declare(&mut self, v: &Var) -> Local {
        let local = Local(self.ids.fresh(Role::Variable, v.name()));
        self.vars.insert(v.clone(), local.clone());
        local
    }

    /// The local of a buffer that is a parameter or allocated around.
    pub(super) fn pointer(&self, b: &Buffer) -> Result<Local, Diag> {
        self.pointers.iter().rev().find(|(x, _)| x == b).map(|(_, l)| l.clone()).ok_or_else(|| {
            Diag::error(b.span, format!("buffer {} is neither a parameter nor allocated where it is used", b.name))
        })
    }

    fn declare_pointer(&mut self, b: &Buffer) -> Local {
        let local = Local(self.ids.fresh(Role::Pointer, &b.name));
        self.pointers.push((b.clone(), local.clone()));
        local
    }

    fn stmt(&mut self, s: &Stmt, out: &mut Vec<Low>) -> Result<(), Diag> {
        match s {
            Stmt::Seq(stmts) => stmts.iter().try_for_each(|s| self.stmt(s, out)),
            Stmt::For(l) => self.for_loop(l, out),
            Stmt::Block(b) => self.block(b, out),
            Stmt::Store(s) => self.store(s, out),
            Stmt::Let(l) => {
                let value = self.expr(&l.value, When::Always, out)?;
                let var = self.declare(&l.var);
                out.push(Low::Let { var, value });
                self.stmt(&l.body, out)
            }
            Stmt::If(i) => {
                let cond = self.expr(&i.cond, When::Always, out)?;
                let then = self.stmts(&i.then)?;
                let otherwise = i.otherwise.as_ref().map(|s| self.stmts(s)).transpose()?.unwrap_or_default();
                out.push(Low::If { cond, then, otherwise });
                Ok(())
            }
            Stmt::While(w) => {
                let cond = self.expr(&w.cond, When::Maybe, out)?;
                let body = self.stmts(&w.body)?;
                out.push(Low::While { cond, body });
                Ok(())
            }
            Stmt::Assert(a) => self.assert(a, out),
            Stmt::Evaluate(e) => self.evaluate(e, out),
        }
    }

    fn stmts(&mut self, s: &Stmt) -> Result<Vec<Low>, Diag> {
        let mut out = Vec::new();
        self.stmt(s, &mut out)?;
        Ok(out)
    }

    fn for_loop(&mut self, l: &For, out: &mut Vec<Low>) -> Result<(), Diag> {
        for (key, note) in &l.annotations {
            if let Some(text) = note.as_str() {
                out.push(Low::Comment(format!("{key}: {text}")));
            }
        }
        let min = self.expr(&l.min, When::Always, out)?;
        let extent = self.expr(&l.extent, When::Always, out)?;
        let var = self.declare(&l.var);
        let kind = match &l.kind {
            // A loop that VectorizeLoop left says why in an annotation.
            ForKind::Serial | ForKind::Vectorized => LoopKind::Serial,
            ForKind::Unrolled => LoopKind::UnrollHint,
            ForKind::Parallel => LoopKind::Parallel,
            ForKind::ThreadBinding(axis) => LoopKind::Thread(axis.clone()),
        };
        let body = self.stmts(&l.body)?;
        out.push(Low::For { var, dtype: l.var.dtype(), min, extent, kind, body });
        Ok(())
    }

    fn block(&mut self, b: &Block, out: &mut Vec<Low>) -> Result<(), Diag> {
        if !b.iters.is_empty() || b.init.is_some() || !b.predicate.is_int(1) {
            return Err(
                Diag::error(b.span, format!("block {} is not lowered", b.name)).help("run LowerOpaqueBlock before")
            );
        }
        for a in &b.allocs {
            let var = self.declare_pointer(a);
            let place =
                self.storage.place(a).ok_or_else(|| Diag::error(a.span, format!("buffer {} has no place", a.name)))?;
            out.push(match place {
                Place::Array { len, space } => Low::Array { var, dtype: a.dtype, len, space },
                Place::Workspace { offset } => Low::Workspace { var, dtype: a.dtype, offset },
            });
        }
        self.stmt(&b.body, out)
    }

    fn store(&mut self, s: &Store, out: &mut Vec<Low>) -> Result<(), Diag> {
        let pointer = self.pointer(&s.buffer)?;
        let index = flat_index(&s.buffer, &s.indices)?;
        let start = match index.kind() {
            PrimKind::Ramp(base, stride) if stride.is_int(1) => base,
            _ if index.dtype().lanes == 1 => index,
            _ => {
                return Err(Diag::error(
                    s.span,
                    format!("a vector is stored to scattered elements of {}", s.buffer.name),
                )
                .help("vectorize the loop whose variable is the last index"));
            }
        };
        let lanes = (index.dtype().lanes, s.value.dtype().lanes);
        if lanes.0 != lanes.1 {
            return Err(Diag::error(
                s.span,
                format!("{} lanes are stored to {} elements of {}", lanes.1, lanes.0, s.buffer.name),
            ));
        }
        let index = self.expr(start, When::Always, out)?;
        let value = self.expr(&s.value, When::Always, out)?;
        out.push(Low::Store { pointer, index, value, aligned: false });
        Ok(())
    }

    fn assert(&mut self, a: &AssertStmt, out: &mut Vec<Low>) -> Result<(), Diag> {
        let cond = self.expr(&a.cond, When::Always, out)?;
        self.messages.push(a.message.to_string());
        let code = u32::try_from(self.messages.len())
            .map_err(|_| Diag::error(tvm_ir::span::Span::NONE, "too many assertions in one function"))?;
        out.push(Low::Assert { cond, code });
        Ok(())
    }

    fn evaluate(&mut self, e: &PrimExpr, out: &mut Vec<Low>) -> Result<(), Diag> {
        if let PrimKind::Call(Intrinsic::StorageSync, args) = e.kind() {
            let scope = args.first().map(PrimExpr::kind);
            let space = match scope {
                Some(PrimKind::Str(s)) if &**s == "shared" => Space::Shared,
                _ => Space::Local,
            };
            out.push(Low::Barrier(space));
            return Ok(());
        }
        let e = self.expr(e, When::Always, out)?;
        out.push(Low::Evaluate(e));
        Ok(())
    }
}
