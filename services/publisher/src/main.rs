//! The publisher as a daemon of a fleet: publishes the Sources whose specs say so.

use std::process::ExitCode;

use service::{ServiceInfo, frame};

fn main() -> ExitCode {
    frame::main(ServiceInfo { name: "publisher", version: env!("CARGO_PKG_VERSION") }, publisher::serve_fleet)
}
