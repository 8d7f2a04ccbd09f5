//! Names of models as identifiers of generated Rust.

use crate::name::NameSupply;

const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Gives identifiers that were not given before.
pub struct Identifiers(NameSupply);

impl Identifiers {
    /// None of `reserved` is given.
    pub fn new(reserved: &[&str]) -> Identifiers {
        let mut names = NameSupply::new();
        for name in reserved {
            names.reserve(*name);
        }
        Identifiers(names)
    }

    /// An identifier like `hint`, numbered where it is taken: a keyword becomes a raw identifier.
    pub fn fresh(&mut self, hint: &str) -> String {
        let name = self.0.fresh_underscore(&word(hint)).to_string();
        raw(&name)
    }

    /// As [`Identifiers::fresh`], where `{name}_into` is not taken either; both are given.
    pub fn fresh_pair(&mut self, hint: &str) -> (String, String) {
        let base = word(hint);
        loop {
            let name = self.0.fresh_underscore(&base).to_string();
            let into = format!("{name}_into");
            if self.0.reserve(into.as_str()) {
                return (raw(&name), into);
            }
        }
    }
}

/// Letters, digits and underscores of a name; not a keyword that cannot be written raw.
fn word(hint: &str) -> String {
    let mut out: String = hint.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.chars().next().is_none_or(|c| c.is_ascii_digit()) {
        out.insert(0, 'v');
    }
    if matches!(out.as_str(), "self" | "Self" | "super" | "crate") || out.chars().all(|c| c == '_') {
        out.push_str("_v");
    }
    out
}

fn raw(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("r#{name}") } else { name.to_string() }
}

/// A name in a comment: one line.
pub fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '`' { ' ' } else { c }).collect()
}

/// Documentation that a user wrote, with an empty line behind it; nothing where there is none.
pub fn documentation(out: &mut String, indent: &str, lines: &[String]) {
    for line in lines {
        out.push_str(&format!("{indent}///{}\n", line.replace(|c: char| c.is_control(), " ").trim_end()));
    }
    if !lines.is_empty() {
        out.push_str(&format!("{indent}///\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers() {
        let mut ids = Identifiers::new(&["args"]);
        let given: Vec<String> =
            ["x", "x", "onnx::x.1", "1", "type", "self", "", "args", "é\n"].map(|h| ids.fresh(h)).into();
        assert_eq!(given, ["x", "x_1", "onnx__x_1", "v1", "r#type", "self_v", "v", "args_1", "___v"][..]);
        let mut ids = Identifiers::new(&["new"]);
        assert_eq!(ids.fresh_pair("f_into"), ("f_into".to_string(), "f_into_into".to_string()));
        assert_eq!(ids.fresh_pair("f"), ("f_1".to_string(), "f_1_into".to_string()));
        assert_eq!(ids.fresh_pair("new").0, "new_1");
        assert_eq!(ids.fresh_pair("fn"), ("r#fn".to_string(), "fn_into".to_string()));
    }
}
