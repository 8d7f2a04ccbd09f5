//! The ui cases of `ir_module!` without rustc: each module of `tests/ui` gives the errors of its `.stderr`, and, written as
//! TVMScript text, the same ones at the same code. `UI_SHOW=1` prints what is reported of each.

use super::*;
use crate::diag::{Diag, Diags};
use crate::syntax::print::rust::respell;
use crate::syntax::rust::{Modules, TokenSpans, check_item, surface};
use std::path::PathBuf;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/ui");

fn cases() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(FOLDER).unwrap().map(|e| e.unwrap().path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "rs"));
    if let Ok(only) = std::env::var("UI_SHOW") {
        all.retain(|p| only == "1" || p.to_string_lossy().contains(&only));
    }
    all.sort();
    all
}

/// The modules of a file.
fn modules(text: &str) -> Vec<syn::ItemMod> {
    let file = syn::parse_file(text).unwrap();
    let mut out = Vec::new();
    for item in file.items {
        if let syn::Item::Macro(m) = item {
            out.extend(Modules::read(m.mac.tokens).map_or(Vec::new(), |m| m.0));
        }
    }
    out
}

/// What is reported of a case: diagnostics with places in its text, and the text that the macro gives to rustc.
fn reported(text: &str, sources: &mut SourceMap) -> Vec<(Diag, String)> {
    let id = sources.add("case.rs", SourceKind::Text(text.to_string()));
    let mut all = Vec::new();
    for item in modules(text) {
        let mut spans = TokenSpans::default();
        for mut d in check_item(sources, &mut spans, &item).err().unwrap_or_default().0 {
            let shown = spans.text_of(&d);
            for label in &mut d.labels {
                label.span = spans.text_span(label.span, id);
            }
            all.push((d, shown));
        }
    }
    all
}

/// Message, notes and help.
fn said(d: &Diag) -> String {
    let mut out = d.message.clone();
    d.notes.iter().for_each(|n| out.push_str(&format!("\nnote: {n}")));
    d.help.iter().for_each(|h| out.push_str(&format!("\nhelp: {h}")));
    out
}

/// As rustc prints an error whose place is on one line.
fn as_rustc(text: &str, name: &str, d: &Diag, shown: &str) -> String {
    let (start, end) = (d.span().start as usize, d.span().end as usize);
    let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
    let (line, column) = (text[..start].matches('\n').count() + 1, text[line_start..start].chars().count());
    let gutter = " ".repeat(line.to_string().len());
    let marks = "^".repeat(text[start..end.min(line_end)].chars().count().max(1));
    let message = shown.replace('\n', "\n       ");
    format!(
        "error: {message}\n{gutter}--> ui/{name}:{line}:{}\n{gutter} |\n{line} | {}\n{gutter} | {}{marks}\n",
        column + 1,
        &text[line_start..line_end],
        " ".repeat(column)
    )
}

/// The `.stderr` of each case is what the macro reports, without running rustc. `UI_BLESS=1` rewrites them; what rustc
/// prints is compared by the test `ui` of `tests/`.
#[test]
fn messages_and_places_are_those_of_the_macro() {
    let mut failed = Vec::new();
    for path in cases() {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut sources = SourceMap::default();
        let found = reported(&text, &mut sources);
        if std::env::var("UI_SHOW").is_ok() {
            let diags = Diags(found.into_iter().map(|(d, _)| d).collect());
            eprintln!("=== {name}\n{}", crate::render::render_all(&diags, &sources));
            continue;
        }
        if found.is_empty() {
            // What is no module at all is reported by syn.
            if !modules(&text).is_empty() {
                failed.push(format!("{name}: nothing is reported"));
            }
            continue;
        }
        let got: Vec<String> = found.iter().map(|(d, shown)| as_rustc(&text, &name, d, shown)).collect();
        let got = got.join("\n");
        let file = path.with_extension("stderr");
        if std::env::var("UI_BLESS").is_ok_and(|v| v == "1") {
            std::fs::write(&file, &got).unwrap();
        }
        let want = std::fs::read_to_string(&file).unwrap_or_default();
        if got != want {
            failed.push(format!("=== {name}\n--- got\n{got}\n--- want\n{want}"));
        }
    }
    assert!(failed.is_empty(), "{}\nrewrite with UI_BLESS=1", failed.join("\n"));
}

/// Cases whose mistake has no form in text, or another message there: what is legal differs.
const RUST_ALONE: &[&str] = &[];

#[test]
fn text_gives_the_same_errors() {
    let (mut failed, mut compared) = (Vec::new(), 0);
    for path in cases() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if RUST_ALONE.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for item in modules(&text) {
            let mut sources = SourceMap::default();
            // What is no valid tree of the IR has no text.
            let Some(tree) = surface(&mut sources, &mut TokenSpans::default(), &item) else { continue };
            let Some(script) = super::surface::text(&[tree], 0) else { continue };
            let mut spans = TokenSpans::default();
            let rust = check_item(&mut sources, &mut spans, &item).err().unwrap_or_default();
            let mut sources = SourceMap::default();
            let found = match parse_module(&mut sources, "case.py", &script, ParseOptions::default()) {
                Err(d) => d,
                Ok(m) => crate::check::check_module(&m).err().unwrap_or_default(),
            };
            let want: Vec<String> = rust.0.iter().map(said).collect();
            let got: Vec<String> = found.0.iter().map(|d| respell(&said(d))).collect();
            compared += 1;
            let rendered = crate::render::render_all(&found, &sources);
            if std::env::var("UI_SHOW").is_ok() {
                eprintln!("=== {name} in text\n{rendered}");
            }
            if want != got {
                failed.push(format!("=== {name}\n--- Rust\n{}\n--- text\n{rendered}\n{script}", want.join("\n")));
            } else if !got.is_empty() && !rendered.contains('^') {
                failed.push(format!("=== {name}: without a place\n{rendered}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(compared > 0);
}

/// The rules of well-formedness and the cases that break them. What no text can break has none, and says why.
const RULES: &[(&str, &[&str])] = &[
    ("relax 1", &["parameter_twice", "binding_again"]),
    ("relax 2", &["name_undefined", "name_before_binding"]),
    ("relax 3", &["dataflow_hidden", "dataflow_output_unbound", "dataflow_no_output"]),
    ("relax 4", &["dataflow_conditional", "dataflow_effect"]),
    ("relax 5", &["effect_in_pure_function"]),
    ("relax 6", &["op_argument_missing", "op_attribute_unknown", "infer_attribute_type", "op_shapes_matmul"]),
    ("relax 7", &["binding_annotation", "annotation_dtype", "annotation_knows_more", "match_cast_never"]),
    ("relax 8", &["call_unknown_function", "call_tir_arguments", "call_tir_dims", "call_tir_dtype", "call_tir_output"]),
    ("relax 9", &["call_arity", "call_argument_type"]),
    ("relax 10", &["symbol_of_result_undefined", "symbol_in_expression_alone", "symbol_of_body_undefined"]),
    ("relax 11", &["result_does_not_fit", "if_condition_tensor", "if_branches_differ"]),
    ("relax 12", &["tuple_field", "tensor_field"]),
    ("relax 13", &["global_symbol_other"]),
    ("relax 14", &["loop_body", "loop_without_end"]),
    ("tir 1", &["tir_name_undefined", "tir_symbol_undefined"]),
    // A second `let` of a name is another variable: only passes can define one twice.
    ("tir 2", &["parameter_twice"]),
    ("tir 3", &["buffer_twice", "handle_without_buffer"]),
    ("tir 4", &["buffer_rank", "index_float", "index_slice_not_last"]),
    ("tir 5", &["buffer_store_dtype", "literal_in_int_buffer", "literal_range"]),
    ("tir 6", &["operand_lanes", "bits_of_float", "values_of_choice", "intrinsic_arity"]),
    ("tir 7", &["condition_not_bool", "while_not_bool", "not_of_number"]),
    ("tir 8", &["loop_extent_float", "loop_negative", "thread_axis_unknown"]),
    ("tir 9", &["axis_of_float", "loop_variable_in_block", "axis_outside_block"]),
    ("tir 10", &["init_of_reduction"]),
    ("tir 11", &["store_at_reduction"]),
    ("tir 12", &["regions_missing", "regions_too_small"]),
    ("tir 13", &["region_rank"]),
    ("tir 14", &["buffer_extent_float", "buffer_strides"]),
    // The reader puts blocks into a root and flattens sequences: only passes can break these two.
    ("tir 15", &[]),
    ("tir 16", &["value_unused", "string_in_scalar"]),
    ("tir 17", &[]),
    ("bounds", &["bounds_loop", "bounds_symbolic", "bounds_data_dependent", "bounds_tiles_without_guard"]),
];

#[test]
fn every_rule_has_a_case() {
    let names: Vec<String> = cases().iter().map(|p| p.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    for (rule, cases) in RULES {
        for c in *cases {
            assert!(names.iter().any(|n| n == c), "{rule}: no case {c}");
        }
    }
    // The rules are those that the verifiers document.
    let count = |text: &str| {
        (1..).take_while(|n| text.contains(&format!("//! {n}. ")) || text.contains(&format!("//!  {n}. "))).count()
    };
    for (level, text) in
        [("relax", include_str!("../../relax/verify/mod.rs")), ("tir", include_str!("../../tir/verify/mod.rs"))]
    {
        let listed = RULES.iter().filter(|(r, _)| r.starts_with(level)).count();
        assert_eq!(listed, count(text), "{level}");
    }
}
