//! Faults of links that are tolerated, by name.

use std::collections::BTreeMap;
use std::fmt;

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// A fault in links that a reader tolerates. Names are permanent.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Fault {
            /// All faults, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What it means, and what is done about it.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

faults! {
    /// A target without `<` and `>`. The link is dropped.
    NoAngleBrackets = "no-angle-brackets",
    /// A `<` without `>`. The link is dropped.
    UnclosedTarget = "unclosed-target",
    /// A quote within a quoted value that is not escaped. The value ends there.
    NestedQuotes = "nested-quotes",
    /// A quoted value without an end. It ends with the text.
    UnclosedQuote = "unclosed-quote",
    /// The name of an attribute is no token. The attribute is dropped.
    BadAttribute = "bad-attribute",
    /// A link without a relation. It is dropped.
    NoRelation = "no-relation",
    /// A link without a target, or with an empty one. It is dropped.
    NoTarget = "no-target",
    /// A registered relation in other case, such as `describedBy`. It is taken for the registered one.
    RelationCase = "relation-case",
    /// A context of a link set without `anchor`. The URL of the set is taken.
    NoAnchor = "no-anchor",
    /// A relative `anchor`. It is resolved against the URL of the set.
    RelativeAnchor = "relative-anchor",
    /// A link set inside of another object, such as `{"status": …, "data": …}`. It is unwrapped.
    Wrapped = "wrapped",
    /// Members beside `linkset`. They are ignored.
    ExtraMembers = "extra-members",
    /// One object or string where an array belongs. It is taken as the only element.
    NotAnArray = "not-an-array",
    /// A comma before the end of an array or object, or two in a row. It is ignored.
    StrayComma = "stray-comma",
    /// A media type that is not registered for link sets, though the shape fits.
    OddMediaType = "odd-media-type",
    /// A server that refuses the media types of link sets (406). It is asked once more for any.
    NotAcceptable = "not-acceptable",
    /// A page that answers with a server error, as behind a proxy that takes no long header. Its link set is read
    /// instead.
    NoPage = "no-page",
    /// A version of a TimeMap without a `datetime` that can be read. It is dropped.
    BadDatetime = "bad-datetime",
    /// A TimeMap that does not name the original resource.
    NoOriginal = "no-original",
    /// More links than the limit. The rest is dropped.
    TooManyLinks = "too-many-links",
    /// More bytes than the limit. The rest is dropped.
    TooManyBytes = "too-many-bytes",
    /// More attributes of one link than the limit. The rest is dropped.
    TooManyAttributes = "too-many-attributes",
    /// A URL or value longer than the limit. Its link or attribute is dropped.
    TooLong = "too-long",
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How often each fault occurred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(BTreeMap<Fault, u64>);

impl Faults {
    /// Counts a fault once more.
    pub fn add(&mut self, fault: Fault) {
        *self.0.entry(fault).or_default() += 1;
    }

    /// Adds the counts of another reading.
    pub fn merge(&mut self, other: &Self) {
        for (fault, times) in other.iter() {
            *self.0.entry(fault).or_default() += times;
        }
    }

    /// How often a fault occurred.
    pub fn count(&self, fault: Fault) -> u64 {
        self.0.get(&fault).copied().unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether something was left out because of a limit.
    pub fn has_left_out(&self) -> bool {
        [Fault::TooManyLinks, Fault::TooManyBytes, Fault::TooLong].iter().any(|fault| self.count(*fault) > 0)
    }

    /// Every fault that occurred, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Fault, u64)> {
        self.0.iter().map(|(&fault, &times)| (fault, times))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::landing::Finding;

    #[test]
    fn names_are_unique_and_plain() {
        let names: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.as_str()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
    }

    #[test]
    fn the_page_of_quirks_names_each_fault_and_finding() {
        let page = include_str!("../../../docs/QUIRKS-SIGNPOSTING.md");
        let faults = Fault::ALL.iter().map(|fault| fault.as_str());
        for name in faults.chain(Finding::ALL.iter().map(|finding| finding.as_str())) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
