//! The names of generated C. One scheme for all of them:
//!
//! | what | name |
//! |---|---|
//! | kernel of PrimFunc `f` | `tvmk_f` |
//! | pointer parameter, workspace pointer, array of buffer `b` | `p_b` |
//! | scalar parameter `n` | `n_n` |
//! | loop or let variable `i` | `v_i` |
//!
//! Characters that C does not allow in identifiers become `_`; a name that is taken gets `_1`, `_2`, …
//! No keyword, libm function or reserved identifier begins with one of these prefixes, so none can collide; printers
//! choose other prefixes for their temporaries.

use tvm_ir::name::{Name, NameSupply};

/// What a name is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A kernel.
    Kernel,
    /// A pointer or array.
    Pointer,
    /// A scalar parameter.
    Scalar,
    /// A variable.
    Variable,
}

impl Role {
    fn prefix(self) -> &'static str {
        match self {
            Role::Kernel => "tvmk_",
            Role::Pointer => "p_",
            Role::Scalar => "n_",
            Role::Variable => "v_",
        }
    }
}

/// Longest part of a hint that is kept: C99 guarantees 63 significant characters.
const MAX_HINT: usize = 40;

/// The identifiers of one scope.
#[derive(Clone, Debug, Default)]
pub struct Identifiers {
    supply: NameSupply,
}

impl Identifiers {
    /// A scope in which nothing is taken.
    pub fn new() -> Identifiers {
        Identifiers::default()
    }

    /// A C identifier for a name, different from all given before.
    pub fn fresh(&mut self, role: Role, hint: &str) -> Name {
        let valid = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let hint: String = hint.chars().take(MAX_HINT).map(valid).collect();
        self.supply.fresh_underscore(&format!("{}{hint}", role.prefix()))
    }
}

/// Whether a text may stand in C as a function's name.
pub fn is_c_identifier(s: &str) -> bool {
    let mut chars = s.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_collides() {
        let mut ids = Identifiers::new();
        let all: Vec<_> =
            ["i", "i", "i_1", "int", "µ", "a.b", "a/b", ""].iter().map(|n| ids.fresh(Role::Variable, n)).collect();
        assert_eq!(all, ["v_i", "v_i_1", "v_i_1_1", "v_int", "v__", "v_a_b", "v_a_b_1", "v_"]);
        assert!(all.iter().all(|n| is_c_identifier(n)));
    }
}
