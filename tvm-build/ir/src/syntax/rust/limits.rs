//! Bounds on what syn is given: its parser recurses, and a stack that overflows is no error message.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Deepest nesting of brackets.
const MAX_BRACKETS: usize = 128;
/// Most operators of one expression, and most branches of one conditional, within the same brackets.
const MAX_OPERATORS: usize = 512;

/// Keywords that an expression or type may follow.
const OPENERS: &[&str] = &[
    "as", "async", "await", "box", "break", "const", "dyn", "for", "if", "impl", "in", "match", "move", "mut", "ref",
    "return", "unsafe", "while", "yield",
];

/// Errors, at the token where it begins, on what is nested more deeply than any module is.
pub(super) fn check(tokens: TokenStream) -> syn::Result<()> {
    let mut stack = vec![Level::new(tokens)];
    while let Some(top) = stack.last_mut() {
        let Some(token) = top.tokens.next() else {
            stack.pop();
            continue;
        };
        if top.count(&token) > MAX_OPERATORS {
            let message = format!("more than {MAX_OPERATORS} operators in one expression: bind parts of it to names");
            return Err(syn::Error::new(token.span(), message));
        }
        if let TokenTree::Group(g) = token {
            if stack.len() > MAX_BRACKETS {
                let message = format!("brackets are nested more than {MAX_BRACKETS} levels deep");
                return Err(syn::Error::new(g.span_open(), message));
            }
            stack.push(Level::new(g.stream()));
        }
    }
    Ok(())
}

/// The tokens between two brackets.
struct Level {
    tokens: proc_macro2::token_stream::IntoIter,
    operators: usize,
    branches: usize,
}

impl Level {
    fn new(tokens: TokenStream) -> Level {
        Level { tokens: tokens.into_iter(), operators: 0, branches: 0 }
    }

    /// Counts a token; gives what the expression holds so far.
    fn count(&mut self, token: &TokenTree) -> usize {
        match token {
            TokenTree::Punct(p) if matches!(p.as_char(), ',' | ';') => (self.operators, self.branches) = (0, 0),
            // Paths may be as long as they like: they are no trees.
            TokenTree::Punct(p) => self.operators += usize::from(p.as_char() != ':'),
            TokenTree::Ident(i) if *i == "else" => self.branches += 1,
            // Items and statements follow each other without a separator.
            TokenTree::Ident(i) if *i == "fn" || *i == "mod" || *i == "let" => (self.operators, self.branches) = (0, 0),
            TokenTree::Group(g) if g.delimiter() == Delimiter::Brace => self.operators = 0,
            // `f(x)(y)(z)`, `a[i][j]`
            TokenTree::Group(_) => self.operators += 1,
            TokenTree::Ident(i) => self.operators += usize::from(OPENERS.iter().any(|w| i == w)),
            TokenTree::Literal(_) => {}
        }
        self.operators.max(self.branches)
    }
}
