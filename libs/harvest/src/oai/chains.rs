//! The pages of a list that are being read, one of each window that is open. Each is read by a task of its own: it
//! receives and parses, while the owner of the Source settles what came.

use model::OaiWindow;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::error::HarvestError;
use crate::oai::answer::Asker;
use crate::oai::page::{self, Before, Event, HandOn, PageRequest};
use crate::run::RunContext;

/// Events that wait for the owner. With the one in hand, and one in each task, they bound the memory of a list.
const WAITING: usize = 1;

/// The pages that are being read. Dropping it ends them.
pub(super) struct Chains {
    asker: Asker,
    tasks: JoinSet<()>,
    open: Vec<OaiWindow>,
    /// The pages so far of windows that go on.
    before: Vec<(OaiWindow, Before)>,
    sender: Sender<(OaiWindow, Event)>,
    events: Receiver<(OaiWindow, Event)>,
}

impl Chains {
    pub(super) fn new(ctx: &RunContext) -> Self {
        let (sender, events) = channel(WAITING);
        let (tasks, open, before) = (JoinSet::new(), Vec::new(), Vec::new());
        Self { asker: Asker::of(ctx), tasks, open, before, sender, events }
    }

    /// The windows of which a page is being read.
    pub(super) fn open(&self) -> &[OaiWindow] {
        &self.open
    }

    /// The pages of a window so far.
    pub(super) fn before(&mut self, window: &OaiWindow) -> Before {
        let at = self.before.iter().position(|(of, _)| of.is(window));
        at.map_or_else(Before::default, |at| self.before.swap_remove(at).1)
    }

    /// Keeps the pages of a window that goes on.
    pub(super) fn keep(&mut self, window: &OaiWindow, before: Before) {
        self.before.push((window.clone(), before));
    }

    /// Begins to read a page of a window.
    pub(super) fn start(&mut self, window: OaiWindow, page: PageRequest) {
        self.open.push(window.clone());
        let hand_on = HandOn { window, sender: self.sender.clone() };
        self.tasks.spawn(page::read(self.asker.clone(), page, hand_on).in_current_span());
    }

    /// The next event of any page.
    ///
    /// # Errors
    /// When the harvest is stopped.
    pub(super) async fn next(&mut self, ctx: &RunContext) -> Result<(OaiWindow, Event), HarvestError> {
        loop {
            tokio::select! {
                biased;
                () = ctx.stop.cancelled() => return Err(HarvestError::Stopped),
                // Its last event may still wait.
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    if let Err(failed) = ended && failed.is_panic() {
                        std::panic::resume_unwind(failed.into_panic());
                    }
                }
                Some((window, event)) = self.events.recv() => {
                    if matches!(event, Event::End(_)) {
                        self.open.retain(|open| !open.is(&window));
                    }
                    return Ok((window, event));
                }
            }
        }
    }
}
