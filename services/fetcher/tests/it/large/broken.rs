//! Bodies and ranges that break off.

use super::*;

#[tokio::test]
async fn a_body_that_is_cut_is_resumed_where_it_stopped() {
    let case = Case::new(1).await;
    let body = body(9 * MIB);
    case.server.serve("/a", File::new(body.clone(), "\"v1\"").with(Ranges::Cut { after: MIB }));
    let done = case.fetch("/a", body.len()).await;
    assert_eq!(done.items[0].result, FetchedResult::Deferred, "{done:?}");
    let begins = case.begins();
    assert_eq!(begins.len(), 4, "a request, and three more");
    assert!(begins.is_sorted_by(|one, other| one < other), "{begins:?}");
    case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let done = case.fetch("/a", body.len()).await;
    case.assert_stored(&done, &body).await;
    assert!(case.begins()[4] > begins[3], "{:?}", case.begins());
}

#[tokio::test]
async fn a_range_that_is_cut_is_requested_again_from_its_next_byte_and_costs_no_other() {
    for first in [0, 2 * RANGE] {
        let case = Case::new(20).await;
        let body = body(9 * MIB);
        let file = File::new(body.clone(), "\"v1\"");
        case.server.serve("/a", file.clone().with(Ranges::CutOnce { first, after: MIB / 2 }));
        case.server.serve("/b", file);
        let fetcher = case.fetcher();
        let done = fetcher.fetch(&case.job("/a", body.len())).await.unwrap();
        case.assert_stored(&done, &body).await;
        let (whole, again): (Vec<_>, Vec<_>) =
            case.begins().into_iter().partition(|first| first % RANGE == 0);
        assert_eq!(whole.len(), 9, "each is requested once: {whole:?}");
        assert!(matches!(again[..], [from] if from > first && from <= first + MIB / 2), "{again:?}");

        // Its server gets several as before.
        let before = case.server.asked().len();
        let mut job = case.job("/b", body.len());
        job.items[0].seq = Seq::new(8);
        let done = fetcher.fetch(&job).await.unwrap();
        case.assert_stored(&done, &body).await;
        assert_eq!(case.server.asked().len() - before, 9);
    }
}

#[tokio::test]
async fn ranges_that_all_break_off_are_requested_again_only_so_often() {
    let case = Case::new(20).await;
    let body = body(9 * MIB);
    case.server.serve("/a", File::new(body.clone(), "\"v1\"").with(Ranges::Cut { after: MIB / 16 }));
    let done = case.fetch("/a", body.len()).await;
    assert!(!matches!(done.items[0].result, FetchedResult::Stored(_)), "{done:?}");
    // Each break leaves one of eight fewer; then there are three more, and the rest in one.
    assert!(case.server.asked().len() <= 16, "{:?}", case.ranges());
    // What came in order is kept.
    case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let before = case.begins().len();
    let done = case.fetch("/a", body.len()).await;
    case.assert_stored(&done, &body).await;
    assert!(case.begins()[before..].iter().all(|begin| *begin > 0), "{:?}", case.ranges());
}
