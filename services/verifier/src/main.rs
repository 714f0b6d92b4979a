//! The verifier daemon: compares stored bitstreams with their declarations.

use std::process::ExitCode;

use service::{ServiceInfo, frame};

fn main() -> ExitCode {
    frame::main(ServiceInfo { name: "verifier", version: env!("CARGO_PKG_VERSION") }, verifier::serve)
}
