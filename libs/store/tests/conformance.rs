//! The promises of every store: in memory, a local directory, S3.

mod suite;

use store::{S3Options, Store, StoreError, StoreOptions, StoreTarget};
use testkit::servers::S3Fixture;

/// One test per promise and store; on S3 one for all of them, since each would start a server of its own.
macro_rules! conformance {
    ($($case:ident),* $(,)?) => {
        mod in_memory {
            $(#[tokio::test]
            async fn $case() {
                super::suite::$case(&super::Store::in_memory()).await;
            })*
        }

        mod local_directory {
            $(#[tokio::test]
            async fn $case() {
                let directory = tempfile::tempdir().unwrap();
                super::suite::$case(&super::local(directory.path()).await).await;
            })*
        }

        #[tokio::test]
        async fn s3_keeps_every_promise() {
            let fixture = S3Fixture::get().await;
            $(
                println!("{}", stringify!($case));
                suite::$case(&s3(&fixture, stringify!($case)).await).await;
            )*
        }
    };
}

conformance!(
    a_spooled_body_becomes_one_object_under_its_digest,
    a_body_of_several_parts_arrives_whole,
    an_empty_body_is_an_object_too,
    the_same_content_is_one_object,
    a_small_body_is_stored_without_a_spool,
    members_of_a_pack_are_read_in_every_way,
    a_pack_can_be_put_again_and_is_never_overwritten,
    what_is_missing_is_not_found,
    a_range_is_read_from_within_a_bitstream,
    a_damaged_small_bitstream_gives_no_byte,
    a_damaged_large_bitstream_is_never_whole,
    a_pack_cut_short_is_damaged,
    existence_is_judged_by_length,
    members_of_a_package_are_read_in_every_way,
    a_whole_package_is_read_in_ranges,
    the_end_of_what_lies_beside_packages_comes_with_its_length,
    a_deflated_member_that_is_not_what_it_was_is_never_whole,
    an_upload_that_was_dropped_goes_on_behind_its_last_part,
    an_upload_that_was_kept_goes_on_at_the_very_byte,
    a_resource_that_was_uploaded_has_the_name_of_its_content_where_that_copies_nothing,
    a_package_of_less_than_a_part_is_one_object_and_no_note,
    an_upload_that_begins_anew_is_another_package,
    of_two_workers_on_one_upload_one_goes_on,
    an_upload_whose_parts_are_gone_begins_anew,
    what_is_removed_is_gone_and_a_bitstream_that_was_found_again_is_not,
    a_put_that_meets_a_sweep_is_never_lost,
    what_is_there_of_a_damaged_bitstream_is_told,
    a_damaged_object_is_set_aside_and_what_comes_again_is_whole,
    uploads_are_told_with_the_packages_they_become,
    sources_are_noted_and_listed,
    what_is_held_is_laid_out_wherever_it_lies,
    what_is_damaged_is_not_laid_out,
    who_writes_into_a_file_of_a_view_does_no_harm_to_what_is_held,
    the_object_store_is_complete,
);

async fn local(directory: &std::path::Path) -> Store {
    let target = StoreTarget::Directory(directory.to_owned());
    Store::open(&target, StoreOptions::default()).await.unwrap()
}

fn s3_options(fixture: &S3Fixture, prefix: &str) -> S3Options {
    S3Options {
        endpoint: fixture.endpoint.clone(),
        bucket: fixture.bucket.clone(),
        prefix: format!("some/{prefix}"),
        access_key: fixture.access_key.clone(),
        secret_key: fixture.secret_key.clone(),
        region: fixture.region.clone(),
    }
}

async fn s3(fixture: &S3Fixture, prefix: &str) -> Store {
    Store::s3(&s3_options(fixture, prefix), StoreOptions::default()).await.unwrap()
}

#[tokio::test]
async fn s3_gives_up_uploads_that_were_begun_long_ago_and_that_nobody_goes_on_with() {
    let fixture = S3Fixture::get().await;
    suite::unfinished_uploads_are_given_up(&s3(&fixture, "unfinished").await).await;
}

#[tokio::test]
async fn s3_refuses_a_wrong_key_and_says_so() {
    let fixture = S3Fixture::get().await;
    let options = S3Options { secret_key: "wrong".into(), ..s3_options(&fixture, "denied") };
    let error = Store::s3(&options, StoreOptions::default()).await.unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    assert!(error.to_string().contains("credentials"), "{error}");
}

#[tokio::test]
async fn an_s3_server_that_is_not_there_is_unavailable() {
    // Bound and not listening: connections are refused, and no other process can take the port.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let options = S3Options {
        endpoint: format!("http://{}", socket.local_addr().unwrap()),
        bucket: "b".into(),
        prefix: String::new(),
        access_key: "k".into(),
        secret_key: "s".into(),
        region: "r".into(),
    };
    let error = Store::s3(&options, StoreOptions::default()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.is_retryable() && error.to_string().contains("s3://b"), "{error}");
}

#[tokio::test]
async fn a_store_that_was_opened_before_is_opened_again_with_what_it_holds() {
    let directory = tempfile::tempdir().unwrap();
    let location = suite::put(&local(directory.path()).await, b"kept").await;
    let options = StoreOptions { read_only: true, fsync: true, ..StoreOptions::default() };
    let target: StoreTarget = directory.path().to_str().unwrap().parse().unwrap();
    let store = Store::open(&target, options).await.unwrap();
    assert!(store.exists(&location, 4).await.unwrap());
    assert_eq!(store.directory(), Some(directory.path().canonicalize().unwrap().as_path()));
    assert!(store.root().ends_with(".thresher"));
}

#[tokio::test]
async fn a_spool_on_another_file_system_or_flushed_to_disk_gives_the_same_object() {
    let directory = tempfile::tempdir().unwrap();
    let spool = tempfile::tempdir_in("/dev/shm");
    let spool_directory = spool.as_ref().ok().map(|spool| spool.path().to_owned());
    let options = StoreOptions { fsync: true, spool_directory, ..StoreOptions::default() };
    let target = StoreTarget::Directory(directory.path().to_owned());
    let store = Store::open(&target, options).await.unwrap();
    suite::a_spooled_body_becomes_one_object_under_its_digest(&store).await;
    suite::a_body_of_several_parts_arrives_whole(&store).await;
}

#[tokio::test]
async fn reading_where_nothing_was_harvested_says_so_and_creates_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let target = StoreTarget::Directory(directory.path().join("x"));
    let options = StoreOptions { read_only: true, ..StoreOptions::default() };
    let error = Store::open(&target, options).await.unwrap_err();
    assert!(error.to_string().contains("no harvest"), "{error}");
    assert!(!directory.path().join("x").exists());
}

#[tokio::test]
async fn a_bucket_signs_urls_of_objects_of_their_own_and_a_directory_has_none() {
    let object = model::Location::Object { sha256: fixity::Sha256::of(b"x") };
    let signed = async |store: &Store| {
        let lasts = std::time::Duration::from_secs(60);
        store.presigned(&object, lasts, "text/plain", None).await.unwrap()
    };
    let fixture = S3Fixture::get().await;
    let url = signed(&s3(&fixture, "presigned").await).await.expect("a URL").to_string();
    assert!(
        url.starts_with(&format!("{}/{}/", fixture.endpoint.trim_end_matches('/'), fixture.bucket)),
        "{url}"
    );
    assert!(url.contains("presigned/bitstreams/sha256/") && url.contains("response-content-type"), "{url}");
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(signed(&local(directory.path()).await).await, None);
}
