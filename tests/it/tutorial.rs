//! The tutorial's three printed modules, byte for byte.

use tvm_build::pipeline;
use tvm_ir::module::IRModule;
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::{Dialect, ParseOptions, parse_module, print_module};
use tvm_ir::target::Target;

const IMPORTED: &str = include_str!("../files/tutorial/01_from_torch.py.txt");
const LEGALIZED: &str = include_str!("../files/tutorial/06_legalize_ops.py.txt");
const ZERO: &str = include_str!("../files/tutorial/08_zero_pipeline.py.txt");

fn imported() -> IRModule {
    parse_module(&mut SourceMap::default(), "tutorial", IMPORTED, ParseOptions::default())
        .expect("the tutorial's module")
}

fn printed(module: &IRModule) -> String {
    print_module(module, Dialect::Tutorial).trim_end().to_owned()
}

fn run(module: &mut IRModule, passes: &str) {
    for step in pipeline::parse_steps(passes).expect("passes") {
        step.run(module, &Target::default()).expect("the pass runs");
    }
}

#[test]
fn the_imported_module() {
    let module = imported();
    assert_eq!(printed(&module), IMPORTED.trim_end());
    let names: Vec<String> = module.get_global_vars().iter().map(|gv| gv.0.to_string()).collect();
    assert_eq!(names, ["main"]);
    let [gv] = &module.get_global_vars()[..] else { panic!("one function") };
    assert!(std::ptr::eq(&module[gv], &module["main"]));
}

#[test]
fn after_legalize_ops() {
    let mut module = imported();
    run(&mut module, "LegalizeOps");
    assert_eq!(printed(&module), LEGALIZED.trim_end());
    let names: Vec<String> = module.get_global_vars().iter().map(|gv| gv.0.to_string()).collect();
    assert_eq!(names, ["add", "add1", "main", "matmul", "matmul1", "relu", "transpose", "transpose1"]);
}

#[test]
fn after_the_zero_pipeline() {
    let mut module = imported();
    run(&mut module, "LegalizeOps");
    for step in (pipeline::lookup("zero").expect("a pipeline").steps)() {
        step.run(&mut module, &Target::default()).expect("the pass runs");
    }
    assert_eq!(printed(&module), ZERO.trim_end());
}

#[test]
fn legalize_ops_again_changes_nothing() {
    let mut once = imported();
    run(&mut once, "LegalizeOps");
    let mut twice = once.clone();
    run(&mut twice, "LegalizeOps");
    assert_eq!(printed(&once), printed(&twice));
}
