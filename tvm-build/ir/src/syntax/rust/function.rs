//! Functions: attributes and signatures.

use super::{Dims, Parsed, Reader, call, dotted};
use crate::diag::Diag;
use crate::syntax::ast::{Expr, ExprKind, FuncDef, Ident, Keyword, Param, Stmt, StmtKind};
use crate::syntax::scope::suggest;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;

/// The path of an attribute, with dots.
pub(super) fn attribute_path(a: &syn::Attribute) -> String {
    super::expr::path_text(a.path())
}

const ATTRIBUTES: &[&str] = &["R::function", "R::func_attr", "T::prim_func", "T::func_attr", "T::check_bounds"];

impl Reader<'_> {
    pub(super) fn function(&mut self, f: &syn::ItemFn) -> Parsed<Stmt> {
        let ident = self.ident(&f.sig.ident);
        let outer = (self.relax, self.locals.clone(), std::mem::take(&mut self.symbols));
        let def = self.function_def(f, ident.clone());
        (self.relax, self.locals, self.symbols) = outer;
        Ok(Stmt { kind: StmtKind::Def(def?), span: ident.span })
    }

    fn function_def(&mut self, f: &syn::ItemFn, ident: Ident) -> Parsed<FuncDef> {
        let (mut decorators, mut body) = (Vec::new(), Vec::new());
        let mut attributes: Vec<&syn::Attribute> = f.attrs.iter().collect();
        // The kind of function first: it decides how the rest is read.
        attributes.sort_by_key(|a| !matches!(attribute_path(a).as_str(), "R.function" | "T.prim_func"));
        for a in attributes {
            let path = attribute_path(a);
            match path.as_str() {
                "R.function" | "T.prim_func" => {
                    if !decorators.is_empty() {
                        return Err(self.error(a.path(), "the kind of the function is given twice"));
                    }
                    self.relax = path == "R.function";
                    let private = !matches!(f.vis, syn::Visibility::Public(_));
                    decorators.push(self.decorator(a, &path, private)?);
                }
                "R.func_attr" | "T.func_attr" => {
                    let span = self.span(a.path());
                    let dict = self.attribute_dict(a)?;
                    body.push(Stmt { kind: StmtKind::Expr(call(&path, vec![dict], span)), span });
                }
                "T.check_bounds" => {
                    let span = self.span(a.path());
                    if !matches!(a.meta, syn::Meta::Path(_)) {
                        let d = Diag::error(span, "T.check_bounds takes nothing");
                        return Err(d.help("write #[T::check_bounds] above the function"));
                    }
                    let key = Expr::new(ExprKind::Str(crate::tir::verify::CHECK_BOUNDS.into()), span);
                    let dict = Expr::new(ExprKind::Dict(vec![(key, Expr::new(ExprKind::Bool(true), span))]), span);
                    body.push(Stmt { kind: StmtKind::Expr(call("T.func_attr", vec![dict], span)), span });
                }
                "doc" | "allow" | "expect" | "rustfmt.skip" => {}
                _ => {
                    let shown = path.replace('.', "::");
                    let d = self.error(a.path(), format!("unknown attribute `{shown}` of a function"));
                    return Err(suggest(d, &shown, ATTRIBUTES.iter().copied()));
                }
            }
        }
        if decorators.is_empty() {
            let d = format!("`{}` is neither #[R::function] nor #[T::prim_func]", ident.name);
            return Err(Diag::error(ident.span, d).help("write one of them above the function"));
        }
        self.dims = Dims::Signature;
        let signature = self.signature(&f.sig);
        self.dims = Dims::Body;
        let (params, ret) = signature?;
        let type_params = std::mem::take(&mut self.symbols);
        self.locals.extend(type_params.iter().chain(params.iter().map(|p| &p.ident)).map(|i| i.name.clone()));
        if self.relax {
            self.relax_body(&f.block, &mut body);
        } else {
            self.block_into(&f.block.stmts, &mut body);
        }
        Ok(FuncDef { decorators, ident, type_params, params, ret, body })
    }

    /// `@R.function(pure=False, private=True)`
    fn decorator(&mut self, a: &syn::Attribute, path: &str, private: bool) -> Parsed<Expr> {
        let span = self.span(a.path());
        let mut keywords = Vec::new();
        if let syn::Meta::List(_) = &a.meta {
            for e in &self.attribute_args(a)? {
                let k = self.keyword(e)?;
                if k.name == "private" {
                    return Err(Diag::error(k.span, "`private` is said by the absence of `pub`"));
                }
                keywords.push(k);
            }
        }
        if private {
            keywords.push(Keyword { name: "private".into(), span, value: Expr::new(ExprKind::Bool(true), span) });
        }
        self.node(ExprKind::Call { func: Box::new(dotted(path, span)), args: Vec::new(), keywords }, span)
    }

    fn attribute_args(&mut self, a: &syn::Attribute) -> Parsed<Vec<syn::Expr>> {
        let args = a.parse_args_with(Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated);
        args.map(|p| p.into_iter().collect()).map_err(|e| {
            let span = self.spans.add(e.to_compile_error().into_iter().take(1).collect());
            Diag::error(span, format!("{e}, in an attribute")).help("write key = value, …")
        })
    }

    /// `#[X(key = value, "other.key" = value)]`
    pub(super) fn attribute_dict(&mut self, a: &syn::Attribute) -> Parsed<Expr> {
        let span = self.span(a.path());
        let args = match &a.meta {
            syn::Meta::List(_) => self.attribute_args(a)?,
            _ => {
                return Err(
                    Diag::error(span, "the attribute holds nothing").help("write key = value between parentheses")
                );
            }
        };
        self.dict(&args.iter().collect::<Vec<_>>(), span)
    }

    fn signature(&mut self, sig: &syn::Signature) -> Parsed<(Vec<Param>, Option<Expr>)> {
        if let Some(t) = &sig.asyncness {
            return Err(self.error(t, "an IR function cannot be `async`").help("remove `async`"));
        }
        if let Some(t) = &sig.unsafety {
            return Err(self.error(t, "an IR function cannot be `unsafe`").help("remove `unsafe`"));
        }
        if let Some(t) = &sig.constness {
            return Err(self.error(t, "an IR function cannot be `const`").help("remove `const`"));
        }
        if let Some(t) = &sig.abi {
            return Err(self
                .error(t, "an IR function has no ABI")
                .help("an external function is `static name: R::ExternFunc = \"symbol\";`"));
        }
        for p in &sig.generics.params {
            match p {
                syn::GenericParam::Type(t) => {
                    let ident = self.ident(&t.ident);
                    self.symbols.push(ident);
                }
                syn::GenericParam::Const(c) => {
                    let ident = self.ident(&c.ident);
                    self.symbols.push(ident);
                }
                syn::GenericParam::Lifetime(l) => {
                    return Err(self.error(l, "an IR function has no lifetimes").help("remove it"));
                }
            }
        }
        let mut params: Vec<Param> = Vec::new();
        for input in &sig.inputs {
            let done = self.param(input);
            let done = self.keep(done);
            params.extend(done.or_else(|| self.broken_param(input)));
        }
        let ret = match &sig.output {
            syn::ReturnType::Default => None,
            syn::ReturnType::Type(_, t) => {
                let done = self.ty(t);
                let span = self.span(t);
                Some(self.keep(done).unwrap_or_else(|| Expr::new(ExprKind::Broken, span)))
            }
        };
        Ok((params, ret))
    }

    /// What stands for a parameter that could not be read.
    fn broken_param(&mut self, input: &syn::FnArg) -> Option<Param> {
        let syn::FnArg::Typed(p) = input else { return None };
        let syn::Pat::Ident(i) = &*p.pat else { return None };
        let ident = self.ident(&i.ident);
        Some(Param { annotation: Some(Expr::new(ExprKind::Broken, ident.span)), ident })
    }

    fn param(&mut self, input: &syn::FnArg) -> Parsed<Param> {
        let syn::FnArg::Typed(p) = input else {
            return Err(self.error(input, "an IR function has no `self`").help("remove it"));
        };
        let syn::Pat::Ident(i) = &*p.pat else {
            return Err(self.error(&p.pat, "a parameter must be a name").help("bind the parts in the body, as x.0"));
        };
        if let Some(m) = &i.mutability {
            return Err(self.error(m, "`mut` says nothing here").help("remove it: variables are never assigned twice"));
        }
        if let Some(r) = &i.by_ref {
            return Err(self.error(r, "`ref` says nothing here").help("remove it"));
        }
        let ident = self.bindable(&i.ident)?;
        let annotation = self.ty(&p.ty)?;
        Ok(Param { ident, annotation: Some(annotation) })
    }

    /// A name that something can be bound to.
    pub(super) fn bindable(&mut self, ident: &syn::Ident) -> Parsed<Ident> {
        let word = ident.unraw().to_string();
        if crate::syntax::rust_words::scalar_type(&word).is_some() || matches!(word.as_str(), "R" | "T" | "I") {
            return Err(self
                .error(ident, format!("`{word}` cannot name a variable"))
                .help("it has a meaning of its own: choose another name"));
        }
        Ok(self.ident(ident))
    }
}
