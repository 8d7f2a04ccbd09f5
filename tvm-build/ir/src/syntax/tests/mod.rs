//! Round trips, both dialects, and errors.

#[cfg(feature = "rust")]
mod bounds;
mod errors;
mod fuzz;
mod roundtrip;
#[cfg(feature = "rust")]
mod rust;
#[cfg(feature = "rust")]
mod rust_fuzz;
#[cfg(feature = "rust")]
mod surface;
#[cfg(feature = "rust")]
mod ui;

use super::*;

const TUTORIAL: [&str; 3] = [
    include_str!("../../../../../tests/files/tutorial/01_from_torch.py.txt"),
    include_str!("../../../../../tests/files/tutorial/06_legalize_ops.py.txt"),
    include_str!("../../../../../tests/files/tutorial/08_zero_pipeline.py.txt"),
];

pub(super) fn parse(text: &str) -> IRModule {
    let mut sources = SourceMap::default();
    match parse_module(&mut sources, "test.py", text, ParseOptions::default()) {
        Ok(m) => m,
        Err(d) => panic!("{}\n{text}", crate::render::render_all(&d, &sources)),
    }
}

#[test]
fn tutorial_is_reproduced() {
    for text in TUTORIAL {
        let printed = print_module(&parse(text), Dialect::Tutorial);
        assert_eq!(printed, text, "{printed}");
    }
}
