//! Diagnostics: located, collected, shown together.
//!
//! Messages are lower case without a full stop, name the op and the operand, show both values; `help` says what to do.

use crate::span::Span;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The build stops at the end of the phase.
    Error,
    /// Reported; the build goes on.
    Warning,
}

/// A place and what to say about it; the first label of a [`Diag`] is the place at fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// Text at the caret; empty when the message says it all.
    pub text: String,
}

/// One diagnostic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diag {
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// Where; may be empty when there is no location.
    pub labels: Vec<Label>,
    /// Further facts, a line each.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diag {
    /// An error at a place.
    pub fn error(span: Span, message: impl Into<String>) -> Diag {
        let labels = if span.is_none() { Vec::new() } else { vec![Label { span, text: String::new() }] };
        Diag { severity: Severity::Error, message: message.into(), labels, notes: Vec::new(), help: None }
    }

    /// A warning at a place.
    pub fn warning(span: Span, message: impl Into<String>) -> Diag {
        Diag { severity: Severity::Warning, ..Diag::error(span, message) }
    }

    /// Adds a further place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diag {
        if !span.is_none() {
            self.labels.push(Label { span, text: text.into() });
        }
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Diag {
        self.notes.push(text.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diag {
        self.help = Some(text.into());
        self
    }

    /// Sets the place when there is none yet.
    #[must_use]
    pub fn at(mut self, span: Span) -> Diag {
        if self.labels.is_empty() && !span.is_none() {
            self.labels.push(Label { span, text: String::new() });
        }
        self
    }

    /// The place at fault.
    pub fn span(&self) -> Span {
        self.labels.first().map_or(Span::NONE, |l| l.span)
    }
}

impl std::fmt::Display for Diag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

/// The diagnostics of a phase, in the order found. As an `Err` it holds at least one error.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diags(pub Vec<Diag>);

impl Diags {
    /// No diagnostics.
    pub fn new() -> Diags {
        Diags::default()
    }

    /// Adds one.
    pub fn push(&mut self, diag: Diag) {
        self.0.push(diag);
    }

    /// Adds all of another collection.
    pub fn extend(&mut self, other: Diags) {
        self.0.extend(other.0);
    }

    /// Records the error of a result and goes on with `None`.
    pub fn ok<T>(&mut self, result: Result<T, Diag>) -> Option<T> {
        result.map_err(|d| self.push(d)).ok()
    }

    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }

    /// The border of a phase: `Err` when there are errors, else the value (warnings are dropped).
    pub fn into_result<T>(self, value: T) -> Result<T, Diags> {
        if self.has_errors() { Err(self) } else { Ok(value) }
    }
}

impl From<Diag> for Diags {
    fn from(diag: Diag) -> Diags {
        Diags(vec![diag])
    }
}

impl std::fmt::Display for Diags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diags {}
