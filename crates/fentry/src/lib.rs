//! `#[fentry]`: the function-entry hook of the simulated kernel.
//!
//! A real kernel can be profiled because every function has an address. Ours can be profiled because every mirrored
//! function that costs time carries this attribute: on entry it pushes the function's name on the stack of the CPU
//! that executes it and pays its straight-line price, on exit it pops it. The body stays free of any word about cost
//! (see `docs/decisions/0001-fentry.md`).
//!
//! It applies to methods of `sched::Sched` (anything with `enter(Path)` and `leave()` methods). The `Path` variant is
//! the function's own name, verbatim; `#[fentry(other_name)]` names another one.

use proc_macro::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

/// Wraps a method's body in `self.enter(Path::<name>)` and `self.leave()`, early returns included.
///
/// The body becomes a block that `return` leaves, never the hook; where it has a `?`, a closure called at once. (A closure is a function of
/// its own, which is not inlined where the method is.) Works on methods that take `&mut self`; a compile error says so otherwise. A
/// `return` of a closure in the body would leave the body: the compiler refuses that.
#[proc_macro_attribute]
pub fn fentry(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    let name = match attribute.into_iter().next() {
        Some(TokenTree::Ident(path)) => path.to_string(),
        _ => match function_name(&tokens) {
            Some(name) => name,
            None => return error("#[fentry] goes on a function"),
        },
    };
    let Some((TokenTree::Group(body), signature)) = tokens.split_last() else {
        return error("#[fentry] goes on a function with a body");
    };
    if body.delimiter() != Delimiter::Brace {
        return error("#[fentry] goes on a function with a body");
    }
    let (called, body) = match has_question_mark(body.stream()) {
        true => ("(|| __BODY__)()", body.clone()),
        false => ("'body: __BODY__", with_breaks(body)),
    };
    let wrapped = format!(
        "{{ self.enter(crate::access::Path::{name}); #[allow(clippy::redundant_closure_call)] \
         let value = {called}; self.leave(); value }}"
    );
    let wrapped: TokenStream = wrapped.parse().expect("the wrapper is Rust");
    let wrapped = substitute(wrapped, &body);
    signature.iter().cloned().chain(wrapped).collect()
}

fn has_question_mark(stream: TokenStream) -> bool {
    stream.into_iter().any(|tree| match tree {
        TokenTree::Group(group) => has_question_mark(group.stream()),
        TokenTree::Punct(punct) => punct.as_char() == '?',
        _ => false,
    })
}

/// The same with `break 'body` for each `return`.
fn with_breaks(group: &Group) -> Group {
    let mut stream = Vec::new();
    for tree in group.stream() {
        match tree {
            TokenTree::Ident(ref ident) if ident.to_string() == "return" => stream.extend([
                TokenTree::Ident(Ident::new("break", ident.span())),
                TokenTree::Punct(Punct::new('\'', Spacing::Joint)),
                TokenTree::Ident(Ident::new("body", Span::call_site())),
            ]),
            TokenTree::Group(inner) => stream.push(TokenTree::Group(with_breaks(&inner))),
            other => stream.push(other),
        }
    }
    let mut same = Group::new(group.delimiter(), stream.into_iter().collect());
    same.set_span(group.span());
    same
}

/// The identifier after `fn`.
fn function_name(tokens: &[TokenTree]) -> Option<String> {
    let at = tokens.iter().position(|t| matches!(t, TokenTree::Ident(i) if i.to_string() == "fn"))?;
    tokens.get(at + 1).map(ToString::to_string)
}

/// Puts the original body where the placeholder stands, with its own spans, so that errors point at the source.
fn substitute(stream: TokenStream, body: &Group) -> TokenStream {
    stream
        .into_iter()
        .map(|tree| match tree {
            TokenTree::Ident(ref i) if i.to_string() == "__BODY__" => TokenTree::Group(body.clone()),
            TokenTree::Group(g) => {
                let mut inner = Group::new(g.delimiter(), substitute(g.stream(), body));
                inner.set_span(g.span());
                TokenTree::Group(inner)
            }
            other => other,
        })
        .collect()
}

fn error(message: &str) -> TokenStream {
    format!("compile_error!({message:?});").parse().expect("a compile error is Rust")
}
