//! Notices about origins, while requests are sent to them.

use std::io::IsTerminal;

use crate::terminal::note;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use web::{Client, CrawlDelay};

/// Prints crawl-delays when they are found: they explain a wait.
pub(crate) struct Notices {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Notices {
    /// Starts printing the notices of a client.
    pub(crate) fn of(client: &Client) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(tell(client.crawl_delays(), stopped)) }
    }

    /// Ends after the last notice.
    pub(crate) async fn finish(self) {
        // The channel is closed early only if the task failed; then there is nothing left to print.
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

async fn tell(mut delays: watch::Receiver<Option<CrawlDelay>>, mut stopped: oneshot::Receiver<()>) {
    let mut is_over = false;
    loop {
        if delays.has_changed().is_ok_and(|changed| changed)
            && let Some(delay) = &*delays.borrow_and_update()
        {
            // On a terminal the line begins behind a progress bar.
            if std::io::stderr().is_terminal() {
                note!("");
            }
            note!("{}", words(delay));
        }
        if is_over {
            return;
        }
        tokio::select! {
            changed = delays.changed() => match changed {
                Ok(()) => delays.mark_changed(),
                Err(_all_clients_are_gone) => return,
            },
            _ = &mut stopped => is_over = true,
        }
    }
}

fn words(delay: &CrawlDelay) -> String {
    let CrawlDelay { lane, asked, kept } = delay;
    let waits = if asked == kept {
        "it is obeyed, so this takes a while".to_owned()
    } else {
        format!("{kept:?} are obeyed, the longest that Thresher waits")
    };
    format!("{lane}: robots.txt has a crawl-delay of {asked:?}: {waits}. --robots ignore does not wait")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_delay_is_told_with_what_is_kept_of_it() {
        let lane = "http://example.org".parse().unwrap();
        let asked = Duration::from_secs(90);
        let mut delay = CrawlDelay { lane, asked, kept: asked };
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
