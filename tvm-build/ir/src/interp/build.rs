//! Emits machine code: constants folded, equal computations shared, and each placed in the outermost scope that has
//! its operands.

use super::instr::{Code, Instr, Op};
use crate::arith::IntBound;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Intrinsic, wrap_int};
use crate::span::Span;
use std::collections::BTreeMap;

/// A register.
pub(super) type Reg = u16;

/// `base + Σ coefficient * register`, without wrapping; a float is one register of coefficient 1.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Lin {
    pub(super) terms: Vec<(Reg, i64)>,
    pub(super) base: i64,
}

impl Lin {
    pub(super) fn constant(base: i64) -> Lin {
        Lin { terms: Vec::new(), base }
    }

    pub(super) fn reg(r: Reg) -> Lin {
        Lin { terms: vec![(r, 1)], base: 0 }
    }

    pub(super) fn as_const(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.base)
    }

    pub(super) fn add(&self, o: &Lin, k: i64) -> Option<Lin> {
        let mut terms: BTreeMap<Reg, i64> = self.terms.iter().copied().collect();
        for (r, c) in &o.terms {
            let sum = terms.entry(*r).or_insert(0);
            *sum = sum.checked_add(c.checked_mul(k)?)?;
        }
        let base = self.base.checked_add(o.base.checked_mul(k)?)?;
        Some(Lin { terms: terms.into_iter().filter(|(_, c)| *c != 0).collect(), base })
    }
}

/// What a failing check means.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) span: Span,
    /// The message; `{}` stands for the value at fault.
    pub(super) message: String,
}

type Key = (Op, Reg, Reg, Reg, i32);

#[derive(Default)]
struct Level {
    code: Vec<Instr>,
    shared: Vec<Key>,
    checked: Vec<(Reg, Reg)>,
}

/// Code under construction: one level a nested scope.
pub(super) struct Builder {
    levels: Vec<Level>,
    reg_level: Vec<usize>,
    reg_bound: Vec<IntBound>,
    shared: BTreeMap<Key, Reg>,
    checked: BTreeMap<(Reg, Reg), ()>,
    /// What made each register of a shared computation.
    defs: BTreeMap<Reg, Instr>,
    constants: BTreeMap<u64, Reg>,
    dtypes: BTreeMap<DType, i32>,
    intrinsics: BTreeMap<Intrinsic, u16>,
    pub(super) code: Code,
    pub(super) sites: Vec<Site>,
    full: bool,
}

impl Builder {
    pub(super) fn new() -> Builder {
        let mut b = Builder {
            levels: vec![Level::default()],
            reg_level: Vec::new(),
            reg_bound: Vec::new(),
            shared: BTreeMap::new(),
            checked: BTreeMap::new(),
            defs: BTreeMap::new(),
            constants: BTreeMap::new(),
            dtypes: BTreeMap::new(),
            intrinsics: BTreeMap::new(),
            code: Code::default(),
            sites: Vec::new(),
            full: false,
        };
        b.constant(0);
        b
    }

    /// The finished code. Errors when it needs more registers than there are.
    pub(super) fn finish(mut self) -> Result<(Code, Vec<Site>), Diag> {
        if self.full {
            let message = "the function is too large for the reference interpreter: more than 65536 values";
            return Err(Diag::error(Span::NONE, message).help("split the function, or unroll less"));
        }
        let instrs = self.levels.pop().map(|l| l.code).unwrap_or_default();
        self.code.instrs = super::dead::drop_unread(instrs, self.reg_level.len());
        self.code.constants = self.constants.iter().map(|(v, r)| (*r, *v)).collect();
        Ok((self.code, self.sites))
    }

    fn fresh(&mut self, level: usize, bound: IntBound) -> Reg {
        let Ok(r) = u16::try_from(self.reg_level.len()) else {
            self.full = true;
            return 0;
        };
        self.reg_level.push(level);
        self.reg_bound.push(bound);
        r
    }

    pub(super) fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    fn level_of(&self, r: Reg) -> usize {
        self.reg_level.get(usize::from(r)).copied().unwrap_or(0)
    }

    pub(super) fn bound(&self, r: Reg) -> IntBound {
        self.reg_bound.get(usize::from(r)).copied().unwrap_or(IntBound::EVERYTHING)
    }

    pub(super) fn set_bound(&mut self, r: Reg, bound: IntBound) {
        if let Some(b) = self.reg_bound.get_mut(usize::from(r)) {
            *b = bound;
        }
    }

    /// A register that holds these bits; its bound is that of the integer.
    pub(super) fn constant(&mut self, bits: u64) -> Reg {
        if let Some(r) = self.constants.get(&bits) {
            return *r;
        }
        let r = self.fresh(0, IntBound::point(bits as i64));
        self.constants.insert(bits, r);
        r
    }

    pub(super) fn int(&mut self, v: i64) -> Reg {
        self.constant(v as u64)
    }

    pub(super) fn dtype(&mut self, d: DType) -> i32 {
        let next = i32::try_from(self.code.dtypes.len()).unwrap_or(0);
        *self.dtypes.entry(d).or_insert_with(|| {
            self.code.dtypes.push(d);
            next
        })
    }

    pub(super) fn intrinsic(&mut self, f: Intrinsic) -> u16 {
        let next = u16::try_from(self.code.intrinsics.len()).unwrap_or(0);
        *self.intrinsics.entry(f).or_insert_with(|| {
            self.code.intrinsics.push(f);
            next
        })
    }

    pub(super) fn site(&mut self, span: Span, message: String) -> i32 {
        self.sites.push(Site { span, message });
        i32::try_from(self.sites.len() - 1).unwrap_or(0)
    }

    /// A computation that cannot fail, shared and placed as far out as its operands allow. `regs` are the registers
    /// among `a`, `b`, `c`.
    pub(super) fn pure(&mut self, op: Op, args: [u16; 3], regs: usize, t: i32, bound: IntBound) -> Reg {
        let [a, b, c] = args;
        let key = (op, a, b, c, t);
        if let Some(r) = self.shared.get(&key) {
            return *r;
        }
        let level = args.iter().take(regs).map(|r| self.level_of(*r)).max().unwrap_or(0);
        let d = self.fresh(level, bound);
        if let Some(l) = self.levels.get_mut(level) {
            l.code.push(Instr { op, d, a, b, c, t });
            l.shared.push(key);
        }
        self.defs.insert(d, Instr { op, d, a, b, c, t });
        self.shared.insert(key, d);
        d
    }

    /// The operands of the operation that made a register, when it was this one, in the scope of `near` or further in.
    /// A computation that nobody reads after all is dropped in the end.
    pub(super) fn made_by(&self, op: Op, made: Reg, near: usize) -> Option<[Reg; 2]> {
        let i = self.defs.get(&made).filter(|i| i.op == op)?;
        (self.level_of(made) >= near).then_some([i.a, i.b])
    }

    /// The operands of `x * y + z` when a summand is a product of the same scope.
    pub(super) fn product_in(&self, a: Reg, b: Reg) -> Option<[Reg; 3]> {
        let near = self.level_of(a).max(self.level_of(b));
        let product = |p, other| self.made_by(Op::MulF32, p, near).map(|[x, y]| [x, y, other]);
        product(a, b).or_else(|| product(b, a))
    }

    /// An integer computation; folded when its bound is one value.
    pub(super) fn int_op(&mut self, op: Op, args: [u16; 3], regs: usize, bound: IntBound) -> Reg {
        match bound.as_point() {
            Some(v) => self.int(v),
            None => self.pure(op, args, regs, 0, bound),
        }
    }

    /// A computation that stays where it is.
    pub(super) fn here(&mut self, op: Op, args: [u16; 3], t: i32, bound: IntBound) -> Reg {
        let [a, b, c] = args;
        let d = self.fresh(self.depth(), bound);
        self.push(Instr { op, d, a, b, c, t });
        d
    }

    /// A register that several places of the current scope write.
    pub(super) fn variable(&mut self, bound: IntBound) -> Reg {
        self.fresh(self.depth(), bound)
    }

    pub(super) fn push(&mut self, i: Instr) {
        if let Some(l) = self.levels.last_mut() {
            l.code.push(i);
        }
    }

    pub(super) fn effect(&mut self, op: Op, d: u16, args: [u16; 3], t: i32) {
        let [a, b, c] = args;
        self.push(Instr { op, d, a, b, c, t });
    }

    pub(super) fn append(&mut self, code: Vec<Instr>) {
        if let Some(l) = self.levels.last_mut() {
            l.code.extend(code);
        }
    }

    /// Opens a scope.
    pub(super) fn enter(&mut self) {
        self.levels.push(Level::default());
    }

    /// Closes the scope and gives its code.
    pub(super) fn leave(&mut self) -> Vec<Instr> {
        let Some(level) = self.levels.pop() else { return Vec::new() };
        for key in level.shared {
            self.shared.remove(&key);
        }
        for key in level.checked {
            self.checked.remove(&key);
        }
        level.code
    }

    /// A loop variable of the scope just opened.
    pub(super) fn loop_var(&mut self, bound: IntBound) -> Reg {
        self.fresh(self.depth(), bound)
    }

    /// A jump over code.
    pub(super) fn distance(code: &[Instr], extra: i32) -> i32 {
        i32::try_from(code.len()).unwrap_or(i32::MAX - 2) + extra
    }

    pub(super) fn lin_bound(&self, l: &Lin) -> IntBound {
        l.terms.iter().fold(IntBound::point(l.base), |b, (r, c)| b.plus(self.bound(*r).scale(*c)))
    }

    /// A register with the value of a linear form: terms of outer scopes first.
    pub(super) fn materialize(&mut self, l: &Lin) -> Reg {
        if let ([(r, 1)], 0) = (l.terms.as_slice(), l.base) {
            return *r;
        }
        let bound = self.lin_bound(l);
        if let Some(v) = l.as_const().or(bound.as_point()) {
            return self.int(v);
        }
        let mut terms = l.terms.clone();
        terms.sort_by_key(|(r, c)| (self.level_of(*r), *c != 1, *r));
        let mut acc: Option<Reg> = (l.base != 0).then(|| self.int(l.base));
        for (r, c) in terms {
            let scaled = self.bound(r).scale(c);
            let k = self.int(c);
            acc = Some(match (acc, c) {
                (None, 1) => r,
                (None, _) => self.pure(Op::Mul, [r, k, 0], 2, 0, scaled),
                (Some(acc), 1) => {
                    let bound = self.bound(acc).plus(scaled);
                    self.pure(Op::Add, [r, acc, 0], 2, 0, bound)
                }
                (Some(acc), _) => {
                    let bound = self.bound(acc).plus(scaled);
                    self.pure(Op::MulAdd, [r, k, acc], 3, 0, bound)
                }
            });
        }
        acc.unwrap_or(0)
    }

    /// A linear form as two registers to add: what changes in the innermost of its scopes, and the rest.
    pub(super) fn split(&mut self, l: &Lin) -> (Reg, Reg) {
        let innermost = l.terms.iter().map(|(r, _)| self.level_of(*r)).max().unwrap_or(0);
        let (inner, outer): (Vec<_>, Vec<_>) = l.terms.iter().partition(|(r, _)| self.level_of(*r) == innermost);
        let inner = self.materialize(&Lin { terms: inner, base: 0 });
        let outer = self.materialize(&Lin { terms: outer, base: l.base });
        (inner, outer)
    }

    /// Fails unless `0 <= index < extent`; left out where known or already checked.
    pub(super) fn check(&mut self, index: &Lin, extent: i64, span: Span, message: impl FnOnce() -> String) {
        if IntBound::new(0, extent.saturating_sub(1)).covers(self.lin_bound(index)) && extent > 0 {
            return;
        }
        let (r, e) = (self.materialize(index), self.int(extent.max(0)));
        if self.checked.insert((r, e), ()).is_some() {
            return;
        }
        if let Some(l) = self.levels.last_mut() {
            l.checked.push((r, e));
        }
        let site = self.site(span, message());
        self.effect(Op::Check, 0, [r, e, 0], site);
    }

    /// An integer register wrapped to its type.
    pub(super) fn wrap(&mut self, r: Reg, dtype: DType) -> Reg {
        let all = IntBound::of_type(dtype);
        let b = self.bound(r);
        if let Some(v) = b.as_point() {
            return self.int(wrap_int(dtype, v));
        }
        if dtype.bits >= 64 || all.covers(b) {
            return r;
        }
        let shift = u16::from(64 - dtype.bits);
        let op = if dtype.is_uint() { Op::WrapU } else { Op::WrapS };
        self.pure(op, [r, 0, shift], 1, 0, all)
    }
}
