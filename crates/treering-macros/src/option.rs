//! The options in the parentheses of the attribute.

use proc_macro::{Ident, Span, TokenStream, TokenTree};

use crate::problem::Problem;

/// The options that were given, as tokens of expressions.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<TokenStream>,
    pub(crate) timed_one_in: Option<TokenStream>,
    /// Where `leaf` stands.
    pub(crate) leaf: Option<Span>,
}

pub(crate) fn parse(arguments: TokenStream) -> Result<Options, Problem> {
    let mut options = Options::default();
    let mut tokens = arguments.into_iter();
    while let Some(first) = tokens.next() {
        let TokenTree::Ident(key) = first else {
            return Err(Problem::new(first.span(), "expected the name of an option"));
        };
        let next = tokens.next();
        if key.to_string() == "leaf" {
            if let Some(token) = next.filter(|token| !is_comma(token)) {
                return Err(Problem::new(token.span(), "`leaf` has no value"));
            }
            options.leaf = Some(key.span());
            continue;
        }
        match next {
            Some(TokenTree::Punct(punct)) if punct.as_char() == '=' => {}
            other => {
                return Err(Problem::new(place(other.as_ref(), &key), format!("expected `{key} = ...`")));
            }
        }
        let value: TokenStream = tokens.by_ref().take_while(|token| !is_comma(token)).collect();
        if value.is_empty() {
            return Err(Problem::new(key.span(), format!("`{key}` has no value")));
        }
        let wanted = match key.to_string().as_str() {
            "name" => &mut options.name,
            "timed_one_in" => &mut options.timed_one_in,
            _ => {
                let sentence = format!("unknown option `{key}`; there are `name`, `timed_one_in` and `leaf`");
                return Err(Problem::new(key.span(), sentence));
            }
        };
        if wanted.replace(value).is_some() {
            return Err(Problem::new(key.span(), format!("`{key}` is given twice")));
        }
    }
    Ok(options)
}

fn is_comma(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')
}

fn place(found: Option<&TokenTree>, key: &Ident) -> Span {
    found.map_or(key.span(), TokenTree::span)
}
