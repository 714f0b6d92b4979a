//! Networks: addresses that an operator allows for a Source.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::Deserialize;

/// A network of addresses, such as `10.1.0.0/16`; a single address is a network of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Network(IpNet);

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no network: give an address (10.1.2.3) or a network (10.1.0.0/16); names are checked by the \
     addresses they have"
)]
pub struct NetworkError(String);

impl Network {
    /// Whether an address belongs to it. An IPv4 address written as IPv6 counts as that IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let single = || text.parse().ok().map(<IpNet as From<IpAddr>>::from);
        let network = text.parse().ok().or_else(single).ok_or_else(|| NetworkError(text.to_owned()))?;
        Ok(Self(network.trunc()))
    }
}

impl TryFrom<String> for Network {
    type Error = NetworkError;

    fn try_from(text: String) -> Result<Self, NetworkError> {
        text.parse()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl serde::Serialize for Network {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_written_by_its_first_address() {
        for (given, written) in
            [("10.1.2.3/16", "10.1.0.0/16"), ("10.1.2.3", "10.1.2.3/32"), ("fd00:1::7/32", "fd00:1::/32")]
        {
            let network: Network = given.parse().unwrap();
            assert_eq!(network.to_string(), written);
            let json = serde_json::to_string(&network).unwrap();
            assert_eq!(serde_json::from_str::<Network>(&json).unwrap(), network);
        }
        for wrong in ["", "example.org", "10.0.0.0/33", "10.1.0.0/16 "] {
            assert!(wrong.parse::<Network>().unwrap_err().to_string().contains("10.1.0.0/16"), "{wrong}");
        }
    }

    #[test]
    fn an_ipv4_address_written_as_ipv6_is_of_its_network() {
        let network: Network = "127.0.0.0/8".parse().unwrap();
        assert!(network.contains("127.0.0.1".parse().unwrap()));
        assert!(network.contains("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!network.contains("64:ff9b::7f00:1".parse().unwrap()));
        assert!(!network.contains("::1".parse().unwrap()));
    }
}
