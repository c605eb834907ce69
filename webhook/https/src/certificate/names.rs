//! Names in certificates and names that clients use.

use std::net::IpAddr;

/// Whether one of `certified` (subject alternative names; a DNS name may start with `*.`) covers `wanted`.
pub(crate) fn covers(certified: &[String], wanted: &str) -> bool {
    certified.iter().any(|name| matches(name, wanted))
}

fn matches(certified: &str, wanted: &str) -> bool {
    if let (Ok(one), Ok(other)) = (certified.parse::<IpAddr>(), wanted.parse::<IpAddr>()) {
        return one == other;
    }
    if certified.eq_ignore_ascii_case(wanted) {
        return true;
    }
    // RFC 6125 section 6.4.3: a wildcard stands for exactly one label, the leftmost.
    let Some(parent) = certified.strip_prefix("*.") else {
        return false;
    };
    wanted
        .split_once('.')
        .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(parent))
}

#[cfg(test)]
mod tests {
    use super::covers;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn dns_names_ignore_case() {
        assert!(covers(&names(&["Webhook.popcell.svc"]), "webhook.popcell.svc"));
        assert!(!covers(&names(&["webhook.popcell.svc"]), "webhook.popcell"));
    }

    #[test]
    fn a_wildcard_is_one_label() {
        let wild = names(&["*.example.com"]);
        assert!(covers(&wild, "a.example.com"));
        assert!(covers(&wild, "*.example.com"));
        assert!(!covers(&wild, "a.b.example.com"));
        assert!(!covers(&wild, "example.com"));
        assert!(!covers(&wild, ".example.com"));
    }

    #[test]
    fn addresses_compare_by_value() {
        assert!(covers(&names(&["::1"]), "0:0:0:0:0:0:0:1"));
        assert!(!covers(&names(&["127.0.0.1"]), "127.0.0.2"));
    }
}
