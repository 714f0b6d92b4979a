//! The unpacker daemon: turns packages into stored bitstreams.

use std::process::ExitCode;

use service::{ServiceInfo, frame};

fn main() -> ExitCode {
    frame::main(ServiceInfo { name: "unpacker", version: env!("CARGO_PKG_VERSION") }, unpacker::serve)
}
