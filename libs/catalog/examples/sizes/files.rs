//! What the files of a catalog hold, by key space.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, CatalogConfig};
use object_store::ObjectStore;
use serde_json::json;
use slatedb::admin::{Admin, AdminBuilder};
use slatedb::compactor::{CompactionSpec, SourceId};
use slatedb::manifest::VersionedManifest;
use slatedb::{SstFile, SstReader};

use crate::Outcome;

/// How long merging may take, in seconds.
const PATIENCE: u32 = 3600;

/// Rows and bytes of one key space.
#[derive(Default)]
struct Space {
    rows: u64,
    keys: usize,
    values: usize,
    stored: u64,
}

/// Merges all files of a catalog into one run, as they are after a while.
pub(crate) async fn merge(store: &Arc<dyn ObjectStore>, path: &str) -> Outcome<()> {
    let catalog = Catalog::open(Arc::clone(store), path, CatalogConfig::default()).await?;
    let admin = admin(store, path);
    for _ in 0..PATIENCE {
        let manifest = manifest(&admin).await?;
        if manifest.l0().is_empty() && manifest.compacted().len() <= 1 {
            return Ok(catalog.close().await?);
        }
        let mut sources: Vec<SourceId> =
            manifest.l0().iter().map(|view| SourceId::SstView(view.id)).collect();
        sources.extend(manifest.compacted().iter().map(|run| SourceId::SortedRun(run.id)));
        let destination = manifest.compacted().iter().map(|run| run.id).min().unwrap_or_default();
        // It is refused while others merge some of them.
        admin.submit_compaction(CompactionSpec::new(sources, destination)).await.ok();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Err(format!("the files were not merged into one run within {PATIENCE} seconds").into())
}

/// Prints bytes a resource: as stored, and of keys and values before compression.
pub(crate) async fn print(store: &Arc<dyn ObjectStore>, path: &str) -> Outcome<()> {
    let manifest = manifest(&admin(store, path)).await?;
    let reader = SstReader::new(path, Arc::clone(store), None, None);
    let mut spaces: BTreeMap<u8, Space> = BTreeMap::new();
    let mut beside = [0; 3];
    for view in manifest.all_sst_views() {
        let file = reader.open_with_handle(view.sst.clone())?;
        add_blocks(&file, &mut spaces).await?;
        let info = file.info();
        for (sum, bytes) in beside.iter_mut().zip([info.index_len, info.filter_len, info.stats_len]) {
            *sum += bytes;
        }
    }
    let resources = spaces.get(&b'r').map_or(1, |space| space.rows.max(1)) as f64;
    for (letter, space) in &spaces {
        println!(
            "{}",
            json!({
                "figure": "disk, records", "space": char::from(*letter).to_string(), "rows": space.rows,
                "bytes": space.stored as f64 / resources, "keys": space.keys as f64 / resources,
                "values": space.values as f64 / resources,
            })
        );
    }
    for (what, bytes) in ["indexes", "filters", "statistics"].into_iter().zip(beside) {
        println!("{}", json!({"figure": "disk", "part": what, "bytes": bytes as f64 / resources}));
    }
    let all = spaces.values().map(|space| space.stored).sum::<u64>() + beside.into_iter().sum::<u64>();
    println!(
        "{}",
        json!({"figure": "disk, all", "resources": resources, "runs": manifest.compacted().len(),
               "fresh_files": manifest.l0().len(), "bytes": all as f64 / resources})
    );
    Ok(())
}

/// Adds the blocks of a file, each to the key space of its first row.
async fn add_blocks(file: &SstFile, spaces: &mut BTreeMap<u8, Space>) -> Outcome<()> {
    let index = file.index().await?;
    let info = file.info();
    let end = if info.filter_len > 0 { info.filter_offset } else { info.index_offset };
    for (n, (offset, _)) in index.iter().enumerate() {
        let next = index.get(n + 1).map_or(end, |(next, _)| next);
        let rows = file.read_block(n).await?;
        let Some(first) = rows.first() else { continue };
        spaces.entry(first.key[0]).or_default().stored += next - offset;
        for row in rows {
            let space = spaces.entry(row.key[0]).or_default();
            space.rows += 1;
            space.keys += row.key.len();
            space.values += row.value.as_bytes().map_or(0, |value| value.len());
        }
    }
    Ok(())
}

fn admin(store: &Arc<dyn ObjectStore>, path: &str) -> Admin {
    AdminBuilder::new(path, Arc::clone(store)).build()
}

async fn manifest(admin: &Admin) -> Outcome<VersionedManifest> {
    admin.read_manifest(None).await?.ok_or_else(|| "there is no catalog".into())
}
