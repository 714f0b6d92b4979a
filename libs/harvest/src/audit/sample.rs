//! A random sample of a repository's records, each asked for by itself. A record may change without a new datestamp,
//! and no list tells that.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use model::{Bitstream, DifferenceKind, ResourceRecord};
use oaipmh::Quirk;
use planning::{Decision, ListedEntry};

use super::differences::{Difference, Found};
use super::{Comparison, plan};
use crate::error::HarvestError;
use crate::oai::{Given, give, is_same};
use crate::run::RunContext;

/// Records that may fail in a row. Then the repository is away.
const FAILURES: u32 = 10;

/// The records that are drawn so far: those with the smallest random numbers.
#[derive(Debug)]
pub(crate) struct Sample {
    most: usize,
    numbers: RandomState,
    drawn: BTreeMap<u64, (ListedEntry, ResourceRecord, Bitstream)>,
}

impl Sample {
    /// A sample of this many records.
    pub(crate) fn of(most: usize) -> Self {
        Self { most, numbers: RandomState::new(), drawn: BTreeMap::new() }
    }

    /// Offers a record whose datestamp is that of its header.
    pub(crate) fn offer(&mut self, entry: &ListedEntry, record: &ResourceRecord) {
        let Some(bitstream) = record.bitstream.as_ref().filter(|_| self.most > 0) else { return };
        let number = self.numbers.hash_one(entry.uri.as_str());
        if self.drawn.len() >= self.most {
            match self.drawn.last_key_value() {
                Some((largest, _)) if number < *largest => drop(self.drawn.pop_last()),
                _ => return,
            }
        }
        self.drawn.insert(number, (entry.clone(), record.clone(), bitstream.clone()));
    }
}

impl Comparison {
    /// Asks for the records of the sample, and compares their metadata with what is stored. Returns remarks on those
    /// that could not be compared.
    pub(crate) async fn compare_sample(&mut self, ctx: &mut RunContext) -> Result<Vec<String>, HarvestError> {
        let sample = std::mem::replace(&mut self.sample, Sample::of(0));
        let (mut remarks, mut failures) = (Vec::new(), 0);
        for (entry, record, bitstream) in sample.drawn.into_values() {
            ctx.check_stop()?;
            let unknown = match give(ctx, &entry.uri).await {
                Some(Given::Live(document, datestamp)) => {
                    failures = 0;
                    if datestamp.map(|datestamp| datestamp.instant()) != entry.declaration.lastmod {
                        // It changed since the list: the next one tells it.
                        continue;
                    }
                    match ctx.store.read_verified(&bitstream).await {
                        Ok(stored) => {
                            self.counts.without_fixity -= 1;
                            if std::str::from_utf8(&stored).is_ok_and(|stored| is_same(&document, stored)) {
                                self.counts.agreeing += 1;
                            } else {
                                self.note_moved(ctx, entry, &record)?;
                            }
                            continue;
                        }
                        Err(error) => format!("what is stored cannot be read: {error}"),
                    }
                }
                Some(Given::Deleted) => continue,
                Some(Given::Unknown(why)) => {
                    failures += 1;
                    why
                }
                None => continue,
            };
            self.counts.unread += 1;
            remarks.push(format!("{} was not compared: {unknown}", entry.uri));
            if failures >= FAILURES {
                break;
            }
        }
        Ok(remarks)
    }

    /// Notes a record that changed without a new datestamp.
    fn note_moved(
        &mut self,
        ctx: &mut RunContext,
        entry: ListedEntry,
        record: &ResourceRecord,
    ) -> Result<(), HarvestError> {
        let quirk = Quirk::DatestampNotMoved.as_str().to_owned();
        ctx.run.counters.add_quirks(&BTreeMap::from([(quirk, 1)]));
        let difference = Difference {
            difference: DifferenceKind::Stale,
            uri: entry.uri.clone(),
            why: "the repository gives other metadata under the same datestamp".to_owned(),
            document: Some(entry.listing.document.as_ref().to_owned()),
            ignored: None,
        };
        let plan = plan(entry, DifferenceKind::Stale, Decision::Fetch, Some(record));
        self.note(Found { difference, plan, absent_from: None })
    }
}
