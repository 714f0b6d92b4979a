use proptest::prelude::*;

use super::*;

fn links(body: &str) -> TimeMap {
    read(body.as_bytes(), Format::LinkFormat, &Limits::BODY).unwrap()
}

fn json(body: &str) -> TimeMap {
    read(body.as_bytes(), Format::Json, &Limits::BODY).unwrap()
}

fn seconds(map: &TimeMap) -> Vec<(&str, i64)> {
    map.mementos.iter().map(|memento| (memento.url.as_str(), memento.time.as_second() % 100_000)).collect()
}

#[test]
fn the_parts_of_a_time_map_are_read() {
    let map = links(
        "<http://a.example.org>;rel=\"original\",\n\
         <http://arxiv.example.net/timemap/http://a.example.org>\n ; rel=\"self\";type=\"application/link-format\"\n\
           ; from=\"Tue, 20 Jun 2000 18:02:59 GMT\"\n ; until=\"Wed, 09 Apr 2008 20:30:51 GMT\",\n\
         <http://arxiv.example.net/timegate/http://a.example.org>; rel=\"timegate\",\n\
         <http://arxiv.example.net/timemap/2>; rel=\"timemap\"; from=\"Thu, 10 Apr 2008 20:30:51 GMT\",\n\
         <http://arxiv.example.net/web/20000620180259/http://a.example.org>\n ; rel=\"first memento\";datetime=\"Tue, 20 Jun 2000 18:02:59 GMT\"\n\
           ; license=\"http://creativecommons.org/publicdomain/zero/1.0/\",\n\
         <http://arxiv.example.net/web/20010727/a,b;c>; rel=memento; datetime=\"Fri, 27 Jul 2001 18:02:59 GMT\",\n\
         <http://arxiv.example.net/web/bad>; rel=memento; datetime=\"yesterday\"",
    );
    assert_eq!(map.original.as_deref(), Some("http://a.example.org"));
    assert_eq!(map.timegate.as_deref(), Some("http://arxiv.example.net/timegate/http://a.example.org"));
    let this = map.this.as_ref().unwrap();
    assert_eq!(this.from.unwrap().to_string(), "2000-06-20T18:02:59Z");
    assert_eq!(this.until.unwrap().to_string(), "2008-04-09T20:30:51Z");
    assert_eq!((map.parts.len(), map.has_first, map.has_last), (1, true, false));
    let urls: Vec<_> = map.mementos.iter().map(|memento| memento.url.as_str()).collect();
    assert_eq!(
        urls,
        [
            "http://arxiv.example.net/web/20000620180259/http://a.example.org",
            "http://arxiv.example.net/web/20010727/a,b;c"
        ]
    );
    assert_eq!(map.faults.count(Fault::BadDatetime), 1);
}

#[test]
fn versions_are_in_order_of_time_and_named_once() {
    let map = links(
        "</2>; rel=\"last memento\"; datetime=\"Thu, 01 Jan 1970 00:00:02 GMT\", </1>; rel=memento; datetime=\"1970-01-01T00:00:01Z\",\
         </2>; rel=\"memento\"; datetime=\"Thu, 01 Jan 1970 00:00:02 +0000\"",
    );
    assert_eq!(seconds(&map), [("/1", 1), ("/2", 2)]);
    assert!(map.has_last && !map.has_first);
    assert_eq!(map.faults.count(Fault::NoOriginal), 1);
}

#[test]
fn json_is_read_as_aggregators_serve_it() {
    let map = json(
        r#"{"original_uri": "http://e.org/", "self": "http://m.org/timemap/json/http://e.org/",
            "timegate_uri": "http://m.org/timegate/http://e.org/", "timemap_uri": {"link_format": "http://m.org/1"},
            "mementos": {
                "first": {"datetime": "1970-01-01T00:00:01Z", "uri": ["http://a.org/1"]},
                "list": [{"datetime": "1970-01-01T00:00:03Z", "uri": "http://a.org/3"}, {"datetime": "1970-01-01T00:00:01Z", "uri": ["http://a.org/1"]},
                         {"datetime": "x", "uri": "http://a.org/4"}, {"datetime": "1970-01-01T00:00:03Z"}]},
            "pages": {"next": {"uri": "http://m.org/2", "from": "1970-01-01T00:00:04Z"}, "prev": []}}"#,
    );
    assert_eq!(seconds(&map), [("http://a.org/1", 1), ("http://a.org/3", 3)]);
    assert_eq!(map.parts[0].url, "http://m.org/2");
    assert_eq!((map.faults.count(Fault::BadDatetime), map.faults.count(Fault::NoTarget)), (1, 1));
    let index = json(
        r#"{"original_uri": "http://e.org/", "timemap_index": [{"uri": "http://m.org/1", "from": "x"}, {}]}"#,
    );
    assert_eq!((index.parts.len(), index.mementos.len()), (1, 0));
    for other in ["", "[]", "{\"mementos\": 1}"] {
        assert!(
            matches!(read(other.as_bytes(), Format::Json, &Limits::BODY), Err(TimeMapError::NotJson(_))),
            "{other}"
        );
    }
}

#[test]
fn reading_stops_at_its_limits() {
    let limits = Limits { links: 2, bytes: 500, value_bytes: 20 };
    let line = |n: usize| format!("</{n}>; rel=memento; datetime=\"1970-01-01T00:00:01Z\"");
    let body = |n: usize| (0..n).map(line).collect::<Vec<_>>().join(",");
    let map = read(body(3).as_bytes(), Format::LinkFormat, &limits).unwrap();
    assert_eq!((map.mementos.len(), map.faults.count(Fault::TooManyLinks)), (2, 1));
    assert_eq!(read(body(30).as_bytes(), Format::LinkFormat, &limits), Err(TimeMapError::TooLarge(500)));
    let version = |n: usize| format!("{{\"datetime\":\"1970-01-01T00:00:01Z\",\"uri\":\"/{n}\"}}");
    let list = (0..3).map(version).collect::<Vec<_>>().join(",");
    let map =
        read(format!("{{\"mementos\":{{\"list\":[{list}]}}}}").as_bytes(), Format::Json, &limits).unwrap();
    assert_eq!((map.mementos.len(), map.faults.count(Fault::TooManyLinks)), (2, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_is_read_without_panic(body in "(<|>|,|;|=|\"| |rel|memento|datetime|original|\\{|\\}|\\[|\\]|:|\"mementos\"|\"list\"|1){0,40}|.{0,80}") {
        for format in [Format::LinkFormat, Format::Json] {
            if let Ok(map) = read(body.as_bytes(), format, &Limits::BODY) {
                prop_assert!(map.mementos.is_sorted_by_key(|memento| memento.time));
            }
        }
    }

    #[test]
    fn what_is_written_is_read(times in prop::collection::btree_set(0..4_000_000_000_i64, 0..8), first: bool, last: bool) {
        let moment = |second: &i64| Timestamp::from_second(*second).unwrap();
        let page = |url: &str| Part { url: url.to_owned(), from: times.first().map(moment), until: times.last().map(moment) };
        let map = TimeMap {
            original: Some("http://e.org/a,b".to_owned()),
            timegate: Some("http://m.org/timegate/http://e.org/a,b".to_owned()),
            this: Some(page("http://m.org/timemap/1")),
            parts: vec![page("http://m.org/timemap/2")],
            mementos: times.iter().map(|time| Memento { url: format!("http://m.org/{time}/a;b"), time: moment(time) }).collect(),
            has_first: first && !times.is_empty(),
            has_last: last && !times.is_empty(),
            faults: Faults::default(),
        };
        prop_assert_eq!(links(&map.to_link_format()), map);
    }
}
