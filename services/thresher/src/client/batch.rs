//! Requests about many Sources: a few large ones.

use api::{Page, RunBatch, RunRequest, RunResult, SourceBatch, SourceDone, SourceInBatch, SourceResult};
use model::{RunId, SourceId};

use super::OperatorClient;
use crate::client_error::{ClientError, Kind};

/// Items per request: a gateway accepts more, but a long request takes long.
const MAX_ITEMS: usize = 200;
/// The most bytes of a request, rounded to whole items.
const MAX_BYTES: usize = 512 * 1024;

impl OperatorClient {
    /// Applies the specs of Sources, and returns the result of each in the same order. Each names the
    /// revision that was read, 0 if there was none. A dry run writes nothing.
    pub(crate) async fn apply(
        &self,
        sources: &[SourceInBatch],
        dry_run: bool,
    ) -> Result<Vec<Result<SourceDone, ClientError>>, ClientError> {
        let query = [("dry_run", dry_run.to_string())];
        let mut results = Vec::new();
        for part in parts(sources) {
            let batch = SourceBatch { sources: part.to_vec() };
            // With the key, a repeated request has no further effect.
            let key = ulid::Ulid::new().to_string();
            let page: Page<SourceResult> = self.post(&["sources:batch"], &query, &batch, Some(&key)).await?;
            results.extend(page.items.into_iter().map(|item| match (item.done, item.problem) {
                (SourceDone::Refused, Some(problem)) => Err(ClientError::refused(&problem, self.url())),
                (SourceDone::Refused, None) => Err(no_reason(self)),
                (done, _) => Ok(done),
            }));
        }
        Ok(results)
    }

    /// Requests a run of each of these Sources. Returns its id, or the error, in the same order.
    pub(crate) async fn submit_all(
        &self,
        sources: &[SourceId],
        submit: &RunRequest,
    ) -> Result<Vec<Result<RunId, ClientError>>, ClientError> {
        let mut results = Vec::new();
        for part in sources.chunks(MAX_ITEMS) {
            let sources = part.iter().map(SourceId::to_string).collect();
            let batch = RunBatch { sources, submit: submit.clone() };
            let key = ulid::Ulid::new().to_string();
            let page: Page<RunResult> = self.post(&["runs:batch"], &[], &batch, Some(&key)).await?;
            results.extend(page.items.into_iter().map(|item| match (item.run, item.problem) {
                (Some(run), _) => Ok(run.run),
                (None, Some(problem)) => Err(ClientError::refused(&problem, self.url())),
                (None, None) => Err(no_reason(self)),
            }));
        }
        Ok(results)
    }
}

/// The items in parts, each small enough for a request.
fn parts(sources: &[SourceInBatch]) -> Vec<&[SourceInBatch]> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut bytes = 0;
    for (at, source) in sources.iter().enumerate() {
        let length = serde_json::to_vec(source).map_or(0, |text| text.len());
        if at > begin && (at - begin == MAX_ITEMS || bytes + length > MAX_BYTES) {
            parts.push(&sources[begin..at]);
            begin = at;
            bytes = 0;
        }
        bytes += length;
    }
    if begin < sources.len() {
        parts.push(&sources[begin..]);
    }
    parts
}

fn no_reason(client: &OperatorClient) -> ClientError {
    let message = format!("{} gives no reason why it refused the item; see its log", client.url());
    ClientError::new(Kind::Broken, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_and_long_items_go_in_several_requests() {
        let source = |n: usize, note: &str| -> SourceInBatch {
            let spec = json!({"entry": format!("https://example.org/{n}"), "include": note});
            serde_json::from_value(json!({"spec": spec, "revision": 0})).unwrap()
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
