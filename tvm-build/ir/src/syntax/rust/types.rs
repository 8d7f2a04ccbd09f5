//! Types of parameters, results and bindings.

use super::{Dims, Parsed, Reader, dotted};
use crate::diag::Diag;
use crate::span::Span;
use crate::syntax::ast::{Expr, ExprKind, Ident, Keyword};
use crate::syntax::rust_words::scalar_type;
use crate::syntax::scope::suggest;
use syn::ext::IdentExt;

impl Reader<'_> {
    /// A type.
    pub(super) fn ty(&mut self, t: &syn::Type) -> Parsed<Expr> {
        self.nested(t, |r| r.ty_inner(t))
    }

    fn ty_inner(&mut self, t: &syn::Type) -> Parsed<Expr> {
        match t {
            syn::Type::Path(p) if p.qself.is_none() => self.type_path(&p.path),
            syn::Type::Tuple(items) => {
                let span = self.span(t);
                let items = items.elems.iter().map(|t| self.ty(t)).collect::<Parsed<Vec<_>>>()?;
                self.node(ExprKind::Tuple(items), span)
            }
            syn::Type::Paren(p) => self.ty(&p.elem),
            syn::Type::Group(g) => self.ty(&g.elem),
            syn::Type::BareFn(f) => {
                let span = self.span(t);
                let params = f.inputs.iter().map(|a| self.ty(&a.ty)).collect::<Parsed<Vec<_>>>()?;
                let params = self.node(ExprKind::Tuple(params), span)?;
                let ret = match &f.output {
                    syn::ReturnType::Type(_, t) => self.ty(t)?,
                    syn::ReturnType::Default => self.node(ExprKind::Tuple(Vec::new()), span)?,
                };
                Ok(super::call("R.Callable", vec![params, ret, Expr::new(ExprKind::Bool(true), span)], span))
            }
            syn::Type::Reference(r) if matches!(&*r.elem, syn::Type::Array(_) | syn::Type::Slice(_)) => Err(self
                .error(t, "a slice is no type of the IR")
                .help("write R::Tensor<f32, 1, N> or T::Buffer<f32, 16, N>")),
            syn::Type::Reference(_) => Err(self
                .error(t, "a reference is no type of the IR")
                .help("remove the `&`: values are passed as they are")),
            syn::Type::Array(_) | syn::Type::Slice(_) => Err(self
                .error(t, "an array is no type of the IR")
                .help("write R::Tensor<f32, 1, N> or T::Buffer<f32, 16, N>")),
            syn::Type::Infer(_) => Err(self.error(t, "the type cannot be left out here")),
            _ => Err(self.error(t, "expected a type, as R::Tensor<f32, 1, 4>")),
        }
    }

    /// A type that is a path; also where it stands as a value, as `R::Tensor::<f32, N>`.
    pub(super) fn type_path(&mut self, p: &syn::Path) -> Parsed<Expr> {
        let span = self.span(p);
        if p.segments.len() > super::expr::MAX_SEGMENTS {
            return Err(Diag::error(span, format!("a path of {} names is no type of the IR", p.segments.len())));
        }
        let path = super::expr::path_text(p);
        if let Some(dtype) = scalar_type(&path) {
            return Ok(dotted(&format!("T.{dtype}"), span));
        }
        let arguments = p.segments.iter().find_map(|s| match &s.arguments {
            syn::PathArguments::AngleBracketed(a) => Some(a),
            _ => None,
        });
        let Some(arguments) = arguments else {
            if path == "T.Buffer" {
                return Err(
                    Diag::error(span, "a buffer needs an element type and a shape").help("write T::Buffer<f32, 16, N>")
                );
            }
            let integer = matches!(path.as_str(), "usize" | "isize" | "int");
            if integer || matches!(path.as_str(), "float" | "double" | "String" | "str" | "char") {
                let d = Diag::error(span, format!("`{path}` is no type of the IR"));
                return Err(match path.as_str() {
                    _ if integer => d.help("write i64"),
                    "float" => d.help("write f32"),
                    "double" => d.help("write f64"),
                    _ => d.help("write R::Tensor<f32, 1, N>, R::Object or a scalar type as i64"),
                });
            }
            return Ok(dotted(&path, span));
        };
        let args: Vec<&syn::GenericArgument> = arguments.args.iter().collect();
        let (args, keywords) = match path.as_str() {
            "R.Tensor" | "T.Buffer" => self.tensor(&path, &args, span)?,
            "R.Shape" => self.shape(&args, span)?,
            "R.Prim" => {
                let [one] = args.as_slice() else { return Err(Diag::error(span, "R::Prim takes one dtype or value")) };
                if let Some(word) = name_of(one).filter(|w| scalar_type(w).is_some()) {
                    return Ok(dotted(&format!("T.{}", scalar_type(&word).unwrap_or(crate::dtype::DType::I64)), span));
                }
                let value = self.dim(one)?;
                (Vec::new(), vec![Keyword { name: "value".into(), span, value }])
            }
            "R.Callable" => (args.iter().map(|a| self.callable_part(a)).collect::<Parsed<Vec<_>>>()?, Vec::new()),
            "R.Tuple" => (args.iter().map(|a| self.type_argument(a)).collect::<Parsed<Vec<_>>>()?, Vec::new()),
            other => {
                let known = ["R::Tensor", "R::Shape", "R::Prim", "R::Callable", "T::Buffer"];
                let shown = other.replace('.', "::");
                let mut plain = p.clone();
                plain.segments.iter_mut().for_each(|s| s.arguments = syn::PathArguments::None);
                let d = self.error(&plain, format!("`{shown}` is no type of the IR"));
                let d = suggest(d, &shown, known.into_iter());
                return Err(if d.help.is_some() {
                    d
                } else {
                    d.help("write R::Tensor<f32, 1, N> or T::Buffer<f32, 16, N>")
                });
            }
        };
        self.node(ExprKind::Call { func: Box::new(dotted(&path, span)), args, keywords }, span)
    }

    /// A type between angle brackets.
    pub(super) fn type_argument(&mut self, a: &syn::GenericArgument) -> Parsed<Expr> {
        match a {
            syn::GenericArgument::Type(t) => self.ty(t),
            other => Err(self.error(other, "expected a type, as R::Tensor<f32, 1, 4>")),
        }
    }

    fn callable_part(&mut self, a: &syn::GenericArgument) -> Parsed<Expr> {
        match a {
            syn::GenericArgument::Const(e) => self.expr(e),
            other => self.type_argument(other),
        }
    }

    /// Element type and dimensions.
    fn tensor(&mut self, path: &str, args: &[&syn::GenericArgument], span: Span) -> Parsed<(Vec<Expr>, Vec<Keyword>)> {
        let shown = path.replace('.', "::");
        let Some((first, rest)) = args.split_first() else {
            return Err(
                Diag::error(span, format!("{shown} needs an element type")).help(format!("write {shown}<f32, 1, N>"))
            );
        };
        let mut keywords = Vec::new();
        let word = name_of(first);
        match word.as_deref().map(|w| (w, scalar_type(w))) {
            Some((_, Some(dtype))) => {
                let at = self.span(first);
                let value = Expr::new(ExprKind::Str(dtype.to_string().into()), at);
                keywords.push(Keyword { name: "dtype".into(), span: at, value });
            }
            _ if is_infer(first) && path == "R.Tensor" => {}
            Some((w, None)) => {
                let d = self.error(first, format!("`{w}` is no element type"));
                let known = ["f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"];
                let close = suggest(d.clone(), w, known.into_iter());
                let help = format!("the element type comes first, as {shown}<f32, 1, N>");
                return Err(if close.help.is_some() { close } else { d.help(help) });
            }
            None => {
                let d = self.error(first, "a dimension stands where the element type is wanted");
                return Err(d.help(format!("the element type comes first, as {shown}<f32, 1, N>")));
            }
        }
        let (named, rest): (Vec<_>, Vec<_>) =
            rest.iter().copied().partition(|a| matches!(a, syn::GenericArgument::AssocConst(_)));
        for a in named {
            let syn::GenericArgument::AssocConst(a) = a else { continue };
            let ident = self.ident(&a.ident);
            let value = self.expr(&a.value)?;
            keywords.push(Keyword { name: ident.name, span: ident.span, value });
        }
        if path == "T.Buffer" && rest.is_empty() {
            return Err(Diag::error(span, "the buffer has no shape")
                .help("write T::Buffer<f32, 16, N>, or T::Buffer<f32, ()> for one element"));
        }
        let (args, ndim) = self.dims_or_rank(&rest, span)?;
        keywords.extend(ndim);
        Ok((args.into_iter().collect(), keywords))
    }

    fn shape(&mut self, args: &[&syn::GenericArgument], span: Span) -> Parsed<(Vec<Expr>, Vec<Keyword>)> {
        if let [syn::GenericArgument::AssocConst(a)] = args {
            let ident = self.ident(&a.ident);
            let value = self.expr(&a.value)?;
            return Ok((Vec::new(), vec![Keyword { name: ident.name, span: ident.span, value }]));
        }
        let (args, ndim) = self.dims_or_rank(args, span)?;
        Ok((args.into_iter().collect(), ndim.into_iter().collect()))
    }

    /// The dimensions as a tuple; `_` for each gives their number.
    fn dims_or_rank(&mut self, args: &[&syn::GenericArgument], span: Span) -> Parsed<(Option<Expr>, Option<Keyword>)> {
        if args.is_empty() {
            return Ok((None, None));
        }
        if let [syn::GenericArgument::Type(syn::Type::Tuple(t))] = args {
            if t.elems.is_empty() {
                return Ok((Some(self.node(ExprKind::Tuple(Vec::new()), span)?), None));
            }
        }
        let unknown = args.iter().filter(|a| is_infer(a)).count();
        if unknown == args.len() {
            let n = i128::try_from(unknown).unwrap_or(0);
            let value = Expr::new(ExprKind::Int(n), span);
            return Ok((None, Some(Keyword { name: "ndim".into(), span, value })));
        }
        if let Some(a) = args.iter().find(|a| is_infer(a)) {
            return Err(self.error(a, "some dimensions are `_` and others are not").help("give this one a name, as N"));
        }
        let dims = args.iter().map(|a| self.dim(a)).collect::<Parsed<Vec<_>>>()?;
        Ok((Some(self.node(ExprKind::Tuple(dims), span)?), None))
    }

    /// A dimension.
    fn dim(&mut self, a: &syn::GenericArgument) -> Parsed<Expr> {
        match a {
            syn::GenericArgument::Type(syn::Type::Path(p)) if p.qself.is_none() && p.path.get_ident().is_some() => {
                let Some(ident) = p.path.get_ident() else { return Err(self.error(a, "expected a dimension")) };
                let ident = self
                    .bindable(ident)
                    .map_err(|d| Diag { message: format!("{}: a dimension is wanted here", d.message), ..d })?;
                let kind = match self.dims {
                    Dims::Cast => ExprKind::Str(ident.name.clone()),
                    _ => ExprKind::Name(ident.name.clone()),
                };
                let e = Expr::new(kind, ident.span);
                self.note_symbols(&e);
                Ok(e)
            }
            syn::GenericArgument::Const(e) => {
                let e = match e {
                    syn::Expr::Block(b) => match b.block.stmts.as_slice() {
                        [syn::Stmt::Expr(e, None)] => e,
                        _ => return Err(self.error(b, "expected an expression between the braces")),
                    },
                    other => other,
                };
                let out = self.expr(e)?;
                if matches!(out.kind, ExprKind::Str(_) | ExprKind::Float(_) | ExprKind::Bool(_)) {
                    return Err(Diag::error(out.span, "a dimension must be an integer").help("write 4, N or { N + 1 }"));
                }
                self.note_symbols(&out);
                Ok(out)
            }
            other => Err(self.error(other, "expected a dimension").help("write 4, N or { N + 1 }")),
        }
    }

    /// In a signature, the names of a dimension are the function's own.
    fn note_symbols(&mut self, e: &Expr) {
        if self.dims != Dims::Signature {
            return;
        }
        match &e.kind {
            ExprKind::Name(n) if !self.symbols.iter().any(|s| s.name == *n) => {
                self.symbols.push(Ident { name: n.clone(), span: e.span });
            }
            ExprKind::Unary(_, a) => self.note_symbols(a),
            ExprKind::Binary(_, a, b) => {
                self.note_symbols(a);
                self.note_symbols(b);
            }
            ExprKind::Call { args, .. } => args.iter().for_each(|a| self.note_symbols(a)),
            _ => {}
        }
    }
}

fn is_infer(a: &syn::GenericArgument) -> bool {
    matches!(a, syn::GenericArgument::Type(syn::Type::Infer(_)))
}

/// The name of a plain name.
fn name_of(a: &syn::GenericArgument) -> Option<String> {
    match a {
        syn::GenericArgument::Type(syn::Type::Path(p)) if p.qself.is_none() => {
            Some(p.path.get_ident()?.unraw().to_string())
        }
        _ => None,
    }
}
