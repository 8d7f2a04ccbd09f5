//! C99 with the vector extension of gcc and clang.

use super::dialect::Dialect;

/// C99.
pub struct C99;

impl Dialect for C99 {
    fn name(&self) -> &'static str {
        "C"
    }

    fn extension(&self) -> &'static str {
        "c"
    }

    fn head(&self) -> &'static str {
        include_str!("prelude/head.h")
    }
}
