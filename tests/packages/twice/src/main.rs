//! Two modules of one name.

mod a;
mod b;

fn main() {}
