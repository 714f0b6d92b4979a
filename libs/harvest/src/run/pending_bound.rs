//! Bound on pending records: answers from memory whether a resource may have one.

use model::ResourceUri;

/// For which resources pending records may exist. Most lists are in the order of URIs. So the plans of this run do
/// not concern the entries that follow, and those need no lookup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum PendingBound {
    /// For none.
    #[default]
    Nowhere,
    /// For none whose URI sorts after this one, by bytes.
    UpTo(String),
    /// For any: an earlier process planned.
    Anywhere,
}

impl PendingBound {
    /// The bound at the start of a run. The plans of an earlier process are unknown.
    pub(crate) fn after(is_interrupted: bool) -> Self {
        if is_interrupted { Self::Anywhere } else { Self::Nowhere }
    }

    /// Whether any pending record may exist.
    pub(crate) fn is_anything_planned(&self) -> bool {
        *self != Self::Nowhere
    }

    /// Whether a resource may have a pending record.
    pub(crate) fn holds(&self, uri: &ResourceUri) -> bool {
        match self {
            Self::Nowhere => false,
            Self::UpTo(last) => uri.as_str() <= last.as_str(),
            Self::Anywhere => true,
        }
    }

    /// Extends the bound to a planned resource.
    pub(crate) fn note(&mut self, uri: &ResourceUri) {
        match self {
            Self::Nowhere => *self = Self::UpTo(uri.as_str().to_owned()),
            Self::UpTo(last) if uri.as_str() > last.as_str() => {
                // Reuses the allocation: entries of a sorted list need no new one.
                last.clear();
                last.push_str(uri.as_str());
            }
            Self::UpTo(_) | Self::Anywhere => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(name: &str) -> ResourceUri {
        format!("http://h/{name}").parse().unwrap()
    }

    fn noted(names: &[&str]) -> PendingBound {
        let mut reach = PendingBound::default();
        names.iter().for_each(|name| reach.note(&uri(name)));
        reach
    }

    #[test]
    fn before_anything_is_planned_nothing_is() {
        assert!(!noted(&[]).is_anything_planned());
        assert!(!noted(&[]).holds(&uri("a")));
    }

    #[test]
    fn what_comes_after_all_that_was_planned_is_not_planned_in_whatever_order_it_was() {
        for names in [&["a", "c", "e"], &["e", "a", "c"]] {
            let reach = noted(names);
            assert!(reach.is_anything_planned());
            let held = ["a", "b", "e", "e/"].map(|name| reach.holds(&uri(name)));
            assert_eq!(held, [true, true, true, false], "{names:?}");
        }
    }

    #[test]
    fn of_what_an_earlier_process_planned_nothing_is_known() {
        let mut reach = PendingBound::after(true);
        reach.note(&uri("a"));
        assert!(reach.is_anything_planned());
        assert!(reach.holds(&uri("z")));
        assert_eq!(PendingBound::after(false), PendingBound::Nowhere);
    }
}
