//! Counts in texts for people.

/// A count with commas between the thousands.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with a noun, or with more of the sentence: `counted(n, "resource is", "resources are")`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), plural(n, one, many))
}

/// The singular or plural for a count that is printed elsewhere.
pub fn plural<'a>(n: u64, one: &'a str, many: &'a str) -> &'a str {
    if n == 1 { one } else { many }
}

/// A length in bytes, with all digits, since people compare such numbers.
pub fn bytes(length: u64) -> String {
    format!("{length} {}", plural(length, "byte", "bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn one_is_said_as_one_and_everything_else_as_many() {
        let said = [0, 1, 2, 1_001].map(|n| counted(n, "entry", "entries"));
        assert_eq!(said, ["0 entries", "1 entry", "2 entries", "1,001 entries"]);
        assert_eq!([0, 1, 1_234].map(bytes), ["0 bytes", "1 byte", "1234 bytes"]);
    }
}
