//! Turns a module crate into a WebAssembly component.
