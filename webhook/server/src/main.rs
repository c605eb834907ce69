//! Webhook.
fn main() {}
