//! Binary form of an entry. It is written once, and usually only its head is read back: that settles an entry which
//! matches the stored version.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use fixity::{Algorithm, Digest, Sha256};
use jiff::Timestamp;
use model::{Declaration, LinkVersion, Linked, Links, Listing, ResourceUri, SetId};
use planning::{ListedEntry, Moment};
use resourcesync::Change;
use serde::{Deserialize, Serialize};

use crate::error::SpoolError;

/// Bytes of an entry before its URI: three numbers (length of the URI, length of the rest, document), its kind, a
/// digest, a length.
pub(crate) const HEAD: usize = 4 + 4 + 4 + 1 + 32 + 8;
/// Value for an undeclared length.
const NO_LENGTH: u64 = u64::MAX;

/// Flag: the only declared digest is the SHA-256 in the head, and nothing else must be compared.
const PLAIN: u8 = 1;
/// Flag: only the URI, without any declaration.
const NAME: u8 = 2;
/// Flag: a change.
const CHANGE: u8 = 4;
/// Flag: it has links.
const LINKS: u8 = 8;
/// Flag: no list names it; a link leads to it.
const LINKED: u8 = 16;

/// What follows the head and the URI of an entry. Times are nanoseconds since 1970.
#[derive(Serialize, Deserialize)]
struct Rest<'a> {
    change: Option<Change>,
    change_time: Option<i128>,
    as_of: Option<i128>,
    latest: Option<i128>,
    moment: Option<i128>,
    is_vague: bool,
    lastmod: Option<i128>,
    length: Option<u64>,
    media_type: Option<&'a str>,
    encoding: Option<&'a str>,
    #[serde(borrow)]
    unjudged: Vec<&'a str>,
    digests: Cow<'a, [Digest]>,
    /// In the encoded form of [`Links`].
    links: Option<&'a str>,
    #[serde(borrow)]
    linked: Option<SpooledLink<'a>>,
}

/// A [`Linked`] with all its fields: this encoding has no names, so none can be left out.
#[derive(Serialize, Deserialize)]
struct SpooledLink<'a> {
    from: &'a str,
    rel: &'a str,
    shared: bool,
    version: Option<LinkVersion>,
}

impl<'a> From<&'a Linked> for SpooledLink<'a> {
    fn from(linked: &'a Linked) -> Self {
        Self { from: linked.from.as_str(), rel: &linked.rel, shared: linked.shared, version: linked.version }
    }
}

impl SpooledLink<'_> {
    fn read(self) -> io::Result<Linked> {
        let from = self.from.parse().map_err(io::Error::other)?;
        Ok(Linked { from, rel: self.rel.to_owned(), shared: self.shared, version: self.version })
    }
}

/// An entry about a resource, or only its name.
#[derive(Debug, PartialEq, Eq)]
pub struct SpooledEntry {
    head: [u8; HEAD],
    /// The URI, then the rest.
    bytes: Vec<u8>,
}

impl SpooledEntry {
    pub(crate) fn new(head: [u8; HEAD], bytes: Vec<u8>) -> Self {
        Self { head, bytes }
    }

    /// Writes it as it was read.
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.head)?;
        to.write_all(&self.bytes)
    }

    /// The bytes of its URI.
    pub fn uri(&self) -> &[u8] {
        &self.bytes[..number_at(&self.head, 0)]
    }

    /// The document, by number.
    pub fn document(&self) -> usize {
        number_at(&self.head, 8)
    }

    /// The only declared digest, and the length, if nothing else must be compared.
    pub fn plain(&self) -> Option<(Sha256, Option<u64>)> {
        (self.head[12] & PLAIN != 0).then(|| {
            let sha256: [u8; 32] = self.head[13..45].try_into().unwrap_or_default();
            let length = u64::from_le_bytes(self.head[45..53].try_into().unwrap_or_default());
            (Sha256::from_bytes(sha256), Some(length).filter(|length| *length != NO_LENGTH))
        })
    }

    /// Whether it is only a name, which needs no decision.
    pub fn is_name(&self) -> bool {
        self.head[12] & NAME != 0
    }

    /// Whether it is a change; otherwise it is an entry of a list.
    pub fn is_change(&self) -> bool {
        self.head[12] & CHANGE != 0
    }

    /// Whether no list names it, and a link leads to it.
    pub fn is_linked(&self) -> bool {
        self.head[12] & LINKED != 0
    }

    /// The link that leads to it, if no list names it.
    ///
    /// # Errors
    /// When the entry cannot be decoded.
    pub fn linked(&self) -> io::Result<Option<Linked>> {
        if self.is_linked() { self.rest()?.linked.map(SpooledLink::read).transpose() } else { Ok(None) }
    }

    /// Whether the stored version, whose links are given, has the entry's links already. A change without links leaves
    /// those of the version before.
    ///
    /// # Errors
    /// When the entry cannot be decoded.
    pub fn has_links(&self, held: Option<&Links>) -> io::Result<bool> {
        if self.head[12] & LINKS == 0 {
            return Ok(self.is_change() || held.is_none());
        }
        Ok(self.rest()?.links == held.map(Links::as_str))
    }

    /// Bytes of its URI and of all its fields.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it is certainly of an earlier time than another entry.
    pub(crate) fn is_earlier(&self, other: &Self) -> io::Result<bool> {
        let moment = self.rest()?.moment;
        let as_of = other.rest()?.as_of;
        Ok(moment.zip(as_of).is_some_and(|(moment, as_of)| moment < as_of))
    }

    /// The fields behind its URI.
    fn rest(&self) -> io::Result<Rest<'_>> {
        let bytes = self.bytes.get(self.uri().len()..).unwrap_or_default();
        postcard::from_bytes(bytes).map_err(io::Error::other)
    }

    /// Decodes the entry; `documents` are indexed by number.
    pub fn read(&self, documents: &[(Arc<str>, SetId)]) -> Result<ListedEntry, SpoolError> {
        let uri = String::from_utf8(self.uri().to_vec()).map_err(io::Error::other)?;
        let (document, set) =
            documents.get(self.document()).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        let rest = self.rest()?;
        let mut declaration = Declaration {
            digests: rest.digests.into_owned(),
            unjudged: rest.unjudged.into_iter().map(str::to_owned).collect(),
            length: rest.length,
            media_type: rest.media_type.map(str::to_owned),
            encoding: rest.encoding.map(str::to_owned),
            lastmod: timestamp(rest.lastmod)?,
        };
        if let Some((sha256, _)) = self.plain() {
            declaration.digests.push(sha256.into());
        }
        Ok(ListedEntry {
            uri: ResourceUri::try_from(uri).map_err(io::Error::other)?,
            declaration,
            listing: Listing {
                document: document.clone(),
                set: set.clone(),
                change: rest.change,
                change_time: timestamp(rest.change_time)?,
                as_of: timestamp(rest.as_of)?,
                latest: timestamp(rest.latest)?,
                links: rest.links.map(Links::from_encoded),
                linked: rest.linked.map(SpooledLink::read).transpose()?.map(Box::new),
            },
            moment: Moment { latest: timestamp(rest.moment)?, is_vague: rest.is_vague },
        })
    }
}

/// Encodes an entry of the document with this number.
pub(crate) fn encode(to: &mut Vec<u8>, entry: &ListedEntry, document: usize) -> io::Result<()> {
    let ListedEntry { uri, declaration, listing, moment } = entry;
    let begin = to.len();
    to.resize(begin + HEAD, 0);
    to.extend_from_slice(uri.as_str().as_bytes());
    let plain = match declaration.digests.as_slice() {
        [digest] if digest.algorithm() == Algorithm::Sha256 && declaration.unjudged.is_empty() => {
            Some(digest).filter(|_| listing.change != Some(Change::Deleted))
        }
        _ => None,
    };
    let nanoseconds = |time: Option<Timestamp>| time.map(Timestamp::as_nanosecond);
    let rest = Rest {
        change: listing.change,
        change_time: nanoseconds(listing.change_time),
        as_of: nanoseconds(listing.as_of),
        latest: nanoseconds(listing.latest),
        moment: nanoseconds(moment.latest),
        is_vague: moment.is_vague,
        lastmod: nanoseconds(declaration.lastmod),
        length: declaration.length,
        media_type: declaration.media_type.as_deref(),
        encoding: declaration.encoding.as_deref(),
        unjudged: declaration.unjudged.iter().map(String::as_str).collect(),
        // The only digest of a plain entry is in its head.
        digests: if plain.is_some() { Cow::default() } else { declaration.digests.as_slice().into() },
        links: listing.links.as_ref().map(Links::as_str),
        linked: listing.linked.as_deref().map(SpooledLink::from),
    };
    postcard::to_io(&rest, &mut *to).map_err(io::Error::other)?;
    let mut kind = if listing.change.is_some() { CHANGE } else { 0 };
    if listing.links.is_some() {
        kind |= LINKS;
    }
    if listing.linked.is_some() {
        kind |= LINKED;
    }
    if let Some(digest) = plain {
        kind |= PLAIN;
        to[begin + 13..begin + 45].copy_from_slice(digest.bytes());
        let length = declaration.length.unwrap_or(NO_LENGTH);
        to[begin + 45..begin + 53].copy_from_slice(&length.to_le_bytes());
    }
    finish(to, begin, uri, document, kind)
}

/// Encodes a name from the document with this number.
pub(crate) fn encode_name(to: &mut Vec<u8>, uri: &ResourceUri, document: usize) -> io::Result<()> {
    let begin = to.len();
    to.resize(begin + HEAD, 0);
    to.extend_from_slice(uri.as_str().as_bytes());
    finish(to, begin, uri, document, NAME)
}

fn finish(to: &mut [u8], begin: usize, uri: &ResourceUri, document: usize, kind: u8) -> io::Result<()> {
    let length = uri.as_str().len();
    let numbers = [length, to.len() - begin - HEAD - length, document];
    let head = &mut to[begin..begin + HEAD];
    for (n, number) in numbers.into_iter().enumerate() {
        let number = u32::try_from(number).map_err(io::Error::other)?;
        head[n * 4..n * 4 + 4].copy_from_slice(&number.to_le_bytes());
    }
    head[12] = kind;
    Ok(())
}

/// A number in a head: the length of the URI at 0, of the rest at 4, the document's number at 8.
pub(crate) fn number_at(head: &[u8], at: usize) -> usize {
    let bytes: [u8; 4] = head[at..at + 4].try_into().unwrap_or_default();
    // It was a usize when it was written.
    u32::from_le_bytes(bytes) as usize
}

/// A time from its nanoseconds since 1970.
fn timestamp(nanoseconds: Option<i128>) -> io::Result<Option<Timestamp>> {
    nanoseconds.map(Timestamp::from_nanosecond).transpose().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use resourcesync::Link;

    use super::*;

    fn at(nanosecond: i128) -> Timestamp {
        Timestamp::from_nanosecond(nanosecond).unwrap()
    }

    fn round(planned: &ListedEntry) -> (SpooledEntry, ListedEntry) {
        let mut bytes = Vec::new();
        encode(&mut bytes, planned, 0).unwrap();
        let head: [u8; HEAD] = bytes[..HEAD].try_into().unwrap();
        let entry = SpooledEntry::new(head, bytes[HEAD..].to_vec());
        let read = entry.read(&[(planned.listing.document.clone(), planned.listing.set.clone())]).unwrap();
        (entry, read)
    }

    #[test]
    fn every_word_is_read_as_it_was_written() {
        let digests = fixity::parse_hashes("md5:900150983cd24fb0d6963f7d28e17f72").known;
        let full = Declaration {
            digests: [digests.clone(), vec![Sha256::of(b"x").into()]].concat(),
            unjudged: vec!["whirlpool:ab".to_owned(), String::new()],
            length: Some(0),
            media_type: Some("text/plain; charset=\u{fc}".to_owned()),
            encoding: Some(String::new()),
            lastmod: Some(at(-1)),
        };
        let plain = Declaration { digests: vec![Sha256::of(b"y").into()], ..Declaration::default() };
        let md5 = Declaration { digests, ..Declaration::default() };
        let links = Links::of(&[Link::new("via", "http://o/x"), Link::new("up", "\u{e9}\"")]);
        let linked = Linked {
            from: "http://h/\u{fc}".parse().unwrap(),
            rel: "item".to_owned(),
            shared: true,
            version: Some(LinkVersion::of("1")),
        };
        let times = [None, Some(at(1_767_225_600_123_456_789)), Some(at(-62_135_596_800_000_000_000))];
        for declaration in [full, plain, md5, Declaration::default()] {
            for change in [None, Some(Change::Created), Some(Change::Updated), Some(Change::Deleted)] {
                for time in times {
                    let listing = Listing {
                        document: "http://h/list".into(),
                        set: SetId::new("http://h/caps"),
                        change,
                        change_time: time.filter(|_| change.is_some()),
                        as_of: time,
                        latest: time,
                        links: links.clone().filter(|_| time.is_some()),
                        linked: time.is_none().then(|| Box::new(linked.clone())),
                    };
                    let planned = ListedEntry {
                        uri: "http://h/\u{e9}".parse().unwrap(),
                        declaration: declaration.clone(),
                        listing,
                        moment: Moment { latest: time, is_vague: time.is_none() },
                    };
                    let (entry, read) = round(&planned);
                    assert_eq!(
                        (&read.uri, &read.declaration, &read.listing, read.moment),
                        (&planned.uri, &planned.declaration, &planned.listing, planned.moment)
                    );
                    assert_eq!((entry.is_change(), entry.is_name()), (change.is_some(), false));
                    assert_eq!(entry.linked().unwrap().map(Box::new), planned.listing.linked);
                    let held = planned.listing.links.as_ref();
                    let other = Links::of(&[Link::new("via", "http://o/y")]);
                    assert!(entry.has_links(held).unwrap());
                    let is_silent_change = held.is_none() && change.is_some();
                    assert_eq!(entry.has_links(other.as_ref()).unwrap(), is_silent_change);
                    let is_plain = declaration.digests.len() == 1
                        && declaration.digests[0].algorithm() == Algorithm::Sha256
                        && change != Some(Change::Deleted);
                    assert_eq!(entry.plain().is_some(), is_plain);
                }
            }
        }
    }

    #[test]
    fn what_is_cut_short_is_no_word() {
        let mut bytes = Vec::new();
        let listing = Listing {
            document: "".into(),
            set: SetId::new("s"),
            change: None,
            change_time: None,
            as_of: Some(at(5)),
            latest: None,
            links: None,
            linked: None,
        };
        let declaration = Declaration { length: Some(5), ..Declaration::default() };
        let uri: ResourceUri = "http://h/a".parse().unwrap();
        let planned = ListedEntry { uri: uri.clone(), declaration, listing, moment: Moment::default() };
        encode(&mut bytes, &planned, 0).unwrap();
        let head: [u8; HEAD] = bytes[..HEAD].try_into().unwrap();
        for end in HEAD + uri.as_str().len()..bytes.len() {
            let entry = SpooledEntry::new(head, bytes[HEAD..end].to_vec());
            assert!(entry.read(&[("".into(), SetId::new("s"))]).is_err(), "{end}");
        }
    }
}
