//! `many-members` and `large-members`: a Resource Dump of one package of some 5 GB, unpacked by a fleet with
//! one unpacker and with two, compared with `unzip -t` and `sha256sum`; and harvested by one process.

mod alone;
mod content;
mod owner;
mod package;
mod phase;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use testkit::servers::{NatsServer, SeaweedServer};

use self::package::{Package, Profile};
use self::phase::{Used, Watched};
use super::{interleaved, measured, unchecked};
use crate::check::{self, Check};
use crate::cli::Options;
use crate::documents::DUMP_PATH;
use crate::fleet::{Fleet, FleetStore};
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::measure::Usage;
use crate::nginx::Nginx;
use crate::peers::{self, Peer};
use crate::place::Place;
use crate::ready::make_ready;
use crate::report::{Report, Round};
use crate::source::Source;
use crate::stats::rounded;
use crate::thresher::{Outcome, Thresher, View};

/// The unit of the figures: the inflated content of members.
const MB: u64 = 1_000_000;
/// The most bytes for `sha256sum`. It is as fast with more of them.
const SAMPLE_BYTES: u64 = 1_000 * MB;
/// Resources whose bytes are read at the end.
const SAMPLE: usize = 3;
/// The promise: memory is flat.
const MOST_RESIDENT_BYTES: u64 = 256_000_000;
/// An unpacker with one job at a time, like `unzip`.
const ONE_AT_A_TIME: &str = "unpacker: {max_concurrent_jobs: 1}";
const PACKAGE_PATH: &str = "/set/package.zip";

/// A case, and the profile of its package.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    name: &'static str,
    profile: Profile,
    members: u64,
}

/// 200,000 members of 4 to 53 KB.
pub(crate) const MANY_MEMBERS: Case =
    Case { name: "many-members", profile: Profile::Small, members: 200_000 };
/// 20 members of 250 MB.
pub(crate) const LARGE_MEMBERS: Case = Case { name: "large-members", profile: Profile::Large, members: 20 };

/// The programs that read the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Unzip,
    Sha256sum,
    /// This many unpackers without any other service, each of which unpacks one slice at a time.
    Alone(u32),
    /// One unpacker with its default configuration, without any other service.
    AsByDefault,
    /// A fleet with this many unpackers, each of which unpacks one slice at a time.
    Fleet(u32),
    /// One process, into a directory.
    Sync,
}

/// State that every run needs.
struct Bench {
    thresher: Thresher,
    unzip: Peer,
    sha256sum: Peer,
    source: Source,
    package: Package,
    /// The archive, and the beginning of its members' content.
    archive: PathBuf,
    sample: PathBuf,
    work: WorkFolder,
}

impl Case {
    /// Runs the case.
    pub(crate) fn run(self, options: &Options) -> anyhow::Result<Report> {
        let members = options.resources.unwrap_or(self.members);
        let thresher = Thresher::get(options)?;
        let unzip = peers::unzip()?;
        let sha256sum = peers::sha256sum()?;
        let nginx = peers::nginx()?;
        let work = WorkFolder::new(options, self.name)?;
        let machine = Machine::here(work.path());
        let docroot = work.make("docroot")?;
        let below = |path: &str| docroot.join(path.trim_start_matches('/'));
        let archive = below(PACKAGE_PATH);
        let sample = work.path().join("content.bin");
        fs::create_dir_all(docroot.join("set"))?;
        eprintln!("writing a package of {members} members");
        let package = package::write(&archive, self.profile, members, (&sample, SAMPLE_BYTES))?;
        let server = Nginx::start(&nginx.program, &docroot, "")?;
        package::write_dump(&below(DUMP_PATH), &package, &format!("{}{PACKAGE_PATH}", server.base()))?;
        let source = Source::Nginx { server, version: nginx.version, list: DUMP_PATH };
        let versions = [&thresher.version, &unzip.version, &sha256sum.version, &source.version()];
        let versions = versions.into_iter().cloned().collect();
        let setup = BTreeMap::from([
            ("unit", json!("MB of content, once inflated")),
            ("members", json!(members)),
            ("content_bytes", json!(package.content)),
            ("package_bytes", json!(package.bytes)),
            ("is_zip64", json!(package.is_zip64)),
            ("deflated", json!("every fifth member, a text; the others are stored")),
            ("declared", json!("sha-256 and length, of the package and of each member")),
            ("unpacker.max_concurrent_jobs", json!(1)),
            ("rounds", json!(options.rounds)),
            ("transport", json!("HTTP/1.1 over loopback, NATS, SeaweedFS as S3")),
        ]);
        let megabytes = package.content.div_ceil(MB);
        let bench = Bench { thresher, unzip, sha256sum, source, package, archive, sample, work };

        let run = |way, round| bench.run(way, round);
        let mut rows = interleaved(&Way::ALL, Way::name, megabytes, options, run)?;
        for row in rows.iter_mut().filter(|row| row.name == Way::Sha256sum.name()) {
            row.resources = bench.sample.metadata()?.len().div_ceil(MB);
        }
        let finished_at = jiff::Timestamp::now();
        let report = Report { case: self.name, finished_at, machine, setup, versions, rows };
        Ok(report.summed_up(&[
            Way::Unzip.name(),
            Way::Sha256sum.name(),
            Way::Alone(1).name(),
            Way::Fleet(1).name(),
        ]))
    }
}

impl Way {
    /// All, in the order of the first round.
    const ALL: [Self; 8] = [
        Self::Unzip,
        Self::Sha256sum,
        Self::Alone(1),
        Self::Alone(2),
        Self::AsByDefault,
        Self::Fleet(1),
        Self::Fleet(2),
        Self::Sync,
    ];

    /// Its name in the report.
    fn name(self) -> &'static str {
        match self {
            Self::Unzip => "unzip -t",
            Self::Sha256sum => "sha256sum",
            Self::Alone(1) => "one unpacker",
            Self::Alone(_) => "two unpackers",
            Self::AsByDefault => "one unpacker, as by default",
            Self::Fleet(1) => "fleet with one unpacker",
            Self::Fleet(_) => "fleet with two unpackers",
            Self::Sync => "one process, with receiving",
        }
    }
}

impl Bench {
    /// One run, and the checks of its work.
    fn run(&self, way: Way, round: usize) -> anyhow::Result<(String, Round)> {
        let name = format!("round-{round}-{}", way.name().replace(", ", "-").replace(' ', "-"));
        let folder = self.work.make(&name)?;
        match way {
            Way::Unzip => self.peer(&self.unzip, &["-tqq"], &self.archive, &folder),
            Way::Sha256sum => self.peer(&self.sha256sum, &[], &self.sample, &folder),
            Way::Alone(unpackers) => {
                let done = self.alone(unpackers, ONE_AT_A_TIME, &name, &folder)?;
                Ok(("thresher serve --only unpacker".to_owned(), done))
            }
            Way::AsByDefault => {
                let done = self.alone(1, "", &name, &folder)?;
                Ok(("thresher serve --only unpacker".to_owned(), done))
            }
            Way::Fleet(unpackers) => {
                let done = self.unpacked(unpackers, &name, &folder)?;
                Ok(("thresher run submit $SOURCE --watch".to_owned(), done))
            }
            Way::Sync => self.sync(&folder),
        }
    }

    fn peer(
        &self,
        peer: &Peer,
        options: &[&str],
        file: &Path,
        folder: &Path,
    ) -> anyhow::Result<(String, Round)> {
        let command = peer.command().args(options).arg(file);
        let (ended, done) = measured(&command, folder, None)?;
        ended.succeeded()?;
        Ok((command.shown(file.parent().unwrap_or(folder)), done))
    }

    /// A harvest by a fleet. The round reports the time of unpacking slices, and the unpackers' use.
    fn unpacked(&self, unpackers: u32, name: &str, folder: &Path) -> anyhow::Result<Round> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Servers of its own: their gigabytes of data are deleted with them.
        let start = async { tokio::try_join!(NatsServer::start(), SeaweedServer::start()) };
        let (nats, s3) = runtime.block_on(start)?;
        let mut fleet = Fleet::new(&self.thresher, nats.url(), name, FleetStore::S3(s3.fixture()), folder);
        for service in ["scheduler", "fetcher", "verifier"] {
            fleet.start(service, "")?;
        }
        for _ in 0..unpackers {
            fleet.start("unpacker", ONE_AT_A_TIME)?;
        }
        fleet.add(&self.source.list(), &[])?;
        fleet.until_ready()?;
        make_ready();
        let store = s3.process_id();
        let bus = nats.process_id();
        let watched = Watched { fleet: &fleet, source: &self.source, store, bus };
        let members = self.package.members.len() as u64;
        let (phase, end_to_end) = watched.harvest(members)?;

        let Used { unpackers, scheduler, store, bus, source, machine } = phase.used;
        let peak_rss_bytes = fleet.peak_rss_bytes_of("unpacker");
        let usage = Usage {
            seconds: rounded(phase.seconds),
            cpu_seconds: rounded(unpackers),
            peak_rss_bytes,
            exit_status: Some(0),
        };
        let mut done = unchecked(usage, source, machine);
        let milliseconds = |seconds: f64| (seconds * 1000.0) as u64;
        done.counted = BTreeMap::from([
            ("end_to_end_ms".to_owned(), milliseconds(end_to_end)),
            ("scheduler_cpu_ms".to_owned(), milliseconds(scheduler)),
            ("store_cpu_ms".to_owned(), milliseconds(store)),
            ("bus_cpu_ms".to_owned(), milliseconds(bus)),
            ("slices".to_owned(), fleet.counted("unpacker", "thresher_unpack_slices")?),
        ]);
        done.checks = check::harvest(&self.thresher, &fleet.place(), &self.package.members, SAMPLE)?;
        done.checks.push(check::resident(fleet.peak_rss_bytes()));
        done.checks.push(Check::at_most(
            "peak resident bytes of an unpacker",
            MOST_RESIDENT_BYTES,
            peak_rss_bytes,
        ));
        Ok(done)
    }

    fn sync(&self, folder: &Path) -> anyhow::Result<(String, Round)> {
        let into = Place::directory(&folder.join("into"));
        let command = self.thresher.sync_to(&into, &self.source.list(), View::None, None);
        let (ended, mut done) = measured(&command, folder, Some(&self.source))?;
        done.checks = check::synced(&Outcome::of(&ended)?, self.package.members.len() as u64);
        done.checks.push(check::resident(ended.usage.peak_rss_bytes));
        done.checks.extend(check::harvest(&self.thresher, &into, &self.package.members, SAMPLE)?);
        // A few large files: deleting them takes little time, and the next run needs the room.
        fs::remove_dir_all(&into.into)?;
        Ok((command.shown(folder).replace(&self.source.base(), "$SOURCE"), done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let mut names = Way::ALL.map(Way::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Way::ALL.len());
    }
}
