//! PrimFuncs that tests of several modules lower and schedule.

use tvm_ir::attrs::{AttrValue, Attrs};
use tvm_ir::dtype::DType;
use tvm_ir::prim::{Buffer, PrimExpr, Range, Var};
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
    let map = symbols.iter().map(|(v, n)| ((*v).clone(), *n)).collect();
    let sub = tvm_ir::prim::Substitution {
        vars: symbols.iter().map(|(v, n)| ((*v).clone(), PrimExpr::int(v.dtype(), *n))).collect(),
        ..Default::default()
    };
    let args: Vec<Vec<f32>> = before
        .buffers()
        .enumerate()
        .map(|(k, b)| {
            let n = b.shape.iter().map(|d| sub.apply(d).as_int().unwrap() as usize).product();
            crate::mini_interp::numbers(k as u32, n)
        })
        .collect();
    let want = crate::mini_interp::run(before, args.clone(), &map);
    let got = crate::mini_interp::run(after, args, &map);
    for (k, (w, g)) in want.iter().zip(&got).enumerate() {
        for (i, (w, g)) in w.iter().zip(g).enumerate() {
            assert!((w - g).abs() <= 1e-5 * w.abs().max(1.0), "buffer {k} element {i}: {w} became {g}\n{after:?}");
        }
    }
}
