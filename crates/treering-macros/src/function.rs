//! The parts of a function, found without understanding them: Rust reference, "Functions".

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::option::Options;
use crate::problem::Problem;

/// A function with a body.
pub(crate) struct Function {
    /// Everything in front of the body.
    pub(crate) head: Vec<TokenTree>,
    pub(crate) name: Ident,
    pub(crate) is_async: bool,
    /// Whether it surely is one of a type or trait: it says `self` or `Self`.
    pub(crate) is_method: bool,
    /// The type that it returns, where that can be written in a body.
    pub(crate) returned: Option<Vec<TokenTree>>,
    pub(crate) body: Group,
}

impl Function {
    /// The function with its options, where they go together.
    pub(crate) fn fitting(self, options: Options) -> Result<(Options, Self), Problem> {
        match options.leaf {
            Some(place) if self.is_async => Err(Problem::new(
                place,
                "an `async fn` cannot be a `leaf`: it waits, and others run meanwhile",
            )),
            _ => Ok((options, self)),
        }
    }
}

pub(crate) fn parse(item: TokenStream) -> Result<Function, Problem> {
    let mut head = opened(item);
    let (name_at, is_async) = find_name(&head)?;
    let TokenTree::Ident(name) = head[name_at].clone() else {
        return Err(Problem::new(head[name_at].span(), "expected the function's name"));
    };
    let Some(body) = head.pop().and_then(block) else {
        return Err(Problem::new(name.span(), "a function without a body cannot be instrumented"));
    };
    let returned = returned_type(&head[name_at + 1..]);
    let is_method = head[name_at + 1..].iter().any(names_self)
        || body.stream().into_iter().any(|token| names_self(&token));
    Ok(Function { head, name, is_async, is_method, returned, body })
}

/// Whether `self` or `Self` stands in a token. Functions in the body may say so for themselves, if there
/// are any, which is of no harm: then the name has all that the compiler calls it by.
fn names_self(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.stream().into_iter().any(|token| names_self(&token)),
        token => is_word(token, "self") || is_word(token, "Self"),
    }
}

/// The tokens, with those that another macro has kept together as a visibility taken apart.
fn opened(item: TokenStream) -> Vec<TokenTree> {
    let mut tokens = Vec::new();
    let mut has_begun = false;
    for token in item {
        match token {
            TokenTree::Group(group) if !has_begun && group.delimiter() == Delimiter::None => {
                tokens.extend(group.stream());
            }
            token => {
                has_begun |= is_word(&token, "fn");
                tokens.push(token);
            }
        }
    }
    tokens
}

/// Where the name stands, and whether the function is `async`.
fn find_name(head: &[TokenTree]) -> Result<(usize, bool), Problem> {
    let mut is_async = false;
    let mut at = 0;
    while let Some(token) = head.get(at) {
        let next_is = |test: fn(&TokenTree) -> bool| usize::from(head.get(at + 1).is_some_and(test));
        at += match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => 1 + next_is(is_group),
            TokenTree::Ident(word) => match word.to_string().as_str() {
                "pub" => 1 + next_is(is_group),
                "extern" => 1 + next_is(|next| matches!(next, TokenTree::Literal(_))),
                "unsafe" | "safe" | "default" => 1,
                "async" => {
                    is_async = true;
                    1
                }
                "const" if is_before_fn(&head[at + 1..]) => {
                    let sentence = "a `const fn` may run in the compiler, so it cannot be instrumented";
                    return Err(Problem::new(word.span(), sentence));
                }
                "fn" if head.len() > at + 1 => return Ok((at + 1, is_async)),
                _ => break,
            },
            _ => break,
        };
    }
    let span = head.get(at).or(head.last()).map_or_else(Span::call_site, TokenTree::span);
    Err(Problem::new(span, "only functions can be instrumented"))
}

/// Whether more words of a function's head follow, rather than the name of a constant.
fn is_before_fn(rest: &[TokenTree]) -> bool {
    let words = ["fn", "async", "unsafe", "extern"];
    rest.first().is_some_and(|next| words.iter().any(|word| is_word(next, word)))
}

/// The body, which another macro may have kept together as a block.
fn block(token: TokenTree) -> Option<Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let mut inner = group.stream().into_iter();
            inner.next().and_then(block).filter(|_| inner.next().is_none())
        }
        _ => None,
    }
}

/// The type behind the arrow, up to `where`. None where there is no arrow, and for `!` and
/// `impl Trait`, which a body cannot name.
fn returned_type(behind_name: &[TokenTree]) -> Option<Vec<TokenTree>> {
    let parameters = outside_angles(behind_name)
        .find(|(_, token)| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis))?
        .0;
    let arrow = behind_name.get(parameters + 1..parameters + 3)?;
    if !(is_punct(&arrow[0], '-') && is_punct(&arrow[1], '>')) {
        return None;
    }
    let behind = &behind_name[parameters + 3..];
    let end = behind.iter().position(|token| is_word(token, "where")).unwrap_or(behind.len());
    let returned = &behind[..end];
    let is_named =
        !returned.iter().any(is_opaque) && !returned.first().is_some_and(|token| is_punct(token, '!'));
    is_named.then(|| returned.to_vec())
}

/// The tokens that stand in no `<...>`, with their places. The `>` of an arrow closes nothing.
fn outside_angles(tokens: &[TokenTree]) -> impl Iterator<Item = (usize, &TokenTree)> {
    let mut depth = 0_usize;
    tokens.iter().enumerate().filter(move |&(at, token)| {
        let is_arrow = at > 0 && is_punct(&tokens[at - 1], '-');
        if is_punct(token, '<') {
            depth += 1;
        } else if is_punct(token, '>') && !is_arrow {
            depth = depth.saturating_sub(1);
        }
        depth == 0
    })
}

fn is_opaque(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.stream().into_iter().any(|inner| is_opaque(&inner)),
        token => is_word(token, "impl"),
    }
}

fn is_group(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(_))
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}

pub(crate) fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}
