//! The verifier as a daemon: judges stored bitstreams against what was declared.

use std::process::ExitCode;

use service::{About, frame};

fn main() -> ExitCode {
    frame::main(About { name: "verifier", version: env!("CARGO_PKG_VERSION") }, verifier::serve)
}
