//! Lost messages: a bus whose server has lost its disk has lost jobs, and nobody will ever answer for them.

use std::collections::HashSet;
use std::time::Duration;

use model::Lane;
use tokio::time::Instant;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::window::Window;

/// How long nothing may come back before the bus is asked whether it still has what was sent: as long as it takes to hand
/// out again what a dead worker held, so that an ordinary restart asks for nothing.
const SILENCE: Duration = Duration::from_secs(60);
/// How often in a row all jobs may vanish. A bus that keeps nothing must not be fed for ever.
const MOST: u32 = 5;

impl Harvest {
    /// After a long silence: whether the jobs that are out have vanished from the bus. Then the window forgets them, and their
    /// pending records are to be scanned again.
    ///
    /// The bus is asked for the messages of this Source alone, so it matters not how much others have there. As long as one is
    /// under way, somebody will answer for it, or a letter will: a large resource takes its time. Should a job that was
    /// forgotten be answered for all the same, its outcomes settle the plans whose numbers they carry, and its successor's
    /// settle nothing.
    pub(crate) async fn look_for_lost(
        &mut self,
        window: &mut Window,
        heard_at: &mut Instant,
    ) -> Result<bool, HarvestError> {
        if !self.is_nothing_under_way(&window.lanes_out(), heard_at).await? {
            return Ok(false);
        }
        // A letter is written before its message goes.
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

    /// After a long silence: whether the bus has no message of this Source any more.
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
        // Where the list of lanes was lost, no fetcher would find them.
        for lane in lanes {
            self.open_lane(lane).await?;
        }
        Ok(false)
    }

    /// Notes that all jobs have vanished once more.
    ///
    /// # Errors
    /// When that was once too often.
    pub(crate) fn note_vanished(&mut self, jobs: usize) -> Result<(), HarvestError> {
        self.vanished += 1;
        if self.vanished >= MOST {
            return Err(HarvestError::Vanishing { jobs, times: self.vanished });
        }
        tracing::warn!(jobs, "jobs have vanished from the bus: what they were to do is sent again");
        Ok(())
    }
}
