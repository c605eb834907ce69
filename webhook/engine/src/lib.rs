//! Runs interpreter modules: a component in, typed calls out.
