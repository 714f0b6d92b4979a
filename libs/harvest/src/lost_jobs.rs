//! Lost jobs: a bus whose server lost its disk has lost jobs, and no outcome will arrive for them.

use std::collections::HashSet;
use std::time::Duration;

use model::Lane;
use tokio::time::Instant;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::window::Window;

/// Silence after which the scheduler asks the bus whether it still has the jobs. It is as long as the redelivery of a
/// dead worker's jobs takes, so an ordinary restart causes no resend.
const SILENCE: Duration = Duration::from_secs(60);
/// Consecutive times that all jobs may vanish. A bus that keeps nothing must not be refilled for ever.
const MOST: u32 = 5;

impl Harvest {
    /// After a long silence: returns whether the outstanding jobs have vanished from the bus. Then the window forgets
    /// them, and their pending records must be scanned again.
    ///
    /// The scheduler asks only for messages of this Source, so the load of other Sources does not matter. As long as
    /// one message is in progress, an outcome or a dead letter will arrive: a large resource takes its time. If a
    /// forgotten job is answered after all, its outcomes settle the plans whose numbers they carry. Those of its
    /// successor then settle nothing.
    pub(crate) async fn look_for_lost(
        &mut self,
        window: &mut Window,
        heard_at: &mut Instant,
    ) -> Result<bool, HarvestError> {
        if !self.is_nothing_under_way(&window.lanes_out(), heard_at).await? {
            return Ok(false);
        }
        // A dead letter is written before its message is removed.
        if self.take_letters(window).await? {
            return Ok(false);
        }
        let jobs = window.forget_jobs();
        if jobs == 0 {
            return Ok(false);
        }
        self.note_vanished(jobs)?;
        Ok(true)
    }

    /// After a long silence: whether the bus has no message of this Source.
    pub(crate) async fn is_nothing_under_way(
        &self,
        lanes: &HashSet<Lane>,
        heard_at: &mut Instant,
    ) -> Result<bool, HarvestError> {
        if heard_at.elapsed() < SILENCE {
            return Ok(false);
        }
        *heard_at = Instant::now();
        if self.bus.under_way(&self.source).await? == 0 {
            return Ok(true);
        }
        // If the list of origin queues was lost, no fetcher would find them.
        for lane in lanes {
            self.open_lane(lane).await?;
        }
        Ok(false)
    }

    /// Counts that all jobs have vanished once more.
    ///
    /// # Errors
    /// When that happened too often.
    pub(crate) fn note_vanished(&mut self, jobs: usize) -> Result<(), HarvestError> {
        self.vanished += 1;
        if self.vanished >= MOST {
            return Err(HarvestError::Vanishing { jobs, times: self.vanished });
        }
        tracing::warn!(jobs, "jobs have vanished from the bus: what they were to do is sent again");
        Ok(())
    }
}
