//! The arguments of the attribute, on an implementation and on a method.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, MetaNameValue, Result, Token};

/// `api_version = "group/version", kind = "Kind"[, export = false]`.
pub(crate) struct Arguments {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) export: bool,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (mut api_version, mut kind, mut export) = (None, None, None);
        for argument in Punctuated::<MetaNameValue, Token![,]>::parse_terminated(input)? {
            match argument.path.get_ident().map(ToString::to_string).as_deref() {
                Some("api_version") => once(&mut api_version, text(&argument)?, &argument)?,
                Some("kind") => once(&mut kind, text(&argument)?, &argument)?,
                Some("export") => once(&mut export, boolean(&argument)?, &argument)?,
                Some("register") => {
                    let message = "`register` belongs on a method: #[interpreter(register = false)] fn revise(..)";
                    return Err(syn::Error::new_spanned(&argument.path, message));
                }
                _ => {
                    let message = "unknown argument: expected `api_version`, `kind` or `export`";
                    return Err(syn::Error::new_spanned(&argument.path, message));
                }
            }
        }
        let missing = |name: &str| {
            let message = format!(
                "`{name}` is missing: expected #[interpreter(api_version = \"group/version\", kind = \"Kind\")]"
            );
            syn::Error::new(Span::call_site(), message)
        };
        let (api_version, api_version_span) = api_version.ok_or_else(|| missing("api_version"))?;
        let (kind, kind_span) = kind.ok_or_else(|| missing("kind"))?;
        if kind.is_empty() || !kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(syn::Error::new(
                kind_span,
                "`kind` has to be a name such as \"Deployment\"",
            ));
        }
        let (group, version) = split(&api_version).ok_or_else(|| {
            syn::Error::new(
                api_version_span,
                "`api_version` has to be \"group/version\", or \"version\" for the core group",
            )
        })?;
        Ok(Self {
            group,
            version,
            kind,
            export: export.unwrap_or(true),
        })
    }
}

/// Whether a method is to be registered, from its `#[interpreter(register = ..)]`, which is taken away.
pub(crate) fn take_register(attributes: &mut Vec<Attribute>) -> Result<bool> {
    let mut register = None;
    let is_ours = |attribute: &Attribute| attribute.path().is_ident("interpreter");
    for attribute in attributes.iter().filter(|attribute| is_ours(attribute)) {
        for argument in attribute.parse_args_with(Punctuated::<MetaNameValue, Token![,]>::parse_terminated)? {
            if !argument.path.is_ident("register") {
                let message = "unknown argument on a method: expected `register`";
                return Err(syn::Error::new_spanned(&argument.path, message));
            }
            once(&mut register, boolean(&argument)?, &argument)?;
        }
    }
    attributes.retain(|attribute| !is_ours(attribute));
    Ok(register.unwrap_or(true))
}

fn split(api_version: &str) -> Option<(String, String)> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_group = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'.' || byte == b'-';
    let is_version = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let has_group = api_version.contains('/');
    let valid = group.is_empty() != has_group
        && group.bytes().all(is_group)
        && !version.is_empty()
        && version.bytes().all(is_version);
    valid.then(|| (group.to_owned(), version.to_owned()))
}

fn once<T>(slot: &mut Option<T>, value: T, argument: &MetaNameValue) -> Result<()> {
    if slot.replace(value).is_some() {
        return Err(syn::Error::new_spanned(&argument.path, "given twice"));
    }
    Ok(())
}

fn text(argument: &MetaNameValue) -> Result<(String, Span)> {
    match &argument.value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text), ..
        }) => Ok((text.value(), text.span())),
        other => Err(syn::Error::new_spanned(other, "expected a text in quotes")),
    }
}

fn boolean(argument: &MetaNameValue) -> Result<bool> {
    match &argument.value {
        Expr::Lit(ExprLit {
            lit: Lit::Bool(value), ..
        }) => Ok(value.value),
        other => Err(syn::Error::new_spanned(other, "expected true or false")),
    }
}
