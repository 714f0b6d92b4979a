//! A small document, as the publication has it, and as nginx does that has it as a file.

use std::fs;

use super::{ANY_NUMBER_OF_CONNECTIONS, Pair};
use crate::cases::publish::Held;
use crate::folder::WorkFolder;
use crate::nginx::Nginx;
use crate::peers::Peer;
use crate::place::Place;
use crate::publish_server::{DOCUMENT, PublishServer};
use crate::thresher::Thresher;

/// Resources of the publication: its documents are small.
const RESOURCES: u64 = 1_000;

/// Both servers of it, and so many requests.
pub(super) fn pair(
    thresher: &Thresher,
    nginx: &Peer,
    work: &WorkFolder,
    requests: u64,
) -> anyhow::Result<Pair> {
    let place = Place::directory(&work.make("held")?);
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(Held::fill(&place, RESOURCES))?;
    let server = PublishServer::start(thresher, &place, &ANY_NUMBER_OF_CONNECTIONS)?;
    let public = work.make("public")?;
    let document = server.get(DOCUMENT)?;
    fs::write(public.join(DOCUMENT), &document)?;
    let nginx = Nginx::start(&nginx.program, &public, "")?;
    let lines =
        |base: &str| format!("{}/{}\n", base.trim_end_matches('/'), DOCUMENT).repeat(requests as usize);
    let (own_lines, nginx_lines) = (lines(&server.base()), lines(&nginx.base()));
    let bytes = requests * document.len() as u64;
    // A publication while requests are answered would change a time in it.
    Ok(Pair { own: (server, own_lines), nginx: (nginx, nginx_lines), requests, bytes, is_equal: false })
}
