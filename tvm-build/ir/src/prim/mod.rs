//! Scalar and vector expressions, their variables and the buffers they read.
//!
//! A [`PrimExpr`] is an immutable shared tree. Equality and hashing are by structure (variables and buffers by
//! identity, floats by bits, spans ignored). Division semantics are explicit in the operator.

mod intrinsic;
mod make;
mod show;
mod walk;

pub use intrinsic::{INTRINSICS, Intrinsic, IntrinsicDef, ResultType};
pub use make::{eval_int, wrap_int};
pub(crate) use show::show_expr;
pub use walk::{Substitution, free_vars, rewrite, substitute, visit};

use crate::dtype::DType;
use crate::name::Name;
use crate::span::Span;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A number no variable or buffer had before, growing.
pub(crate) fn fresh_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// A scalar variable; identity, not name, tells variables apart. Ordered by creation.
#[derive(Clone)]
pub struct Var(Arc<VarNode>);

struct VarNode {
    id: u64,
    name: Name,
    dtype: DType,
    span: Span,
}

impl Var {
    /// A new variable, different from all others.
    pub fn new(name: impl Into<Name>, dtype: DType) -> Var {
        Var::at(name, dtype, Span::NONE)
    }

    /// A new variable declared at a place.
    pub fn at(name: impl Into<Name>, dtype: DType, span: Span) -> Var {
        Var(Arc::new(VarNode { id: fresh_id(), name: name.into(), dtype, span }))
    }

    /// Its name; not unique.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// Its type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Where it is declared.
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// A new variable of the same name and type.
    pub fn copy(&self) -> Var {
        Var::at(self.0.name.clone(), self.0.dtype, self.0.span)
    }

    /// The variable as an expression.
    pub fn expr(&self) -> PrimExpr {
        PrimExpr::new(PrimKind::Var(self.clone()), self.dtype())
    }
}

/// Storage scope of a buffer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// Main memory.
    Global,
    /// Private to a thread: registers or stack.
    Local,
    /// Shared by a thread block, statically sized.
    Shared,
    /// Shared by a thread block, sized at launch.
    SharedDyn,
    /// Shared by a warp.
    Warp,
    /// Another scope by its name, as `wmma.matrix_a`.
    Other(Name),
}

impl Scope {
    /// TVM's spelling.
    pub fn as_str(&self) -> &str {
        match self {
            Scope::Global => "global",
            Scope::Local => "local",
            Scope::Shared => "shared",
            Scope::SharedDyn => "shared.dyn",
            Scope::Warp => "warp",
            Scope::Other(name) => name,
        }
    }

    /// The scope of a spelling.
    pub fn parse(s: &str) -> Scope {
        match s {
            "global" | "" => Scope::Global,
            "local" => Scope::Local,
            "shared" => Scope::Shared,
            "shared.dyn" => Scope::SharedDyn,
            "warp" => Scope::Warp,
            other => Scope::Other(other.into()),
        }
    }
}

/// A multi-dimensional buffer; identity, not name, tells buffers apart.
#[derive(Clone)]
pub struct Buffer(Arc<BufferNode>);

/// What a buffer is made of; see [`Buffer::from_node`].
#[derive(Clone, Debug)]
pub struct BufferNode {
    /// Name hint.
    pub name: Name,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first; rank 0 holds one element.
    pub shape: Vec<PrimExpr>,
    /// Strides in elements; empty means compact row-major.
    pub strides: Vec<PrimExpr>,
    /// Offset of the first element; `None` means 0.
    pub elem_offset: Option<PrimExpr>,
    /// Where it lives.
    pub scope: Scope,
    /// Where it is declared.
    pub span: Span,
}

impl Buffer {
    /// A new compact buffer in main memory.
    pub fn new(name: impl Into<Name>, shape: Vec<PrimExpr>, dtype: DType) -> Buffer {
        Buffer::from_node(BufferNode {
            name: name.into(),
            dtype,
            shape,
            strides: Vec::new(),
            elem_offset: None,
            scope: Scope::Global,
            span: Span::NONE,
        })
    }

    /// A new buffer, different from all others.
    pub fn from_node(node: BufferNode) -> Buffer {
        Buffer(Arc::new(node))
    }

    /// The parts, to make a changed copy from.
    pub fn node(&self) -> &BufferNode {
        &self.0
    }
}

impl std::ops::Deref for Buffer {
    type Target = BufferNode;
    fn deref(&self) -> &BufferNode {
        &self.0
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Buffer {}
impl Hash for Buffer {
    fn hash<H: Hasher>(&self, h: &mut H) {
        Arc::as_ptr(&self.0).hash(h);
    }
}
impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.name)
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
impl Hash for Var {
    fn hash<H: Hasher>(&self, h: &mut H) {
        self.0.id.hash(h);
    }
}
impl std::fmt::Debug for Var {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.name)
    }
}

/// Binary operators. Both operands and the result have one type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BinOp {
    /// `a + b`; integers wrap.
    Add,
    /// `a - b`; integers wrap.
    Sub,
    /// `a * b`; integers wrap.
    Mul,
    /// Floats: IEEE division. Integers: quotient rounded toward zero (`T.truncdiv`, C's `/`).
    Div,
    /// Remainder of [`BinOp::Div`]: the dividend's sign (`T.truncmod`, C's `%` and `fmod`).
    Mod,
    /// Quotient rounded toward negative infinity (Python's `//`).
    FloorDiv,
    /// Remainder of [`BinOp::FloorDiv`]: the divisor's sign (Python's `%`).
    FloorMod,
    /// The lesser; a NaN operand gives NaN.
    Min,
    /// The greater; a NaN operand gives NaN.
    Max,
    /// `a & b` of integers or bools.
    BitAnd,
    /// `a | b`
    BitOr,
    /// `a ^ b`
    BitXor,
    /// `a << b`
    Shl,
    /// `a >> b`: arithmetic for signed, logical for unsigned.
    Shr,
}

/// Comparisons; the result is a bool of the operands' lanes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CmpOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// A scalar or vector expression.
#[derive(Clone)]
pub struct PrimExpr(Arc<PrimNode>);

/// What an expression is made of.
pub struct PrimNode {
    /// The operation.
    pub kind: PrimKind,
    /// Type of the value.
    pub dtype: DType,
    /// Where it was written; ignored by equality.
    pub span: Span,
}

/// The operations of expressions.
#[derive(Clone, Debug)]
pub enum PrimKind {
    /// A variable's value.
    Var(Var),
    /// An integer or bool; 64-bit unsigned values are kept as their bit pattern.
    Int(i64),
    /// A float as written; its value is that number rounded to the expression's type.
    Float(f64),
    /// A string argument of an intrinsic or extern call.
    Str(Name),
    /// An operator.
    Binary(BinOp, PrimExpr, PrimExpr),
    /// A comparison.
    Cmp(CmpOp, PrimExpr, PrimExpr),
    /// Logical and of bools.
    And(PrimExpr, PrimExpr),
    /// Logical or of bools.
    Or(PrimExpr, PrimExpr),
    /// Logical not of a bool.
    Not(PrimExpr),
    /// `Select(c, a, b)`: both sides may be evaluated. For lazy choice see [`Intrinsic::IfThenElse`].
    Select(PrimExpr, PrimExpr, PrimExpr),
    /// Conversion to the expression's type: floats to integers truncate, out-of-range values saturate, NaN gives 0;
    /// integers to integers wrap; to bool is `!= 0`.
    Cast(PrimExpr),
    /// An element of a buffer; a vector when the last index is a ramp.
    Load(Buffer, Vec<PrimExpr>),
    /// `let v = value in body`
    Let(Var, PrimExpr, PrimExpr),
    /// `base, base + stride, …`, as many as the lanes of the type.
    Ramp(PrimExpr, PrimExpr),
    /// One scalar in every lane.
    Broadcast(PrimExpr),
    /// A function of the intrinsic table.
    Call(Intrinsic, Vec<PrimExpr>),
    /// A C function by its symbol.
    CallExtern(Name, Vec<PrimExpr>),
}

impl PrimExpr {
    /// An expression of any kind; the caller gives the right type.
    pub fn new(kind: PrimKind, dtype: DType) -> PrimExpr {
        PrimExpr(Arc::new(PrimNode { kind, dtype, span: Span::NONE }))
    }

    /// The same expression with a location.
    #[must_use]
    pub fn with_span(&self, span: Span) -> PrimExpr {
        PrimExpr(Arc::new(PrimNode { kind: self.0.kind.clone(), dtype: self.0.dtype, span }))
    }

    /// The operation.
    pub fn kind(&self) -> &PrimKind {
        &self.0.kind
    }

    /// Type of the value.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Where it was written.
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// Whether both are the same node.
    pub fn same_as(&self, other: &PrimExpr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The value of an integer or bool literal, or of a broadcast of one.
    pub fn as_int(&self) -> Option<i64> {
        match self.kind() {
            PrimKind::Int(v) => Some(*v),
            PrimKind::Broadcast(e) => e.as_int(),
            _ => None,
        }
    }

    /// The value of a float literal, or of a broadcast of one.
    pub fn as_float(&self) -> Option<f64> {
        match self.kind() {
            PrimKind::Float(v) => Some(*v),
            PrimKind::Broadcast(e) => e.as_float(),
            _ => None,
        }
    }

    /// The variable of a variable expression.
    pub fn as_var(&self) -> Option<&Var> {
        match self.kind() {
            PrimKind::Var(v) => Some(v),
            _ => None,
        }
    }

    /// Whether it is the integer `v`.
    pub fn is_int(&self, v: i64) -> bool {
        self.as_int() == Some(v)
    }
}

impl PartialEq for PrimExpr {
    fn eq(&self, other: &PrimExpr) -> bool {
        if self.same_as(other) {
            return true;
        }
        if self.dtype() != other.dtype() {
            return false;
        }
        use PrimKind as K;
        match (self.kind(), other.kind()) {
            (K::Var(a), K::Var(b)) => a == b,
            (K::Int(a), K::Int(b)) => a == b,
            (K::Float(a), K::Float(b)) => a.to_bits() == b.to_bits(),
            (K::Str(a), K::Str(b)) => a == b,
            (K::Binary(o, a, b), K::Binary(p, c, d)) => o == p && a == c && b == d,
            (K::Cmp(o, a, b), K::Cmp(p, c, d)) => o == p && a == c && b == d,
            (K::And(a, b), K::And(c, d)) | (K::Or(a, b), K::Or(c, d)) | (K::Ramp(a, b), K::Ramp(c, d)) => {
                a == c && b == d
            }
            (K::Not(a), K::Not(b)) | (K::Cast(a), K::Cast(b)) | (K::Broadcast(a), K::Broadcast(b)) => a == b,
            (K::Select(a, b, c), K::Select(d, e, f)) => a == d && b == e && c == f,
            (K::Load(a, i), K::Load(b, j)) => a == b && i == j,
            (K::Let(v, a, b), K::Let(w, c, d)) => v == w && a == c && b == d,
            (K::Call(f, a), K::Call(g, b)) => f == g && a == b,
            (K::CallExtern(f, a), K::CallExtern(g, b)) => f == g && a == b,
            _ => false,
        }
    }
}

impl Eq for PrimExpr {}

impl Hash for PrimExpr {
    fn hash<H: Hasher>(&self, h: &mut H) {
        std::mem::discriminant(self.kind()).hash(h);
        self.dtype().hash(h);
        match self.kind() {
            PrimKind::Var(v) => v.hash(h),
            PrimKind::Int(v) => v.hash(h),
            PrimKind::Float(v) => v.to_bits().hash(h),
            PrimKind::Str(s) => s.hash(h),
            PrimKind::Binary(o, a, b) => (o, a, b).hash(h),
            PrimKind::Cmp(o, a, b) => (o, a, b).hash(h),
            PrimKind::And(a, b) | PrimKind::Or(a, b) | PrimKind::Ramp(a, b) => (a, b).hash(h),
            PrimKind::Not(a) | PrimKind::Cast(a) | PrimKind::Broadcast(a) => a.hash(h),
            PrimKind::Select(a, b, c) => (a, b, c).hash(h),
            PrimKind::Load(b, i) => (b, i).hash(h),
            PrimKind::Let(v, a, b) => (v, a, b).hash(h),
            PrimKind::Call(f, a) => (f, a).hash(h),
            PrimKind::CallExtern(f, a) => (f, a).hash(h),
        }
    }
}

/// `min` and `min + extent` of an interval.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    /// First value.
    pub min: PrimExpr,
    /// How many values.
    pub extent: PrimExpr,
}

impl Range {
    /// `0 .. extent`
    pub fn to(extent: PrimExpr) -> Range {
        Range { min: PrimExpr::int(extent.dtype(), 0), extent }
    }

    /// `min .. min + 1`
    pub fn point(min: PrimExpr) -> Range {
        let extent = PrimExpr::int(min.dtype(), 1);
        Range { min, extent }
    }
}

impl std::fmt::Debug for PrimExpr {
    /// A compact rendering for assertions; TVMScript text comes from the printer.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind() {
            PrimKind::Var(v) => write!(f, "{}", v.name()),
            PrimKind::Int(v) => write!(f, "{v}"),
            PrimKind::Float(v) => write!(f, "{v}"),
            PrimKind::Cast(e) => write!(f, "{}({e:?})", self.dtype()),
            PrimKind::Binary(op, a, b) => write!(f, "{op:?}({a:?}, {b:?})"),
            PrimKind::Cmp(op, a, b) => write!(f, "{op:?}({a:?}, {b:?})"),
            PrimKind::Load(b, i) => write!(f, "{b:?}{i:?}"),
            other => write!(f, "{other:?}"),
        }
    }
}
