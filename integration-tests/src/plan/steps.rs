//! Steps, drawn one by one.

use model::{Absent, Mode, Prefer};

use super::seed::Draw;
use super::{Step, Sync};
use crate::effects::{Halt, Rates};
use crate::site::{Fixity, HttpFault, On, SiteSpec, What};

impl Draw {
    pub(super) fn step(&mut self, site: &SiteSpec, trouble: u32) -> Step {
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

    pub(super) fn step_of_repository(&mut self, trouble: u32) -> Step {
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

    pub(super) fn halt(&mut self) -> Halt {
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
