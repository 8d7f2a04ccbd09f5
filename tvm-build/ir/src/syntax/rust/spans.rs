//! Spans of tokens: an IR span is a range of indices, its first and last entry are the ends of the node.

use crate::diag::Diags;
use crate::span::{SourceId, Span};
use proc_macro2::{TokenStream, TokenTree};

/// The tokens that spans of IR read from Rust point at.
#[derive(Default)]
pub struct TokenSpans {
    sources: Vec<(SourceId, Vec<proc_macro2::Span>, Vec<TokenStream>)>,
}

impl TokenSpans {
    /// Starts a source; nodes are added to it until the next call.
    pub(super) fn open(&mut self, source: SourceId) {
        self.sources.push((source, Vec::new(), Vec::new()));
    }

    /// The span of tokens, or of the macro when there are none.
    pub(super) fn add(&mut self, tokens: TokenStream) -> Span {
        let Some((source, spans, written)) = self.sources.last_mut() else { return Span::NONE };
        written.push(tokens.clone());
        let mut tokens = tokens.into_iter();
        let first = tokens.next();
        let last = tokens.last().or_else(|| first.clone());
        let at = u32::try_from(spans.len()).unwrap_or(u32::MAX - 2);
        spans.push(first.map_or_else(proc_macro2::Span::call_site, first_of));
        spans.push(last.map_or_else(proc_macro2::Span::call_site, last_of));
        Span::new(*source, at, at.saturating_add(2))
    }

    /// The first and the last token of a span.
    pub fn get(&self, span: Span) -> Option<(proc_macro2::Span, proc_macro2::Span)> {
        let (_, spans, _) = self.sources.iter().find(|(s, ..)| *s == span.source)?;
        let at = |i: u32| spans.get(usize::try_from(i).ok()?).copied();
        Some((at(span.start)?, at(span.end.checked_sub(1)?)?))
    }

    /// Diagnostics whose places are ranges of `text`, the file that the tokens were parsed from.
    pub fn in_text(&self, mut diags: Diags, text: SourceId) -> Diags {
        for label in diags.0.iter_mut().flat_map(|d| &mut d.labels) {
            let place = self.get(label.span).map(|(first, last)| text_span(text, first, last));
            label.span = place.unwrap_or(Span::new(text, 0, 0));
        }
        diags
    }

    /// The tokens of the node that a span is of.
    pub fn tokens(&self, span: Span) -> Option<&TokenStream> {
        let (_, _, written) = self.sources.iter().find(|(s, ..)| *s == span.source)?;
        // Two entries a node.
        written.get(usize::try_from(span.start / 2).ok()?).filter(|_| span.end == span.start + 2)
    }

    /// The bytes of a span in the text that was parsed, which is this source.
    #[cfg(test)]
    pub(in crate::syntax) fn text_span(&self, span: Span, source: SourceId) -> Span {
        self.get(span).map_or(Span::NONE, |(first, last)| text_span(source, first, last))
    }
}

fn first_of(t: TokenTree) -> proc_macro2::Span {
    match t {
        TokenTree::Group(g) => g.span_open(),
        other => other.span(),
    }
}

fn last_of(t: TokenTree) -> proc_macro2::Span {
    match t {
        TokenTree::Group(g) => g.span_close(),
        other => other.span(),
    }
}

/// The bytes of a text from one token to another; the text must be the one that was parsed.
pub fn text_span(source: SourceId, first: proc_macro2::Span, last: proc_macro2::Span) -> Span {
    let at = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Span::new(source, at(first.byte_range().start), at(last.byte_range().end))
}
