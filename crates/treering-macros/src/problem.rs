//! Errors for wrong uses of the attribute.

use proc_macro::{Delimiter, Group, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

use crate::expand::path;

/// A sentence for the programmer and the place that it is about.
pub(crate) struct Problem {
    span: Span,
    sentence: String,
}

impl Problem {
    pub(crate) fn new(span: Span, sentence: impl Into<String>) -> Self {
        Self { span, sentence: sentence.into() }
    }

    /// An error of the compiler at the place.
    pub(crate) fn into_tokens(self) -> TokenStream {
        let text = TokenTree::from(Literal::string(&self.sentence));
        let text = Group::new(Delimiter::Brace, text.into());
        let mut tokens: Vec<TokenTree> = path(&["core", "compile_error"], self.span).collect();
        tokens.extend([Punct::new('!', Spacing::Alone).into(), text.into()]);
        tokens.iter_mut().for_each(|token| token.set_span(self.span));
        tokens.into_iter().collect()
    }
}
