//! Branches that are built side by side.
//!
//! The values that the branches of a conditional give may differ in rank, and what follows may need one rank; or they are
//! known shapes of different lengths, and the rank of what follows depends on them. Then what follows is converted in each
//! branch, node by node, until the values that are still to be used agree; there the branches are joined. Branches in which
//! a node cannot be converted at all are dead; see `join`.

use std::collections::{BTreeMap, BTreeSet};

use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, free_vars};
use tvm_ir::relax::Leaf;
use tvm_ir::relax::build::FnBuilder;
use tvm_ir::span::Span;

use super::convert::{Converter, Place, Scope};
use super::elements::Elements;
use super::graph::{Dim, Node, OpName, Type};
use super::list::Content;
use super::value::Value;

/// Most branches that are built side by side.
const MAX_ARMS: usize = 64;

/// Most nodes of a model that are converted once more for another branch.
const MAX_COPIES: usize = 1 << 13;

/// Most elements of what is taken for a shape.
const MAX_SHAPE: usize = 8;

/// A list of nodes that is converted: of a graph, or of a function of the model.
#[derive(Clone)]
pub(super) struct Frame<'n> {
    pub(super) nodes: &'n [Node],
    /// Names that are taken from it.
    pub(super) wanted: Vec<&'n str>,
    pub(super) place: Place<'n>,
    /// Whether what takes its values can go on in branches.
    pub(super) open: bool,
}

/// How far a list has been converted.
#[derive(Default)]
pub(super) struct Reached {
    pub(super) scope: Scope,
    /// Indices of nodes.
    pub(super) done: BTreeSet<usize>,
}

/// The outcome of a node or graph.
pub(super) enum Made {
    Values(Vec<Value>),
    /// Values in branches that are not joined yet.
    Split(Box<Split>),
}

/// A conditional whose branches are being built. The function that has it is the one that its arms were forked from.
pub(super) struct Split {
    /// The conditional.
    pub(super) path: String,
    pub(super) span: Span,
    pub(super) cond: Leaf,
    pub(super) arms: Vec<Arm>,
}

/// A branch.
pub(super) struct Arm {
    /// The attribute that holds it.
    pub(super) name: &'static str,
    pub(super) state: State,
    pub(super) end: End,
}

/// What the emitter has of a function that is being built.
pub(super) struct State {
    pub(super) function: FnBuilder,
    elements: Elements,
    decided: Vec<(Decision, bool)>,
}

/// What a conditional decides by.
#[derive(Clone, PartialEq)]
pub(super) enum Decision {
    Value(Leaf),
    /// A truth value over symbolic dimensions.
    Expr(PrimExpr),
}

/// How far a branch has got.
pub(super) enum End {
    Open(Reached),
    /// It cannot be converted: why.
    Dead(Vec<Diag>),
    /// It ends in another conditional.
    Split(Box<Split>),
}

impl Split {
    /// Calls `f` on each branch that is neither dead nor ends in further ones.
    fn leaves<'s>(&'s self, f: &mut dyn FnMut(&'s Reached)) {
        for arm in &self.arms {
            match &arm.end {
                End::Open(reached) => f(reached),
                End::Split(inner) => inner.leaves(f),
                End::Dead(_) => {}
            }
        }
    }

    fn leaves_mut(&mut self, f: &mut dyn FnMut(&mut State, &mut Reached)) {
        for arm in &mut self.arms {
            match &mut arm.end {
                End::Open(reached) => f(&mut arm.state, reached),
                End::Split(inner) => inner.leaves_mut(f),
                End::Dead(_) => {}
            }
        }
    }

    /// How many there are.
    fn width(&self) -> usize {
        let mut count = 0;
        self.leaves(&mut |_| count += 1);
        count
    }

    /// Whether each of these names is known in every branch, and is alike in all.
    fn agrees(&self, names: &[&str]) -> bool {
        let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
        let mut lengths: BTreeMap<&str, usize> = BTreeMap::new();
        let mut agree = true;
        self.leaves(&mut |reached| {
            for name in names {
                let Some(value) = reached.scope.get(*name) else {
                    agree = false;
                    continue;
                };
                if let Some(kind) = Kind::of(value) {
                    agree &= *kinds.entry(name).or_insert_with(|| kind.clone()) == kind;
                }
                if let Some(length) = shape_length(value) {
                    agree &= *lengths.entry(name).or_insert(length) == length;
                }
            }
        });
        agree
    }
}

/// The number of elements of a vector of known integers that is short enough to be a shape or axes: it may be the rank of
/// what comes of it.
fn shape_length(value: &Value) -> Option<usize> {
    let info = value.tensor_info()?;
    let [length] = info.dims.known()? else { return None };
    let length = usize::try_from(length.as_int()?).ok().filter(|n| *n <= MAX_SHAPE)?;
    value.known_ints().map(|_| length)
}

/// What values must have in common to be joined without losing what converters need.
#[derive(Clone, PartialEq)]
enum Kind {
    Tensor(Option<usize>),
    /// Of lists the ranks of the tensors in them.
    List(Type),
    Other,
}

impl Kind {
    /// `None`: of a node that could not be converted, and of a list that may hold anything.
    fn of(value: &Value) -> Option<Kind> {
        match value {
            Value::Poison(_) => None,
            Value::List(list) if list.open => None,
            Value::List(list) => Some(Kind::List(without_extents(&list.ty))),
            value => Some(value.tensor_info().map_or(Kind::Other, |t| Kind::Tensor(t.dims.rank()))),
        }
    }
}

fn without_extents(ty: &Type) -> Type {
    match ty {
        Type::Tensor { dtype, shape } => {
            Type::Tensor { dtype: *dtype, shape: shape.as_ref().map(|dims| vec![Dim::Unknown; dims.len()]) }
        }
        Type::Sequence(item) => Type::Sequence(Box::new(without_extents(item))),
        Type::Optional(item) => Type::Optional(Box::new(without_extents(item))),
        Type::Other(name) => Type::Other(name),
    }
}

/// The nodes that follow a conditional.
struct Following<'n> {
    /// Those that depend on it, in order: they are converted in its branches until these are joined.
    inside: Vec<usize>,
    /// Others, to be converted before it.
    before: Vec<usize>,
    /// The last user, among those inside, of each value of the conditional and of these.
    last_use: BTreeMap<&'n str, usize>,
}

impl<'n> Following<'n> {
    fn new(frame: &Frame<'n>, at: usize, done: &BTreeSet<usize>, splits: &dyn Fn(&Node) -> bool) -> Following<'n> {
        let undone: Vec<usize> = (0..frame.nodes.len()).filter(|k| !done.contains(k)).collect();
        let mut defined: BTreeSet<&str> = names(&frame.nodes[at].outputs).collect();
        let mut inside: BTreeSet<usize> = BTreeSet::new();
        let mut before;
        loop {
            for k in &undone {
                let node = &frame.nodes[*k];
                if inside.contains(k) || node.needs().any(|name| defined.contains(name)) {
                    inside.insert(*k);
                    defined.extend(names(&node.outputs));
                }
            }
            let mut needed: BTreeSet<&str> = inside.iter().flat_map(|k| frame.nodes[*k].needs()).collect();
            before = Vec::new();
            for k in undone.iter().rev().filter(|k| !inside.contains(k)) {
                let node = &frame.nodes[*k];
                if frame.open || names(&node.outputs).any(|name| needed.contains(name)) {
                    needed.extend(node.needs());
                    before.push(*k);
                }
            }
            // Their values may not agree in rank either.
            let more: Vec<usize> = before.iter().copied().filter(|k| splits(&frame.nodes[*k])).collect();
            if more.is_empty() {
                break;
            }
            for k in more {
                inside.insert(k);
                defined.extend(names(&frame.nodes[k].outputs));
            }
        }
        before.reverse();
        let mut last_use = BTreeMap::new();
        for k in &inside {
            for name in frame.nodes[*k].needs().filter(|name| defined.contains(name)) {
                last_use.insert(name, *k);
            }
        }
        for name in frame.wanted.iter().filter(|name| defined.contains(*name)) {
            last_use.insert(name, usize::MAX);
        }
        Following { inside: inside.into_iter().collect(), before, last_use }
    }

    /// The names that nodes from `at` on, or others, use of what is defined before.
    fn frontier(&self, frame: &Frame<'n>, first: usize, at: usize) -> Vec<&'n str> {
        let defined = std::iter::once(first).chain(self.inside.iter().copied().take_while(|k| *k < at));
        let outputs = defined.flat_map(|k| names(&frame.nodes[k].outputs));
        outputs.filter(|name| self.last_use.get(name).is_some_and(|last| *last >= at)).collect()
    }
}

/// Names without those that are left out.
pub(super) fn names(all: &[String]) -> impl Iterator<Item = &str> {
    all.iter().map(String::as_str).filter(|name| !name.is_empty())
}

impl<'a> Converter<'a> {
    /// Converts the nodes that are not converted yet, in order. What comes back are branches that could not be joined,
    /// each with all that is wanted, in a list that is open; in another one, values may be left of which not even the rank
    /// is known.
    pub(super) fn list(&mut self, frame: &Frame<'_>, reached: &mut Reached) -> Option<Box<Split>> {
        for at in 0..frame.nodes.len() {
            if reached.done.contains(&at) {
                continue;
            }
            if let Some(split) = self.step(frame, at, reached) {
                if let Some(split) = self.settle(split, frame, at, reached) {
                    return Some(split);
                }
            }
        }
        None
    }

    /// An arm of a conditional that is reached here.
    pub(super) fn arm(&self, name: &'static str, decided: Option<(Decision, bool)>) -> Arm {
        let mut known = self.decided.clone();
        known.extend(decided);
        let state =
            State { function: self.emitter.function.fork(), elements: self.emitter.elements.clone(), decided: known };
        Arm { name, state, end: End::Open(Reached::default()) }
    }

    /// Runs `f` in a branch; gives what it makes and the errors of it.
    pub(super) fn inside<R>(&mut self, state: &mut State, f: impl FnOnce(&mut Self) -> R) -> (R, Vec<Diag>) {
        let span = self.emitter.span;
        self.swap(state);
        let faults = std::mem::take(&mut self.faults);
        self.arms += 1;
        let made = f(self);
        self.arms -= 1;
        let found = std::mem::replace(&mut self.faults, faults);
        self.swap(state);
        self.emitter.span = span;
        (made, if found.is_empty() { Vec::new() } else { found.into_diags().0 })
    }

    /// Names of variables stay unique: they go along.
    fn swap(&mut self, state: &mut State) {
        let supply = std::mem::take(&mut self.emitter.function.bindings().names);
        std::mem::swap(&mut self.emitter.function, &mut state.function);
        std::mem::swap(&mut self.emitter.elements, &mut state.elements);
        std::mem::swap(&mut self.decided, &mut state.decided);
        self.emitter.function.bindings().names = supply;
    }

    /// Goes on in the branches that node `at` has opened until they can be joined, and joins them. They come back where
    /// they cannot be joined and the list is open; in any other list they are joined all the same.
    fn settle(
        &mut self,
        mut split: Box<Split>,
        frame: &Frame<'_>,
        at: usize,
        reached: &mut Reached,
    ) -> Option<Box<Split>> {
        let outputs: Vec<&str> = names(&frame.nodes[at].outputs).collect();
        if split.agrees(&outputs) {
            self.join(*split, &outputs, &mut reached.scope);
            return None;
        }
        let following = Following::new(frame, at, &reached.done, &|node| self.splits(node, &mut BTreeSet::new()));
        for k in &following.before {
            if let Some(other) = self.step(frame, *k, reached) {
                let outputs: Vec<&str> = names(&frame.nodes[*k].outputs).collect();
                self.join(*other, &outputs, &mut reached.scope);
            }
        }
        self.prepare(&mut split, frame, &following, reached);
        for k in &following.inside {
            let frontier = following.frontier(frame, at, *k);
            if split.agrees(&frontier) {
                self.join(*split, &frontier, &mut reached.scope);
                return None;
            }
            if !self.may_copy(&split, frame.nodes[at].span) {
                let unknown = frontier.iter().map(|_| Value::Poison(None)).collect();
                self.define(frontier.into_iter(), unknown, frame.nodes[at].span, &mut reached.scope);
                return None;
            }
            reached.done.insert(*k);
            self.absorb(&mut split, frame, *k);
        }
        let frontier = following.frontier(frame, at, usize::MAX);
        if frame.open && reached.done.len() == frame.nodes.len() && !split.agrees(&frontier) {
            return Some(split);
        }
        self.join(*split, &frontier, &mut reached.scope);
        None
    }

    /// Gives branches what following nodes need of values outside.
    fn prepare(&mut self, split: &mut Split, frame: &Frame<'_>, following: &Following<'_>, reached: &Reached) {
        let needed = following.inside.iter().flat_map(|k| frame.nodes[*k].needs());
        let wanted = frame.wanted.iter().copied().filter(|_| frame.open);
        let needed: BTreeSet<&str> = needed.chain(wanted).collect();
        let mut given = Scope::new();
        for name in needed {
            if let Some(value) = reached.scope.get(name) {
                self.bind_ahead(value);
                given.insert(name.to_owned(), value.clone());
            }
        }
        let mut symbols = BTreeSet::new();
        given.values().for_each(|value| symbols_of(value, &mut |e| symbols.extend(free_vars(e))));
        let done: BTreeSet<usize> =
            (0..frame.nodes.len()).filter(|k| following.inside.binary_search(k).is_err()).collect();
        let outer = self.emitter.elements.clone();
        split.leaves_mut(&mut |state, leaf| {
            for (name, value) in &given {
                leaf.scope.entry(name.clone()).or_insert_with(|| value.clone());
            }
            state.elements.absorb(&outer);
            let extents = symbols.iter().filter(|v| outer.told(&v.expr()));
            extents.for_each(|v| state.function.bindings().analyzer.assume_nonnegative(v));
            leaf.done.clone_from(&done);
        });
    }

    /// Binds a value before a branch that may use it: what is bound in one branch is not there in the other.
    pub(super) fn bind_ahead(&mut self, value: &Value) {
        if matches!(value, Value::Known(_) | Value::Poison(_)) {
            return;
        }
        if let Err(fail) = self.emitter.bind(value) {
            let span = self.emitter.span;
            self.fault(fail, span);
        }
    }

    /// Converts a node in every branch that has not done so.
    fn absorb(&mut self, split: &mut Split, frame: &Frame<'_>, at: usize) {
        for arm in &mut split.arms {
            let mut reached = match &mut arm.end {
                End::Dead(_) => continue,
                End::Split(inner) => {
                    let (_, found) = self.inside(&mut arm.state, |c| c.absorb(inner, frame, at));
                    found.into_iter().for_each(|diag| self.faults.push(diag));
                    continue;
                }
                End::Open(reached) if reached.done.contains(&at) => continue,
                End::Open(reached) => std::mem::take(reached),
            };
            let frame = Frame { open: true, ..frame.clone() };
            let (open, found) = self.inside(&mut arm.state, |c| {
                let split = c.step(&frame, at, &mut reached)?;
                c.settle(split, &frame, at, &mut reached)
            });
            arm.end = match open {
                _ if !found.is_empty() => End::Dead(found),
                Some(inner) => End::Split(inner),
                None => End::Open(reached),
            };
        }
    }

    /// Notes that a node is converted in every branch; `false`, with an error, if that is too much.
    fn may_copy(&mut self, split: &Split, span: Span) -> bool {
        let width = split.width();
        self.copies = self.copies.saturating_add(width.saturating_sub(1));
        if width <= MAX_ARMS && self.copies <= MAX_COPIES {
            return true;
        }
        let message = format!(
            "the branches give values of different ranks, and what follows needs one rank: it would be converted for \
             more than {MAX_ARMS} combinations of branches, or more than {MAX_COPIES} nodes would be"
        );
        self.limits.push(
            Diag::error(span, message).help("fix the extents that these conditions compare, if they never change"),
        );
        false
    }

    /// Whether a node may give values in branches.
    fn splits(&self, node: &Node, seen: &mut BTreeSet<OpName>) -> bool {
        if self.custom.get(&node.op).is_some() {
            return false;
        }
        if let Some(function) = self.model.functions.get(&node.op) {
            return seen.insert(node.op.clone()) && function.nodes.iter().any(|n| self.splits(n, seen));
        }
        node.op.domain.is_empty() && node.op.op_type == "If"
    }
}

/// Calls `f` on the expressions in what is known of a value.
fn symbols_of(value: &Value, f: &mut dyn FnMut(&PrimExpr)) {
    match value {
        Value::Known(tensor) => tensor.elements.iter().for_each(f),
        Value::Tuple(items) => items.iter().for_each(|item| symbols_of(item, f)),
        Value::List(list) => match &list.content {
            Content::Items(items) => items.iter().for_each(|item| symbols_of(item, f)),
            Content::Value(value) => symbols_of(value, f),
        },
        value => {
            if let Some(info) = value.info() {
                info.visit_exprs(f);
            }
        }
    }
}
