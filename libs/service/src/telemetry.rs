//! The log: one line per event, on standard error.

use std::io::IsTerminal;

use serde::Deserialize;
use tracing_subscriber::EnvFilter;

/// Level and format of the log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// For people or for machines.
    pub format: Format,
    /// A level (`error`, `warn`, `info`, `debug`, `trace`), or directives such as `info,fetcher=debug`.
    pub level: String,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text, in colour on a terminal.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The level is invalid.
#[derive(Debug, thiserror::Error)]
#[error(
    "`service.telemetry.level` {level:?} is no level ({source}): use error, warn, info, debug or trace, or directives such as info,fetcher=debug"
)]
pub struct LevelError {
    level: String,
    source: tracing_subscriber::filter::ParseError,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { format: Format::Text, level: "info".to_owned() }
    }
}

/// Starts the log of this process. An earlier log stays: services in one process share it.
///
/// # Errors
/// When the level is invalid.
pub fn init(config: &TelemetryConfig) -> Result<(), LevelError> {
    let filter = filter(&config.level)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // It fails only when a log was started before.
    let _ = match config.format {
        Format::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(())
}

fn filter(level: &str) -> Result<EnvFilter, LevelError> {
    EnvFilter::builder().parse(level).map_err(|source| LevelError { level: level.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_are_read_and_others_refused() {
        for good in ["info", "warn,fetcher=debug"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        let error = filter("fetcher=loud").unwrap_err().to_string();
        assert!(error.contains("\"fetcher=loud\"") && error.contains("use error, warn"), "{error}");
    }

    #[test]
    fn second_start_leaves_the_first_log() {
        init(&TelemetryConfig::default()).unwrap();
        init(&TelemetryConfig { format: Format::Json, level: "debug".to_owned() }).unwrap();
    }
}
