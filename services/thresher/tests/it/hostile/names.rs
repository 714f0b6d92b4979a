//! Names with a special meaning for a system, a shell or a program.

use std::path::Path;
use std::process::Command;

use crate::common::{Destination, Site, resource, urlset};

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
/// Files that make a directory a repository, and run a command when a program reads it.
const REPOSITORY: [(&str, &str); 6] = [
    ("/.git/HEAD", "ref: refs/heads/main\n"),
    ("/.git/config", "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch ../../pwned; false\"\n"),
    ("/.git/objects/x", "x"),
    ("/.git/refs/x", "x"),
    ("/.envrc", "touch pwned"),
    ("/deeper/.vscode/tasks.json", "{}"),
];

async fn hostile_site() -> (Site, String) {
    let site = Site::start().await;
    let entries: Vec<String> =
        REPOSITORY.iter().map(|(path, body)| resource(&site.serve(path, *body), "")).collect();
    let list = site.serve("/list.xml", urlset(LIST, &entries));
    (site, list)
}

/// Whether any name below a directory begins with a dot, without Thresher's own data.
fn hidden(directory: &Path) -> Vec<String> {
    let files = Destination::at(directory).view().into_keys();
    files.filter(|file| file.split('/').any(|name| name.starts_with('.'))).collect()
}

#[tokio::test]
async fn a_harvest_is_no_repository_and_holds_no_hidden_name() {
    let (site, list) = hostile_site().await;
    let copy = Destination::directory();
    copy.sync(&list).exits(0);
    let root = Path::new(&copy.into);
    assert_eq!(hidden(root), [""; 0]);
    for (path, body) in REPOSITORY {
        assert_eq!(copy.file(&site.uri(path)).as_deref(), Some(body.as_bytes()), "{path}");
        assert_eq!(copy.cat(&site.uri(path)), body.as_bytes(), "{path}");
    }
    let host = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let host = host.filter(|path| !path.ends_with(".thresher")).last().unwrap();
    let status =
        Command::new("git").arg("status").current_dir(&host).env("GIT_CEILING_DIRECTORIES", root).output();
    if let Ok(status) = status {
        assert!(!status.status.success(), "git takes it for a repository");
    }
    assert!(!root.join("pwned").exists() && !host.join("pwned").exists());
}

#[tokio::test]
async fn trees_and_tars_hold_no_hidden_name() {
    let (_site, list) = hostile_site().await;
    let copy = Destination::directory();
    copy.sync_with(&list, &["--view", "none"]).exits(0);
    let out = tempfile::tempdir().unwrap();
    let tree = out.path().join("tree");
    copy.run("export", &[tree.to_str().unwrap(), "--as", "tree"]).exits(0);
    assert_eq!(hidden(&tree), [""; 0]);
    assert_eq!(Destination::at(&tree).view().len(), REPOSITORY.len());

    let file = out.path().join("all.tar");
    copy.run("export", &[file.to_str().unwrap(), "--as", "tar"]).exits(0);
    let mut tar = tar::Archive::new(std::fs::File::open(&file).unwrap());
    let names: Vec<String> =
        tar.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
    assert_eq!(names.len(), REPOSITORY.len());
    assert!(!names.iter().any(|name| name.split('/').any(|name| name.starts_with('.'))), "{names:?}");
}

#[tokio::test]
async fn a_view_that_was_laid_out_under_former_names_is_put_right_by_the_next_run() {
    let (site, list) = hostile_site().await;
    let copy = Destination::directory();
    // The state of an earlier version: files under the Source's names, and no record of the table of names.
    copy.sync_with(&list, &["--view", "none"]).exits(0);
    let host = Path::new(&copy.into).join(site.uri("").trim_start_matches("http://").replace(':', "+"));
    for (path, body) in REPOSITORY {
        let file = host.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, body).unwrap();
    }
    copy.sync(&list).exits(0);
    assert_eq!(hidden(Path::new(&copy.into)), [""; 0]);
    assert_eq!(copy.view().len(), REPOSITORY.len());
    for (path, body) in REPOSITORY {
        assert_eq!(copy.file(&site.uri(path)).as_deref(), Some(body.as_bytes()), "{path}");
    }
}
