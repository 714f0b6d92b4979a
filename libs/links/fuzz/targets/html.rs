//! Any text as a page: no panic, and no more output than input. A page that is cut off gives the links before
//! the cut. A comment, a script, an attribute and text behind the head give no link. Every written link is
//! read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use links::Link;
use links::html::{Head, scan};

fuzz_target!(|page: &str| {
    let head = read(page);
    let (base, links) = &head;
    assert!(links.len() <= page.matches('<').count());
    assert!(links.iter().map(length).sum::<usize>() + base.as_ref().map_or(0, String::len) <= page.len());

    // Cut at a few places only, since the fuzzer has many pages.
    for part in 1..8 {
        let at = (0..=page.len() * part / 8).rev().find(|&at| page.is_char_boundary(at)).unwrap_or(0);
        let (cut_base, cut) = read(&page[..at]);
        assert!(links.starts_with(&cut), "cut at {at}");
        assert!(cut_base.is_none() || cut_base == *base, "cut at {at}");
    }

    let printed = print(&head);
    assert_eq!(read(&printed), head);
    let text = page.trim().to_owned();
    let any = (Some(text.clone()), vec![Link::new(text.clone(), format!("x {text}")).with("type", text)]);
    assert_eq!(read(&print(&any)), any);

    let lower = page.to_ascii_lowercase();
    for (is_inside, hidden) in [
        (!page.contains("-->"), format!("<!--{page}-->")),
        (!page.contains('\''), format!("<meta content='{page}'>")),
        (!page.contains('"'), format!("<META CONTENT = \"{page}\" />")),
        (!lower.contains("</script"), format!("<script>{page}</script>")),
        (!lower.contains("</title"), format!("<TITLE lang=en>{page}</Title\n>")),
    ] {
        assert!(!is_inside || read(&format!("{hidden}{printed}")) == head, "{hidden}");
    }
    for end in ["</head>", "<body>", "<BODY class=x>", "<frameset rows=2>", "</HEAD "] {
        assert_eq!(read(&format!("{printed}{end}{page}")), head, "{end}");
    }
});

fn read(page: &str) -> (Option<String>, Vec<Link>) {
    let Head { base, links } = scan(page);
    (base, links.links)
}

fn length(link: &Link) -> usize {
    let attributes = link.attributes.iter().map(|(name, value)| name.len() + value.len());
    link.target.len() + link.rel.len() + attributes.sum::<usize>()
}

/// A page with this head, and with every character of a value as a reference.
fn print((base, links): &(Option<String>, Vec<Link>)) -> String {
    let escaped = |text: &str| text.chars().map(|c| format!("&#x{:x};", u32::from(c))).collect::<String>();
    let base = base.iter().map(|base| format!("<base href={}>", escaped(base)));
    let links = links.iter().map(|link| {
        let mut attributes = format!("href='{}' rel=\"{}\"", escaped(&link.target), escaped(&link.rel));
        for (name, value) in &link.attributes {
            attributes.push_str(&format!(" {name}='{}'", escaped(value)));
        }
        format!("<link {attributes}>")
    });
    base.chain(links).collect()
}
