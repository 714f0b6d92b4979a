//! The verifier daemon: compares stored bitstreams with their declarations.

use std::process::ExitCode;

use service::{About, frame};

fn main() -> ExitCode {
    frame::main(About { name: "verifier", version: env!("CARGO_PKG_VERSION") }, verifier::serve)
}
