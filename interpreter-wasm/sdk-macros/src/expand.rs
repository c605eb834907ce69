//! What the attribute makes of an implementation, and its arguments, on an implementation and on a method.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Ident, ImplItem, ItemImpl, Lit, MetaNameValue, Result, Token};

/// Methods of the trait and the operation behind each, in the order of the interface text.
const OPERATIONS: [(&str, &str); 8] = [
    ("replicas", "InterpretReplica"),
    ("components", "InterpretComponent"),
    ("revise", "ReviseReplica"),
    ("retain", "Retain"),
    ("aggregate", "AggregateStatus"),
    ("status", "InterpretStatus"),
    ("health", "InterpretHealth"),
    ("dependencies", "InterpretDependency"),
];

pub(crate) fn interpreter(arguments: &Arguments, mut item: ItemImpl) -> Result<TokenStream> {
    let is_ours = |path: &syn::Path| {
        path.segments
            .last()
            .is_some_and(|segment| segment.ident == "Interpreter")
    };
    if !item
        .trait_
        .as_ref()
        .is_some_and(|(not, path, _)| not.is_none() && is_ours(path))
    {
        let message = "#[interpreter] belongs on `impl Interpreter for ..`";
        return Err(syn::Error::new_spanned(&item.self_ty, message));
    }
    if !item.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &item.generics,
            "an interpreter of a kind cannot be generic",
        ));
    }
    let implemented = implemented(&mut item)?;
    let Arguments {
        group,
        version,
        kind,
        export,
    } = arguments;
    let ty = &item.self_ty;
    let export = export.then(|| {
        quote! {
            // A second definition of this name means: several kinds in one crate. Write `export = false` on each and
            // `export_interpreters!(A, B);` once.
            #[doc(hidden)]
            #[allow(non_camel_case_types, dead_code)]
            enum several_kinds_need_export_false_and_one_export_interpreters {}
            ::popcell_sdk::export_interpreters!(#ty);
        }
    });
    Ok(quote! {
        #item

        impl ::popcell_sdk::module::Kind for #ty {
            const TARGET: ::popcell_sdk::module::TargetDef = ::popcell_sdk::module::TargetDef {
                group: #group,
                version: #version,
                kind: #kind,
                operations: &[#(#implemented),*],
                functions: ::popcell_sdk::module::Functions::of::<#ty>(),
            };
        }

        #export
    })
}

/// The operations that are written, in the order of the interface text.
fn implemented(item: &mut ItemImpl) -> Result<Vec<TokenStream>> {
    let mut written = Vec::new();
    for member in &mut item.items {
        if let ImplItem::Fn(function) = member {
            let register = take_register(&mut function.attrs)?;
            written.push((position(&function.sig.ident)?, register));
        }
    }
    written.sort_unstable();
    Ok(written
        .into_iter()
        .filter_map(|(position, register)| {
            let (_, operation) = OPERATIONS.get(position)?;
            let operation = format_ident!("{operation}");
            Some(quote! {
                ::popcell_sdk::types::Implemented { operation: ::popcell_sdk::Operation::#operation, register: #register }
            })
        })
        .collect())
}

fn position(method: &Ident) -> Result<usize> {
    OPERATIONS.iter().position(|(name, _)| method == name).ok_or_else(|| {
        let names = OPERATIONS.map(|(name, _)| name).join(", ");
        syn::Error::new_spanned(method, format!("`{method}` is no operation: expected one of {names}"))
    })
}

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
fn take_register(attributes: &mut Vec<Attribute>) -> Result<bool> {
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

#[cfg(test)]
mod tests;
