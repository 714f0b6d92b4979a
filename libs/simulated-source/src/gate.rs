//! A gate before the answers: a test decides how many requests get one. So what it does in the middle of a harvest is
//! done in the middle, however slow the test is.

use tokio::sync::watch;

/// The gate. It is open until some requests only are let through.
#[derive(Debug, Default)]
pub struct Gate(watch::Sender<Option<Allowed>>);

/// How many requests may pass.
#[derive(Debug)]
struct Allowed {
    /// How the name of each of them begins. Others are not counted, and pass.
    kind: String,
    left: u64,
}

impl Gate {
    /// From now on, lets so many requests of a kind pass; also some that wait already.
    pub fn allow(&self, kind: &str, requests: u64) {
        self.0.send_replace(Some(Allowed { kind: kind.to_owned(), left: requests }));
    }

    /// Lets all pass.
    pub fn allow_all(&self) {
        self.0.send_replace(None);
    }

    /// Waits until this request may pass.
    pub async fn pass(&self, name: &str) {
        let mut changes = self.0.subscribe();
        while !self.takes(name) {
            // The sender is here.
            changes.changed().await.ok();
        }
    }

    /// Whether this request may pass now; it counts.
    fn takes(&self, name: &str) -> bool {
        let mut may = true;
        self.0.send_if_modified(|allowed| {
            if let Some(allowed) = allowed.as_mut().filter(|allowed| name.starts_with(&allowed.kind)) {
                may = allowed.left > 0;
                allowed.left = allowed.left.saturating_sub(1);
            }
            // Fewer are no news for those that wait.
            false
        });
        may
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn so_many_of_a_kind_pass_and_the_rest_when_more_are_allowed() {
        let gate = Gate::default();
        assert!(gate.pass("/a").now_or_never().is_some(), "it is open");
        gate.allow("/a", 1);
        assert!(gate.pass("/b").now_or_never().is_some(), "it is of another kind");
        assert!(gate.pass("/a/1").now_or_never().is_some());
        let mut second = pin!(gate.pass("/a/2"));
        let mut third = pin!(gate.pass("/a/3"));
        assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
        gate.allow("/a", 1);
        assert!(second.as_mut().now_or_never().is_some());
        assert!(third.as_mut().now_or_never().is_none());
        gate.allow_all();
        assert!(third.now_or_never().is_some());
    }
}
