//! Writes the seeds of the corpora, from texts as servers write them and none should: `cargo run --example seeds`.

use std::path::Path;
use std::{fs, io};

/// Headers as servers write them, and as none should.
const LINK_HEADERS: [&str; 9] = [
    "<http://www.example.com/dataset1/capabilitylist.xml>;\r\n      rel=\"resourcesync\"",
    "</a,b;c>; title=\"x, <y>; rel=\\\"up\\\"\"; rel=next, </d>;rel=\"up resourcesync\"",
    " ,  < /caps.xml > ; Rel = resourcesync ; crossorigin ; Anchor=\"/other\" ,, ",
    "</a>; rel=first; REL=second; anchor",
    "\"a, b\" junk, </good>; rel=up",
    "</good>; rel=\"never closed\\",
    "<never closed; rel=resourcesync, nonsense",
    "</a>; rel=item; title=\"on \"b\" c\"; type=text/html, x</b>; rel=\"item\" y",
    "<http://a/1,2>; rel=\"first memento\"; datetime=\"Tue, 06 Jan 2026 09:00:00 GMT\"; a b=c; x*=UTF-8''y",
];

/// Pages as people write them, and as none should.
const PAGES: [&str; 5] = [
    "<html>\n  <head>\n    <link rel=\"resourcesync\"\n      href=\"http://www.example.com/capabilitylist.xml\"/>\n  </head>\n",
    "<!DOCTYPE HTML><BASE HREF=/a/><LINK HREF = '/a?x=1&amp;y=&#50;' disabled REL='alternate ResourceSync'>",
    "<!-- <link rel=resourcesync href=/1> --><script>'<link>'</script><title>a</TITLE><link/rel=resourcesync/href=\" /c \"/>",
    "<meta title='<link rel=resourcesync href=/5>'><link rel=resourcesync><template>&nbsp;&#x10FFFF;</template><body>",
    "<link rel=resourcesync href=\"&#x41;&lt;&gt;&quot;&apos;&#0;&\"><link rel=resourcesync href=/2><xmp><a =b c",
];

/// Link sets in JSON, right and wrong.
const LINKSETS: [&str; 4] = [
    "{\"linkset\": [{\"anchor\": \"http://s/w\", \"item\": [{\"href\": \"/f.pdf\", \"type\": \"application/pdf\", \"hreflang\": [\"en\", \"de\"]}]}]}",
    "{\"status\": \"OK\", \"data\": {\"linkset\": {\"item\": \"/b\", \"title*\": [{\"href\": 1, \"title*\": [{\"value\": \"x\", \"language\": \"de\"}]}]}}}",
    "{\"linkset\": [{\"anchor\": \"/a\", \"describedBy\": [{\"href\": \"/b\",},],},],}",
    "<f.pdf>\n ; rel=item\n ; anchor=\"http://s/w\" ,\n<m.xml>; rel=describedby",
];

/// TimeMaps in both forms.
const TIMEMAPS: [&str; 2] = [
    "<http://e/>; rel=original,<http://m/1>; rel=self; from=\"Tue, 06 Jan 2026 09:00:00 GMT\",</2>; rel=\"first last memento\"; datetime=\"2026-01-06T09:00:00Z\"",
    "{\"original_uri\": \"http://e/\", \"mementos\": {\"list\": [{\"datetime\": \"2026-01-06T09:00:00Z\", \"uri\": [\"/1\"]}]}, \"pages\": {\"next\": {\"uri\": \"/2\"}}}",
];

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    write(&root.join("link_header"), &LINK_HEADERS)?;
    write(&root.join("html"), &PAGES)?;
    write(&root.join("linkset"), &LINKSETS)?;
    write(&root.join("timemap"), &TIMEMAPS)
}

fn write(folder: &Path, seeds: &[&str]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), seed)?;
    }
    println!("{} seeds in {}", seeds.len(), folder.display());
    Ok(())
}
