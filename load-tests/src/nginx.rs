//! nginx on loopback, with a configuration of its own.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

use crate::meter;

/// Starts nginx, prints its process id when it is ready, and ends it when the input ends. So it also ends
/// with a killed runner.
const WATCH: &str = r#"
"$1" -p "$2" -c "$2/nginx.conf" -e "$2/error.log" &
pid=$!
until [ -s "$2/nginx.pid" ]; do kill -0 $pid || exit 1; sleep 0.02; done
echo $pid
read -r _
kill -TERM $pid
wait $pid
"#;

/// The default configuration of an installed nginx, except for the access log, and with all its files in one
/// folder.
const CONFIG: &str = "\
daemon off;
worker_processes auto;
pid nginx.pid;
@USER@
events { worker_connections 768; }
http {
    sendfile on;
    tcp_nopush on;
    log_format times '$msec $uri';
    access_log off;
    default_type application/octet-stream;
    types { application/xml xml; }
    client_body_temp_path temp/body;
    proxy_temp_path temp/proxy;
    fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi;
    scgi_temp_path temp/scgi;
    server {
        listen 127.0.0.1:@PORT@;
        @TLS@
        root @DOCROOT@;
        location = /.status { stub_status; }
        @LOCATIONS@
    }
}
";

/// A running nginx; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Nginx {
    watch: Child,
    process: u32,
    /// Its own files, apart from those it serves.
    folder: PathBuf,
    port: u16,
    /// How often the count of requests was requested, which counts too.
    asked: Cell<u64>,
}

/// What a server needs for TLS, and its ports at 127.0.0.1.
#[derive(Debug, Clone)]
pub(crate) struct TlsFiles {
    /// The certificate, as PEM.
    pub(crate) certificate: PathBuf,
    /// Its key, as PEM.
    pub(crate) key: PathBuf,
    /// The port with HTTP/1.1 alone.
    pub(crate) http1: u16,
    /// The port with HTTP/2 too.
    pub(crate) http2: u16,
}

impl Nginx {
    /// Serves the files below `docroot`, and the additional `locations`.
    pub(crate) fn start(program: &Path, docroot: &Path, locations: &str) -> anyhow::Result<Self> {
        Self::launch(program, docroot, locations, "")
    }

    /// Serves the files below `docroot`, also over TLS.
    pub(crate) fn start_with_tls(program: &Path, docroot: &Path, tls: &TlsFiles) -> anyhow::Result<Self> {
        let TlsFiles { certificate, key, http1, http2 } = tls;
        let (certificate, key) = (certificate.display(), key.display());
        let listen = format!(
            "listen 127.0.0.1:{http1} ssl; listen 127.0.0.1:{http2} ssl http2; ssl_protocols TLSv1.3; \
             ssl_certificate {certificate}; ssl_certificate_key {key};"
        );
        Self::launch(program, docroot, "", &listen)
    }

    fn launch(program: &Path, docroot: &Path, locations: &str, tls: &str) -> anyhow::Result<Self> {
        let folder = docroot.with_extension("nginx");
        fs::create_dir_all(folder.join("temp"))?;
        let port = free_port()?;
        // Started by root, workers would run as an unprivileged user, who may not read the working directory.
        let user = if folder.metadata()?.uid() == 0 { "user root root;" } else { "" };
        let config = CONFIG
            .replace("@USER@", user)
            .replace("@PORT@", &port.to_string())
            .replace("@TLS@", tls)
            .replace("@DOCROOT@", &docroot.display().to_string())
            .replace("@LOCATIONS@", locations);
        fs::write(folder.join("nginx.conf"), config)?;
        let mut watch = Command::new("sh")
            .args(["-c", WATCH, "watch"])
            .args([program, &folder])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C at the terminal goes to the runner, whose end then ends nginx.
            .process_group(0)
            .spawn()
            .context("cannot start sh to watch over nginx")?;
        let mut line = String::new();
        if let Some(output) = watch.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let Ok(process) = line.trim().parse() else {
            let _ = watch.wait();
            let log = fs::read_to_string(folder.join("error.log")).unwrap_or_default();
            bail!("nginx did not start; its log:\n{log}");
        };
        Ok(Self { watch, process, folder, port, asked: Cell::new(0) })
    }

    /// `http://127.0.0.1:<port>`
    pub(crate) fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Processor time of all its processes so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let workers = meter::children(self.process);
        workers.into_iter().chain([self.process]).map(meter::process_cpu_seconds).sum()
    }

    /// Its log of requests and times, as far as its locations enable it: a line `<seconds since 1970> <path>`
    /// for each response.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("requests.log")
    }

    /// The length of the log; 0 before the first request.
    pub(crate) fn logged_bytes(&self) -> u64 {
        self.log().metadata().map_or(0, |file| file.len())
    }

    /// How many requests it got from others.
    pub(crate) fn requests(&self) -> anyhow::Result<u64> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.write_all(b"GET /.status HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(16 * 1024).read_to_string(&mut answer)?;
        self.asked.set(self.asked.get() + 1);
        let all =
            requests_in(&answer).with_context(|| format!("nginx told no count of requests:\n{answer}"))?;
        Ok(all.saturating_sub(self.asked.get()))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        drop(self.watch.stdin.take());
        let _ = self.watch.wait();
    }
}

pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .context("no port of 127.0.0.1 is free")?
        .local_addr()?
        .port())
}

/// The line after `server accepts handled requests` holds the three counts.
fn requests_in(status: &str) -> Option<u64> {
    let mut lines = status.lines().skip_while(|line| !line.starts_with("server accepts handled requests"));
    lines.nth(1)?.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_count_is_that_of_requests() {
        let status = "HTTP/1.1 200 OK\r\n\r\nActive connections: 1 \nserver accepts handled requests\n 16 16 31070 \n\
            Reading: 0 Writing: 1 Waiting: 0 \n";
        assert_eq!(requests_in(status), Some(31_070));
    }

    #[test]
    fn another_page_tells_no_count() {
        assert_eq!(requests_in("HTTP/1.1 404 Not Found\r\n\r\n<html>"), None);
    }
}
