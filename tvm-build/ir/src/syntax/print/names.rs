//! Names of variables while printing: unique in their frame, released with it, as upstream's docsifier.

use crate::name::Name;
use crate::prim::{self, Buffer};
use crate::relax;
use std::collections::{BTreeMap, BTreeSet};

/// Words that a variable is never printed as.
const RESERVED: &[&str] = &["T", "R", "I", "cls", "Module", "metadata", "range"];

#[derive(Default)]
struct Frame {
    names: Vec<Name>,
    prims: Vec<prim::Var>,
    relaxes: Vec<relax::Var>,
    buffers: usize,
}

/// The names given so far.
#[derive(Default)]
pub(super) struct Names {
    taken: BTreeSet<Name>,
    /// For a hint the last number given, while no name is released.
    last: BTreeMap<String, u64>,
    frames: Vec<Frame>,
    prims: BTreeMap<prim::Var, Name>,
    relaxes: BTreeMap<relax::Var, Name>,
    buffers: Vec<(Buffer, Name)>,
}

impl Names {
    pub(super) fn push(&mut self) {
        self.frames.push(Frame::default());
    }

    pub(super) fn pop(&mut self) {
        let Some(f) = self.frames.pop() else { return };
        if !f.names.is_empty() {
            self.last.clear();
        }
        f.names.iter().for_each(|n| {
            self.taken.remove(n);
        });
        f.prims.iter().for_each(|v| {
            self.prims.remove(v);
        });
        f.relaxes.iter().for_each(|v| {
            self.relaxes.remove(v);
        });
        self.buffers.truncate(self.buffers.len() - f.buffers);
    }

    /// Frames open now.
    pub(super) fn depth(&self) -> usize {
        self.frames.len()
    }

    fn frame(&mut self, at: usize) -> &mut Frame {
        while self.frames.len() <= at {
            self.frames.push(Frame::default());
        }
        &mut self.frames[at]
    }

    fn top(&self) -> usize {
        self.frames.len().saturating_sub(1)
    }

    /// A name that is not taken: `hint`, `hint_1`, `hint_2`, …
    pub(super) fn unique(&mut self, hint: &str, frame: usize) -> Name {
        let mut base: String = hint.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if base.is_empty() {
            base.push('v');
        } else if base.starts_with(|c: char| !(c.is_alphabetic() || c == '_')) {
            base.insert(0, '_');
        }
        let mut name = Name::from(base.as_str());
        let mut i = 0u64;
        if let Some(last) = self.last.get(&base) {
            i = last + 1;
            name = Name::from(format!("{base}_{i}"));
        }
        while self.taken.contains(&name)
            || RESERVED.contains(&name.as_str())
            || super::super::grammar::is_keyword(&name)
        {
            i += 1;
            name = Name::from(format!("{base}_{i}"));
        }
        if i > 0 {
            self.last.insert(base, i);
        }
        self.taken.insert(name.clone());
        self.frame(frame).names.push(name.clone());
        name
    }

    pub(super) fn prim(&self, v: &prim::Var) -> Option<&Name> {
        self.prims.get(v)
    }

    pub(super) fn relax(&self, v: &relax::Var) -> Option<&Name> {
        self.relaxes.get(v)
    }

    pub(super) fn buffer(&self, b: &Buffer) -> Option<&Name> {
        self.buffers.iter().rev().find(|(x, _)| x == b).map(|(_, n)| n)
    }

    /// Names a scalar variable in a frame.
    pub(super) fn define_prim_in(&mut self, v: &prim::Var, frame: usize) -> Name {
        let name = self.unique(v.name(), frame);
        self.frame(frame).prims.push(v.clone());
        self.prims.insert(v.clone(), name.clone());
        name
    }

    /// Names a scalar variable in the innermost frame.
    pub(super) fn define_prim(&mut self, v: &prim::Var) -> Name {
        self.define_prim_in(v, self.top())
    }

    pub(super) fn define_relax(&mut self, v: &relax::Var) -> Name {
        let top = self.top();
        let name = self.unique(v.name(), top);
        self.frame(top).relaxes.push(v.clone());
        self.relaxes.insert(v.clone(), name.clone());
        name
    }

    /// Prints a variable by the name another one has.
    pub(super) fn alias_relax(&mut self, v: &relax::Var, name: &Name) {
        let top = self.top();
        self.frame(top).relaxes.push(v.clone());
        self.relaxes.insert(v.clone(), name.clone());
    }

    pub(super) fn define_buffer(&mut self, b: &Buffer) -> Name {
        let top = self.top();
        let name = self.unique(&b.name, top);
        self.frame(top).buffers += 1;
        self.buffers.push((b.clone(), name.clone()));
        name
    }
}
