//! Recursive descent over tokens: expressions, by operator precedence as Python's.

use super::ast::{BinaryOp, Expr, ExprKind, Keyword, MAX_DEPTH, UnaryOp};
use super::grammar::{Parser, is_keyword};
use super::token::Tok;
use crate::diag::Diag;
use crate::prim::{BinOp, CmpOp};
use crate::span::Span;

/// Levels of binary operators, weakest first; unary `not` stands between `and` and comparisons.
const NOT: u8 = 2;
const COMPARE: u8 = 3;
const UNARY: u8 = 9;
const POWER: u8 = 10;

#[derive(Clone, Copy)]
enum Infix {
    Binary(BinaryOp),
    Compare(CmpOp),
}

fn infix(tok: &Tok) -> Option<(Infix, u8)> {
    use BinaryOp::{And, MatMul, Or, Pow, Prim, TrueDiv};
    let binary = |op, level| Some((Infix::Binary(op), level));
    let compare = |op| Some((Infix::Compare(op), COMPARE));
    match tok {
        Tok::Name(n) if n == "or" => binary(Or, 0),
        Tok::Name(n) if n == "and" => binary(And, 1),
        Tok::Op(op) => match *op {
            "==" => compare(CmpOp::Eq),
            "!=" => compare(CmpOp::Ne),
            "<" => compare(CmpOp::Lt),
            "<=" => compare(CmpOp::Le),
            ">" => compare(CmpOp::Gt),
            ">=" => compare(CmpOp::Ge),
            "|" => binary(Prim(BinOp::BitOr), 4),
            "^" => binary(Prim(BinOp::BitXor), 5),
            "&" => binary(Prim(BinOp::BitAnd), 6),
            "<<" => binary(Prim(BinOp::Shl), 7),
            ">>" => binary(Prim(BinOp::Shr), 7),
            "+" => binary(Prim(BinOp::Add), 8),
            "-" => binary(Prim(BinOp::Sub), 8),
            "*" => binary(Prim(BinOp::Mul), UNARY),
            "/" => binary(TrueDiv, UNARY),
            "//" => binary(Prim(BinOp::FloorDiv), UNARY),
            "%" => binary(Prim(BinOp::FloorMod), UNARY),
            "@" => binary(MatMul, UNARY),
            "**" => binary(Pow, POWER + 1),
            _ => None,
        },
        _ => None,
    }
}

/// The operator of `+=` and the like.
pub(super) fn operator_of_assignment(op: &str) -> Option<BinaryOp> {
    let bare = op.strip_suffix('=').filter(|o| !o.is_empty())?;
    let op = super::token::OPERATORS.iter().find(|o| **o == bare)?;
    match infix(&Tok::Op(op))? {
        (Infix::Binary(op), _) => Some(op),
        (Infix::Compare(_), _) => None,
    }
}

type Parsed<T> = Result<T, Diag>;

impl Parser<'_> {
    /// A node, unless the tree gets too deep.
    pub(super) fn node(&self, kind: ExprKind, span: Span) -> Parsed<Expr> {
        let e = Expr::new(kind, span);
        if e.depth > MAX_DEPTH {
            return Err(Diag::error(span, format!("the expression is more than {MAX_DEPTH} levels deep"))
                .help("bind parts of it to names"));
        }
        Ok(e)
    }

    /// An expression, or a tuple without parentheses.
    pub(super) fn expr_list(&mut self) -> Parsed<Expr> {
        let first = self.expr()?;
        if !self.is_op(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat_op(",") {
            if matches!(self.peek(), Tok::Newline | Tok::End) || self.is_op("=") || self.is_op(":") {
                break;
            }
            items.push(self.expr()?);
        }
        let span = items[0].span.to(self.last_span());
        self.node(ExprKind::Tuple(items), span)
    }

    /// An expression.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.level(0)
    }

    fn level(&mut self, min: u8) -> Parsed<Expr> {
        let start = self.span();
        let mut left = if min <= NOT && self.eat_word("not") {
            let e = self.nested(|p| p.level(COMPARE))?;
            let span = start.to(e.span);
            self.node(ExprKind::Unary(UnaryOp::Not, Box::new(e)), span)?
        } else {
            self.unary()?
        };
        while let Some((op, level)) = infix(self.peek()) {
            if level < min {
                break;
            }
            let at = self.span();
            self.at += 1;
            let right = match op {
                Infix::Binary(BinaryOp::Pow) => self.nested(|p| p.level(POWER))?,
                _ => self.nested(|p| p.level(level + 1))?,
            };
            if level == COMPARE && matches!(infix(self.peek()), Some((_, COMPARE))) {
                return Err(Diag::error(self.span(), "comparisons cannot be chained")
                    .label(at, "the first comparison")
                    .help("join two comparisons with `and`"));
            }
            let span = left.span.to(right.span);
            let kind = match op {
                Infix::Binary(op) => ExprKind::Binary(op, Box::new(left), Box::new(right)),
                Infix::Compare(op) => ExprKind::Compare(op, Box::new(left), Box::new(right)),
            };
            left = self.node(kind, span)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let op = match self.peek() {
            Tok::Op("-") => UnaryOp::Neg,
            Tok::Op("+") => UnaryOp::Pos,
            Tok::Op("~") => UnaryOp::Invert,
            _ => return self.postfix(),
        };
        self.at += 1;
        let e = self.nested(|p| p.level(POWER))?;
        let span = start.to(e.span);
        self.node(ExprKind::Unary(op, Box::new(e)), span)
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let mut e = self.nested(|p| p.atom())?;
        loop {
            if self.eat_op(".") {
                let member = self.ident()?;
                let span = e.span.to(member.span);
                e = self.node(ExprKind::Attr(Box::new(e), member.name), span)?;
            } else if self.is_op("(") {
                e = self.nested(|p| p.call(e))?;
            } else if self.is_op("[") {
                e = self.nested(|p| p.index(e))?;
            } else {
                return Ok(e);
            }
        }
    }

    fn call(&mut self, func: Expr) -> Parsed<Expr> {
        self.expect_op("(")?;
        let (mut args, mut keywords) = (Vec::new(), Vec::<Keyword>::new());
        while !self.is_op(")") {
            let keyword = matches!(self.tokens.get(self.at + 1).map(|t| &t.kind), Some(Tok::Op("=")));
            if keyword {
                let name = self.ident()?;
                self.expect_op("=")?;
                if keywords.iter().any(|k| k.name == name.name) {
                    return Err(Diag::error(name.span, format!("`{}` is given twice", name.name)));
                }
                keywords.push(Keyword { name: name.name, span: name.span, value: self.expr()? });
            } else if let Some(k) = keywords.last() {
                return Err(Diag::error(self.span(), "an argument without a name after one with a name")
                    .label(k.span, "named argument"));
            } else {
                args.push(self.expr()?);
            }
            if !self.eat_op(",") {
                break;
            }
        }
        let end = self.expect_op(")")?;
        let span = func.span.to(end);
        self.node(ExprKind::Call { func: Box::new(func), args, keywords }, span)
    }

    fn index(&mut self, base: Expr) -> Parsed<Expr> {
        self.expect_op("[")?;
        let mut items = Vec::new();
        while !self.is_op("]") {
            items.push(self.slice()?);
            if !self.eat_op(",") {
                break;
            }
        }
        let end = self.expect_op("]")?;
        if let [Expr { kind: ExprKind::Tuple(t), .. }] = items.as_slice() {
            items = t.clone();
        }
        let span = base.span.to(end);
        self.node(ExprKind::Index(Box::new(base), items), span)
    }

    fn slice(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let part = |p: &mut Self| {
            if p.is_op(":") || p.is_op(",") || p.is_op("]") { Ok(None) } else { p.expr().map(Some) }
        };
        let first = part(self)?;
        if !self.eat_op(":") {
            return first.ok_or_else(|| self.unexpected("an index"));
        }
        let stop = part(self)?;
        let step = if self.eat_op(":") { part(self)? } else { None };
        let span = start.to(self.last_span());
        self.node(ExprKind::Slice(first.map(Box::new), stop.map(Box::new), step.map(Box::new)), span)
    }

    fn items(&mut self, close: &str) -> Parsed<(Vec<Expr>, bool)> {
        let (mut items, mut comma) = (Vec::new(), false);
        while !self.is_op(close) {
            items.push(self.expr()?);
            comma = self.eat_op(",");
            if !comma {
                break;
            }
        }
        self.expect_op(close)?;
        Ok((items, comma))
    }

    fn atom(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let kind = match self.peek().clone() {
            Tok::Int(v) => ExprKind::Int(v),
            Tok::Float(v) => ExprKind::Float(v),
            Tok::Str(s) => ExprKind::Str(s),
            Tok::Name(n) => match n.as_str() {
                "True" => ExprKind::Bool(true),
                "False" => ExprKind::Bool(false),
                "None" => ExprKind::None,
                word if is_keyword(word) => return Err(self.unexpected("an expression")),
                _ => ExprKind::Name(n),
            },
            Tok::Op("(") => {
                self.at += 1;
                let (mut items, comma) = self.items(")")?;
                let span = start.to(self.last_span());
                return match items.pop() {
                    Some(only) if items.is_empty() && !comma => Ok(Expr { span, ..only }),
                    Some(last) => {
                        items.push(last);
                        self.node(ExprKind::Tuple(items), span)
                    }
                    None => self.node(ExprKind::Tuple(items), span),
                };
            }
            Tok::Op("[") => {
                self.at += 1;
                let (items, _) = self.items("]")?;
                return self.node(ExprKind::List(items), start.to(self.last_span()));
            }
            Tok::Op("{") => return self.dict(),
            _ => return Err(self.unexpected("an expression")),
        };
        self.at += 1;
        self.node(kind, start)
    }

    fn dict(&mut self) -> Parsed<Expr> {
        let start = self.expect_op("{")?;
        let mut items = Vec::new();
        while !self.is_op("}") {
            let key = self.expr()?;
            self.expect_op(":")?;
            items.push((key, self.expr()?));
            if !self.eat_op(",") {
                break;
            }
        }
        let end = self.expect_op("}")?;
        self.node(ExprKind::Dict(items), start.to(end))
    }
}
