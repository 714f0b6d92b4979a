//! Looks at a Source, and begins what is to be done for it.

use control::ChangedKey;
use model::SourceId;

use super::{Supervisor, jobs};
use crate::source_line::{Facts, Step};

impl Supervisor {
    pub(super) fn changed(&mut self, changed: &ChangedKey) {
        match changed {
            ChangedKey::One(key) => {
                if let Ok(source) = key.parse() {
                    self.look_at(&source);
                }
            }
            ChangedKey::Any => {
                let all: Vec<SourceId> = self.owned.keys().cloned().collect();
                all.iter().for_each(|source| self.look_at(source));
            }
        }
    }

    pub(super) fn look_at_due(&mut self) {
        while let Some(source) = self.agenda.due(self.context.clock.now()) {
            self.look_at(&source);
        }
    }

    /// Decides what is to be done for a Source, and begins it.
    pub(super) fn look_at(&mut self, source: &SourceId) {
        let Some(owned) = self.owned.get(source) else { return };
        if owned.is_busy && owned.task.is_none() {
            return;
        }
        let now = self.context.clock.now();
        let spec = self.context.sources.get(source);
        let run = self.context.runs.get(source);
        let task = self.context.tasks.get(source).filter(|_| !owned.is_busy);
        let hint = self.context.hints.get(source);
        let facts = Facts {
            spec: spec.as_ref().map(|spec| &*spec.value),
            run: run.as_ref().map(|run| &*run.value),
            task: task.as_ref().map(|task| &*task.value),
            hint: hint.as_ref().map(|hint| &*hint.value),
            is_subscribed: self.subscribed.get(source).is_some_and(|is_ending| !is_ending),
            has_push: self.context.push.is_some(),
        };
        let step = owned.line.next(facts, &self.context.settings, now);
        self.agenda.clear(source);
        if let Some(task) = &owned.task {
            match step {
                Step::At(at) => self.agenda.set(source, at),
                Step::Rest => {}
                // A run comes first. The task goes on after it.
                _ => task.cancel(),
            }
            return self.listen(source);
        }
        if !matches!(step, Step::Run | Step::Task) {
            self.places.withdraw(source);
        }
        match (step, spec, run) {
            (Step::Run, Some(spec), Some(run)) => self.places.wait(&spec.value, &run.value),
            (Step::Task, Some(spec), _) => {
                if let Some(task) = task {
                    self.places.wait(&spec.value, &task.value);
                }
            }
            (Step::Probe, Some(spec), Some(run)) => {
                let context = self.context.clone();
                let limit = self.limits.probes.clone();
                self.spawn(source, |keep| jobs::probe(context, spec.value, run.value, limit, keep));
            }
            (Step::Poll, Some(spec), Some(run)) => {
                let context = self.context.clone();
                let (turns, limit) = (self.limits.polls.clone(), self.limits.submissions.clone());
                self.spawn(source, |keep| jobs::poll(context, spec, run.value, turns, limit, keep));
            }
            (Step::Submit(asked_by), ..) => {
                let context = self.context.clone();
                let limit = self.limits.submissions.clone();
                let id = source.clone();
                self.spawn(source, |keep| jobs::submit(context, id, asked_by, limit, keep));
            }
            (Step::At(at), ..) => self.agenda.set(source, at),
            _ => {}
        }
        self.listen(source);
    }
}
