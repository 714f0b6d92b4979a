use url::Url;

use crate::base_url::{BadBaseUrl, BaseUrl};
use crate::granularity::Granularity;
use crate::verb::Verb;
use crate::window::Window;

/// A URL as operators paste it: a base URL, perhaps with a whole request behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pasted {
    /// The base URL, without the protocol's arguments, with any other query kept.
    pub base: BaseUrl,
    /// The verb. `None`: nothing shows that the URL is one of OAI-PMH; ask for Identify.
    pub verb: Option<Verb>,
    /// `metadataPrefix`.
    pub prefix: Option<String>,
    /// `set`.
    pub set: Option<String>,
    /// `from` and `until`, where they are readable dates.
    pub window: Window,
    /// `identifier`, of a GetRecord request.
    pub identifier: Option<String>,
    /// `resumptionToken`: the rest of a list that began elsewhere. It is not used: a harvest begins anew.
    pub had_token: bool,
}

const ARGUMENTS: [&str; 7] =
    ["verb", "metadataPrefix", "set", "from", "until", "identifier", "resumptionToken"];

impl Pasted {
    /// Takes a URL apart. Names of arguments are compared without case, since people type them.
    ///
    /// Arguments count as the protocol's only if there is a known `verb` among them: without one, a `set` or
    /// `from` may be the site's own.
    ///
    /// # Errors
    /// When the URL is neither `http` nor `https`.
    pub fn read(url: &Url) -> Result<Self, BadBaseUrl> {
        let known = |name: &str| ARGUMENTS.into_iter().find(|own| own.eq_ignore_ascii_case(name));
        let value = |wanted: &str| {
            let mut pairs = url.query_pairs();
            pairs
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.trim().to_owned())
        };
        let verb = value("verb")
            .and_then(|text| Verb::ALL.into_iter().find(|verb| verb.as_str().eq_ignore_ascii_case(&text)));
        let mut bare = url.clone();
        if verb.is_some() {
            // Parts of the query are kept as they are written, since another spelling could be another site.
            let kept: Vec<&str> = url
                .query()
                .unwrap_or_default()
                .split('&')
                .filter(|part| !part.is_empty())
                .filter(|part| {
                    let name = form_urlencoded::parse(part.as_bytes()).next().map(|(name, _)| name);
                    name.is_none_or(|name| known(&name).is_none())
                })
                .collect();
            bare.set_query((!kept.is_empty()).then(|| kept.join("&")).as_deref());
        }
        let base = BaseUrl::new(bare)?;
        if verb.is_none() {
            return Ok(Self::plain(base));
        }
        let text = |name| value(name).filter(|value: &String| !value.is_empty());
        let time = |name| text(name).and_then(|text| Granularity::parse(&text)).map(|(time, _)| time);
        Ok(Self {
            base,
            verb,
            prefix: text("metadataPrefix"),
            set: text("set"),
            window: Window { from: time("from"), until: time("until") },
            identifier: text("identifier"),
            had_token: text("resumptionToken").is_some(),
        })
    }

    fn plain(base: BaseUrl) -> Self {
        Self {
            base,
            verb: None,
            prefix: None,
            set: None,
            window: Window::ALL,
            identifier: None,
            had_token: false,
        }
    }
}
