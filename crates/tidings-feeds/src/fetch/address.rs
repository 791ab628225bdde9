//! Public addresses of the internet; all others are refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks that are not part of the public internet, and the length of their prefixes.
const NOT_PUBLIC: [(Ipv4Addr, u32); 18] = [
    // "This network", loopback, link-local (with the metadata services of clouds).
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Private, and shared by the customers of a provider.
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Protocol assignments, the old relay for 6to4, AS112 and AMT.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    // Documentation and benchmarks.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Multicast, reserved, broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
    // A public address that one cloud uses for its own machines.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

/// Whether an address is on the public internet. Unknown ones are not: a feed must not make us
/// contact this machine, its network or its provider's metadata service.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    NOT_PUBLIC.iter().all(|(network, length)| {
        let mask = u32::MAX << (32 - length);
        address.to_bits() & mask != network.to_bits() & mask
    })
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // NAT64 with the well-known prefix: the last 32 bits are the target. 6to4: the address of
        // the relay follows the prefix.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        // Protocol assignments (Teredo, benchmarks, ORCHID), documentation, AS112.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x2620, 0x4f, 0x8000, ..] => {
            false
        }
        // Global unicast is 2000::/3. Loopback, unspecified, mapped and compatible IPv4, unique
        // local, link-local, site-local, multicast and segment routing are all outside it.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expected: bool, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn public_addresses_are_public() {
        check(true, &["1.1.1.1", "8.8.8.8", "93.184.215.14", "11.0.0.0", "9.255.255.255"]);
        check(true, &["100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0"]);
        check(true, &["169.253.255.255", "169.255.0.0", "192.167.255.255", "192.169.0.0"]);
        check(true, &["198.17.255.255", "198.20.0.0", "223.255.255.255", "126.255.255.255"]);
        check(true, &["192.0.1.1", "198.51.101.1", "203.0.114.1", "192.88.98.1"]);
        check(true, &["2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1"]);
        check(true, &["2001:200::1", "2002:0808:0808::1", "64:ff9b::8.8.8.8", "3fff:1000::"]);
    }

    #[test]
    fn the_machine_itself_is_private() {
        check(false, &["127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "::1", "::"]);
        check(false, &["::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "::127.0.0.1"]);
        check(false, &["64:ff9b::127.0.0.1", "2002:7f00:1::", "64:ff9b:1::7f00:1"]);
    }

    #[test]
    fn networks_around_the_machine_are_private() {
        check(false, &["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255"]);
        check(false, &["192.168.0.0", "192.168.255.255", "100.64.0.0", "100.127.255.255"]);
        check(false, &["169.254.0.0", "169.254.169.254", "169.254.255.255"]);
        check(false, &["fc00::1", "fdff::1", "fd00:ec2::254", "fe80::1", "febf::1", "fec0::1"]);
        check(false, &["::ffff:10.0.0.1", "::ffff:8.8.8.8", "64:ff9b::10.0.0.1"]);
        check(false, &["64:ff9b::169.254.169.254", "2002:a9fe:a9fe::", "2002:c0a8:1::1"]);
    }

    #[test]
    fn addresses_with_another_purpose_are_private() {
        check(false, &["192.0.0.1", "192.0.2.1", "198.51.100.7", "203.0.113.9", "192.88.99.1"]);
        check(false, &["198.18.0.1", "198.19.255.255", "168.63.129.16"]);
        check(false, &["224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"]);
        check(false, &["ff02::1", "ff0e::1", "2001::1", "2001:db8::1", "2001:2::1", "3fff::1"]);
        check(false, &["100::1", "5f00::1", "4000::1", "2620:4f:8000::1"]);
    }
}
