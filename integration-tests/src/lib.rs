#![doc = include_str!("../README.md")]

mod clock;
mod effects;
pub mod invariants;
pub mod plan;
mod polls;
mod sim_bus;
mod sim_objects;
pub mod site;
pub mod world;

pub use clock::SimClock;
pub use effects::{Effects, Halt, Rates};
use invariants::Held;
use plan::{Hop, Plan, Step, Sync};
use world::{Chain, Ended, World};

/// The most runs until a copy has to be in sync once no more faults occur: an absence has to be seen twice.
const LAST_RUNS: u32 = 6;
/// The time between the first of them, in seconds: longer than cached discovery is used.
const BETWEEN: u32 = 4_000;
/// The time between the last of them: longer than the wait for any rescan.
const LONG_BETWEEN: u32 = 8 * 24 * 3_600;

/// The result of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Steps of the plan.
    pub steps: usize,
    /// Effects of all processes.
    pub effects: u64,
    /// Requests of all processes.
    pub requests: u64,
    /// Resources in the final copy.
    pub resources: usize,
    /// Polls that found no news.
    pub idle_polls: u64,
    /// The most requests that one process had open at an origin.
    pub most_open: usize,
}

/// Simulates the plan of a seed.
///
/// # Errors
/// The promise that was broken, with the plan and all events.
pub fn simulate(seed: u64) -> Result<Summary, String> {
    simulate_plan(Plan::of(seed))
}

/// Simulates the plan of a seed for a Source that speaks OAI-PMH.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_repository(seed: u64) -> Result<Summary, String> {
    simulate_plan(Plan::of_repository(seed))
}

/// Simulates a plan.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_plan(plan: Plan) -> Result<Summary, String> {
    let mut world = World::new(plan);
    run(&mut world).map_err(|why| explained(&world, &why))
}

/// Simulates the plan of a seed, where the copy is published, and a second copy follows that.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_chain(seed: u64) -> Result<(), String> {
    let mut world = World::new(Plan::of(seed));
    run_chain(&mut world).map_err(|why| explained(&world, &why))
}

fn explained(world: &World, why: &str) -> String {
    let told = world.told.join("\n  ");
    let effects = world.last_effects.join("\n  ");
    format!(
        "{why}\n\n{}\nwhat happened:\n  {told}\n\nthe last effects of the last process:\n  {effects}",
        world.plan
    )
}

/// In the end both copies are equal.
fn run_chain(world: &mut World) -> Result<(), String> {
    let mut chain = Chain::new(world);
    let hops = world.plan.hops();
    for (step, hop) in world.plan.steps.clone().iter().zip(hops) {
        if let Some(Ended::Hangs) = world.step(step) {
            return Err("a process does not end".to_owned());
        }
        chain.hop(world, hop)?;
    }
    let mut last = Ok(());
    for number in 0..LAST_RUNS {
        world.clock.advance(if number < LAST_RUNS / 2 { BETWEEN } else { LONG_BETWEEN });
        world.site.publish(true, true);
        world.step(&Step::Sync(Sync::clean()));
        chain.hop(world, Hop::clean())?;
        last = chain.copies_are_equal(world);
        if last.is_ok() {
            break;
        }
    }
    last
}

fn run(world: &mut World) -> Result<Summary, String> {
    let plan = world.plan.clone();
    let mut idle_polls = 0;
    for step in &plan.steps {
        let published = world.site.published();
        let ended = world.step(step);
        let held = Held::of(world)?;
        invariants::always(world, &held)?;
        idle_polls += u64::from(polls::after_a_step(world, ended.as_ref(), &held, published)?);
        match ended {
            Some(Ended::Hangs) => return Err("a process does not end".to_owned()),
            Some(ended) => invariants::after_a_run(world, step, &ended, &held)?,
            None => {}
        }
    }
    let mut last = Ok(());
    for number in 0..LAST_RUNS {
        world.clock.advance(if number < LAST_RUNS / 2 { BETWEEN } else { LONG_BETWEEN });
        world.site.publish(true, true);
        // No step requests a full rescan: the process has to find out itself that one is due.
        let step = Step::Sync(Sync::clean());
        let published = world.site.published();
        let ended = world.step(&step);
        let held = Held::of(world)?;
        invariants::always(world, &held)?;
        let is_idle = polls::after_a_step(world, ended.as_ref(), &held, published)?;
        idle_polls += u64::from(is_idle);
        last = match ended {
            Some(Ended::Report(report)) if report.guard.is_none() => {
                let ended = Ended::Report(report);
                invariants::after_a_run(world, &step, &ended, &held)?;
                invariants::nothing_is_lost(world, &held)
            }
            Some(other) => {
                Err(format!("promise 2, nothing is lost: a last run does not succeed: {}", other.words()))
            }
            None => unreachable!("a sync ends"),
        };
        if last.is_ok() {
            if is_idle {
                polls::a_run_does_nothing(world)?;
            }
            break;
        }
    }
    last?;
    Ok(Summary {
        steps: plan.steps.len(),
        effects: world.effects,
        requests: world.site.requests() - world.check_requests,
        resources: world.site.present().len(),
        idle_polls,
        most_open: world.site.most_open(),
    })
}
