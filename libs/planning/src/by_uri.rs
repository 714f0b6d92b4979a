//! Maps from resources to short-lived state.

use std::collections::HashMap;

use model::ResourceUri;

/// Map keyed by resource. A run looks a resource up about a dozen times, so the hash is a fast one. It is seeded in
/// each process, because the Source chooses the URIs.
pub type ByUri<V> = HashMap<ResourceUri, V, foldhash::fast::RandomState>;
