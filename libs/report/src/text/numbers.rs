//! Formats counts.

use model::count;

/// How often something was found.
pub(super) fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{} times", count(n)) }
}

/// A part of a whole, with its share in percent. Only the whole is 100 %, and only nothing is 0 %.
pub(super) fn share(part: u64, whole: u64) -> String {
    let percent = match (part, whole) {
        (_, 0) => return count(part),
        (0, _) => "0".to_owned(),
        _ if part == whole => "100".to_owned(),
        _ => match u128::from(part) * 100 / u128::from(whole) {
            0 => "less than 1".to_owned(),
            percent => percent.to_string(),
        },
    };
    format!("{} ({percent} %)", count(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_is_said_as_once() {
        assert_eq!([1, 2, 1_000].map(times), ["once", "2 times", "1,000 times"]);
    }

    #[test]
    fn only_all_of_it_is_a_hundred_percent_and_only_none_of_it_nothing() {
        assert_eq!(share(1_000, 1_000), "1,000 (100 %)");
        assert_eq!(share(999_999, 1_000_000), "999,999 (99 %)");
        assert_eq!(share(1, 1_000), "1 (less than 1 %)");
        assert_eq!(share(0, 1_000), "0 (0 %)");
        assert_eq!(share(0, 0), "0");
    }
}
