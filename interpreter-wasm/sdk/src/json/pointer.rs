//! JSON pointers (RFC 6901).

use std::borrow::Cow;

use crate::{Error, Result};

/// The unescaped tokens of a pointer, each with the pointer to what contains it.
pub(super) fn tokens(pointer: &str) -> Result<impl Iterator<Item = (&str, Cow<'_, str>)>> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(Error::failed(format!(
            "{pointer:?} is not a JSON pointer: it has to start with a slash"
        )));
    }
    let mut parent_end = 0;
    Ok(pointer.split('/').skip(1).map(move |token| {
        let parent = pointer.get(..parent_end).unwrap_or_default();
        parent_end += token.len() + 1;
        (parent, unescape(token))
    }))
}

/// A token as text: `~1` is a slash, `~0` a tilde.
pub(crate) fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') {
        Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(token)
    }
}

/// Appends a slash and the token for `key`.
pub(crate) fn push(path: &mut String, key: &str) {
    path.push('/');
    for part in key.chars() {
        match part {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            plain => path.push(plain),
        }
    }
}

/// An array index: digits without leading zeros.
pub(super) fn index(token: &str) -> Option<usize> {
    let plain = token.bytes().all(|byte| byte.is_ascii_digit()) && (token.len() == 1 || !token.starts_with('0'));
    if plain { token.parse().ok() } else { None }
}
