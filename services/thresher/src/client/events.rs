//! Events of a run from a gateway: server-sent events, requested again when the connection is lost.

use std::time::Duration;

use api::Run;
use model::{RunId, SourceId};
use reqwest::Response;
use tokio::time::sleep;

use super::http::OperatorClient;
use crate::client_error::{ClientError, Kind};

/// The longest event.
const LARGEST: usize = 1024 * 1024;
/// The first wait before a reconnect; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest of these waits.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The most failed attempts in a row: some minutes.
const TRIES: u32 = 60;

/// The events of a run.
pub(crate) struct Events {
    client: OperatorClient,
    source: SourceId,
    run: RunId,
    open: Option<Response>,
    reader: Reader,
    /// The last event that was received.
    last: Option<String>,
    /// Failed attempts in a row.
    in_vain: u32,
}

/// Parses the events that a gateway writes, from pieces of a stream.
#[derive(Debug, Default)]
struct Reader {
    unread: Vec<u8>,
    data: String,
    id: Option<String>,
}

/// An event.
#[derive(Debug, PartialEq, Eq)]
struct Event {
    data: String,
    id: Option<String>,
}

impl Events {
    pub(super) fn new(client: OperatorClient, source: &SourceId, run: RunId) -> Self {
        let source = source.clone();
        Self { client, source, run, open: None, reader: Reader::default(), last: None, in_vain: 0 }
    }

    /// The present state of the run, then each changed one. Not to be called after its end.
    pub(crate) async fn next(&mut self) -> Result<Run, ClientError> {
        loop {
            if let Some(event) = self.reader.next() {
                let run: Run = serde_json::from_str(&event.data).map_err(|error| {
                    ClientError::new(Kind::Broken, format!("an event of the gateway cannot be read: {error}"))
                })?;
                self.last = event.id.or(self.last.take());
                self.in_vain = 0;
                return Ok(run);
            }
            match self.more().await {
                Ok(()) => {}
                Err(error) if error.is_temporary() && self.in_vain < TRIES => {
                    self.open = None;
                    self.reader = Reader::default();
                    sleep((FIRST_WAIT * 2_u32.pow(self.in_vain.min(10))).min(LONGEST_WAIT)).await;
                    self.in_vain += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The next piece of the stream.
    async fn more(&mut self) -> Result<(), ClientError> {
        if self.open.is_none() {
            let run = self.run.to_string();
            let path = ["sources", self.source.as_str(), "runs", &run, "events"];
            self.open = Some(self.client.events(&path, self.last.as_deref()).await?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        match self.client.piece(open).await? {
            Some(piece) => self.reader.take(&piece),
            // A gateway that stops ends its streams; the next one sends the present state first.
            None => Err(ClientError::new(Kind::Unavailable, "the gateway ended the stream of events")),
        }
    }
}

impl Reader {
    fn take(&mut self, piece: &[u8]) -> Result<(), ClientError> {
        self.unread.extend_from_slice(piece);
        if self.unread.len() + self.data.len() > LARGEST {
            let said = format!("an event of the gateway is larger than {LARGEST} bytes; is that a gateway?");
            return Err(ClientError::new(Kind::Broken, said));
        }
        Ok(())
    }

    /// The next complete event.
    fn next(&mut self) -> Option<Event> {
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                let data = std::mem::take(&mut self.data);
                let id = self.id.take();
                if !data.is_empty() {
                    return Some(Event { data, id });
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => {
                    if !self.data.is_empty() {
                        self.data.push('\n');
                    }
                    self.data += value;
                }
                "id" => self.id = Some(value.to_owned()),
                // Comments are keep-alives.
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_wherever_the_stream_is_cut() {
        let text =
            ": alive\n\nevent: run\ndata: {\"a\":1}\nid: 7\n\n:\n\ndata: b\r\ndata:c\r\n\r\ndata: not whole";
        let expected = [
            Event { data: "{\"a\":1}".to_owned(), id: Some("7".to_owned()) },
            Event { data: "b\nc".to_owned(), id: None },
        ];
        for size in 1..text.len() {
            let mut reader = Reader::default();
            let mut read = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                reader.take(piece).unwrap();
                read.extend(std::iter::from_fn(|| reader.next()));
            }
            assert_eq!(read, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_an_end_is_given_up() {
        let mut reader = Reader::default();
        assert!(reader.take(&vec![b'a'; LARGEST + 1]).is_err());
    }
}
