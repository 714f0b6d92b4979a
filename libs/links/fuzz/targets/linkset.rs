//! Any bytes as a link set: no panic, and no limit exceeded. What is read can be written in JSON, and is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use links::linkset::{Format, read, to_json};
use links::{Limits, Link};

fuzz_target!(|body: &[u8]| {
    let limits = Limits { links: 20, bytes: 2_048, value_bytes: 200 };
    for format in [Format::Json, Format::Text] {
        let Ok(set) = read(body, format, &limits) else { continue };
        assert!(body.len() <= limits.bytes && set.links.len() <= limits.links);
        for link in &set.links {
            assert!(link.target.len() <= limits.value_bytes && link.rel.len() <= limits.value_bytes);
            assert!(link.attributes.iter().all(|(_, value)| value.len() <= limits.value_bytes));
        }
        let again =
            read(to_json(&set.links, "http://e.org/").as_bytes(), Format::Json, &Limits::BODY).unwrap();
        // Contexts and relations may be grouped, and each relation is a link of its own.
        assert_eq!(plain(&again.links), plain(&set.links));
    }
});

/// Each context, relation and target.
fn plain(links: &[Link]) -> Vec<(String, String, String)> {
    let mut plain: Vec<_> = links
        .iter()
        .filter(|link| !link.target.trim().is_empty())
        .flat_map(|link| {
            let anchor = link.anchor.clone().unwrap_or("http://e.org/".to_owned());
            let relations = link.relations().filter(|rel| *rel != "anchor");
            relations
                .map(move |rel| (anchor.clone(), rel.to_owned(), link.target.trim().to_owned()))
                .collect::<Vec<_>>()
        })
        .collect();
    plain.sort();
    plain
}
