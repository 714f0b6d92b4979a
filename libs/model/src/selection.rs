//! Which entries of a document a run selects.

use fixity::Sha256;
use serde::{Deserialize, Serialize};

/// Bytes of the id: few enough that every reader of JSON keeps the number exactly.
const BYTES: usize = 6;

/// Identifies the options that select entries, such as the filter. Two runs with the same one select the same
/// entries of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SelectionId(u64);

impl SelectionId {
    /// Of what was read partly with one selection and partly with another: it is like no selection of a run.
    pub const SEVERAL: Self = Self(0);

    /// The id of the options that this text states.
    pub fn of(options: &str) -> Self {
        let digest = Sha256::of(options.as_bytes());
        let first = digest.as_bytes().iter().take(BYTES);
        let number = first.fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self(number.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_options_have_another_id() {
        let [one, other] = ["include a", "include b"].map(SelectionId::of);
        assert!(one != other && one != SelectionId::SEVERAL && other != SelectionId::SEVERAL);
        assert_eq!(one, SelectionId::of("include a"));
    }
}
