//! Member count and size of a pack, read from its central directory.

use model::{Location, Method, PackId, SourceId};

use crate::pack::MANIFEST;
use crate::{Store, StoreError};

/// Member count and size of a pack, without its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackContents {
    /// Bitstreams.
    pub members: u64,
    /// Total stored bytes.
    pub bytes: u64,
}

/// Size of the end record of a ZIP without a comment.
const END: usize = 22;
const END_SIGNATURE: [u8; 4] = *b"PK\x05\x06";
/// Size of a directory entry without its name.
const ENTRY: usize = 46;
const ENTRY_SIGNATURE: [u8; 4] = *b"PK\x01\x02";
/// An upper bound for the directory of a pack.
const TAIL: u64 = 128 * 1024;

impl Store {
    /// Reads the contents of a pack of `size` bytes, with one range request.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is no pack of ours; otherwise the error of the store.
    pub async fn pack_contents(
        &self,
        source: &SourceId,
        pack: PackId,
        size: u64,
    ) -> Result<PackContents, StoreError> {
        let location = Location::Pack {
            source: source.clone(),
            pack,
            offset: 0,
            stored_length: size,
            method: Method::Stored,
        };
        let begin = size.saturating_sub(TAIL);
        let tail = self.read_range(&location, begin..size).await?;
        read_directory(&tail, begin).ok_or_else(|| StoreError::Damaged {
            key: crate::Key::of(&location).to_string(),
            expected: "a ZIP's directory at its end".to_owned(),
            computed: "other bytes".to_owned(),
        })
    }
}

fn read_directory(tail: &[u8], begin: u64) -> Option<PackContents> {
    let end = tail.get(tail.len().checked_sub(END)?..)?;
    if !end.starts_with(&END_SIGNATURE) {
        return None;
    }
    let entries = u16_at(end, 10)?;
    let mut at = usize::try_from(u64::from(u32_at(end, 16)?).checked_sub(begin)?).ok()?;
    let mut contents = PackContents::default();
    for _ in 0..entries {
        let entry = tail.get(at..)?;
        if !entry.starts_with(&ENTRY_SIGNATURE) {
            return None;
        }
        let name_length = usize::from(u16_at(entry, 28)?);
        let name = entry.get(ENTRY..ENTRY + name_length)?;
        if name != MANIFEST.as_bytes() {
            contents.members += 1;
            contents.bytes += u64::from(u32_at(entry, 20)?);
        }
        at += ENTRY + name_length + usize::from(u16_at(entry, 30)?) + usize::from(u16_at(entry, 32)?);
    }
    Some(contents)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use fixity::Computed;
    use jiff::Timestamp;

    use super::*;
    use crate::{Key, PackBuilder, PackLimits, PackMember};

    #[tokio::test]
    async fn the_members_of_a_full_pack_are_counted_from_its_end() {
        let store = Store::in_memory();
        let source: SourceId = "s".parse().unwrap();
        for count in [1_u64, 2, PackLimits::default().members as u64] {
            let mut builder =
                PackBuilder::new(source.clone(), Timestamp::UNIX_EPOCH, PackLimits::default()).unwrap();
            for n in 0..count {
                let bytes = vec![7; n as usize % 90];
                let uri = format!("http://h/{n}/{}", "x".repeat(200)).parse().unwrap();
                let computed = Computed::of(&bytes);
                let member = PackMember {
                    uri: &uri,
                    bytes: &bytes,
                    computed: &computed,
                    media_type: None,
                    last_modified: None,
                };
                builder.add(member).unwrap();
            }
            let pack = builder.finish().unwrap();
            store.put_pack(&pack).await.unwrap();
            let Key::Pack { pack: id, .. } = pack.key() else { panic!("{pack:?}") };
            let found = store.pack_contents(&source, *id, pack.body().len() as u64).await.unwrap();
            let bytes = (0..count).map(|n| n % 90).sum();
            assert_eq!(found, PackContents { members: count, bytes });
            let short = store.pack_contents(&source, *id, pack.body().len() as u64 - 1).await;
            assert!(matches!(short, Err(StoreError::Damaged { .. })), "{short:?}");
        }
    }
}
