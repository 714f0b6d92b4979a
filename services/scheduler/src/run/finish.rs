//! The end of a run: its result, and the channels that it found.

use control::{ControlError, InSync, PollState, Problems, RunFailure};
use harvest::Report;
use model::Mode;
use web::Client;

use super::{RunExecutor, RunExit};
use crate::due::was_success;
use crate::notifier::channels;

impl RunExecutor<'_> {
    pub(super) async fn finish(&mut self, report: &Report) -> Result<RunExit, ControlError> {
        self.problems = Some(Problems { open: report.open_problems, ignored: report.ignored_problems });
        self.title.clone_from(&report.title);
        self.poll = report.poll.clone().map(|basis| PollState {
            basis,
            spec: self.source.run_digest(),
            polled_at: None,
        });
        self.context.metrics.problems(&self.source.id, &report.problems_by_reason, report.ignored_problems);
        if let Some(guard) = &report.guard {
            self.context.metrics.guard_tripped();
            // The problems, and the final counters, which no tick reported.
            self.tell().await?;
            return self.stop(RunFailure::by_guard(guard.to_string())).await;
        }
        let in_sync = InSync(report.in_sync());
        let (progress, now) = (self.progress_now(), self.context.clock.now());
        let finished = self.runs().finish(self.lease, self.id, progress, in_sync, now).await?;
        if was_success(&finished) {
            let began = finished.started_at;
            self.context.metrics.statuses.note(&self.source.id, |status| status.last_success = began);
        }
        // The counters of an audit or an earlier process cannot be compared with the results.
        if !report.resumed && matches!(report.run.mode, Mode::Baseline | Mode::Incremental) {
            self.context.metrics.fell_short(report.run.counters.shortfall());
        }
        tracing::info!(run.id = %self.id, in_sync = report.in_sync(), "the run is finished");
        self.context.metrics.ended(if report.in_sync() { "in-sync" } else { "with-problems" });
        Ok(RunExit::Settled)
    }

    /// Reports the channels that the run found, as long as this scheduler owns the Source: the next owner's run finds
    /// the same.
    pub(super) async fn tell_of_channels(&self, client: &Client, report: &Report, is_poll: bool) {
        let telling = async {
            channels::missed(self.context, &self.source.id, &report.missed).await;
            // No other run reports these missed changes. The request for channels makes requests to the Source; it
            // may be cut short, because a later run repeats it.
            tokio::select! {
                () = channels::want(self.context, client, &self.source, &report.channels, is_poll) => {}
                () = self.keep.cancelled() => {}
            }
        };
        tokio::select! {
            () = telling => {}
            () = self.lease.lost().cancelled() => {}
        }
    }

    pub(super) async fn fail(&self, why: String) -> Result<RunExit, ControlError> {
        self.stop(RunFailure::because(why)).await
    }

    pub(super) async fn stop(&self, stopped: RunFailure) -> Result<RunExit, ControlError> {
        tracing::error!(run.id = %self.id, why = stopped.why, by_guard = stopped.by_guard, "the run cannot go on");
        self.context.metrics.ended("failed");
        self.runs().fail(self.lease, self.id, stopped, self.context.clock.now()).await?;
        Ok(RunExit::Settled)
    }
}
