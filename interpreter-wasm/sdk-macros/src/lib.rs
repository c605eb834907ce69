//! The `#[interpreter]` attribute of popcell-sdk.

#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;
use syn::{ItemImpl, parse_macro_input};

/// Makes an implementation of `Interpreter` the interpreter of a kind.
///
/// ```ignore
/// #[interpreter(api_version = "example.io/v1", kind = "Widget")]
/// impl Interpreter for Widget {
///     fn health(widget: &Object) -> Result<bool> { .. }
///
///     #[interpreter(register = false)]
///     fn revise(widget: &mut Object, replicas: i32) -> Result<()> { .. }
/// }
/// ```
///
/// - The operations that are written are described to the host; the others are not, and answer "unsupported".
/// - `#[interpreter(register = false)]` on a method: implemented, but no part of the webhook's rules unless the operator
///   asks for it.
/// - The attribute also makes the crate a module: it defines `pub fn module()` and the exports of the component. So it
///   stands at the root of the crate. A crate with several kinds writes `export = false` on each and, once,
///   `export_interpreters!(A, B);` at its root.
#[proc_macro_attribute]
pub fn interpreter(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as expand::Arguments);
    let item = parse_macro_input!(item as ItemImpl);
    expand::interpreter(&arguments, item)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
