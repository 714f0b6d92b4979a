//! Measures what a catalog stores of each resource of a plain Resource List, and a pack beside each of its members:
//! `cargo run --release -p catalog --example sizes -- [records]`. With `--at FOLDER PATH` it measures a catalog in a
//! directory, such as `--at mirror/.thresher catalogs/example-org-0123456789ab`. It prints one line of JSON for each
//! figure, in bytes a resource. `disk` counts the files that the catalog needs, all merged.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use catalog::{Batch, Catalog, CatalogConfig};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use serde_json::json;

mod files;
mod packs;
mod records;

type Outcome<T> = Result<T, Box<dyn Error>>;

const PATH: &str = "catalogs/sizes";
/// Resources that are settled together.
const BATCH: u64 = 1000;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("--at") {
        let folder: PathBuf = arguments.next().ok_or("--at FOLDER PATH")?.into();
        let path = arguments.next().ok_or("--at FOLDER PATH")?;
        let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(&folder)?);
        return files::print(&store, &path).await;
    }
    let records: u64 = first.map_or(Ok(1_000_000), |text| text.parse())?;
    let temporary = tempfile::tempdir()?;
    let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(temporary.path())?);
    records::print_fields();
    packs::print()?;
    harvest(&store, records).await?;
    files::merge(&store, PATH).await?;
    files::print(&store, PATH).await
}

/// Writes what a first harvest writes: plans, then records, changes, and the removal of the plans.
async fn harvest(store: &Arc<dyn ObjectStore>, records: u64) -> Outcome<()> {
    let catalog = Catalog::open(Arc::clone(store), PATH, CatalogConfig::default()).await?;
    let run = model::RunId::fresh();
    let mut planned = 0;
    for from in (0..records).step_by(BATCH as usize) {
        let numbers = from..records.min(from + BATCH);
        let mut batch = Batch::new();
        for n in numbers.clone() {
            let uri = records::uri(n);
            let plan = records::pending(n);
            planned += serde_json::to_vec(&plan)?.len() + uri.as_str().len();
            batch.put_pending(&uri, &plan);
        }
        catalog.commit(batch).await?;
        let pack = model::PackId::fresh();
        let mut batch = Batch::new();
        for n in numbers {
            let uri = records::uri(n);
            batch.put_resource(&uri, &records::resource(n, pack));
            batch.append_change(&records::change(n, run));
            batch.delete_pending(&uri);
        }
        catalog.commit(batch).await?;
    }
    println!(
        "{}",
        json!({"figure": "plan as JSON, removed since", "bytes": planned as f64 / records as f64})
    );
    Ok(catalog.close().await?)
}
