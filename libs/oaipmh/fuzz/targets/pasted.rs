//! Any text as a URL from a browser: what is read gives requests whose URLs are read as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oaipmh::{Granularity, Pasted, Request, Selection, Token, Verb};
use url::Url;

fuzz_target!(|text: &str| {
    let Ok(url) = Url::parse(text) else { return };
    let Ok(pasted) = Pasted::read(&url) else { return };
    let selection = Selection {
        prefix: pasted.prefix.clone().unwrap_or_else(|| "oai_dc".to_owned()),
        set: pasted.set.clone(),
        window: pasted.window,
    };
    let request = Request::list_records(selection.clone(), Granularity::Second);
    let again = Url::parse(&request.url(&pasted.base)).expect("a request is a URL");
    let again = Pasted::read(&again).expect("it has the same scheme");
    assert_eq!(again.verb, Some(Verb::ListRecords));
    if pasted.verb.is_some() {
        assert_eq!(again.base, pasted.base);
        assert_eq!((again.prefix.as_deref(), again.set), (Some(selection.prefix.trim()), selection.set));
        assert_eq!(again.window, selection.window);
    }
    if let Some(token) = Token::new(text) {
        let resumed = Request::resume(Verb::ListRecords, token).url(&pasted.base);
        assert!(Url::parse(&resumed).is_ok() && resumed.is_ascii());
    }
});
