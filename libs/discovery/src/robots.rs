//! The `Sitemap` lines of `robots.txt` (RS-22).

use url::Url;

/// The sitemaps of these lines, each once, in order. A line without a URL is skipped.
pub(crate) fn sitemaps(lines: &[String], base: &Url) -> Vec<Url> {
    let mut sitemaps: Vec<Url> = Vec::new();
    for line in lines {
        if let Ok(url) = base.join(line)
            && !sitemaps.contains(&url)
        {
            sitemaps.push(url);
        }
    }
    sitemaps
}

#[cfg(test)]
mod tests {
    use web::Robots;

    use super::*;

    fn read(text: &str) -> Vec<String> {
        let base = "http://example.com/robots.txt".parse().unwrap();
        let robots = Robots::parse(text.as_bytes(), "thresher");
        sitemaps(robots.sitemaps(), &base).into_iter().map(String::from).collect()
    }

    #[test]
    fn the_specifications_own_example_is_read() {
        let text = "User-agent: *\nDisallow: /cgi-bin/\nDisallow: /tmp/\nSitemap: http://example.com/dataset1/resourcelist.xml\n";
        assert_eq!(read(text), ["http://example.com/dataset1/resourcelist.xml"]);
    }

    #[test]
    fn lines_are_read_as_people_write_them() {
        let text = "\u{feff}SITEMAP:/a.xml # the first\r\n  sitemap : b.xml\r\rSitemap: /a.xml\nSitemap:\n#Sitemap: /c.xml\nsitemaps: /d.xml";
        assert_eq!(read(text), ["http://example.com/a.xml", "http://example.com/b.xml"]);
    }

    #[test]
    fn a_web_page_names_no_sitemap() {
        assert_eq!(
            read("<!DOCTYPE html><p>Sitemap: see <a href=\"http://x/\">there</a>"),
            Vec::<String>::new()
        );
    }
}
