//! Configuration: a YAML file, with single fields overridden by the environment.

mod overlay;
mod renamed;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrets::{SecretError, Vars};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::telemetry::TelemetryConfig;

/// The configuration that all services share, as field `service` of their own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FrameConfig {
    /// The port for probes and metrics.
    pub admin: AdminConfig,
    /// The log.
    pub telemetry: TelemetryConfig,
    /// Seconds between the stop signal and the end, in which work in progress is finished.
    pub drain_seconds: u64,
}

/// The port for probes and metrics.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdminConfig {
    /// Address and port. The default accepts connections from this machine only.
    pub listen: SocketAddr,
}

/// Why a configuration is invalid. Each message says where to look and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {source}; {variable} names the file to read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The variable that names it.
        variable: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not valid YAML.
    #[error("the configuration file {path} is not YAML: {why}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The parser's message, with line and column.
        why: String,
    },
    /// A field is missing, unknown, or of the wrong kind.
    #[error("field `{field}` from {origin}: {why}; correct it, or leave it out where there is a default")]
    Field {
        /// The path of the field; `.` is the whole.
        field: String,
        /// The file, or the environment variable.
        origin: String,
        /// What is wrong with it.
        why: String,
    },
    /// A variable has a field's prefix but sets no field.
    #[error("environment variable {name}: {why}; correct or unset it")]
    Variable {
        /// The variable.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A secret cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl Default for FrameConfig {
    fn default() -> Self {
        Self { admin: AdminConfig::default(), telemetry: TelemetryConfig::default(), drain_seconds: 30 }
    }
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 9600)) }
    }
}

impl FrameConfig {
    /// The drain deadline.
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_seconds)
    }
}

/// The configuration of the service `name`.
///
/// With `name` "fetcher", variable `THRESHER_FETCHER_CONFIG` names the YAML file; without it there is none,
/// and defaults apply. `THRESHER_FETCHER__SERVICE__DRAIN_SECONDS=5` then sets field `service.drain_seconds`, in
/// the file or not. Values are YAML: quote text that looks like a number or a boolean.
///
/// # Errors
/// [`ConfigError`], also for an unknown field.
pub fn load<T: DeserializeOwned>(name: &str, vars: &Vars) -> Result<T, ConfigError> {
    let prefix = format!("THRESHER_{}", name.to_ascii_uppercase().replace('-', "_"));
    let variable = format!("{prefix}_CONFIG");
    let file = vars.get(&variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let mut fields = match &file {
        Some(path) => read(path, &variable)?,
        None => Value::Null,
    };
    let overridden = overlay::apply(&mut fields, &format!("{prefix}__"), vars)?;
    if fields.is_null() {
        fields = Value::Object(Default::default());
    }
    serde_path_to_error::deserialize(&fields).map_err(|error| {
        let field = error.path().to_string();
        let origin = match (overridden.get(&field), file) {
            (Some(name), _) => format!("environment variable {name}"),
            (None, Some(path)) => path.display().to_string(),
            (None, None) => format!("the defaults (no file is named by {variable})"),
        };
        ConfigError::Field { field, origin, why: renamed::explained(error.into_inner().to_string()) }
    })
}

fn read(path: &Path, variable: &str) -> Result<Value, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        variable: variable.to_owned(),
        source,
    })?;
    parse(&text).map_err(|why| ConfigError::Syntax { path: path.to_owned(), why })
}

/// A YAML document as plain values; an empty one is null.
fn parse(text: &str) -> Result<Value, String> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Value::Null);
    }
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
