//! Running a case.

use super::case::{Caret, Case, Form, Outcome, Run};
use tvm_build::codegen::{self, EmitOptions};
use tvm_build::lower::lower_to_kernels;
use tvm_build::pass::Step;
use tvm_build::{pipeline, vm};
use tvm_ir::diag::{Diag, Diags, Severity};
use tvm_ir::lowered::Kernel;
use tvm_ir::module::IRModule;
use tvm_ir::span::SourceMap;
use tvm_ir::structural::diff;
use tvm_ir::syntax::{Dialect, ParseOptions, parse_module, print_module, print_with_constants};
use tvm_ir::target::Target;

/// Parses the module and runs what the case asks for. The error says what no expectation can hold.
pub fn run(name: &str, case: &Case) -> Result<Outcome, String> {
    let steps: Vec<Step> = match &case.run {
        Run::Parse => Vec::new(),
        Run::Pipeline(name) => (pipeline::lookup(name).ok_or_else(|| format!("unknown pipeline '{name}'"))?.steps)(),
        Run::Passes(spec) => pipeline::parse_steps(spec).map_err(|d| d.to_string())?,
    };
    let target = match &case.target {
        Some(name) => Target::named(name).ok_or_else(|| format!("unknown target '{name}'"))?,
        None => Target::default(),
    };
    let mut sources = SourceMap::default();
    let mut module = match parse_module(&mut sources, name, &case.module, ParseOptions::default()) {
        Ok(module) => module,
        Err(diags) => return Ok(placed(&case.module, &diags)),
    };
    round_trip(&module)?;
    for step in steps {
        if let Err(diags) = step.run(&mut module, &target) {
            return Ok(placed(&case.module, &diags));
        }
        round_trip(&module).map_err(|e| format!("after {}: {e}", step.pass.name))?;
    }
    let output = match case.form {
        Form::TvmScript => Ok(print_module(&module, Dialect::Tutorial)),
        Form::C => c_text(&module, &target),
        Form::Vm => vm_text(&module, &target),
    };
    match output {
        Ok(text) => Ok(Outcome { carets: Vec::new(), unplaced: Vec::new(), output: Some(text.trim_end().to_owned()) }),
        Err(diags) => Ok(placed(&case.module, &diags)),
    }
}

/// The functions of the generated C files, without the helpers at their heads.
fn c_text(module: &IRModule, target: &Target) -> Result<String, Diags> {
    let kernels: Vec<Kernel> = lower_to_kernels(module, target)?.into_iter().map(|k| k.kernel).collect();
    let options = EmitOptions { stem: "test", prefix: "test_", suffix: "", files: 1 };
    let files = codegen::emit(&kernels, target, &codegen::C99, &options)?;
    let text: String = files.into_iter().map(|f| f.text).collect();
    let start = text.find("\n/* ").map_or(0, |n| n + 1);
    let first = kernels.first().map_or("", |k| k.name.as_str());
    let body = text.find(&format!("test_{first}")).map_or(start, |n| text[..n].rfind("\n\n").map_or(start, |m| m + 2));
    Ok(text[body..].to_owned())
}

fn vm_text(module: &IRModule, target: &Target) -> Result<String, Diags> {
    let mut kernels = lower_to_kernels(module, target)?;
    let compiled = vm::compile(module, &mut kernels, &vm::Options::default())?;
    let plans: String = compiled.plans.iter().map(|p| format!("{p}\n")).collect();
    Ok(format!("{plans}{}", compiled.program.tables()))
}

/// What is printed parses to the same module, and prints the same again.
fn round_trip(module: &IRModule) -> Result<(), String> {
    for dialect in [Dialect::Tutorial, Dialect::V0_27] {
        let (text, constants) = print_with_constants(module, dialect);
        let mut sources = SourceMap::default();
        let again = parse_module(&mut sources, "printed", &text, ParseOptions { constants }).map_err(|d| {
            format!("what is printed does not parse: {}\n{text}", tvm_ir::render::render_all(&d, &sources))
        })?;
        diff::modules(module, &again).map_err(|d| format!("what is printed parses to another module: {d}\n{text}"))?;
        if print_module(&again, dialect) != text {
            return Err(format!("printing again gives another text than\n{text}"));
        }
    }
    Ok(())
}

fn placed(module: &str, diags: &Diags) -> Outcome {
    let mut outcome = Outcome { carets: Vec::new(), unplaced: Vec::new(), output: None };
    for diag in &diags.0 {
        match place(module, diag) {
            Some(caret) => outcome.carets.push(caret),
            None => outcome.unplaced.push(diag.to_string()),
        }
    }
    outcome
}

fn place(module: &str, diag: &Diag) -> Option<Caret> {
    let span = diag.labels.first()?.span;
    let (start, end) = (span.start as usize, span.end as usize);
    let before = module.get(..start)?;
    let line = before.matches('\n').count();
    let line_start = before.rfind('\n').map_or(0, |n| n + 1);
    let line_end = module[start..].find('\n').map_or(module.len(), |n| start + n);
    let column = module.get(line_start..start)?.chars().count();
    let width = module.get(start..end.min(line_end).max(start))?.chars().count();
    let (column, width) = if column == 0 { (1, width.saturating_sub(1)) } else { (column, width) };
    let severity = if diag.severity == Severity::Error { "error" } else { "warning" };
    Some(Caret { line, column, width: width.max(1), text: format!("{severity}: {diag}") })
}
