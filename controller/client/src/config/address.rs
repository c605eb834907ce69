//! Addresses of ports as Go programs write them, so that configuration made for upstream's operator holds here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// An address of this machine, or all of them, by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host(Option<IpAddr>);

/// A host and a port of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    host: Host,
    port: u16,
}

impl Host {
    /// A port of it.
    pub fn port(self, port: u16) -> Address {
        Address { host: self, port }
    }
}

impl FromStr for Host {
    type Err = String;

    /// Empty for every address, `localhost`, or an IP address with or without brackets. Other names are refused: which of
    /// its addresses a name stands for would be luck.
    fn from_str(text: &str) -> Result<Self, String> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        Ok(Self(match bare.unwrap_or(text) {
            "" => None,
            "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
            address => Some(address.parse().map_err(|_| {
                format!("\"{address}\" is no IP address: leave the host out to listen on every address, or give one")
            })?),
        }))
    }
}

impl Address {
    /// What is bound. `ipv6`: whether the system speaks it; then "every address" includes those of IPv4.
    pub fn socket(self, ipv6: bool) -> SocketAddr {
        let every = if ipv6 {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        };
        SocketAddr::new(self.host.0.unwrap_or(every), self.port)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no address with a port, such as :8081 or 127.0.0.1:8081");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        // `::1` without a port would read as host `:` and port 1.
        if host.contains(':') && !host.starts_with('[') {
            return Err(wrong());
        }
        let port = port.parse().map_err(|_| wrong())?;
        Ok(host.parse::<Host>()?.port(port))
    }
}

/// Whether a port is served, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listen {
    /// Written `0`.
    #[default]
    Off,
    /// It is.
    At(Address),
}

impl Listen {
    /// What is bound, if anything; see [`Address::socket`].
    pub fn socket(self, ipv6: bool) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(address.socket(ipv6)),
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self::Off);
        }
        text.parse()
            .map(Self::At)
            .map_err(|wrong: String| format!("{wrong}; 0 turns it off"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        for (text, with, without) in [
            (":8081", "[::]:8081", "0.0.0.0:8081"),
            ("0.0.0.0:80", "0.0.0.0:80", "0.0.0.0:80"),
            ("127.0.0.7:1", "127.0.0.7:1", "127.0.0.7:1"),
            ("localhost:1", "127.0.0.1:1", "127.0.0.1:1"),
            ("[::1]:9443", "[::1]:9443", "[::1]:9443"),
        ] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!(listen.socket(true), Some(with.parse().unwrap()), "{text}");
            assert_eq!(listen.socket(false), Some(without.parse().unwrap()), "{text}");
        }
        assert_eq!("0".parse::<Listen>().unwrap().socket(true), None);
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_fix() {
        for (text, fix) in [
            ("", "such as :8081"),
            ("8081", "such as :8081"),
            (":", "such as :8081"),
            (":70000", "such as :8081"),
            ("::1", "such as :8081"),
            ("web.example.com:80", "leave the host out"),
            ("[::1:80", "leave the host out"),
            ("8081", "0 turns it off"),
        ] {
            let message = text.parse::<Listen>().unwrap_err();
            assert!(message.contains(fix), "{text}: {message}");
        }
    }
}
