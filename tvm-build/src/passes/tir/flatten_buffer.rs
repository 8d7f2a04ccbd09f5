//! FlattenBuffer: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use crate::tir_tools::{analyzer_of, symbolic_vars};
use tvm_ir::arith::Analyzer;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{BinOp, Buffer, BufferNode, PrimExpr, PrimKind, rewrite};
use tvm_ir::target::Target;
use tvm_ir::tir::{Param, PrimFunc, Stmt, map_exprs, rewrite_stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "FlattenBuffer",
    doc: "buffers become one-dimensional; symbolic extents become scalar parameters",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, flatten_buffer),
};

/// Makes every buffer one-dimensional; strides and offset go into the index. The parameters become the flat buffers
/// in their order, then the symbolic variables of their shapes as scalars in order of first appearance, then the
/// scalar parameters: a signature of pointers and scalars alone. Blocks with regions must be lowered before.
pub(super) fn flatten_buffer(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    let analyzer = analyzer_of(&f);
    let mut flat = Flatten { analyzer: &analyzer, map: Vec::new(), error: None };
    let symbolic = symbolic_vars(&f).into_iter().map(|s| Param::Scalar(s.var));
    let (mut buffers, mut scalars) = (Vec::new(), Vec::new());
    for p in &f.params {
        match p {
            Param::Buffer(b) => buffers.push(Param::Buffer(flat.buffer(b))),
            Param::Scalar(_) => scalars.push(p.clone()),
        }
    }
    buffers.extend(symbolic);
    buffers.extend(scalars);
    f.params = buffers;
    f.body = flat.stmt(f.body);
    flat.error.map_or(Ok(f), Err)
}

struct Flatten<'a> {
    analyzer: &'a Analyzer,
    map: Vec<(Buffer, Buffer)>,
    error: Option<Diag>,
}

impl Flatten<'_> {
    fn stmt(&mut self, s: Stmt) -> Stmt {
        rewrite_stmt(s, &mut |s| match map_exprs(s, &mut |e| self.expr(e)) {
            Stmt::Store(mut s) => {
                s.indices = vec![self.index(&s.buffer, &s.indices)];
                s.buffer = self.buffer(&s.buffer);
                Stmt::Store(s)
            }
            Stmt::Block(mut b) => {
                if !b.reads.is_empty() || !b.writes.is_empty() {
                    self.error.get_or_insert_with(|| {
                        Diag::error(b.span, format!("block {} still has regions", b.name))
                            .help("run LowerOpaqueBlock before")
                    });
                }
                b.allocs.iter_mut().for_each(|a| *a = self.buffer(a));
                Stmt::Block(b)
            }
            other => other,
        })
    }

    fn expr(&mut self, e: &PrimExpr) -> PrimExpr {
        rewrite(e, &mut |n| match n.kind() {
            PrimKind::Load(b, i) => {
                let index = self.index(b, i);
                Some(PrimExpr::load(&self.buffer(b), vec![index]).with_span(n.span()))
            }
            _ => None,
        })
    }

    /// The flat buffer of a buffer.
    fn buffer(&mut self, b: &Buffer) -> Buffer {
        if let Some((_, flat)) = self.map.iter().find(|(from, to)| from == b || to == b) {
            return flat.clone();
        }
        let one = PrimExpr::i64(1);
        let len = match (b.strides.is_empty(), &b.elem_offset) {
            (true, None) => b.shape.iter().fold(one, |n, d| n * d),
            // The last element's place, plus one.
            (_, offset) => {
                let last: Vec<_> = b.shape.iter().map(|d| d - PrimExpr::int(d.dtype(), 1)).collect();
                let zero = offset.clone().unwrap_or_else(|| PrimExpr::i64(0));
                strides(b).iter().zip(last).fold(zero, |n, (s, i)| n + s * i) + one
            }
        };
        let flat = Buffer::from_node(BufferNode {
            shape: vec![self.analyzer.simplify(&len)],
            strides: Vec::new(),
            elem_offset: None,
            ..b.node().clone()
        });
        self.map.push((b.clone(), flat.clone()));
        flat
    }

    fn index(&mut self, b: &Buffer, indices: &[PrimExpr]) -> PrimExpr {
        if b.strides.is_empty() && b.elem_offset.is_none() {
            return self.analyzer.simplify(&compact_index(&b.shape, indices));
        }
        let start = b.elem_offset.clone();
        let terms = indices.iter().zip(strides(b)).map(|(i, s)| i * s);
        let sum = start.into_iter().chain(terms).reduce(|a, b| a + b);
        self.analyzer.simplify(&sum.unwrap_or_else(|| PrimExpr::i64(0)))
    }
}

/// Strides in elements, computed for compact buffers.
fn strides(b: &Buffer) -> Vec<PrimExpr> {
    if !b.strides.is_empty() {
        return b.strides.clone();
    }
    let mut out = Vec::with_capacity(b.shape.len());
    let mut step: Option<PrimExpr> = None;
    for d in b.shape.iter().rev() {
        let s = step.take().unwrap_or_else(|| PrimExpr::int(d.dtype(), 1));
        step = Some(&s * d);
        out.push(s);
    }
    out.reverse();
    out
}

/// The place of an element of a compact buffer. `x // n` and `x % n` in dimensions beside each other, the second of
/// extent `n`, come together as `x`: `n` is not 0 where there is an element.
fn compact_index(shape: &[PrimExpr], indices: &[PrimExpr]) -> PrimExpr {
    let mut sum: Vec<PrimExpr> = Vec::new();
    for (extent, index) in shape.iter().zip(indices) {
        let mut within = summands(index);
        let mut whole = Vec::new();
        sum.retain(|outer| {
            let PrimKind::Binary(BinOp::FloorDiv, x, n) = outer.kind() else { return true };
            let rest = within.iter().position(
                |i| matches!(i.kind(), PrimKind::Binary(BinOp::FloorMod, y, m) if y == x && m == n && n == extent),
            );
            if let Some(at) = rest {
                within.remove(at);
                whole.push(x.clone());
            }
            rest.is_none()
        });
        sum.iter_mut().for_each(|e| *e = &*e * extent);
        sum.extend(whole.into_iter().chain(within));
    }
    sum.into_iter().reduce(|a, b| a + b).unwrap_or_else(|| PrimExpr::i64(0))
}

fn summands(e: &PrimExpr) -> Vec<PrimExpr> {
    match e.kind() {
        PrimKind::Binary(BinOp::Add, a, b) => summands(a).into_iter().chain(summands(b)).collect(),
        _ => vec![e.clone()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tvm_ir::dtype::DType;
    use tvm_ir::prim::Var;

    #[test]
    fn symbolic_extents_become_scalars() {
        let (n, m) = (Var::new("n", DType::I64), Var::new("m", DType::I64));
        let a = Buffer::new("a", vec![n.expr(), m.expr()], DType::F32);
        let i = Var::new("i", DType::I64);
        let f = PrimFunc {
            params: vec![Param::Buffer(a.clone())],
            attrs: Default::default(),
            body: Stmt::serial(
                i.clone(),
                n.expr(),
                Stmt::store(&a, vec![i.expr(), PrimExpr::i64(2)], PrimExpr::float(DType::F32, 1.0)),
            ),
            span: Default::default(),
        };
        let f = flatten_buffer(f, &Target::default()).unwrap();
        assert_eq!(f.params[1..], [Param::Scalar(n), Param::Scalar(m.clone())]);
        let Stmt::For(l) = &f.body else { panic!("{:?}", f.body) };
        let Stmt::Store(s) = &l.body else { panic!("{:?}", l.body) };
        let analyzer = Analyzer::new();
        assert!(analyzer.prove_equal(&s.indices[0], &analyzer.simplify(&(i.expr() * m.expr() + 2))));
    }
    /// `a[i, x // m, x % m]` of shape `(n, k, m)`
    #[test]
    fn fused_indices_come_together() {
        let [n, k, m, i, x] = ["n", "k", "m", "i", "x"].map(|v| Var::new(v, DType::I64).expr());
        let shape = [n, k.clone(), m.clone()];
        let at = [i.clone(), x.clone().floordiv(m.clone()), x.clone().floormod(m.clone())];
        let want = i * k * &m + &x;
        let analyzer = Analyzer::new();
        assert!(analyzer.prove_equal(&compact_index(&shape, &at), &want));
        // Another modulus is another place.
        let other = [at[0].clone(), at[1].clone(), x.floormod(PrimExpr::i64(3))];
        assert!(!analyzer.prove_equal(&compact_index(&shape, &other), &want));
    }
}
