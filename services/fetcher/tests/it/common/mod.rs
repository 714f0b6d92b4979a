//! Helpers for several tests of packages.

use model::{Declaration, JobId, Origin, PackageJob, RunId, Seq, Terms, Validators};

/// A job for the package at `uri`, without any declaration.
pub(crate) fn package_job(uri: &str) -> PackageJob {
    let uri: model::ResourceUri = uri.parse().expect("an http URI");
    PackageJob {
        id: JobId::fresh(),
        source: "case".parse().expect("a source id"),
        run: RunId::fresh(),
        origin: Origin::of(&uri.to_url()).expect("a URL with a host"),
        uri,
        seq: Seq::new(5),
        terms: Terms::default(),
        declaration: Declaration::default(),
        held: Validators::default(),
    }
}
