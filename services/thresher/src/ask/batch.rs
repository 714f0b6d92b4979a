//! Requests about many Sources: a few large ones to a gateway, or several concurrent ones to the fleet.

use api::{Page, RunBatch, RunResult, SourceBatch, SourceDone, SourceInBatch, SourceResult, Submit};
use control::{AskedBy, RunSpec};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use model::{RunId, SourceId};

use super::{Asked, Kind, NotDone, Server, trial};

/// Items per request: a gateway accepts more, but a long request takes long.
const AT_ONCE: usize = 200;
/// The most bytes of a request, rounded to whole items.
const BYTES_AT_ONCE: usize = 512 * 1024;
/// Concurrent requests, where each concerns one item.
const AT_A_TIME: usize = 32;

impl Asked {
    /// Applies the specs of Sources, and returns the result of each in the same order. Each names the
    /// revision that was read, 0 if there was none.
    pub(crate) async fn bring(
        &self,
        sources: &[SourceInBatch],
        only_tried: bool,
    ) -> Result<Vec<Result<SourceDone, NotDone>>, NotDone> {
        if let Self::Gateway(server) = self {
            match bring_by(server, sources, only_tried).await {
                // A gateway that is older than this program.
                Err(error) if error.kind == Kind::Absent => {}
                done => return done,
            }
        }
        let each = sources.iter().map(|source| self.bring_one(source, only_tried));
        Ok(stream::iter(each).buffered(AT_A_TIME).collect().await)
    }

    async fn bring_one(&self, source: &SourceInBatch, only_tried: bool) -> Result<SourceDone, NotDone> {
        match source.revision {
            None | Some(0) => self.create(&source.wanted, only_tried).await.map(|_| SourceDone::Created),
            Some(read) => self.change(&source.wanted, read, only_tried).await.map(|_| SourceDone::Changed),
        }
    }

    /// Requests a run of each of these Sources. Returns its id, or the error, in the same order.
    pub(crate) async fn submit_all(
        &self,
        sources: &[SourceId],
        asked: &Submit,
    ) -> Result<Vec<Result<RunId, NotDone>>, NotDone> {
        let server = match self {
            Self::Gateway(server) => server,
            Self::Fleet(control) => {
                let each = sources.iter().map(async |source| {
                    let spec = RunSpec {
                        id: RunId::fresh(),
                        source: source.clone(),
                        mode: asked.mode,
                        asked_by: AskedBy::Operator,
                        asked_at: Timestamp::now(),
                        allow_deletes: asked.allow_deletes,
                        repair: asked.repair,
                    };
                    Ok(control.runs().submit(spec).await?.spec.id)
                });
                return Ok(stream::iter(each).buffered(AT_A_TIME).collect().await);
            }
        };
        let mut all = Vec::new();
        for some in sources.chunks(AT_ONCE) {
            let sources = some.iter().map(SourceId::to_string).collect();
            let batch = RunBatch { sources, submit: asked.clone() };
            let key = ulid::Ulid::new().to_string();
            let answer: Page<RunResult> = server.post(&["runs:batch"], &[], &batch, Some(&key)).await?;
            all.extend(answer.items.into_iter().map(|item| match (item.run, item.problem) {
                (Some(run), _) => Ok(run.run),
                (None, Some(problem)) => Err(NotDone::refused(&problem, server.url())),
                (None, None) => Err(unsaid(server)),
            }));
        }
        Ok(all)
    }
}

async fn bring_by(
    server: &Server,
    sources: &[SourceInBatch],
    only_tried: bool,
) -> Result<Vec<Result<SourceDone, NotDone>>, NotDone> {
    let mut all = Vec::new();
    for some in parts(sources) {
        let batch = SourceBatch { sources: some.to_vec() };
        // With the key, a repeated request has no further effect.
        let key = ulid::Ulid::new().to_string();
        let answer: Page<SourceResult> =
            server.post(&["sources:batch"], &trial(only_tried), &batch, Some(&key)).await?;
        all.extend(answer.items.into_iter().map(|item| match (item.done, item.problem) {
            (SourceDone::Refused, Some(problem)) => Err(NotDone::refused(&problem, server.url())),
            (SourceDone::Refused, None) => Err(unsaid(server)),
            (done, _) => Ok(done),
        }));
    }
    Ok(all)
}

/// The items in parts, each small enough for a request.
fn parts(sources: &[SourceInBatch]) -> Vec<&[SourceInBatch]> {
    let (mut parts, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (at, source) in sources.iter().enumerate() {
        let length = serde_json::to_vec(source).map_or(0, |text| text.len());
        if at > begin && (at - begin == AT_ONCE || bytes + length > BYTES_AT_ONCE) {
            parts.push(&sources[begin..at]);
            (begin, bytes) = (at, 0);
        }
        bytes += length;
    }
    if begin < sources.len() {
        parts.push(&sources[begin..]);
    }
    parts
}

fn unsaid(server: &Server) -> NotDone {
    NotDone::new(Kind::Broken, format!("{} does not say why it was refused; its log says more", server.url()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_and_long_items_go_in_several_requests() {
        let source = |n: usize, note: &str| -> SourceInBatch {
            let wanted = json!({"entry": format!("https://example.org/{n}"), "include": note});
            serde_json::from_value(json!({"wanted": wanted, "revision": 0})).unwrap()
        };
        let lengths =
            |sources: &[SourceInBatch]| parts(sources).iter().map(|part| part.len()).collect::<Vec<_>>();
        let short: Vec<_> = (0..450).map(|n| source(n, "a")).collect();
        assert_eq!(lengths(&short), [200, 200, 50]);
        let long: Vec<_> = (0..3).map(|n| source(n, &"a".repeat(300_000))).collect();
        assert_eq!(lengths(&long), [1, 1, 1]);
        assert_eq!(lengths(&[]), [0; 0]);
    }
}
