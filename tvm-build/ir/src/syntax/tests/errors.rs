//! Ill-formed texts: each gives located errors, rendered below it. `TVM_BLESS=1` rewrites the file.

use super::*;
use std::fmt::Write as _;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/syntax/tests/errors.txt");

/// The texts and their rendered errors: cases between `#####`, the text above `#----`.
#[test]
fn errors_are_located() {
    let file = include_str!("errors.txt");
    let bless = std::env::var("TVM_BLESS").is_ok_and(|v| v == "1");
    let mut out = String::new();
    let mut failed = Vec::new();
    for case in file.split("#####\n").filter(|c| !c.trim().is_empty()) {
        let (text, want) = case.split_once("#----\n").unwrap_or((case, ""));
        let mut sources = SourceMap::default();
        let got = match parse_module(&mut sources, "t.py", text, ParseOptions::default()) {
            Ok(m) => format!("accepted:\n{}", print_module(&m, Dialect::Tutorial)),
            Err(d) => crate::render::render_all(&d, &sources),
        };
        if got != want {
            failed.push(format!("{text}\n--- want\n{want}\n--- got\n{got}"));
        }
        let _ = write!(out, "#####\n{text}#----\n{got}");
    }
    if bless {
        std::fs::write(FILE, out).unwrap();
    } else {
        assert!(failed.is_empty(), "{}\nrewrite with TVM_BLESS=1", failed.join("\n=====\n"));
    }
}
