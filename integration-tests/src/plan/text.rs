//! Plans as text, for a person who reads what broke a promise.

use std::fmt;

use super::{Plan, Step, Sync};
use crate::effects::{Halt, Rates};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {:?}, {} requests to an origin at a time, a window of {} resources and {} origins, messages {}",
            self.seed,
            self.site,
            self.per_origin,
            self.window.resources,
            self.window.origins,
            if self.by_wire { "by wire" } else { "handed over as they are" }
        )?;
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "  {number}. {step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change { created, updated, deleted } => {
                write!(f, "the Source creates {created}, updates {updated}, deletes {deleted}")
            }
            Self::Publish { snapshots, changes } => {
                write!(
                    f,
                    "the Source publishes{}{}",
                    if *snapshots { " what is there" } else { "" },
                    if *changes { " what has changed" } else { "" }
                )
            }
            Self::Forget => f.write_str("the Source forgets its changes"),
            Self::Pass(seconds) => write!(f, "{seconds} s pass"),
            Self::Sync(sync) => write!(f, "sync {sync}"),
            Self::TakeOver { first, second } => write!(f, "while a sync sleeps ({first}): {second}"),
            Self::Gc { keep_for, halt } => write!(f, "gc that keeps for {keep_for} s{}", Halted(*halt)),
            Self::Restore => f.write_str("a deletion is undone"),
        }
    }
}

/// Where a process stops, as text.
struct Halted(Option<Halt>);

impl fmt::Display for Halted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(Halt { effect, done }) => {
                write!(f, ", stops {} effect {effect}", if done { "behind" } else { "before" })
            }
        }
    }
}

impl fmt::Display for Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, prefer, only, absent, max_deletes, http, rates, halt, parks } = self;
        write!(f, "mode {mode:?}, prefer {prefer:?}, absent {absent:?}, at most {max_deletes} % deleted")?;
        if let Some(only) = only {
            write!(f, ", only {only:?}")?;
        }
        for fault in http {
            write!(f, "; {fault}")?;
        }
        if *rates != Rates::default() {
            write!(f, "; {rates:?}")?;
        }
        if let Some(effect) = parks {
            write!(f, ", parked before effect {effect}")?;
        }
        write!(f, "{}", Halted(*halt))
    }
}
