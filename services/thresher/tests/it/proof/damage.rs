//! Damage of every kind: to bytes in a pack, in an object, in a package, and to their records in the catalog.

use std::collections::BTreeSet;

use fixity::Computed;
use model::Location;
use store::Key;

use crate::common::Inside;
use crate::proof::case::Case;

/// Damaged bytes: in a pack, in objects, in a package.
const BYTES: [&str; 5] = ["packed-0", "object-0", "object-1", "member-4", "member-5"];
/// Records that contradict the Source's declaration, or themselves, and the bytes at their location.
const EDITED: [&str; 3] = ["member-0", "object-2", "packed-1"];
/// Records with the right digest and length, and a wrong location.
const MOVED: [&str; 4] = ["member-1", "object-3", "packed-2", "packed-3"];
/// A record of existing bytes of another resource.
const ANOTHERS: [&str; 1] = ["packed-4"];

/// The damage, and the content of the damaged objects afterwards.
pub(crate) struct Damaged {
    is_stored_harmed: bool,
    /// The damaged object, which must be quarantined.
    flipped: Vec<u8>,
    /// The pack and the package, which must stay as they are.
    kept: Vec<(Key, Vec<u8>)>,
}

impl Damaged {
    /// Damages bytes and records.
    pub(crate) async fn inflict(case: &Case) -> Self {
        let inside = Inside::of(&case.copy, &case.url).await;
        let location = async |name: &str| inside.location(&case.uri(name)).await;

        let packed = location("packed-0").await;
        let (pack, span) = (Key::of(&packed), packed.span().expect("it lies in a pack"));
        let mut bytes = inside.object(&pack).await;
        bytes[place(span.offset + 5)] ^= 1;
        inside.overwrite(&pack, bytes.clone()).await;
        let mut kept = vec![(pack, bytes)];

        inside.remove(&Key::of(&location("object-0").await)).await;
        let object = Key::of(&location("object-1").await);
        let mut flipped = inside.object(&object).await;
        flipped[77] ^= 1;
        inside.overwrite(&object, flipped.clone()).await;

        // In the middle of a member: it is incomplete and the next one is missing.
        let member = location("member-4").await;
        let (package, span) = (Key::of(&member), member.span().expect("it lies in a package"));
        let mut bytes = inside.object(&package).await;
        bytes.truncate(place(span.offset + span.stored_length / 2));
        inside.overwrite(&package, bytes.clone()).await;
        kept.push((package, bytes));

        edit(&inside, case).await;
        inside.close().await;
        Self { is_stored_harmed: true, flipped, kept }
    }

    /// Damages records alone.
    pub(crate) async fn edit_records(case: &Case) -> Self {
        let inside = Inside::of(&case.copy, &case.url).await;
        edit(&inside, case).await;
        inside.close().await;
        Self { is_stored_harmed: false, flipped: Vec::new(), kept: Vec::new() }
    }

    /// Resources that cannot be read as recorded.
    pub(crate) fn seen_by_scrub(&self) -> BTreeSet<&'static str> {
        let bytes = BYTES.iter().filter(|_| self.is_stored_harmed);
        bytes.chain(&EDITED).chain(&MOVED).copied().collect()
    }

    /// Resources that contradict their declaration or themselves.
    pub(crate) fn seen_by_audit(&self) -> BTreeSet<&'static str> {
        // An object that is named by another digest contradicts its record.
        EDITED.iter().chain(&ANOTHERS).chain(&["object-3"]).copied().collect()
    }

    /// Resources whose damage only the Source can show.
    pub(crate) fn seen_by_audit_alone(&self) -> BTreeSet<&'static str> {
        self.seen_by_audit().difference(&self.seen_by_scrub()).copied().collect()
    }

    /// The damaged object was quarantined unchanged, and nothing was written into the pack or the package.
    pub(crate) async fn left_as_it_was(&self, case: &Case) {
        let inside = Inside::of(&case.copy, &case.url).await;
        let aside = inside.below("damaged").await;
        assert!(aside == std::slice::from_ref(&self.flipped), "{} objects were set aside", aside.len());
        for (key, bytes) in &self.kept {
            assert!(inside.object(key).await == *bytes, "{key} was written to");
        }
        inside.close().await;
    }
}

/// Edits records by hand: another digest, another length, another location.
async fn edit(inside: &Inside, case: &Case) {
    let held = async |name: &str| inside.record(&case.uri(name)).await.bitstream.expect("it is held");
    let other_object = held("object-4").await;
    let other_packed = held("packed-5").await;
    let edited = |name: &str| case.uri(name);
    inside.edit(&edited("packed-1"), |record| bitstream(record).computed = Computed::of(b"other")).await;
    inside.edit(&edited("object-2"), |record| bitstream(record).computed = Computed::of(b"other")).await;
    inside.edit(&edited("member-0"), |record| *span(record).1 -= 1).await;

    inside.edit(&edited("object-3"), |record| bitstream(record).location = other_object.location).await;
    inside.edit(&edited("packed-2"), |record| *span(record).0 += 1).await;
    inside.edit(&edited("packed-3"), |record| *span(record).0 = u64::MAX - 1).await;
    // A deflated member may have any length in its archive.
    inside.edit(&edited("member-1"), |record| *span(record).1 = u64::MAX).await;

    inside
        .edit(&edited("packed-4"), |record| {
            let held = bitstream(record);
            (held.location, held.computed) = (other_packed.location, other_packed.computed);
        })
        .await;
}

fn bitstream(record: &mut model::ResourceRecord) -> &mut model::Bitstream {
    record.bitstream.as_mut().expect("it is held")
}

/// Offset and stored length of bytes in a pack or package.
fn span(record: &mut model::ResourceRecord) -> (&mut u64, &mut u64) {
    match &mut bitstream(record).location {
        Location::Pack { offset, stored_length, .. } | Location::Package { offset, stored_length, .. } => {
            (offset, stored_length)
        }
        Location::Object { .. } => panic!("it has an object of its own"),
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("a small file")
}
