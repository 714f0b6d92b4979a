//! Names and headers of the documents, and the documents above the lists.

use std::collections::BTreeMap;

use bytes::Bytes;
use fixity::Sha256;
use jiff::Timestamp;
use resourcesync::{Capability, Entry, Header, Link, Metadata, Root, Writer, relation};

use url::Url;

use crate::change_record::ChangeListRecord;
use crate::paths::{
    CAPABILITIES, CHANGE_DUMP, CHANGES, CHANGES_ARCHIVE, DESCRIPTION, DUMP, PAGE, RESOURCES,
    RESOURCES_ARCHIVE, ROBOTS, TOPIC,
};
use crate::place::{About, Place, xml};
use crate::state::{Edition, State};
use crate::{Base, PublishError};

/// The header of a Resource List, or of a part of one.
pub(crate) fn resource_list(base: &Base, at: Timestamp, completed: Timestamp, is_part: bool) -> Header {
    Header {
        at: Some(at.into()),
        completed: Some(completed.into()),
        links: links(base, is_part.then_some(RESOURCES)),
        ..Header::new(Root::UrlSet, Some(Capability::ResourceList))
    }
}

/// The header of a Change List.
pub(crate) fn change_list(base: &Base, list: &ChangeListRecord) -> Header {
    Header {
        from: Some(list.from.into()),
        until: list.until.map(Into::into),
        links: links(base, Some(CHANGES)),
        ..Header::new(Root::UrlSet, Some(Capability::ChangeList))
    }
}

/// Links of a document: `up` to the Capability List, and `index`.
pub(crate) fn links(base: &Base, index: Option<&str>) -> Vec<Link> {
    let up = Link::new(relation::UP, base.url(CAPABILITIES));
    let index = index.map(|index| Link::new(relation::INDEX, base.url(index)));
    std::iter::once(up).chain(index).collect()
}

/// The index of the parts of a Resource List.
pub(crate) fn resource_index(base: &Base, edition: &Edition) -> Result<Bytes, PublishError> {
    let header =
        Header { root: Root::SitemapIndex, ..resource_list(base, edition.at, edition.completed, false) };
    let parts = edition.parts.iter().map(|part| {
        let metadata = Metadata { at: Some(part.at.into()), ..Metadata::default() };
        Entry { metadata, ..Entry::new(base.url(&part.path)) }
    });
    document(&header, parts)
}

/// The index of the Change Lists.
pub(crate) fn change_index(base: &Base, lists: &[ChangeListRecord]) -> Result<Bytes, PublishError> {
    let header = Header {
        from: lists.first().map(|list| list.from.into()),
        links: links(base, None),
        ..Header::new(Root::SitemapIndex, Some(Capability::ChangeList))
    };
    let parts = lists.iter().map(|list| {
        let from = Some(list.from.into());
        let metadata = Metadata { from, until: list.until.map(Into::into), ..Metadata::default() };
        Entry { metadata, ..Entry::new(base.url(&list.path)) }
    });
    document(&header, parts)
}

/// Writes the documents above the lists, and the page: those that differ from what is there, the topmost one last.
/// Returns how many were written.
pub(crate) async fn put_above(
    place: &Place,
    base: &Base,
    state: &mut State,
    page: &str,
    hubs: &[Url],
    description: Option<&str>,
    sets: &[String],
) -> Result<u64, PublishError> {
    let mut written = 0;
    let described = || Link::new(relation::DESCRIBED_BY, base.url(PAGE));
    let html = About { media_type: Some("text/html; charset=utf-8".to_owned()), ..About::default() };
    let text = About { media_type: Some("text/plain; charset=utf-8".to_owned()), ..About::default() };
    written += put_fixed(place, &mut state.fixed, PAGE, page.to_owned().into(), &html).await?;
    if description.is_none() {
        let robots = format!("User-agent: *\nAllow: /\nSitemap: {}\n", base.url(RESOURCES));
        written += put_fixed(place, &mut state.fixed, ROBOTS, robots.into(), &text).await?;
    }

    let above = description.map_or_else(|| base.url(DESCRIPTION), str::to_owned);
    let capabilities = Header {
        links: vec![described(), Link::new(relation::UP, above)],
        ..Header::new(Root::UrlSet, Some(Capability::CapabilityList))
    };
    let lists = [(RESOURCES, Capability::ResourceList), (CHANGES, Capability::ChangeList)];
    let dump = state.dump.as_ref().map(|_| (DUMP, Capability::ResourceDump));
    let changes = state.fixed.contains_key(CHANGE_DUMP).then_some((CHANGE_DUMP, Capability::ChangeDump));
    let archives = [
        (RESOURCES_ARCHIVE, Capability::ResourceListArchive),
        (CHANGES_ARCHIVE, Capability::ChangeListArchive),
    ];
    let archives: Vec<_> = archives.into_iter().filter(|(path, _)| state.fixed.contains_key(*path)).collect();
    let lists = lists
        .into_iter()
        .chain(dump)
        .chain(changes)
        .chain(archives)
        .map(|(path, capability)| leads_to(base, path, capability));
    let hub = |hub: &Url| Link::new(relation::HUB, hub.as_str());
    let topic = (!hubs.is_empty()).then(|| Entry {
        links: hubs.iter().map(hub).collect(),
        ..leads_to(base, TOPIC, Capability::ChangeNotification)
    });
    let lists = lists.chain(topic);
    written +=
        put_fixed(place, &mut state.fixed, CAPABILITIES, document(&capabilities, lists)?, &xml()).await?;

    if description.is_some() {
        // The collection has the Source Description.
        return Ok(written);
    }
    let description =
        Header { links: vec![described()], ..Header::new(Root::UrlSet, Some(Capability::Description)) };
    let set = Entry { links: vec![described()], ..leads_to(base, CAPABILITIES, Capability::CapabilityList) };
    let parts = sets.iter().map(|path| leads_to(base, path, Capability::CapabilityList));
    let sets = std::iter::once(set).chain(parts);
    written += put_fixed(place, &mut state.fixed, DESCRIPTION, document(&description, sets)?, &xml()).await?;
    Ok(written)
}

/// Writes a document with a fixed name, if it differs from the one that is there, by the digests in `fixed`. Returns 1 if
/// it was written.
pub(crate) async fn put_fixed(
    place: &Place,
    fixed: &mut BTreeMap<String, Sha256>,
    path: &str,
    bytes: Bytes,
    about: &About,
) -> Result<u64, PublishError> {
    let sha256 = Sha256::of(&bytes);
    if fixed.get(path) == Some(&sha256) {
        return Ok(0);
    }
    place.put(path, bytes, about).await?;
    fixed.insert(path.to_owned(), sha256);
    Ok(1)
}

fn leads_to(base: &Base, path: &str, capability: Capability) -> Entry {
    let metadata = Metadata { capability: Some(capability), ..Metadata::default() };
    Entry { metadata, ..Entry::new(base.url(path)) }
}

/// A small document, in memory.
pub(crate) fn document(
    header: &Header,
    entries: impl IntoIterator<Item = Entry>,
) -> Result<Bytes, PublishError> {
    let mut writer = Writer::new(Vec::new(), header)?;
    for entry in entries {
        writer.write(&entry)?;
    }
    let bytes = writer.finish()?;
    Ok(bytes.into())
}
