//! The gateway as a daemon: the operator's HTTP API.

use std::process::ExitCode;

use service::{ServiceInfo, frame};

fn main() -> ExitCode {
    frame::main(ServiceInfo { name: "gateway", version: env!("CARGO_PKG_VERSION") }, gateway::serve)
}
