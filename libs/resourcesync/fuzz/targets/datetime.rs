//! Any text: no panic. A strictly valid time has the same value in both modes. Every accepted time is written
//! as strict W3C Datetime of the same instant and precision.

#![no_main]

use libfuzzer_sys::fuzz_target;
use resourcesync::{Datetime, Zone};

fuzz_target!(|text: &str| {
    let strict = Datetime::parse(text);
    let Ok((lenient, quirks)) = Datetime::parse_lenient(text) else {
        assert!(strict.is_err(), "{text:?} is read strictly only");
        return;
    };
    if quirks.is_empty() && text.trim() == text {
        assert_eq!(strict.as_ref(), Ok(&lenient), "{text:?} has no quirk");
    }
    if let Ok(strict) = strict {
        assert!(quirks.is_empty(), "{text:?} has quirks");
        assert_eq!((strict.zone(), strict.precision()), (lenient.zone(), lenient.precision()));
    }
    let written = lenient.to_string();
    let again: Datetime = written.parse().unwrap_or_else(|error| panic!("{text:?} became {error}"));
    assert_eq!(again, lenient, "{text:?} became {written}");
    assert_eq!(again.precision(), lenient.precision(), "{text:?} became {written}");
    match lenient.zone() {
        Zone::Missing => assert!(again.zone() == Zone::Utc || again.zone() == Zone::Missing),
        zone => assert_eq!(again.zone(), zone, "{text:?} became {written}"),
    }
    assert_eq!(again.to_string(), written);
});
