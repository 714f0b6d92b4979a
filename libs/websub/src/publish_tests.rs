use proptest::prelude::*;
use resourcesync::{Change, Item, Metadata, Options, Reader};

use super::*;

fn channel() -> Channel {
    Channel {
        topic: "http://example.com/dataset1/change/".parse().unwrap(),
        hub: "http://hub.example.org/websub/".parse().unwrap(),
        capability_list: Some("http://www.example.com/dataset1/capabilitylist.xml".parse().unwrap()),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn change(second: i64, name: &str) -> Entry {
    let metadata =
        Metadata { change: Some(Change::Updated), datetime: Some(at(second).into()), ..Metadata::default() };
    Entry { metadata, ..Entry::new(format!("http://example.com/{name}")) }
}

fn told(times: &[i64], most_bytes: usize) -> Result<Vec<Notification>, PublishError> {
    let named: Vec<_> = times.iter().enumerate().map(|(n, at)| (*at, n.to_string())).collect();
    told_of(&named, most_bytes)
}

fn told_of(named: &[(i64, String)], most_bytes: usize) -> Result<Vec<Notification>, PublishError> {
    let entries: Vec<_> = named.iter().map(|(at, name)| change(*at, name)).collect();
    publish(&channel(), at(0), at(100), entries, most_bytes).collect()
}

/// The content of a notification, by the parser of all documents.
fn read(notification: &Notification) -> (Header, Vec<String>) {
    let mut reader = Reader::new(notification.body.as_slice(), Options::default()).unwrap();
    let header = reader.header().unwrap().clone();
    let mut uris = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        let Item::Entry(entry) = item else { panic!("an entry that cannot be read") };
        uris.push(entry.loc);
    }
    (header, uris)
}

#[test]
fn what_fits_is_one_notification_as_the_specification_shows() {
    let all = told(&[1, 2, 2, 100], 1 << 20).unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].from, all[0].until, all[0].entries), (at(0), at(100), 4));
    let (header, uris) = read(&all[0]);
    assert_eq!(header.capability, Some(Capability::ChangeNotification));
    assert_eq!(header.link("up").unwrap().href, "http://www.example.com/dataset1/capabilitylist.xml");
    assert_eq!((header.from, header.until), (Some(at(0).into()), Some(at(100).into())));
    assert_eq!(uris[3], "http://example.com/3");
}

#[test]
fn a_payload_says_where_it_belongs() {
    let [media_type, links] = channel().headers();
    assert_eq!(media_type, ("content-type", "application/xml".to_owned()));
    let read = crate::Links::parse([links.1.as_str()], &"http://h/".parse().unwrap());
    assert_eq!(read.topic.as_deref(), Some(channel().topic.as_str()));
    assert_eq!(read.hubs, [channel().hub]);
}

#[test]
fn an_interval_without_a_change_is_told_too() {
    let all = told(&[], 1 << 20).unwrap();
    assert_eq!((all.len(), all[0].entries, all[0].until), (1, 0, at(100)));
}

#[test]
fn more_than_fits_is_split_between_moments_and_never_within_one() {
    let times = [1, 2, 3, 3, 3, 4, 5, 6];
    let all = told(&times, told(&times[..4], 1 << 20).unwrap()[0].body.len() + 50).unwrap();
    assert!(all.len() > 1);
    let boundaries: Vec<_> = all.iter().map(|notification| notification.until).collect();
    assert_eq!(boundaries[0], at(2), "the three changes of the third second stay together: {boundaries:?}");
    assert_eq!(all[1].from, at(2));
}

#[test]
fn changes_that_are_untimed_unordered_or_too_many_for_a_moment_are_refused() {
    assert!(matches!(told(&[2, 1], 1 << 20), Err(PublishError::Unordered { .. })));
    assert!(matches!(told(&[101], 1 << 20), Err(PublishError::Unordered { .. })));
    assert!(matches!(told(&[-1], 1 << 20), Err(PublishError::Unordered { .. })));
    let Err(PublishError::Crowded { at: moment, .. }) = told(&[7; 20], 1_000) else { panic!("no refusal") };
    assert_eq!(moment, at(7));
    // The first entry of a moment still fits behind the earlier ones, and the second is too much for both.
    let long = |second, bytes| (second, "x".repeat(bytes));
    let late = told_of(&[long(6, 1), long(7, 300), long(7, 900)], 1_500);
    let Err(PublishError::Crowded { at: moment, .. }) = late else { panic!("{late:?}") };
    assert_eq!(moment, at(7));
    let untimed = publish(&channel(), at(0), at(1), [Entry::new("http://e/")], 1_000).next().unwrap();
    assert!(matches!(untimed, Err(PublishError::Untimed { .. })));
    assert_eq!(publish(&channel(), at(0), at(1), [Entry::new("http://e/")], 1_000).count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_lost_or_told_twice_and_the_intervals_join(
        steps in prop::collection::vec((0_i64..3, 0_usize..600), 0..60), most_bytes in 600_usize..3_000,
    ) {
        let mut second = 0;
        let named: Vec<_> = steps.iter().enumerate().map(|(n, (step, long))| {
            second = (second + step).min(100);
            (second, format!("{n}{}", "x".repeat(*long)))
        }).collect();
        match told_of(&named, most_bytes) {
            Err(PublishError::Crowded { .. }) => {}
            Err(error) => prop_assert!(false, "{error}"),
            Ok(all) => {
                prop_assert_eq!((all[0].from, all[all.len() - 1].until), (at(0), at(100)));
                prop_assert!(all.windows(2).all(|pair| pair[0].until == pair[1].from));
                let uris: Vec<String> = all.iter().flat_map(|notification| read(notification).1).collect();
                let expected: Vec<String> = named.iter().map(|(_, name)| format!("http://example.com/{name}")).collect();
                prop_assert_eq!(uris, expected);
                for notification in &all {
                    prop_assert!(notification.body.len() <= most_bytes || notification.entries == 1);
                }
            }
        }
    }
}
