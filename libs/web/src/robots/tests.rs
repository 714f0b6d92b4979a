use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Robots {
    Robots::parse(text.as_bytes(), "thresher/1.0")
}

fn allows(robots: &Robots, path: &str) -> bool {
    robots.allows(&format!("http://example.org{path}").parse().unwrap())
}

fn seconds(text: &str) -> Option<f64> {
    read(&format!("user-agent: *\ncrawl-delay: {text}")).crawl_delay().map(|delay| delay.as_secs_f64())
}

#[test]
fn the_group_that_names_us_holds_instead_of_everybodys() {
    let text = "User-agent: *\nDisallow: /\nCrawl-delay: 9\n\nUser-Agent: THRESHER/2\nDisallow: /a\n";
    let robots = read(text);
    assert!(allows(&robots, "/") && !allows(&robots, "/a"));
    assert_eq!(robots.crawl_delay(), None);
    let other = Robots::parse(text.as_bytes(), "thresherbot");
    assert!(!allows(&other, "/b"));
    assert_eq!(other.crawl_delay(), Some(Duration::from_secs(9)));
}

#[test]
fn groups_of_one_reader_are_taken_together() {
    let robots = read(
        "user-agent: thresher\ndisallow: /a\nuser-agent: x\ndisallow: /b\nuser-agent: thresher\ndisallow: /c",
    );
    assert!(!allows(&robots, "/a") && allows(&robots, "/b") && !allows(&robots, "/c"));
}

#[test]
fn a_group_may_name_several_readers_with_unknown_lines_between() {
    let robots =
        read("user-agent: x\nsitemap: http://e/\nnoise\nvisit-time: 2\n\nuser-agent: thresher\ndisallow: /a");
    assert!(!allows(&robots, "/a"));
    let robots = read("user-agent: x\ncrawl-delay: 3\nuser-agent: thresher\ndisallow: /a");
    assert_eq!(robots.crawl_delay(), None, "a delay ends the list of readers");
}

#[test]
fn an_empty_group_of_our_own_allows_everything() {
    let robots = read("user-agent: *\ndisallow: /\nuser-agent: thresher\ndisallow:\n");
    assert!(allows(&robots, "/a"));
}

#[test]
fn lines_before_any_reader_are_for_nobody() {
    let robots = read("disallow: /\ncrawl-delay: 5\n");
    assert!(allows(&robots, "/a") && robots.crawl_delay().is_none());
}

#[test]
fn comments_spaces_line_ends_and_a_byte_order_mark_do_not_matter() {
    let robots =
        read("\u{feff}user-agent : thresher # us\r\rDISALLOW:\t/a # private\rallow:/a/b\r\n#disallow: /");
    assert!(!allows(&robots, "/a") && allows(&robots, "/a/b") && allows(&robots, "/c"));
}

#[test]
fn queries_are_part_of_what_is_compared() {
    let robots = read("user-agent: *\ndisallow: /*?session=");
    assert!(!allows(&robots, "/a?session=1#x") && allows(&robots, "/a"));
}

#[test]
fn delays_are_seconds_and_what_is_none_is_passed_over() {
    assert_eq!((seconds("10"), seconds("0.5"), seconds("0")), (Some(10.0), Some(0.5), Some(0.0)));
    for none in ["", "-1", "NaN", "inf", "1e3", "5 s", "1.2.3", "."] {
        assert_eq!(seconds(none), None, "{none}");
    }
    assert_eq!(seconds(&"9".repeat(400)), Some(86_400.0));
    let longest = read("user-agent: *\ncrawl-delay: 3\ncrawl-delay: 7\ncrawl-delay: x").crawl_delay();
    assert_eq!(longest, Some(Duration::from_secs(7)));
}

#[test]
fn sitemaps_are_of_the_whole_file_as_they_are_written() {
    let robots =
        read("Sitemap: http://e/a:b.xml\nuser-agent: x\nsitemap: /relative\nsitemap:\nSITEMAP: http://e/c");
    assert_eq!(robots.sitemaps(), ["http://e/a:b.xml", "/relative", "http://e/c"]);
}

#[test]
fn a_web_page_is_a_robots_txt_that_says_nothing() {
    let robots = read("<!DOCTYPE html>\n<html><a href=\"http://e/\">x: y</a></html>");
    assert!(allows(&robots, "/a") && robots.sitemaps().is_empty());
    assert_eq!(*robots.fetch(), RobotsFetch::Read);
}

#[test]
fn nothing_is_read_beyond_the_limit_nor_the_line_that_is_cut_there() {
    let mut text = "user-agent: *\ndisallow: /kept\n".to_owned();
    text.push_str(&"#".repeat(MOST_READ - text.len() - "\nallow: /ke".len()));
    text.push_str("\nallow: /kept/far\ndisallow: /beyond\n");
    let robots = read(&text);
    assert!(!allows(&robots, "/kept/far") && allows(&robots, "/beyond"));
    assert!(allows(&read(&"x".repeat(MOST_READ + 1)), "/"));
}

#[test]
fn policies_fetch_nothing_unless_there_is_something_to_obey() {
    use RequestPurpose::{Crawling, Invited};
    let binds = |policy: &RobotsPolicy| {
        [(Invited, false), (Crawling, false), (Invited, true)]
            .map(|(errand, is_foreign)| policy.disallow.binds(errand, is_foreign))
    };
    for (policy, crawl_delay, bound) in [
        (RobotsPolicy::default(), false, [false, false, false]),
        (RobotsPolicy::links_only(), true, [false, true, true]),
        (RobotsPolicy::obey(), true, [true, true, true]),
    ] {
        assert_eq!((policy.crawl_delay, binds(&policy)), (crawl_delay, bound), "{policy:?}");
        let asks = [Invited, Crawling].map(|errand| policy.asks(errand, false));
        assert_eq!(asks, [crawl_delay; 2]);
    }
    let only_disallow = RobotsPolicy { crawl_delay: false, ..RobotsPolicy::links_only() };
    let asks = [(Invited, false), (Crawling, false), (Invited, true)];
    assert_eq!(asks.map(|(errand, is_foreign)| only_disallow.asks(errand, is_foreign)), [false, true, true]);
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes: Vec<u8>, agent in "\\PC{0,8}") {
        let robots = Robots::parse(&bytes, &agent);
        robots.allows(&"http://example.org/a?b".parse().unwrap());
        prop_assert!(robots.crawl_delay().is_none_or(|delay| delay <= LONGEST_DELAY));
    }

    #[test]
    fn lines_in_any_order_and_number_can_be_read(
        text in "((user-agent: (\\*|thresher|x)|(dis)?allow: /?[a-b*$%]{0,4}|crawl-delay: [0-9.]{0,4}|sitemap: .{0,5}|#)[\r\n]{1,2}){0,12}"
    ) {
        let robots = read(&text);
        let named = text.contains("user-agent: *") || text.contains("user-agent: thresher");
        prop_assert!(named || allows(&robots, "/ab"), "nobody that we are was named");
    }
}
