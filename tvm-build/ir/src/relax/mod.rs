//! Relax: the graph level. Functions in administrative normal form, by their types: a call's arguments are leaves.

pub mod build;
mod op;
mod struct_info;
pub mod verify;
mod walk;

pub use op::{
    ArgDef, ArgKind, AttrDef, AttrDefault, AttrKind, Effects, InferCx, Legalized, Lower, LowerCx, Op, OpDef, Pattern,
    RewriteCx,
};
pub use struct_info::{Dims, FuncInfo, StructInfo, TensorInfo};
pub use walk::{leaf_vars, map_expr_leaves, rewrite_body, substitute_body, visit_leaves};

use crate::attrs::{AttrValue, Attrs};
use crate::constant::Constant;
use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{PrimExpr, fresh_id};
use crate::span::Span;
use std::sync::Arc;

/// The name of a function of the module; the module maps it to the function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GlobalVar(pub Name);

/// A graph-level variable; identity, not name, tells variables apart. It carries what is known of its value.
#[derive(Clone)]
pub struct Var(Arc<VarNode>);

struct VarNode {
    id: u64,
    name: Name,
    info: StructInfo,
    span: Span,
}

impl Var {
    /// A new variable, different from all others.
    pub fn new(name: impl Into<Name>, info: StructInfo) -> Var {
        Var::at(name, info, Span::NONE)
    }

    /// A new variable declared at a place.
    pub fn at(name: impl Into<Name>, info: StructInfo, span: Span) -> Var {
        Var(Arc::new(VarNode { id: fresh_id(), name: name.into(), info, span }))
    }

    /// Its name; not unique.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// What is known of its value.
    pub fn info(&self) -> &StructInfo {
        &self.0.info
    }

    /// Where it is declared.
    pub fn span(&self) -> Span {
        self.0.span
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Var) -> bool {
        self.0.id == other.0.id
    }
}
impl Eq for Var {}
impl PartialOrd for Var {
    fn partial_cmp(&self, other: &Var) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Var {
    fn cmp(&self, other: &Var) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}
impl std::fmt::Debug for Var {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.name)
    }
}

/// A value that needs no computation: what calls take as arguments.
#[derive(Clone, PartialEq, Debug)]
pub enum Leaf {
    /// A variable.
    Var(Var),
    /// A constant tensor.
    Const(Constant),
    /// A function of the module.
    Global(GlobalVar),
    /// A scalar (`R.prim_value`).
    Prim(PrimExpr),
    /// A shape (`R.shape([…])`).
    Shape(Vec<PrimExpr>),
    /// A string (`R.str`).
    Str(Name),
    /// A data type (`R.dtype`).
    DType(DType),
    /// A tuple of leaves written in place, as in `R.concat((a, b))`.
    Tuple(Vec<Leaf>),
    /// An optional argument that was not given.
    Absent,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Parameters.
    pub params: Vec<Var>,
    /// Body.
    pub body: Body,
    /// What it returns.
    pub ret: StructInfo,
    /// `num_input`, `global_symbol` (absent when private), `Primitive` …
    pub attrs: Attrs,
    /// Whether calls have no side effect.
    pub pure: bool,
    /// Where it was written.
    pub span: Span,
}

impl Function {
    /// What callers see.
    pub fn info(&self) -> StructInfo {
        StructInfo::Func(Box::new(FuncInfo {
            params: Some(self.params.iter().map(|p| p.info().clone()).collect()),
            ret: self.ret.clone(),
            pure: self.pure,
        }))
    }

    /// Whether it is left out of the module's interface.
    pub fn is_private(&self) -> bool {
        !self.attrs.contains_key("global_symbol")
    }
}

/// Bindings and a result (TVM's SeqExpr): the body of a function or branch.
#[derive(Clone, Debug)]
pub struct Body {
    /// Blocks in order.
    pub blocks: Vec<Block>,
    /// The value.
    pub result: Leaf,
}

/// A run of bindings.
#[derive(Clone, Debug)]
pub enum Block {
    /// Free of side effects and control flow; only `outputs` are visible after it.
    Dataflow {
        /// Bindings in order.
        bindings: Vec<Binding>,
        /// The variables of `R.output`, in binding order.
        outputs: Vec<Var>,
    },
    /// Anything; all variables are visible after it.
    Plain(Vec<Binding>),
}

impl Block {
    /// The bindings of either kind.
    pub fn bindings(&self) -> &[Binding] {
        match self {
            Block::Dataflow { bindings, .. } | Block::Plain(bindings) => bindings,
        }
    }

    /// The bindings of either kind, to change.
    pub fn bindings_mut(&mut self) -> &mut Vec<Binding> {
        match self {
            Block::Dataflow { bindings, .. } | Block::Plain(bindings) => bindings,
        }
    }
}

/// `var = value`
#[derive(Clone, Debug)]
pub struct Binding {
    /// A variable bound nowhere else.
    pub var: Var,
    /// Its value.
    pub value: Expr,
    /// Where it was written.
    pub span: Span,
}

/// The right side of a binding.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A leaf under another name.
    Leaf(Leaf),
    /// A call of the op table.
    Call(Call),
    /// `R.call_tir(func, args, out_sinfo)`: a PrimFunc over the inputs writes fresh outputs.
    CallTir(CallTir),
    /// `R.call_dps_packed("symbol", args, out_sinfo)`: an external function writes fresh outputs.
    CallDps {
        /// C symbol.
        symbol: Name,
        /// Inputs.
        args: Vec<Leaf>,
        /// A tensor, or a tuple of tensors.
        out: StructInfo,
    },
    /// A call of a Relax function, global or local, or of a closure.
    CallFunc {
        /// A `Var` or `Global`.
        callee: Leaf,
        /// Arguments.
        args: Vec<Leaf>,
    },
    /// `R.call_packed("symbol", args, sinfo_args)`: an external function that returns a value; impure.
    CallPacked {
        /// Symbol.
        symbol: Name,
        /// Arguments.
        args: Vec<Leaf>,
        /// What it returns.
        ret: StructInfo,
        /// `R.call_pure_packed`: no side effects.
        pure: bool,
    },
    /// A tuple.
    Tuple(Vec<Leaf>),
    /// A field of a tuple.
    TupleGetItem(Leaf, usize),
    /// `R.match_cast(value, info)`: checked at run time, binds new symbolic variables.
    MatchCast(Leaf, StructInfo),
    /// A conditional; not inside dataflow blocks.
    If(Box<If>),
    /// `R.while_loop(body, captured, carried, trip_count=n, cond=c, out_sinfo=info)`: calls of a function one after another.
    Loop(Box<Loop>),
    /// A local function (made by FuseOps before it becomes global, or a closure).
    Function(Box<Function>),
}

/// A call of the op table. `args` has one leaf for each declared argument ([`Leaf::Absent`] where an optional one
/// is not given), `attrs` one value for each declared attribute.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// The op.
    pub op: Op,
    /// Arguments, in declaration order.
    pub args: Vec<Leaf>,
    /// Attributes, in declaration order.
    pub attrs: Vec<AttrValue>,
    /// Where it was written.
    pub span: Span,
}

impl Call {
    /// The attribute of a name; `AttrValue::None` when the op declares no such attribute.
    pub fn attr(&self, name: &str) -> &AttrValue {
        self.op
            .def()
            .attrs
            .iter()
            .position(|a| a.name == name)
            .and_then(|i| self.attrs.get(i))
            .unwrap_or(&AttrValue::None)
    }
}

/// A call of a PrimFunc in destination-passing style.
#[derive(Clone, PartialEq, Debug)]
pub struct CallTir {
    /// The PrimFunc.
    pub func: GlobalVar,
    /// Input tensors.
    pub args: Vec<Leaf>,
    /// Outputs: a tensor, or a tuple of tensors.
    pub out: StructInfo,
    /// Values of the PrimFunc's scalar parameters (`tir_vars`), which come after all buffers.
    pub tir_vars: Vec<PrimExpr>,
    /// Empty, or for each output the index of the argument it overwrites (−1: none): `R.call_tir_inplace`.
    pub inplace: Vec<i64>,
}

/// A conditional.
#[derive(Clone, Debug)]
pub struct If {
    /// A bool scalar tensor or prim.
    pub cond: Leaf,
    /// When true.
    pub then: Body,
    /// When false.
    pub otherwise: Body,
}

/// A loop: iterations of a function of the module.
///
/// ```text
/// i = 0
/// while (no trip count, or i < trip_count) and (no condition, or cond):
///     ([cond,] carried…, rows…) = body(i, captured…, carried…)
///     append each row to its stack
///     i = i + 1
/// return (carried…, stacks…)
/// ```
///
/// `body` is a Relax function that takes an `int64` scalar, then the captured and the carried values, and returns a
/// tuple. It returns a bool scalar first if the loop has a condition. What it returns beyond the carried values are rows:
/// tensors, each of one shape in all iterations, that are stacked along a new first axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Loop {
    /// The function, a `Global`.
    pub body: Leaf,
    /// Most iterations: a scalar, or an `int64` tensor of one element; [`Leaf::Absent`]: any number.
    pub trip_count: Leaf,
    /// Condition of the first iteration, a bool scalar; [`Leaf::Absent`]: there is none.
    pub cond: Leaf,
    /// Arguments that are the same in every iteration.
    pub captured: Vec<Leaf>,
    /// Values of the first iteration for what the iterations hand on.
    pub carried: Vec<Leaf>,
    /// What the carried values are before and after every iteration, then what the stacks are. Unless the trip count is a
    /// scalar and there is no condition, the first extent of the stacks is a variable that the loop defines.
    pub out: Vec<StructInfo>,
}

impl Loop {
    /// Infos of the stacks.
    pub fn stacked(&self) -> &[StructInfo] {
        self.out.get(self.carried.len()..).unwrap_or_default()
    }

    /// The number of iterations, where it is known before the loop: the trip count, at least 0.
    pub fn iterations(&self) -> Option<PrimExpr> {
        match &self.trip_count {
            Leaf::Prim(e) if self.cond == Leaf::Absent => {
                Some(e.as_int().map_or_else(|| e.clone(), |n| PrimExpr::i64(n.max(0))))
            }
            _ => None,
        }
    }

    /// The variable that the loop defines as the number of iterations.
    pub fn defines(&self) -> Option<&crate::prim::Var> {
        let first = self.stacked().iter().filter_map(|s| s.as_tensor()?.dims.known()?.first());
        if self.iterations().is_some() { None } else { first.filter_map(PrimExpr::as_var).next() }
    }

    /// The loop with every leaf mapped, the body's too.
    #[must_use]
    pub fn map_leaves(&self, f: &mut dyn FnMut(&Leaf) -> Leaf) -> Loop {
        let mut all = |leaves: &[Leaf]| leaves.iter().map(|l| l.map(f)).collect::<Vec<_>>();
        let (captured, carried) = (all(&self.captured), all(&self.carried));
        Loop {
            body: self.body.map(f),
            trip_count: self.trip_count.map(f),
            cond: self.cond.map(f),
            captured,
            carried,
            out: self.out.clone(),
        }
    }
}

impl From<Var> for Leaf {
    fn from(v: Var) -> Leaf {
        Leaf::Var(v)
    }
}
impl From<&Var> for Leaf {
    fn from(v: &Var) -> Leaf {
        Leaf::Var(v.clone())
    }
}
impl From<Constant> for Leaf {
    fn from(v: Constant) -> Leaf {
        Leaf::Const(v)
    }
}

impl Leaf {
    /// What is known of the value. `None` for a function of the module (ask the module) and an absent argument.
    pub fn info(&self) -> Option<StructInfo> {
        Some(match self {
            Leaf::Var(v) => v.info().clone(),
            Leaf::Const(c) => StructInfo::Tensor(TensorInfo {
                dims: Dims::Known(
                    c.shape().iter().map(|d| PrimExpr::i64(i64::try_from(*d).unwrap_or(i64::MAX))).collect(),
                ),
                dtype: Some(c.dtype()),
            }),
            Leaf::Prim(e) => StructInfo::Prim(e.dtype(), Some(e.clone())),
            Leaf::Shape(dims) => StructInfo::Shape(Dims::Known(dims.clone())),
            Leaf::Str(_) | Leaf::DType(_) => StructInfo::Object,
            Leaf::Tuple(items) => StructInfo::Tuple(items.iter().map(Leaf::info).collect::<Option<_>>()?),
            Leaf::Global(_) | Leaf::Absent => return None,
        })
    }

    /// The variable of a `Var`.
    pub fn as_var(&self) -> Option<&Var> {
        match self {
            Leaf::Var(v) => Some(v),
            _ => None,
        }
    }
}
