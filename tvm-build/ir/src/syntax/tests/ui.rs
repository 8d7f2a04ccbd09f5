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
            out.extend(m.mac.parse_body::<Modules>().map_or(Vec::new(), |m| m.0));
        }
    }
    out
}

/// Everything that is reported of a case, with places in its text.
fn reported(text: &str, sources: &mut SourceMap) -> Diags {
    let id = sources.add("case.rs", SourceKind::Text(text.to_string()));
    let mut all = Diags::new();
    for item in modules(text) {
        let mut spans = TokenSpans::default();
        if let Err(mut diags) = check_item(sources, &mut spans, &item) {
            for label in diags.0.iter_mut().flat_map(|d| &mut d.labels) {
                label.span = spans.text_span(label.span, id);
            }
            all.extend(diags);
        }
    }
    all
}

/// Message, notes and help: what the macro shows.
fn said(d: &Diag) -> String {
    let mut out = d.message.clone();
    d.notes.iter().for_each(|n| out.push_str(&format!("\nnote: {n}")));
    d.help.iter().for_each(|h| out.push_str(&format!("\nhelp: {h}")));
    out
}

#[test]
fn messages_and_places_are_those_of_the_macro() {
    let mut failed = Vec::new();
    for path in cases() {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut sources = SourceMap::default();
        let diags = reported(&text, &mut sources);
        if std::env::var("UI_SHOW").is_ok() {
            eprintln!("=== {}\n{}", path.display(), crate::render::render_all(&diags, &sources));
            continue;
        }
        let want = std::fs::read_to_string(path.with_extension("stderr")).unwrap_or_default();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut rest = want.as_str();
        for d in &diags.0 {
            let rendered = crate::render::render(d, &sources);
            let at = rendered.lines().find_map(|l| l.trim().strip_prefix("--> case.rs")).unwrap_or("").to_string();
            let found = rest.find(&format!("error: {}", d.message)).and_then(|i| {
                let after = &rest[i..];
                after.find(&format!("ui/{name}{at}\n")).map(|j| &after[j..])
            });
            match found {
                Some(after) => rest = after,
                None => failed.push(format!("{name}: not in the .stderr, or elsewhere there:\n{rendered}")),
            }
        }
        let shown = want.lines().filter(|l| l.starts_with("error")).count();
        if !diags.0.is_empty() && shown != diags.0.len() {
            failed.push(format!("{name}: {} errors, the .stderr has {shown}", diags.0.len()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
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
            } else if rendered.matches("\n  |").count() == 0 && !rendered.contains('^') {
                failed.push(format!("=== {name}: without a place\n{rendered}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(compared > 0);
}
