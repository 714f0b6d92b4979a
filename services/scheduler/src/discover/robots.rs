//! The `Sitemap` lines of `robots.txt` (RS-22).

use url::Url;

/// The sitemaps that a `robots.txt` names, each once, in order. A line that holds no URL is passed over.
pub(super) fn sitemaps(text: &str, base: &Url) -> Vec<Url> {
    let mut sitemaps: Vec<Url> = Vec::new();
    // Some end their lines with CR alone; lines that are blank then harm nobody.
    for line in text.trim_start_matches('\u{feff}').split(['\n', '\r']) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.split('#').next().unwrap_or_default().trim();
        if !name.trim().eq_ignore_ascii_case("sitemap") || value.is_empty() {
            continue;
        }
        if let Ok(url) = base.join(value)
            && !sitemaps.contains(&url)
        {
            sitemaps.push(url);
        }
    }
    sitemaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let base = "http://example.com/robots.txt".parse().unwrap();
        sitemaps(text, &base).into_iter().map(String::from).collect()
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
