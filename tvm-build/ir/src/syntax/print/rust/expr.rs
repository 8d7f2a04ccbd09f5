//! Expressions.

use super::super::doc::{Doc, float, level};
use super::{Writer, metadata_index, quoted};
use crate::dtype::DType;
use crate::name::Name;
use crate::prim::{BinOp, CmpOp};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Keyword, UnaryOp};
use crate::syntax::rust_words::{ident, scalar_type, type_word};
use crate::syntax::type_args::type_argument;

impl Writer {
    pub(super) fn expr(&mut self, e: &Expr) -> String {
        self.doc(e).text
    }

    pub(super) fn exprs(&mut self, list: &[Expr]) -> Vec<String> {
        list.iter().map(|e| self.expr(e)).collect()
    }

    /// A name in scope.
    pub(super) fn name(&self, n: &Name) -> String {
        ident(self.renamed.get(n).unwrap_or(n))
    }

    /// `a::b::c`; a function of the module by its name.
    fn path(&self, base: &Expr, name: &Name) -> Option<String> {
        if base.name().is_some_and(|n| n == "cls" || n == "Module") {
            let shadowed = self.locals.contains(name);
            return Some(if shadowed { format!("self::{}", ident(name)) } else { ident(name) });
        }
        let base = base.path()?;
        let name = if base == "R" && name == "const" { "constant".to_string() } else { ident(name) };
        let base: Vec<String> = base.split('.').map(ident).collect();
        Some(format!("{}::{name}", base.join("::")))
    }

    fn doc(&mut self, e: &Expr) -> Doc {
        match &e.kind {
            ExprKind::Name(n) => Doc::atom(self.name(n)),
            ExprKind::Int(v) => Doc::atom(v.to_string()),
            ExprKind::Float(v) => Doc::atom(float(*v)),
            ExprKind::Str(s) => Doc::atom(quoted(s)),
            ExprKind::Bool(b) => Doc::atom(b.to_string()),
            ExprKind::None | ExprKind::Broken => Doc::atom("None"),
            ExprKind::Attr(base, name) => match self.path(base, name) {
                Some(path) => Doc::atom(path),
                None => Doc::atom(format!("{}.{}", self.doc(base).into_atom(), ident(name))),
            },
            ExprKind::Call { func, args, keywords } => self.call(func, args, keywords),
            ExprKind::Index(base, items) => self.index(e, base, items),
            ExprKind::Slice(a, b, step) => self.slice(a.as_deref(), b.as_deref(), step.as_deref()),
            ExprKind::Tuple(items) => Doc::atom(super::super::doc::tuple(&self.exprs(items))),
            ExprKind::List(items) => Doc::atom(format!("[{}]", self.exprs(items).join(", "))),
            ExprKind::Dict(_) => Doc::atom(format!("I::dict({})", self.dict_items(e))),
            ExprKind::Unary(op, a) => {
                let a = self.doc(a);
                match op {
                    UnaryOp::Neg => Doc::unary("-", level::UNARY, a),
                    UnaryOp::Not => Doc::unary("!", level::UNARY, a),
                    UnaryOp::Pos => a,
                    UnaryOp::Invert => Doc::call("T::bitwise_not", &[a.text]),
                }
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.doc(a), self.doc(b));
                binary(*op, a, b)
            }
            ExprKind::Compare(op, a, b) => {
                let (a, b) = (self.doc(a), self.doc(b));
                let sign = match op {
                    CmpOp::Eq => "==",
                    CmpOp::Ne => "!=",
                    CmpOp::Lt => "<",
                    CmpOp::Le => "<=",
                    CmpOp::Gt => ">",
                    CmpOp::Ge => ">=",
                };
                Doc::compare(sign, a, b)
            }
        }
    }

    fn slice(&mut self, a: Option<&Expr>, b: Option<&Expr>, step: Option<&Expr>) -> Doc {
        let mut part = |e: Option<&Expr>| e.map_or(String::new(), |e| self.expr(e));
        let range = format!("{}..{}", part(a), part(b));
        Doc::atom(match step {
            Some(s) => format!("({range}).step_by({})", self.expr(s)),
            None => range,
        })
    }

    fn index(&mut self, e: &Expr, base: &Expr, items: &[Expr]) -> Doc {
        if let Some(i) = metadata_index(e) {
            return self.constant(i);
        }
        let base = self.doc(base).into_atom();
        if let (true, [Expr { kind: ExprKind::Int(i), .. }]) = (self.relax, items) {
            return Doc::atom(format!("{base}.{i}"));
        }
        let items = self.exprs(items);
        Doc::atom(match items.as_slice() {
            [] => format!("{base}[()]"),
            [one] => format!("{base}[{one}]"),
            many => format!("{base}[[{}]]", many.join(", ")),
        })
    }

    /// `key = value, "other.key" = value`
    pub(super) fn dict_items(&mut self, e: &Expr) -> String {
        let ExprKind::Dict(items) = &e.kind else { return self.expr(e) };
        let mut docs = Vec::new();
        for (k, v) in items {
            let key = match k.str() {
                Some(s) if is_plain(s) => s.to_string(),
                Some(s) => quoted(s),
                None => self.expr(k),
            };
            docs.push(format!("{key} = {}", self.expr(v)));
        }
        docs.join(", ")
    }

    fn call(&mut self, func: &Expr, args: &[Expr], keywords: &[Keyword]) -> Doc {
        let path = func.path().unwrap_or_default();
        if let Some(d) = self.special(&path, args, keywords) {
            return d;
        }
        let types = type_argument(&path);
        let (mut docs, mut turbofish) = (Vec::new(), String::new());
        for (i, a) in args.iter().enumerate() {
            match types {
                Some(t) if t.position == Some(i) => turbofish = self.type_list(a),
                _ => docs.push(self.argument(a)),
            }
        }
        for k in keywords {
            if types.is_some_and(|t| k.name == t.keyword) {
                turbofish = self.type_list(&k.value);
            } else {
                docs.push(format!("{} = {}", ident(&k.name), self.argument(&k.value)));
            }
        }
        let func = self.doc(func).into_atom();
        Doc::call(&format!("{func}{turbofish}"), &docs)
    }

    /// An argument: the name of a type stands without quotes.
    fn argument(&mut self, e: &Expr) -> String {
        match e.str().and_then(|s| s.parse::<DType>().ok().filter(|d| d.to_string() == s.as_str())) {
            Some(d) => type_word(d),
            None => self.expr(e),
        }
    }

    /// `::<A, B>`
    fn type_list(&mut self, e: &Expr) -> String {
        let types: Vec<String> = match e.items() {
            Some(items) => items.iter().map(|t| self.ty(t)).collect(),
            None => vec![self.ty(e)],
        };
        format!("::<{}>", types.join(", "))
    }

    /// Calls that Rust has a form for: literals, casts, lets.
    fn special(&mut self, path: &str, args: &[Expr], keywords: &[Keyword]) -> Option<Doc> {
        let name = path.strip_prefix("T.")?;
        match (name, args, keywords) {
            ("bool", [Expr { kind: ExprKind::Bool(b), .. }], []) => Some(Doc::atom(b.to_string())),
            ("Cast", [dtype, value], []) => {
                let dtype = type_word(dtype.str()?.parse().ok()?);
                let value = self.doc(value);
                Some(Doc::cast(value, &dtype))
            }
            ("Let", [body], [k]) if k.name == "where" => {
                let ExprKind::Dict(items) = &k.value.kind else { return None };
                let mut text = String::from("{ ");
                for (key, value) in items {
                    text.push_str(&format!("let {} = {}; ", self.expr(key), self.expr(value)));
                }
                Some(Doc::atom(format!("({text}{} }})", self.expr(body))))
            }
            (_, [one], []) => {
                let dtype = name.parse::<DType>().ok()?;
                let word = type_word(dtype);
                let number = dtype.lanes == 1 && scalar_type(&word).is_some() && !dtype.is_bool();
                match &one.kind {
                    ExprKind::Int(v) if number && dtype.is_integer() => Some(Doc::atom(format!("{v}{word}"))),
                    ExprKind::Float(v)
                        if number && dtype.is_float() && v.is_finite() && word.starts_with(['f', 'b']) =>
                    {
                        Some(Doc::atom(format!("{}{word}", float(*v))))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// A key that needs no quotes.
fn is_plain(s: &str) -> bool {
    s.starts_with(|c: char| c.is_ascii_alphabetic())
        && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && ident(s) == s
}

fn binary(op: BinaryOp, a: Doc, b: Doc) -> Doc {
    let function = |name: &str, a: Doc, b: Doc| Doc::call(name, &[a.text, b.text]);
    let (sign, level) = match op {
        BinaryOp::Prim(op) => match op {
            BinOp::Add => ("+", level::SUM),
            BinOp::Sub => ("-", level::SUM),
            BinOp::Mul => ("*", level::PRODUCT),
            BinOp::FloorMod => ("%", level::PRODUCT),
            BinOp::BitAnd => ("&", level::BIT_AND),
            BinOp::BitOr => ("|", level::BIT_OR),
            BinOp::BitXor => ("^", level::BIT_XOR),
            BinOp::Shl => ("<<", level::SHIFT),
            BinOp::Shr => (">>", level::SHIFT),
            BinOp::FloorDiv => return function("T::floordiv", a, b),
            BinOp::Div => return function("T::truncdiv", a, b),
            BinOp::Mod => return function("T::truncmod", a, b),
            BinOp::Min => return function("T::min", a, b),
            BinOp::Max => return function("T::max", a, b),
        },
        BinaryOp::TrueDiv => ("/", level::PRODUCT),
        BinaryOp::Pow => return function("T::pow", a, b),
        BinaryOp::MatMul => return function("R::matmul", a, b),
        BinaryOp::And => ("&&", level::AND),
        BinaryOp::Or => ("||", level::OR),
    };
    Doc::binary(sign, level, a, b)
}
