//! Any bytes as a robots.txt, and any path: no panic, no more output than input, and the same verdict, delay
//! and sitemaps as a simple parser that tries everything. Line ends, comments and the case of names change
//! nothing. The result can be written for all agents, and is parsed again.
//!
//! The first line of the input is the path, the rest is the robots.txt.

#![no_main]

mod plain;

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use url::{Position, Url};
use web::{Robots, RobotsFetch};

use plain::Plain;

const DAY: Duration = Duration::from_secs(86_400);

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
    let path = &input[..end.min(200)];
    let text = input.get(end + 1..).unwrap_or_default();
    let robots = Robots::parse(text, "thresher/1.0");
    assert_eq!(*robots.fetch(), RobotsFetch::Read);
    assert!(robots.crawl_delay().is_none_or(|delay| delay <= DAY));
    assert!(robots.sitemaps().iter().map(|url| url.len() + "sitemap:".len()).sum::<usize>() <= text.len());

    let plain = Plain::read(text, b"thresher");
    assert_eq!(robots.sitemaps(), plain.sitemaps);
    assert_eq!(robots.crawl_delay(), plain.delay);
    let mut url: Url = "http://example.org/".parse().expect("it is a URL");
    let path = String::from_utf8_lossy(path);
    let (path, query) = path.split_once('?').unwrap_or((&path, ""));
    url.set_path(path);
    url.set_query(Some(query).filter(|query| !query.is_empty()));
    let asked = &url[Position::BeforePath..Position::AfterQuery];
    assert_eq!(robots.allows(&url), plain.allows(asked.as_bytes()), "{asked}");

    assert_eq!(Robots::parse(text, "THRESHER"), robots, "the reader's name in another case");
    assert_eq!(Robots::parse(&plain.written(), "somebody"), robots, "written down for everybody");
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = || text.split(|byte| matches!(byte, b'\n' | b'\r'));
    let commented: Vec<u8> = lines().flat_map(|line| [b" \t", line, b"\t# allow: /\r\n"].concat()).collect();
    assert_eq!(Robots::parse(&commented, "thresher"), robots, "with blanks, comments and other line ends");
    // An empty line first, so that no second byte order mark becomes the first.
    let upper: Vec<u8> = std::iter::once(&b""[..])
        .chain(lines())
        .flat_map(|line| [&upper_name(line)[..], b"\r"].concat())
        .collect();
    assert_eq!(Robots::parse(&upper, "thresher"), robots, "names in capitals");
});

fn upper_name(line: &[u8]) -> Vec<u8> {
    let colon = line.iter().position(|&byte| byte == b':').unwrap_or(0);
    [&line[..colon].to_ascii_uppercase(), &line[colon..]].concat()
}
