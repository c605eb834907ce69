//! ResourceInterpreterContext: requests in, answers out.
