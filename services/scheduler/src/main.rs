//! The scheduler daemon. It owns Sources: it discovers, plans, dispatches and settles.

use std::process::ExitCode;

use service::{ServiceInfo, frame};

fn main() -> ExitCode {
    frame::main(ServiceInfo { name: "scheduler", version: env!("CARGO_PKG_VERSION") }, scheduler::serve)
}
