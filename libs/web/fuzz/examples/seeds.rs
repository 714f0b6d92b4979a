//! Writes the seeds of the corpus: `cargo run --example seeds`.

use std::path::Path;
use std::{fs, io};

/// The first line is the requested path.
const SEEDS: [&str; 8] = [
    "/cgi-bin/x\nUser-agent: *\nDisallow: /cgi-bin/\nDisallow: /tmp/\nSitemap: http://example.com/dataset1/resourcelist.xml\n",
    "/a/b?c\n\u{feff}user-agent : thresher # us\r\rDISALLOW:\t/a # private\rallow:/a/b\r\n#disallow: /",
    "/fish.php?x\nuser-agent: a\nuser-agent: Thresher/2 beta\ncrawl-delay: 0.5\ndisallow: /*.php$\nallow: /fish*\nuser-agent: *\ndisallow: /",
    "/%C3%BC*\nuser-agent: *\ndisallow: /\u{fc}%2a\nallow: /%c3%bc$\ncrawl-delay: 99999999\ncrawl-delay: 1.2.3",
    "/a\ndisallow: /\ncrawl-delay: 5\nsitemap: /relative\nsitemap:\nuser-agent: thresher\n",
    "/robots.txt\nuser-agent: *\ndisallow: /\nuser-agent: x\nallow: /*a**b$c%\nsitemap: http://e/a:b.xml # c\ndisallow: *",
    "/x\n<!DOCTYPE html>\n<html><a href=\"http://e/\">x: y</a></html>",
    "/aab\nuser-agent: *\nuser-agent: thresher\nsitemap: a\nuser-agent: z\nfoo: bar\nuser-agent: *\ndisallow: /a*a$\nallow: /aa\ndisallow: /a%61",
];

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/robots");
    fs::create_dir_all(&folder)?;
    for (number, seed) in SEEDS.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), seed)?;
    }
    println!("{} seeds in {}", SEEDS.len(), folder.display());
    Ok(())
}
