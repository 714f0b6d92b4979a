//! NATS servers with authentication and encryption.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use bus::JetStreamBus;
use control::Control;
use fleet::{NatsConfig, open_control};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use secrets::Vars;
use service::Readiness;
use tempfile::TempDir;
use testkit::servers::NatsServer;
use testkit::waiting::LONGEST_WAIT;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The configuration of a service, as its file contains it.
fn config(server: &NatsServer, more: serde_json::Value) -> NatsConfig {
    let mut fields = serde_json::json!({ "servers": [server.url()], "max_megabytes_per_stream": 0, "retry_timeout_seconds": 5 });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(fields).unwrap()
}

fn vars() -> Vars {
    Vars::from([("RIGHT", "open-sesame"), ("WRONG", "hunter2")])
}

/// Joins as every service does: with one connection for messages and one for the control store.
async fn join(config: &NatsConfig) -> anyhow::Result<Control> {
    let readiness = Readiness::default();
    let stop = CancellationToken::new();
    JetStreamBus::connect(config.clone(), &vars()).await?;
    let control = open_control(config, &vars(), &readiness, &stop).await?;
    assert!(readiness.is_ready());
    Ok(control)
}

/// The errors of both connections when they are refused.
async fn turned_away(config: &NatsConfig) -> [String; 2] {
    let readiness = Readiness::default();
    let stop = CancellationToken::new();
    let bus = JetStreamBus::connect(config.clone(), &vars()).await.unwrap_err().into();
    let control = timeout(LONGEST_WAIT, open_control(config, &vars(), &readiness, &stop)).await;
    let control = control.expect("it is said, not waited for").unwrap_err();
    [bus, control].map(|error| {
        let said = format!("{error:#}");
        assert!(!said.contains("open-sesame") && !said.contains("hunter2"), "{said}");
        said
    })
}

async fn only_the_right_secret_is_let_in(server: &NatsServer, with: impl Fn(&str) -> serde_json::Value) {
    let control = join(&config(server, with("RIGHT"))).await.unwrap();
    assert!(control.sources().list().await.unwrap().is_empty());
    for wrong in [with("WRONG"), serde_json::json!({})] {
        for said in turned_away(&config(server, wrong)).await {
            assert!(said.contains("authorization violation") && said.contains("credentials"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_server_with_users_lets_in_who_knows_the_password_and_nobody_else() {
    let server =
        NatsServer::start_with("authorization { user: fleet, password: open-sesame }").await.unwrap();
    let with =
        |name: &str| serde_json::json!({ "credentials": { "user": "fleet", "password": { "env": name } } });
    only_the_right_secret_is_let_in(&server, with).await;
}

#[tokio::test]
async fn a_server_with_a_token_lets_in_who_knows_it_and_nobody_else() {
    let server = NatsServer::start_with("authorization { token: open-sesame }").await.unwrap();
    let with = |name: &str| serde_json::json!({ "credentials": { "token": { "env": name } } });
    only_the_right_secret_is_let_in(&server, with).await;
}

/// A certificate authority, and the certificates that it has issued.
struct Certificates {
    folder: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        Self { folder, authority }
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A certificate for this machine, and its key.
    fn issue(&self, name: &str) -> (PathBuf, PathBuf) {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        let path = |kind: &str| self.folder.path().join(format!("{name}.{kind}.pem"));
        std::fs::write(path("cert"), certificate.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        (path("cert"), path("key"))
    }

    /// Starts a server with a certificate, with `more` fields of its TLS configuration.
    async fn server(&self, more: &str) -> NatsServer {
        let (certificate, key) = self.issue("server");
        let quoted = |path: &Path| format!("{:?}", path.display().to_string());
        let certificate = quoted(&certificate);
        let key = quoted(&key);
        let ca = quoted(&self.ca());
        let tls = format!("tls {{ cert_file: {certificate}, key_file: {key}, ca_file: {ca} {more} }}");
        NatsServer::start_with(&tls).await.unwrap()
    }
}

#[tokio::test]
async fn an_encrypted_server_is_reached_with_its_authority_and_refused_without() {
    let certificates = Certificates::new();
    let server = certificates.server("").await;
    let known = serde_json::json!({ "tls": { "required": true, "ca_files": [certificates.ca()] } });
    join(&config(&server, known)).await.unwrap();
    let strangers = Certificates::new();
    let other = serde_json::json!({ "tls": { "required": true, "ca_files": [strangers.ca()] } });
    for said in turned_away(&config(&server, other)).await {
        assert!(said.to_lowercase().contains("tls") && said.contains("check"), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_is_shown_ours() {
    let certificates = Certificates::new();
    let server = certificates.server(", verify: true").await;
    let (certificate, key) = certificates.issue("client");
    let ca = certificates.ca();
    let tls = serde_json::json!({ "ca_files": [ca], "certificate_file": certificate, "key_file": key });
    join(&config(&server, serde_json::json!({ "tls": tls }))).await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_encrypt_is_refused_where_that_is_required() {
    let server = NatsServer::start().await.unwrap();
    let required = serde_json::json!({ "tls": { "required": true } });
    for said in turned_away(&config(&server, required)).await {
        assert!(said.to_lowercase().contains("tls"), "{said}");
    }
}
