//! Names: cheap shared strings, and the supply of fresh ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A shared immutable string.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(s: &str) -> Name {
        Name(s.into())
    }
}

impl From<String> for Name {
    fn from(s: String) -> Name {
        Name(s.into())
    }
}

impl From<&Name> for Name {
    fn from(s: &Name) -> Name {
        s.clone()
    }
}

impl std::ops::Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Gives names that were not given before (TVM's `NameSupply`).
#[derive(Clone, Debug, Default)]
pub struct NameSupply {
    taken: BTreeSet<Name>,
    /// The last number given after each base (with its separator): the search goes on from there.
    last: BTreeMap<Name, u64>,
}

impl NameSupply {
    /// A supply in which nothing is taken.
    pub fn new() -> NameSupply {
        NameSupply::default()
    }

    /// Marks a name as taken; false when it was already.
    pub fn reserve(&mut self, name: impl Into<Name>) -> bool {
        self.taken.insert(name.into())
    }

    /// Whether a name is taken.
    pub fn is_taken(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// `base`, else `base1`, `base2`, … : how functions and bindings of a builder are numbered.
    pub fn fresh(&mut self, base: &str) -> Name {
        self.numbered(base, "")
    }

    /// `base`, else `base_1`, `base_2`, … : how variables of a scope are numbered.
    pub fn fresh_underscore(&mut self, base: &str) -> Name {
        self.numbered(base, "_")
    }

    fn numbered(&mut self, base: &str, separator: &str) -> Name {
        let name = Name::from(base);
        if self.taken.insert(name.clone()) {
            return name;
        }
        let last = self.last.entry(format!("{base}{separator}").into()).or_default();
        loop {
            *last += 1;
            let candidate = Name::from(format!("{base}{separator}{last}"));
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}
