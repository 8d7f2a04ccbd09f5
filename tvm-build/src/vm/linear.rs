//! A Relax function as steps over storages: the form in which memory is planned and code is emitted.
//!
//! Tuples are taken apart here and exist nowhere later. Tensors that are the same memory (leaf copies, fields of
//! tuples, reshapes) share a storage. Steps are in execution order; the branches of a conditional are nested.

use std::collections::{BTreeMap, BTreeSet};
use tvm_ir::arith::IntBound;
use tvm_ir::dtype::DType;
use tvm_ir::name::Name;
use tvm_ir::prim::{PrimExpr, Var};
use tvm_ir::relax::StructInfo;
use tvm_ir::span::Span;
use tvm_runtime::Reg;
use tvm_runtime::builtin::Builtin;

/// Index into [`Linear::tensors`].
pub(super) type TensorId = usize;
/// Index into [`Linear::storages`].
pub(super) type StorageId = usize;

/// A function, taken apart.
#[derive(Debug)]
pub(super) struct Linear {
    pub(super) name: Name,
    pub(super) span: Span,
    /// Parameters, tuples flattened: registers in order.
    pub(super) params: Vec<ParamSlot>,
    /// Tensors that the caller provides room for.
    pub(super) outs: Vec<OutSlot>,
    /// Tensors that it returns: their shapes are known when it has run.
    pub(super) returned: Vec<ReturnSlot>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) storages: Vec<Storage>,
    /// Storages that stand for lists, which have no memory of their own: registers hold them.
    pub(super) lists: BTreeSet<StorageId>,
    pub(super) steps: Vec<Step>,
    /// How many shapes its steps make.
    pub(super) shapes: usize,
    /// Declared bounds of symbolic variables by name.
    pub(super) bounds: BTreeMap<Name, IntBound>,
    /// Symbols that parameters tell.
    pub(super) entry: BTreeSet<Var>,
    /// Upper bounds of symbols that are bound inside, in the order in which they are bound.
    pub(super) most: Vec<SymbolBound>,
    /// Other functions of the program call it: what it returns must outlive its part of the arena.
    pub(super) called: bool,
}

/// An upper bound of a symbol, over symbols bound before it.
#[derive(Debug)]
pub(super) struct SymbolBound {
    pub(super) var: Var,
    pub(super) most: PrimExpr,
    /// Whether it has to be compared at run time.
    pub(super) check: bool,
}

/// A parameter that is no tuple.
#[derive(Debug)]
pub(super) struct ParamSlot {
    pub(super) name: String,
    pub(super) info: StructInfo,
    /// What holds the value of a scalar: its symbolic value, or a variable made for it.
    pub(super) scalar: Option<PrimExpr>,
}

/// An output.
#[derive(Debug)]
pub(super) struct OutSlot {
    pub(super) name: String,
    /// Which of the results it is.
    pub(super) position: usize,
    pub(super) dims: Vec<PrimExpr>,
    pub(super) dtype: DType,
}

/// A tensor that is returned.
#[derive(Debug)]
pub(super) struct ReturnSlot {
    pub(super) name: String,
    /// Which of the results it is.
    pub(super) position: usize,
    /// Rank, where it is known.
    pub(super) rank: Option<usize>,
    /// Element type; `None` for a list.
    pub(super) dtype: Option<DType>,
}

/// A tensor: a type over a storage.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) name: Name,
    /// `None` where dimensions are known at run time only.
    pub(super) dims: Option<Vec<PrimExpr>>,
    pub(super) dtype: Option<DType>,
    pub(super) storage: StorageId,
}

/// Memory of one or more tensors.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub(super) origin: Origin,
    /// The tensor it was made for.
    pub(super) tensor: TensorId,
    /// It is the same memory as another one.
    pub(super) merged: Option<StorageId>,
}

/// Where memory comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// The caller's, read only.
    Param(Reg),
    /// The weights, at a byte offset.
    Weight(usize),
    /// The caller's output.
    Out(u16),
    /// To be planned.
    Made,
    /// Provided by what gives the value, a call or a branch: a register holds it.
    Value,
}

/// What a Relax variable stands for.
#[derive(Clone, Debug)]
pub(super) enum Val {
    Tensor(TensorId),
    Tuple(Vec<Val>),
    Shape(Vec<PrimExpr>),
    /// A shape whose dimensions are known at run time only.
    RunShape(RunShape),
    Prim(PrimExpr),
    /// A name that a builtin says in errors.
    Str(Name),
}

/// Where a shape comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RunShape {
    /// A parameter.
    Param(Reg),
    /// A step, by its number among those that make shapes.
    Made(usize),
}

/// A step.
#[derive(Debug)]
pub(super) enum Step {
    /// A kernel reads `args` and writes `outs`.
    Kernel {
        kernel: u16,
        /// Buffers in order of the kernel's parameters: `args`, then `outs`.
        args: Vec<TensorId>,
        outs: Vec<TensorId>,
        scalars: Vec<PrimExpr>,
        /// `(output, argument)` pairs that may be the same memory, by the PrimFunc.
        inplace: Vec<(usize, usize)>,
    },
    /// A Relax function, by its index in the program. It writes `outs` and returns `returned`, whose shapes, if it made
    /// them, have `rank` extents in all.
    Function { callee: u16, args: Vec<Val>, outs: Vec<TensorId>, returned: Vec<TensorId>, rank: usize },
    /// A function of the user's program, by its index among the externs.
    Extern { callee: u16, args: Vec<Val>, outs: Vec<TensorId> },
    /// A builtin that writes `outs`, its last operands.
    Write { builtin: &'static Builtin, args: Vec<Val>, outs: Vec<TensorId> },
    /// Copies elements.
    Copy { from: TensorId, to: TensorId },
    /// `to`, a value, is the tensor `from` from here on.
    Move { from: TensorId, to: TensorId },
    /// `to`, a value, is a copy of `from`, whose size need not be known before.
    Clone { from: TensorId, to: TensorId },
    /// Compares integers with upper bounds.
    AtMost { dims: Vec<PrimExpr>, most: Vec<PrimExpr>, name: Name },
    /// Returns tensors: the last step.
    Return { tensors: Vec<TensorId> },
    /// Compares a value with a type, binds the variables that are new.
    MatchCast { value: Val, info: StructInfo, name: Name, span: Span },
    /// Makes a shape of a tensor's elements.
    TensorToShape { tensor: TensorId, rank: usize, shape: usize },
    /// Makes the shape of a tensor.
    ShapeOf { tensor: TensorId, shape: usize },
    /// Writes a shape's dimensions to a tensor.
    ShapeToTensor { shape: Val, tensor: TensorId },
    /// `to`, a value, is what a builtin gives.
    Builtin { builtin: &'static Builtin, args: Vec<BuiltinArg>, to: TensorId },
    /// Writes the number of items of a list to a tensor of one integer.
    ListLength { list: TensorId, tensor: TensorId },
    /// A conditional.
    If { cond: Val, then: Vec<Step>, otherwise: Vec<Step> },
    /// Calls of a function one after another.
    Loop(Box<Loop>),
}

/// An operand of a builtin.
#[derive(Debug)]
pub(super) enum BuiltinArg {
    /// A value.
    Value(Val),
    /// An integer, which may lie in a tensor of one element.
    Scalar(Val),
    /// An integer.
    Int(i64),
    /// One that is left out.
    Absent,
    /// Integers of the heap for a shape of this rank.
    Slot(usize),
    /// Names for errors: of what is made, and of what its size depends on.
    Names(TensorId),
}

/// A loop. It is one step: all memory it touches is in use from its first iteration to its last.
#[derive(Debug)]
pub(super) struct Loop {
    /// The Relax function of an iteration, by its index in the program: it takes the index of the iteration, `captured`
    /// and the carried values, and writes the condition, the carried values and the rows.
    pub(super) body: u16,
    /// Most iterations.
    pub(super) trip_count: Option<Val>,
    /// Condition of the first iteration.
    pub(super) cond: Option<Val>,
    pub(super) captured: Vec<Val>,
    pub(super) carried: Vec<Carried>,
    /// What an iteration writes the condition of the next one to.
    pub(super) flag: Option<TensorId>,
    pub(super) stacks: Vec<Stack>,
    /// The variable that is the number of iterations, where the loop defines one.
    pub(super) iterations: Option<Var>,
}

/// A value that iterations hand on.
#[derive(Debug)]
pub(super) enum Carried {
    /// It has one size: `state` is its memory before the first iteration and after the last one, `next` is as much
    /// again; an iteration reads one and writes the other.
    Fixed { state: TensorId, next: TensorId },
    /// Its shape, of `rank` extents, may change: an iteration returns it. `state` is the value after the last one.
    Value { first: TensorId, state: TensorId, rank: usize },
    /// It is a list, which an iteration returns. `state` is the list after the last one.
    List { first: TensorId, state: TensorId },
}

/// Rows of all iterations.
#[derive(Debug)]
pub(super) enum Stack {
    /// The iterations write their rows to it.
    Whole(TensorId),
    /// It grows by a row an iteration. `row` is where iterations write the row; without it, they return it.
    Grown { stack: TensorId, row: Option<TensorId>, rank: usize },
}

impl Linear {
    /// The storage that stands for all that are the same memory.
    pub(super) fn root(&self, mut storage: StorageId) -> StorageId {
        while let Some(next) = self.storages[storage].merged {
            storage = next;
        }
        storage
    }

    /// The root storage of a tensor.
    pub(super) fn storage_of(&self, tensor: TensorId) -> StorageId {
        self.root(self.tensors[tensor].storage)
    }

    /// Where a tensor's memory comes from.
    pub(super) fn origin_of(&self, tensor: TensorId) -> Origin {
        self.storages[self.storage_of(tensor)].origin
    }

    /// A tensor over new memory.
    pub(super) fn add(
        &mut self,
        name: Name,
        dims: Option<Vec<PrimExpr>>,
        dtype: Option<DType>,
        origin: Origin,
    ) -> TensorId {
        let (tensor, storage) = (self.tensors.len(), self.storages.len());
        self.tensors.push(Tensor { name, dims, dtype, storage });
        self.storages.push(Storage { origin, tensor, merged: None });
        tensor
    }

    /// A list.
    pub(super) fn add_list(&mut self, name: Name, origin: Origin) -> TensorId {
        let list = self.add(name, None, None, origin);
        self.lists.insert(self.tensors[list].storage);
        list
    }

    /// Whether it is a list.
    pub(super) fn is_list(&self, tensor: TensorId) -> bool {
        self.lists.contains(&self.storage_of(tensor))
    }

    /// The memory of a tensor under another type.
    pub(super) fn view(
        &mut self,
        of: TensorId,
        name: Name,
        dims: Option<Vec<PrimExpr>>,
        dtype: Option<DType>,
    ) -> TensorId {
        let storage = self.tensors[of].storage;
        self.tensors.push(Tensor { name, dims, dtype, storage });
        self.tensors.len() - 1
    }

    /// Calls `f` on every step with its position, in order; branches come after their conditional.
    pub(super) fn visit_steps<'a>(&'a self, f: &mut dyn FnMut(usize, &'a Step)) {
        fn go<'a>(steps: &'a [Step], at: &mut usize, f: &mut dyn FnMut(usize, &'a Step)) {
            for step in steps {
                f(*at, step);
                *at += 1;
                if let Step::If { then, otherwise, .. } = step {
                    go(then, at, f);
                    go(otherwise, at, f);
                }
            }
        }
        go(&self.steps, &mut 0, f);
    }
}

impl Val {
    /// Its tensors, in order.
    pub(super) fn tensors(&self) -> Vec<TensorId> {
        match self {
            Val::Tensor(t) => vec![*t],
            Val::Tuple(items) => items.iter().flat_map(Val::tensors).collect(),
            Val::Shape(_) | Val::RunShape(_) | Val::Prim(_) | Val::Str(_) => Vec::new(),
        }
    }

    /// What it holds that is no tuple, in order.
    pub(super) fn flat(&self) -> Vec<Val> {
        match self {
            Val::Tuple(items) => items.iter().flat_map(Val::flat).collect(),
            other => vec![other.clone()],
        }
    }
}

impl Step {
    /// Tensors read.
    pub(super) fn reads(&self) -> Vec<TensorId> {
        match self {
            Step::Kernel { args, .. } => args.clone(),
            Step::Function { args, .. } | Step::Extern { args, .. } | Step::Write { args, .. } => {
                args.iter().flat_map(Val::tensors).collect()
            }
            Step::Copy { from, .. } | Step::Move { from, .. } | Step::Clone { from, .. } => vec![*from],
            Step::Return { tensors } => tensors.clone(),
            Step::MatchCast { value, .. } => value.tensors(),
            Step::TensorToShape { tensor, .. } | Step::ShapeOf { tensor, .. } => vec![*tensor],
            Step::ShapeToTensor { .. } | Step::AtMost { .. } => Vec::new(),
            Step::ListLength { list, .. } => vec![*list],
            Step::Builtin { args, .. } => {
                let values = args.iter().filter_map(|a| match a {
                    BuiltinArg::Value(v) | BuiltinArg::Scalar(v) => Some(v.tensors()),
                    _ => None,
                });
                values.flatten().collect()
            }
            Step::If { cond, .. } => cond.tensors(),
            Step::Loop(l) => {
                let values = l.trip_count.iter().chain(&l.cond).chain(&l.captured);
                let first = l.carried.iter().map(|c| match c {
                    Carried::Fixed { state, .. } => *state,
                    Carried::Value { first, .. } | Carried::List { first, .. } => *first,
                });
                values.flat_map(Val::tensors).chain(first).collect()
            }
        }
    }

    /// Tensors written.
    pub(super) fn writes(&self) -> Vec<TensorId> {
        match self {
            Step::Kernel { outs, .. } | Step::Extern { outs, .. } | Step::Write { outs, .. } => outs.clone(),
            Step::Function { outs, returned, .. } => outs.iter().chain(returned).copied().collect(),
            Step::Copy { to, .. }
            | Step::Move { to, .. }
            | Step::Clone { to, .. }
            | Step::Builtin { to, .. }
            | Step::ListLength { tensor: to, .. }
            | Step::ShapeToTensor { tensor: to, .. } => vec![*to],
            Step::Loop(l) => {
                let mut all: Vec<TensorId> = l.flag.into_iter().collect();
                for c in &l.carried {
                    match c {
                        Carried::Fixed { state, next } => all.extend([*state, *next]),
                        Carried::Value { state, .. } | Carried::List { state, .. } => all.push(*state),
                    }
                }
                for s in &l.stacks {
                    match s {
                        Stack::Whole(stack) => all.push(*stack),
                        Stack::Grown { stack, row, .. } => all.extend(row.iter().chain([stack])),
                    }
                }
                all
            }
            Step::MatchCast { .. }
            | Step::AtMost { .. }
            | Step::Return { .. }
            | Step::If { .. }
            | Step::TensorToShape { .. }
            | Step::ShapeOf { .. } => Vec::new(),
        }
    }
}

/// The number of elements.
pub(super) fn elements(dims: &[PrimExpr]) -> PrimExpr {
    dims.iter().fold(PrimExpr::i64(1), |n, d| n * d.cast(DType::I64))
}

/// A fresh variable for a scalar parameter without a symbolic value.
pub(super) fn scalar_var(name: &str, dtype: DType) -> PrimExpr {
    Var::new(name, dtype).expr()
}
