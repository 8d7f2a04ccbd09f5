//! One query: the facts it starts from and what it found so far.

use super::bounds::IntBound;
use super::canonical::Mode;
use super::facts::Facts;
use super::modular::Modular;
use super::sum::Sum;
use crate::prim::{BinOp, PrimExpr, PrimKind};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Results by node. The nodes are kept, so that no other node gets a stored address.
pub(super) struct Memo<T>(BTreeMap<usize, (PrimExpr, T)>);

impl<T: Clone> Memo<T> {
    fn new() -> Memo<T> {
        Memo(BTreeMap::new())
    }

    fn key(e: &PrimExpr) -> usize {
        std::ptr::from_ref(e.kind()) as usize
    }

    pub(super) fn get(&self, e: &PrimExpr) -> Option<T> {
        self.0.get(&Memo::<T>::key(e)).map(|(_, t)| t.clone())
    }

    pub(super) fn put(&mut self, e: &PrimExpr, value: T) {
        self.0.insert(Memo::<T>::key(e), (e.clone(), value));
    }
}

/// A query over fixed facts.
pub(super) struct Session<'a> {
    pub(super) facts: &'a Facts,
    pub(super) bound_memo: Memo<IntBound>,
    pub(super) modular_memo: Memo<Modular>,
    pub(super) simplify_memo: Memo<PrimExpr>,
    /// Results of [`Session::simplify_node`].
    pub(super) node_memo: Memo<PrimExpr>,
    sum_memos: [Memo<Sum>; 2],
    /// The known conditions as sums that are not negative; made when first wanted.
    pub(super) assumed: Option<Vec<Sum>>,
    exact_memo: Memo<bool>,
    trusted_memo: Memo<bool>,
    /// Proofs under way, to bound their nesting.
    pub(super) proof_depth: u32,
    /// Choices around, whose conditions bounds took into account.
    pub(super) nesting: u32,
    /// Sums that the proofs under way take for not negative.
    pub(super) scope: Vec<Sum>,
    /// Steps left to the proof under way.
    pub(super) fuel: u32,
    /// Steps left to all proofs of the query together, also those within others and under more facts.
    pub(super) work: Rc<Cell<u32>>,
}

/// Steps of the proofs of a query, each counted as many times as its sum has terms.
const WORK: u32 = 2_000;

impl<'a> Session<'a> {
    pub(super) fn new(facts: &'a Facts) -> Session<'a> {
        Session {
            facts,
            bound_memo: Memo::new(),
            modular_memo: Memo::new(),
            simplify_memo: Memo::new(),
            node_memo: Memo::new(),
            sum_memos: [Memo::new(), Memo::new()],
            assumed: None,
            exact_memo: Memo::new(),
            trusted_memo: Memo::new(),
            proof_depth: 0,
            nesting: 0,
            scope: Vec::new(),
            fuel: 0,
            work: Rc::new(Cell::new(WORK)),
        }
    }

    /// A query over more facts, within this one.
    pub(super) fn inner<'b>(&self, facts: &'b Facts) -> Session<'b> {
        let (proof_depth, fuel, work) = (self.proof_depth, self.fuel, Rc::clone(&self.work));
        Session { proof_depth, fuel, work, nesting: self.nesting + 1, ..Session::new(facts) }
    }

    pub(super) fn sum_memo(&mut self, mode: Mode) -> &mut Memo<Sum> {
        let [simplify, prove] = &mut self.sum_memos;
        if mode == Mode::Simplify { simplify } else { prove }
    }

    /// Whether an expression is index arithmetic, which by contract does not overflow: operators of signed 32-bit or
    /// wider integers over variables and literals alone.
    pub(super) fn trusted(&mut self, e: &PrimExpr) -> bool {
        if !(e.dtype().is_int() && e.dtype().bits >= 32) {
            return false;
        }
        match e.kind() {
            PrimKind::Int(_) | PrimKind::Var(_) => return true,
            _ => {}
        }
        if let Some(t) = self.trusted_memo.get(e) {
            return t;
        }
        let trusted = match e.kind() {
            PrimKind::Binary(_, a, b) | PrimKind::Select(_, a, b) | PrimKind::Ramp(a, b) => {
                self.trusted(a) && self.trusted(b)
            }
            PrimKind::Cast(a) => a.dtype().bits <= e.dtype().bits && self.trusted(a),
            PrimKind::Broadcast(a) => self.trusted(a),
            _ => false,
        };
        self.trusted_memo.put(e, trusted);
        trusted
    }

    /// Whether the value is what the operators `+ - *` give without wrapping.
    pub(super) fn exact(&mut self, e: &PrimExpr) -> bool {
        let PrimKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, a, b) = e.kind() else { return true };
        if let Some(x) = self.exact_memo.get(e) {
            return x;
        }
        let exact = self.trusted(e) || (self.exact(a) && self.exact(b) && self.stays_inside(e));
        self.exact_memo.put(e, exact);
        exact
    }

    fn stays_inside(&mut self, e: &PrimExpr) -> bool {
        let PrimKind::Binary(op, a, b) = e.kind() else { return true };
        let (x, y) = (self.bounds(a), self.bounds(b));
        let raw = match op {
            BinOp::Add => x.plus(y),
            BinOp::Sub => x.plus(y.negate()),
            BinOp::Mul => x.times(y),
            _ => return true,
        };
        raw.is_finite() && IntBound::of_type(e.dtype()).covers(raw)
    }
}
