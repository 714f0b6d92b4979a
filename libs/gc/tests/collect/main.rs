//! Collections over small stores: what is removed, what stays, and that nothing is removed while a reference is
//! unknown.
#![allow(missing_docs)]

mod holds;
mod owner;
mod suite;
mod world;

use store::{S3Options, Store, StoreOptions, StoreTarget};
use testkit::servers::S3Fixture;

/// One test per case and store. On S3 one test for all cases, because each would start its own server.
macro_rules! conformance {
    ($($module:ident :: $case:ident),* $(,)?) => {
        mod in_memory {
            $(#[tokio::test]
            async fn $case() {
                super::$module::$case(super::Store::in_memory()).await;
            })*
        }

        mod local_directory {
            $(#[tokio::test]
            async fn $case() {
                let directory = tempfile::tempdir().unwrap();
                super::$module::$case(super::local(directory.path()).await).await;
            })*
        }

        #[tokio::test]
        async fn s3_is_swept_in_the_same_way() {
            let fixture = S3Fixture::get().await;
            $(
                println!("{}", stringify!($case));
                Box::pin($module::$case(s3(&fixture, stringify!($case)).await)).await;
            )*
        }
    };
}

conformance!(
    suite::what_no_record_points_to_goes_and_all_else_stays,
    suite::a_dry_run_counts_what_would_go_and_changes_nothing,
    suite::a_bitstream_of_two_sources_goes_when_neither_points_to_it,
    suite::with_an_unreadable_catalog_nothing_goes,
    suite::without_any_catalog_nothing_goes,
    suite::uploads_that_nobody_goes_on_with_are_forgotten,
    holds::what_was_stored_within_the_retention_time_stays,
    holds::a_run_that_is_not_finished_holds_back_what_was_stored_since_it_began,
    holds::a_job_of_an_earlier_run_that_is_waited_for_holds_back_as_well,
    holds::what_was_let_go_of_lately_stays_for_its_readers,
    holds::a_source_without_a_catalog_is_left_alone,
    owner::deletions_become_final_when_their_time_has_passed,
    owner::only_the_owner_makes_deletions_final,
    owner::a_pack_that_is_mostly_dead_is_rewritten_and_goes_later,
    owner::the_time_of_a_rewritten_pack_begins_when_all_of_it_was_moved,
    owner::a_pack_with_a_candidate_is_left_as_it_is,
);

async fn local(directory: &std::path::Path) -> Store {
    let target = StoreTarget::Directory(directory.to_owned());
    Store::open(&target, StoreOptions::default()).await.unwrap()
}

async fn s3(fixture: &S3Fixture, prefix: &str) -> Store {
    let options = S3Options {
        endpoint: fixture.endpoint.clone(),
        bucket: fixture.bucket.clone(),
        prefix: format!("gc/{prefix}"),
        access_key: fixture.access_key.clone(),
        secret_key: fixture.secret_key.clone(),
        region: fixture.region.clone(),
    };
    Store::s3(&options, StoreOptions::default()).await.unwrap()
}
