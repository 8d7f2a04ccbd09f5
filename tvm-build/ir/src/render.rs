//! Diagnostics as text, in the manner of rustc: the message, the place, the line with carets, notes and help.

use crate::diag::{Diag, Diags, Label, Severity};
use crate::span::{Source, SourceKind, SourceMap};

/// All diagnostics, with an empty line between them.
pub fn render_all(diags: &Diags, sources: &SourceMap) -> String {
    diags.0.iter().map(|d| render(d, sources)).collect::<Vec<_>>().join("\n")
}

/// One diagnostic; ends with a newline.
pub fn render(diag: &Diag, sources: &SourceMap) -> String {
    let severity = match diag.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut out = format!("{severity}: {}\n", diag.message);
    let places: Vec<Place> = diag.labels.iter().filter_map(|l| Place::of(l, sources)).collect();
    let width = places.iter().map(|p| p.line_number.to_string().len()).max().unwrap_or(0);
    let gutter = " ".repeat(width);
    for (i, p) in places.iter().enumerate() {
        let same_line = i.checked_sub(1).and_then(|j| places.get(j)).is_some_and(|q| q.at() == p.at() && q.is_text());
        if !same_line || !p.is_text() {
            out.push_str(&p.header(&gutter, i == 0));
            if p.is_text() {
                out.push_str(&format!("{gutter} |\n{:>width$} | {}\n", p.line_number, p.line));
            }
        }
        if p.is_text() {
            let mark = if i == 0 { "^" } else { "-" };
            let label = if p.label.is_empty() { String::new() } else { format!(" {}", p.label) };
            out.push_str(&format!("{gutter} | {}{}{label}\n", " ".repeat(p.column), mark.repeat(p.length)));
        }
    }
    for n in &diag.notes {
        out.push_str(&format!("{gutter} = note: {n}\n"));
    }
    if let Some(h) = &diag.help {
        out.push_str(&format!("{gutter} = help: {h}\n"));
    }
    out
}

/// Where a label points.
struct Place<'a> {
    source: &'a str,
    /// 1-based; 0 when the source is not text.
    line_number: usize,
    /// The line, tabs as single spaces.
    line: String,
    /// 0-based, in characters.
    column: usize,
    length: usize,
    /// Path of a graph node.
    node: Option<&'a str>,
    label: &'a str,
}

impl<'a> Place<'a> {
    fn of(label: &'a Label, sources: &'a SourceMap) -> Option<Place<'a>> {
        let source: &Source = sources.get(label.span.source)?;
        let start = usize::try_from(label.span.start).ok()?;
        let end = usize::try_from(label.span.end).ok()?;
        let mut place = Place {
            source: &source.name,
            line_number: 0,
            line: String::new(),
            column: 0,
            length: 0,
            node: None,
            label: &label.text,
        };
        match &source.kind {
            SourceKind::Text(text) => {
                let start = floor_boundary(text, start);
                let end = floor_boundary(text, end).max(start);
                let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
                let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
                place.line_number = text[..start].bytes().filter(|b| *b == b'\n').count() + 1;
                place.line = text[line_start..line_end].trim_end().replace('\t', " ");
                place.column = text[line_start..start].chars().count();
                place.length = text[start..end.min(line_end)].chars().count().max(1);
            }
            SourceKind::Nodes(paths) => place.node = paths.get(start).map(String::as_str),
            SourceKind::Tokens => {}
        }
        Some(place)
    }

    fn is_text(&self) -> bool {
        self.line_number > 0
    }

    fn at(&self) -> (&str, usize) {
        (self.source, self.line_number)
    }

    fn header(&self, gutter: &str, first: bool) -> String {
        let arrow = if first { "-->" } else { ":::" };
        if self.is_text() {
            return format!("{gutter}{arrow} {}:{}:{}\n", self.source, self.line_number, self.column + 1);
        }
        let node = self.node.map_or(String::new(), |n| format!(": {n}"));
        let label = if self.label.is_empty() { String::new() } else { format!(" ({})", self.label) };
        format!("{gutter}{arrow} {}{node}{label}\n", self.source)
    }
}

/// The last character boundary at or before a byte.
fn floor_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    #[test]
    fn text_with_two_labels() {
        let mut sources = SourceMap::default();
        let id = sources.add("m.py", SourceKind::Text("ä = 1\nfoo(ä, b)\n".into()));
        let d = Diag::error(Span::new(id, 15, 16), "undefined name `b`")
            .label(Span::new(id, 11, 13), "this one is defined")
            .label(Span::new(id, 0, 2), "here")
            .note("names are case sensitive")
            .help("define it");
        let want = "\
error: undefined name `b`
 --> m.py:2:8
  |
2 | foo(ä, b)
  |        ^
  |     - this one is defined
 ::: m.py:1:1
  |
1 | ä = 1
  | - here
  = note: names are case sensitive
  = help: define it
";
        let got = render(&d, &sources);
        assert_eq!(got, want, "{got}");
    }

    #[test]
    fn nodes_and_no_place() {
        let mut sources = SourceMap::default();
        let id = sources.add("m.onnx", SourceKind::Nodes(vec!["graph/Conv_0".into()]));
        let d = Diag::error(Span::new(id, 0, 1), "Conv: bad pads");
        assert_eq!(render(&d, &sources), "error: Conv: bad pads\n --> m.onnx: graph/Conv_0\n");
        assert_eq!(render(&Diag::error(Span::NONE, "x"), &sources), "error: x\n");
        // A span beyond the text does not panic.
        let t = sources.add("t", SourceKind::Text("ab".into()));
        assert!(render(&Diag::error(Span::new(t, 7, 9), "x"), &sources).contains("t:1:3"));
    }
}
