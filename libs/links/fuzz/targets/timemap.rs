//! Any bytes as a TimeMap: no panic, no limit exceeded, and versions in order. What is read can be written as links, and
//! is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use links::Limits;
use links::timemap::{Format, read};

fuzz_target!(|body: &[u8]| {
    let limits = Limits { links: 20, bytes: 2_048, value_bytes: 200 };
    for format in [Format::LinkFormat, Format::Json] {
        let Ok(map) = read(body, format, &limits) else { continue };
        assert!(
            body.len() <= limits.bytes
                && map.mementos.len() <= limits.links
                && map.parts.len() <= limits.links
        );
        assert!(map.mementos.is_sorted_by_key(|memento| memento.time));
        let again = read(map.to_link_format().as_bytes(), Format::LinkFormat, &Limits::BODY).unwrap();
        // Times lose their fractions, so that versions may become equal.
        assert!(again.mementos.len() <= map.mementos.len());
        // What is written is written again in the same way.
        let twice = read(again.to_link_format().as_bytes(), Format::LinkFormat, &Limits::BODY).unwrap();
        assert_eq!(twice, again);
    }
});
