//! Types and calls generated from `wit/`.
#![allow(missing_docs, unreachable_pub, reason = "generated from documented text")]
#![allow(clippy::pedantic, reason = "generated")]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "interpreter",
    // Objects are handed to the guest from the request's buffer, without a copy in between.
    ownership: Borrowing { duplicate_if_necessary: true },
});

pub(crate) use exports::popcell::interpreter::operations as wit;
