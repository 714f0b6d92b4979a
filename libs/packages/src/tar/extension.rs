//! Extensions of a header: PAX records (POSIX.1-2017, pax) and GNU long names.

use super::header::{Header, OCTAL_MOST};

/// The extensions of the next member's header.
#[derive(Default)]
pub(super) struct Extension {
    /// `path` of its PAX records.
    path: Option<Vec<u8>>,
    /// `size` of its PAX records.
    size: Option<u64>,
    /// Its GNU long name.
    long_name: Option<Vec<u8>>,
    /// Whether its content belongs to a sparse file.
    pub(super) sparse: bool,
    /// Whether it has PAX records.
    has_records: bool,
    /// Bytes of the extensions read so far.
    pub(super) bytes: u64,
}

impl Extension {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0 && !self.has_records && self.long_name.is_none()
    }

    /// Takes a member's PAX records.
    pub(super) fn records(&mut self, data: &[u8]) -> Result<(), &'static str> {
        if std::mem::replace(&mut self.has_records, true) {
            return Err("the member has PAX records twice");
        }
        for record in records(data) {
            let (key, value) = record?;
            match key {
                b"path" => set(&mut self.path, value.to_vec())?,
                b"size" => set(&mut self.size, decimal(value).ok_or("the PAX size is no number")?)?,
                _ => self.sparse |= key.starts_with(b"GNU.sparse."),
            }
        }
        match &self.path {
            Some(path) if path.is_empty() => Err("the PAX path is empty"),
            _ => Ok(()),
        }
    }

    /// Takes a GNU long name.
    pub(super) fn long_name(&mut self, data: &[u8]) -> Result<(), &'static str> {
        let name = data.split(|&byte| byte == 0).next().unwrap_or_default();
        match self.long_name.replace(name.to_vec()) {
            None if name.is_empty() => Err("the long name is empty"),
            None => Ok(()),
            Some(_) => Err("the member has two long names"),
        }
    }

    /// The effective name.
    pub(super) fn name(&self, header: &Header) -> Result<Vec<u8>, &'static str> {
        match (&self.path, &self.long_name) {
            (Some(path), Some(name)) if path != name => Err("the PAX path and the GNU long name differ"),
            (Some(name), _) | (None, Some(name)) => Ok(name.clone()),
            (None, None) => Ok(header.name.clone()),
        }
    }

    /// The effective size, which decides the member's content and the offset of the next header.
    ///
    /// PAX records state a size that the header has no room for. If the header has room and states another
    /// one, a reader that ignores PAX records would find other members in what is content here.
    pub(super) fn size(&self, header: &Header) -> Result<u64, &'static str> {
        match self.size {
            None => Ok(header.size),
            Some(size) if size == header.size || size > OCTAL_MOST => Ok(size),
            Some(_) => Err("the PAX size differs from the header's"),
        }
    }
}

/// Checks PAX records for all following members. None of them is used, and a name or a size there would be a
/// trap.
pub(super) fn check_global(data: &[u8]) -> Result<(), &'static str> {
    for record in records(data) {
        let (key, _) = record?;
        if matches!(key, b"path" | b"size") || key.starts_with(b"GNU.sparse.") {
            return Err("it gives one name or size to all members that follow");
        }
    }
    Ok(())
}

fn set<T: PartialEq>(place: &mut Option<T>, value: T) -> Result<(), &'static str> {
    match place.replace(value) {
        Some(before) if place.as_ref() != Some(&before) => Err("its PAX records contradict each other"),
        _ => Ok(()),
    }
}

/// The records `<length> <key>=<value>\n`. The length decides where one ends: values may hold line feeds.
fn records(data: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), &'static str>> {
    let mut rest = data;
    std::iter::from_fn(move || {
        // Some writers pad with NULs.
        if rest.iter().all(|&byte| byte == 0) {
            return None;
        }
        let record = record(rest);
        rest = record.map_or(&[], |(_, _, rest)| rest);
        Some(record.map(|(key, value, _)| (key, value)).ok_or("a PAX record is malformed"))
    })
}

type Record<'a> = (&'a [u8], &'a [u8], &'a [u8]);

fn record(data: &[u8]) -> Option<Record<'_>> {
    // The digits of a length need a few bytes, so a long run without a blank is not searched.
    let blank = data.iter().take(20).position(|&byte| byte == b' ')?;
    let length = usize::try_from(decimal(&data[..blank])?).ok()?;
    let (record, rest) = data.split_at_checked(length)?;
    let record = record.get(blank + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|&byte| byte == b'=').filter(|&at| at > 0)?;
    Some((&record[..equals], &record[equals + 1..], rest))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let digits = digits.iter().all(u8::is_ascii_digit).then_some(digits)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Records<'a> = Vec<(&'a [u8], &'a [u8])>;

    fn all(data: &[u8]) -> Result<Records<'_>, &'static str> {
        records(data).collect()
    }

    #[test]
    fn records_end_where_their_length_says() {
        let read = all(b"13 path=a\nb=c\n12 size=123\n6 k=\n\0\0").unwrap_err();
        assert_eq!(read, "a PAX record is malformed");
        let read = all(b"14 path=a\nb=c\n12 size=123\n5 k=\n\0\0").unwrap();
        assert_eq!(read, [(&b"path"[..], &b"a\nb=c"[..]), (b"size", b"123"), (b"k", b"")]);
    }

    #[test]
    fn malformed_records_end_the_reading() {
        let cases: [&[u8]; 9] = [
            b"x",
            b"5 a=b",
            b"99 a=b\n",
            b"0 a=b\n",
            b"2 a=b\n",
            b"6 ab\n",
            b"6 =ab\n",
            b"+6 a=b\n",
            &[b'1'; 100],
        ];
        for data in cases {
            assert!(all(data).is_err(), "{data:?}");
        }
    }
}
