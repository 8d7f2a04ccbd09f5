//! LegalizePackedTypes: see [`PASS`].

mod loops;
mod values;

use super::each_prim_func;
use crate::pass::Pass;
use crate::tir_tools::analyzer_of;
use loops::owns_bytes;
use std::collections::BTreeMap;
use tvm_ir::arith::Analyzer;
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::prim::{BinOp, Buffer, BufferNode, PrimExpr, Var};
use tvm_ir::target::Target;
use tvm_ir::tir::{For, ForKind, Param, PrimFunc, Stmt, Store, map_exprs, visit_stmt};

/// The pass.
pub(super) static PASS: Pass = Pass {
    name: "LegalizePackedTypes",
    doc: "buffers of 4- and 2-bit elements become bytes, arithmetic on such elements int8 or float32",
    params: &[],
    run: |module, cx| each_prim_func(module, cx.target, legalize_packed_types),
};

/// Annotation of a loop that was parallel; its value is the reason.
const NOT_PARALLEL: &str = "not parallel";

/// Buffers of packed types (`int4`, `uint2`, `float4_e2m1fn`, …) become buffers of `uint8`, the first element of a byte
/// in its lowest bits. A load shifts and masks; a store reads its byte and puts it back with its bits replaced, which
/// leaves the neighbours whole as long as no other iteration is at work on the byte: loops marked vectorized over such
/// stores become serial, and so do parallel ones unless each iteration is proven to own the bytes it writes.
/// Values of packed types are computed in `int8`, `uint8` or `float32` and wrapped or rounded after each operation, as
/// the type would. Buffers must be flat.
pub(super) fn legalize_packed_types(mut f: PrimFunc, _target: &Target) -> Result<PrimFunc, Diag> {
    let analyzer = analyzer_of(&f);
    let mut l = Legalize { analyzer: &analyzer, buffers: Vec::new(), vars: BTreeMap::new(), error: None };
    for p in &mut f.params {
        match p {
            Param::Buffer(b) => *b = l.buffer(b),
            Param::Scalar(v) if v.dtype().is_packed() => {
                return Err(Diag::error(v.span(), format!("parameter {} is a scalar of {}", v.name(), v.dtype()))
                    .help("pass an int8 or float32 and convert it inside"));
            }
            Param::Scalar(_) => {}
        }
    }
    f.body = l.stmt(f.body);
    l.error.map_or(Ok(f), Err)
}

struct Legalize<'a> {
    analyzer: &'a Analyzer,
    /// Packed buffers and the bytes that take their place.
    buffers: Vec<(Buffer, Buffer)>,
    /// Variables of packed types and those that take their place.
    vars: BTreeMap<Var, Var>,
    error: Option<Diag>,
}

impl Legalize<'_> {
    fn fail(&mut self, diag: Diag) {
        self.error.get_or_insert(diag);
    }

    /// The bytes of a packed buffer; other buffers themselves.
    fn buffer(&mut self, b: &Buffer) -> Buffer {
        if !b.dtype.is_packed() {
            return b.clone();
        }
        if let Some((_, bytes)) = self.buffers.iter().find(|(from, _)| from == b) {
            return bytes.clone();
        }
        let [len] = &b.shape[..] else {
            self.fail(Diag::error(b.span, format!("buffer {} is not flat", b.name)).help("run FlattenBuffer before"));
            return b.clone();
        };
        let per = PrimExpr::number(len.dtype(), b.dtype.per_byte() as f64);
        let one = PrimExpr::int(len.dtype(), 1);
        let bytes = self.analyzer.simplify(&(len + &per - one).floordiv(per));
        let bytes = Buffer::from_node(BufferNode { dtype: DType::U8, shape: vec![bytes], ..b.node().clone() });
        self.buffers.push((b.clone(), bytes.clone()));
        bytes
    }

    fn stmt(&mut self, s: Stmt) -> Stmt {
        match s {
            Stmt::For(l) => self.for_loop(*l),
            Stmt::Store(s) if s.buffer.dtype.is_packed() => self.store(&s),
            Stmt::Let(mut l) if l.var.dtype().is_packed() => {
                l.value = self.value(&l.value);
                l.var = self.var(&l.var);
                l.body = self.stmt(l.body);
                Stmt::Let(l)
            }
            Stmt::Block(mut b) => {
                b.allocs.iter_mut().for_each(|a| *a = self.buffer(a));
                self.inside(Stmt::Block(b))
            }
            other => self.inside(other),
        }
    }

    fn inside(&mut self, s: Stmt) -> Stmt {
        map_exprs(s, &mut |e| self.value(e)).map_children(&mut |c| self.stmt(c))
    }

    fn for_loop(&mut self, mut l: For) -> Stmt {
        let mut stores = false;
        visit_stmt(&l.body, &mut |s| stores |= matches!(s, Stmt::Store(s) if s.buffer.dtype.is_packed()));
        if stores {
            let reason = "iterations write to the same bytes of a packed buffer";
            match &l.kind {
                ForKind::Vectorized => l.kind = ForKind::Serial,
                ForKind::Parallel if !owns_bytes(&l, self.analyzer) => {
                    l.kind = ForKind::Serial;
                    l.annotations.insert(NOT_PARALLEL.into(), AttrValue::Str(reason.into()));
                }
                ForKind::ThreadBinding(axis) if !owns_bytes(&l, self.analyzer) => {
                    let message = format!("loop {} is bound to {axis}, and its {reason}", l.var.name());
                    self.fail(Diag::error(l.var.span(), message).help("let each iteration write whole bytes"));
                }
                _ => {}
            }
        }
        self.inside(Stmt::For(Box::new(l)))
    }

    fn store(&mut self, s: &Store) -> Stmt {
        let dtype = s.buffer.dtype;
        let bytes = self.buffer(&s.buffer);
        let [index] = &s.indices[..] else { return Stmt::Store(Box::new(s.clone())) };
        let index = self.value(index);
        if index.dtype().lanes > 1 {
            let message = format!("a vector is stored to elements of {}, which are {dtype}", s.buffer.name);
            self.fail(Diag::error(s.span, message).help("store them one by one"));
            return Stmt::Store(Box::new(s.clone()));
        }
        let bits = self.bits(&s.value);
        let (byte, shift) = place(dtype, &index);
        let all = PrimExpr::int(DType::U8, (1 << dtype.bits) - 1);
        let others = bin(BinOp::BitXor, bin(BinOp::Shl, all, shift.clone()), PrimExpr::int(DType::U8, 0xff));
        let kept = bin(BinOp::BitAnd, PrimExpr::load(&bytes, vec![byte.clone()]), others);
        let value = bin(BinOp::BitOr, kept, bin(BinOp::Shl, bits, shift));
        Stmt::Store(Box::new(Store { buffer: bytes, indices: vec![byte], value, ..s.clone() }))
    }
}

/// The byte of an element of packed storage and how far its bits are from the lowest one, as `uint8`.
fn place(dtype: DType, index: &PrimExpr) -> (PrimExpr, PrimExpr) {
    let (own, lanes) = (index.dtype().scalar(), index.dtype().lanes);
    let number = |v: u64| PrimExpr::number(own, v as f64).broadcast(lanes);
    let byte = index.clone().floordiv(number(dtype.per_byte()));
    let within = index.clone().floormod(number(dtype.per_byte()));
    (byte, (within * number(u64::from(dtype.bits))).cast(DType::U8.with_lanes(lanes)))
}

fn bin(op: BinOp, a: PrimExpr, b: PrimExpr) -> PrimExpr {
    PrimExpr::binary(op, a, b)
}

#[cfg(test)]
mod tests;
