//! Modules and their items.

use super::{Parsed, Reader, call, dotted};
use crate::diag::Diag;
use crate::name::Name;
use crate::syntax::ast::{ClassDef, Expr, ExprKind, Ident, Stmt, StmtKind};
use syn::ext::IdentExt;

/// What the module is called inside of it; no item or variable can have this name.
pub(super) const MODULE: &str = "self";

impl Reader<'_> {
    /// The class of a module.
    pub(super) fn module(&mut self, item: &syn::ItemMod) -> Stmt {
        let span = self.span(&item.ident);
        let mut body = Vec::new();
        for a in &item.attrs {
            let done = self.module_attribute(a);
            body.extend(self.keep(done).flatten());
        }
        let items: &[syn::Item] = match &item.content {
            Some((_, items)) => items,
            None => {
                let d = Diag::error(span, "the module has no content").help("write its functions between braces");
                self.diags.push(d);
                &[]
            }
        };
        for i in items {
            match i {
                syn::Item::Fn(f) => self.functions.insert(Name::from(f.sig.ident.unraw().to_string())),
                syn::Item::Static(s) => self.functions.insert(Name::from(s.ident.unraw().to_string())),
                _ => false,
            };
        }
        for i in items {
            let done = self.item(i);
            body.extend(self.keep(done).or_else(|| self.broken_item(i)));
        }
        let class = ClassDef { decorators: Vec::new(), ident: Ident { name: MODULE.into(), span }, body };
        Stmt { kind: StmtKind::Class(class), span }
    }

    /// The value of a result; its error is recorded.
    pub(super) fn keep<T>(&mut self, r: Parsed<T>) -> Option<T> {
        r.map_err(|d| self.diags.push(d)).ok()
    }

    /// `#[I::module_attrs(key = value)]`; attributes of Rust itself are left to it.
    fn module_attribute(&mut self, a: &syn::Attribute) -> Parsed<Option<Stmt>> {
        let path = super::function::attribute_path(a);
        match path.as_str() {
            "I.module_attrs" => {
                let span = self.span(a.path());
                let dict = self.attribute_dict(a)?;
                Ok(Some(Stmt { kind: StmtKind::Expr(call("I.module_attrs", vec![dict], span)), span }))
            }
            "doc" | "cfg" | "cfg_attr" | "allow" | "expect" | "warn" | "deny" | "rustfmt.skip" => Ok(None),
            _ => {
                let d = self.error(a.path(), format!("unknown attribute `{}` of a module", path.replace('.', "::")));
                Err(d.help("write #[I::module_attrs(key = value)]"))
            }
        }
    }

    /// What stands for a function that could not be read.
    fn broken_item(&mut self, item: &syn::Item) -> Option<Stmt> {
        let ident = match item {
            syn::Item::Fn(f) => &f.sig.ident,
            syn::Item::Static(s) => &s.ident,
            _ => return None,
        };
        let ident = self.ident(ident);
        Some(Self::broken(Expr::new(ExprKind::Name(ident.name), ident.span), ident.span))
    }

    /// `target = …`, where what stands on the right could not be read.
    pub(super) fn broken(target: Expr, span: crate::span::Span) -> Stmt {
        let value = Some(Expr::new(ExprKind::Broken, span));
        Stmt { kind: StmtKind::Assign { target, annotation: None, value }, span }
    }

    fn item(&mut self, item: &syn::Item) -> Parsed<Stmt> {
        match item {
            syn::Item::Fn(f) => self.function(f),
            syn::Item::Static(s) => self.external(s),
            syn::Item::Mod(m) => Err(self
                .error(&m.ident, "a module inside a module")
                .help("put its functions into this module, or write a second `ir_module!`")),
            syn::Item::Use(u) => Err(self
                .error(&u.use_token, "`use` inside an IR module")
                .help("remove it: `R`, `T`, `I` and the module's functions are always in scope")),
            syn::Item::Const(c) => Err(self
                .error(&c.const_token, "a constant of the module")
                .help("write R::constant(…, f32) where it is used")),
            other => {
                Err(self.error(other, "expected a function").help("write #[R::function] or #[T::prim_func] and `fn`"))
            }
        }
    }

    /// `static name: R::ExternFunc = "symbol";`
    fn external(&mut self, s: &syn::ItemStatic) -> Parsed<Stmt> {
        let ident = self.ident(&s.ident);
        let is_extern = matches!(&*s.ty, syn::Type::Path(p) if super::expr::path_text(&p.path) == "R.ExternFunc");
        if !is_extern {
            return Err(self
                .error(&s.ty, "expected R::ExternFunc")
                .help("write `static name: R::ExternFunc = \"symbol\";`"));
        }
        let symbol = self.expr(&s.expr)?;
        if symbol.str().is_none() {
            return Err(Diag::error(symbol.span, "expected the symbol of the function, as a string"));
        }
        let value = call("R.ExternFunc", vec![symbol], ident.span);
        let target = Expr::new(ExprKind::Name(ident.name), ident.span);
        Ok(Stmt { kind: StmtKind::Assign { target, annotation: None, value: Some(value) }, span: ident.span })
    }

    /// `name` as a function of the module.
    pub(super) fn member(name: &Name, span: crate::span::Span) -> Expr {
        super::attr(dotted(MODULE, span), name, span)
    }
}
