//! The fetcher daemon: turns URLs into stored bitstreams.

use std::process::ExitCode;

use service::{About, frame};

fn main() -> ExitCode {
    frame::main(About { name: "fetcher", version: env!("CARGO_PKG_VERSION") }, fetcher::serve)
}
