//! Any text as a page: no panic, and no more output than input. A page that is cut off gives the links before
//! the cut. A comment, a script, an attribute and text behind the head give no link. Every written link is
//! read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use resourcesync::html::{Head, scan};

fuzz_target!(|page: &str| {
    let head = scan(page);
    assert!(head.links.len() <= page.matches('<').count());
    assert!(head.links.iter().chain(&head.base).map(String::len).sum::<usize>() <= page.len());

    // Cut at a few places only, since the fuzzer has many pages.
    for part in 1..8 {
        let at = (0..=page.len() * part / 8).rev().find(|&at| page.is_char_boundary(at)).unwrap_or(0);
        let cut = scan(&page[..at]);
        assert!(head.links.starts_with(&cut.links), "cut at {at}");
        assert!(cut.base.is_none() || cut.base == head.base, "cut at {at}");
    }

    let printed = print(&head);
    assert_eq!(scan(&printed), head);
    let any = Head { base: Some(page.trim().to_owned()), links: vec![page.trim().to_owned()] };
    assert_eq!(scan(&print(&any)), any);

    let lower = page.to_ascii_lowercase();
    for (is_inside, hidden) in [
        (!page.contains("-->"), format!("<!--{page}-->")),
        (!page.contains('\''), format!("<meta content='{page}'>")),
        (!page.contains('"'), format!("<META CONTENT = \"{page}\" />")),
        (!lower.contains("</script"), format!("<script>{page}</script>")),
        (!lower.contains("</title"), format!("<TITLE lang=en>{page}</Title\n>")),
    ] {
        assert!(!is_inside || scan(&format!("{hidden}{printed}")) == head, "{hidden}");
    }
    for end in ["</head>", "<body>", "<BODY class=x>", "<frameset rows=2>", "</HEAD "] {
        assert_eq!(scan(&format!("{printed}{end}{page}")), head, "{end}");
    }
});

/// A page with this head, and with every character of a value as a reference.
fn print(head: &Head) -> String {
    let escaped = |text: &str| text.chars().map(|c| format!("&#x{:x};", u32::from(c))).collect::<String>();
    let base = head.base.iter().map(|base| format!("<base href={}>", escaped(base)));
    let links = head.links.iter().map(|link| {
        let link = escaped(link);
        format!("<link href='{link}' rel=\"alternate ResourceSync\">")
    });
    base.chain(links).collect()
}
