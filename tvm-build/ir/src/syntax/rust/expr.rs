//! Expressions.

use super::{Dims, Parsed, Reader, attr, call, dotted};
use crate::diag::Diag;
use crate::name::Name;
use crate::prim::{BinOp, CmpOp};
use crate::span::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Keyword, UnaryOp};
use crate::syntax::rust_words::scalar_type;
use crate::syntax::scope::suggest;
use crate::syntax::type_args::type_argument;
use syn::ext::IdentExt;

/// Most names of a path.
pub(super) const MAX_SEGMENTS: usize = 16;

/// A path with dots, without arguments; `R::constant` is TVMScript's `R.const`.
pub(super) fn path_text(p: &syn::Path) -> String {
    let parts: Vec<String> = p.segments.iter().map(|s| s.ident.unraw().to_string()).collect();
    let text = parts.join(".");
    if text == "R.constant" { "R.const".into() } else { text }
}

/// What a binary operator of Rust is in the surface tree.
enum Operator {
    Binary(BinaryOp),
    Compare(CmpOp),
}

/// `R.nn` of Python's `R.nn.relu`: a path that begins with `R`, `T` or `I` and goes on with dots.
fn python_path(e: &syn::Expr) -> Option<String> {
    match e {
        syn::Expr::Path(p) => {
            p.path.get_ident().map(ToString::to_string).filter(|n| matches!(n.as_str(), "R" | "T" | "I"))
        }
        syn::Expr::Field(f) => match &f.member {
            syn::Member::Named(n) => Some(format!("{}.{n}", python_path(&f.base)?)),
            syn::Member::Unnamed(_) => None,
        },
        _ => None,
    }
}

impl Reader<'_> {
    /// An expression.
    pub(super) fn expr(&mut self, e: &syn::Expr) -> Parsed<Expr> {
        self.nested(e, |r| r.expr_inner(e))
    }

    fn expr_inner(&mut self, e: &syn::Expr) -> Parsed<Expr> {
        let span = self.span(e);
        match e {
            syn::Expr::Lit(l) => self.literal(&l.lit, span),
            syn::Expr::Path(p) if p.qself.is_none() => self.path(&p.path, span),
            syn::Expr::Paren(p) => Ok(Expr { span, ..self.expr(&p.expr)? }),
            syn::Expr::Group(g) => self.expr(&g.expr),
            syn::Expr::Tuple(t) => {
                let items = t.elems.iter().map(|i| self.expr(i)).collect::<Parsed<Vec<_>>>()?;
                self.node(ExprKind::Tuple(items), span)
            }
            syn::Expr::Array(a) => {
                let items = a.elems.iter().map(|i| self.expr(i)).collect::<Parsed<Vec<_>>>()?;
                self.node(ExprKind::List(items), span)
            }
            syn::Expr::Unary(u) => {
                let op = match u.op {
                    syn::UnOp::Neg(_) => UnaryOp::Neg,
                    syn::UnOp::Not(_) => UnaryOp::Not,
                    _ => return Err(self.error(&u.op, "there are no pointers in the IR").help("remove the `*`")),
                };
                let a = self.expr(&u.expr)?;
                self.node(ExprKind::Unary(op, Box::new(a)), span)
            }
            syn::Expr::Binary(b) => {
                let op = self.operator(&b.op)?;
                let (left, right) = (Box::new(self.expr(&b.left)?), Box::new(self.expr(&b.right)?));
                let kind = match op {
                    Operator::Binary(op) => ExprKind::Binary(op, left, right),
                    Operator::Compare(op) => ExprKind::Compare(op, left, right),
                };
                self.node(kind, span)
            }
            syn::Expr::Cast(c) => {
                let value = self.expr(&c.expr)?;
                let at = self.span(&c.ty);
                let dtype = match &*c.ty {
                    syn::Type::Path(p) => scalar_type(&path_text(&p.path)),
                    _ => None,
                };
                let Some(dtype) = dtype else { return Err(Diag::error(at, "`as` needs a scalar type, as f32 or i64")) };
                if self.relax {
                    return Err(Diag::error(at, "`as` converts scalars, not tensors")
                        .help(format!("write R::astype(…, dtype = {})", crate::syntax::rust_words::type_word(dtype))));
                }
                let dtype = Expr::new(ExprKind::Str(dtype.to_string().into()), at);
                Ok(call("T.Cast", vec![dtype, value], span))
            }
            syn::Expr::Index(i) => self.index(i, span),
            syn::Expr::Field(f) => match &f.member {
                syn::Member::Unnamed(i) => {
                    let base = self.expr(&f.base)?;
                    let at = self.span(i);
                    let item = Expr::new(ExprKind::Int(i.index.into()), at);
                    self.node(ExprKind::Index(Box::new(base), vec![item]), span)
                }
                syn::Member::Named(n) if python_path(&f.base).is_some() => {
                    let path = python_path(&f.base).unwrap_or_default();
                    Err(self.python_path(&path, &f.base, n))
                }
                syn::Member::Named(n) => Err(self
                    .error(n, format!("a value has no field `{n}`"))
                    .help("fields of tuples are numbered, as x.0")),
            },
            syn::Expr::Call(c) => self.call(c, span),
            syn::Expr::MethodCall(m) => self.method(m),
            syn::Expr::Block(b) => self.let_block(b, span),
            syn::Expr::Reference(r) => Err(self
                .error(&r.and_token, "there are no references in the IR")
                .help("remove the `&`: values are passed as they are")),
            syn::Expr::If(i) => Err(self.error(&i.if_token, "`if` inside an expression").help(if self.relax {
                "bind it to a name first: `let x = if … { … } else { … };`"
            } else {
                "write T::if_then_else(condition, a, b)"
            })),
            syn::Expr::Range(r) => Err(Diag::error(span, "a range stands in an index or a loop alone")
                .label(self.spans.add(quote::ToTokens::to_token_stream(&r.limits)), "")),
            syn::Expr::Assign(a) => Err(self
                .error(&a.eq_token, "an assignment is no value")
                .help("an argument by name stands directly in a call, as R::nn::softmax(x, axis = 1)")),
            syn::Expr::Macro(m) => {
                let d = self.error(&m.mac.path, "macros cannot be called in the IR");
                Err(d.help("what is inside of `ir_module!` is read as it is written"))
            }
            syn::Expr::Closure(_) => Err(Diag::error(span, "there are no closures in the IR")),
            syn::Expr::Match(m) => {
                Err(self.error(&m.match_token, "there is no `match` in the IR").help("write `if … { … } else { … }`"))
            }
            syn::Expr::Return(r) => Err(self.error(&r.return_token, "`return` inside an expression")),
            syn::Expr::Repeat(_) => Err(Diag::error(span, "a list must be written out")
                .help("write R::full((N,), value) for a tensor of one value")),
            syn::Expr::Struct(s) => Err(self.error(&s.path, "there are no structs in the IR")),
            syn::Expr::Try(t) => Err(self.error(&t.question_token, "`?` says nothing here").help("remove it")),
            _ => Err(Diag::error(span, "expected a value")),
        }
    }

    fn literal(&mut self, l: &syn::Lit, span: Span) -> Parsed<Expr> {
        let (kind, suffix) = match l {
            syn::Lit::Int(i) => {
                let v = i.base10_digits().parse().map_err(|_| Diag::error(span, "the integer is too large"))?;
                (ExprKind::Int(v), i.suffix())
            }
            syn::Lit::Float(f) => {
                let v = f.base10_digits().parse::<f64>().map_err(|_| Diag::error(span, "not a number"))?;
                (ExprKind::Float(v), f.suffix())
            }
            syn::Lit::Str(s) => (ExprKind::Str(s.value().into()), s.suffix()),
            syn::Lit::Bool(b) => (ExprKind::Bool(b.value), ""),
            _ => return Err(Diag::error(span, "expected a number, a string or a bool")),
        };
        let value = Expr::new(kind, span);
        if suffix.is_empty() {
            return Ok(value);
        }
        let dtype = scalar_type(suffix).filter(|_| !matches!(value.kind, ExprKind::Str(_)));
        let Some(dtype) = dtype else { return Err(Diag::error(span, format!("unknown suffix `{suffix}`"))) };
        if matches!(value.kind, ExprKind::Float(_)) && !dtype.is_float() {
            return Err(Diag::error(span, format!("`{l}` is not an integer", l = quote::ToTokens::to_token_stream(l))));
        }
        Ok(call(&format!("T.{dtype}"), vec![value], span))
    }

    /// A name, a function of the module, a dotted name, or a type as a value.
    fn path(&mut self, p: &syn::Path, span: Span) -> Parsed<Expr> {
        if p.segments.iter().any(|s| !s.arguments.is_none()) {
            return self.type_path(p);
        }
        if p.segments.len() > MAX_SEGMENTS {
            return Err(Diag::error(span, format!("a path of {} names means nothing in the IR", p.segments.len())));
        }
        let text = path_text(p);
        if p.leading_colon.is_some() || text.starts_with("crate.") || text.starts_with("super.") {
            return Err(Diag::error(span, "a path of Rust means nothing in the IR")
                .help("ops are `R::…`, TensorIR's functions `T::…`"));
        }
        if let Some(name) = text.strip_prefix("self.") {
            return Ok(attr(dotted(super::module::MODULE, span), name, span));
        }
        if p.segments.len() > 1 {
            let mut parts = p.segments.iter();
            let first = parts.next().map_or(span, |s| self.span(&s.ident));
            // Each name has its own span; the base of a path is its first name.
            let mut e = Expr::new(ExprKind::Name(text.split('.').next().unwrap_or_default().into()), first);
            for word in text.split('.').skip(1) {
                e = attr(e, word, span);
            }
            return Ok(e);
        }
        let name = Name::from(text.as_str());
        Ok(match text.as_str() {
            "None" => Expr::new(ExprKind::None, span),
            _ if self.functions.contains(&name) && !self.locals.contains(&name) => Self::member(&name, span),
            _ => Expr::new(ExprKind::Name(name), span),
        })
    }

    fn operator(&mut self, op: &syn::BinOp) -> Parsed<Operator> {
        use syn::BinOp as B;
        let prim = |op| Operator::Binary(BinaryOp::Prim(op));
        Ok(match op {
            B::Add(_) => prim(BinOp::Add),
            B::Sub(_) => prim(BinOp::Sub),
            B::Mul(_) => prim(BinOp::Mul),
            B::Div(_) => Operator::Binary(BinaryOp::TrueDiv),
            B::Rem(_) => prim(BinOp::FloorMod),
            B::BitAnd(_) => prim(BinOp::BitAnd),
            B::BitOr(_) => prim(BinOp::BitOr),
            B::BitXor(_) => prim(BinOp::BitXor),
            B::Shl(_) => prim(BinOp::Shl),
            B::Shr(_) => prim(BinOp::Shr),
            B::And(_) => Operator::Binary(BinaryOp::And),
            B::Or(_) => Operator::Binary(BinaryOp::Or),
            B::Eq(_) => Operator::Compare(CmpOp::Eq),
            B::Ne(_) => Operator::Compare(CmpOp::Ne),
            B::Lt(_) => Operator::Compare(CmpOp::Lt),
            B::Le(_) => Operator::Compare(CmpOp::Le),
            B::Gt(_) => Operator::Compare(CmpOp::Gt),
            B::Ge(_) => Operator::Compare(CmpOp::Ge),
            _ => return Err(self.error(op, "an assignment is no value")),
        })
    }

    /// The operator of `+=` and the like.
    pub(super) fn assignment_operator(op: &syn::BinOp) -> Option<BinaryOp> {
        use syn::BinOp as B;
        Some(match op {
            B::AddAssign(_) => BinaryOp::Prim(BinOp::Add),
            B::SubAssign(_) => BinaryOp::Prim(BinOp::Sub),
            B::MulAssign(_) => BinaryOp::Prim(BinOp::Mul),
            B::DivAssign(_) => BinaryOp::TrueDiv,
            B::RemAssign(_) => BinaryOp::Prim(BinOp::FloorMod),
            B::BitAndAssign(_) => BinaryOp::Prim(BinOp::BitAnd),
            B::BitOrAssign(_) => BinaryOp::Prim(BinOp::BitOr),
            B::BitXorAssign(_) => BinaryOp::Prim(BinOp::BitXor),
            B::ShlAssign(_) => BinaryOp::Prim(BinOp::Shl),
            B::ShrAssign(_) => BinaryOp::Prim(BinOp::Shr),
            _ => return None,
        })
    }

    /// `A[i]`, `A[[i, j]]`, `A[(i, j)]`, `A[()]`, `A[[i, 0..4]]`
    fn index(&mut self, i: &syn::ExprIndex, span: Span) -> Parsed<Expr> {
        let base = self.expr(&i.expr)?;
        let items: Vec<&syn::Expr> = match &*i.index {
            syn::Expr::Tuple(t) => t.elems.iter().collect(),
            syn::Expr::Array(a) => a.elems.iter().collect(),
            one => vec![one],
        };
        let items = items.into_iter().map(|i| self.index_item(i)).collect::<Parsed<Vec<_>>>()?;
        self.node(ExprKind::Index(Box::new(base), items), span)
    }

    /// An index, or a slice `start..stop`, `(start..stop).step_by(step)`.
    fn index_item(&mut self, e: &syn::Expr) -> Parsed<Expr> {
        let (range, step) = match e {
            syn::Expr::MethodCall(m) if m.method == "step_by" && m.args.len() == 1 => (&*m.receiver, m.args.first()),
            other => (other, None),
        };
        let range = match range {
            syn::Expr::Paren(p) => &*p.expr,
            other => other,
        };
        let syn::Expr::Range(r) = range else { return self.expr(e) };
        if let syn::RangeLimits::Closed(t) = &r.limits {
            return Err(self.error(t, "a slice excludes its end").help("write `start..stop`"));
        }
        let span = self.span(e);
        let mut part = |e: Option<&syn::Expr>| e.map(|e| self.expr(e).map(Box::new)).transpose();
        let kind = ExprKind::Slice(part(r.start.as_deref())?, part(r.end.as_deref())?, part(step)?);
        self.node(kind, span)
    }

    fn call(&mut self, c: &syn::ExprCall, span: Span) -> Parsed<Expr> {
        let args: Vec<&syn::Expr> = c.args.iter().collect();
        self.call_with(&c.func, &args, span)
    }

    /// A call of a function with these arguments.
    pub(super) fn call_with(&mut self, func: &syn::Expr, args: &[&syn::Expr], span: Span) -> Parsed<Expr> {
        let mut path = match func {
            syn::Expr::Path(p) if p.qself.is_none() => p.path.clone(),
            _ => {
                let func = self.expr(func)?;
                return self.finish_call(func, args, span);
            }
        };
        let text = path_text(&path);
        match text.as_str() {
            "I.dict" => return self.dict(args, span),
            "I.metadata" => return self.metadata(args, span),
            _ => {}
        }
        let types = path.segments.iter_mut().find_map(|s| match std::mem::take(&mut s.arguments) {
            syn::PathArguments::AngleBracketed(a) => Some(a),
            _ => None,
        });
        let at = self.span(&path);
        let word = Name::from(text.as_str());
        if path.segments.len() == 1 && !self.functions.contains(&word) && !self.locals.contains(&word) {
            let d = Diag::error(at, format!("the module has no function `{word}`"));
            let d = suggest(d, &word, self.functions.iter().chain(&self.locals).map(Name::as_str));
            return Err(match crate::ops::lookup(&word).or_else(|| crate::ops::lookup(&format!("nn.{word}"))) {
                Some(op) if d.help.is_none() => d.help(format!("the op is R::{}", op.def().name.replace('.', "::"))),
                _ => d,
            });
        }
        let callee = self.path(&path, at)?;
        let mut out = self.finish_call(callee, args, span)?;
        let Some(types) = types else { return Ok(out) };
        let Some(wanted) = type_argument(&text) else {
            let shown = text.replace('.', "::");
            let d = self.error(&types, format!("`{shown}` takes no types"));
            return Err(d.help(
                "types are for R::call_tir, R::call_dps_packed, R::call_packed, R::while_loop and R::match_cast",
            ));
        };
        let at = self.span(&types);
        if text == "R.match_cast" {
            self.dims = Dims::Cast;
        }
        let list = types.args.iter().map(|t| self.type_argument(t)).collect::<Parsed<Vec<_>>>();
        self.dims = Dims::Body;
        let mut list = list?;
        let value = match list.pop() {
            Some(one) if list.is_empty() && !wanted.tuple => one,
            Some(last) => {
                list.push(last);
                let kind = if wanted.tuple { ExprKind::Tuple(list) } else { ExprKind::List(list) };
                self.node(kind, at)?
            }
            None => return Err(Diag::error(at, "expected a type between the angle brackets")),
        };
        if let ExprKind::Call { keywords, args, .. } = &mut out.kind {
            match wanted.position {
                Some(p) if p == args.len() => args.push(value),
                Some(_) => {
                    return Err(Diag::error(
                        span,
                        "R.match_cast takes one value: R::match_cast::<R::Tensor<f32, N>>(x)",
                    ));
                }
                None => keywords.push(Keyword { name: wanted.keyword.into(), span: at, value }),
            }
        }
        Ok(out)
    }

    fn finish_call(&mut self, func: Expr, list: &[&syn::Expr], span: Span) -> Parsed<Expr> {
        let (mut args, mut keywords) = (Vec::new(), Vec::<Keyword>::new());
        for a in list {
            if matches!(a, syn::Expr::Assign(_)) {
                let k = self.keyword(a)?;
                if keywords.iter().any(|other| other.name == k.name) {
                    return Err(Diag::error(k.span, format!("`{}` is given twice", k.name)));
                }
                keywords.push(k);
            } else if let Some(k) = keywords.last() {
                let first = k.span;
                return Err(self
                    .error(a, "an argument without a name after one with a name")
                    .label(first, "named argument"));
            } else {
                args.push(self.argument(a)?);
            }
        }
        self.node(ExprKind::Call { func: Box::new(func), args, keywords }, span)
    }

    /// `name = value`
    pub(super) fn keyword(&mut self, e: &syn::Expr) -> Parsed<Keyword> {
        let syn::Expr::Assign(a) = e else { return Err(self.error(e, "expected name = value")) };
        let name = match &*a.left {
            syn::Expr::Path(p) => p.path.get_ident(),
            _ => None,
        };
        let Some(name) = name else { return Err(self.error(&a.left, "expected the name of an argument")) };
        let ident = self.ident(name);
        let value = self.argument(&a.right)?;
        Ok(Keyword { name: ident.name, span: ident.span, value })
    }

    /// An argument: the name of a scalar type is a string in the surface tree.
    fn argument(&mut self, e: &syn::Expr) -> Parsed<Expr> {
        let dtype = match e {
            syn::Expr::Path(p) if p.qself.is_none() => {
                p.path.get_ident().and_then(|i| scalar_type(&i.unraw().to_string()))
            }
            _ => None,
        };
        match dtype {
            Some(d) => Ok(Expr::new(ExprKind::Str(d.to_string().into()), self.span(e))),
            None => self.expr(e),
        }
    }

    /// `key = value, "other.key" = value`
    pub(super) fn dict(&mut self, args: &[&syn::Expr], span: Span) -> Parsed<Expr> {
        let mut items = Vec::new();
        for e in args {
            let syn::Expr::Assign(a) = e else { return Err(self.error(e, "expected key = value")) };
            let at = self.span(&a.left);
            let key = match &*a.left {
                syn::Expr::Path(p) => p.path.get_ident().map(|i| i.unraw().to_string()),
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. }) => Some(s.value()),
                _ => None,
            };
            let Some(key) = key else { return Err(Diag::error(at, "a key is a name or a string")) };
            items.push((Expr::new(ExprKind::Str(key.into()), at), self.argument(&a.right)?));
        }
        self.node(ExprKind::Dict(items), span)
    }

    /// `I::metadata(i)`: a constant that is given with the text.
    fn metadata(&mut self, args: &[&syn::Expr], span: Span) -> Parsed<Expr> {
        let items = args.iter().map(|a| self.expr(a)).collect::<Parsed<Vec<_>>>()?;
        let key = Expr::new(ExprKind::Str("relax.expr.Constant".into()), span);
        let base = Expr::new(ExprKind::Index(Box::new(dotted("metadata", span)), vec![key]), span);
        self.node(ExprKind::Index(Box::new(base), items), span)
    }

    fn method(&mut self, m: &syn::ExprMethodCall) -> Parsed<Expr> {
        if let Some(path) = python_path(&m.receiver) {
            return Err(self.python_path(&path, &m.receiver, &m.method));
        }
        let name = m.method.to_string();
        let d = self.error(&m.method, format!("values have no methods, as `{name}`"));
        let op = crate::ops::lookup(&name).or_else(|| crate::ops::lookup(&format!("nn.{name}")));
        Err(match op {
            Some(op) if self.relax => {
                let path = op.def().name.replace('.', "::");
                let more = if m.args.is_empty() { "" } else { ", …" };
                let receiver = quote::ToTokens::to_token_stream(&m.receiver).to_string();
                let receiver = if receiver.len() > 20 { "…".to_string() } else { receiver };
                d.help(format!("write R::{path}({receiver}{more})"))
            }
            _ => d.help("functions are called by their path, as R::nn::relu(x) or T::exp(x)"),
        })
    }

    /// An error about `R.add`, which is Python's spelling.
    fn python_path(&mut self, path: &str, base: &syn::Expr, last: &syn::Ident) -> Diag {
        let mut tokens = quote::ToTokens::to_token_stream(base);
        tokens.extend(quote::ToTokens::to_token_stream(last));
        let span = self.spans.add(tokens);
        let name = last.unraw().to_string();
        Diag::error(span, "a dot stands in a path, as in Python")
            .help(format!("write {}::{name}", path.replace('.', "::")))
    }

    /// `{ let x = v; body }`: TVMScript's `T.Let(body, where={x: v})`.
    fn let_block(&mut self, b: &syn::ExprBlock, span: Span) -> Parsed<Expr> {
        let Some((syn::Stmt::Expr(body, None), lets)) = b.block.stmts.split_last() else {
            return Err(Diag::error(span, "a block here ends with its value").help("write { let x = v; x + x }"));
        };
        if self.relax {
            return Err(Diag::error(span, "a block inside an expression").help("bind its parts with `let` before"));
        }
        let mut items = Vec::new();
        for s in lets {
            let syn::Stmt::Local(l) = s else {
                return Err(self.error(s, "a block inside an expression holds `let` alone"));
            };
            let (syn::Pat::Ident(p), Some(init)) = (&l.pat, &l.init) else {
                return Err(self.error(&l.pat, "expected a name and its value"));
            };
            let ident = self.bindable(&p.ident)?;
            let value = self.expr(&init.expr)?;
            self.locals.insert(ident.name.clone());
            items.push((Expr::new(ExprKind::Name(ident.name), ident.span), value));
        }
        let body = self.expr(body)?;
        if items.is_empty() {
            return Ok(body);
        }
        let dict = self.node(ExprKind::Dict(items), span)?;
        let keywords = vec![Keyword { name: "where".into(), span, value: dict }];
        self.node(ExprKind::Call { func: Box::new(dotted("T.Let", span)), args: vec![body], keywords }, span)
    }
}
