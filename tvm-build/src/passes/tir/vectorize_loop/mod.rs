//! VectorizeLoop: see [`PASS`].

mod lanes;

use super::each_prim_func;
use crate::pass::Pass;
use crate::tir_tools::{analyzer_of, freshen};
use lanes::Lanes;
use tvm_ir::arith::Analyzer;
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, PrimKind, Range, Substitution, Var, free_vars};
use tvm_ir::target::Target;
use tvm_ir::tir::{For, ForKind, PrimFunc, Stmt, rewrite_stmt, substitute_stmt, visit_exprs, visit_stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "VectorizeLoop",
    doc: "loops marked vectorized become vector expressions",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, vectorize_loop),
};

/// Annotation of a loop that stays serial; its value is the reason.
pub(super) const NOT_VECTORIZED: &str = "not vectorized";

/// With more vectors than this the loop over them stays a loop.
const MAX_UNROLLED: i64 = 16;

/// Replaces loops marked vectorized by vector expressions. A loop longer than the target's vectors (by the widest
/// element it accesses) becomes whole vectors, then vectors of 1/2, 1/4 … of the lanes for a constant rest, or a
/// scalar loop for a symbolic one. A loop that has no vector form stays serial, annotated with the reason.
/// Buffers must be flat.
pub(super) fn vectorize_loop(mut f: PrimFunc, target: &Target) -> Result<PrimFunc, Diag> {
    let analyzer = analyzer_of(&f);
    f.body = rewrite_stmt(f.body, &mut |s| match s {
        Stmt::For(l) if l.kind == ForKind::Vectorized => vectorize(*l, target, &analyzer),
        other => other,
    });
    Ok(f)
}

fn vectorize(mut l: For, target: &Target, analyzer: &Analyzer) -> Stmt {
    l.kind = ForKind::Serial;
    let max_lanes = max_lanes(&l, target);
    if max_lanes < 2 {
        return Stmt::For(Box::new(l));
    }
    match pieces(&l, max_lanes, analyzer) {
        Ok(s) => s,
        Err(reason) => {
            l.annotations.insert(NOT_VECTORIZED.into(), AttrValue::Str(reason.into()));
            Stmt::For(Box::new(l))
        }
    }
}

/// Lanes of the target's vectors for the widest element that the loop accesses.
fn max_lanes(l: &For, target: &Target) -> i64 {
    let mut bytes = 1u64;
    let uses = |indices: &[PrimExpr]| indices.iter().any(|i| free_vars(i).contains(&l.var));
    visit_exprs(&l.body, &mut |e| {
        if let PrimKind::Load(b, i) = e.kind() {
            if uses(i) {
                bytes = bytes.max(b.dtype.bytes());
            }
        }
    });
    visit_stmt(&l.body, &mut |s| {
        if let Stmt::Store(s) = s {
            if uses(&s.indices) {
                bytes = bytes.max(s.buffer.dtype.bytes());
            }
        }
    });
    let lanes = u64::from(target.vector_bytes) / bytes.max(1);
    if lanes.is_power_of_two() { i64::try_from(lanes).unwrap_or(0) } else { 0 }
}

/// The loop as vectors. Errors say why there is no vector form.
fn pieces(l: &For, max_lanes: i64, analyzer: &Analyzer) -> Result<Stmt, String> {
    let int = |v: i64| PrimExpr::int(l.extent.dtype(), v);
    let mut out = Vec::new();
    let vectors = l.extent.clone().floordiv(int(max_lanes));
    let few = vectors.as_int().is_some_and(|v| v <= MAX_UNROLLED);
    let mut done = int(0);
    if !few {
        let chunk = Var::new(format!("{}_v", l.var.name()), l.var.dtype());
        let mut inner = analyzer.clone();
        inner.bind_range(&chunk, Range::to(vectors.clone()));
        let start = chunk.expr() * max_lanes;
        out.push(Stmt::serial(chunk, vectors.clone(), piece(l, &start, max_lanes, &inner)?));
        done = vectors * max_lanes;
    }
    let Some(extent) = l.extent.as_int() else {
        // What is left of a symbolic extent.
        let mut rest = l.clone();
        rest.min = &l.min + &done;
        rest.extent = l.extent.clone().floormod(int(max_lanes));
        out.push(freshen(&Stmt::For(Box::new(rest))));
        return Ok(Stmt::seq(out));
    };
    let mut done = done.as_int().unwrap_or(0);
    let mut lanes = max_lanes;
    while done < extent {
        while lanes > extent - done {
            lanes /= 2;
        }
        out.push(piece(l, &int(done), lanes, analyzer)?);
        done += lanes;
    }
    Ok(Stmt::seq(out))
}

/// Iterations `start .. start + lanes` as one vector.
fn piece(l: &For, start: &PrimExpr, lanes: i64, analyzer: &Analyzer) -> Result<Stmt, String> {
    let body = freshen(&l.body);
    let base = (&l.min + start).cast(l.var.dtype());
    if lanes == 1 {
        return Ok(substitute_stmt(body, &Substitution::var(&l.var, base)));
    }
    let lanes = u16::try_from(lanes).map_err(|_| "too many lanes".to_string())?;
    Lanes::new(&l.var, base, lanes, analyzer).stmt(body)
}

#[cfg(test)]
mod tests;
