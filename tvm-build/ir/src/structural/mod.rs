//! Structural equality (TVM's `StructuralEqual`): the same up to the names of variables, buffers and blocks and up to
//! source locations.
//!
//! A function is flattened into a [`Key`] in which every bound variable is the number of its definition. Keys are
//! compared and hashed like any value, so that a map from keys finds equal functions.

pub mod diff;
mod relax;
mod tir;

use crate::attrs::{AttrValue, Attrs};
use crate::constant::Constant;
use crate::module::{Func, IRModule};
use crate::name::Name;
use crate::prim::{self, Buffer, PrimExpr, PrimKind};
use crate::relax as rx;
use crate::tir::PrimFunc;
use std::collections::BTreeMap;

/// What a function is up to names: compare keys to compare functions.
#[derive(Clone, PartialEq, Debug)]
pub struct Key(Vec<Token>);

#[derive(Clone, PartialEq, Debug)]
enum Token {
    /// Kinds, lengths, numbers of variables and literals.
    Int(i64),
    Text(Name),
    FreeVar(prim::Var),
    FreeRelaxVar(rx::Var),
    FreeBuffer(Buffer),
    Constant(Constant),
}

impl Key {
    /// The key of a PrimFunc. Attributes count, `global_symbol` included.
    pub fn prim_func(f: &PrimFunc) -> Key {
        let mut e = Encoder::default();
        e.prim_func(f);
        Key(e.tokens)
    }

    /// The key of a Relax function.
    pub fn function(f: &rx::Function) -> Key {
        let mut e = Encoder::default();
        e.function(f);
        Key(e.tokens)
    }

    /// The key of a function of any level.
    pub fn func(f: &Func) -> Key {
        match f {
            Func::Relax(f) => Key::function(f),
            Func::Prim(f) => Key::prim_func(f),
            Func::Extern(symbol) => Key(vec![Token::Int(-1), Token::Text(symbol.clone())]),
        }
    }

    /// The key of the right side of a binding; its variables are free, so that equal keys mean equal values.
    pub fn expr(e: &rx::Expr) -> Key {
        let mut enc = Encoder::default();
        enc.relax_expr(e);
        Key(enc.tokens)
    }

    /// A number that equal keys share.
    pub fn hash(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut h = DefaultHasher::new();
        for t in &self.0 {
            match t {
                Token::Int(v) => v.hash(&mut h),
                Token::Text(v) => v.hash(&mut h),
                Token::FreeVar(v) => v.hash(&mut h),
                Token::FreeRelaxVar(v) => v.name().hash(&mut h),
                Token::FreeBuffer(b) => b.hash(&mut h),
                Token::Constant(c) => (c.dtype(), c.shape()).hash(&mut h),
            }
        }
        h.finish()
    }
}

/// Functions by key; finds the function that is structurally equal to another.
#[derive(Default)]
pub struct KeyMap<V> {
    buckets: BTreeMap<u64, Vec<(Key, V)>>,
}

impl<V> KeyMap<V> {
    /// An empty map.
    pub fn new() -> KeyMap<V> {
        KeyMap { buckets: BTreeMap::new() }
    }

    /// The value of a key.
    pub fn get(&self, key: &Key) -> Option<&V> {
        self.buckets.get(&key.hash())?.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Adds a key, or keeps the value that an equal key has.
    pub fn insert_if_new(&mut self, key: Key, value: V) -> bool {
        let bucket = self.buckets.entry(key.hash()).or_default();
        if bucket.iter().any(|(k, _)| *k == key) {
            return false;
        }
        bucket.push((key, value));
        true
    }
}

/// Whether two functions are structurally equal.
pub fn func_equal(a: &Func, b: &Func) -> bool {
    Key::func(a) == Key::func(b)
}

/// Whether two modules have the same names and structurally equal functions; the error names the first function that
/// differs or is missing.
pub fn module_equal(a: &IRModule, b: &IRModule) -> Result<(), String> {
    for name in a.funcs.keys().chain(b.funcs.keys()) {
        match (a.get(name), b.get(name)) {
            (Some(x), Some(y)) if func_equal(x, y) => {}
            (Some(_), Some(_)) => return Err(format!("function {name} differs")),
            (Some(_), None) => return Err(format!("function {name} is only in the first module")),
            _ => return Err(format!("function {name} is only in the second module")),
        }
    }
    Ok(())
}

#[derive(Default)]
struct Encoder {
    tokens: Vec<Token>,
    vars: BTreeMap<prim::Var, i64>,
    relax_vars: BTreeMap<rx::Var, i64>,
    buffers: Vec<Buffer>,
    next: i64,
    /// Whether an unknown variable is defined where it is met first (in parameters and `match_cast`).
    defining: bool,
}

fn len(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl Encoder {
    fn int(&mut self, v: i64) {
        self.tokens.push(Token::Int(v));
    }

    fn text(&mut self, s: &str) {
        self.tokens.push(Token::Text(s.into()));
    }

    fn number(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    fn dtype(&mut self, d: crate::dtype::DType) {
        self.int(d.code as i64);
        self.int(i64::from(d.bits));
        self.int(i64::from(d.lanes));
    }

    /// With unknown variables defined where they are met.
    fn defining(&mut self, f: impl FnOnce(&mut Encoder)) {
        let before = std::mem::replace(&mut self.defining, true);
        f(self);
        self.defining = before;
    }

    fn define_var(&mut self, v: &prim::Var) {
        let n = self.number();
        self.vars.insert(v.clone(), n);
        self.dtype(v.dtype());
    }

    fn var(&mut self, v: &prim::Var) {
        match self.vars.get(v) {
            Some(n) => self.int(*n),
            None if self.defining => self.define_var(v),
            None => self.tokens.push(Token::FreeVar(v.clone())),
        }
    }

    fn define_buffer(&mut self, b: &Buffer) {
        self.buffers.push(b.clone());
        self.dtype(b.dtype);
        self.text(b.scope.as_str());
        self.prims(&b.shape);
        self.prims(&b.strides);
        self.prims(b.elem_offset.as_slice());
    }

    fn buffer(&mut self, b: &Buffer) {
        match self.buffers.iter().rposition(|x| x == b) {
            Some(i) => self.int(len(i)),
            None => self.tokens.push(Token::FreeBuffer(b.clone())),
        }
    }

    fn prims(&mut self, items: &[PrimExpr]) {
        self.int(len(items.len()));
        for e in items {
            self.prim(e);
        }
    }

    fn prim(&mut self, e: &PrimExpr) {
        use PrimKind as K;
        let kinds = match e.kind() {
            K::Var(_) => 0,
            K::Int(_) => 1,
            K::Float(_) => 2,
            K::Str(_) => 3,
            K::Binary(..) => 4,
            K::Cmp(..) => 5,
            K::And(..) => 6,
            K::Or(..) => 7,
            K::Not(_) => 8,
            K::Select(..) => 9,
            K::Cast(_) => 10,
            K::Load(..) => 11,
            K::Let(..) => 12,
            K::Ramp(..) => 13,
            K::Broadcast(_) => 14,
            K::Call(..) => 15,
            K::CallExtern(..) => 16,
        };
        self.int(kinds);
        self.dtype(e.dtype());
        match e.kind() {
            K::Var(v) => return self.var(v),
            K::Int(v) => return self.int(*v),
            K::Float(v) => return self.int(i64::from_ne_bytes(v.to_bits().to_ne_bytes())),
            K::Str(s) => return self.text(s),
            K::Let(v, value, body) => {
                self.prim(value);
                self.define_var(v);
                return self.prim(body);
            }
            K::Binary(op, ..) => self.int(*op as i64),
            K::Cmp(op, ..) => self.int(*op as i64),
            K::Load(b, _) => self.buffer(b),
            K::Call(f, _) => self.text(&format!("{f:?}")),
            K::CallExtern(f, _) => self.text(f),
            _ => {}
        }
        let children = e.children();
        self.int(len(children.len()));
        for c in children {
            self.prim(c);
        }
    }

    fn attrs(&mut self, attrs: &Attrs) {
        self.int(len(attrs.len()));
        for (k, v) in attrs {
            self.text(k);
            self.attr(v);
        }
    }

    fn attr(&mut self, v: &AttrValue) {
        match v {
            AttrValue::None => self.int(0),
            AttrValue::Bool(v) => self.tagged(1, i64::from(*v)),
            AttrValue::Int(v) => self.tagged(2, *v),
            AttrValue::Float(v) => self.tagged(3, i64::from_ne_bytes(v.to_bits().to_ne_bytes())),
            AttrValue::Str(s) => {
                self.int(4);
                self.text(s);
            }
            AttrValue::DType(d) => {
                self.int(5);
                self.dtype(*d);
            }
            AttrValue::List(items) => {
                self.tagged(6, len(items.len()));
                items.iter().for_each(|i| self.attr(i));
            }
            AttrValue::Prim(e) => {
                self.int(7);
                self.prim(e);
            }
            AttrValue::Map(m) => {
                self.int(8);
                self.attrs(m);
            }
        }
    }

    fn tagged(&mut self, tag: i64, value: i64) {
        self.int(tag);
        self.int(value);
    }
}
