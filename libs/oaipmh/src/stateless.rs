use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;

use crate::granularity::Granularity;
use crate::request::Selection;
use crate::token::Token;
use crate::verb::Verb;
use crate::window::Window;

/// A resumption token that holds the whole state of its list, so that a provider keeps none.
///
/// It goes on **behind** the last record delivered and does not count, so that no change of the repository makes the
/// list skip a record that did not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatelessToken {
    /// The verb of the list.
    pub verb: Verb,
    /// What the list was asked for.
    pub selection: Selection,
    /// The key of the last record delivered, in the provider's own order.
    pub after: String,
    /// How many records were delivered: the `cursor` of the next page.
    pub delivered: u64,
    /// When the token was made, for providers whose tokens expire.
    pub made: Timestamp,
}

const MAX_TOKEN_BYTES: usize = 16 * 1024;

impl StatelessToken {
    /// The token as it is printed: letters, digits, `-` and `_` only.
    pub fn encode(&self) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("v", self.verb.as_str());
        form.append_pair("p", &self.selection.prefix);
        let Window { from, until } = self.selection.window;
        for (name, time) in [("f", from), ("u", until), ("m", Some(self.made))] {
            if let Some(time) = time {
                form.append_pair(name, &Granularity::Second.format(time));
            }
        }
        if let Some(set) = &self.selection.set {
            form.append_pair("s", set);
        }
        form.append_pair("a", &self.after);
        form.append_pair("n", &self.delivered.to_string());
        BASE64URL_NOPAD.encode(form.finish().as_bytes())
    }

    /// Reads a token that was printed by [`encode`](Self::encode); `None` is `badResumptionToken`.
    pub fn decode(token: &Token) -> Option<Self> {
        if token.as_str().len() > MAX_TOKEN_BYTES {
            return None;
        }
        let bytes = BASE64URL_NOPAD.decode(token.as_str().as_bytes()).ok()?;
        let mut verb = None;
        let mut prefix = None;
        let mut set = None;
        let mut times = [None; 3];
        let mut after = None;
        let mut delivered = None;
        for (name, value) in form_urlencoded::parse(&bytes) {
            let time = || Granularity::parse(&value).map(|(time, _)| time);
            match &*name {
                "v" => verb = value.parse::<Verb>().ok(),
                "p" => prefix = Some(value.into_owned()),
                "s" => set = Some(value.into_owned()),
                "f" => times[0] = Some(time()?),
                "u" => times[1] = Some(time()?),
                "m" => times[2] = Some(time()?),
                "a" => after = Some(value.into_owned()),
                "n" => delivered = value.parse().ok(),
                _ => return None,
            }
        }
        let [from, until, made] = times;
        Some(Self {
            verb: verb?,
            selection: Selection { prefix: prefix?, set, window: Window { from, until } },
            after: after?,
            delivered: delivered?,
            made: made?,
        })
    }
}
