use super::*;
use crate::dtype::DType;
use crate::prim::{BinOp, Buffer, Intrinsic, PrimKind, eval_int, wrap_int};
use std::collections::BTreeMap;

fn v(name: &str) -> Var {
    Var::new(name, DType::I64)
}

fn c(x: i64) -> PrimExpr {
    PrimExpr::i64(x)
}

fn to(n: i64) -> Range {
    Range::to(c(n))
}

fn check(an: &Analyzer, e: PrimExpr, expected: &str) {
    assert_eq!(format!("{:?}", an.simplify(&e)), expected, "of {e:?}");
}

#[test]
fn bounds_of_what_tiles_leave() {
    let (d, n) = (v("d"), v("n"));
    let mut an = Analyzer::new();
    an.assume_nonnegative(&d);
    an.bind_range(&n, to(4));
    let rest = d.expr() * 39 - (d.expr() * 3).floordiv(32) * 416;
    assert_eq!(an.bounds(&rest), IntBound::new(0, 403));
    assert_eq!(an.bounds(&(rest * -1 + &n)), IntBound::new(-403, 3));
}

#[test]
fn split_and_fused_loops() {
    let (i, j, n) = (v("i"), v("j"), v("n"));
    let mut an = Analyzer::new();
    an.bind_range(&j, to(4));
    let ij = i.expr() * 4 + &j;
    check(&an, ij.clone().floordiv(4), "i");
    check(&an, ij.floormod(4), "j");
    check(&an, i.expr().floordiv(16) * 16 + i.expr().floormod(16), "i");
    check(&an, i.expr() - i.expr().floormod(16), "Mul(FloorDiv(i, 16), 16)");
    check(&an, i.expr() - i.expr().floordiv(16) * 16, "FloorMod(i, 16)");
    // What is left behind the last whole tile, whatever the extent is a multiple of.
    check(&an, n.expr() * 6 - (n.expr() * 6).floordiv(128) * 128, "Mul(FloorMod(Mul(n, 3), 64), 2)");
    check(&an, (n.expr() * 7).floordiv(128) * -128 + n.expr() * 7, "FloorMod(Mul(n, 7), 128)");
    check(&an, n.expr() * 7 - (n.expr() * 3).floordiv(64) * 128, "Sub(Mul(n, 7), Mul(FloorDiv(Mul(n, 3), 64), 128))");
    check(&an, i.expr().floordiv(4).floordiv(8), "FloorDiv(i, 32)");
    check(&an, i.expr().floordiv(32) * 4 + i.expr().floormod(32).floordiv(8), "FloorDiv(i, 8)");
    check(&an, (n.expr() * 4).floordiv(4), "n");
    check(&an, (n.expr() * 4).floormod(4), "0");
    check(&an, (i.expr() * 6 + 3).floordiv(6), "i");
    check(&an, (i.expr() + &n) - (n.expr() + &i), "0");
    check(&an, (n.expr() + 7) - (n.expr() + 7).floormod(8), "Mul(FloorDiv(Add(n, 7), 8), 8)");
    let by_n = i.expr() * &n + &j;
    assert!(an.prove_equal(&(by_n.clone().floordiv(&n) * &n + by_n.clone().floormod(&n)), &by_n));
    // Three loops fused and taken apart.
    let (a, b, d) = (v("a"), v("b"), v("d"));
    for (var, e) in [(&a, 7), (&b, 5), (&d, 3)] {
        an.bind_range(var, to(e));
    }
    let fused = (a.expr() * 5 + &b) * 3 + &d;
    check(&an, fused.clone().floormod(3), "d");
    check(&an, fused.clone().floordiv(3).floormod(5), "b");
    check(&an, fused.clone().floordiv(15), "a");
    check(&an, fused.floormod(15).floordiv(3), "b");
}

#[test]
fn symbolic_division() {
    let (i, j, n, m) = (v("i"), v("j"), v("n"), v("m"));
    let mut an = Analyzer::new();
    an.bind_range(&i, Range::to(n.expr()));
    an.bind_range(&j, Range::to(m.expr()));
    let ij = i.expr() * &m + &j;
    check(&an, ij.clone().floordiv(&m), "i");
    check(&an, ij.clone().floormod(&m), "j");
    assert!(an.prove(&ij.lt(n.expr() * &m)));
    // Reshapes: a flat loop taken apart.
    let flat = v("flat");
    let mut an = Analyzer::new();
    an.assume_nonnegative(&n);
    an.assume_positive(&m);
    an.bind_range(&flat, Range::to(n.expr() * &m));
    check(&an, flat.expr().floordiv(&m).floormod(&n), "FloorDiv(flat, m)");
    an.bind_range(&flat, Range::to(n.expr() * &m * 2));
    assert!(an.prove(&flat.expr().floordiv(2).lt(n.expr() * &m)));
    // A group of a channel dimension of unknown size.
    let half = n.expr().floordiv(2);
    an.bind_range(&i, to(2));
    an.bind_range(&j, Range::to(half.clone()));
    an.assume_positive(&n);
    assert!(an.prove(&(i.expr() * half + &j).floormod(&n).lt(&n)));
    let mut an = Analyzer::new();
    an.bind_range(&i, Range::to(n.expr()));
    check(&an, (n.expr() * &m * 8).floordiv(n.expr() * 4), "Mul(m, 2)");
}

#[test]
fn symbolic_proofs() {
    let (i, k, n, m) = (v("i"), v("k"), v("n"), v("m"));
    let mut an = Analyzer::new();
    an.assume_nonnegative(&n);
    an.assume_positive(&m);
    an.bind_range(&i, Range::to(n.expr()));
    assert!(an.prove(&i.expr().lt(&n)));
    assert!(an.prove(&i.expr().ge(0)));
    assert!(!an.prove(&i.expr().gt(0)));
    assert!(an.prove(&(i.expr() + 1).le(n.expr() + 3)));
    assert!(an.prove(&(n.expr() + &i).gt(0)), "i exists only in a loop that runs");
    assert!(an.prove(&((n.expr() + 7).floordiv(8) * 8).ge(&n)));
    assert!(an.prove(&(n.expr().floordiv(8) * 8).le(&n)));
    assert!(!an.prove(&(n.expr().floordiv(8) * 8).ge(&n)));
    assert!(an.prove(&n.expr().min(8).le(8)));
    assert!(an.prove(&n.expr().min(8).le(&n)));
    assert!(an.prove(&n.expr().max(&m).ge(&m)));
    // A fused loop over n * m.
    an.bind_range(&k, Range::to(n.expr() * &m));
    assert!(an.prove(&k.expr().floordiv(&m).lt(&n)));
    assert!(an.prove(&k.expr().floormod(&m).lt(&m)));
    assert!(an.prove(&(n.expr() * (m.expr() + 1)).eq(n.expr() * &m + &n)));
    // A tail: 8 * o + x < n under the predicate.
    let (o, x) = (v("o"), v("x"));
    an.bind_range(&o, Range::to((n.expr() + 7).floordiv(8)));
    an.bind_range(&x, to(8));
    let at = o.expr() * 8 + &x;
    assert!(!an.prove(&at.clone().lt(&n)));
    assert!(an.with_constraint(&at.clone().lt(&n)).prove(&at.clone().lt(&n)));
    assert!(an.with_constraint(&at.clone().lt(&n)).prove(&(at.clone() + 2).le(n.expr() + 1)));
    assert!(an.prove(&at.lt((n.expr() + 7).floordiv(8) * 8)));
    // Sliding windows.
    let (h, r) = (v("h"), v("r"));
    an.bind_range(&h, Range::to((n.expr() - 3).floordiv(2) + 1));
    an.bind_range(&r, to(3));
    assert!(an.prove(&(h.expr() * 2 + &r).lt(&n)));
}

#[test]
fn conditions() {
    let (i, n) = (v("i"), v("n"));
    let mut an = Analyzer::new();
    an.bind_range(&i, to(16));
    check(&an, i.expr().lt(16).and(n.expr().gt(3)), "Lt(3, n)");
    check(&an, (i.expr() * 4 + 2).lt(10), "Lt(i, 2)");
    check(&an, (i.expr() + 2).lt(n.expr() + 2), "Lt(i, n)");
    check(&an, i.expr().ge(5).logical_not(), "Lt(i, 5)");
    check(&an, PrimExpr::select(i.expr().lt(99), n.expr(), c(0)), "n");
    check(&an, PrimExpr::if_then_else(n.expr().lt(4), n.expr().min(4), c(7)), "Call(IfThenElse, [Lt(n, 4), n, 7])");
    check(&an, n.expr().lt(4).and(n.expr().lt(9)), "Lt(n, 4)");
    check(&an, n.expr().lt(4).and(n.expr().gt(9)), "0");
    check(&an, n.expr().lt(4).or(n.expr().ge(4)), "1");
    let four = an.with_constraint(&n.expr().eq(4));
    check(&four, n.expr() * 2, "8");
    check(&an.with_constraint(&PrimExpr::cmp(CmpOp::Ne, i.expr(), c(0))), i.expr().ge(1), "1");
    // A reflection: what a condition says of a compound, and of both sides of a choice.
    let folded = PrimExpr::select(c(2).le(&i), i.expr() - 2, c(2) - &i);
    let low = an.with_constraint(&folded.clone().le(3));
    assert_eq!(an.bounds(&folded), IntBound::new(0, 13));
    assert_eq!(low.bounds(&(c(3) - folded)), IntBound::new(0, 3));
    let multiple = an.with_constraint(&n.expr().floormod(8).eq(0));
    check(&multiple, n.expr().floormod(4), "0");
    check(&multiple, (n.expr() + 7).floordiv(8) * 8, "Mul(FloorDiv(Add(n, 7), 8), 8)");
    assert!(multiple.prove_equal(&(n.expr().floordiv(8) * 8), &n.expr()));
}

#[test]
fn vectors_and_casts() {
    let i = v("i");
    let an = Analyzer::new();
    let ramp = PrimExpr::ramp(i.expr() * 4, c(1), 4);
    check(&an, ramp.clone() * c(2) + c(3), "Ramp(Add(Mul(i, 8), 3), 2)");
    let n = Var::new("n", DType::I32);
    check(&an, n.expr().cast(DType::I64).cast(DType::I32), "n");
    assert!(an.prove_equal(&(n.expr() + PrimExpr::i32(1)).cast(DType::I64), &(n.expr().cast(DType::I64) + 1)));
}

#[test]
fn intervals() {
    let (i, j, k, n) = (v("i"), v("j"), v("k"), v("n"));
    let mut an = Analyzer::new();
    an.assume_positive(&n);
    let dom: BTreeMap<Var, Range> =
        [(i.clone(), to(8)), (j.clone(), Range::to(n.expr())), (k.clone(), Range { min: j.expr(), extent: c(3) })]
            .into();
    let cover = |e: PrimExpr| an.cover(&e, &dom).map(|r| format!("{:?} {:?}", r.min, r.extent));
    assert_eq!(cover(i.expr() * 4 + 1).unwrap(), "1 29");
    assert_eq!(cover(j.expr() * 4 + i.expr().floormod(4)).unwrap(), "0 Mul(n, 4)");
    assert_eq!(cover(n.expr() - &j).unwrap(), "1 n");
    assert_eq!(cover(k.expr()).unwrap(), "0 Add(n, 2)");
    assert_eq!(cover(j.expr() * &n + &i).unwrap(), "0 Add(Mul(Sub(n, 1), n), 8)");
    assert_eq!(cover(i.expr().floordiv(2) + &n).unwrap(), "n 4");
    let m = v("m");
    assert_eq!(cover(m.expr() * 16 + &i).unwrap(), "Mul(m, 16) 8");
    assert!(cover(j.expr() * &m).is_none());
}

#[test]
fn random_intervals_cover() {
    let mut rng = Rng(0x1357_9bdf_0246_8ace);
    for round in 0..500 {
        let (n, i, j) = (v("n"), v("i"), v("j"));
        let mut an = Analyzer::new();
        an.assume_nonnegative(&n);
        let count = rng.int(1, 9);
        let dom: BTreeMap<Var, Range> = [(i.clone(), Range::to(n.expr())), (j.clone(), to(count))].into();
        let leaves = vec![n.expr(), i.expr(), j.expr()];
        let e = Gen { rng: &mut rng, dtype: DType::I64, leaves }.int(3);
        let set = an.interval(&e, &dom);
        for _ in 0..40 {
            let size = rng.int(1, 9);
            let mut env = Env::default();
            env.vars.extend([(n.clone(), size), (i.clone(), rng.int(0, size - 1)), (j.clone(), rng.int(0, count - 1))]);
            let Some(x) = eval(&e, &env) else { continue };
            for (end, low) in [(&set.min, true), (&set.max, false)] {
                let Some(y) = end.as_ref().and_then(|end| eval(end, &env)) else { continue };
                assert!(
                    if low { y <= x } else { x <= y },
                    "round {round}: {e:?} is {x}, not in {set:?} at {:?}",
                    env.vars
                );
            }
        }
    }
}

#[test]
fn extremes_do_not_overflow() {
    let x = v("x");
    let an = Analyzer::new();
    let big = [i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1, -1, 0, 1];
    let ops = [
        BinOp::Add,
        BinOp::Sub,
        BinOp::Mul,
        BinOp::Div,
        BinOp::Mod,
        BinOp::FloorDiv,
        BinOp::FloorMod,
        BinOp::Min,
        BinOp::Max,
    ];
    for a in big {
        for b in big {
            for f in ops {
                for g in ops {
                    let inner = PrimExpr::binary(f, x.expr(), c(a));
                    for e in [PrimExpr::binary(g, inner.clone(), c(b)), PrimExpr::binary(g, c(b), inner)] {
                        an.simplify(&e);
                        an.bounds(&e);
                        an.modular(&e);
                        an.prove(&e.lt(c(a)));
                    }
                }
            }
        }
    }
}

struct Rng(u64);

impl Rng {
    fn next(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
    fn int(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.next(u64::try_from(high - low + 1).unwrap())).unwrap()
    }
}

/// Values of variables and of rank-0 buffers.
#[derive(Default)]
struct Env {
    vars: BTreeMap<Var, i64>,
    buffers: Vec<(Buffer, i64)>,
}

/// `None`: an error (division by 0), or trusted arithmetic that overflows.
fn eval(e: &PrimExpr, env: &Env) -> Option<i64> {
    let two = |a: &PrimExpr, b: &PrimExpr| Some((eval(a, env)?, eval(b, env)?));
    match e.kind() {
        PrimKind::Int(x) => Some(*x),
        PrimKind::Var(v) => env.vars.get(v).copied(),
        PrimKind::Load(b, _) => env.buffers.iter().find(|(x, _)| x == b).map(|(_, x)| *x),
        PrimKind::Binary(op, a, b) => {
            let (x, y) = two(a, b)?;
            let d = e.dtype();
            if d.is_int() && d.bits >= 32 && !has_load(e) {
                let (x, y) = (i128::from(x), i128::from(y));
                let wide = match op {
                    BinOp::Add => x + y,
                    BinOp::Sub => x - y,
                    BinOp::Mul => x * y,
                    _ => 0,
                };
                let limit = 1i128 << (d.bits - 1);
                if wide < -limit || wide >= limit {
                    return None;
                }
            }
            eval_int(*op, d, x, y)
        }
        PrimKind::Cmp(op, a, b) => {
            let (x, y) = two(a, b)?;
            PrimExpr::cmp(*op, PrimExpr::int(a.dtype(), x), PrimExpr::int(b.dtype(), y)).as_int()
        }
        PrimKind::And(a, b) => two(a, b).map(|(x, y)| x & y),
        PrimKind::Or(a, b) => two(a, b).map(|(x, y)| x | y),
        PrimKind::Not(a) => Some(1 - eval(a, env)?),
        PrimKind::Select(p, a, b) => {
            let (x, y) = two(a, b)?;
            Some(if eval(p, env)? != 0 { x } else { y })
        }
        PrimKind::Call(Intrinsic::IfThenElse, args) => {
            if eval(&args[0], env)? != 0 {
                eval(&args[1], env)
            } else {
                eval(&args[2], env)
            }
        }
        PrimKind::Cast(a) => Some(wrap_int(e.dtype(), eval(a, env)?)),
        other => panic!("{other:?}"),
    }
}

fn has_load(e: &PrimExpr) -> bool {
    let mut found = false;
    crate::prim::visit(e, &mut |n| found |= matches!(n.kind(), PrimKind::Load(..) | PrimKind::Call(..)));
    found
}

struct Gen<'a> {
    rng: &'a mut Rng,
    dtype: DType,
    leaves: Vec<PrimExpr>,
}

impl Gen<'_> {
    fn literal(&mut self) -> PrimExpr {
        let picks = [1, 2, 3, 4, 5, 6, 8, 12, 16, 0, -1, -2, -4, 7, 100, 127];
        let at = usize::try_from(self.rng.next(16)).unwrap();
        PrimExpr::int(self.dtype, picks[at])
    }

    fn int(&mut self, depth: u32) -> PrimExpr {
        if depth == 0 || self.rng.next(8) == 0 {
            let at = self.rng.next(self.leaves.len() as u64 + 2);
            return match self.leaves.get(usize::try_from(at).unwrap()) {
                Some(leaf) => leaf.clone(),
                None => self.literal(),
            };
        }
        let a = self.int(depth - 1);
        match self.rng.next(20) {
            0..=4 => PrimExpr::binary(BinOp::Add, a, self.int(depth - 1)),
            5..=6 => PrimExpr::binary(BinOp::Sub, a, self.int(depth - 1)),
            7..=8 => PrimExpr::binary(BinOp::Mul, a, self.literal()),
            9 => PrimExpr::binary(BinOp::Mul, a, self.int(depth - 1)),
            10..=11 => PrimExpr::binary(BinOp::FloorDiv, a, self.literal()),
            12..=13 => PrimExpr::binary(BinOp::FloorMod, a, self.literal()),
            14 => PrimExpr::binary(BinOp::Div, a, self.literal()),
            15 => PrimExpr::binary(BinOp::Mod, a, self.literal()),
            16 => {
                let op = [
                    BinOp::FloorDiv,
                    BinOp::FloorMod,
                    BinOp::Div,
                    BinOp::Mod,
                    BinOp::BitAnd,
                    BinOp::BitOr,
                    BinOp::Shr,
                    BinOp::Shl,
                    BinOp::BitXor,
                ];
                let op = op[usize::try_from(self.rng.next(9)).unwrap()];
                PrimExpr::binary(op, a, self.int(depth - 1))
            }
            17 => PrimExpr::binary(BinOp::Min, a, self.int(depth - 1)),
            18 => PrimExpr::binary(BinOp::Max, a, self.int(depth - 1)),
            _ => {
                let (p, b) = (self.cond(depth - 1), self.int(depth - 1));
                if self.rng.next(2) == 0 { PrimExpr::select(p, a, b) } else { PrimExpr::if_then_else(p, a, b) }
            }
        }
    }

    fn cond(&mut self, depth: u32) -> PrimExpr {
        let ops = [CmpOp::Eq, CmpOp::Ne, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge];
        if depth > 0 && self.rng.next(3) == 0 {
            let (a, b) = (self.cond(depth - 1), self.cond(depth - 1));
            return match self.rng.next(3) {
                0 => a.and(b),
                1 => a.or(b),
                _ => a.logical_not(),
            };
        }
        let op = ops[usize::try_from(self.rng.next(6)).unwrap()];
        let a = self.int(depth);
        PrimExpr::cmp(op, a, self.int(depth))
    }
}

/// Random expressions, every value of every variable in small ranges: simplified forms, bounds, residues and proofs agree.
fn fuzz(dtype: DType, seed: u64, rounds: u32, loads: bool) {
    let mut rng = Rng(seed);
    for round in 0..rounds {
        let mut an = Analyzer::new();
        let mut domains = Vec::new();
        let mut leaves = Vec::new();
        for name in ["i", "j", "k"] {
            let var = Var::new(name, dtype);
            let (low, count) = (if dtype.is_uint() || rng.next(3) > 0 { 0 } else { rng.int(-9, 9) }, rng.int(1, 13));
            an.bind_range(&var, Range { min: PrimExpr::int(dtype, low), extent: PrimExpr::int(dtype, count) });
            leaves.push(var.expr());
            domains.push((var, low, low + count - 1));
        }
        let buffers: Vec<Buffer> = if loads { vec![Buffer::new("b", Vec::new(), dtype)] } else { Vec::new() };
        leaves.extend(buffers.iter().map(|b| PrimExpr::load(b, Vec::new())));
        // A constraint that some values satisfy.
        let mut generator = Gen { rng: &mut rng, dtype, leaves };
        let guard = (generator.rng.next(3) == 0).then(|| generator.cond(1));
        let e = generator.int(3);
        let cond = generator.cond(2);
        let an = guard.as_ref().map_or(an.clone(), |g| an.with_constraint(g));
        let (simple, bound, modular) = (an.simplify(&e), an.bounds(&e), an.modular(&e));
        let simple_cond = an.simplify(&cond);
        let again = an.simplify(&simple);
        for _ in 0..60 {
            let mut env = Env::default();
            for (var, low, high) in &domains {
                let x = rng.int(*low, *high);
                env.vars.insert(var.clone(), x);
            }
            for b in &buffers {
                let extremes = [0, 1, -1, 5, i64::MAX, i64::MIN, 1 << 31, (1 << 31) - 1, 1 << 30, 127, 200];
                let x = extremes[usize::try_from(rng.next(11)).unwrap()];
                env.buffers.push((b.clone(), wrap_int(dtype, x)));
            }
            if guard.as_ref().is_some_and(|g| eval(g, &env) != Some(1)) {
                continue;
            }
            let context =
                || format!("round {round}, {:?}, guard {guard:?}, vars {:?} {:?}", domains, env.vars, env.buffers);
            if let Some(x) = eval(&e, &env) {
                assert_eq!(eval(&simple, &env), Some(x), "{e:?} became {simple:?}; {}", context());
                assert_eq!(eval(&again, &env), Some(x), "{simple:?} became {again:?}; {}", context());
                // Beyond `i64` bounds speak of infinity.
                let huge = dtype == DType::U64 && x < 0;
                assert!(
                    if huge { bound.max == IntBound::POS_INF } else { bound.contains(x) },
                    "{e:?} is {x}, bounds {bound:?}; {}",
                    context()
                );
                assert!(huge || modular.contains(x), "{e:?} is {x}, {modular:?}; {}", context());
            }
            if let Some(x) = eval(&cond, &env) {
                assert_eq!(eval(&simple_cond, &env), Some(x), "{cond:?} became {simple_cond:?}; {}", context());
            }
        }
    }
}

#[test]
fn random_int64() {
    fuzz(DType::I64, 0x1234_5678_9abc_def1, 1200, false);
}

#[test]
fn random_int32() {
    fuzz(DType::I32, 0x0dd5_eed5_0dd5_eed5, 1200, false);
}

#[test]
fn random_wrapping() {
    for (dtype, seed) in [(DType::U8, 3), (DType::I8, 5), (DType::U32, 7), (DType::I16, 11)] {
        fuzz(dtype, 0x9e37_79b9_7f4a_7c15 ^ (seed << 20), 500, false);
    }
}

#[test]
fn random_loads_wrap() {
    for (dtype, seed) in [(DType::I32, 3), (DType::I64, 5), (DType::U8, 7), (DType::U64, 9)] {
        fuzz(dtype, 0x5851_f42d_4c95_7f2d ^ (seed << 20), 500, true);
    }
}

/// Ranges whose extents are variables: nothing false is proven, whatever the extents.
#[test]
fn random_symbolic_extents() {
    let mut rng = Rng(0x2545_f491_4f6c_dd1d);
    for round in 0..800 {
        let (n, m, i, j) = (v("n"), v("m"), v("i"), v("j"));
        let mut an = Analyzer::new();
        an.assume_nonnegative(&n);
        an.assume_nonnegative(&m);
        let extents = [n.expr(), m.expr(), n.expr() * &m, (n.expr() + 3).floordiv(4), n.expr() - 1];
        let a = extents[usize::try_from(rng.next(5)).unwrap()].clone();
        let b = extents[usize::try_from(rng.next(5)).unwrap()].clone();
        an.bind_range(&i, Range::to(a.clone()));
        an.bind_range(&j, Range::to(b.clone()));
        let leaves = vec![n.expr(), m.expr(), i.expr(), j.expr()];
        let mut generator = Gen { rng: &mut rng, dtype: DType::I64, leaves };
        let cond = generator.cond(2);
        let e = generator.int(3);
        let (simple_cond, simple) = (an.simplify(&cond), an.simplify(&e));
        for _ in 0..60 {
            let mut env = Env::default();
            env.vars.extend([(n.clone(), rng.int(0, 9)), (m.clone(), rng.int(0, 5))]);
            let (x, y) = (eval(&a, &env).unwrap(), eval(&b, &env).unwrap());
            if x < 1 || y < 1 {
                continue;
            }
            env.vars.extend([(i.clone(), rng.int(0, x - 1)), (j.clone(), rng.int(0, y - 1))]);
            if let Some(x) = eval(&cond, &env) {
                assert_eq!(
                    eval(&simple_cond, &env),
                    Some(x),
                    "round {round}: {cond:?} became {simple_cond:?} at {:?}",
                    env.vars
                );
            }
            if let Some(x) = eval(&e, &env) {
                assert_eq!(eval(&simple, &env), Some(x), "round {round}: {e:?} became {simple:?} at {:?}", env.vars);
            }
        }
    }
}
