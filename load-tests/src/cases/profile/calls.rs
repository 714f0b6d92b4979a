//! System calls, as `strace -c` counts them.

use std::collections::BTreeMap;

/// The count of each call: `% time  seconds  usecs/call  calls  [errors]  name`, a line for each.
pub(super) fn counted(summary: &str) -> BTreeMap<String, f64> {
    let lines = summary.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = *fields.last()?;
        let calls = fields.get(3)?.parse().ok()?;
        (fields.len() >= 5 && name != "total").then(|| (name.to_owned(), calls))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_a_line_with_errors_or_without_and_their_sum_is_none() {
        let summary = "% time     seconds  usecs/call     calls    errors syscall\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
             86.47    4.157679         567      7332       861 futex\n\
              2.90    0.139680          46      3003           writev\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            100.00    4.297359         415     10335       861 total\n";
        let expected = [("futex".to_owned(), 7332.0), ("writev".to_owned(), 3003.0)];
        assert_eq!(counted(summary), BTreeMap::from(expected));
    }
}
