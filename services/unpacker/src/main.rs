//! The unpacker daemon: turns packages into stored bitstreams.

use std::process::ExitCode;

use service::{About, frame};

fn main() -> ExitCode {
    frame::main(About { name: "unpacker", version: env!("CARGO_PKG_VERSION") }, unpacker::serve)
}
