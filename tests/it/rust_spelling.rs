//! Every module of the file tests and of the tutorial survives TVMScript → Rust spelling → module.

use crate::filetest::{case, files};
use std::fs;
use std::path::Path;
use tvm_ir::module::IRModule;
use tvm_ir::render::render_all;
use tvm_ir::span::SourceMap;
use tvm_ir::structural::diff;
use tvm_ir::syntax::rust::parse_rust;
use tvm_ir::syntax::{ParseOptions, parse_module, print_rust};

fn through_rust(module: &IRModule) -> Result<(), String> {
    let (text, constants) = print_rust(module, "module").map_err(|d| d.to_string())?;
    let mut sources = SourceMap::default();
    let again = parse_rust(&mut sources, "module.rs", &text, &ParseOptions { constants })
        .map_err(|d| format!("{}\n{text}", render_all(&d, &sources)))?;
    diff::modules(module, &again).map_err(|d| format!("{d}\n{text}"))
}

fn parsed(text: &str) -> Option<IRModule> {
    parse_module(&mut SourceMap::default(), "module", text, ParseOptions::default()).ok()
}

#[test]
fn every_module_survives() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("files");
    let mut paths = Vec::new();
    files(&dir, &mut paths);
    let mut texts = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for source in case::split(&text) {
            let case = case::Case::read(source).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let name = path.display().to_string();
            texts.extend([Some(case.module), case.expected].into_iter().flatten().map(|t| (name.clone(), t)));
        }
    }
    for name in ["01_from_torch", "06_legalize_ops", "08_zero_pipeline"] {
        let path = dir.join(format!("tutorial/{name}.py.txt"));
        texts.push((name.into(), fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))));
    }
    let (mut count, mut failures) = (0, Vec::new());
    for (name, text) in texts {
        let Some(module) = parsed(&text) else { continue };
        count += 1;
        if let Err(e) = through_rust(&module) {
            failures.push(format!("{name}: {e}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count > 40, "{count} modules were read");
}
