//! The processes of the fleet, and their shares of the Sources.

mod assign;
mod member;

use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::error::ControlError;
use crate::table::Table;
use crate::watch_cache::WatchCache;

pub use assign::assign;
pub use member::{Member, MemberId, MemberIdError, Role};

/// The processes of the fleet.
#[derive(Debug, Clone)]
pub struct Members {
    table: Table<Member>,
    ttl: Duration,
}

/// The membership of a process. It is renewed in the background, and ended when this is dropped.
#[derive(Debug)]
pub struct Membership {
    member: Member,
    left: CancellationToken,
    heartbeat: Option<JoinHandle<()>>,
}

impl Members {
    pub(crate) fn new(table: Table<Member>, ttl: Duration) -> Self {
        Self { table, ttl }
    }

    /// Registers a process as a member, as long as the result lives.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn join(&self, id: MemberId, role: Role, now: Timestamp) -> Result<Membership, ControlError> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let member = Member { id, role, version, since: now };
        beat(&self.table, &member, self.ttl).await?;
        let left = CancellationToken::new();
        let heartbeat =
            tokio::spawn(send_heartbeats(self.table.clone(), member.clone(), self.ttl, left.clone()));
        Ok(Membership { member, left, heartbeat: Some(heartbeat) })
    }

    /// A view of the members.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<WatchCache<Member>, ControlError> {
        self.table.view().await
    }
}

impl WatchCache<Member> {
    /// The members with a role, by ID.
    pub fn of(&self, role: Role) -> Vec<MemberId> {
        let all = self.all();
        all.iter().filter(|member| member.role == role).map(|member| member.id.clone()).collect()
    }
}

impl Membership {
    /// The member.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// Leaves. Returns when the other processes can know, or when that failed and the record will expire.
    pub async fn leave(mut self) {
        self.left.cancel();
        if let Some(heartbeat) = self.heartbeat.take() {
            // It ends by itself; a panic in it has been reported.
            let _ = heartbeat.await;
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.left.cancel();
    }
}

async fn beat(table: &Table<Member>, member: &Member, ttl: Duration) -> Result<(), ControlError> {
    let id = (member.role, member.id.clone());
    table.write(&id, member, None, Some(ttl)).await.map(drop)
}

async fn send_heartbeats(table: Table<Member>, member: Member, ttl: Duration, left: CancellationToken) {
    let mut next = Instant::now() + ttl / 4;
    loop {
        tokio::select! {
            () = left.cancelled() => break,
            () = sleep_until(next) => {}
        }
        let begun = Instant::now();
        let told = timeout(ttl / 4, beat(&table, &member, ttl)).await;
        next = match told {
            Ok(Ok(())) => begun + ttl / 4,
            Ok(Err(error)) => {
                debug!(member = %member.id, %error, "heartbeat failed; trying again");
                Instant::now() + ttl / 20
            }
            Err(_) => Instant::now(),
        };
    }
    let id = (member.role, member.id.clone());
    if let Err(error) = table.delete_at(&id, None).await {
        debug!(member = %member.id, %error, "could not leave; the record will expire");
    }
}
