//! Addresses and ports for programs that tests start.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};

/// A loopback address on which nobody listens on these ports. All of 127.0.0.0/8 is ours on Linux, so ports can be fixed
/// and stay the same over restarts. No other call in this process answers the same.
pub(crate) fn free_address(ports: &[u16]) -> Result<Ipv4Addr> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..100 {
        let number = std::process::id()
            .wrapping_mul(64)
            .wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
        let [_, second, third, fourth] = number.to_be_bytes();
        // Numbers of a network and of a broadcast are nobody's address; moving them would give one address twice.
        if matches!(fourth, 0 | 255) {
            continue;
        }
        // 127.0.x.y is where others listen.
        let address = Ipv4Addr::new(127, second | 128, third, fourth);
        if ports.iter().all(|port| TcpListener::bind((address, *port)).is_ok()) {
            return Ok(address);
        }
    }
    bail!("failed to find a free loopback address")
}

/// Two ports of the address on which nobody listens. They are let go again: another client may take them, which is as rare
/// as the system hands out a port twice in a row.
pub(crate) fn free_ports(address: Ipv4Addr) -> Result<[u16; 2]> {
    let listen = || TcpListener::bind((address, 0)).with_context(|| format!("failed to find a free port of {address}"));
    let (first, second) = (listen()?, listen()?);
    let port = |listener: &TcpListener| listener.local_addr().map(|at| at.port()).context("no local address");
    Ok([port(&first)?, port(&second)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_programs_do_not_share_an_address() {
        assert_ne!(free_address(&[8443]).unwrap(), free_address(&[8443]).unwrap());
    }
}
