//! A hub's request to a callback: it verifies a subscription (WebSub, 5.3), or denies it (5.2).

use form_urlencoded::parse;

use crate::Mode;

/// The longest challenge that is returned, in bytes: hubs' own have a few dozen.
const LONGEST_CHALLENGE: usize = 1_024;
/// The longest reason that is kept, in characters.
const LONGEST_REASON: usize = 300;

/// A hub's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// Verify the intent: the answer "yes" is the challenge.
    Verify {
        /// The requested action.
        mode: Mode,
        /// The topic, as it was requested.
        topic: String,
        /// The answer to return if it was requested.
        challenge: String,
        /// The lease in seconds, if the hub states it.
        lease_seconds: Option<u64>,
    },
    /// The subscription is denied, or has ended.
    Denied {
        /// The topic, if the hub names it.
        topic: Option<String>,
        /// The reason, shortened.
        reason: Option<String>,
    },
}

/// Why a query is no hub's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// There is no `hub.mode`, or one that the specification does not know.
    #[error("hub.mode is none of subscribe, unsubscribe and denied")]
    Mode,
    /// A required parameter is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A parameter occurs twice with different values.
    #[error("{0} is given twice, and differs")]
    Twice(&'static str),
    /// The challenge is longer than any hub's.
    #[error("hub.challenge is longer than {LONGEST_CHALLENGE} bytes")]
    LongChallenge,
}

impl Intent {
    /// Parses the query of a request to a callback. Other parameters belong to the callback itself.
    ///
    /// # Errors
    /// [`IntentError`] says what is wrong with it.
    pub fn parse(query: &str) -> Result<Self, IntentError> {
        let find = |name: &'static str| {
            let mut found = parse(query.as_bytes()).filter(|(key, _)| key == name).map(|(_, value)| value);
            let first = found.next();
            if found.any(|value| Some(value) != first) {
                Err(IntentError::Twice(name))
            } else {
                Ok(first.map(|value| value.into_owned()))
            }
        };
        let need = |name| find(name)?.ok_or(IntentError::Missing(name));
        let mode = find("hub.mode")?.ok_or(IntentError::Mode)?;
        if mode == "denied" {
            let shortened = |text: String| text.chars().take(LONGEST_REASON).collect();
            return Ok(Self::Denied {
                topic: find("hub.topic")?,
                reason: find("hub.reason")?.map(shortened),
            });
        }
        let mode = mode.parse().map_err(|_| IntentError::Mode)?;
        let challenge = need("hub.challenge")?;
        if challenge.len() > LONGEST_CHALLENGE {
            return Err(IntentError::LongChallenge);
        }
        // A value that is no number counts as missing.
        let lease_seconds = find("hub.lease_seconds")?.and_then(|seconds| seconds.trim().parse().ok());
        Ok(Self::Verify { mode, topic: need("hub.topic")?, challenge, lease_seconds })
    }
}

#[cfg(test)]
mod tests {
    use form_urlencoded::Serializer;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_specifications_own_example_is_read() {
        let query = "hub.mode=subscribe&hub.topic=http%3A%2F%2Fexample.com%2Fdataset1%2Fchange%2F\
                     &hub.challenge=c0cc4630-5116-11e3-8f96-0800200c9a66&hub.lease_seconds=2400";
        let expected = Intent::Verify {
            mode: Mode::Subscribe,
            topic: "http://example.com/dataset1/change/".to_owned(),
            challenge: "c0cc4630-5116-11e3-8f96-0800200c9a66".to_owned(),
            lease_seconds: Some(2_400),
        };
        assert_eq!(Intent::parse(query), Ok(expected));
    }

    #[test]
    fn a_denial_needs_neither_topic_nor_reason_and_its_reason_is_shortened() {
        assert_eq!(Intent::parse("hub.mode=denied"), Ok(Intent::Denied { topic: None, reason: None }));
        let query = format!("x=1&hub.mode=denied&hub.topic=t&hub.reason={}", "n%C3%B6".repeat(400));
        let Ok(Intent::Denied { topic, reason }) = Intent::parse(&query) else { panic!("no denial") };
        assert_eq!((topic.as_deref(), reason.unwrap().chars().count()), (Some("t"), 300));
    }

    #[test]
    fn what_is_missing_doubled_or_without_measure_is_refused() {
        let whole = "hub.mode=subscribe&hub.topic=t&hub.challenge=c";
        assert!(Intent::parse(whole).is_ok());
        for (query, error) in [
            ("", IntentError::Mode),
            ("hub.mode=publish&hub.topic=t&hub.challenge=c", IntentError::Mode),
            ("hub.mode=subscribe&hub.challenge=c", IntentError::Missing("hub.topic")),
            ("hub.mode=unsubscribe&hub.topic=t", IntentError::Missing("hub.challenge")),
            (&format!("{whole}&hub.topic=u"), IntentError::Twice("hub.topic")),
            (&format!("{whole}{}", "c".repeat(1_024)), IntentError::LongChallenge),
        ] {
            assert_eq!(Intent::parse(query), Err(error), "{query}");
        }
        assert!(Intent::parse(&format!("{whole}&hub.topic=t")).is_ok(), "twice the same is no doubt");
    }

    #[test]
    fn a_lease_that_is_no_number_is_not_said() {
        for lease in ["", "-1", "1.5", "ever", "99999999999999999999999"] {
            let query = format!("hub.mode=subscribe&hub.topic=t&hub.challenge=c&hub.lease_seconds={lease}");
            let Ok(Intent::Verify { lease_seconds, .. }) = Intent::parse(&query) else { panic!("{lease}") };
            assert_eq!(lease_seconds, None, "{lease}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_query_is_read_without_panic(query in "(hub\\.(mode|topic|challenge)=(denied|subscribe|%[0-9a-f]{0,2}|.{0,4})&?){0,5}") {
            let _ = Intent::parse(&query);
        }

        #[test]
        fn what_is_written_is_read(topic in ".{1,40}", challenge in ".{1,40}", lease in any::<u64>()) {
            let mut query = Serializer::new(String::new());
            query.append_pair("hub.mode", "unsubscribe").append_pair("hub.topic", &topic);
            query.append_pair("hub.challenge", &challenge).append_pair("hub.lease_seconds", &lease.to_string());
            let read = Intent::parse(&query.finish()).unwrap();
            let mode = Mode::Unsubscribe;
            prop_assert_eq!(read, Intent::Verify { mode, topic, challenge, lease_seconds: Some(lease) });
        }
    }
}
