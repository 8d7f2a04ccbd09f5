//! The interface that `ir_module!` shows before the build script ran is the one that is generated then.

use crate::filetest::{case, files};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tvm_build::compile::{Options, compile_module};
use tvm_build::vm::rust::{Level, RustOptions, WeightSource, print};
use tvm_ir::diag::Diags;
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::rust::stub;
use tvm_ir::syntax::{ParseOptions, parse_module};
use tvm_ir::target::Target;

/// The signatures in a generated text.
fn signatures(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|l| l.starts_with("pub fn "));
    let lines = lines.map(|l| l.trim_end_matches(" {").replace("::tvm_runtime::", ""));
    // How much arena is needed is said where some of it depends on shapes.
    lines.filter(|l| !l.contains("fn with_arena") && !l.contains("_arena_bytes(")).collect()
}

/// What is wrong with the interface of a module. Errors of modules that do not compile.
fn compare(name: &str, text: &str) -> Result<String, Diags> {
    let module = parse_module(&mut SourceMap::default(), name, text, ParseOptions::default())?;
    let early = signatures(&stub(&module, &BTreeMap::new(), "not compiled"));
    let artifacts = compile_module(module, &Options::new("net", Target::default()))?;
    let levels = artifacts.levels.iter().map(|l| Level { level: l.level, symbols: l.symbols.clone() }).collect();
    let options = RustOptions {
        name: "net".into(),
        levels,
        weights: WeightSource::Symbol("weights".into()),
        library: None,
        libraries: Vec::new(),
        heap: true,
        ndarray: false,
        docs: BTreeMap::new(),
    };
    let late = signatures(&print(&artifacts.program, &options)?);
    Ok(if early == late { String::new() } else { format!("{name}: {early:#?} {late:#?}") })
}

const MODULE: &str = r#"
@I.ir_module
class Module:
    @R.function
    def types(type: R.Tensor((2, 3), "float16"), b: R.Tensor((4,), "bool"), i: R.Tensor((), "uint8"), s: R.Prim("float64"), k: R.Prim("int64")) -> R.Tuple(R.Tensor((2, 3), "float16"), R.Tensor((4,), "bool")):
        y = R.add(type, type)
        n = R.logical_not(b)
        return (y, n)

    @R.function
    def symbols(x: R.Tensor(("n", "m + 1"), "float32"), t: R.Tuple(R.Tensor(("m",), "float32"), R.Shape(["n"]))) -> R.Tensor(("n", "m + 1"), "float32"):
        n = T.int64()
        m = T.int64()
        y = R.nn.relu(x)
        return y

    @R.function
    def small(x: R.Tensor((5,), "float8_e4m3fn"), y: R.Tensor((5,), "int4"), z: R.Tensor((5,), "uint2")) -> R.Tuple(R.Tensor((5,), "float8_e4m3fn"), R.Tensor((5,), "int4"), R.Tensor((5,), "uint2")):
        return (x, y, z)

    @R.function
    def large(x: R.Tensor((300, 300), "float32")) -> R.Tensor((300, 300), "float32"):
        y = R.nn.relu(x)
        return y

    @R.function
    def found(x: R.Tensor(("n",), "float32")) -> R.Tensor(dtype="int64", ndim=2):
        y = R.nonzero(x)
        return y

    @R.function
    def new(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.match_cast(x, R.Tensor((4,), "float32"))
        return y
"#;

#[test]
fn the_early_interface_is_the_later_one() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = vec![("MODULE".to_string(), MODULE.to_string())];
    let mut paths = Vec::new();
    files(&dir.join("files/vm"), &mut paths);
    files(&dir.join("files/relax/FuseOps"), &mut paths);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for source in case::split(&text) {
            let case = case::Case::read(source).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            texts.push((path.display().to_string(), case.module));
        }
    }
    for file in [
        "modules/lists.tvm",
        "modules/pair.tvm",
        "modules/rows.tvm",
        "modules/values.tvm",
        "files/tutorial/01_from_torch.py.txt",
    ] {
        texts.push((file.into(), fs::read_to_string(dir.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))));
    }
    let compared: Vec<String> = texts.iter().filter_map(|(name, text)| compare(name, text).ok()).collect();
    assert!(compared.len() >= 10, "{} of {} modules compile", compared.len(), texts.len());
    let wrong: Vec<&String> = compared.iter().filter(|c| !c.is_empty()).collect();
    assert!(wrong.is_empty(), "{}", wrong.into_iter().cloned().collect::<Vec<_>>().join("\n"));
    assert_eq!(compare("MODULE", MODULE), Ok(String::new()));
}
