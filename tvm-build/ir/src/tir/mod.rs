//! TensorIR: loops and blocks over multi-dimensional buffers.

mod access;
pub mod verify;
mod walk;

pub use access::{access_regions, merge_region};
pub use walk::{map_exprs, rewrite_stmt, stmt_free_vars, substitute_stmt, visit_exprs, visit_stmt};

use crate::attrs::Attrs;
use crate::name::Name;
use crate::prim::{Buffer, PrimExpr, Range, Var};
use crate::span::Span;

/// A function over buffers and scalars. Symbolic extents are variables that occur in parameter buffers' shapes
/// (each bound by its first bare occurrence) or scalar parameters.
#[derive(Clone, Debug)]
pub struct PrimFunc {
    /// Parameters in calling order: inputs, then outputs.
    pub params: Vec<Param>,
    /// `tir.noalias`, `op_pattern`, `global_symbol` (absent when private) …
    pub attrs: Attrs,
    /// The body. When it holds blocks or allocations it is one block named `root` without iterators.
    pub body: Stmt,
    /// Where it was written.
    pub span: Span,
}

/// A parameter of a [`PrimFunc`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Param {
    /// A tensor: one pointer at run time.
    Buffer(Buffer),
    /// A scalar.
    Scalar(Var),
}

impl Param {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Param::Buffer(b) => &b.name,
            Param::Scalar(v) => v.name(),
        }
    }
}

impl PrimFunc {
    /// The buffer parameters, in order.
    pub fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        self.params.iter().filter_map(|p| match p {
            Param::Buffer(b) => Some(b),
            Param::Scalar(_) => None,
        })
    }

    /// The root block, when the body has one.
    pub fn root(&self) -> Option<&Block> {
        match &self.body {
            Stmt::Block(b) if b.iters.is_empty() => Some(b),
            _ => None,
        }
    }

    /// Whether it is left out of the module's interface (no `global_symbol`).
    pub fn is_private(&self) -> bool {
        !self.attrs.contains_key("global_symbol")
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// One after another; never holds a `Seq` itself (see [`Stmt::seq`]).
    Seq(Vec<Stmt>),
    /// A loop.
    For(Box<For>),
    /// A block, realized where it stands.
    Block(Box<Block>),
    /// `buffer[indices] = value`
    Store(Box<Store>),
    /// `let var = value`, visible in `body`.
    Let(Box<LetStmt>),
    /// `if`
    If(Box<IfStmt>),
    /// `while cond: body`
    While(Box<While>),
    /// `assert cond, message`, then the statements after it.
    Assert(Box<AssertStmt>),
    /// An expression for its effect.
    Evaluate(PrimExpr),
}

/// How a loop runs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ForKind {
    /// In order.
    Serial,
    /// Iterations on several threads.
    Parallel,
    /// All iterations at once in vector lanes.
    Vectorized,
    /// The body written out.
    Unrolled,
    /// One iteration a GPU thread of the axis, as `threadIdx.x`.
    ThreadBinding(Name),
}

/// A loop.
#[derive(Clone, Debug)]
pub struct For {
    /// Loop variable.
    pub var: Var,
    /// First value.
    pub min: PrimExpr,
    /// Number of iterations.
    pub extent: PrimExpr,
    /// How it runs.
    pub kind: ForKind,
    /// Annotations.
    pub annotations: Attrs,
    /// Body.
    pub body: Stmt,
    /// Where it was written.
    pub span: Span,
}

/// What a block's iterator may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IterKind {
    /// Data parallel (`S`).
    Spatial,
    /// Commutative reduction (`R`).
    Reduce,
    /// In order (`scan`).
    Ordered,
    /// Nothing is known (`opaque`).
    Opaque,
}

/// An iterator of a block and the value it is bound to where the block stands.
#[derive(Clone, Debug)]
pub struct IterVar {
    /// The variable, visible in the block alone.
    pub var: Var,
    /// Its domain.
    pub dom: Range,
    /// What it may do.
    pub kind: IterKind,
    /// Its value, over the loop variables around.
    pub binding: PrimExpr,
}

/// A region of a buffer.
#[derive(Clone, Debug)]
pub struct Region {
    /// The buffer.
    pub buffer: Buffer,
    /// One range a dimension.
    pub ranges: Vec<Range>,
}

/// A computation block together with its realization (TVM's Block and BlockRealize; upstream now says SBlock).
#[derive(Clone, Debug)]
pub struct Block {
    /// Name, not unique.
    pub name: Name,
    /// Iterators with their bindings.
    pub iters: Vec<IterVar>,
    /// The block runs only where this holds; over the loop variables around.
    pub predicate: PrimExpr,
    /// Regions read (the reduction's own accumulator is left out, as upstream does).
    pub reads: Vec<Region>,
    /// Regions written.
    pub writes: Vec<Region>,
    /// Buffers that live in this block.
    pub allocs: Vec<Buffer>,
    /// Runs before the first reduction step.
    pub init: Option<Stmt>,
    /// Body.
    pub body: Stmt,
    /// Annotations (`T.block_attr`).
    pub annotations: Attrs,
    /// Where it was written.
    pub span: Span,
}

/// A store.
#[derive(Clone, Debug)]
pub struct Store {
    /// Destination.
    pub buffer: Buffer,
    /// One index a dimension.
    pub indices: Vec<PrimExpr>,
    /// The element, or a vector when the last index is a ramp.
    pub value: PrimExpr,
    /// Where it was written.
    pub span: Span,
}

/// A let binding.
#[derive(Clone, Debug)]
pub struct LetStmt {
    /// The variable.
    pub var: Var,
    /// Its value.
    pub value: PrimExpr,
    /// Where it is visible.
    pub body: Stmt,
}

/// A conditional.
#[derive(Clone, Debug)]
pub struct IfStmt {
    /// A bool.
    pub cond: PrimExpr,
    /// When true.
    pub then: Stmt,
    /// When false.
    pub otherwise: Option<Stmt>,
}

/// A loop of unknown length.
#[derive(Clone, Debug)]
pub struct While {
    /// A bool, evaluated before each iteration.
    pub cond: PrimExpr,
    /// Body.
    pub body: Stmt,
}

/// A run-time check.
#[derive(Clone, Debug)]
pub struct AssertStmt {
    /// A bool.
    pub cond: PrimExpr,
    /// What to say when it is false.
    pub message: Name,
}

impl Stmt {
    /// Statements one after another: nested sequences are flattened, a single one stands alone.
    pub fn seq(stmts: impl IntoIterator<Item = Stmt>) -> Stmt {
        let mut flat = Vec::new();
        for s in stmts {
            match s {
                Stmt::Seq(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        match flat.pop() {
            Some(only) if flat.is_empty() => only,
            Some(last) => {
                flat.push(last);
                Stmt::Seq(flat)
            }
            None => Stmt::Seq(flat),
        }
    }

    /// `buffer[indices] = value`
    pub fn store(buffer: &Buffer, indices: Vec<PrimExpr>, value: PrimExpr) -> Stmt {
        Stmt::Store(Box::new(Store { buffer: buffer.clone(), indices, value, span: Span::NONE }))
    }

    /// A serial loop `0 .. extent`.
    pub fn serial(var: Var, extent: PrimExpr, body: Stmt) -> Stmt {
        let min = PrimExpr::int(var.dtype(), 0);
        Stmt::For(Box::new(For {
            var,
            min,
            extent,
            kind: ForKind::Serial,
            annotations: Attrs::new(),
            body,
            span: Span::NONE,
        }))
    }
}

impl Block {
    /// A block named `root`: no iterators, no declared regions.
    pub fn root(allocs: Vec<Buffer>, body: Stmt) -> Block {
        Block {
            name: "root".into(),
            iters: Vec::new(),
            predicate: PrimExpr::bool(true),
            reads: Vec::new(),
            writes: Vec::new(),
            allocs,
            init: None,
            body,
            annotations: Attrs::new(),
            span: Span::NONE,
        }
    }
}
