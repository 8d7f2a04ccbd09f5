//! Test-only evaluation of PrimFuncs over `f32` buffers.

use std::collections::BTreeMap;
use tvm_ir::prim::{BinOp, Buffer, CmpOp, Intrinsic, PrimExpr, PrimKind, Var, eval_int};
use tvm_ir::tir::{IterKind, Param, PrimFunc, Stmt};

#[derive(Clone, Copy, Debug)]
enum V {
    I(i64),
    F(f32),
}

pub(crate) struct Interp {
    vars: BTreeMap<Var, Vec<V>>,
    buffers: Vec<(Buffer, Vec<usize>, Vec<f32>)>,
}

/// Runs a function: buffers by position, symbols by variable; returns the buffers after.
pub(crate) fn run(f: &PrimFunc, args: Vec<Vec<f32>>, symbols: &BTreeMap<Var, i64>) -> Vec<Vec<f32>> {
    let vars = symbols.iter().map(|(v, n)| (v.clone(), vec![V::I(*n)])).collect();
    let mut i = Interp { vars, buffers: Vec::new() };
    let mut args = args.into_iter();
    for p in &f.params {
        if let Param::Buffer(b) = p {
            let shape = i.shape(b);
            let data = args.next().unwrap();
            assert_eq!(shape.iter().product::<usize>(), data.len(), "{b:?}");
            i.buffers.push((b.clone(), shape, data));
        }
    }
    i.stmt(&f.body);
    f.buffers().map(|b| i.buffers.iter().find(|(x, ..)| x == b).unwrap().2.clone()).collect()
}

impl Interp {
    fn shape(&self, b: &Buffer) -> Vec<usize> {
        b.shape.iter().map(|d| self.int(d) as usize).collect()
    }

    fn int(&self, e: &PrimExpr) -> i64 {
        match self.expr(e)[0] {
            V::I(v) => v,
            V::F(f) => panic!("{e:?} is {f}"),
        }
    }

    fn at(&self, b: &Buffer, indices: &[PrimExpr], lane: usize) -> (usize, usize) {
        let k = self.buffers.iter().rposition(|(x, ..)| x == b).unwrap_or_else(|| panic!("{b:?} is not bound"));
        let mut at = 0;
        for (i, n) in indices.iter().zip(&self.buffers[k].1) {
            let v = self.expr(i);
            let V::I(v) = v[lane.min(v.len() - 1)] else { panic!() };
            assert!(v >= 0 && (v as usize) < *n, "{b:?}{indices:?}: {v} of {n} {:?}", self.vars);
            at = at * n + v as usize;
        }
        (k, at)
    }

    fn expr(&self, e: &PrimExpr) -> Vec<V> {
        let zip = |a: &PrimExpr, b: &PrimExpr, f: &dyn Fn(V, V) -> V| -> Vec<V> {
            self.expr(a).into_iter().zip(self.expr(b)).map(|(x, y)| f(x, y)).collect()
        };
        match e.kind() {
            PrimKind::Var(v) => self.vars.get(v).unwrap_or_else(|| panic!("{v:?} unbound")).clone(),
            PrimKind::Int(v) => vec![V::I(*v)],
            PrimKind::Float(v) => vec![V::F(*v as f32)],
            PrimKind::Binary(op, a, b) => zip(a, b, &|x, y| match (x, y) {
                (V::I(x), V::I(y)) => V::I(eval_int(*op, e.dtype(), x, y).unwrap()),
                (V::F(x), V::F(y)) => V::F(match op {
                    BinOp::Add => x + y,
                    BinOp::Sub => x - y,
                    BinOp::Mul => x * y,
                    BinOp::Div => x / y,
                    BinOp::Max => x.max(y),
                    BinOp::Min => x.min(y),
                    _ => panic!(),
                }),
                _ => panic!("{e:?}"),
            }),
            PrimKind::Cmp(op, a, b) => zip(a, b, &|x, y| {
                let o = match (x, y) {
                    (V::I(x), V::I(y)) => x.partial_cmp(&y),
                    (V::F(x), V::F(y)) => x.partial_cmp(&y),
                    _ => panic!(),
                }
                .unwrap();
                V::I(i64::from(match op {
                    CmpOp::Eq => o.is_eq(),
                    CmpOp::Ne => o.is_ne(),
                    CmpOp::Lt => o.is_lt(),
                    CmpOp::Le => o.is_le(),
                    CmpOp::Gt => o.is_gt(),
                    CmpOp::Ge => o.is_ge(),
                }))
            }),
            PrimKind::And(a, b) => zip(a, b, &|x, y| match (x, y) {
                (V::I(x), V::I(y)) => V::I(x & y),
                _ => panic!(),
            }),
            PrimKind::Not(a) => {
                self.expr(a).into_iter().map(|x| if let V::I(x) = x { V::I(1 - x) } else { panic!() }).collect()
            }
            PrimKind::Cast(a) => self
                .expr(a)
                .into_iter()
                .map(|v| match (v, e.dtype().is_float()) {
                    (V::I(i), true) => V::F(i as f32),
                    (v, _) => v,
                })
                .collect(),
            PrimKind::Load(b, i) => (0..e.dtype().lanes as usize)
                .map(|l| {
                    let (k, at) = self.at(b, i, l);
                    V::F(self.buffers[k].2[at])
                })
                .collect(),
            PrimKind::Ramp(a, s) => {
                let (a, s) = (self.int(a), self.int(s));
                (0..i64::from(e.dtype().lanes)).map(|l| V::I(a + s * l)).collect()
            }
            PrimKind::Broadcast(a) => vec![self.expr(a)[0]; e.dtype().lanes as usize],
            PrimKind::Select(c, a, b) => {
                let (c, a, b) = (self.expr(c), self.expr(a), self.expr(b));
                (0..c.len()).map(|l| if matches!(c[l], V::I(0)) { b[l] } else { a[l] }).collect()
            }
            PrimKind::Call(Intrinsic::IfThenElse, a) => {
                if self.int(&a[0]) != 0 {
                    self.expr(&a[1])
                } else {
                    self.expr(&a[2])
                }
            }
            PrimKind::Call(Intrinsic::Exp, a) => {
                self.expr(&a[0]).into_iter().map(|v| if let V::F(f) = v { V::F(f.exp()) } else { panic!() }).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Seq(v) => v.iter().for_each(|s| self.stmt(s)),
            Stmt::For(l) => {
                let (min, n) = (self.int(&l.min), self.int(&l.extent));
                for i in min..min + n {
                    self.vars.insert(l.var.clone(), vec![V::I(i)]);
                    self.stmt(&l.body);
                }
                self.vars.remove(&l.var);
            }
            Stmt::Block(b) => {
                if self.int(&b.predicate) == 0 {
                    return;
                }
                let mut first = true;
                let values: Vec<_> = b.iters.iter().map(|i| self.int(&i.binding)).collect();
                for (i, v) in b.iters.iter().zip(values) {
                    first &= i.kind != IterKind::Reduce || v == self.int(&i.dom.min);
                    assert!(v >= self.int(&i.dom.min) && v < self.int(&i.dom.min) + self.int(&i.dom.extent));
                    self.vars.insert(i.var.clone(), vec![V::I(v)]);
                }
                for a in &b.allocs {
                    let shape = self.shape(a);
                    let n = shape.iter().product();
                    self.buffers.push((a.clone(), shape, vec![f32::NAN; n]));
                }
                if let Some(init) = b.init.as_ref().filter(|_| first) {
                    self.stmt(init);
                }
                self.stmt(&b.body);
                if !b.allocs.is_empty() {
                    self.buffers.retain(|(x, ..)| !b.allocs.contains(x));
                }
            }
            Stmt::Store(s) => {
                let value = self.expr(&s.value);
                for (l, v) in value.into_iter().enumerate() {
                    let (k, at) = self.at(&s.buffer, &s.indices, l);
                    let V::F(v) = v else { panic!() };
                    self.buffers[k].2[at] = v;
                }
            }
            Stmt::If(i) => {
                if self.int(&i.cond) != 0 {
                    self.stmt(&i.then)
                } else if let Some(o) = &i.otherwise {
                    self.stmt(o)
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Numbers that differ from place to place, the same in every run.
pub(crate) fn numbers(seed: u32, n: usize) -> Vec<f32> {
    (0..n as u32).map(|i| (i.wrapping_mul(2654435761).wrapping_add(seed) >> 16) as f32 / 65536.0 - 0.5).collect()
}
