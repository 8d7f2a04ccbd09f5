//! How a PrimFunc takes part in fusion, seen from its blocks (TVM's `AnalyzeOpPatternKind`).

use tvm_ir::prim::{BinOp, Buffer, PrimExpr, PrimKind, Var, visit};
use tvm_ir::relax::Pattern;
use tvm_ir::tir::{Block, IterKind, PrimFunc, Stmt, Store};

/// The kind of a PrimFunc: from the index pattern of each block, the reductions, and how they combine.
pub(crate) fn analyze(f: &PrimFunc) -> Pattern {
    let mut a = Analyzer {
        params: f.buffers().cloned().collect(),
        kind: Pattern::ElemWise,
        blocks: false,
        store: None,
        loads: Vec::new(),
    };
    a.stmt(&f.body);
    // Loops without blocks say nothing of their indices.
    if a.blocks { a.kind } else { Pattern::Opaque }
}

struct Analyzer {
    params: Vec<Buffer>,
    kind: Pattern,
    /// Whether there is a block below the root.
    blocks: bool,
    store: Option<Store>,
    loads: Vec<(Buffer, Vec<PrimExpr>)>,
}

impl Analyzer {
    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Block(b) => return self.block(b),
            // It may fail: it stays where it is.
            Stmt::Assert(_) => {
                self.kind = Pattern::Opaque;
                return;
            }
            Stmt::Store(store) => {
                // One store in a block, as compute definitions have; several to other places are opaque.
                if self.store.as_ref().is_some_and(|first| !same_vars(&first.indices, &store.indices)) {
                    self.kind = Pattern::Opaque;
                    return;
                }
                self.store = Some((**store).clone());
            }
            _ => {}
        }
        for e in s.exprs() {
            visit(e, &mut |e| {
                if let PrimKind::Load(b, indices) = e.kind() {
                    self.loads.push((b.clone(), indices.clone()));
                }
            });
        }
        s.children().into_iter().for_each(|c| self.stmt(c));
    }

    fn block(&mut self, b: &Block) {
        if &*b.name == "root" {
            return self.stmt(&b.body);
        }
        self.blocks = true;
        self.loads.clear();
        self.store = None;
        self.stmt(&b.body);
        let Some(store) = self.store.clone() else {
            self.kind = Pattern::Opaque;
            return;
        };
        if let Some(pattern) = index_pattern(&store, &self.loads) {
            // Softmax: a reduction, then a map over its result.
            let writes_param = b.writes.iter().any(|w| self.params.contains(&w.buffer));
            self.kind = if writes_param && self.kind == Pattern::CommReduce {
                Pattern::OutEWiseFusable
            } else {
                self.kind.max(pattern)
            };
            return;
        }
        let reduce: Vec<&Var> = b.iters.iter().filter(|i| i.kind == IterKind::Reduce).map(|i| &i.var).collect();
        if reduce.is_empty() {
            self.kind = Pattern::Opaque;
        } else if is_multiply_add(&b.body) || self.loads.iter().any(|(_, i)| !is_pure_reduce(&reduce, i)) {
            // Products (matmul, conv) and windows (pooling).
            self.kind = self.kind.max(Pattern::OutEWiseFusable);
        } else {
            self.kind = self.kind.max(Pattern::CommReduce);
        }
    }
}

fn same_var(a: &PrimExpr, b: &PrimExpr) -> bool {
    matches!((a.as_var(), b.as_var()), (Some(a), Some(b)) if a == b)
}

fn same_vars(a: &[PrimExpr], b: &[PrimExpr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_var(a, b))
}

/// Element-wise, broadcast or injective; `None` when some load is none of them.
fn index_pattern(store: &Store, loads: &[(Buffer, Vec<PrimExpr>)]) -> Option<Pattern> {
    let mut pattern = Pattern::ElemWise;
    let mut has_elemwise = false;
    for (buffer, indices) in loads {
        if same_vars(&store.indices, indices) {
            has_elemwise = true;
        } else if is_broadcast(store, buffer, indices) {
            pattern = pattern.max(Pattern::Broadcast);
        } else if is_injective(store, indices) {
            pattern = pattern.max(Pattern::Injective);
        } else {
            return None;
        }
    }
    // `A[i, j] = B[i, j] + C[j]` counts as element-wise.
    Some(if pattern == Pattern::Broadcast && has_elemwise { Pattern::ElemWise } else { pattern })
}

/// The load's indices are among the store's, in order; unit dimensions at 0 do not count.
fn is_broadcast(store: &Store, buffer: &Buffer, indices: &[PrimExpr]) -> bool {
    let mut rest = store.indices.iter();
    indices.iter().enumerate().all(|(i, index)| {
        let unit = index.is_int(0) && buffer.shape.get(i).is_some_and(|d| d.is_int(1));
        if unit {
            return true;
        }
        // The position found stays available: `A[i] = B[i, i]` is a broadcast too, as upstream has it.
        let mut ahead = rest.clone();
        loop {
            let here = ahead.clone();
            match ahead.next() {
                Some(s) if same_var(s, index) => {
                    rest = here;
                    return true;
                }
                Some(_) => {}
                None => return false,
            }
        }
    })
}

fn store_vars(store: &Store) -> Option<Vec<&Var>> {
    store.indices.iter().map(PrimExpr::as_var).collect()
}

/// The load's index expressions use variables of the store's indices alone, and no other buffer.
fn is_injective(store: &Store, indices: &[PrimExpr]) -> bool {
    let Some(vars) = store_vars(store) else { return false };
    let mut ok = true;
    for index in indices {
        visit(index, &mut |e| match e.kind() {
            PrimKind::Var(v) => ok &= vars.contains(&v),
            PrimKind::Load(..) => ok = false,
            _ => {}
        });
    }
    ok
}

/// Each reduction variable that an index uses is the whole index.
fn is_pure_reduce(reduce: &[&Var], indices: &[PrimExpr]) -> bool {
    indices.iter().all(|index| {
        let mut used = false;
        visit(index, &mut |e| used |= e.as_var().is_some_and(|v| reduce.contains(&v)));
        !used || index.as_var().is_some()
    })
}

fn remove_cast(e: &PrimExpr) -> &PrimExpr {
    match e.kind() {
        PrimKind::Cast(inner) => remove_cast(inner),
        _ => e,
    }
}

/// `C[i, j] = C[i, j] + A[i, k] * B[k, j]`, each factor free of some index of the store.
fn is_multiply_add(body: &Stmt) -> bool {
    let Stmt::Store(store) = body else { return false };
    let PrimKind::Binary(BinOp::Add, acc, product) = remove_cast(&store.value).kind() else { return false };
    let PrimKind::Binary(BinOp::Mul, a, b) = remove_cast(product).kind() else { return false };
    let PrimKind::Load(buffer, indices) = remove_cast(acc).kind() else { return false };
    if *buffer != store.buffer || !same_vars(indices, &store.indices) {
        return false;
    }
    let reuses = |e: &PrimExpr| {
        let PrimKind::Load(_, indices) = remove_cast(e).kind() else { return false };
        let Some(vars) = store_vars(store) else { return false };
        vars.into_iter().any(|v| {
            let mut used = false;
            indices.iter().for_each(|i| visit(i, &mut |e| used |= e.as_var() == Some(v)));
            !used
        })
    };
    reuses(a) && reuses(b)
}
