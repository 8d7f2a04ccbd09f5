//! Random numbers. Each element is a function of a seed and of its place alone, so that a call gives the same numbers on every
//! machine and each time.

use super::reshape::ravel;
use super::row::{arg, attr, op, required};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{BinOp, Buffer, Intrinsic, PrimExpr, Var};
use crate::relax::{
    ArgDef, ArgKind, AttrDefault, AttrKind, Effects, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo,
};
use crate::te::{Axes, Te};
use crate::tir::{LetStmt, PrimFunc, Stmt};

const ARGS: &[ArgDef] = &[arg("shape", ArgKind::Shape)];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        effects: Effects::Random,
        ..op(
            "random.normal",
            "normally distributed numbers, the same ones for a seed",
            ARGS,
            &[
                required("seed", AttrKind::Int),
                attr("mean", AttrKind::Float, AttrDefault::Float(0.0)),
                attr("scale", AttrKind::Float, AttrDefault::Float(1.0)),
                attr("dtype", AttrKind::DType, AttrDefault::DType(DType::F32)),
            ],
            infer,
            Lower::Tir("random_normal", |cx| lower(cx, ["mean", "scale"], true)),
            Pattern::Opaque,
        )
    },
    OpDef {
        effects: Effects::Random,
        ..op(
            "random.uniform",
            "numbers from low up to high, evenly distributed, the same ones for a seed",
            ARGS,
            &[
                required("seed", AttrKind::Int),
                attr("low", AttrKind::Float, AttrDefault::Float(0.0)),
                attr("high", AttrKind::Float, AttrDefault::Float(1.0)),
                attr("dtype", AttrKind::DType, AttrDefault::DType(DType::F32)),
            ],
            infer,
            Lower::Tir("random_uniform", |cx| lower(cx, ["low", "high"], false)),
            Pattern::Opaque,
        )
    },
];

fn infer(cx: &InferCx<'_>) -> Result<StructInfo, Diag> {
    let StructInfo::Shape(dims) = cx.info(0)? else { return Err(cx.fail("`shape` must be a shape")) };
    match cx.dtype_attr("dtype") {
        Some(dtype) if dtype.is_float() => cx.result(dims, Some(dtype)),
        other => Err(cx.fail(format!("attribute `dtype` must be a float type, it is {other:?}"))),
    }
}

fn with(value: PrimExpr, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let var = Var::new("h", value.dtype());
    let body = body(var.expr());
    Stmt::Let(Box::new(LetStmt { var, value, body }))
}

fn word(v: u32) -> PrimExpr {
    PrimExpr::int(DType::U32, i64::from(v))
}

/// Mixes the bits of a word: the steps are a shift to the right to combine with, and a factor.
fn mixed(h: PrimExpr, steps: &[(u32, u32)], body: Box<dyn FnOnce(PrimExpr) -> Stmt + '_>) -> Stmt {
    let Some(((shift, factor), rest)) = steps.split_first() else { return body(h) };
    let shifted = PrimExpr::binary(BinOp::Shr, h.clone(), word(*shift));
    let next = PrimExpr::binary(BinOp::BitXor, h, shifted) * word(*factor);
    with(next, |h| mixed(h, rest, body))
}

/// Two rounds of the finalizer of MurmurHash3.
const STEPS: [(u32, u32); 6] =
    [(16, 0x85eb_ca6b), (13, 0xc2b2_ae35), (16, 0x9e37_79b1), (15, 0x85eb_ca6b), (13, 0xc2b2_ae35), (16, 1)];

/// A number from 0 up to 1, of the bits that the place has for a seed.
fn drawn(place: &PrimExpr, seed: u32, dtype: DType, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let start = place.cast(DType::U32) * word(0x9e37_79b1) + word(seed);
    let number = move |h: PrimExpr| {
        let value = if dtype == DType::F64 {
            h.cast(DType::F64) * PrimExpr::float(DType::F64, 2f64.powi(-32))
        } else {
            PrimExpr::binary(BinOp::Shr, h, word(8)).cast(DType::F32) * PrimExpr::float(DType::F32, 2f64.powi(-24))
        };
        with(value, body)
    };
    with(start, |h| mixed(h, &STEPS, Box::new(number)))
}

/// The two words that a seed is made of.
fn words(seed: i64) -> [u32; 2] {
    let bits = seed.to_le_bytes();
    let half = |i: usize| u32::from_le_bytes([bits[i], bits[i + 1], bits[i + 2], bits[i + 3]]);
    let low = half(0).wrapping_mul(0x9e37_79b1) ^ half(4).rotate_left(16);
    [low, low.wrapping_mul(0xc2b2_ae35).wrapping_add(0x27d4_eb2f)]
}

fn lower(cx: &LowerCx<'_>, names: [&str; 2], normal: bool) -> Result<PrimFunc, Diag> {
    let (dims, dtype) = (cx.out_dims()?, cx.out_dtype()?);
    let wide = if dtype.bits > 32 { DType::F64 } else { DType::F32 };
    let [a, b] = names.map(|name| cx.call.attr(name).as_float());
    let (Some(a), Some(b)) = (a, b) else { return Err(cx.fail("the limits must be numbers")) };
    let [first, second] = words(cx.with_infer(|c| c.int("seed"))?);
    let number = |v: f64| PrimExpr::number(wide, v);
    let out = Buffer::new("random", dims.to_vec(), dtype);
    let mut te = Te::new();
    te.block("random", Axes::Ax, dims, &[], std::slice::from_ref(&out), |i, _| {
        let place = ravel(i, dims);
        let store = |v: PrimExpr| Stmt::store(&out, i.to_vec(), v.cast(dtype));
        let body = drawn(&place, first, wide, |u| {
            if !normal {
                return store(number(a) + u * number(b - a));
            }
            drawn(&place, second, wide, |turn| {
                // Of the logarithm of 1 - u, which is never 0.
                let log = PrimExpr::call(Intrinsic::Log, vec![number(1.0) - u]);
                let far = PrimExpr::call(Intrinsic::Sqrt, vec![number(-2.0) * log]);
                let cos = PrimExpr::call(Intrinsic::Cos, vec![turn * number(std::f64::consts::TAU)]);
                store(number(a) + far * cos * number(b))
            })
        });
        (None, body)
    });
    Ok(te.finish(cx.inputs, &[out], cx.call.span))
}
