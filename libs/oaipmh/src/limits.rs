use encoding_rs::Encoding;
use jiff::Timestamp;

/// Limits of what the reader holds in memory at once, and of what one answer may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one record, header, set, format or description. A longer one is bad; it is not held.
    pub max_record_bytes: usize,
    /// Bytes of one text or attribute value within metadata. A longer one makes its record bad.
    pub max_text_bytes: usize,
    /// Bytes of an identifier, setSpec, set name, prefix, error message or other single value.
    pub max_field_bytes: usize,
    /// Bytes of a resumption token. A longer one ends the reading.
    pub max_token_bytes: usize,
    /// Elements within elements of a record. More make the record bad.
    pub max_depth: usize,
    /// Attributes of one element. More make the record bad.
    pub max_attributes: usize,
    /// `setSpec`s of one header. More make the record bad.
    pub max_sets_per_record: usize,
    /// `about`s of one record. More make the record bad.
    pub max_abouts: usize,
    /// Records, headers, sets or formats in one answer. More end the reading.
    pub max_items: u64,
    /// Bytes of the answer after decompression. More end the reading.
    pub max_page_bytes: u64,
    /// How many times its compressed size an answer may have after decompression. More ends the reading.
    pub max_inflation: u64,
    /// Bytes after decompression below which no answer counts as inflated too much.
    pub inflation_floor_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_record_bytes: 16 << 20,
            max_text_bytes: 8 << 20,
            max_field_bytes: 8 << 10,
            max_token_bytes: 16 << 10,
            max_depth: 100,
            max_attributes: 256,
            max_sets_per_record: 1_000,
            max_abouts: 100,
            max_items: 1_000_000,
            max_page_bytes: 1 << 30,
            max_inflation: 500,
            inflation_floor_bytes: 8 << 20,
        }
    }
}

/// What to do with a deviation from the protocol that can still be understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Continue, and count it as a [`Quirk`](crate::Quirk); a bad record is returned as
    /// [`Item::Bad`](crate::Item::Bad).
    #[default]
    Tolerant,
    /// End the reading at the first quirk that breaks the protocol, or bad record.
    Strict,
}

/// How to read an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Limits.
    pub limits: Limits,
    /// What to do with deviations.
    pub strictness: Strictness,
    /// The encoding of records that are not UTF-8, a superset of ASCII: an operator may know what a repository's
    /// software mislabels. `None`: a record with such bytes is bad, and so is one that is not of this encoding.
    pub encoding: Option<&'static Encoding>,
    /// The latest moment that times can truly mean: now, plus some minutes for clocks that differ. Later
    /// datestamps are counted as [`Quirk::FutureTime`](crate::Quirk::FutureTime). `None`: none is too late.
    pub latest: Option<Timestamp>,
    /// The granularity that Identify announced. Finer datestamps are counted as
    /// [`Quirk::DatestampPrecision`](crate::Quirk::DatestampPrecision). `None`: only fractions are.
    pub granularity: Option<crate::Granularity>,
}
