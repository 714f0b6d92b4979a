//! Real servers for tests: NATS with JetStream, and SeaweedFS as S3.
//!
//! `./test` starts one of each for the whole run and puts their addresses into the environment (see
//! [`mod@env`]). Without those variables a fixture starts a server for its own process. However the process
//! ends, its servers end with it and their data is deleted.

mod chromium;
mod nats;
mod ports;
mod process;
mod seaweed;
mod venv;

pub use chromium::ChromeDriver;
pub use nats::{NatsFixture, NatsServer};
pub use ports::free_port;
pub use seaweed::{S3Fixture, SeaweedServer};
pub use venv::{Venv, target_directory};

/// The environment variables with the shared servers of one run.
pub mod env {
    /// `nats://127.0.0.1:<port>`
    pub const NATS_URL: &str = "THRESHER_TEST_NATS_URL";
    /// `http://127.0.0.1:<port>`
    pub const S3_ENDPOINT: &str = "THRESHER_TEST_S3_ENDPOINT";
    /// The access key of an identity with all permissions.
    pub const S3_ACCESS_KEY: &str = "THRESHER_TEST_S3_ACCESS_KEY";
    /// Its secret key.
    pub const S3_SECRET_KEY: &str = "THRESHER_TEST_S3_SECRET_KEY";
    /// The access key of an identity with read permission only.
    pub const S3_READING_ACCESS_KEY: &str = "THRESHER_TEST_S3_READING_ACCESS_KEY";
    /// Its secret key.
    pub const S3_READING_SECRET_KEY: &str = "THRESHER_TEST_S3_READING_SECRET_KEY";
}
