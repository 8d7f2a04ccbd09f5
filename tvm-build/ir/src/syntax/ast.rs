//! The surface tree both spellings parse to: Python's shape, no op names, a span on every node.

use crate::name::Name;
use crate::prim::{BinOp, CmpOp};
use crate::span::Span;

/// Deepest tree a front end may build; deeper ones are an error, so that walking a tree needs bounded stack.
pub(super) const MAX_DEPTH: u16 = 160;

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) kind: ExprKind,
    pub(super) span: Span,
    /// Levels of the tree below and including this node.
    pub(super) depth: u16,
}

/// A keyword argument.
#[derive(Clone, Debug)]
pub(super) struct Keyword {
    pub(super) name: Name,
    pub(super) span: Span,
    pub(super) value: Expr,
}

#[derive(Clone, Debug)]
pub(super) enum ExprKind {
    Name(Name),
    Int(i128),
    Float(f64),
    Str(Name),
    Bool(bool),
    None,
    /// What could not be read; the error is reported.
    #[cfg_attr(not(feature = "rust"), expect(dead_code, reason = "errors of the grammar end the reading of a text"))]
    Broken,
    /// `value.name`
    Attr(Box<Expr>, Name),
    Call {
        func: Box<Expr>,
        args: Vec<Expr>,
        keywords: Vec<Keyword>,
    },
    /// `value[items]`; no items for `value[()]`.
    Index(Box<Expr>, Vec<Expr>),
    /// `start:stop:step`, inside an index.
    Slice(Option<Box<Expr>>, Option<Box<Expr>>, Option<Box<Expr>>),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Compare(CmpOp, Box<Expr>, Box<Expr>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnaryOp {
    Neg,
    Pos,
    Not,
    Invert,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BinaryOp {
    /// An operator of scalars; `/` is [`BinaryOp::TrueDiv`].
    Prim(BinOp),
    TrueDiv,
    Pow,
    MatMul,
    And,
    Or,
}

/// A statement.
#[derive(Clone, Debug)]
pub(super) struct Stmt {
    pub(super) kind: StmtKind,
    pub(super) span: Span,
}

#[derive(Clone, Debug)]
pub(super) enum StmtKind {
    Expr(Expr),
    /// `target = value`, `target: annotation = value`, `target: annotation`
    Assign {
        target: Expr,
        annotation: Option<Expr>,
        value: Option<Expr>,
    },
    For {
        target: Expr,
        iter: Expr,
        body: Vec<Stmt>,
    },
    While {
        cond: Expr,
        body: Vec<Stmt>,
    },
    If {
        cond: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    /// `with value as target:`
    With {
        value: Expr,
        target: Option<Expr>,
        body: Vec<Stmt>,
    },
    Assert {
        cond: Expr,
        message: Option<Expr>,
    },
    Return(Option<Expr>),
    Pass,
    Def(FuncDef),
    Class(ClassDef),
}

/// A name and where it is written.
#[derive(Clone, Debug)]
pub(super) struct Ident {
    pub(super) name: Name,
    pub(super) span: Span,
}

#[derive(Clone, Debug)]
pub(super) struct Param {
    pub(super) ident: Ident,
    pub(super) annotation: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(super) struct FuncDef {
    pub(super) decorators: Vec<Expr>,
    pub(super) ident: Ident,
    /// `def f[n, m](…)`
    pub(super) type_params: Vec<Ident>,
    pub(super) params: Vec<Param>,
    pub(super) ret: Option<Expr>,
    pub(super) body: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub(super) struct ClassDef {
    pub(super) decorators: Vec<Expr>,
    pub(super) ident: Ident,
    pub(super) body: Vec<Stmt>,
}

impl Expr {
    /// A node over its children; its depth follows.
    pub(super) fn new(kind: ExprKind, span: Span) -> Expr {
        let deepest = |items: &[Expr]| items.iter().map(|e| e.depth).max().unwrap_or(0);
        let below = match &kind {
            ExprKind::Name(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Bool(_)
            | ExprKind::None
            | ExprKind::Broken => 0,
            ExprKind::Attr(e, _) | ExprKind::Unary(_, e) => e.depth,
            ExprKind::Call { func, args, keywords } => {
                func.depth.max(deepest(args)).max(keywords.iter().map(|k| k.value.depth).max().unwrap_or(0))
            }
            ExprKind::Index(e, items) => e.depth.max(deepest(items)),
            ExprKind::Slice(a, b, c) => [a, b, c].into_iter().flatten().map(|e| e.depth).max().unwrap_or(0),
            ExprKind::Tuple(items) | ExprKind::List(items) => deepest(items),
            ExprKind::Dict(items) => items.iter().map(|(k, v)| k.depth.max(v.depth)).max().unwrap_or(0),
            ExprKind::Binary(_, a, b) | ExprKind::Compare(_, a, b) => a.depth.max(b.depth),
        };
        Expr { kind, span, depth: below.saturating_add(1) }
    }

    /// The dotted name, as `T.axis.spatial`; `None` for other expressions.
    pub(super) fn path(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Name(n) => Some(n.to_string()),
            ExprKind::Attr(base, name) => Some(format!("{}.{name}", base.path()?)),
            _ => None,
        }
    }

    /// The name of a plain name.
    pub(super) fn name(&self) -> Option<&Name> {
        match &self.kind {
            ExprKind::Name(n) => Some(n),
            _ => None,
        }
    }

    /// The text of a string.
    pub(super) fn str(&self) -> Option<&Name> {
        match &self.kind {
            ExprKind::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The items of a tuple or list.
    pub(super) fn items(&self) -> Option<&[Expr]> {
        match &self.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => Some(items),
            _ => None,
        }
    }

    /// Where what is called is written; the whole of what is no call.
    pub(super) fn callee_span(&self) -> Span {
        match &self.kind {
            ExprKind::Call { func, .. } => func.span,
            _ => self.span,
        }
    }

    /// Path, arguments and keywords of a call of a dotted name.
    pub(super) fn call(&self) -> Option<(String, &[Expr], &[Keyword])> {
        match &self.kind {
            ExprKind::Call { func, args, keywords } => Some((func.path()?, args, keywords)),
            _ => None,
        }
    }
}
