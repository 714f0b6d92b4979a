//! The plan of a simulation: a Source, and a sequence of steps. All of it follows from a seed.

mod hop;

use std::fmt;
use std::num::NonZeroUsize;

pub use hop::Hop;
use model::{Absent, Mode, Prefer};
use planning::{Filter, WindowLimits};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use regex::Regex;

use crate::effects::{Halt, Rates, mix};
use crate::site::{Entry, Fixity, HttpFault, On, Repository, SiteSpec, What};

/// The plan of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The Source.
    pub site: SiteSpec,
    /// Concurrent requests of a process to one origin.
    pub per_origin: usize,
    /// How much of a run is in memory and on the bus at a time.
    pub window: WindowLimits,
    /// Whether every message is encoded and decoded, as between the services of a fleet, or passed as a
    /// value.
    pub by_wire: bool,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The Source changes this many resources.
    Change {
        /// New ones.
        created: u32,
        /// Updated ones.
        updated: u32,
        /// Deleted ones.
        deleted: u32,
    },
    /// The Source publishes its documents anew.
    Publish {
        /// Resource List and Resource Dump.
        snapshots: bool,
        /// Change List and Change Dump.
        changes: bool,
    },
    /// The Source drops old changes from its Change List.
    Forget,
    /// This many seconds pass.
    Pass(u32),
    /// A process syncs the copy, or stops before.
    Sync(Sync),
    /// A process falls asleep during a run, another one runs, and the first one wakes up.
    TakeOver {
        /// The first one, which sleeps at its halt.
        first: Sync,
        /// The step of the other one.
        second: Box<Step>,
    },
    /// gc runs.
    Gc {
        /// The retention time in seconds.
        keep_for: u32,
        /// Where its process stops.
        halt: Option<Halt>,
    },
    /// A deletion is undone, if there is one.
    Restore,
}

/// A run of `thresher sync`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sync {
    /// The mode.
    pub mode: Option<Mode>,
    /// Lists or dumps.
    pub prefer: Option<Prefer>,
    /// The filter.
    pub only: Option<Only>,
    /// The policy for absent resources.
    pub absent: Absent,
    /// The most deletions for absence, in percent.
    pub max_deletes: u8,
    /// Faults between the Source and the process.
    pub http: Vec<HttpFault>,
    /// Faults of messages and objects.
    pub rates: Rates,
    /// Where the process stops.
    pub halt: Option<Halt>,
    /// The effect before which it is asked to stop: its run is parked.
    pub parks: Option<u64>,
}

/// A filter of resources by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Those with an even number.
    Even,
    /// Those with an odd number.
    Odd,
}

impl Only {
    /// The filter.
    pub fn filter(only: Option<Self>) -> Filter {
        let pattern = only.map(|only| match only {
            Self::Even => "[02468]$",
            Self::Odd => "[13579]$",
        });
        let include = pattern.map(|pattern| Regex::new(pattern).expect("a regular expression"));
        Filter { include, ..Filter::default() }
    }
}

impl Sync {
    /// A run without faults.
    pub fn clean() -> Self {
        Self {
            mode: None,
            prefer: None,
            only: None,
            absent: Absent::Confirm,
            max_deletes: 100,
            http: Vec::new(),
            rates: Rates::default(),
            halt: None,
            parks: None,
        }
    }
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Self {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
        let site = draw.site(seed);
        let per_origin = draw.of(&[1, 2, 4]);
        let by_wire = seed.is_multiple_of(2);
        let window = WindowLimits::default();
        let mut plan = Self { seed, site, per_origin, window, by_wire, steps: Vec::new() };
        // Some Sources are honest and some runs without faults, so that findings are not hidden by noise.
        let trouble = draw.of(&[0, 1, 2, 3]);
        for _ in 0..draw.up_to(2, 9) {
            let step = draw.step(&plan.site, trouble);
            plan.steps.push(step);
        }
        // Later additions are drawn last, so that the plans of most seeds stay the same.
        draw.spread(&mut plan);
        if trouble > 1 {
            draw.hostile(&mut plan);
        }
        draw.parked(&mut plan);
        draw.filtered(&mut plan);
        plan
    }
}

impl Plan {
    /// The plan of a seed for a Source that speaks OAI-PMH.
    pub fn of_repository(seed: u64) -> Self {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(mix(seed)));
        let page = draw.of(&[1, 1, 3, 10]);
        let by_seconds = !draw.one_in(3);
        // All pages of a day have to be read within the life of a token: nothing halves a day.
        let token_life = if by_seconds { draw.of(&[0, 1, 60, 86_400]) } else { draw.of(&[60, 86_400]) };
        let shows_deleted = !draw.one_in(3);
        let sizes = !draw.one_in(4);
        let (leaves_out_from, leaves_out_until) = (false, false);
        let repository = Repository {
            page,
            by_seconds,
            shows_deleted,
            sizes,
            token_life,
            leaves_out_from,
            leaves_out_until,
        };
        let resources = draw.of(&[0, 3, 30, 130, 130]);
        let site = SiteSpec { resources, hosts: 1, repository: Some(repository), ..draw.site(seed) };
        let per_origin = draw.of(&[1, 2, 4, 4]);
        let window = WindowLimits::default();
        let by_wire = seed.is_multiple_of(2);
        let mut plan = Self { seed, site, per_origin, window, by_wire, steps: Vec::new() };
        let trouble = draw.of(&[0, 1, 2, 3]);
        for _ in 0..draw.up_to(2, 8) {
            let step = draw.step_of_repository(trouble);
            plan.steps.push(step);
        }
        draw.parked(&mut plan);
        if let Some(repository) = &mut plan.site.repository {
            let bounds =
                [(false, false), (false, false), (false, false), (false, true), (true, false), (true, true)];
            (repository.leaves_out_from, repository.leaves_out_until) = draw.of(&bounds);
            if repository.leaves_out_from || repository.leaves_out_until {
                // A window has three seconds at least, of which two have records. Without tokens, a page has to hold them.
                repository.page = repository.page.max(2);
            }
        }
        plan
    }
}

/// Draws from a seed.
struct Draw(ChaCha8Rng);

impl Draw {
    fn up_to(&mut self, least: u32, most: u32) -> u32 {
        self.0.random_range(least..=most)
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.random_range(0..choices.len())]
    }

    fn one_in(&mut self, many: u32) -> bool {
        self.0.random_range(0..many) == 0
    }

    fn site(&mut self, seed: u64) -> SiteSpec {
        let snapshots = self.of(&[(1, 0), (1, 0), (2, 0), (0, 1), (0, 2), (1, 1), (2, 2)]);
        let changes = self.of(&[(false, false), (true, false), (true, false), (false, true), (true, true)]);
        SiteSpec {
            seed,
            resources: self.of(&[0, 1, 2, 5, 12, 30]),
            fixity: self.of(&[Fixity::Nothing, Fixity::Length, Fixity::Sha256, Fixity::Both, Fixity::Both]),
            lastmod: !self.one_in(4),
            etag: !self.one_in(4),
            last_modified: !self.one_in(3),
            content_length: !self.one_in(5),
            list_parts: snapshots.0,
            packages: snapshots.1,
            change_list: changes.0,
            change_dump: changes.1,
            package_names_stay: self.one_in(3),
            deflated: self.one_in(2),
            hosts: self.of(&[1, 1, 2]),
            entry: self.of(&[Entry::WellKnown, Entry::CapabilityList]),
            repository: None,
        }
    }

    /// Some Sources have their resources at many origins, and some runs have a small window: together they
    /// fill it, as a large Source fills a large window.
    fn spread(&mut self, plan: &mut Plan) {
        let (origins, least) = match self.up_to(0, 39) {
            0..=29 => return,
            30..=34 => (plan.site.hosts, 0),
            35..=38 => (50, self.of(&[12, 30, 120])),
            // Each of its resources has an origin of its own.
            _ => (5_000, self.of(&[60, 300])),
        };
        plan.site.hosts = origins;
        plan.site.resources = plan.site.resources.max(least);
        let limit = |number: usize| NonZeroUsize::new(number).expect("a number that is not 0");
        plan.window = WindowLimits {
            resources: limit(self.of(&[1, 8, 64])),
            origins: limit(self.of(&[1, 3, 20, 1_000])),
        };
    }

    /// Adds documents or bodies without end to one run.
    fn hostile(&mut self, plan: &mut Plan) {
        let number = self.up_to(0, plan.steps.len() as u32 - 1) as usize;
        let (on, what) = match self.up_to(0, 7) {
            0 => (On::Documents, What::Nested),
            1 => (On::Documents, What::Endless),
            2 => (On::Resources, What::Endless),
            _ => return,
        };
        let fault = HttpFault { on, skip: self.up_to(0, 4), times: self.of(&[1, 2, 1_000]), what };
        if let Step::Sync(sync) | Step::TakeOver { first: sync, .. } = &mut plan.steps[number] {
            sync.http.push(fault);
        }
    }

    /// Parks a third of the runs in half of the plans.
    fn parked(&mut self, plan: &mut Plan) {
        if self.one_in(2) {
            return;
        }
        for step in &mut plan.steps {
            if let Step::Sync(sync) = step
                && self.one_in(3)
            {
                let most = self.of(&[8, 30, 60, 120]);
                sync.parks = Some(u64::from(self.up_to(1, most)));
            }
        }
    }

    /// Changes the filter from run to run in a third of the plans.
    fn filtered(&mut self, plan: &mut Plan) {
        if !self.one_in(3) {
            return;
        }
        for step in &mut plan.steps {
            if let Step::Sync(sync) | Step::TakeOver { first: sync, .. } = step {
                sync.only = self.of(&[None, None, Some(Only::Even), Some(Only::Odd)]);
            }
        }
    }

    fn step(&mut self, site: &SiteSpec, trouble: u32) -> Step {
        match self.up_to(0, 19) {
            0..=3 => Step::Change {
                created: self.up_to(0, 3),
                updated: self.up_to(0, 4),
                deleted: self.up_to(0, 2),
            },
            4..=6 => Step::Publish { snapshots: !self.one_in(3), changes: !self.one_in(3) },
            7 => {
                if self.one_in(2) {
                    Step::Forget
                } else {
                    Step::Publish { snapshots: true, changes: true }
                }
            }
            8 => Step::Pass(self.of(&[1, 30, 1_200, 4_000, 90_000])),
            9 if trouble > 1 => {
                let mut first = self.sync(site, trouble);
                first.halt = Some(self.halt());
                let second = match self.up_to(0, 2) {
                    0 => Step::Gc { keep_for: self.of(&[0, 0, 3_600]), halt: None },
                    _ => Step::Sync(self.sync(site, trouble)),
                };
                Step::TakeOver { first, second: Box::new(second) }
            }
            10 => Step::Gc {
                keep_for: self.of(&[0, 0, 60, 100_000]),
                halt: if trouble > 0 && self.one_in(2) { Some(self.halt()) } else { None },
            },
            11 if self.one_in(3) => Step::Restore,
            _ => Step::Sync(self.sync(site, trouble)),
        }
    }

    fn step_of_repository(&mut self, trouble: u32) -> Step {
        match self.up_to(0, 19) {
            0..=4 => Step::Change {
                created: self.up_to(0, 3),
                updated: self.up_to(0, 9),
                deleted: self.up_to(0, 2),
            },
            5 | 6 => Step::Pass(self.of(&[1, 30, 4_000, 90_000, 700_000])),
            7 => Step::Gc {
                keep_for: self.of(&[0, 0, 60, 100_000]),
                halt: if trouble > 0 && self.one_in(2) { Some(self.halt()) } else { None },
            },
            8 if trouble > 1 => {
                let mut first = self.sync_of_repository(trouble);
                first.halt = Some(self.halt());
                let second = Box::new(Step::Sync(self.sync_of_repository(trouble)));
                Step::TakeOver { first, second }
            }
            _ => Step::Sync(self.sync_of_repository(trouble)),
        }
    }

    fn sync_of_repository(&mut self, trouble: u32) -> Sync {
        let mode = self.of(&[None, None, None, Some(Mode::Baseline)]);
        let absent = self.of(&[Absent::Confirm, Absent::Confirm, Absent::Delete, Absent::Keep]);
        let mut sync = Sync { mode, absent, ..Sync::clean() };
        if trouble > 0 && self.one_in(2) {
            sync.halt = Some(self.halt());
        }
        for _ in 0..if trouble > 1 { self.up_to(0, 4) } else { 0 } {
            let what = match self.up_to(0, 11) {
                0 | 1 => What::Status(500, None),
                2 => What::Status(503, Some(self.up_to(1, 20))),
                3 => What::Status(self.of(&[422, 429, 404, 413]), None),
                4 => self.of(&[What::Refused, What::Broken]),
                5 | 6 => What::Cut(self.of(&[0, 1, 50, 99]) as u8),
                7 => What::Lie(self.of(&[-50, -1, 1, 5_000])),
                8 => self.of(&[What::Slow(20), What::Slow(70)]),
                _ => What::Changes,
            };
            let (skip, times) = (self.up_to(0, 40), self.of(&[1, 1, 3, 10, 1_000]));
            sync.http.push(HttpFault { on: On::Documents, skip, times, what });
        }
        if trouble > 2 {
            sync.rates.store_fails = self.of(&[0, 0, 30]);
        }
        sync
    }

    fn halt(&mut self) -> Halt {
        // Most runs have some dozens of effects; random numbers rarely hit the first ones.
        let most = self.of(&[8, 30, 60, 120]);
        Halt { effect: u64::from(self.up_to(1, most)), done: self.one_in(2) }
    }

    fn sync(&mut self, site: &SiteSpec, trouble: u32) -> Sync {
        let mode = self.of(&[None, None, None, Some(Mode::Baseline), Some(Mode::Incremental)]);
        let prefer = self.of(&[None, None, Some(Prefer::List), Some(Prefer::Dump)]);
        let absent = self.of(&[Absent::Confirm, Absent::Confirm, Absent::Delete, Absent::Keep]);
        let max_deletes = self.of(&[10, 50, 100]);
        let mut sync = Sync { mode, prefer, absent, max_deletes, ..Sync::clean() };
        if trouble > 0 && self.one_in(2) {
            sync.halt = Some(self.halt());
        }
        if trouble > 1 {
            for _ in 0..self.up_to(0, 3) {
                sync.http.push(self.http_fault(site));
            }
        }
        if trouble > 2 {
            sync.rates = Rates {
                lost_acks: self.of(&[0, 50, 200]),
                redelivered: self.of(&[0, 50, 200]),
                refused: self.of(&[0, 0, 50]),
                unsure: self.of(&[0, 0, 50]),
                store_fails: self.of(&[0, 0, 30, 100]),
                delay_ms: self.of(&[0, 20, 3_000]),
            };
        }
        sync
    }

    fn http_fault(&mut self, site: &SiteSpec) -> HttpFault {
        let on = match self.up_to(0, 5) {
            0 => On::Anything,
            1 => On::Documents,
            2 => On::Packages,
            3 => On::Resource(self.up_to(0, site.resources.max(1))),
            _ => On::Resources,
        };
        let declares_digest = matches!(site.fixity, Fixity::Sha256 | Fixity::Both);
        // A fault that cannot be detected is not required to be found.
        let can_be_found = declares_digest && matches!(on, On::Resources | On::Resource(_) | On::Packages);
        let what = match self.up_to(0, 13) {
            0 => What::Status(500, None),
            1 => What::Status(self.of(&[404, 410, 403]), None),
            2 => What::Status(503, Some(self.up_to(1, 20))),
            3 => What::Status(429, Some(self.of(&[1, 30, 200]))),
            4 => What::Status(self.of(&[502, 429]), None),
            5 => What::Refused,
            6 => What::Broken,
            7 | 8 => What::Cut(self.of(&[0, 1, 50, 99]) as u8),
            9 => What::Lie(self.of(&[1, 5_000])),
            10 if can_be_found => self.of(&[What::Lie(-1), What::Lie(-50)]),
            10 | 11 if can_be_found => What::Corrupt,
            12 => self.of(&[What::Slow(20), What::Slow(70)]),
            13 if self.one_in(2) => What::Publishes,
            _ => What::Changes,
        };
        HttpFault { on, skip: self.up_to(0, 6), times: self.of(&[1, 1, 2, 5, 1_000]), what }
    }
}

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
