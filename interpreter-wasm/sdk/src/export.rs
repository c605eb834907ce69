//! What makes a crate a module.

/// Makes the crate a module of several kinds.
///
/// Each kind carries `#[interpreter(.., export = false)]`, because otherwise each of them would be a module of its own;
/// then, once, at the root of the crate:
///
/// ```
/// # use popcell_sdk::prelude::*;
/// # struct Widget;
/// # #[interpreter(api_version = "example.io/v1", kind = "Widget", export = false)]
/// # impl Interpreter for Widget {}
/// # struct Gadget;
/// # #[interpreter(api_version = "example.io/v1", kind = "Gadget", export = false)]
/// # impl Interpreter for Gadget {}
/// export_interpreters!(Widget, Gadget);
/// # fn main() { assert_eq!(module().targets.len(), 2); }
/// ```
///
/// It defines `pub fn module() -> popcell_sdk::ModuleDef` for tests and, in WebAssembly, the exports of the component.
#[macro_export]
macro_rules! export_interpreters {
    ($($kind:ty),+ $(,)?) => {
        /// The module as data, for tests.
        pub fn module() -> $crate::ModuleDef {
            const TARGETS: &[$crate::module::TargetDef] = &[$(<$kind as $crate::module::Kind>::TARGET),+];
            $crate::ModuleDef { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION"), targets: TARGETS }
        }
        $crate::export_component!(module);
    };
}

/// Exports the module that the function returns; nothing outside WebAssembly.
#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
#[macro_export]
macro_rules! export_component {
    ($module:path) => {};
}
