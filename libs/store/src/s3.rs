//! S3 and compatible servers: settings, credentials, timeouts.

use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use crate::StoreError;

/// A bucket at a known server with known credentials: for callers that do not use the environment.
#[derive(Clone)]
pub struct S3Options {
    /// The server's URL, such as `http://127.0.0.1:8333`.
    pub endpoint: String,
    /// The bucket.
    pub bucket: String,
    /// The prefix, without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
    /// The access key's id.
    pub access_key: String,
    /// The secret access key.
    pub secret_key: String,
    /// The region.
    pub region: String,
}

/// How long a client retries.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// At startup: an unreachable server is reported within seconds.
    Short,
    /// At work: a restarting server is waited for.
    Long,
}

/// A bucket and how to reach it.
#[derive(Clone)]
pub(crate) struct S3Settings(Vec<(AmazonS3ConfigKey, String)>);

// A derived `Debug` would print the secret.
impl std::fmt::Debug for S3Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Options")
            .field("endpoint", &self.endpoint)
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// Signs URLs of a bucket.
pub(crate) struct Presigner {
    pub(crate) s3: AmazonS3,
    /// What all keys of the store begin with.
    pub(crate) prefix: Path,
}

impl S3Settings {
    /// Reads the settings from the `AWS_*` entries of `variables`.
    pub(crate) fn from_variables(
        bucket: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, StoreError> {
        let known =
            variables.into_iter().filter(|(name, value)| name.starts_with("AWS_") && !value.is_empty());
        let mut settings: Vec<(AmazonS3ConfigKey, String)> = known
            .filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value)))
            .collect();
        settings.push((AmazonS3ConfigKey::Bucket, bucket.to_owned()));
        let settings = Self(settings);
        settings.check(bucket)?;
        Ok(settings)
    }

    /// The settings that a caller passes.
    pub(crate) fn from_options(options: &S3Options) -> Self {
        use AmazonS3ConfigKey as K;
        let pairs = [
            (K::Endpoint, &options.endpoint),
            (K::Bucket, &options.bucket),
            (K::AccessKeyId, &options.access_key),
            (K::SecretAccessKey, &options.secret_key),
            (K::Region, &options.region),
        ];
        Self(pairs.into_iter().map(|(key, value)| (key, value.clone())).collect())
    }

    /// Whether the settings contain credentials. Without any, the client requests the machine's own role.
    pub(crate) fn has_credentials(&self) -> bool {
        use AmazonS3ConfigKey as K;
        self.skips_signature()
            || self.get(&K::AccessKeyId).is_some()
            || self.get(&K::WebIdentityTokenFile).is_some()
            || self.get(&K::ContainerCredentialsRelativeUri).is_some()
            || self.get(&K::ContainerCredentialsFullUri).is_some()
    }

    /// The client.
    pub(crate) fn build(&self, patience: Patience) -> Result<AmazonS3, StoreError> {
        let mut builder = AmazonS3Builder::new()
            .with_client_options(self.client_options(patience))
            .with_retry(patience.retries())
            .with_checksum_algorithm(Checksum::SHA256);
        for (key, value) in &self.0 {
            builder = builder.with_config(*key, value);
        }
        builder
            .build()
            .map_err(|error| StoreError::Config(format!("the S3 settings cannot be used: {error}")))
    }

    /// Timeouts and other options of the HTTP client.
    pub(crate) fn client_options(&self, patience: Patience) -> ClientOptions {
        let plain = self.endpoint().is_some_and(|endpoint| endpoint.starts_with("http://"));
        ClientOptions::new()
            .with_allow_http(plain)
            .with_connect_timeout(patience.connect_timeout())
            // A limit over the whole request would cut off long downloads; this one restarts with each byte.
            .with_timeout_disabled()
            .with_read_timeout(Duration::from_secs(60))
    }

    /// The URL of the bucket itself.
    pub(crate) fn bucket_url(&self) -> String {
        let bucket = self.get(&AmazonS3ConfigKey::Bucket).unwrap_or_default();
        match self.endpoint().map(|endpoint| endpoint.trim_end_matches('/')) {
            // Then the endpoint is already the bucket's.
            Some(endpoint) if self.is_set(&AmazonS3ConfigKey::VirtualHostedStyleRequest) => {
                format!("{endpoint}/")
            }
            Some(endpoint) => format!("{endpoint}/{bucket}"),
            None => format!("https://s3.{}.amazonaws.com/{bucket}", self.region()),
        }
    }

    /// The region; by default the client's.
    pub(crate) fn region(&self) -> String {
        use AmazonS3ConfigKey as K;
        self.get(&K::Region).or(self.get(&K::DefaultRegion)).unwrap_or("us-east-1").to_owned()
    }

    /// Whether requests are not signed.
    pub(crate) fn skips_signature(&self) -> bool {
        self.is_set(&AmazonS3ConfigKey::SkipSignature)
    }

    fn is_set(&self, key: &AmazonS3ConfigKey) -> bool {
        self.get(key).is_some_and(|value| value == "true" || value == "1")
    }

    fn check(&self, bucket: &str) -> Result<(), StoreError> {
        use AmazonS3ConfigKey as K;
        let refuse = |why: &str| Err(StoreError::Config(format!("cannot open s3://{bucket}: {why}")));
        if self.get(&K::AccessKeyId).is_some() != self.get(&K::SecretAccessKey).is_some() {
            return refuse("set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither");
        }
        if self.endpoint().is_some() && !self.has_credentials() {
            return refuse("there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
        }
        if self.endpoint().is_none() && self.get(&K::Region).or(self.get(&K::DefaultRegion)).is_none() {
            return refuse(
                "the region is not known; set AWS_REGION, or AWS_ENDPOINT_URL for a server of your own",
            );
        }
        Ok(())
    }

    fn endpoint(&self) -> Option<&str> {
        self.get(&AmazonS3ConfigKey::S3Endpoint).or(self.get(&AmazonS3ConfigKey::Endpoint))
    }

    fn get(&self, wanted: &AmazonS3ConfigKey) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str())
    }
}

impl Patience {
    fn connect_timeout(self) -> Duration {
        match self {
            Self::Short => Duration::from_secs(3),
            Self::Long => Duration::from_secs(5),
        }
    }

    fn retries(self) -> RetryConfig {
        let (max_retries, seconds) = match self {
            Self::Short => (2, 10),
            Self::Long => (10, 120),
        };
        RetryConfig {
            max_retries,
            retry_timeout: Duration::from_secs(seconds),
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(10),
                base: 2.0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(variables: &[(&str, &str)]) -> String {
        settings(variables).err().map(|error| error.to_string()).unwrap_or_default()
    }

    fn settings(variables: &[(&str, &str)]) -> Result<S3Settings, StoreError> {
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        S3Settings::from_variables("b", variables)
    }

    #[test]
    fn what_is_missing_is_named() {
        let region = refusal(&[]);
        assert!(region.contains("AWS_REGION"), "{region}");
        let keys = refusal(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:1")]);
        assert!(keys.contains("AWS_ACCESS_KEY_ID"), "{keys}");
        let half = refusal(&[("AWS_REGION", "x"), ("AWS_ACCESS_KEY_ID", "k")]);
        assert!(half.contains("both"), "{half}");
    }

    #[test]
    fn a_server_without_tls_needs_no_switch_of_its_own() {
        let settings = settings(&[
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
            ("AWS_ACCESS_KEY_ID", "k"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("AWS_PAGER", "less"),
        ])
        .unwrap();
        assert!(settings.build(Patience::Long).is_ok());
        assert!(settings.has_credentials());
    }

    #[test]
    fn the_machines_own_role_may_give_the_credentials() {
        let settings = settings(&[("AWS_REGION", "eu-central-1")]).unwrap();
        assert!(!settings.has_credentials());
        assert!(settings.build(Patience::Long).is_ok());
    }

    #[test]
    fn secrets_are_not_printed() {
        let options = S3Options {
            endpoint: "http://h".into(),
            bucket: "b".into(),
            prefix: String::new(),
            access_key: "key".into(),
            secret_key: "hush".into(),
            region: "r".into(),
        };
        assert!(!format!("{options:?}").contains("hush"));
    }
}
