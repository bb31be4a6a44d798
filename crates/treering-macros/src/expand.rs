//! The function that takes the place of the one that was marked.

use std::str::FromStr as _;

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

use crate::function::{Function, is_punct};
use crate::option::Options;

/// The same function, which enters a place of its own first.
pub(crate) fn instrumented(function: Function, options: Options) -> TokenStream {
    let (attributes, body) = split_attributes(function.body.stream());
    let enter = if options.leaf.is_some() { ".enter_leaf();" } else { ".enter();" };
    let site = site(&function, options);
    let inside = match function.is_async {
        false => entered(site, enter, body),
        true => instrumented_future(site, function.returned, body),
    };
    let mut new_body = Group::new(Delimiter::Brace, attributes.into_iter().chain(inside).collect());
    new_body.set_span(function.body.span());
    function.head.into_iter().chain([new_body.into()]).collect()
}

/// `let _scope = SITE.enter();` and the body.
fn entered(site: TokenStream, enter: &str, body: TokenStream) -> TokenStream {
    let mut tokens = made("let _scope =");
    tokens.extend(site);
    tokens.extend(made(enter));
    tokens.extend(body);
    tokens
}

/// `SITE.instrument(async move { body }).await`. The type that is returned is said once more in
/// a branch that is never taken, since `?` in a block cannot infer it.
fn instrumented_future(
    site: TokenStream,
    returned: Option<Vec<TokenTree>>,
    body: TokenStream,
) -> TokenStream {
    let mut inside = TokenStream::new();
    if let Some(returned) = returned {
        let mut hint = made("return ::core::option::Option::<");
        hint.extend(returned);
        hint.extend(made(">::None.unwrap();"));
        inside.extend(made("if false"));
        inside.extend([TokenTree::from(Group::new(Delimiter::Brace, hint))]);
    }
    inside.extend(body);
    let mut future = made("async move");
    future.extend([TokenTree::from(Group::new(Delimiter::Brace, inside))]);
    let mut tokens = site;
    tokens.extend(made(".instrument"));
    tokens.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, future))]);
    tokens.extend(made(".await"));
    tokens
}

/// `::treering_runtime::site!(name, timed_one_in = ..)`, standing where the function's name stands,
/// so that `line!()` tells its line and not that of the attribute.
///
/// The name of a method is asked of the compiler, `method_site!(timed_one_in = ..)`: its type is not
/// among what an attribute sees.
fn site(function: &Function, options: Options) -> TokenStream {
    let name = &function.name;
    let is_method = function.is_method && options.name.is_none();
    let mut arguments = match options.name {
        None if is_method => TokenStream::new(),
        given => given.unwrap_or_else(|| path_of(name)),
    };
    if let Some(calls) = options.timed_one_in {
        arguments.extend(made(if is_method { "timed_one_in =" } else { ", timed_one_in =" }));
        arguments.extend(calls);
    }
    let span = name.span();
    let mut group = Group::new(Delimiter::Parenthesis, arguments);
    group.set_span(span);
    let mut mark = Punct::new('!', Spacing::Alone);
    mark.set_span(span);
    let made_by = if is_method { "method_site" } else { "site" };
    path(&["treering_runtime", made_by], span).chain([mark.into(), group.into()]).collect()
}

/// `concat!(module_path!(), "::", "name")`.
fn path_of(name: &Ident) -> TokenStream {
    let name = name.to_string();
    let name = name.strip_prefix("r#").unwrap_or(&name);
    made(&format!("::core::concat!(::core::module_path!(), \"::\", {})", Literal::string(name)))
}

/// A path from the root, such as `::core::concat`.
pub(crate) fn path(words: &[&str], span: Span) -> impl Iterator<Item = TokenTree> {
    let tokens: Vec<TokenTree> = words
        .iter()
        .flat_map(|word| {
            let mut colons = [Punct::new(':', Spacing::Joint), Punct::new(':', Spacing::Alone)];
            colons.iter_mut().for_each(|colon| colon.set_span(span));
            let [first, second] = colons;
            [first.into(), second.into(), Ident::new(word, span).into()]
        })
        .collect();
    tokens.into_iter()
}

/// Tokens of our own, whose local names the program cannot meet.
fn made(text: &str) -> TokenStream {
    // The texts are those above; all are made of whole tokens.
    let tokens = TokenStream::from_str(text).unwrap_or_default();
    respanned(tokens, Span::mixed_site())
}

fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    let respan = |mut token: TokenTree| {
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), respanned(group.stream(), span)).into();
        }
        token.set_span(span);
        token
    };
    tokens.into_iter().map(respan).collect()
}

/// The inner attributes (`#![..]`), which have to come first in a body, and the rest.
fn split_attributes(body: TokenStream) -> (TokenStream, TokenStream) {
    let tokens: Vec<TokenTree> = body.into_iter().collect();
    let mut end = 0;
    while let [hash, mark, ..] = &tokens[end..] {
        if !(is_punct(hash, '#') && is_punct(mark, '!') && tokens.len() > end + 2) {
            break;
        }
        end += 3;
    }
    let rest = tokens[end..].to_vec();
    (tokens.into_iter().take(end).collect(), rest.into_iter().collect())
}
