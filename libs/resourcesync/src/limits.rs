use jiff::Timestamp;
use url::Url;

/// Limits of what the reader holds in memory at once.
///
/// Documents come from third parties, so each limit is checked before anything is stored. The number of
/// entries is not limited: the reader holds one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one text or attribute value, such as a `loc`. A longer one makes its entry bad.
    pub max_field_bytes: usize,
    /// Elements within elements. More ends the reading.
    pub max_depth: usize,
    /// `rs:ln` of one entry, or of the document itself. Further ones of an entry are dropped; in the document's own
    /// they end the reading.
    pub max_links_per_entry: usize,
    /// Bytes of all links of one entry, by [`Link::size`](crate::Link::size). A link beyond them is dropped, and the
    /// entry stays good.
    pub max_link_bytes: usize,
    /// Bytes of a link's target. A link with a longer one is dropped, and the entry stays good.
    pub max_href_bytes: usize,
    /// Attributes of one element. More make the entry bad, or end the reading.
    pub max_attributes: usize,
    /// Bytes of one entry, or of the document's own `rs:md` and `rs:ln` together. More make the entry bad, or
    /// end the reading.
    pub max_entry_bytes: u64,
    /// Bytes of one tag, comment or run of text: the parser holds these whole. More end the reading.
    pub max_event_bytes: u64,
    /// Bytes of the whole document after decompression; `None` for no limit.
    pub max_document_bytes: Option<u64>,
    /// How many times its compressed size a document may have after decompression. More ends the reading.
    pub max_inflation: u64,
    /// Bytes after decompression below which no document counts as inflated too much.
    pub inflation_floor_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_field_bytes: 32 * 1024,
            max_depth: 32,
            max_links_per_entry: 1_000,
            max_link_bytes: 4 * 1024,
            max_href_bytes: 2 * 1024,
            max_attributes: 64,
            max_entry_bytes: 4 * 1024 * 1024,
            max_event_bytes: 1024 * 1024,
            max_document_bytes: None,
            max_inflation: 500,
            inflation_floor_bytes: 8 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// Whether `inflated` bytes out of `compressed` ones are more than [`max_inflation`](Self::max_inflation) allows.
    pub(crate) fn is_inflated_too_much(&self, compressed: u64, inflated: u64) -> bool {
        inflated > self.inflation_floor_bytes && inflated > compressed.saturating_mul(self.max_inflation)
    }
}

/// What to do with a deviation from the specification that can still be understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Continue, and count it as a [`Quirk`](crate::Quirk); a bad entry is returned as
    /// [`Item::Bad`](crate::Item::Bad).
    #[default]
    Tolerant,
    /// End the reading at the first quirk that breaks the specification, or bad entry.
    Strict,
}

/// How to read a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Limits of memory and depth.
    pub limits: Limits,
    /// What to do with deviations.
    pub mode: Mode,
    /// The document's own URI, the base of relative references.
    pub base: Option<Url>,
    /// The latest moment that the document's times can truly mean: now, plus some minutes for clocks that
    /// differ. Later ones are counted as [`Quirk::FutureTime`](crate::Quirk::FutureTime). `None`: no time
    /// counts as too late.
    pub latest: Option<Timestamp>,
}
