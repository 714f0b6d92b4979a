//! A fixed number of seeds, in blocks that run concurrently. To run any number: `cargo run -p
//! integration-tests -- --seeds 0..2000`.

/// Seeds of one block.
const BLOCK: u64 = 12;

fn block(number: u64) {
    for seed in number * BLOCK..(number + 1) * BLOCK {
        if let Err(why) = simulation::simulate(seed) {
            panic!("seed {seed} (`cargo run -p integration-tests -- --seeds {seed}` runs it again): {why}");
        }
    }
}

/// The same of Sources that speak OAI-PMH.
fn block_of_repositories(number: u64) {
    for seed in number * BLOCK..(number + 1) * BLOCK {
        if let Err(why) = simulation::simulate_repository(seed) {
            panic!(
                "seed {seed} (`cargo run -p integration-tests -- --oai --seeds {seed}` runs it again): {why}"
            );
        }
    }
}

/// The same seeds, where the copy is published, and a second copy follows that.
fn block_of_chains(number: u64) {
    for seed in number * BLOCK..(number + 1) * BLOCK {
        if let Err(why) = simulation::simulate_chain(seed) {
            panic!(
                "seed {seed} (`cargo run -p integration-tests -- --chain --seeds {seed}` runs it again): {why}"
            );
        }
    }
}

#[test]
fn every_promise_is_kept_from_seed_0_on() {
    block(0);
}

#[test]
fn every_promise_is_kept_from_seed_12_on() {
    block(1);
}

#[test]
fn every_promise_is_kept_from_seed_24_on() {
    block(2);
}

#[test]
fn every_promise_is_kept_from_seed_36_on() {
    block(3);
}

#[test]
fn every_promise_is_kept_of_repositories_from_seed_0_on() {
    block_of_repositories(0);
}

#[test]
fn every_promise_is_kept_of_repositories_from_seed_12_on() {
    block_of_repositories(1);
}

#[test]
fn a_second_copy_equals_the_first_one_from_seed_0_on() {
    block_of_chains(0);
}

#[test]
fn a_second_copy_equals_the_first_one_from_seed_12_on() {
    block_of_chains(1);
}
