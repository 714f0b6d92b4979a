//! A simulated site of landing pages with typed links (Signposting).

mod answer;
mod spec;
mod world;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::Router;

use crate::gate::Gate;
use crate::serving::Serving;

pub use spec::{PageFault, PageSitemap, PagesSpec};

use world::{World, item_path};

/// A running site on 127.0.0.1; it ends when dropped.
#[derive(Debug)]
pub struct SimulatedPages {
    inner: Arc<Inner>,
    serving: Serving,
}

/// What the server and its owner share.
#[derive(Debug)]
struct Inner {
    spec: PagesSpec,
    base: OnceLock<String>,
    gate: Gate,
    world: Mutex<World>,
}

impl Inner {
    fn uri(&self, path: &str) -> String {
        format!("{}{path}", self.base.get().map_or("", String::as_str))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimulatedPages {
    /// Starts to serve.
    ///
    /// # Errors
    /// When no port can be listened on.
    pub async fn start(spec: PagesSpec) -> io::Result<Self> {
        let (base, gate) = (OnceLock::new(), Gate::default());
        let inner = Arc::new(Inner { spec, base, gate, world: Mutex::default() });
        let routes = Router::new().fallback(answer::answer).with_state(Arc::clone(&inner));
        let serving = Serving::start(0, "simulated-pages", routes)?;
        inner.base.get_or_init(|| serving.url());
        Ok(Self { inner, serving })
    }

    /// `http://127.0.0.1:<port>/`, where the home page is.
    pub fn url(&self) -> String {
        format!("{}/", self.serving.url())
    }

    /// The URI of a page.
    pub fn page(&self, page: u32) -> String {
        self.inner.uri(&format!("/w/{page}"))
    }

    /// The URI of the sitemap.
    pub fn sitemap(&self) -> String {
        self.inner.uri("/sitemap.xml")
    }

    /// The URI of a file.
    pub fn item(&self, page: u32, item: u32) -> String {
        self.inner.uri(&item_path(page, item))
    }

    /// The URI of the metadata record of a page.
    pub fn metadata(&self, page: u32) -> String {
        self.inner.uri(&format!("/m/{page}.xml"))
    }

    /// All files and metadata that pages link to now, by URI, with their bytes.
    pub fn expected(&self) -> BTreeMap<String, Vec<u8>> {
        let world = self.inner.world();
        let links = (0..self.inner.spec.pages).flat_map(|page| world.links(&self.inner.spec, page));
        let parts = links.filter(|link| link.media_type.is_some());
        parts.map(|link| (self.inner.uri(&link.path), world.body(&link.path).into_bytes())).collect()
    }

    /// Changes a file, and its page with it.
    pub fn update_item(&self, page: u32, item: u32) {
        let mut world = self.inner.world();
        world.update(&item_path(page, item));
        world.update(&format!("/w/{page}"));
    }

    /// Lets a page no longer link to a file.
    pub fn drop_item(&self, page: u32, item: u32) {
        let mut world = self.inner.world();
        world.drop_item(item_path(page, item));
        world.update(&format!("/w/{page}"));
    }

    /// Lets the sitemap no longer list a page.
    pub fn drop_page(&self, page: u32) {
        self.inner.world().unlisted.push(page);
    }

    /// Answers so many requests from now on whose path begins so. Later ones wait until more are allowed, so that a
    /// harvest cannot come to its end meanwhile.
    pub fn allow(&self, prefix: &str, requests: u64) {
        self.inner.gate.allow(prefix, requests);
    }

    /// Answers all requests again, also those that wait.
    pub fn allow_all(&self) {
        self.inner.gate.allow_all();
    }

    /// Requests by path, since the start or the last reset.
    pub fn requests(&self) -> BTreeMap<String, u64> {
        self.inner.world().requests.clone()
    }

    /// Requests at paths that begin so.
    pub fn requests_below(&self, prefix: &str) -> u64 {
        self.requests().into_iter().filter(|(path, _)| path.starts_with(prefix)).map(|(_, times)| times).sum()
    }

    /// Forgets the requests so far.
    pub fn reset_requests(&self) {
        self.inner.world().requests.clear();
    }
}
