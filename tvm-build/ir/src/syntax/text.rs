//! The lexer of TVMScript text: Python's tokens and indentation.

use super::token::{OPERATORS, Tok, Token};
use crate::diag::{Diag, Diags};
use crate::name::Name;
use crate::span::{SourceId, Span};

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Where byte 0 of `text` stands in the source.
    base: usize,
    source: SourceId,
    tokens: Vec<Token>,
    diags: Diags,
    /// Open brackets.
    open: Vec<(&'static str, Span)>,
    indents: Vec<usize>,
}

/// The tokens of a text; ends with [`Tok::End`]. Errors: characters, strings, numbers, brackets and indentation.
pub(super) fn lex(source: SourceId, text: &str) -> Result<Vec<Token>, Diags> {
    let mut lx = Lexer::new(source, text, 0);
    lx.lines();
    lx.finish()
}

/// The tokens of an expression written in a string that starts at byte `base` of the source.
pub(super) fn lex_fragment(source: SourceId, text: &str, base: usize) -> Result<Vec<Token>, Diags> {
    let mut lx = Lexer::new(source, text, base);
    while lx.at < text.len() && lx.diags.0.is_empty() {
        lx.token();
    }
    lx.finish()
}

fn closer(open: &str) -> &'static str {
    match open {
        "(" => ")",
        "[" => "]",
        _ => "}",
    }
}

impl<'a> Lexer<'a> {
    fn new(source: SourceId, text: &'a str, base: usize) -> Lexer<'a> {
        Lexer { text, at: 0, base, source, tokens: Vec::new(), diags: Diags::new(), open: Vec::new(), indents: vec![0] }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        let at = |p: usize| u32::try_from(self.base.saturating_add(p)).unwrap_or(u32::MAX);
        Span::new(self.source, at(start), at(end))
    }

    fn push(&mut self, kind: Tok, start: usize, end: usize) {
        let span = self.span(start, end);
        self.tokens.push(Token { kind, span });
    }

    fn error(&mut self, start: usize, end: usize, message: impl Into<String>) {
        let span = self.span(start, end);
        self.diags.push(Diag::error(span, message));
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn lines(&mut self) {
        while self.at < self.text.len() && self.diags.0.is_empty() {
            if self.open.is_empty() && !self.line_start() {
                continue;
            }
            self.line();
        }
    }

    /// Measures the indentation; false when the line is blank or a comment.
    fn line_start(&mut self) -> bool {
        let start = self.at;
        let mut width = 0;
        while let Some(c) = self.peek() {
            match c {
                ' ' => width += 1,
                '\t' => width = width / 8 * 8 + 8,
                '\r' | '\u{c}' => {}
                '\n' => {
                    self.at += 1;
                    return false;
                }
                '#' => {
                    self.skip_line();
                    return false;
                }
                _ => break,
            }
            self.at += 1;
        }
        if self.at >= self.text.len() {
            return false;
        }
        let current = self.indents.last().copied().unwrap_or(0);
        if width > current {
            self.indents.push(width);
            self.push(Tok::Indent, start, self.at);
        }
        while self.indents.last().is_some_and(|i| *i > width) {
            self.indents.pop();
            self.push(Tok::Dedent, self.at, self.at);
        }
        if self.indents.last() != Some(&width) {
            self.error(start, self.at, format!("indentation of {width} columns matches no enclosing line"));
        }
        true
    }

    fn skip_line(&mut self) {
        self.at += self.rest().find('\n').map_or(self.rest().len(), |n| n + 1);
    }

    fn line(&mut self) {
        while let Some(c) = self.peek() {
            if !self.diags.0.is_empty() {
                return;
            }
            match c {
                '\n' => {
                    self.at += 1;
                    if self.open.is_empty() {
                        self.push(Tok::Newline, self.at - 1, self.at - 1);
                        return;
                    }
                }
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                '\\' if self.rest().starts_with("\\\n") => self.at += 2,
                '\\' if self.rest().starts_with("\\\r\n") => self.at += 3,
                _ => self.token(),
            }
        }
    }

    fn token(&mut self) {
        let Some(c) = self.peek() else { return };
        let start = self.at;
        if c.is_whitespace() {
            self.at += c.len_utf8();
        } else if c.is_alphabetic() || c == '_' {
            let len = self.rest().find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest().len());
            self.at += len;
            let name = Name::from(&self.text[start..self.at]);
            self.push(Tok::Name(name), start, self.at);
        } else if c.is_ascii_digit() || (c == '.' && self.rest()[1..].starts_with(|c: char| c.is_ascii_digit())) {
            self.number(start);
        } else if c == '"' || c == '\'' {
            self.string(start, c);
        } else if let Some(op) = OPERATORS.iter().find(|op| self.rest().starts_with(**op)) {
            self.at += op.len();
            self.push(Tok::Op(op), start, self.at);
            self.bracket(op, start);
        } else {
            self.at += c.len_utf8();
            self.error(start, self.at, format!("unexpected character {c:?}"));
        }
    }

    fn bracket(&mut self, op: &'static str, start: usize) {
        match op {
            "(" | "[" | "{" => {
                let span = self.span(start, self.at);
                self.open.push((op, span));
            }
            ")" | "]" | "}" => match self.open.pop() {
                Some((open, _)) if closer(open) == op => {}
                Some((open, at)) => {
                    let span = self.span(start, self.at);
                    self.diags
                        .push(Diag::error(span, format!("`{op}` does not close `{open}`")).label(at, "opened here"));
                }
                None => self.error(start, self.at, format!("`{op}` without an opening bracket")),
            },
            _ => {}
        }
    }

    fn number(&mut self, start: usize) {
        let rest = self.rest();
        let radix = match rest.get(..2).map(str::to_ascii_lowercase).as_deref() {
            Some("0x") => 16,
            Some("0o") => 8,
            Some("0b") => 2,
            _ => 10,
        };
        let mut exponent = false;
        let mut len = 0;
        for (i, c) in rest.char_indices() {
            let sign = radix == 10 && exponent && matches!(c, '+' | '-') && rest[..i].ends_with(['e', 'E']);
            if !(c.is_ascii_alphanumeric() || c == '_' || (c == '.' && radix == 10) || sign) {
                break;
            }
            exponent |= radix == 10 && matches!(c, 'e' | 'E');
            len = i + c.len_utf8();
        }
        self.at += len;
        let digits: String = rest[..len].chars().filter(|c| *c != '_').collect();
        if radix != 10 {
            match i128::from_str_radix(&digits[2..], radix) {
                Ok(v) => self.push(Tok::Int(v), start, self.at),
                Err(_) => self.error(start, self.at, format!("`{}` is not a number", &rest[..len])),
            }
        } else if digits.bytes().all(|b| b.is_ascii_digit()) {
            match digits.parse() {
                Ok(v) => self.push(Tok::Int(v), start, self.at),
                Err(_) => self.error(start, self.at, "the integer is too large"),
            }
        } else {
            match digits.parse::<f64>() {
                Ok(v) => self.push(Tok::Float(v), start, self.at),
                Err(_) => self.error(start, self.at, format!("`{}` is not a number", &rest[..len])),
            }
        }
    }

    fn string(&mut self, start: usize, quote: char) {
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let end = if self.rest().starts_with(&triple) { triple } else { quote.to_string() };
        self.at += end.len();
        let mut value = String::new();
        loop {
            if self.rest().starts_with(&end) {
                self.at += end.len();
                self.push(Tok::Str(value.into()), start, self.at);
                return;
            }
            let Some(c) = self.peek() else { break };
            if c == '\n' && end.len() == 1 {
                break;
            }
            self.at += c.len_utf8();
            if c != '\\' {
                value.push(c);
                continue;
            }
            let Some(e) = self.peek() else { break };
            self.at += e.len_utf8();
            match e {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                '0' => value.push('\0'),
                '\n' => {}
                '\\' | '\'' | '"' => value.push(e),
                'x' | 'u' => {
                    let digits = if e == 'x' { 2 } else { 4 };
                    let code = self.rest().get(..digits).and_then(|h| u32::from_str_radix(h, 16).ok());
                    match code.and_then(char::from_u32) {
                        Some(c) => {
                            value.push(c);
                            self.at += digits;
                        }
                        None => return self.error(start, self.at, format!("bad escape `\\{e}` in a string")),
                    }
                }
                other => {
                    value.push('\\');
                    value.push(other);
                }
            }
        }
        self.error(start, self.at, "the string is not closed");
    }

    fn finish(mut self) -> Result<Vec<Token>, Diags> {
        if let (Some((open, span)), true) = (self.open.first(), self.diags.0.is_empty()) {
            self.diags.push(
                Diag::error(*span, format!("`{open}` is never closed"))
                    .help(format!("add `{}` where the list ends", closer(open))),
            );
        }
        if self.diags.has_errors() {
            return Err(self.diags);
        }
        let end = self.text.len();
        if self.tokens.last().is_some_and(|t| !matches!(t.kind, Tok::Newline | Tok::Dedent)) {
            self.push(Tok::Newline, end, end);
        }
        while self.indents.len() > 1 {
            self.indents.pop();
            self.push(Tok::Dedent, end, end);
        }
        self.push(Tok::End, end, end);
        Ok(self.tokens)
    }
}
