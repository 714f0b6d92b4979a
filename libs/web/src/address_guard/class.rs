//! Classes of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of an address, by the special-purpose registries (RFC 6890). An IPv6 address that only carries
/// an IPv4 address (mapped, compatible, NAT64, 6to4) has that one's class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressClass {
    /// A public address, reachable from the Internet.
    Public,
    /// Inside a site: 10/8, 172.16/12, 192.168/16 (RFC 1918), fc00::/7 (RFC 4193), fec0::/10.
    Private,
    /// Inside a provider's network: 100.64/10 (RFC 6598).
    Shared,
    /// This machine: 127/8, ::1.
    Loopback,
    /// This link: 169.254/16, fe80::/10.
    LinkLocal,
    /// Metadata services of clouds, which hold a machine's secrets: 169.254.169.254 and the like, whatever
    /// their class would be.
    Metadata,
    /// Unspecified, which many systems take for this machine: 0/8, ::.
    Unspecified,
    /// Many machines at once: 224/4, ff00::/8.
    Multicast,
    /// For documentation only: 192.0.2/24, 198.51.100/24, 203.0.113/24, 2001:db8::/32, 3fff::/20.
    Documentation,
    /// Reserved for other uses, or unassigned: 240/4, 192.0.0/24, 192.88.99/24, 198.18/15, and IPv6 outside
    /// of the assigned blocks.
    Reserved,
}

/// Link-local (most clouds), its neighbour for containers, Alibaba's, Oracle's, and Azure's.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];
/// Amazon's and Google's.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

impl AddressClass {
    /// The class of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Private => "a private address",
            Self::Shared => "an address inside a provider's network",
            Self::Loopback => "a loopback address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "where a cloud keeps a machine's secrets",
            Self::Unspecified => "the unspecified address",
            Self::Multicast => "a multicast address",
            Self::Documentation => "an address for documentation",
            Self::Reserved => "a reserved address",
        })
    }
}

fn of_v4(address: Ipv4Addr) -> AddressClass {
    if METADATA_V4.contains(&address) {
        return AddressClass::Metadata;
    }
    match address.octets() {
        [0, ..] => AddressClass::Unspecified,
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::Shared,
        [169, 254, ..] => AddressClass::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressClass::Documentation,
        [224..=239, ..] => AddressClass::Multicast,
        [240..=255, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    if METADATA_V6.contains(&address) {
        return AddressClass::Metadata;
    }
    let low = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // Mapped, translated, compatible, NAT64: they lead to the IPv4 address inside.
        [0, 0, 0, 0, 0, 0xffff | 0, a, b]
        | [0, 0, 0, 0, 0xffff, 0, a, b]
        | [0x64, 0xff9b, 0, 0, 0, 0, a, b]
        | [0x2002, a, b, ..] => of_v4(low(a, b)),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Documentation,
        // Protocol assignments, Teredo among them, whose IPv4 address the sender chooses.
        [0x2001, 0..=0x1ff, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::AddressClass::*;
    use super::*;

    fn class(address: &str) -> AddressClass {
        AddressClass::of(address.parse().unwrap())
    }

    #[test]
    fn each_range_has_its_class_from_its_first_address_to_its_last() {
        for (class_of_range, first, last) in [
            (Unspecified, "0.0.0.0", "0.255.255.255"),
            (Private, "10.0.0.0", "10.255.255.255"),
            (Shared, "100.64.0.0", "100.127.255.255"),
            (Loopback, "127.0.0.0", "127.255.255.255"),
            (LinkLocal, "169.254.0.0", "169.254.255.255"),
            (Private, "172.16.0.0", "172.31.255.255"),
            (Reserved, "192.0.0.0", "192.0.0.255"),
            (Documentation, "192.0.2.0", "192.0.2.255"),
            (Reserved, "192.88.99.0", "192.88.99.255"),
            (Private, "192.168.0.0", "192.168.255.255"),
            (Reserved, "198.18.0.0", "198.19.255.255"),
            (Documentation, "198.51.100.0", "198.51.100.255"),
            (Documentation, "203.0.113.0", "203.0.113.255"),
            (Multicast, "224.0.0.0", "239.255.255.255"),
            (Reserved, "240.0.0.0", "255.255.255.255"),
            (Documentation, "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            (Documentation, "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
            (Reserved, "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
            (Private, "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            (LinkLocal, "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            (Private, "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            (Multicast, "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            assert_eq!((class(first), class(last)), (class_of_range, class_of_range), "{first} to {last}");
        }
        assert_eq!((class("::"), class("::1")), (Unspecified, Loopback));
    }

    #[test]
    fn what_lies_beside_a_range_is_public() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::",
            "2600::1",
            "3fff:1000::",
        ] {
            assert_eq!(class(address), Public, "{address}");
        }
    }

    #[test]
    fn metadata_services_have_a_class_of_their_own() {
        for address in
            ["169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "::ffff:169.254.169.254"]
        {
            assert_eq!(class(address), Metadata, "{address}");
        }
    }

    proptest! {
        #[test]
        fn an_ipv4_address_in_an_ipv6_address_is_what_it_is(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let [a, b] = [(bits >> 16) as u16, bits as u16];
            for v6 in [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b),
                Ipv6Addr::new(0x2002, a, b, 0, 0, 0, 0, 7),
            ] {
                prop_assert_eq!(AddressClass::of(v6.into()), AddressClass::of(v4.into()), "{}", v6);
            }
        }

        #[test]
        fn nothing_that_the_standard_library_knows_to_be_special_is_public(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast()
                || v4.is_multicast() || v4.is_documentation() || v4.is_unspecified();
            prop_assert!(!special || AddressClass::of(v4.into()) != Public);
        }
    }
}
