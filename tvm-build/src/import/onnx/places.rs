//! The places of a model, by which messages name what is at fault, and the messages.

use tvm_ir::diag::{Diag, Diags};
use tvm_ir::span::{SourceId, SourceKind, SourceMap, Span};

/// Errors that are shown of one file. A damaged file can have as many as it has bytes.
pub(super) const MAX_SHOWN: usize = 100;
/// Letters of a name that messages show. Names of nodes are repeated in the paths of what is in them.
const MAX_NAME: usize = 80;

/// The start of a name from the file, for messages.
pub(super) fn shown(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Errors up to a number of them, and how many there are beyond.
#[derive(Debug, Default)]
pub(super) struct Faults {
    diags: Diags,
    more: usize,
}

impl Faults {
    /// Adds an error.
    pub(super) fn push(&mut self, diag: Diag) {
        if self.diags.0.len() < MAX_SHOWN {
            self.diags.push(diag);
        } else {
            self.more += 1;
        }
    }

    /// Adds an error of a node that is converted several times: the first of those that say the same.
    pub(super) fn push_once(&mut self, diag: Diag) {
        if !self.diags.0.iter().any(|d| d.span() == diag.span() && d.message == diag.message) {
            self.push(diag);
        }
    }

    /// Adds those of another collection.
    pub(super) fn extend(&mut self, other: Faults) {
        self.more += other.more;
        other.diags.0.into_iter().for_each(|diag| self.push(diag));
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.diags.0.is_empty()
    }

    /// The errors, as the error of a function.
    pub(super) fn into_diags(mut self) -> Diags {
        if self.more > 0 {
            self.diags
                .push(Diag::error(Span::NONE, format!("there are {} more errors, which are not shown", self.more)));
        }
        self.diags
    }
}

/// Collects the places of one model and what is wrong at them.
#[derive(Debug)]
pub(super) struct Places {
    source: SourceId,
    paths: Vec<String>,
    faults: Faults,
}

impl Places {
    /// Registers the model `name` as a source. Place 0 is the file as a whole.
    pub(super) fn new(name: &str, sources: &mut SourceMap) -> Places {
        let source = sources.add(name, SourceKind::Nodes(Vec::new()));
        Places { source, paths: vec![name.to_owned()], faults: Faults::default() }
    }

    /// The file as a whole.
    pub(super) fn file(&self) -> Span {
        Span::new(self.source, 0, 1)
    }

    /// A new place.
    pub(super) fn add(&mut self, path: impl Into<String>) -> Span {
        let index = u32::try_from(self.paths.len()).unwrap_or(u32::MAX - 1);
        self.paths.push(path.into());
        Span::new(self.source, index, index + 1)
    }

    /// Records that something is wrong at a place known already.
    pub(super) fn fail_at(&mut self, span: Span, message: impl Into<String>) {
        self.faults.push(Diag::error(span, message));
    }

    /// As [`Places::fail_at`] of the file as a whole, with what to do.
    pub(super) fn fail_file(&mut self, message: impl Into<String>, help: Option<String>) {
        let diag = Diag::error(self.file(), message);
        self.faults.push(match help {
            Some(help) => diag.help(help),
            None => diag,
        });
    }

    /// Records that something is wrong at a new place.
    pub(super) fn fail(&mut self, path: impl Into<String>, message: impl Into<String>) {
        let span = self.add(path);
        self.fail_at(span, message);
    }

    /// Hands the places to the source map, so that spans can be shown, and gives the errors.
    pub(super) fn publish(self, sources: &mut SourceMap) -> Faults {
        if let Some(source) = sources.get_mut(self.source) {
            source.kind = SourceKind::Nodes(self.paths);
        }
        self.faults
    }
}
