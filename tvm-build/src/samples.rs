//! PrimFuncs that tests of several modules lower and schedule.

use tvm_ir::attrs::{AttrValue, Attrs};
use tvm_ir::dtype::DType;
use tvm_ir::interp::{Options, TensorBuf, run_with};
use tvm_ir::prim::{Buffer, PrimExpr, Range, Substitution, Var};
use tvm_ir::tir::{Block, IterKind, IterVar, Param, PrimFunc, Region, Stmt};

/// A buffer of `float32`.
pub(crate) fn f32_buffer(name: &str, shape: &[PrimExpr]) -> Buffer {
    Buffer::new(name, shape.to_vec(), DType::F32)
}

/// One element as a region.
pub(crate) fn point(buffer: &Buffer, indices: &[PrimExpr]) -> Region {
    Region { buffer: buffer.clone(), ranges: indices.iter().cloned().map(Range::point).collect() }
}

/// A block under one loop an iterator: `body` and `init` are made from the iterators.
pub(crate) fn nest(
    name: &str,
    iters: &[(&str, PrimExpr, IterKind)],
    make: impl FnOnce(&[PrimExpr]) -> (Option<Stmt>, Stmt, Vec<Region>, Vec<Region>),
) -> Stmt {
    let loops: Vec<Var> = iters.iter().map(|(n, ..)| Var::new(*n, DType::I64)).collect();
    let vars: Vec<Var> = iters.iter().map(|(n, ..)| Var::new(format!("v_{n}"), DType::I64)).collect();
    let exprs: Vec<PrimExpr> = vars.iter().map(Var::expr).collect();
    let (init, body, reads, writes) = make(&exprs);
    let iter_vars = iters.iter().zip(&loops).zip(&vars).map(|(((_, extent, kind), l), v)| IterVar {
        var: v.clone(),
        dom: Range::to(extent.clone()),
        kind: *kind,
        binding: l.expr(),
    });
    let block =
        Block { name: name.into(), iters: iter_vars.collect(), reads, writes, init, ..Block::root(Vec::new(), body) };
    loops
        .into_iter()
        .zip(iters)
        .rev()
        .fold(Stmt::Block(Box::new(block)), |body, (var, (_, extent, _))| Stmt::serial(var, extent.clone(), body))
}

/// `out[s] = value(s)` over all elements of `out`.
pub(crate) fn elementwise(
    name: &str,
    out: &Buffer,
    inputs: &[&Buffer],
    value: impl FnOnce(&[PrimExpr]) -> PrimExpr,
) -> Stmt {
    let names: Vec<String> = (0..out.shape.len()).map(|k| format!("ax{k}")).collect();
    let iters: Vec<_> = names.iter().zip(&out.shape).map(|(n, e)| (n.as_str(), e.clone(), IterKind::Spatial)).collect();
    nest(name, &iters, |v| {
        let value = value(v);
        let mut reads = Vec::new();
        tvm_ir::prim::visit(&value, &mut |e| {
            if let tvm_ir::prim::PrimKind::Load(b, i) = e.kind() {
                if inputs.contains(&b) {
                    reads.push(point(b, i));
                }
            }
        });
        (None, Stmt::store(out, v.to_vec(), value), reads, vec![point(out, v)])
    })
}

/// `c[i, j] = sum of a[i, k] * b[k, j]`
pub(crate) fn matmul_nest(a: &Buffer, b: &Buffer, c: &Buffer) -> Stmt {
    let iters = [
        ("i0", c.shape[0].clone(), IterKind::Spatial),
        ("i1", c.shape[1].clone(), IterKind::Spatial),
        ("k", a.shape[1].clone(), IterKind::Reduce),
    ];
    nest("matmul", &iters, |v| {
        let [i, j, k] = v else { panic!() };
        let at = vec![i.clone(), j.clone()];
        let product = PrimExpr::load(a, vec![i.clone(), k.clone()]) * PrimExpr::load(b, vec![k.clone(), j.clone()]);
        let init = Stmt::store(c, at.clone(), PrimExpr::float(DType::F32, 0.0));
        let update = Stmt::store(c, at.clone(), PrimExpr::load(c, at.clone()) + product);
        let reads = vec![point(a, &[i.clone(), k.clone()]), point(b, &[k.clone(), j.clone()])];
        (Some(init), update, reads, vec![point(c, &at)])
    })
}

/// A function over buffers, without aliasing, its body in a root block.
pub(crate) fn function(params: &[&Buffer], allocs: Vec<Buffer>, body: Stmt) -> PrimFunc {
    PrimFunc {
        params: params.iter().map(|b| Param::Buffer((*b).clone())).collect(),
        attrs: Attrs::from([("tir.noalias".into(), AttrValue::Bool(true))]),
        body: Stmt::Block(Box::new(Block::root(allocs, body))),
        span: Default::default(),
    }
}

/// `a @ b`
pub(crate) fn matmul(m: PrimExpr, n: PrimExpr, k: PrimExpr) -> PrimFunc {
    let a = f32_buffer("a", &[m.clone(), k.clone()]);
    let b = f32_buffer("b", &[k, n.clone()]);
    let c = f32_buffer("c", &[m, n]);
    function(&[&a, &b, &c], Vec::new(), matmul_nest(&a, &b, &c))
}

/// `relu(a @ b + bias)`, as `FuseTIR` leaves it.
pub(crate) fn fused_matmul_add_relu(m: PrimExpr, n: PrimExpr, k: PrimExpr) -> PrimFunc {
    let a = f32_buffer("x", &[m.clone(), k.clone()]);
    let b = f32_buffer("lv", &[k, n.clone()]);
    let bias = f32_buffer("bias", std::slice::from_ref(&n));
    let shape = [m, n];
    let (c, sum, out) = (
        f32_buffer("matmul_intermediate", &shape),
        f32_buffer("T_add_intermediate", &shape),
        f32_buffer("compute", &shape),
    );
    let body = Stmt::seq([
        matmul_nest(&a, &b, &c),
        elementwise("T_add", &sum, &[&c, &bias], |v| {
            PrimExpr::load(&c, v.to_vec()) + PrimExpr::load(&bias, vec![v[1].clone()])
        }),
        elementwise("compute", &out, &[&sum], |v| {
            PrimExpr::load(&sum, v.to_vec()).max(PrimExpr::float(DType::F32, 0.0))
        }),
    ]);
    function(&[&a, &b, &bias, &out], vec![c, sum], body)
}

/// `out[i, j] = a[j, i]`
pub(crate) fn transpose(m: PrimExpr, n: PrimExpr) -> PrimFunc {
    let a = f32_buffer("a", &[m.clone(), n.clone()]);
    let out = f32_buffer("T_transpose", &[n, m]);
    let body = elementwise("T_transpose", &out, &[&a], |v| PrimExpr::load(&a, vec![v[1].clone(), v[0].clone()]));
    function(&[&a, &out], Vec::new(), body)
}

/// Runs two versions of a function on the same numbers and compares all buffers. `symbols` are the values of symbolic
/// variables. Sums may be in another order.
pub(crate) fn assert_same(before: &PrimFunc, after: &PrimFunc, symbols: &[(&Var, i64)]) {
    let (want, got) = (run(before, symbols), run(after, symbols));
    for (k, (w, g)) in want.iter().zip(&got).enumerate() {
        for (i, (w, g)) in w.to_f32().iter().zip(g.to_f32()).enumerate() {
            assert!((w - g).abs() <= 1e-5 * w.abs().max(1.0), "parameter {k} element {i}: {w} became {g}\n{after:?}");
        }
    }
}

/// The buffers before and after a run on numbers that depend on their position alone.
pub(crate) fn reference(f: &PrimFunc, symbols: &[(Var, i64)]) -> (Vec<TensorBuf>, Vec<TensorBuf>) {
    let symbols: Vec<(&Var, i64)> = symbols.iter().map(|(v, n)| (v, *n)).collect();
    let before = arguments(f, &symbols);
    (before[..f.buffers().count()].to_vec(), run(f, &symbols))
}

/// The buffers after a run on [`arguments`].
fn run(f: &PrimFunc, symbols: &[(&Var, i64)]) -> Vec<TensorBuf> {
    let mut args = arguments(f, symbols);
    let options = Options { poison: true, ..Options::default() };
    run_with(f, &mut args, &options).unwrap_or_else(|e| panic!("{e}\n{f:?}"));
    args.truncate(f.buffers().count());
    args
}

/// Numbers that depend on their position alone.
fn arguments(f: &PrimFunc, symbols: &[(&Var, i64)]) -> Vec<TensorBuf> {
    let sub = Substitution {
        vars: symbols.iter().map(|(v, n)| ((*v).clone(), PrimExpr::int(v.dtype(), *n))).collect(),
        ..Default::default()
    };
    let arg = |k: usize, p: &Param| match p {
        Param::Buffer(b) => {
            let shape: Vec<i64> = b.shape.iter().map(|d| sub.apply(d).as_int().unwrap()).collect();
            let n = shape.iter().product::<i64>();
            TensorBuf::from_f64(b.dtype, &shape, &(0..n).map(|i| number(k, i)).collect::<Vec<_>>()).unwrap()
        }
        Param::Scalar(v) => TensorBuf::scalar_i64(v.dtype(), sub.apply(&v.expr()).as_int().unwrap()).unwrap(),
    };
    f.params.iter().enumerate().map(|(k, p)| arg(k, p)).collect()
}

/// A number between -0.5 and 0.5 that differs from place to place, the same in every run.
fn number(buffer: usize, i: i64) -> f64 {
    let bits = (i as u32).wrapping_mul(2_654_435_761).wrapping_add(buffer as u32 * 40_503);
    f64::from(bits >> 16) / 65536.0 - 0.5
}

/// `relu(conv2d(x, w) + bias)` in NCHW with padding, as legalisation and fusion leave it.
pub(crate) fn conv_bias_relu(channels: [i64; 2], size: [i64; 2], kernel: i64, stride: i64, pad: i64) -> PrimFunc {
    let int = PrimExpr::i64;
    let [ci, co] = channels;
    let [h, w] = size;
    let (oh, ow) = ((h + 2 * pad - kernel) / stride + 1, (w + 2 * pad - kernel) / stride + 1);
    let x = f32_buffer("x", &[int(1), int(ci), int(h), int(w)]);
    let weight = f32_buffer("weight", &[int(co), int(ci), int(kernel), int(kernel)]);
    let bias = f32_buffer("bias", &[int(1), int(co), int(1), int(1)]);
    let padded = f32_buffer("pad_temp", &[int(1), int(ci), int(h + 2 * pad), int(w + 2 * pad)]);
    let shape = [int(1), int(co), int(oh), int(ow)];
    let conv = f32_buffer("conv2d_nchw", &shape);
    let sum = f32_buffer("T_add", &shape);
    let out = f32_buffer("compute", &shape);
    let zero = || PrimExpr::float(DType::F32, 0.0);
    let pad_nest = elementwise("pad_temp", &padded, &[&x], |v| {
        let inside = |i: &PrimExpr, n: i64| i.clone().ge(int(pad)).and(i.clone().lt(int(n + pad)));
        let cond = inside(&v[2], h).and(inside(&v[3], w));
        let at = vec![v[0].clone(), v[1].clone(), &v[2] - int(pad), &v[3] - int(pad)];
        PrimExpr::if_then_else(cond, PrimExpr::load(&x, at), zero())
    });
    let (s, r) = (IterKind::Spatial, IterKind::Reduce);
    let iters = [
        ("nn", int(1), s),
        ("ff", int(co), s),
        ("yy", int(oh), s),
        ("xx", int(ow), s),
        ("rc", int(ci), r),
        ("ry", int(kernel), r),
        ("rx", int(kernel), r),
    ];
    let conv_nest = nest("conv2d_nchw", &iters, |v| {
        let at = v[..4].to_vec();
        let from = vec![v[0].clone(), v[4].clone(), &v[2] * stride + &v[5], &v[3] * stride + &v[6]];
        let by = vec![v[1].clone(), v[4].clone(), v[5].clone(), v[6].clone()];
        let product = PrimExpr::load(&padded, from.clone()) * PrimExpr::load(&weight, by.clone());
        let init = Stmt::store(&conv, at.clone(), zero());
        let update = Stmt::store(&conv, at.clone(), PrimExpr::load(&conv, at.clone()) + product);
        (Some(init), update, vec![point(&padded, &from), point(&weight, &by)], vec![point(&conv, &at)])
    });
    let body = Stmt::seq([
        pad_nest,
        conv_nest,
        elementwise("T_add", &sum, &[&conv, &bias], |v| {
            PrimExpr::load(&conv, v.to_vec()) + PrimExpr::load(&bias, vec![int(0), v[1].clone(), int(0), int(0)])
        }),
        elementwise("compute", &out, &[&sum], |v| PrimExpr::load(&sum, v.to_vec()).max(zero())),
    ]);
    function(&[&x, &weight, &bias, &out], vec![padded, conv, sum], body)
}

/// 2 by 2 max pooling of `[c, h, w]`.
pub(crate) fn max_pool(c: i64, h: i64, w: i64) -> PrimFunc {
    let int = PrimExpr::i64;
    let x = f32_buffer("x", &[int(c), int(h), int(w)]);
    let out = f32_buffer("pool_max", &[int(c), int(h / 2), int(w / 2)]);
    let (s, r) = (IterKind::Spatial, IterKind::Reduce);
    let iters =
        [("ax0", int(c), s), ("ax1", int(h / 2), s), ("ax2", int(w / 2), s), ("rv0", int(2), r), ("rv1", int(2), r)];
    let body = nest("pool_max", &iters, |v| {
        let at = v[..3].to_vec();
        let from = vec![v[0].clone(), &v[1] * 2 + &v[3], &v[2] * 2 + &v[4]];
        let init = Stmt::store(&out, at.clone(), PrimExpr::float(DType::F32, f64::from(f32::MIN)));
        let value = PrimExpr::load(&out, at.clone()).max(PrimExpr::load(&x, from.clone()));
        (Some(init), Stmt::store(&out, at.clone(), value), vec![point(&x, &from)], vec![point(&out, &at)])
    });
    function(&[&x, &out], Vec::new(), body)
}

/// `exp(x - max(x))` over rows, divided by its sum.
pub(crate) fn softmax(m: PrimExpr, n: PrimExpr) -> PrimFunc {
    let x = f32_buffer("x", &[m.clone(), n.clone()]);
    let (largest, sum) =
        (f32_buffer("maxelem", std::slice::from_ref(&m)), f32_buffer("expsum", std::slice::from_ref(&m)));
    let (exp, out) = (f32_buffer("exp", &[m.clone(), n.clone()]), f32_buffer("norm", &[m.clone(), n.clone()]));
    let reduce = |name: &str, to: &Buffer, from: &Buffer, start: f64, f: &dyn Fn(PrimExpr, PrimExpr) -> PrimExpr| {
        let iters = [("i0", m.clone(), IterKind::Spatial), ("k", n.clone(), IterKind::Reduce)];
        nest(name, &iters, |v| {
            let at = vec![v[0].clone()];
            let init = Stmt::store(to, at.clone(), PrimExpr::float(DType::F32, start));
            let value = f(PrimExpr::load(to, at.clone()), PrimExpr::load(from, v.to_vec()));
            (Some(init), Stmt::store(to, at.clone(), value), vec![point(from, v)], vec![point(to, &at)])
        })
    };
    let body = Stmt::seq([
        reduce("maxelem", &largest, &x, f64::from(f32::MIN), &|a, b| a.max(b)),
        elementwise("exp", &exp, &[&x, &largest], |v| {
            let d = PrimExpr::load(&x, v.to_vec()) - PrimExpr::load(&largest, vec![v[0].clone()]);
            PrimExpr::call(tvm_ir::prim::Intrinsic::Exp, vec![d])
        }),
        reduce("expsum", &sum, &exp, 0.0, &|a, b| a + b),
        elementwise("norm", &out, &[&exp, &sum], |v| {
            PrimExpr::load(&exp, v.to_vec()) / PrimExpr::load(&sum, vec![v[0].clone()])
        }),
    ]);
    function(&[&x, &out], vec![largest, exp, sum], body)
}

/// The sum of everything.
pub(crate) fn total(n: PrimExpr, dtype: DType) -> PrimFunc {
    let x = Buffer::new("x", vec![n.clone()], dtype);
    let out = Buffer::new("total", Vec::new(), dtype);
    let body = nest("total", &[("k", n, IterKind::Reduce)], |v| {
        let init = Stmt::store(&out, Vec::new(), PrimExpr::zero(dtype));
        let update = Stmt::store(&out, Vec::new(), PrimExpr::load(&out, Vec::new()) + PrimExpr::load(&x, v.to_vec()));
        (Some(init), update, vec![point(&x, v)], vec![point(&out, &[])])
    });
    function(&[&x, &out], Vec::new(), body)
}

/// `out[c] = sum of x[c, …]`, divided by 4.
pub(crate) fn sum_of_planes(c: PrimExpr, plane: &[PrimExpr]) -> PrimFunc {
    let shape: Vec<PrimExpr> = std::iter::once(&c).chain(plane).cloned().collect();
    let x = f32_buffer("x", &shape);
    let (sum, out) = (f32_buffer("sum", std::slice::from_ref(&c)), f32_buffer("out", std::slice::from_ref(&c)));
    let names: Vec<String> = (0..plane.len()).map(|k| format!("k{k}")).collect();
    let mut iters = vec![("ax0", c, IterKind::Spatial)];
    iters.extend(names.iter().zip(plane).map(|(n, e)| (n.as_str(), e.clone(), IterKind::Reduce)));
    let reduced = nest("sum", &iters, |v| {
        let at = vec![v[0].clone()];
        let init = Stmt::store(&sum, at.clone(), PrimExpr::float(DType::F32, 0.0));
        let value = PrimExpr::load(&sum, at.clone()) + PrimExpr::load(&x, v.to_vec());
        (Some(init), Stmt::store(&sum, at.clone(), value), vec![point(&x, v)], vec![point(&sum, &at)])
    });
    let scaled =
        elementwise("scaled", &out, &[&sum], |v| PrimExpr::load(&sum, v.to_vec()) * PrimExpr::float(DType::F32, 0.25));
    function(&[&x, &out], vec![sum], Stmt::seq([reduced, scaled]))
}

/// `c[i, j] = sum of a[i, k] * b[j, k]`
pub(crate) fn matmul_transposed(m: PrimExpr, n: PrimExpr, k: PrimExpr) -> PrimFunc {
    let (a, b) = (f32_buffer("a", &[m.clone(), k.clone()]), f32_buffer("b", &[n.clone(), k.clone()]));
    let c = f32_buffer("c", &[m.clone(), n.clone()]);
    let (s, r) = (IterKind::Spatial, IterKind::Reduce);
    let body = nest("matmul", &[("i0", m, s), ("i1", n, s), ("k", k, r)], |v| {
        let at = v[..2].to_vec();
        let (left, right) = (vec![v[0].clone(), v[2].clone()], vec![v[1].clone(), v[2].clone()]);
        let product = PrimExpr::load(&a, left.clone()) * PrimExpr::load(&b, right.clone());
        let init = Stmt::store(&c, at.clone(), PrimExpr::float(DType::F32, 0.0));
        let update = Stmt::store(&c, at.clone(), PrimExpr::load(&c, at.clone()) + product);
        (Some(init), update, vec![point(&a, &left), point(&b, &right)], vec![point(&c, &at)])
    });
    function(&[&a, &b, &c], Vec::new(), body)
}

/// `relu(a + b)` with `b` of one row.
pub(crate) fn add_relu(m: PrimExpr, n: PrimExpr, row: bool) -> PrimFunc {
    let shape = [m.clone(), n.clone()];
    let a = f32_buffer("a", &shape);
    let b = if row { f32_buffer("b", &[n]) } else { f32_buffer("b", &shape) };
    let (sum, out) = (f32_buffer("T_add", &shape), f32_buffer("compute", &shape));
    let body = Stmt::seq([
        elementwise("T_add", &sum, &[&a, &b], |v| {
            let at = if row { vec![v[1].clone()] } else { v.to_vec() };
            PrimExpr::load(&a, v.to_vec()) + PrimExpr::load(&b, at)
        }),
        elementwise("compute", &out, &[&sum], |v| {
            PrimExpr::load(&sum, v.to_vec()).max(PrimExpr::float(DType::F32, 0.0))
        }),
    ]);
    function(&[&a, &b, &out], vec![sum], body)
}
