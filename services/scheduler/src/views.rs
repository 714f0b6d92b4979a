//! Live views of the control store.

use control::{
    Control, ControlError, Hint, InboxCursor, LeaseRecord, Member, OutboxMessage, Plan, Run, SourceSpec,
    Subscription, WatchCache,
};
use service::Readiness;
use tokio_util::sync::CancellationToken;

/// Live views of the control store.
pub(crate) struct Views {
    pub(crate) sources: WatchCache<SourceSpec>,
    pub(crate) runs: WatchCache<Run>,
    pub(crate) tasks: WatchCache<Run>,
    pub(crate) leases: WatchCache<LeaseRecord>,
    pub(crate) members: WatchCache<Member>,
    pub(crate) plans: WatchCache<Plan>,
    pub(crate) hints: WatchCache<Hint>,
    pub(crate) outbox: WatchCache<OutboxMessage>,
    pub(crate) readings: WatchCache<InboxCursor>,
    pub(crate) subscriptions: WatchCache<Subscription>,
}

impl Views {
    /// Opens each as soon as the control store answers. A server that goes away at that very moment is awaited like
    /// one that is not there yet.
    ///
    /// # Errors
    /// When the control store refuses, or the service stops.
    pub(crate) async fn open(
        control: &Control,
        readiness: &Readiness,
        stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let temporary = ControlError::is_temporary;
        Ok(Self {
            sources: fleet::connect("sources", readiness, stop, temporary, || control.sources().view())
                .await?,
            runs: fleet::connect("runs", readiness, stop, temporary, || control.runs().view()).await?,
            tasks: fleet::connect("tasks", readiness, stop, temporary, || control.tasks().view()).await?,
            leases: fleet::connect("leases", readiness, stop, temporary, || control.leases().view()).await?,
            members: fleet::connect("members", readiness, stop, temporary, || control.members().view())
                .await?,
            plans: fleet::connect("plans", readiness, stop, temporary, || control.plans().view()).await?,
            hints: fleet::connect("hints", readiness, stop, temporary, || control.hints().view()).await?,
            outbox: fleet::connect("outbox", readiness, stop, temporary, || control.outbox().view()).await?,
            readings: fleet::connect("readings", readiness, stop, temporary, || {
                control.inbox_cursors().view()
            })
            .await?,
            subscriptions: fleet::connect("subscriptions", readiness, stop, temporary, || {
                control.subscriptions().view()
            })
            .await?,
        })
    }
}

#[cfg(test)]
mod tests {
    use control::{MemberId, Role};
    use fleet::{NatsConfig, open_control};
    use jiff::Timestamp;
    use secrets::Vars;
    use testkit::servers::NatsServer;
    use testkit::waiting::until;

    use super::*;

    #[tokio::test]
    async fn a_server_that_goes_away_in_the_moment_of_the_start_is_waited_for() {
        let mut server = NatsServer::start().await.unwrap();
        let config = NatsConfig { servers: vec![server.url().to_owned()], ..NatsConfig::default() };
        let readiness = Readiness::default();
        let stop = CancellationToken::new();
        let control = open_control(&config, &Vars::default(), &readiness, &stop).await.unwrap();
        server.kill();
        let starting = async {
            let views = Views::open(&control, &readiness, &stop).await.unwrap();
            let me = MemberId::fresh("a");
            let now = Timestamp::now();
            let member =
                fleet::become_member(&control, &me, Role::Scheduler, now, &readiness, &stop).await.unwrap();
            (views, member)
        };
        let back = async {
            until("the first try has failed, and readiness says so", || {
                let waiting = readiness.waiting_for();
                waiting.iter().any(|missing| {
                    missing.part == "sources" && missing.reason.starts_with("the control store")
                })
            })
            .await;
            server.start_again().await.unwrap();
        };
        let ((mut views, member), ()) = tokio::join!(starting, back);
        let me = &member.member().id;
        views.members.wait_for(|members| members.of(Role::Scheduler).contains(me).then_some(())).await;
    }
}
