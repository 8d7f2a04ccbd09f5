//! What an op is: one row says all of it. The rows stand in [`crate::ops`], a file a family.

use super::{Binding, Call, Leaf, StructInfo, TensorInfo};
use crate::arith::Analyzer;
use crate::attrs::AttrValue;
use crate::diag::Diag;
use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{Buffer, PrimExpr};
use crate::tir::PrimFunc;

/// A row of the op table.
pub struct OpDef {
    /// Name after `R.`, as `nn.relu`.
    pub name: &'static str,
    /// What it computes, in one line.
    pub doc: &'static str,
    /// Arguments in order.
    pub args: &'static [ArgDef],
    /// Attributes in printing order.
    pub attrs: &'static [AttrDef],
    /// Brings a complete call into its normal form (`strides=2` as `[2, 2]`, `-1` in a shape resolved).
    pub prepare: fn(&mut Call) -> Result<(), Diag>,
    /// Struct info of the result, from that of the arguments.
    pub infer: fn(&InferCx<'_>) -> Result<StructInfo, Diag>,
    /// How it becomes something simpler.
    pub lower: Lower,
    /// How it takes part in fusion, at most: what its PrimFunc shows may be less for given shapes and attributes.
    pub pattern: Pattern,
    /// What else it does.
    pub effects: Effects,
}

/// A declared argument.
#[derive(Clone, Copy, Debug)]
pub struct ArgDef {
    /// Name, also as a keyword.
    pub name: &'static str,
    /// What it must be.
    pub kind: ArgKind,
    /// Whether it may be [`Leaf::Absent`].
    pub optional: bool,
}

/// What an argument must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgKind {
    /// A tensor.
    Tensor,
    /// A tensor or a scalar. One constant of rank 0 among several such arguments becomes a literal of the PrimFunc.
    Operand,
    /// A tuple of tensors.
    Tensors,
    /// A shape.
    Shape,
    /// A scalar, or a tensor of rank 0.
    Prim,
    /// Anything.
    Any,
}

/// A declared attribute.
#[derive(Clone, Copy, Debug)]
pub struct AttrDef {
    /// Name, also as a keyword.
    pub name: &'static str,
    /// What it must be.
    pub kind: AttrKind,
    /// Its value when it is not given; `None`: it must be given.
    pub default: Option<AttrDefault>,
}

/// What an attribute must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttrKind {
    /// `True` or `False`.
    Bool,
    /// An integer.
    Int,
    /// An integer or `None`.
    OptInt,
    /// A number.
    Float,
    /// A string.
    Str,
    /// A data type, or `None`/`"void"` for "as inferred".
    DType,
    /// A list of integers (one integer is read as a list of one).
    Ints,
    /// A list of integers, or `None`.
    OptInts,
    /// Anything.
    Any,
}

/// A default that can stand in a `static`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AttrDefault {
    /// `None`
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A string.
    Str(&'static str),
    /// A data type.
    DType(DType),
    /// `"void"`: as inferred.
    Void,
    /// A list of integers.
    Ints(&'static [i64]),
}

impl AttrDefault {
    /// The value.
    pub fn value(self) -> AttrValue {
        match self {
            AttrDefault::None => AttrValue::None,
            AttrDefault::Bool(v) => AttrValue::Bool(v),
            AttrDefault::Int(v) => AttrValue::Int(v),
            AttrDefault::Float(v) => AttrValue::Float(v),
            AttrDefault::Str(v) => AttrValue::Str(v.into()),
            AttrDefault::DType(v) => AttrValue::DType(v),
            AttrDefault::Void => AttrValue::DType(DType::VOID),
            AttrDefault::Ints(v) => AttrValue::List(v.iter().map(|i| AttrValue::Int(*i)).collect()),
        }
    }
}

/// Fusion kinds, as TVM's `OpPatternKind`; the numbers are the `op_pattern` attribute's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Pattern {
    /// One output element from the same element of each input.
    ElemWise = 0,
    /// As element-wise, with inputs broadcast along axes in order.
    Broadcast = 1,
    /// One output element from one element of each input.
    Injective = 2,
    /// A commutative reduction.
    CommReduce = 3,
    /// A heavy op whose output can take element-wise ops (conv, matmul).
    OutEWiseFusable = 4,
    /// A tuple.
    Tuple = 7,
    /// Not to be fused.
    Opaque = 8,
}

/// What an op does besides its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effects {
    /// Nothing: it may be folded, moved, removed.
    Pure,
    /// Gives other values each time: it may be removed, not folded or merged.
    Random,
    /// Something: it stays.
    Impure,
}

/// How an op becomes something simpler.
#[derive(Clone, Copy)]
pub enum Lower {
    /// A PrimFunc of its own (TVM's legalization through TE): the name hint of the function, and how it is made.
    Tir(&'static str, fn(&LowerCx<'_>) -> Result<PrimFunc, Diag>),
    /// Other ops.
    Ops(fn(&mut RewriteCx<'_>) -> Result<Leaf, Diag>),
    /// A builtin of the VM by its name; it stays a call until VM code generation.
    Builtin(&'static str),
}

/// A handle on a row; equal by name.
#[derive(Clone, Copy)]
pub struct Op(&'static OpDef);

impl Op {
    /// The handle of a row.
    pub const fn new(def: &'static OpDef) -> Op {
        Op(def)
    }

    /// The row.
    pub fn def(self) -> &'static OpDef {
        self.0
    }

    /// Name after `R.`.
    pub fn name(self) -> &'static str {
        self.0.name
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Op) -> bool {
        self.0.name == other.0.name
    }
}
impl Eq for Op {}
impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

/// What an inference rule sees.
pub struct InferCx<'a> {
    /// The call, complete with defaults.
    pub call: &'a Call,
    /// Proves equality of symbolic dimensions.
    pub analyzer: &'a Analyzer,
}

/// What a lowering to TIR sees: for each argument the buffers it stands for, and the inferred result.
pub struct LowerCx<'a> {
    /// The call.
    pub call: &'a Call,
    /// Struct info of the result: shape and type are known.
    pub out: &'a StructInfo,
    /// For each argument its input buffers: one for a tensor, several for a tuple, none for shapes, scalars and absent ones.
    pub inputs: &'a [Vec<Buffer>],
}

impl LowerCx<'_> {
    /// The result, when it is one tensor.
    pub fn out_tensor(&self) -> Result<&TensorInfo, Diag> {
        self.out.as_tensor().ok_or_else(|| {
            Diag::error(self.call.span, format!("R.{}: the result is not one tensor", self.call.op.name()))
        })
    }
}

/// What a lowering to other ops sees: it emits bindings and returns the result.
pub struct RewriteCx<'a> {
    /// The call.
    pub call: &'a Call,
    /// Struct info of the result.
    pub out: &'a StructInfo,
    /// Where bindings are emitted.
    pub builder: &'a mut super::build::BindingBuilder,
}

/// A call made simpler.
#[derive(Clone, Debug)]
pub enum Legalized {
    /// A PrimFunc to add to the module under a fresh name after `name`, and what to call it with.
    Tir {
        /// Name hint, as TVM's legalizer names it (`add`, `transpose`, `matmul` …).
        name: Name,
        /// The function, private.
        func: PrimFunc,
        /// Tensor arguments.
        args: Vec<Leaf>,
        /// Values of its scalar parameters.
        tir_vars: Vec<PrimExpr>,
    },
    /// Other bindings that give the result.
    Bindings {
        /// In order.
        bindings: Vec<Binding>,
        /// The result.
        result: Leaf,
    },
    /// It stays as it is (a builtin).
    Keep,
}
