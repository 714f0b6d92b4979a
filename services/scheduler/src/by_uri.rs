//! Maps from resources to what is known of them for a while.

use std::collections::HashMap;

use model::ResourceUri;

/// By resource. A resource is looked for a dozen times from its entry to its end, so the hash is a quick one; it is seeded anew in each process, since a Source
/// chooses the URIs.
pub(crate) type ByUri<V> = HashMap<ResourceUri, V, foldhash::fast::RandomState>;
