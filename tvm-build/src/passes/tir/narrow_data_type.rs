//! NarrowDataType: see [`PASS`].

use super::each_prim_func;
use crate::pass::Pass;
use crate::tir_tools::analyzer_of;
use std::collections::BTreeMap;
use tvm_ir::arith::Analyzer;
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{PrimExpr, PrimKind, Var};
use tvm_ir::target::Target;
use tvm_ir::tir::{Param, PrimFunc, Stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "NarrowDataType",
    doc: "int64 index arithmetic becomes int32 where it is proven to fit",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, narrow_data_type),
};

/// Loop variables whose values are known to fit become `int32`, and so does the index arithmetic on them whose every
/// intermediate result is known to fit; where a wider value meets it, the narrow one is extended. Symbolic extents
/// stay as they are. Blocks must be lowered (allocations aside).
pub(super) fn narrow_data_type(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    let mut n = Narrow { analyzer: analyzer_of(&f), vars: BTreeMap::new() };
    f.body = n.stmt(f.body);
    // Flat parameters are indexed by either type: nothing to do for them.
    debug_assert!(f.params.iter().all(|p| !matches!(p, Param::Scalar(v) if n.vars.contains_key(v))));
    Ok(f)
}

struct Narrow {
    /// Knows the range of every loop.
    analyzer: Analyzer,
    /// Narrowed loop variables.
    vars: BTreeMap<Var, Var>,
}

impl Narrow {
    fn stmt(&mut self, s: Stmt) -> Stmt {
        match s {
            Stmt::For(mut l) => {
                let end = &l.min + &l.extent;
                if l.var.dtype() == DType::I64 && self.fits(&l.min) && self.fits(&end) {
                    let (min, extent) = (self.narrow(&l.min), self.narrow(&l.extent));
                    if min.dtype() == DType::I32 && extent.dtype() == DType::I32 {
                        let var = Var::at(l.var.name(), DType::I32, l.var.span());
                        self.vars.insert(l.var.clone(), var.clone());
                        (l.var, l.min, l.extent) = (var, min, extent);
                        l.body = self.stmt(l.body);
                        return Stmt::For(l);
                    }
                }
                l.min = self.same_type(&l.min);
                l.extent = self.same_type(&l.extent);
                l.body = self.stmt(l.body);
                Stmt::For(l)
            }
            Stmt::Store(mut s) => {
                s.indices = s.indices.iter().map(|i| self.narrow(i)).collect();
                s.value = self.same_type(&s.value);
                Stmt::Store(s)
            }
            other => {
                let mapped = tvm_ir::tir::map_exprs(other, &mut |e| self.same_type(e));
                mapped.map_children(&mut |c| self.stmt(c))
            }
        }
    }

    /// The expression with narrow arithmetic inside, of its own type.
    fn same_type(&self, e: &PrimExpr) -> PrimExpr {
        let n = self.narrow(e);
        if n.dtype() == e.dtype() { n } else { n.cast(e.dtype()) }
    }

    /// The expression, of type `int32` (with its lanes) when it was `int64` and fits with all of its parts.
    fn narrow(&self, e: &PrimExpr) -> PrimExpr {
        let small = DType::I32.with_lanes(e.dtype().lanes);
        let is_i64 = e.dtype().scalar() == DType::I64;
        match e.kind() {
            PrimKind::Var(v) => self.vars.get(v).map_or_else(|| e.clone(), Var::expr),
            PrimKind::Int(v) if is_i64 && i32::try_from(*v).is_ok() => PrimExpr::int(small, *v),
            PrimKind::Binary(op, a, b) if is_i64 => {
                let (x, y) = (self.narrow(a), self.narrow(b));
                if x.dtype() == small && y.dtype() == small && self.fits(e) {
                    PrimExpr::binary(*op, x, y)
                } else {
                    PrimExpr::binary(*op, x.cast(e.dtype()), y.cast(e.dtype()))
                }
            }
            PrimKind::Cmp(op, a, b) if a.dtype().scalar() == DType::I64 => {
                let (x, y) = (self.narrow(a), self.narrow(b));
                if x.dtype() == y.dtype() {
                    PrimExpr::cmp(*op, x, y)
                } else {
                    PrimExpr::cmp(*op, x.cast(a.dtype()), y.cast(b.dtype()))
                }
            }
            PrimKind::Ramp(a, s) if is_i64 => {
                let (x, y) = (self.narrow(a), self.narrow(s));
                let last = s.as_int().map(|s| a + &PrimExpr::i64(s.saturating_mul(i64::from(e.dtype().lanes) - 1)));
                let fits = last.is_some_and(|l| self.fits(&l));
                if fits && x.dtype() == DType::I32 && y.dtype() == DType::I32 {
                    PrimExpr::ramp(x, y, e.dtype().lanes)
                } else {
                    PrimExpr::ramp(x.cast(DType::I64), y.cast(DType::I64), e.dtype().lanes)
                }
            }
            PrimKind::Broadcast(a) => self.narrow(a).broadcast(e.dtype().lanes),
            PrimKind::Load(b, indices) => {
                PrimExpr::load(b, indices.iter().map(|i| self.narrow(i)).collect()).with_span(e.span())
            }
            PrimKind::Cast(a) => self.same_or_cast(a, e.dtype()),
            _ => e.map_children(&mut |c| self.same_type(c)),
        }
    }

    fn same_or_cast(&self, a: &PrimExpr, to: DType) -> PrimExpr {
        let n = self.narrow(a);
        // An exact value may be converted from its narrow form.
        if a.dtype().scalar() == DType::I64 || n.dtype() == a.dtype() { n.cast(to) } else { self.same_type(a).cast(to) }
    }

    /// Whether a scalar value is known to fit `int32`.
    fn fits(&self, e: &PrimExpr) -> bool {
        let b = self.analyzer.bounds(e);
        i32::try_from(b.min).is_ok() && i32::try_from(b.max).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tvm_ir::prim::Buffer;

    fn narrowed_index(extent: PrimExpr, stride: i64) -> Option<DType> {
        let a = Buffer::new("a", vec![PrimExpr::i64(1)], DType::F32);
        let i = Var::new("i", DType::I64);
        let store = Stmt::store(&a, vec![i.expr() * stride], PrimExpr::float(DType::F32, 0.0));
        let body = Stmt::serial(i, extent, store);
        let f = PrimFunc { params: vec![Param::Buffer(a)], attrs: Default::default(), body, span: Default::default() };
        let f = narrow_data_type(f, &Target::default()).unwrap();
        let mut found = None;
        tvm_ir::tir::visit_stmt(&f.body, &mut |s| {
            if let Stmt::Store(s) = s {
                found = Some(s.indices[0].dtype());
            }
        });
        found
    }

    #[test]
    fn only_what_fits() {
        assert_eq!(narrowed_index(PrimExpr::i64(10), 3), Some(DType::I32));
        assert_eq!(narrowed_index(PrimExpr::i64(1 << 30), 3), Some(DType::I64));
        assert_eq!(narrowed_index(PrimExpr::i64(1 << 40), 1), Some(DType::I64));
        assert_eq!(narrowed_index(Var::new("n", DType::I64).expr(), 1), Some(DType::I64));
    }
}
