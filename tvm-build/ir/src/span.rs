//! Source locations. A [`Span`] is three integers; what they mean is known by the [`SourceMap`].

/// Index of a source in a [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourceId(pub u32);

/// A range of a source: bytes of a text, tokens of a macro, or nodes of a model graph.
///
/// Spans never take part in equality or hashing of IR.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    /// The source the range lies in.
    pub source: SourceId,
    /// First byte, token or node.
    pub start: u32,
    /// One past the last byte, token or node.
    pub end: u32,
}

impl Span {
    /// No location: the thing was made by a pass.
    pub const NONE: Span = Span { source: SourceId(u32::MAX), start: 0, end: 0 };

    /// A range of a source.
    pub const fn new(source: SourceId, start: u32, end: u32) -> Span {
        Span { source, start, end }
    }

    /// Whether this is [`Span::NONE`].
    pub fn is_none(self) -> bool {
        self.source == Span::NONE.source
    }

    /// The smallest span that covers both; of two sources the first wins.
    pub fn to(self, other: Span) -> Span {
        if self.is_none() {
            return other;
        }
        if other.source != self.source {
            return self;
        }
        Span { source: self.source, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// This span, or `other` when this one is [`Span::NONE`].
    pub fn or(self, other: Span) -> Span {
        if self.is_none() { other } else { self }
    }
}

impl Default for Span {
    fn default() -> Self {
        Span::NONE
    }
}

/// What spans of one source point into.
#[derive(Clone, Debug)]
pub enum SourceKind {
    /// Text: spans are byte ranges; diagnostics print lines with carets.
    Text(String),
    /// Tokens of a Rust macro: the macro keeps the real spans and maps indices to them.
    Tokens,
    /// Nodes of a model graph: spans index the list of node paths.
    Nodes(Vec<String>),
}

/// One source: a file, a macro invocation, a model.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path or name as the user knows it.
    pub name: String,
    /// What its spans index.
    pub kind: SourceKind,
}

/// All sources of one compilation.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    sources: Vec<Source>,
}

impl SourceMap {
    /// Adds a source and gives its id.
    pub fn add(&mut self, name: impl Into<String>, kind: SourceKind) -> SourceId {
        let id = SourceId(u32::try_from(self.sources.len()).unwrap_or(u32::MAX - 1));
        self.sources.push(Source { name: name.into(), kind });
        id
    }

    /// The source of an id; `None` for [`Span::NONE`]'s.
    pub fn get(&self, id: SourceId) -> Option<&Source> {
        self.sources.get(id.0 as usize)
    }

    /// The source of an id, to add nodes to while a model is read.
    pub fn get_mut(&mut self, id: SourceId) -> Option<&mut Source> {
        self.sources.get_mut(id.0 as usize)
    }
}
