//! The IRModule: functions by name.

use crate::attrs::Attrs;
use crate::name::{Name, NameSupply};
use crate::relax::{Function, GlobalVar};
use crate::tir::PrimFunc;
use std::collections::BTreeMap;

/// A function of a module.
#[derive(Clone, Debug)]
pub enum Func {
    /// Graph level.
    Relax(Function),
    /// Tensor level.
    Prim(PrimFunc),
    /// A C symbol (`R.ExternFunc`).
    Extern(Name),
}

/// Functions by name, sorted, and attributes.
#[derive(Clone, Debug, Default)]
pub struct IRModule {
    /// The functions.
    pub funcs: BTreeMap<Name, Func>,
    /// Attributes (`I.module_attrs`).
    pub attrs: Attrs,
}

impl IRModule {
    /// Without functions.
    pub fn new() -> IRModule {
        IRModule::default()
    }

    /// The names of all functions, sorted, as TVM's `get_global_vars` prints them.
    pub fn get_global_vars(&self) -> Vec<GlobalVar> {
        self.funcs.keys().map(|n| GlobalVar(n.clone())).collect()
    }

    /// The function of a name.
    pub fn get(&self, name: &str) -> Option<&Func> {
        self.funcs.get(name)
    }

    /// The Relax functions, sorted by name.
    pub fn relax_funcs(&self) -> impl Iterator<Item = (&Name, &Function)> {
        self.funcs.iter().filter_map(|(n, f)| match f {
            Func::Relax(f) => Some((n, f)),
            _ => None,
        })
    }

    /// The PrimFuncs, sorted by name.
    pub fn prim_funcs(&self) -> impl Iterator<Item = (&Name, &PrimFunc)> {
        self.funcs.iter().filter_map(|(n, f)| match f {
            Func::Prim(f) => Some((n, f)),
            _ => None,
        })
    }

    /// Adds a function under `hint`, or `hint1`, `hint2`, … when that is taken.
    pub fn add_fresh(&mut self, hint: &str, func: Func) -> GlobalVar {
        let mut names = NameSupply::new();
        for name in self.funcs.keys() {
            names.reserve(name.clone());
        }
        let name = names.fresh(hint);
        self.funcs.insert(name.clone(), func);
        GlobalVar(name)
    }
}

impl std::ops::Index<&str> for IRModule {
    type Output = Func;
    /// The function of a name, as `mod["main"]`.
    ///
    /// # Panics
    /// When the module has no such function; see [`IRModule::get`].
    fn index(&self, name: &str) -> &Func {
        &self.funcs[name]
    }
}

impl std::ops::Index<&GlobalVar> for IRModule {
    type Output = Func;
    /// The function of a global variable, as `mod[gv]`.
    ///
    /// # Panics
    /// When the module has no such function; see [`IRModule::get`].
    fn index(&self, gv: &GlobalVar) -> &Func {
        &self.funcs[&gv.0]
    }
}
