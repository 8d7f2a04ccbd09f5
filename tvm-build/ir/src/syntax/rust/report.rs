//! Diagnostics as the text of a `compile_error!`.

use super::TokenSpans;
use crate::diag::Diag;
use proc_macro2::TokenStream;

/// Most characters of code that are quoted.
const MAX_QUOTED: usize = 60;

impl TokenSpans {
    /// What rustc shows of a diagnostic at its first place: message, label, other places (stable Rust shows one place an
    /// error, the others are quoted), notes and help, a line each.
    pub fn text_of(&self, d: &Diag) -> String {
        let mut text = d.message.clone();
        if let Some(label) = d.labels.first().filter(|l| !l.text.is_empty()) {
            text.push_str(&format!(": {}", label.text));
        }
        for label in d.labels.iter().skip(1) {
            let quoted = self.tokens(label.span).map(written).filter(|code| code.chars().count() <= MAX_QUOTED);
            match (quoted, label.text.is_empty()) {
                (Some(code), false) => text.push_str(&format!("\nnote: {}: `{code}`", label.text)),
                (Some(code), true) => text.push_str(&format!("\nnote: see `{code}`")),
                (None, false) => text.push_str(&format!("\nnote: {}", label.text)),
                (None, true) => {}
            }
        }
        for note in &d.notes {
            text.push_str(&format!("\nnote: {note}"));
        }
        if let Some(help) = &d.help {
            text.push_str(&format!("\nhelp: {help}"));
        }
        text
    }
}

/// Tokens as one writes them.
fn written(tokens: &TokenStream) -> String {
    let mut text = tokens.to_string();
    for (from, to) in [
        (" ::", "::"),
        (":: ", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" .", "."),
        (". ", "."),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
    ] {
        text = text.replace(from, to);
    }
    text
}
