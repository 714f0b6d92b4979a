//! The gateway as a daemon: the operator's HTTP API.

use std::process::ExitCode;

use service::{About, frame};

fn main() -> ExitCode {
    frame::main(About { name: "gateway", version: env!("CARGO_PKG_VERSION") }, gateway::serve)
}
