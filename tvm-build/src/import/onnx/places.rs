//! The places of a model, by which messages name what is at fault.

use tvm_ir::diag::{Diag, Diags};
use tvm_ir::span::{SourceId, SourceKind, SourceMap, Span};

/// Collects the places of one model and what is wrong at them.
#[derive(Debug)]
pub(super) struct Places {
    source: SourceId,
    paths: Vec<String>,
    /// What is wrong so far.
    pub(super) diags: Diags,
}

impl Places {
    /// Registers the model `name` as a source. Place 0 is the file as a whole.
    pub(super) fn new(name: &str, sources: &mut SourceMap) -> Places {
        let source = sources.add(name, SourceKind::Nodes(Vec::new()));
        Places { source, paths: vec![name.to_owned()], diags: Diags::new() }
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
        self.diags.push(Diag::error(span, message));
    }

    /// Records that something is wrong at a new place.
    pub(super) fn fail(&mut self, path: impl Into<String>, message: impl Into<String>) {
        let span = self.add(path);
        self.fail_at(span, message);
    }

    /// Hands the places to the source map, so that spans can be shown.
    pub(super) fn publish(&mut self, sources: &mut SourceMap) {
        if let Some(source) = sources.get_mut(self.source) {
            source.kind = SourceKind::Nodes(std::mem::take(&mut self.paths));
        }
    }
}
