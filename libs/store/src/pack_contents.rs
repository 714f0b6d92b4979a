//! Member count and size of a pack, read from its central directory.

use model::{Location, Method, PackId, SourceId};
use packages::zip::Directory;
use packages::{Limits, PackageError};

use crate::pack::MANIFEST;
use crate::{Key, Store, StoreError};

/// Member count and size of a pack, without its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackContents {
    /// Bitstreams.
    pub members: u64,
    /// Total stored bytes.
    pub bytes: u64,
}

impl Store {
    /// Reads the contents of a pack of `size` bytes, with one range request: the directory of a pack is within
    /// the bytes that are read to find it.
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
        let key = || Key::of(&location).to_string();
        let reader = self.range_reader(&location, size);
        let directory = Directory::open(&reader, &Limits::default()).await.map_err(|error| match error {
            PackageError::Read { source, .. } => source
                .downcast::<StoreError>()
                .unwrap_or_else(|source| StoreError::Other { at: key(), source: source.into() }),
            _ => StoreError::Damaged {
                key: key(),
                expected: "a ZIP's directory at its end".to_owned(),
                computed: "other bytes".to_owned(),
            },
        })?;
        let mut contents = PackContents::default();
        for member in directory.members().filter(|member| member.name_bytes != MANIFEST.as_bytes()) {
            contents.members += 1;
            contents.bytes += member.compressed_size;
        }
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use fixity::Computed;
    use jiff::Timestamp;

    use super::*;
    use crate::{PackBuilder, PackLimits, PackMember};

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
