//! The operator's commands, which ask a gateway. Of stored resources they show what the store has.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::common::api::{Api, OPERATE, READ, fleet};
use crate::common::{Fleet, source, wait};
use reqwest::StatusCode;
use serde_json::Value;
use simulated_source::{Changes, Fault, SourceSpec};
use testkit::servers::{NatsFixture, S3Fixture, free_port};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Lines of JSON without the fields that a gateway leaves out.
fn lines(text: &str) -> Vec<Value> {
    let read = |line| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        line.as_object_mut().expect("an object").remove("location");
        line
    };
    text.lines().map(read).collect()
}

#[tokio::test]
async fn a_gateway_and_the_store_give_the_same_output() {
    let source = source(SourceSpec::default().resources(30)).await;
    for index in [3, 5] {
        source.set_fault(index, Fault::status(404));
    }
    let (fleet, _all, api) = fleet().await;
    let url = source.well_known();
    let added = api.ask(&["source", "add", &url, "--every", "6h", "--concurrency", "3"]).await.exits(0);
    assert!(added.stdout.contains(" added, first run 20"), "{added}");
    api.ask(&["source", "add", &url]).await.exits(2).complains(&["already"], &["--replace"]);
    api.ask(&["source", "add", &url, "--replace", "--concurrency", "2"]).await.exits(0);
    let watched = api.ask(&["run", "submit", &url, "--watch", "--json"]).await.exits(1);
    assert_eq!(watched.json()["counters"]["stored"], 28, "{watched}");

    for words in [vec!["source", "ls"], vec!["source", "show", &url, "--json"], vec!["run", "ls", "--json"]] {
        let shown = api.ask(&words).await.exits(0).stdout;
        assert!(shown.contains("127-0-0-1") || shown.contains("127.0.0.1"), "{words:?}: {shown}");
    }

    // The stored content. A gateway's reader is a second behind.
    let held = fleet.destination();
    testkit::waiting::found("the gateway sees the whole run", async || {
        (api.ask(&["ls", "--json"]).await.exits(0).stdout.lines().count() == 30).then_some(())
    })
    .await;
    let here = |words: &[&str]| held.run(words[0], &words[1..]).exits(0).stdout;
    let uri = source.resource_uri(3);
    let prefix = source.resource_uri(1);
    for words in [vec!["ls", "--json"], vec!["ls", "--json", &prefix], vec!["problems", "--json"]] {
        let by_gateway = api.ask(&words).await.exits(0).stdout;
        assert_eq!(lines(&by_gateway), lines(&here(&words)), "{words:?}");
        assert!(!by_gateway.is_empty(), "{words:?}");
    }
    for words in [
        vec!["ls"],
        vec!["problems"],
        vec!["problems", "--group"],
        vec!["problems", "--group", "--json", "--reason", "http-client-error", "--kind", "resource"],
        vec!["explain", &uri],
        vec!["explain", &uri, "--json"],
        vec!["report", "--json"],
        vec!["report"],
    ] {
        let by_gateway = api.ask(&words).await.exits(0).stdout;
        assert_eq!(by_gateway, here(&words), "{words:?}");
        assert!(!by_gateway.is_empty(), "{words:?}");
    }
    assert_eq!(api.ask(&["problems", "--reason", "timeout"]).await.exits(0).stdout, "");
    // A store that is named is read, even if the environment names a gateway.
    let mut command = held.command("ls", &[]);
    command.env("THRESHER_SERVER", "http://127.0.0.1:1");
    assert_eq!(wait(command).await.exits(0).stdout, here(&["ls"]));
}

#[tokio::test]
async fn the_operators_word_about_problems_goes_by_the_gateway() {
    let source = source(SourceSpec::default().resources(20)).await;
    for index in [3, 5] {
        source.set_fault(index, Fault::status(404));
    }
    let (_fleet, _all, api) = fleet().await;
    let url = source.well_known();
    api.ask(&["source", "add", &url, "--no-run"]).await.exits(0);
    api.ask(&["run", "submit", &url, "--watch"]).await.exits(1);
    let api = api.with(Some(OPERATE));
    api.ask(&["ignore", &source.resource_uri(3)]).await.exits(2);
    let said = api.ask(&["ignore", &source.resource_uri(3), "--note", "gone"]).await.exits(0);
    assert!(said.stdout.contains("before the next run"), "{said}");
    api.ask(&["run", "submit", &url, "--watch"]).await.exits(1);
    testkit::waiting::found("one is ignored", async || {
        let ignored = api.ask(&["problems", "--ignored", "--json"]).await.exits(0).json_lines();
        (ignored.len() == 1 && ignored[0]["uri"] == source.resource_uri(3)).then_some(())
    })
    .await;
    source.clear_faults();
    api.ask(&["retry", "--all", "--ignored", "--source", &url]).await.exits(0);
    api.ask(&["run", "submit", &url, "--watch"]).await.exits(0);
}

#[tokio::test]
async fn the_guards_run_goes_on_with_the_operators_word() {
    let source = source(SourceSpec::default().resources(40)).await;
    let (_fleet, _all, api) = fleet().await;
    let url = source.well_known();
    api.ask(&["source", "add", &url, "--absent", "delete", "--mode", "baseline", "--no-run"]).await.exits(0);
    api.ask(&["run", "submit", &url, "--watch"]).await.exits(0);
    api.ask(&["run", "approve", &url]).await.exits(3);
    source.change(Changes { create: 0, update: 0, delete: 20 });
    source.forget_changes();
    source.refresh_resource_list();
    api.ask(&["run", "submit", &url, "--watch"]).await.exits(3);
    let done = api.ask(&["run", "approve", &url, "--watch", "--json"]).await.exits(0);
    assert_eq!(done.json()["counters"]["deleted"], 20, "{done}");
}

/// A connection to a gateway that can be cut, and directed elsewhere afterwards.
async fn way_to(gateway: watch::Receiver<SocketAddr>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((mut here, _)) = listener.accept().await {
            let mut gateway = gateway.clone();
            tokio::spawn(async move {
                let to = *gateway.borrow_and_update();
                let Ok(mut there) = TcpStream::connect(to).await else { return };
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut here, &mut there) => {}
                    // It is cut.
                    _ = gateway.changed() => {}
                }
            });
        }
    });
    address
}

fn address(api: &Api) -> SocketAddr {
    api.base.strip_prefix("http://").expect("plain HTTP").parse().expect("an address")
}

#[tokio::test]
async fn a_watch_goes_on_with_another_gateway_when_its_own_dies() {
    let spec = SourceSpec::default().resources(300).latency(Duration::from_millis(20));
    let source = source(spec).await;
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let _services = fleet.start(&["scheduler", "fetcher", "unpacker", "verifier"], "");
    let first = fleet.start(&["gateway"], &fleet.gateway());
    let api = Api::of(&first).await;
    let (lead, gateway) = watch::channel(address(&api));
    let through = api.at(format!("http://{}", way_to(gateway).await));
    let url = source.well_known();
    through.ask(&["source", "add", &url, "--no-run"]).await.exits(0);
    let words = ["run", "submit", &url, "--watch", "--json"];
    // It cannot end before there is another gateway.
    source.allow(20);
    let watching = tokio::spawn(wait(through.command(&words)));
    crate::common::asked_for(&source, 20).await;
    first.kill();
    let second = fleet.start(&["gateway"], &fleet.gateway());
    lead.send_replace(address(&Api::of(&second).await));
    source.allow_all();
    let watched = watching.await.expect("no panic").exits(0);
    let told = watched.json_lines();
    assert_eq!(told.last().expect("its end")["counters"]["stored"], 300, "{watched}");
    assert!(told.len() > 1 && told.windows(2).all(|two| two[0] != two[1]), "{watched}");
}

#[tokio::test]
async fn serve_gives_the_commands_of_its_user_a_token_and_nobody_else() {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let gateway = fleet.start(&["gateway"], &format!("gateway: {{listen: '{address}'}}"));
    let api = Api::of(&gateway).await;
    let config = fleet.path("config");
    let command = |words: &[&str]| {
        let mut command = crate::common::thresher();
        command.args(words).env("XDG_CONFIG_HOME", &config);
        command
    };
    wait(command(&["source", "add", "https://example.org/", "--no-run"])).await.exits(0);
    let listed = wait(command(&["source", "ls", "--json"])).await.exits(0);
    assert_eq!(listed.json()["entry"], "https://example.org/", "{listed}");
    api.with(None).get("/v1/sources").await.is(StatusCode::UNAUTHORIZED);
    let base = &api.base;
    wait(command(&["source", "ls", "--server", base])).await.exits(2).complains(&[base], &["thresher_token"]);
    assert_eq!(gateway.terminate().await, Some(0));
    assert!(!config.join("thresher/serve.yaml").exists(), "its token ends with it");
}

#[tokio::test]
async fn what_is_refused_says_what_where_and_what_to_do_with_the_exit_status_for_it() {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let gateway = fleet.start(&["gateway"], &fleet.gateway());
    let api = Api::of(&gateway).await;
    let list = ["source", "ls"];
    let base = api.base.clone();
    let nobody = api.with(Some("a token that nobody knows"));
    nobody.ask(&list).await.exits(2).complains(&[&base, "/v1/sources"], &["thresher_token"]);
    api.with(None).ask(&list).await.exits(2).complains(&[&base], &["thresher_token"]);
    let reader = api.with(Some(READ));
    reader.ask(&list).await.exits(0);
    let add = ["source", "add", "https://example.org/"];
    reader.ask(&add).await.exits(2).complains(&["admin"], &["needs the role"]);
    let unknown = api.ask(&["run", "submit", "https://example.org/"]).await.exits(2);
    unknown.complains(&["example-org"], &["thresher source ls"]);
    api.ask(&["run", "watch", "https://example.org/"])
        .await
        .exits(2)
        .complains(&["example-org"], &["run submit"]);
    api.ask(&["source", "rm", "https://example.org/"]).await.exits(2);
    let contact = ["source", "add", "https://example.org/", "--contact", "(me)"];
    api.ask(&contact).await.exits(2).complains(&["contact"], &["mailto:"]);
    let nowhere = api.at("http://127.0.0.1:1".to_owned());
    nowhere.ask(&list).await.exits(3).complains(&["http://127.0.0.1:1"], &["check that it runs"]);
    // A server that is no gateway.
    let s3 = api.at(fleet.s3.endpoint.clone());
    let said = s3.ask(&list).await;
    assert!(matches!(said.exit, Some(2 | 3)), "{said}");
    said.complains(&[&fleet.s3.endpoint], &["check the url", "check that this is a gateway"]);

    // A profile, and a token in a file.
    let config = fleet.path("config");
    let profiles = config.join("thresher/profiles.yaml");
    std::fs::create_dir_all(profiles.parent().expect("a folder")).expect("our own folder");
    std::fs::write(&profiles, format!("here: {{server: '{base}', token_file: here.token}}\n"))
        .expect("our own folder");
    std::fs::write(config.join("thresher/here.token"), format!("{READ}\n")).expect("our own folder");
    let mut command = crate::common::thresher();
    command.args(["source", "ls", "--profile", "here"]).env("XDG_CONFIG_HOME", &config);
    wait(command).await.exits(0);
}
