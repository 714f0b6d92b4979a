//! The order of names in which numbers count as numbers.

use std::cmp::Ordering;

/// Compares two names by bytes, but digits in the same place as numbers: `list-2` comes before `list-10`.
pub(crate) fn natural_order(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    loop {
        let (Some(a), Some(b)) = (one.first(), other.first()) else { return one.len().cmp(&other.len()) };
        let order = if a.is_ascii_digit() && b.is_ascii_digit() {
            let numbers = (take_number(&mut one), take_number(&mut other));
            numbers.0.len().cmp(&numbers.1.len()).then_with(|| numbers.0.cmp(numbers.1))
        } else {
            (one, other) = (&one[1..], &other[1..]);
            a.cmp(b)
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Takes the digits at the beginning. Returns them without leading zeros.
fn take_number<'a>(name: &mut &'a [u8]) -> &'a [u8] {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = name.split_at(digits);
    *name = rest;
    let zeros = number.iter().take_while(|digit| **digit == b'0').count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_index_are_in_the_order_of_their_numbers() {
        let sorted = [
            "a",
            "a-",
            "a-1.xml",
            "a-02.xml",
            "a-2b.xml",
            "a-10.xml",
            "a-10.xml.gz",
            "a-x",
            "b1",
            "b1-3",
            "b01-20",
        ];
        for (n, one) in sorted.iter().enumerate() {
            for (m, other) in sorted.iter().enumerate() {
                assert_eq!(natural_order(one, other), n.cmp(&m), "{one} {other}");
            }
        }
        assert_eq!(natural_order("a-1", "a-01"), Ordering::Equal);
    }
}
