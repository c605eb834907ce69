//! The `#[interpreter]` attribute.
