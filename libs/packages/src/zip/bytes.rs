//! Little-endian numbers at fixed offsets of records whose length was checked.

/// The two bytes at `at` as a number; 0 behind the end.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

/// The four bytes at `at` as a number; 0 behind the end.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The eight bytes at `at` as a number; 0 behind the end.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The fields of an extra field, as (header id, content). Ends at the first that does not fit: padding is
/// common there.
pub(super) fn extra_fields(extra: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = extra;
    std::iter::from_fn(move || {
        let id = rest.get(..4).map(|head| u16_at(head, 0))?;
        let length = usize::from(u16_at(rest, 2));
        let content = rest.get(4..4 + length)?;
        rest = &rest[4 + length..];
        Some((id, content))
    })
}

/// The content of the ZIP64 extra field (APPNOTE 4.5.3), if there is exactly one.
pub(super) fn zip64_extra(extra: &[u8]) -> Result<Option<&[u8]>, &'static str> {
    let mut found = extra_fields(extra).filter(|(id, _)| *id == 0x0001).map(|(_, content)| content);
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => Err("it has two ZIP64 fields"),
    }
}
