//! The first difference of two functions or modules that are not structurally equal.
//!
//! Variables and buffers are equal when they are bound at the same place of both sides. Names of variables, buffers and
//! blocks, and spans, never count.

mod relax;
mod tir;

use crate::attrs::{AttrValue, Attrs};
use crate::module::{Func, IRModule};
use crate::prim::{Buffer, PrimExpr, PrimKind, Range, Var};
use crate::relax as rx;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Where and how two things differ first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The way from the top, as `main.body.block 0.lv1`.
    pub path: String,
    /// What the left side has there.
    pub left: String,
    /// What the right side has there.
    pub right: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at {}:\n  left:  {}\n  right: {}", self.path, self.left, self.right)
    }
}

/// How variables that neither side binds are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreeVars {
    /// Only a variable itself is equal to it.
    Same,
    /// The first meeting of two free variables pairs them.
    Map,
}

/// Compares two modules: their functions by name, and attributes.
pub fn modules(a: &IRModule, b: &IRModule) -> Result<(), Difference> {
    let mut cx = Cx::new(FreeVars::Map);
    let names = |m: &IRModule| m.funcs.keys().map(|n| n.to_string()).collect::<Vec<_>>();
    cx.same("functions", &names(a), &names(b))?;
    cx.at("attributes", |cx| cx.attrs(&a.attrs, &b.attrs))?;
    for ((name, x), (_, y)) in a.funcs.iter().zip(&b.funcs) {
        let mut cx = Cx::new(FreeVars::Map);
        cx.at(name.as_str(), |cx| cx.func(x, y))?;
    }
    Ok(())
}

/// Compares two functions.
pub fn funcs(a: &Func, b: &Func, free: FreeVars) -> Result<(), Difference> {
    Cx::new(free).func(a, b)
}

/// Compares two scalar expressions.
pub fn prims(a: &PrimExpr, b: &PrimExpr, free: FreeVars) -> Result<(), Difference> {
    Cx::new(free).prim(a, b)
}

/// Compares struct infos.
pub fn infos(a: &rx::StructInfo, b: &rx::StructInfo, free: FreeVars) -> Result<(), Difference> {
    Cx::new(free).info(a, b)
}

type Compared = Result<(), Difference>;

struct Cx {
    path: Vec<String>,
    free: FreeVars,
    prims: BTreeMap<Var, Var>,
    prims_back: BTreeMap<Var, Var>,
    relaxes: BTreeMap<rx::Var, rx::Var>,
    relaxes_back: BTreeMap<rx::Var, rx::Var>,
    buffers: Vec<(Buffer, Buffer)>,
}

impl Cx {
    fn new(free: FreeVars) -> Cx {
        Cx {
            path: Vec::new(),
            free,
            prims: BTreeMap::new(),
            prims_back: BTreeMap::new(),
            relaxes: BTreeMap::new(),
            relaxes_back: BTreeMap::new(),
            buffers: Vec::new(),
        }
    }

    fn at(&mut self, step: impl AsRef<str>, f: impl FnOnce(&mut Self) -> Compared) -> Compared {
        self.path.push(step.as_ref().to_string());
        let r = f(self);
        self.path.pop();
        r
    }

    fn differ(&self, left: impl Into<String>, right: impl Into<String>) -> Compared {
        let path = if self.path.is_empty() { "the top".into() } else { self.path.join(".") };
        Err(Difference { path, left: left.into(), right: right.into() })
    }

    fn same<T: PartialEq + Debug>(&mut self, step: &str, a: &T, b: &T) -> Compared {
        if a == b { Ok(()) } else { self.at(step, |cx| cx.differ(format!("{a:?}"), format!("{b:?}"))) }
    }

    /// Compares lists item by item.
    fn each<T>(&mut self, step: &str, a: &[T], b: &[T], mut f: impl FnMut(&mut Self, &T, &T) -> Compared) -> Compared {
        if a.len() != b.len() {
            return self.at(step, |cx| cx.differ(format!("{} of them", a.len()), format!("{} of them", b.len())));
        }
        for (i, (x, y)) in a.iter().zip(b).enumerate() {
            self.at(format!("{step} {i}"), |cx| f(cx, x, y))?;
        }
        Ok(())
    }

    /// Pairs two variables that are bound at the same place.
    fn bind(&mut self, a: &Var, b: &Var) -> Compared {
        self.same("dtype", &a.dtype(), &b.dtype())?;
        self.prims.insert(a.clone(), b.clone());
        self.prims_back.insert(b.clone(), a.clone());
        Ok(())
    }

    fn var(&mut self, a: &Var, b: &Var) -> Compared {
        match (self.prims.get(a), self.prims_back.get(b)) {
            (Some(x), Some(y)) if x == b && y == a => Ok(()),
            (None, None) if a == b || self.free == FreeVars::Map => self.bind(a, b),
            _ => self.differ(format!("variable {a:?}"), format!("variable {b:?}")),
        }
    }

    fn buffer(&mut self, a: &Buffer, b: &Buffer) -> Compared {
        let known = self.buffers.iter().find(|(x, y)| x == a || y == b);
        match known {
            Some((x, y)) if x == a && y == b => Ok(()),
            Some(_) => self.differ(format!("buffer {a:?}"), format!("buffer {b:?}")),
            None if a == b || self.free == FreeVars::Map => self.bind_buffer(a, b),
            None => self.differ(format!("buffer {a:?}"), format!("buffer {b:?}")),
        }
    }

    /// Pairs two buffers that are bound at the same place.
    fn bind_buffer(&mut self, a: &Buffer, b: &Buffer) -> Compared {
        self.at(format!("buffer {}", a.name), |cx| {
            cx.same("dtype", &a.dtype, &b.dtype)?;
            cx.same("scope", &a.scope, &b.scope)?;
            cx.each("dimension", &a.shape, &b.shape, Cx::prim)?;
            cx.each("stride", &a.strides, &b.strides, Cx::prim)?;
            match (&a.elem_offset, &b.elem_offset) {
                (Some(x), Some(y)) => cx.at("elem_offset", |cx| cx.prim(x, y)),
                (None, None) => Ok(()),
                (x, y) => cx.differ(format!("elem_offset {x:?}"), format!("elem_offset {y:?}")),
            }
        })?;
        self.buffers.push((a.clone(), b.clone()));
        Ok(())
    }

    fn prim(&mut self, a: &PrimExpr, b: &PrimExpr) -> Compared {
        use PrimKind as K;
        if a.dtype() != b.dtype() {
            return self.differ(format!("{a:?} of {}", a.dtype()), format!("{b:?} of {}", b.dtype()));
        }
        let same_head = match (a.kind(), b.kind()) {
            (K::Var(x), K::Var(y)) => return self.var(x, y),
            (K::Load(x, i), K::Load(y, j)) => {
                self.buffer(x, y)?;
                return self.each("index", i, j, Cx::prim);
            }
            (K::Let(x, v, body), K::Let(y, w, other)) => {
                self.prim(v, w)?;
                self.bind(x, y)?;
                return self.prim(body, other);
            }
            (K::Int(x), K::Int(y)) => x == y,
            (K::Float(x), K::Float(y)) => x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()),
            (K::Str(x), K::Str(y)) => x == y,
            (K::Binary(o, ..), K::Binary(p, ..)) => o == p,
            (K::Cmp(o, ..), K::Cmp(p, ..)) => o == p,
            (K::Call(f, _), K::Call(g, _)) => f == g,
            (K::CallExtern(f, _), K::CallExtern(g, _)) => f == g,
            (x, y) => std::mem::discriminant(x) == std::mem::discriminant(y),
        };
        let (x, y) = (a.children(), b.children());
        if !same_head || x.len() != y.len() {
            return self.differ(format!("{a:?}"), format!("{b:?}"));
        }
        x.into_iter().zip(y).try_for_each(|(x, y)| self.prim(x, y))
    }

    fn range(&mut self, a: &Range, b: &Range) -> Compared {
        self.prim(&a.min, &b.min)?;
        self.prim(&a.extent, &b.extent)
    }

    fn attrs(&mut self, a: &Attrs, b: &Attrs) -> Compared {
        let keys = |m: &Attrs| m.keys().map(|k| k.to_string()).collect::<Vec<_>>();
        self.same("keys", &keys(a), &keys(b))?;
        a.iter().zip(b).try_for_each(|((k, x), (_, y))| self.at(format!("\"{k}\""), |cx| cx.attr(x, y)))
    }

    fn attr(&mut self, a: &AttrValue, b: &AttrValue) -> Compared {
        match (a, b) {
            (AttrValue::Prim(x), AttrValue::Prim(y)) => self.prim(x, y),
            (AttrValue::List(x), AttrValue::List(y)) => self.each("item", x, y, Cx::attr),
            (AttrValue::Map(x), AttrValue::Map(y)) => self.attrs(x, y),
            (AttrValue::Float(x), AttrValue::Float(y)) if x.to_bits() == y.to_bits() => Ok(()),
            _ if a == b => Ok(()),
            _ => self.differ(format!("{a:?}"), format!("{b:?}")),
        }
    }

    fn func(&mut self, a: &Func, b: &Func) -> Compared {
        match (a, b) {
            (Func::Relax(x), Func::Relax(y)) => self.function(x, y),
            (Func::Prim(x), Func::Prim(y)) => self.prim_func(x, y),
            (Func::Extern(x), Func::Extern(y)) => self.same("symbol", x, y),
            (x, y) => self.differ(kind(x), kind(y)),
        }
    }
}

fn kind(f: &Func) -> &'static str {
    match f {
        Func::Relax(_) => "a Relax function",
        Func::Prim(_) => "a PrimFunc",
        Func::Extern(_) => "an external function",
    }
}

#[cfg(test)]
mod tests;
