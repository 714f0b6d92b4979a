//! Ports of services other than HTTP, which could misread a request.

/// The "bad ports" of the Fetch Standard (https://fetch.spec.whatwg.org/#port-blocking), in ascending order, and 0.
const BAD: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
    104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514,
    515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723,
    2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// Whether browsers refuse this port.
pub(crate) fn is_bad(port: u16) -> bool {
    BAD.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_browsers_refuse_is_refused_and_what_lies_beside_it_is_not() {
        assert!(BAD.is_sorted());
        for port in [0, 22, 25, 110, 6000, 6667, 10080] {
            assert!(is_bad(port), "{port}");
        }
        for port in [2, 80, 81, 443, 3000, 4222, 8000, 8080, 8443, 9000, 10081, 65535] {
            assert!(!is_bad(port), "{port}");
        }
    }
}
