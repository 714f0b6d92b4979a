//! What follows from a seed: the Source, the steps, and what befalls some of them.

use std::num::NonZeroUsize;

use planning::WindowLimits;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Only, Plan, Step};
use crate::effects::mix;
use crate::site::{Entry, Fixity, HttpFault, On, Repository, SiteSpec, What};

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
pub(super) struct Draw(pub(super) ChaCha8Rng);

impl Draw {
    pub(super) fn up_to(&mut self, least: u32, most: u32) -> u32 {
        self.0.random_range(least..=most)
    }

    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.random_range(0..choices.len())]
    }

    pub(super) fn one_in(&mut self, many: u32) -> bool {
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
}
