//! What a PrimFunc's loads and stores say about sharing memory: outputs that may overwrite an input, and functions
//! that only give elements another shape. All answers are conservative: "no" where nothing is proven.

use super::linear::elements;
use crate::tir_tools::{Access, accesses, analyzer_of, touches};
use tvm_ir::arith::Analyzer;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{Buffer, PrimExpr, PrimKind, visit};
use tvm_ir::tir::{Param, PrimFunc, Stmt, Store, visit_exprs, visit_stmt};

/// What is known of a kernel, from its PrimFunc.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct KernelFacts {
    /// `(output, input)`, counted among the buffers: both may be the same memory. The pointers of such a pair may
    /// not be declared free of aliases.
    pub(super) inplace: Vec<(usize, usize)>,
    /// One input, one output, and element `i` of the output in row-major order is element `i` of the input.
    pub(super) reshape: bool,
}

impl KernelFacts {
    /// Keeps what holds for both.
    pub(super) fn intersect(&mut self, other: &KernelFacts) {
        self.inplace.retain(|pair| other.inplace.contains(pair));
        self.reshape &= other.reshape;
    }

    /// Analyses a function as it is lowered.
    pub(super) fn of(f: &PrimFunc) -> KernelFacts {
        let mut facts = KernelFacts::default();
        if !is_plain(f) {
            return facts;
        }
        let analyzer = analyzer_of(f);
        let buffers: Vec<&Buffer> = f.buffers().collect();
        let parts = parts(&f.body);
        let all: Vec<Access> = parts.iter().flat_map(|p| accesses(p)).collect();
        for (o, y) in buffers.iter().enumerate() {
            for (i, x) in buffers.iter().enumerate() {
                if o != i && may_overwrite(&parts, &all, x, y, &analyzer) {
                    facts.inplace.push((o, i));
                }
            }
        }
        if let ([x, y], [part], false) =
            (&buffers[..], &parts[..], f.params.iter().any(|p| matches!(p, Param::Scalar(_))))
        {
            facts.reshape = is_reshape(part, x, y, &analyzer);
        }
        facts
    }
}

/// Whether everything it does to its buffers are loads and stores of compact arrays.
fn is_plain(f: &PrimFunc) -> bool {
    let mut plain = f.buffers().all(|b| b.strides.is_empty() && b.elem_offset.is_none());
    visit_stmt(&f.body, &mut |s| plain &= !matches!(s, Stmt::Evaluate(_) | Stmt::While(_)));
    visit_exprs(&f.body, &mut |e| plain &= !matches!(e.kind(), PrimKind::CallExtern(..)));
    plain
}

/// The statements of a body that run one after another.
fn parts(body: &Stmt) -> Vec<&Stmt> {
    match body {
        Stmt::Block(b) if b.iters.is_empty() && b.init.is_none() => parts(&b.body),
        Stmt::Seq(stmts) => stmts.iter().flat_map(parts).collect(),
        other => vec![other],
    }
}

/// Whether `y` may be the memory of `x`: each element of `x` is read for the last time before it is overwritten.
fn may_overwrite(parts: &[&Stmt], all: &[Access], x: &Buffer, y: &Buffer, analyzer: &Analyzer) -> bool {
    let writes = |b: &Buffer| all.iter().any(|a| a.write && a.buffer == *b);
    if writes(x) || !writes(y) || !all.iter().any(|a| a.buffer == *x) {
        return false;
    }
    let Some(first) = parts.iter().position(|p| touches(p, y)) else { return false };
    if parts[first + 1..].iter().any(|p| touches(p, x)) {
        return false;
    }
    !touches(parts[first], x) || elementwise(parts[first], x, y, analyzer)
}

/// Whether `part` has one store to `y`, run once for each of its elements, that alone reads `x`, at the same element.
///
/// A function writes every element of its outputs, so that a store that runs as often as there are elements writes
/// each once.
fn elementwise(part: &Stmt, x: &Buffer, y: &Buffer, analyzer: &Analyzer) -> bool {
    let whole = !x.dtype.is_packed() && !y.dtype.is_packed();
    whole && x.dtype.bytes() == y.dtype.bytes() && same_elements(part, x, y, analyzer)
}

/// [`elementwise`], whatever the elements are.
fn same_elements(part: &Stmt, x: &Buffer, y: &Buffer, analyzer: &Analyzer) -> bool {
    let of = |b: &Buffer, write: bool| accesses(part).iter().filter(|a| a.buffer == *b && a.write == write).count();
    let Some((store, runs)) = only_store(part, y) else { return false };
    let Some(at) = linear_index(y, &store.indices) else { return false };
    let mut reads = 0;
    let mut same = true;
    visit(&store.value, &mut |e| {
        if let PrimKind::Load(b, indices) = e.kind() {
            if b == x {
                reads += 1;
                same &= linear_index(x, indices).is_some_and(|i| analyzer.prove_equal(&i, &at));
            }
        }
    });
    same && of(y, false) == 0 && of(x, false) == reads && analyzer.prove_equal(&runs, &elements(&y.shape))
}

fn is_reshape(part: &Stmt, x: &Buffer, y: &Buffer, analyzer: &Analyzer) -> bool {
    let mut stores = 0;
    visit_stmt(part, &mut |s| stores += usize::from(matches!(s, Stmt::Store(_))));
    let copies = only_store(part, y).is_some_and(|(s, _)| matches!(s.value.kind(), PrimKind::Load(b, _) if b == x));
    stores == 1
        && copies
        && x.dtype == y.dtype
        && analyzer.prove_equal(&elements(&x.shape), &elements(&y.shape))
        && same_elements(part, x, y, analyzer)
}

/// The only store to a buffer, and how many elements it writes over all runs; `None` when there are several, or when
/// conditions stand around it.
fn only_store<'a>(s: &'a Stmt, y: &Buffer) -> Option<(&'a Store, PrimExpr)> {
    fn go<'a>(s: &'a Stmt, y: &Buffer, runs: &PrimExpr, found: &mut Vec<(&'a Store, PrimExpr)>) -> bool {
        let runs = match s {
            Stmt::For(l) => runs * l.extent.cast(DType::I64),
            Stmt::Store(s) if s.buffer == *y => {
                found.push((s, runs * PrimExpr::i64(i64::from(s.value.dtype().lanes))));
                return true;
            }
            Stmt::If(_) => return !touches(s, y),
            _ => runs.clone(),
        };
        s.children().into_iter().all(|c| go(c, y, &runs, found))
    }
    let mut found = Vec::new();
    let plain = go(s, y, &PrimExpr::i64(1), &mut found);
    if plain && found.len() == 1 { found.pop() } else { None }
}

/// The row-major element index; `None` when vector lanes or ranks do not allow to say.
fn linear_index(b: &Buffer, indices: &[PrimExpr]) -> Option<PrimExpr> {
    if indices.len() != b.shape.len() {
        return None;
    }
    let lanes = indices.iter().map(|i| i.dtype().lanes).max().unwrap_or(1);
    let wide = |e: &PrimExpr| {
        let e = e.cast(DType::I64.with_lanes(e.dtype().lanes));
        if lanes != 1 && e.dtype().lanes == 1 { e.broadcast(lanes) } else { e }
    };
    let zero = wide(&PrimExpr::i64(0));
    Some(indices.iter().zip(&b.shape).fold(zero, |at, (i, d)| at * wide(d) + wide(i)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{elementwise as stage, f32_buffer, function, fused_matmul_add_relu, matmul, transpose};

    fn int(v: i64) -> PrimExpr {
        PrimExpr::i64(v)
    }

    #[test]
    fn elementwise_inputs_may_be_overwritten() {
        let shape = [int(4), int(8)];
        let (a, b, row, out) =
            (f32_buffer("a", &shape), f32_buffer("b", &shape), f32_buffer("row", &shape[1..]), f32_buffer("o", &shape));
        let body = stage("add", &out, &[&a, &b, &row], |v| {
            PrimExpr::load(&a, v.to_vec()) + PrimExpr::load(&b, v.to_vec()) + PrimExpr::load(&row, vec![v[1].clone()])
        });
        let facts = KernelFacts::of(&function(&[&a, &b, &row, &out], Vec::new(), body));
        assert_eq!(facts, KernelFacts { inplace: vec![(3, 0), (3, 1)], reshape: false });
    }

    #[test]
    fn what_is_read_elsewhere_later_may_not() {
        assert_eq!(KernelFacts::of(&matmul(int(4), int(4), int(4))), KernelFacts::default());
        assert_eq!(KernelFacts::of(&transpose(int(4), int(4))), KernelFacts::default());
    }

    #[test]
    fn what_is_read_in_an_earlier_stage_may() {
        // All three inputs are read before the last stage writes the output.
        let facts = KernelFacts::of(&fused_matmul_add_relu(int(4), int(4), int(4)));
        assert_eq!(facts.inplace, [(3, 0), (3, 1), (3, 2)]);
    }

    #[test]
    fn a_loop_that_repeats_the_store_is_refused() {
        let shape = [int(4)];
        let (a, out) = (f32_buffer("a", &shape), f32_buffer("o", &shape));
        let body = stage("f", &out, &[&a], |v| PrimExpr::load(&a, v.to_vec()) + PrimExpr::float(DType::F32, 1.0));
        let again = Stmt::serial(tvm_ir::prim::Var::new("r", DType::I64), int(2), body.clone());
        assert_eq!(KernelFacts::of(&function(&[&a, &out], Vec::new(), again)).inplace, []);
        assert_eq!(KernelFacts::of(&function(&[&a, &out], Vec::new(), body)).inplace, [(1, 0)]);
    }

    #[test]
    fn reshapes_are_seen() {
        let n = tvm_ir::prim::Var::new("n", DType::I64).expr();
        for rows in [int(6), n] {
            let (a, out) = (f32_buffer("a", &[rows.clone(), int(4)]), f32_buffer("o", &[rows, int(2), int(2)]));
            let body = stage("reshape", &out, &[&a], |v| {
                let at = (v[0].clone() * 2 + v[1].clone()) * 2 + v[2].clone();
                PrimExpr::load(&a, vec![at.clone().floordiv(4), at.floormod(4)])
            });
            assert!(KernelFacts::of(&function(&[&a, &out], Vec::new(), body)).reshape);
        }
    }
}
