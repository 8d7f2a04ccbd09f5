//! The lowered form: what printers of C-like languages see. Flat pointers, explicit vectors, no blocks, no regions.
//!
//! Everything a back end must know is in these types; it never looks at TensorIR.

use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{BinOp, CmpOp, Intrinsic};

/// A kernel: one C function.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Symbol, unique in the program and a C identifier.
    pub name: Name,
    /// Which Relax calls it came from, for comments.
    pub origin: String,
    /// Pointer parameters in calling order, then scalars in calling order.
    pub params: Vec<Param>,
    /// Local variables and arrays are declared where they stand in the body.
    pub body: Vec<Stmt>,
    /// Bytes of scratch memory it wants from the caller (large local buffers), 64-byte aligned.
    pub workspace: u64,
    /// Messages of its assertions: assertion `i` fails with code `i + 1`.
    pub messages: Vec<String>,
}

/// A parameter of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub enum Param {
    /// A pointer to elements of a type; with `noalias` no other pointer reaches them.
    Pointer {
        /// The variable.
        var: Local,
        /// Element type.
        dtype: DType,
        /// Whether the kernel writes through it.
        written: bool,
        /// `restrict`
        noalias: bool,
    },
    /// A scalar.
    Scalar {
        /// The variable.
        var: Local,
        /// Its type.
        dtype: DType,
    },
}

/// A local variable, pointer or array of a kernel; its name is unique in the kernel and a C identifier.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Local(pub Name);

impl std::fmt::Display for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Stmt {
    /// `for (var = min; var < min + extent; ++var)`
    For {
        /// Loop variable.
        var: Local,
        /// Its type.
        dtype: DType,
        /// First value.
        min: Expr,
        /// Iterations.
        extent: Expr,
        /// How it runs.
        kind: LoopKind,
        /// Body.
        body: Vec<Stmt>,
    },
    /// `if`
    If {
        /// A bool.
        cond: Expr,
        /// When true.
        then: Vec<Stmt>,
        /// When false.
        otherwise: Vec<Stmt>,
    },
    /// `while`
    While {
        /// A bool.
        cond: Expr,
        /// Body.
        body: Vec<Stmt>,
    },
    /// `const dtype var = value;`
    Let {
        /// The variable.
        var: Local,
        /// Its value; the variable has its type.
        value: Expr,
    },
    /// `dtype var[len];` in registers or on the stack, uninitialised.
    Array {
        /// The array.
        var: Local,
        /// Element type, may be a vector.
        dtype: DType,
        /// Elements.
        len: u64,
        /// Where it lives.
        space: Space,
    },
    /// `dtype *var = workspace + offset;`
    Workspace {
        /// The pointer.
        var: Local,
        /// Element type.
        dtype: DType,
        /// Bytes from the workspace's start, a multiple of 64.
        offset: u64,
    },
    /// `pointer[index] = value`; a vector value goes to consecutive elements from `index`.
    Store {
        /// Pointer or array.
        pointer: Local,
        /// Element index.
        index: Expr,
        /// The element or vector.
        value: Expr,
        /// Whether the address is a multiple of the vector's bytes.
        aligned: bool,
    },
    /// Returns a failure code (from 1) when the condition is false.
    Assert {
        /// A bool.
        cond: Expr,
        /// Code, from 1.
        code: u32,
    },
    /// An expression for its effect.
    Evaluate(Expr),
    /// A barrier of a memory space.
    Barrier(Space),
    /// A comment line.
    Comment(String),
}

/// How a lowered loop runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopKind {
    /// In order.
    Serial,
    /// The compiler is asked to unroll it.
    UnrollHint,
    /// On several threads.
    Parallel,
    /// One iteration a thread of the axis.
    Thread(Name),
}

/// Memory spaces of arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// Private to a thread.
    Local,
    /// Shared by a thread block.
    Shared,
}

/// An expression with its type.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// Type of the value; lanes > 1 for vectors.
    pub dtype: DType,
    /// The operation.
    pub kind: ExprKind,
}

/// The operations of lowered expressions. Operands have the same lanes as the result unless said otherwise.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// A variable.
    Var(Local),
    /// An integer or bool.
    Int(i64),
    /// A float.
    Float(f64),
    /// An operator.
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// A comparison; the operands' type may differ from the result's.
    Cmp(CmpOp, Box<Expr>, Box<Expr>),
    /// Short-circuit for scalars, lane by lane for vectors.
    And(Box<Expr>, Box<Expr>),
    /// Short-circuit for scalars, lane by lane for vectors.
    Or(Box<Expr>, Box<Expr>),
    /// Logical not.
    Not(Box<Expr>),
    /// `cond ? a : b`; scalars evaluate only the chosen side.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Conversion (semantics of [`crate::prim::PrimKind::Cast`]).
    Cast(Box<Expr>),
    /// Same bits, other type.
    Reinterpret(Box<Expr>),
    /// `pointer[index]`; a vector reads consecutive elements.
    Load {
        /// Pointer or array.
        pointer: Local,
        /// Scalar element index.
        index: Box<Expr>,
        /// Whether the address is a multiple of the vector's bytes.
        aligned: bool,
    },
    /// Lane `i` is `pointer[index_i]` for a vector of indices.
    Gather {
        /// Pointer or array.
        pointer: Local,
        /// Vector of element indices.
        index: Box<Expr>,
    },
    /// One scalar in every lane.
    Broadcast(Box<Expr>),
    /// `base + stride * lane`, from scalars.
    Ramp(Box<Expr>, Box<Expr>),
    /// A function of the intrinsic table, lane by lane.
    Call(Intrinsic, Vec<Expr>),
    /// A C function.
    CallExtern(Name, Vec<Expr>),
}
