# Short names for common commands (https://just.systems). The project does not need `just`: copy the commands instead.

# List the commands.
default:
    @just --list

# Run all tests, with the servers that they need.
test:
    ./test

# Run the tests of one crate, for example `just test-crate web`, or `just test-crate web retries` for some of them.
test-crate crate *filter:
    ./test -p {{crate}} {{filter}}

# Run the lints; a warning is an error.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Format all Rust code.
fmt:
    cargo fmt --all

# Build the documentation of all crates.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Check the links in the documentation.
links:
    docs/check-links

# Harvest a simulated Source in one process.
demo:
    cargo run -p thresher -- demo

# Run a fleet on this machine, harvest a simulated Source with it, and compare with `thresher sync`.
fleet:
    deploy/local/up deploy/local/try

# Run seeds of the simulation, for example `just sim 0..2000`.
sim seeds="0..200":
    cargo run -p integration-tests -- --seeds {{seeds}}

# Run every step that CI runs.
ci:
    .ci/run
