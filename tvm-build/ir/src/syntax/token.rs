//! Tokens of TVMScript text.

use crate::name::Name;
use crate::span::Span;

/// A token and where it stands.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Token {
    /// What it is.
    pub(super) kind: Tok,
    /// Where it stands.
    pub(super) span: Span,
}

/// What a token is.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Tok {
    /// An identifier or keyword.
    Name(Name),
    /// An integer.
    Int(i128),
    /// A number with a point or an exponent.
    Float(f64),
    /// A string, unescaped.
    Str(Name),
    /// An operator or bracket.
    Op(&'static str),
    /// The end of a logical line.
    Newline,
    /// The next line is indented further.
    Indent,
    /// An indentation ends.
    Dedent,
    /// The end of the text.
    End,
}

impl Tok {
    /// How diagnostics call it.
    pub(super) fn describe(&self) -> String {
        match self {
            Tok::Name(n) => format!("`{n}`"),
            Tok::Int(v) => format!("`{v}`"),
            Tok::Float(v) => format!("`{v}`"),
            Tok::Str(_) => "a string".into(),
            Tok::Op(op) => format!("`{op}`"),
            Tok::Newline => "the end of the line".into(),
            Tok::Indent => "an indentation".into(),
            Tok::Dedent => "the end of the indented lines".into(),
            Tok::End => "the end of the text".into(),
        }
    }
}

/// Operators and brackets, longest first.
pub(super) const OPERATORS: &[&str] = &[
    "//=", "**=", "<<=", ">>=", "...", "==", "!=", "<=", ">=", "//", "**", "<<", ">>", "->", "+=", "-=", "*=", "/=",
    "%=", "&=", "|=", "^=", ":=", "(", ")", "[", "]", "{", "}", ",", ":", ".", "=", "+", "-", "*", "/", "%", "<", ">",
    "&", "|", "^", "~", "@", ";",
];
