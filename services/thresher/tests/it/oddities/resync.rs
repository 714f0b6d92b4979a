//! Sources made with early versions of resync.

use super::{Case, LIST, counted};
use crate::common::resource;

#[tokio::test]
async fn oddity_29_digests_in_base64_or_of_a_length_that_no_algorithm_has() {
    let case = Case::new().await;
    let good = case.site.serve("/good", "abc");
    let bad = case.site.serve("/bad", "abd");
    let odd = case.site.serve("/odd", "abc");
    let md5 = "hash=\"md5:kAFQmDzST7DWlj99KOF/cg==\"";
    let no_sha256 = "hash=\"sha-256:h986gT_t_87HTkjHYE76G558hY-jdfgy76t55sadJUYT\"";
    let url = case.list(LIST, &[resource(&good, md5), resource(&bad, md5), resource(&odd, no_sha256)]);
    let run = case.sync(&url).exits(1).says(&[&bad, "digest-mismatch"]);
    counted(&run, &[]);
    assert_eq!((run.count("stored"), run.count("failed")), (2, 1), "{run}");
    case.holds(&good, "abc");
    assert!(case.copy.explain(&good).contains("its digest matches the declared one"));
    case.holds(&odd, "abc");
    assert!(case.copy.explain(&odd).contains("(unsupported)"));
    assert_eq!(case.copy.state(&bad).as_deref(), Some("problem"), "base64 is judged like any other form");
}
