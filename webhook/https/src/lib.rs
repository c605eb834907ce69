//! TLS listener: certificates, reload, limits, graceful stop.
