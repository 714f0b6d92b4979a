//! What a NATS server says of its own work. Its counts include the control store and acknowledgements, which the
//! services' metrics leave out.

use anyhow::Context as _;
use serde::Deserialize;
use testkit::servers::NatsServer;

use crate::plain_http::get;

/// The counts of a server so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NatsWork {
    /// Messages that clients sent.
    pub(crate) messages_in: u64,
    /// Messages that clients got.
    pub(crate) messages_out: u64,
    /// Consumers at this moment.
    pub(crate) consumers: u64,
    /// Messages in all streams at this moment, those of the control store included.
    pub(crate) stored_messages: u64,
    /// The bytes of all streams at this moment.
    pub(crate) stored_bytes: u64,
}

impl NatsWork {
    /// Asks the server.
    pub(crate) fn of(nats: &NatsServer) -> anyhow::Result<Self> {
        let address = nats.monitor_address();
        Self::read(&get(&address, "/varz")?, &get(&address, "/jsz")?)
    }

    fn read(varz: &str, jsz: &str) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Varz {
            in_msgs: u64,
            out_msgs: u64,
        }
        #[derive(Deserialize)]
        struct Jsz {
            consumers: u64,
            messages: u64,
            bytes: u64,
        }
        let server: Varz = serde_json::from_str(varz).context("/varz of NATS is not as expected")?;
        let streams: Jsz = serde_json::from_str(jsz).context("/jsz of NATS is not as expected")?;
        Ok(Self {
            messages_in: server.in_msgs,
            messages_out: server.out_msgs,
            consumers: streams.consumers,
            stored_messages: streams.messages,
            stored_bytes: streams.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_server_may_say_more() {
        let varz = r#"{"server_id":"N","in_msgs":5,"out_msgs":7,"in_bytes":1}"#;
        let jsz = r#"{"memory":0,"streams":9,"consumers":3,"messages":11,"bytes":13}"#;
        let work = NatsWork::read(varz, jsz).unwrap();
        assert_eq!((work.messages_in, work.messages_out), (5, 7));
        assert_eq!((work.consumers, work.stored_messages, work.stored_bytes), (3, 11, 13));
    }
}
