use proptest::prelude::*;

use super::*;
use crate::quirk::Quirk;

fn strict(text: &str) -> Datetime {
    Datetime::parse(text).unwrap()
}

fn lenient(text: &str) -> (String, Vec<Quirk>) {
    let (datetime, quirks) = Datetime::parse_lenient(text).unwrap();
    (datetime.to_string(), quirks.iter().collect())
}

#[test]
fn every_precision_is_read_and_written_back() {
    for (text, precision) in [
        ("2013", Precision::Year),
        ("2013-01", Precision::Month),
        ("2013-01-03", Precision::Day),
        ("2013-01-03T09:00Z", Precision::Minute),
        ("2013-01-03T09:00:00Z", Precision::Second),
        ("2013-01-03T09:00:00.0Z", Precision::Subsecond),
        ("2020-03-18T20:36:26.441694+05:30", Precision::Subsecond),
        ("1969-12-31T23:59:59.5-11:00", Precision::Subsecond),
        ("2013-01-03T09:00:00+00:00", Precision::Second),
    ] {
        assert_eq!(strict(text).precision(), precision, "{text}");
        assert_eq!(strict(text).to_string(), text);
    }
}

#[test]
fn plus_two_hours_is_two_hours_ahead_of_utc() {
    let ahead = strict("2013-01-03T11:00:00+02:00");
    assert_eq!(ahead.zone(), Zone::Offset(7_200));
    assert_eq!(ahead.instant(), "2013-01-03T09:00:00Z".parse().unwrap());
    assert_eq!(ahead, strict("2013-01-03T09:00:00Z"));
    assert!(ahead < strict("2013-01-03T09:00:01Z"));
}

#[test]
fn date_is_its_first_instant_and_needs_no_zone() {
    let (date, quirks) = Datetime::parse_lenient("2013-01-03").unwrap();
    assert_eq!(date.instant(), "2013-01-03T00:00:00Z".parse().unwrap());
    assert_eq!(date.zone(), Zone::Missing);
    assert!(quirks.is_empty());
}

#[test]
fn zone_less_time_is_read_as_utc_and_flagged() {
    let (text, quirks) = lenient("2020-06-02T00:00:00");
    assert_eq!((text.as_str(), quirks), ("2020-06-02T00:00:00Z", vec![Quirk::ZoneLessTime]));
    assert!(Datetime::parse("2020-06-02T00:00:00").is_err());
    assert_eq!(Datetime::parse_lenient("2020-06-02T00:00:00").unwrap().0.zone(), Zone::Missing);
}

#[test]
fn space_for_t_is_understood_and_flagged() {
    let (text, quirks) = lenient(" 2020-03-18 01:20:10\n");
    assert_eq!(
        (text.as_str(), quirks),
        ("2020-03-18T01:20:10Z", vec![Quirk::ZoneLessTime, Quirk::SpaceForT])
    );
}

#[test]
fn loose_spellings_are_understood_and_flagged() {
    for (text, canonical) in [
        ("2013-01-03t09:00:00z", "2013-01-03T09:00:00Z"),
        ("2013-01-03T09:00:00+0200", "2013-01-03T09:00:00+02:00"),
        ("2013-01-03T09:00:00-05", "2013-01-03T09:00:00-05:00"),
        ("2013-01-03T09:00:00 UTC", "2013-01-03T09:00:00Z"),
        ("2013-01-03T09:00:00,25Z", "2013-01-03T09:00:00.25Z"),
    ] {
        assert_eq!(lenient(text), (canonical.to_owned(), vec![Quirk::OddTimeFormat]), "{text}");
        assert!(Datetime::parse(text).is_err(), "{text}");
    }
}

#[test]
fn leap_second_is_the_next_second_and_behind_its_minute() {
    let (leap, quirks) = Datetime::parse_lenient("2016-12-31T23:59:60Z").unwrap();
    assert_eq!(leap.to_string(), "2017-01-01T00:00:00Z");
    assert!(quirks.contains(Quirk::LeapSecond));
    assert!(leap > strict("2016-12-31T23:59:59.999Z"));
}

#[test]
fn decimals_beyond_the_nanosecond_are_cut_off() {
    assert_eq!(strict("2013-01-03T09:00:00.1234567899Z").to_string(), "2013-01-03T09:00:00.123456789Z");
}

#[test]
fn what_is_no_time_is_refused() {
    for text in [
        "",
        "13",
        "2013-",
        "2013-1-3",
        "2013-13-01",
        "2013-02-30",
        "2013-01-03T",
        "2013-01-03T9:00Z",
        "2013-01-03T09Z",
        "2013-01-03T24:00:00Z",
        "2013-01-03T09:60:00Z",
        "2013-01-03T09:00:61Z",
        "2013-01-03T09:00:00.Z",
        "2013-01-03T09:00:00+24:00",
        "2013-01-03T09:00:00Zx",
        "2013-01T09:00:00Z",
        "20130103T090000Z",
        "yesterday",
        "２０１３",
        "9999-12-31T23:59:59-23:59",
    ] {
        assert!(Datetime::parse_lenient(text).is_err(), "{text}");
    }
}

#[test]
fn instants_are_written_in_utc() {
    let instant: Timestamp = "2013-01-03T09:00:00.5Z".parse().unwrap();
    assert_eq!(Datetime::from(instant).to_string(), "2013-01-03T09:00:00.5Z");
}

#[test]
fn serde_writes_and_reads_the_canonical_text() {
    let json = serde_json::to_string(&strict("2013-01-03T11:00:00+02:00")).unwrap();
    assert_eq!(json, r#""2013-01-03T11:00:00+02:00""#);
    assert_eq!(serde_json::from_str::<Datetime>(&json).unwrap().to_string(), "2013-01-03T11:00:00+02:00");
    assert!(serde_json::from_str::<Datetime>(r#""soon""#).is_err());
}

proptest! {
    #[test]
    fn writing_and_reading_is_identity(
        seconds in -60_000_000_000_i64..250_000_000_000,
        nanosecond in prop_oneof![Just(0), 0..1_000_000_000],
        minutes in -1_439..1_439,
    ) {
        let instant = Timestamp::new(seconds, nanosecond).unwrap();
        let utc = Datetime::from(instant);
        let elsewhere = Datetime { zone: Zone::Offset(minutes * 60), ..utc };
        for datetime in [utc, elsewhere] {
            let again = Datetime::parse(&datetime.to_string()).unwrap();
            prop_assert_eq!(again, datetime);
            prop_assert_eq!(again.to_string(), datetime.to_string());
        }
    }

    #[test]
    fn common_spelling_is_read_as_any_other(
        text in "[0-9]{2}[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z|[0-9/:T-]{19}Z"
    ) {
        let told = |time: Datetime| (time.instant(), time.precision(), time.zone());
        let general = parse::parse(&text).ok().filter(|(_, quirks)| quirks.is_empty()).map(|(time, _)| told(time));
        prop_assert_eq!(parse::parse_common(&text).map(told), general);
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,40}|[0-9T:Z+. -]{0,30}") {
        if let Ok((datetime, _)) = Datetime::parse_lenient(&text) {
            prop_assert!(Datetime::parse(&datetime.to_string()).is_ok());
        }
    }
}
