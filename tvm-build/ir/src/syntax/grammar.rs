//! Recursive descent over tokens: statements. Errors are collected; parsing goes on at the next statement.

use super::ast::{ClassDef, Expr, ExprKind, FuncDef, Ident, Param, Stmt, StmtKind};
use super::grammar_expr::operator_of_assignment;
use super::token::{Tok, Token};
use crate::diag::{Diag, Diags};
use crate::name::Name;
use crate::span::{SourceId, Span};

/// Deepest nesting of brackets and indented lines.
const MAX_NESTING: u32 = 60;

/// A cursor over tokens.
pub(super) struct Parser<'a> {
    pub(super) tokens: &'a [Token],
    pub(super) at: usize,
    pub(super) diags: Diags,
    nesting: u32,
}

/// The statements of a text.
pub(super) fn parse(source: SourceId, text: &str) -> Result<Vec<Stmt>, Diags> {
    let tokens = super::text::lex(source, text)?;
    let mut p = Parser::new(&tokens);
    let mut out = Vec::new();
    while *p.peek() != Tok::End {
        p.statement_or_skip(&mut out);
    }
    p.diags.into_result(out)
}

/// The expression written in a string that starts at byte `base` of the source.
pub(super) fn parse_fragment(source: SourceId, text: &str, base: usize) -> Result<Expr, Diags> {
    let tokens = super::text::lex_fragment(source, text, base)?;
    let mut p = Parser::new(&tokens);
    let e = p.expr()?;
    if *p.peek() != Tok::Newline {
        return Err(p.unexpected("the end of the expression").into());
    }
    Ok(e)
}

type Parsed<T> = Result<T, Diag>;

impl<'a> Parser<'a> {
    fn new(tokens: &'a [Token]) -> Parser<'a> {
        Parser { tokens, at: 0, diags: Diags::new(), nesting: 0 }
    }

    pub(super) fn peek(&self) -> &Tok {
        self.tokens.get(self.at).map_or(&Tok::End, |t| &t.kind)
    }

    pub(super) fn span(&self) -> Span {
        self.tokens.get(self.at.min(self.tokens.len().saturating_sub(1))).map_or(Span::NONE, |t| t.span)
    }

    pub(super) fn last_span(&self) -> Span {
        self.at.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(Span::NONE, |t| t.span)
    }

    pub(super) fn is_op(&self, op: &str) -> bool {
        matches!(self.peek(), Tok::Op(o) if *o == op)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Tok::Name(n) if n == word)
    }

    pub(super) fn eat_op(&mut self, op: &str) -> bool {
        let hit = self.is_op(op);
        self.at += usize::from(hit);
        hit
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let hit = self.is_word(word);
        self.at += usize::from(hit);
        hit
    }

    pub(super) fn unexpected(&self, wanted: &str) -> Diag {
        Diag::error(self.span(), format!("expected {wanted}, found {}", self.peek().describe()))
    }

    pub(super) fn expect_op(&mut self, op: &str) -> Parsed<Span> {
        if self.eat_op(op) { Ok(self.last_span()) } else { Err(self.unexpected(&format!("`{op}`"))) }
    }

    /// Runs a nested rule; too deep a nesting is an error.
    pub(super) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= MAX_NESTING {
            return Err(Diag::error(self.span(), format!("nested more than {MAX_NESTING} levels deep")));
        }
        self.nesting += 1;
        let result = f(self);
        self.nesting -= 1;
        result
    }

    pub(super) fn ident(&mut self) -> Parsed<Ident> {
        match self.peek() {
            Tok::Name(n) if !is_keyword(n) => {
                let name = n.clone();
                self.at += 1;
                Ok(Ident { name, span: self.last_span() })
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// Parses a statement into `out`; on an error reports it and skips the statement with the lines under it.
    fn statement_or_skip(&mut self, out: &mut Vec<Stmt>) {
        if let Err(d) = self.statement(out) {
            self.diags.push(d);
            while !matches!(self.peek(), Tok::Newline | Tok::Dedent | Tok::End) {
                self.at += 1;
            }
            self.at += usize::from(*self.peek() == Tok::Newline);
            if *self.peek() == Tok::Indent {
                let mut depth = 0usize;
                loop {
                    match self.peek() {
                        Tok::Indent => depth += 1,
                        Tok::Dedent => depth = depth.saturating_sub(1),
                        Tok::End => break,
                        _ => {}
                    }
                    self.at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
        }
    }

    fn block(&mut self) -> Parsed<Vec<Stmt>> {
        self.expect_op(":")?;
        if *self.peek() != Tok::Newline {
            let mut out = Vec::new();
            self.nested(|p| p.statement(&mut out))?;
            return Ok(out);
        }
        self.at += 1;
        if *self.peek() != Tok::Indent {
            return Err(self.unexpected("an indented line").help("indent the lines that belong to the `:` above"));
        }
        self.at += 1;
        self.nested(|p| {
            let mut out = Vec::new();
            while !matches!(p.peek(), Tok::Dedent | Tok::End) {
                p.statement_or_skip(&mut out);
            }
            p.at += usize::from(*p.peek() == Tok::Dedent);
            Ok(out)
        })
    }

    fn end_of_line(&mut self) -> Parsed<()> {
        if self.eat_op(";") && *self.peek() != Tok::Newline {
            return Ok(());
        }
        match self.peek() {
            Tok::Newline => {
                self.at += 1;
                Ok(())
            }
            Tok::End => Ok(()),
            _ => Err(self.unexpected("the end of the line")),
        }
    }

    fn statement(&mut self, out: &mut Vec<Stmt>) -> Parsed<()> {
        let start = self.span();
        let word = match self.peek() {
            Tok::Name(n) => n.clone(),
            Tok::Op("@") => return self.decorated(out),
            Tok::Indent => {
                return Err(Diag::error(start, "unexpected indentation")
                    .help("a line starts where the line before it starts, or under a `:`"));
            }
            Tok::Newline | Tok::Dedent => {
                self.at += 1;
                return Ok(());
            }
            _ => Name::from(""),
        };
        let kind = match word.as_str() {
            "from" | "import" => {
                while !matches!(self.peek(), Tok::Newline | Tok::End) {
                    self.at += 1;
                }
                return self.end_of_line();
            }
            "def" | "class" => return self.decorated(out),
            "for" => {
                self.at += 1;
                let target = self.expr_list()?;
                if !self.eat_word("in") {
                    return Err(self.unexpected("`in`"));
                }
                let iter = self.expr_list()?;
                StmtKind::For { target, iter, body: self.block()? }
            }
            "while" => {
                self.at += 1;
                StmtKind::While { cond: self.expr()?, body: self.block()? }
            }
            "if" => {
                self.at += 1;
                self.if_rest()?
            }
            "with" => {
                self.at += 1;
                let value = self.expr()?;
                let target = if self.eat_word("as") { Some(self.expr_list()?) } else { None };
                StmtKind::With { value, target, body: self.block()? }
            }
            "return" => {
                self.at += 1;
                let value = if *self.peek() == Tok::Newline { None } else { Some(self.expr_list()?) };
                self.end_of_line()?;
                StmtKind::Return(value)
            }
            "assert" => {
                self.at += 1;
                let cond = self.expr()?;
                let message = if self.eat_op(",") { Some(self.expr()?) } else { None };
                self.end_of_line()?;
                StmtKind::Assert { cond, message }
            }
            "pass" => {
                self.at += 1;
                self.end_of_line()?;
                StmtKind::Pass
            }
            "else" | "elif" => return Err(Diag::error(start, format!("`{word}` without an `if` before it"))),
            _ => self.simple()?,
        };
        out.push(Stmt { kind, span: start.to(self.last_span()) });
        Ok(())
    }

    fn if_rest(&mut self) -> Parsed<StmtKind> {
        let cond = self.expr()?;
        let then = self.block()?;
        let start = self.span();
        let otherwise = if self.eat_word("else") {
            self.block()?
        } else if self.eat_word("elif") {
            let kind = self.nested(|p| p.if_rest())?;
            vec![Stmt { kind, span: start }]
        } else {
            Vec::new()
        };
        Ok(StmtKind::If { cond, then, otherwise })
    }

    fn simple(&mut self) -> Parsed<StmtKind> {
        let target = self.expr_list()?;
        let mut annotation = None;
        let mut value = None;
        if self.eat_op(":") {
            annotation = Some(self.expr()?);
        }
        if self.eat_op("=") {
            value = Some(self.expr_list()?);
            if self.is_op("=") {
                return Err(self.unexpected("one `=` a statement"));
            }
        } else if annotation.is_none() {
            let op = match self.peek() {
                Tok::Op(op) => operator_of_assignment(op),
                _ => None,
            };
            if let Some(op) = op {
                self.at += 1;
                let right = self.expr_list()?;
                let span = target.span.to(right.span);
                let sum = ExprKind::Binary(op, Box::new(target.clone()), Box::new(right));
                value = Some(self.node(sum, span)?);
            }
        }
        self.end_of_line()?;
        Ok(if annotation.is_none() && value.is_none() {
            StmtKind::Expr(target)
        } else {
            StmtKind::Assign { target, annotation, value }
        })
    }

    fn decorated(&mut self, out: &mut Vec<Stmt>) -> Parsed<()> {
        let start = self.span();
        let mut decorators = Vec::new();
        while self.eat_op("@") {
            decorators.push(self.expr()?);
            self.end_of_line()?;
        }
        let kind = if self.eat_word("def") {
            StmtKind::Def(self.def(decorators)?)
        } else if self.eat_word("class") {
            let ident = self.ident()?;
            if self.eat_op("(") {
                self.expect_op(")")?;
            }
            StmtKind::Class(ClassDef { decorators, ident, body: self.block()? })
        } else {
            return Err(self.unexpected("`def` or `class`"));
        };
        out.push(Stmt { kind, span: start });
        Ok(())
    }

    fn def(&mut self, decorators: Vec<Expr>) -> Parsed<FuncDef> {
        let ident = self.ident()?;
        let mut type_params = Vec::new();
        if self.eat_op("[") {
            while !self.is_op("]") {
                type_params.push(self.ident()?);
                if self.eat_op(":") {
                    self.expr()?;
                }
                if !self.eat_op(",") {
                    break;
                }
            }
            self.expect_op("]")?;
        }
        self.expect_op("(")?;
        let mut params = Vec::new();
        while !self.is_op(")") {
            let ident = self.ident()?;
            let annotation = if self.eat_op(":") { Some(self.expr()?) } else { None };
            params.push(Param { ident, annotation });
            if !self.eat_op(",") {
                break;
            }
        }
        self.expect_op(")")?;
        let ret = if self.eat_op("->") { Some(self.expr()?) } else { None };
        Ok(FuncDef { decorators, ident, type_params, params, ret, body: self.block()? })
    }
}

/// Whether a word cannot be a name.
pub(super) fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
        "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
        "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
    ];
    KEYWORDS.contains(&word)
}
