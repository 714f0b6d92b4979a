//! Crawl-delays of origins, printed while requests are sent to them.

use std::io::IsTerminal;
use std::pin::pin;

use web::{Client, CrawlDelay};

use crate::terminal::note;

/// Prints crawl-delays during the work of a client, when they are found: they explain a wait.
pub(crate) async fn print_during<T>(client: &Client, work: impl Future<Output = T>) -> T {
    let mut delays = client.crawl_delays();
    let mut work = pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            Ok(()) = delays.changed() => print(delays.borrow().as_ref()),
        }
    };
    if delays.has_changed().is_ok_and(|changed| changed) {
        print(delays.borrow().as_ref());
    }
    done
}

fn print(delay: Option<&CrawlDelay>) {
    let Some(delay) = delay else { return };
    // On a terminal the line begins behind a progress bar.
    if std::io::stderr().is_terminal() {
        note!("");
    }
    note!("{}", words(delay));
}

fn words(delay: &CrawlDelay) -> String {
    let CrawlDelay { origin, asked, kept } = delay;
    let waits = if asked == kept {
        "it is obeyed, so this takes a while".to_owned()
    } else {
        format!("{kept:?} are obeyed, the longest that Thresher waits")
    };
    format!("{origin}: robots.txt has a crawl-delay of {asked:?}: {waits}. --robots ignore does not wait")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_delay_is_told_with_what_is_kept_of_it() {
        let origin = "http://example.org".parse().unwrap();
        let asked = Duration::from_secs(90);
        let mut delay = CrawlDelay { origin, asked, kept: asked };
        let text = words(&delay);
        assert!(
            text.starts_with("http://example.org:80: ")
                && text.contains("90s")
                && text.contains("it is obeyed")
        );
        delay.kept = Duration::from_secs(60);
        assert!(words(&delay).contains("crawl-delay of 90s: 60s are obeyed"), "{}", words(&delay));
    }
}
