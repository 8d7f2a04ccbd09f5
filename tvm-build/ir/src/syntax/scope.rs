//! Names in scope, and what lowering of every level shares.

use super::ParseOptions;
use super::ast::{Expr, Ident, Keyword};
use crate::arith::Analyzer;
use crate::diag::{Diag, Diags};
use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{self, Buffer};
use crate::relax::verify::Callee;
use crate::relax::{self, StructInfo};
use crate::span::{SourceId, Span};
use std::collections::{BTreeMap, BTreeSet};

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Entity {
    /// A scalar variable.
    Prim(prim::Var),
    /// A buffer.
    Buffer(Buffer),
    /// A graph-level variable.
    Relax(relax::Var),
    /// A `T.handle` parameter, by its position, until `T.match_buffer` names its buffer.
    Handle(usize),
    /// The module itself (`cls = Module`).
    Module,
    /// What a statement in error would have defined: its uses are not errors of their own.
    Broken,
}

/// Frames of names, innermost last. The second frame is the function's.
#[derive(Default)]
pub(super) struct Scope {
    frames: Vec<BTreeMap<Name, (Entity, Span)>>,
    /// Names declared by `n = TypeVar("n")` or `def f[n](…)`: each function has its own variable.
    pub(super) type_vars: BTreeSet<Name>,
}

impl Scope {
    /// Opens a frame.
    pub(super) fn push(&mut self) {
        self.frames.push(BTreeMap::new());
    }

    /// Closes the innermost frame.
    pub(super) fn pop(&mut self) {
        self.frames.pop();
    }

    /// Defines a name in the innermost frame; gives the place of an earlier definition in that frame.
    pub(super) fn define(&mut self, name: &Name, entity: Entity, span: Span) -> Option<Span> {
        if self.frames.is_empty() {
            self.push();
        }
        self.frames.last_mut()?.insert(name.clone(), (entity, span)).map(|(_, s)| s)
    }

    /// Defines a name in the function's frame, visible to its end.
    pub(super) fn define_in_function(&mut self, name: &Name, entity: Entity, span: Span) {
        if let Some(frame) = self.frames.first_mut() {
            frame.insert(name.clone(), (entity, span));
        }
    }

    /// What a name stands for; a type variable becomes a scalar variable of the function at its first use.
    pub(super) fn lookup(&mut self, name: &Name, span: Span) -> Option<Entity> {
        let found = self.declared(name);
        if found.is_none() && self.type_vars.contains(name) {
            let entity = Entity::Prim(prim::Var::at(name.clone(), DType::I64, span));
            self.define_in_function(name, entity.clone(), span);
            return Some(entity);
        }
        found
    }

    /// What a name stands for, type variables aside.
    pub(super) fn declared(&self, name: &Name) -> Option<Entity> {
        self.frames.iter().rev().find_map(|f| f.get(name)).map(|(e, _)| e.clone())
    }

    /// Every name in scope.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.frames.iter().flat_map(|f| f.keys()).chain(&self.type_vars)
    }
}

/// What a module tells about its functions before their bodies are read.
#[derive(Clone, Debug)]
pub(super) enum Signature {
    /// A PrimFunc; what calls must fit, when it could be read.
    Prim(Option<Callee>),
    /// A Relax function.
    Relax {
        /// Parameters.
        params: Vec<StructInfo>,
        /// Result, when annotated.
        ret: Option<StructInfo>,
    },
    /// An external function, by its symbol.
    Extern(Name),
    /// A function that could not be read.
    Broken,
}

/// State of lowering a function.
pub(super) struct Lower<'a> {
    pub(super) source: SourceId,
    pub(super) options: &'a ParseOptions,
    /// The functions of the module.
    pub(super) signatures: &'a BTreeMap<Name, Signature>,
    pub(super) diags: Diags,
    /// Something could not be lowered; the error may be another's, told before.
    pub(super) failed: bool,
    pub(super) scope: Scope,
    /// Type of an integer literal: `int32` in TensorIR, `int64` in Relax.
    pub(super) literal: DType,
    pub(super) analyzer: Analyzer,
}

impl Lower<'_> {
    /// The value of a result; its error is recorded, unless it follows from one recorded before.
    pub(super) fn keep<T>(&mut self, r: Result<T, Diag>) -> Option<T> {
        r.map_err(|d| {
            self.failed = true;
            if !is_consequence(&d) {
                self.diags.push(d);
            }
        })
        .ok()
    }

    /// What a name stands for, or an error with a suggestion.
    pub(super) fn resolve(&mut self, name: &Name, span: Span) -> Result<Entity, Diag> {
        match self.scope.lookup(name, span) {
            Some(Entity::Broken) => return Err(consequence()),
            Some(e) => return Ok(e),
            None => {}
        }
        let d = Diag::error(span, format!("undefined name `{name}`"));
        let tir = self.literal == DType::I32;
        if let Some(of) = name.strip_prefix('v').filter(|of| tir && self.scope.declared(&Name::from(*of)).is_some()) {
            return Err(d.help(format!("an iterator of a block is declared first: T.axis.spatial(extent, {of})")));
        }
        let d = suggest(d, name, self.scope.names().map(Name::as_str));
        Err(match d.help {
            None if !name.starts_with(char::is_uppercase) => d,
            None if tir => d.help("dimensions are named in the shapes of parameters"),
            None => d.help("dimensions are named in the types of parameters, or by R.match_cast"),
            Some(_) => d,
        })
    }

    /// Defines a name; a second definition in the same frame is an error.
    pub(super) fn define(&mut self, ident: &Ident, entity: Entity) {
        if let Some(first) = self.scope.define(&ident.name, entity, ident.span) {
            self.failed = true;
            self.diags.push(
                Diag::error(ident.span, format!("`{}` is already defined here", ident.name))
                    .label(first, "first defined"),
            );
        }
    }
}

/// Whether an error follows from another one. It may have got a place and advice on its way.
pub(super) fn is_consequence(d: &Diag) -> bool {
    d.message.is_empty()
}

/// An error that follows from another one, and is not shown.
pub(super) fn consequence() -> Diag {
    Diag::error(Span::NONE, "")
}

/// Adds "did you mean" when a candidate is close.
pub(super) fn suggest<'n>(d: Diag, name: &str, candidates: impl Iterator<Item = &'n str>) -> Diag {
    suggest_in(d, "", name, candidates)
}

/// As [`suggest`], of names under a prefix as `T.`, which name and candidates are without.
pub(super) fn suggest_in<'n>(d: Diag, prefix: &str, name: &str, candidates: impl Iterator<Item = &'n str>) -> Diag {
    match closest(name, candidates) {
        Some(c) => d.help(format!("did you mean `{prefix}{c}`?")),
        None => d,
    }
}

/// The candidate that is most like a name, if one is close.
fn closest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = match name.len() {
        0 | 1 => return None,
        2 => 1,
        _ => 2,
    };
    candidates
        .filter(|c| c.len().abs_diff(name.len()) <= limit)
        .map(|c| (distance(name, c), c))
        .filter(|(n, _)| *n <= limit)
        .min()
        .map(|(_, c)| c)
}

/// Edit distance of short names; two letters swapped are one edit.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut cost = (last[j] + usize::from(a[i] != b[j])).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// The arguments of a call, taken by position or name; [`Args::finish`] reports what nobody took.
pub(super) struct Args<'a> {
    what: String,
    span: Span,
    positional: &'a [Expr],
    keywords: &'a [Keyword],
    next: usize,
    taken: Vec<&'a str>,
}

impl<'a> Args<'a> {
    /// Arguments of `what`, which is written at `span`.
    pub(super) fn new(what: &str, span: Span, positional: &'a [Expr], keywords: &'a [Keyword]) -> Args<'a> {
        Args { what: what.into(), span, positional, keywords, next: 0, taken: Vec::new() }
    }

    /// The argument of a name, by keyword or at the next position.
    pub(super) fn take(&mut self, name: &'a str) -> Result<Option<&'a Expr>, Diag> {
        let keyword = self.keyword(name);
        if let Some(e) = self.positional.get(self.next) {
            self.next += 1;
            if keyword.is_some() {
                return Err(Diag::error(e.span, format!("{}: `{name}` is given twice", self.what)));
            }
            return Ok(Some(e));
        }
        Ok(keyword)
    }

    /// The argument of a name that must be there.
    pub(super) fn need(&mut self, name: &'a str) -> Result<&'a Expr, Diag> {
        let (what, span) = (self.what.clone(), self.span);
        self.take(name)?.ok_or_else(|| Diag::error(span, format!("{what}: argument `{name}` is missing")))
    }

    /// The argument of a name that is given by keyword alone.
    pub(super) fn keyword(&mut self, name: &'a str) -> Option<&'a Expr> {
        self.taken.push(name);
        self.keywords.iter().find(|k| k.name == name).map(|k| &k.value)
    }

    /// Positional arguments not yet taken; they count as taken.
    pub(super) fn rest(&mut self) -> &'a [Expr] {
        let rest = self.positional.get(self.next..).unwrap_or(&[]);
        self.next = self.positional.len();
        rest
    }

    /// Errors for arguments that were not taken.
    pub(super) fn finish(self) -> Result<(), Diag> {
        if let Some(e) = self.positional.get(self.next) {
            let (n, given) = (self.next, self.positional.len());
            let s = if given == 1 { "" } else { "s" };
            return Err(Diag::error(e.span, format!("{}: {given} argument{s} given, at most {n} expected", self.what)));
        }
        match self.keywords.iter().find(|k| !self.taken.contains(&k.name.as_str())) {
            Some(k) => {
                let d = Diag::error(k.span, format!("{} has no argument or attribute `{}`", self.what, k.name));
                Err(suggest(d, &k.name, self.taken.iter().copied()))
            }
            None => Ok(()),
        }
    }
}
