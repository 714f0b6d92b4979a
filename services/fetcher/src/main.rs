//! The fetcher daemon: turns URLs into stored bitstreams.

use std::process::ExitCode;

use service::{ServiceInfo, frame};

fn main() -> ExitCode {
    frame::main(ServiceInfo { name: "fetcher", version: env!("CARGO_PKG_VERSION") }, fetcher::serve)
}
