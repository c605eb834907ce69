//! What the author of an interpreter module depends on.
