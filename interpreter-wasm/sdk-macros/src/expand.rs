//! What the attribute makes of an implementation.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, ImplItem, ItemImpl, Result};

use crate::attribute::{self, Arguments};

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
            let register = attribute::take_register(&mut function.attrs)?;
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

#[cfg(test)]
mod tests;
