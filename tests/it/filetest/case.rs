//! Reading a case, comparing it with what came out, writing it blessed.

use std::fmt::Write;

/// The cases of a file.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split("# -----\n")
}

/// What the `run:` header asks for.
pub enum Run {
    Parse,
    Pipeline(String),
    Passes(String),
}

/// What is printed in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    TvmScript,
    /// The C text of every kernel.
    C,
    /// The memory plan and the program of the VM.
    Vm,
}

/// One case.
pub struct Case {
    header: String,
    pub run: Run,
    pub target: Option<String>,
    pub form: Form,
    /// The module, without caret lines.
    pub module: String,
    carets: Vec<Caret>,
    pub expected: Option<String>,
}

/// A caret line: an error at a place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Caret {
    /// Line of the module, from 0.
    pub line: usize,
    /// First column, at least 1: column 0 holds the comment sign.
    pub column: usize,
    /// Columns.
    pub width: usize,
    /// `error: …` or `warning: …`
    pub text: String,
}

/// What running a case gave.
pub struct Outcome {
    pub carets: Vec<Caret>,
    /// Diagnostics that have no place in the module, as text.
    pub unplaced: Vec<String>,
    /// The output, when there was no error.
    pub output: Option<String>,
}

impl Case {
    /// Reads a case. The error says what is wrong with its form.
    pub fn read(text: &str) -> Result<Case, String> {
        let (body, expected) = match text.split_once("# ---\n") {
            Some((body, expected)) => (body, Some(expected.trim_end().to_owned())),
            None => (text, None),
        };
        let mut header = String::new();
        let (mut run, mut target, mut form) = (None, None, Form::TvmScript);
        let mut module = String::new();
        let mut carets = Vec::new();
        let mut in_header = true;
        for line in body.lines() {
            if in_header {
                if let Some((key, value)) = line.strip_prefix("# ").and_then(|l| l.split_once(": ")) {
                    match key {
                        "run" => {
                            run = Some(match value.split_once(' ') {
                                None if value == "parse" => Run::Parse,
                                Some(("pipeline", name)) => Run::Pipeline(name.to_owned()),
                                _ => Run::Passes(value.to_owned()),
                            })
                        }
                        "target" => target = Some(value.to_owned()),
                        "output" => {
                            form = match value {
                                "tvmscript" => Form::TvmScript,
                                "c" => Form::C,
                                "vm" => Form::Vm,
                                other => return Err(format!("unknown output '{other}'; known are tvmscript, c, vm")),
                            }
                        }
                        "about" => {}
                        other => return Err(format!("unknown header '{other}'; known are run, target, output, about")),
                    }
                    let _ = writeln!(header, "{line}");
                    continue;
                }
                in_header = false;
            }
            match caret(line) {
                Some((column, width, message)) => carets.push(Caret {
                    line: module.lines().count().saturating_sub(1),
                    column,
                    width,
                    text: message.to_owned(),
                }),
                None => {
                    let _ = writeln!(module, "{line}");
                }
            }
        }
        let run = run.ok_or("the case has no `# run: …` header")?;
        Ok(Case { header, run, target, form, module, carets, expected })
    }

    /// How the outcome differs from what is expected.
    pub fn difference(&self, got: &Outcome) -> Option<String> {
        let mut text = String::new();
        for missing in self.carets.iter().filter(|c| !got.carets.contains(c)) {
            let _ = writeln!(text, "expected but not reported: {missing:?}");
        }
        for extra in got.carets.iter().filter(|c| !self.carets.contains(c)) {
            let _ = writeln!(text, "reported but not expected: {extra:?}");
        }
        for extra in &got.unplaced {
            let _ = writeln!(text, "reported without a place in the module: {extra}");
        }
        if self.expected != got.output && got.carets.is_empty() && got.unplaced.is_empty() {
            let (want, have) = (self.expected.as_deref().unwrap_or(""), got.output.as_deref().unwrap_or(""));
            let at = want.lines().zip(have.lines()).take_while(|(a, b)| a == b).count();
            let _ = writeln!(text, "output differs from line {}:", at + 1);
            let _ = writeln!(text, "  expected: {}", want.lines().nth(at).unwrap_or("(the end)"));
            let _ = writeln!(text, "  got:      {}", have.lines().nth(at).unwrap_or("(the end)"));
        }
        (!text.is_empty()).then_some(text)
    }

    /// The case as it should read.
    pub fn blessed(&self, got: &Outcome) -> String {
        let mut text = self.header.clone();
        for (n, line) in self.module.lines().enumerate() {
            let _ = writeln!(text, "{line}");
            let mut here: Vec<&Caret> = got.carets.iter().filter(|c| c.line == n).collect();
            here.sort();
            for c in here {
                let _ = writeln!(text, "#{}{} {}", " ".repeat(c.column - 1), "^".repeat(c.width), c.text);
            }
        }
        if let Some(output) = &got.output {
            let _ = writeln!(text, "# ---\n{output}");
        }
        text
    }
}

/// Column, width and text of a caret line.
fn caret(line: &str) -> Option<(usize, usize, &str)> {
    let rest = line.strip_prefix('#')?;
    let blank = rest.len() - rest.trim_start_matches(' ').len();
    let carets = &rest[blank..];
    let text = carets.trim_start_matches('^');
    let width = carets.len() - text.len();
    let text = text.trim();
    (width > 0 && (text.starts_with("error: ") || text.starts_with("warning: "))).then_some((blank + 1, width, text))
}
