//! Validates the spec of a Source.

use model::{Origin, Publish, SetRule, SourceId, displayed};
use regex::Regex;
use url::Url;

use super::SourceSpec;
use crate::error::InvalidSource;

/// The most notification targets of one Source.
const MOST_TARGETS: usize = 16;
/// Conditions on the entries of a Source.
const MOST_CONDITIONS: usize = 32;
/// The most allowed networks of one Source.
const MOST_NETWORKS: usize = 64;
/// The most labels of one Source.
const MOST_LABELS: usize = 16;
/// The most characters of a title, and of a contact at the Source.
const LONGEST_LINE: usize = 200;
/// The most sets of a repository that one Source harvests.
const MOST_SETS: usize = 64;
/// The most characters of notes.
const LONGEST_NOTES: usize = 2_000;

impl SourceSpec {
    /// Validates the spec.
    ///
    /// # Errors
    /// [`InvalidSource`] with all invalid fields.
    pub fn check(&self) -> Result<(), InvalidSource> {
        let mut reasons = Vec::new();
        let mut refuse = |field, why: String| reasons.push((field, why));
        if !self.entry.username().is_empty() || self.entry.password().is_some() {
            // The reasons of further checks would reveal the password.
            refuse("entry", "a name or password stands in the URL; name a credential instead".to_owned());
        } else if !matches!(self.entry.scheme(), "http" | "https") {
            refuse("entry", format!("the scheme of {} is not http or https", self.entry));
        } else if Origin::of(&self.entry).is_err() {
            refuse("entry", format!("{} has no host", self.entry));
        }
        if self.id != SourceId::of_entry(&self.entry) {
            let right = SourceId::of_entry(&self.entry);
            refuse("id", format!("a source is named after its entry, and this one is {right}"));
        }
        let texts = [
            ("title", &self.title, LONGEST_LINE),
            ("notes", &self.notes, LONGEST_NOTES),
            ("source_contact", &self.source_contact, LONGEST_LINE),
        ];
        for (field, text, most) in texts {
            if let Some(Err(why)) = text.as_deref().map(|text| can_be_shown(text, most)) {
                refuse(field, why);
            }
        }
        if self.labels.len() > MOST_LABELS {
            refuse("labels", format!("{} are given, and {MOST_LABELS} at most can be", self.labels.len()));
        }
        if let Err(why) = self.mode.check() {
            refuse("mode", why.to_owned());
        }
        if let Some(Err(error)) = self.schedule.as_ref().map(|schedule| schedule.check()) {
            refuse("schedule", error.to_string());
        }
        if let Some(Err(error)) = self.follow.map(|bounds| bounds.check()) {
            refuse("follow", error.to_string());
        }
        if self.max_deletes_percent > 100 {
            let percent = self.max_deletes_percent;
            refuse("max_deletes_percent", format!("{percent} is more than 100"));
        }
        if self.sets.len() > MOST_SETS {
            refuse("sets", format!("{} are given, and {MOST_SETS} at most can be", self.sets.len()));
        }
        let prefix = self.metadata_prefix.iter().map(|prefix| ("metadata_prefix", prefix));
        for (field, name) in prefix.chain(self.sets.iter().map(|set| ("sets", set))) {
            if let Err(why) = can_be_argument(name) {
                refuse(field, why);
            }
        }
        for (field, pattern) in [("include", &self.include), ("exclude", &self.exclude)] {
            if let Some(Err(error)) = pattern.as_deref().map(Regex::new) {
                refuse(field, format!("no regular expression: {error}"));
            }
        }
        if self.only.len() > MOST_CONDITIONS {
            let conditions = self.only.len();
            refuse("only", format!("{conditions} are given, and {MOST_CONDITIONS} at most can be"));
        }
        let followed = [
            ("follow_links", self.follow_links.len()),
            ("follow_types", self.follow_types.len()),
            ("follow_rules", self.follow_rules.len()),
        ];
        for (field, given) in followed {
            if given > MOST_CONDITIONS {
                refuse(field, format!("{given} are given, and {MOST_CONDITIONS} at most can be"));
            }
        }
        if self.follow_links.is_empty() && (!self.follow_types.is_empty() || self.follow_max.is_some()) {
            refuse(
                "follow_links",
                "follow_types and follow_max need relations to follow, such as item".to_owned(),
            );
        }
        if self.contact.as_ref().is_some_and(|contact| !is_contact(contact)) {
            refuse("contact", "it is 1 to 200 visible characters, such as mailto:a@example.org".to_owned());
        }
        if self.allow_networks.len() > MOST_NETWORKS {
            let networks = self.allow_networks.len();
            refuse(
                "allow_networks",
                format!("{networks} are named, and {MOST_NETWORKS} at most can be; name larger ones"),
            );
        }
        if self.publish_networks.len() > MOST_NETWORKS {
            let networks = self.publish_networks.len();
            refuse(
                "publish_networks",
                format!("{networks} are named, and {MOST_NETWORKS} at most can be; name larger ones"),
            );
        }
        if (self.publish == Publish::Networks) == self.publish_networks.is_empty() {
            let why = "networks are named where publish is networks, and only there, such as 10.2.0.0/16";
            refuse("publish_networks", why.to_owned());
        }
        if self.publish_sets.len() > SetRule::MOST {
            let sets = self.publish_sets.len();
            refuse("publish_sets", format!("{sets} are given, and {} at most can be", SetRule::MOST));
        }
        for (at, set) in self.publish_sets.iter().enumerate() {
            let name = set.name();
            if self.publish_sets[..at].iter().any(|other| other.name() == name) {
                refuse("publish_sets", format!("{name} is named twice"));
            }
            if let Err(error) = set.compiled() {
                refuse("publish_sets", error.to_string());
            }
        }
        if self.notify.len() > MOST_TARGETS {
            refuse("notify", format!("{} are told, and {MOST_TARGETS} at most can be", self.notify.len()));
        }
        let is_repeated = |url: &Url| self.notify.iter().filter(|other| *other == url).count() > 1;
        if let Some(repeated) = self.notify.iter().find(|url| is_repeated(url)) {
            refuse("notify", format!("{repeated} is named twice"));
        }
        let told = self.notify.iter().map(|url| ("notify", url));
        for (field, url) in told.chain(self.inbox.iter().map(|url| ("inbox", url))) {
            if let Err(why) = can_be_asked(url) {
                refuse(field, why);
            }
        }
        if reasons.is_empty() { Ok(()) } else { Err(InvalidSource { source: self.id.clone(), reasons }) }
    }
}

/// Checks a metadata prefix or the name of a set. Neither has blanks in OAI-PMH.
fn can_be_argument(name: &str) -> Result<(), String> {
    let is_name = name.chars().all(|c| !c.is_whitespace() && !c.is_control());
    if (1..=LONGEST_LINE).contains(&name.chars().count()) && is_name {
        return Ok(());
    }
    Err(format!("{name:?} is no name in OAI-PMH: 1 to {LONGEST_LINE} characters without blanks"))
}

/// Checks that a request can go to the URL, and that the URL contains no secret.
fn can_be_asked(url: &Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") || Origin::of(url).is_err() {
        return Err(format!("{url} is no http or https URL with a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "a name or password stands in the URL; name a credential in the configuration instead".to_owned()
        );
    }
    Ok(())
}

/// Checks that a text is neither empty nor too long, and has no control characters, which command a display.
fn can_be_shown(text: &str, most: usize) -> Result<(), String> {
    let length = text.chars().count();
    if text.trim().is_empty() || length > most {
        return Err(format!("it has {length} characters; write 1 to {most}, or leave it out"));
    }
    if text.chars().any(char::is_control) || displayed(text) != text {
        return Err("it contains control characters, such as a line end; write one line of text".to_owned());
    }
    Ok(())
}

/// Whether the text can be put in a `User-Agent` header, in parentheses.
fn is_contact(text: &str) -> bool {
    (1..=200).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'(' | b')'))
}

#[cfg(test)]
mod tests {
    use model::RunMode;

    use super::*;
    use crate::schedule::{PollInterval, Schedule};

    fn spec(entry: &str) -> SourceSpec {
        SourceSpec::new(Url::parse(entry).unwrap())
    }

    fn fields(spec: &SourceSpec) -> Vec<&'static str> {
        match spec.check() {
            Ok(()) => Vec::new(),
            Err(invalid) => invalid.reasons().iter().map(|(field, _)| *field).collect(),
        }
    }

    #[test]
    fn a_plain_source_makes_sense() {
        assert_eq!(fields(&spec("https://example.org/")), [""; 0]);
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let mut wrong = spec("https://example.org/");
        wrong.mode = RunMode::Audit;
        wrong.schedule = Some(Schedule::cron("every day"));
        wrong.follow = Some(PollInterval { min_seconds: 9, max_seconds: 3 });
        wrong.include = Some("(".to_owned());
        wrong.exclude = Some("[".to_owned());
        wrong.max_deletes_percent = 101;
        wrong.contact = Some("a b".to_owned());
        let said = ["mode", "schedule", "follow", "max_deletes_percent", "include", "exclude", "contact"];
        assert_eq!(fields(&wrong), said);
        let message = wrong.check().unwrap_err().to_string();
        for words in [
            "auto, baseline or incremental",
            "it has 2 fields",
            "9 to 3 seconds",
            "101 is more than 100",
            "unclosed group",
        ] {
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn entries_that_cannot_be_asked_or_hold_a_secret_are_refused() {
        assert_eq!(fields(&spec("ftp://example.org/")), ["entry"]);
        assert_eq!(fields(&spec("mailto:a@example.org")), ["entry"]);
        let secret = spec("https://user:hunter2@example.org/");
        assert_eq!(fields(&secret), ["entry"]);
        assert!(!secret.check().unwrap_err().to_string().contains("hunter2"));
    }

    #[test]
    fn who_is_told_can_be_asked_and_is_told_once() {
        let told = |urls: &[&str]| {
            let mut source = spec("https://example.org/");
            source.notify = urls.iter().map(|url| url.parse().unwrap()).collect();
            source
        };
        assert_eq!(fields(&told(&["https://a.example/", "http://b.example/#me"])), [""; 0]);
        assert_eq!(fields(&told(&["https://a.example/", "https://a.example"])), ["notify"]);
        assert_eq!(fields(&told(&["mailto:a@example.org"])), ["notify"]);
        let secret = told(&["https://user:hunter2@example.org/"]);
        assert_eq!(fields(&secret), ["notify"]);
        assert!(!secret.check().unwrap_err().to_string().contains("hunter2"));
        let mut polled = spec("https://example.org/");
        polled.inbox = Some("ftp://example.org/".parse().unwrap());
        assert_eq!(fields(&polled), ["inbox"]);
        let many: Vec<_> = (0..17).map(|n| format!("https://{n}.example/")).collect();
        assert_eq!(fields(&told(&many.iter().map(String::as_str).collect::<Vec<_>>())), ["notify"]);
    }

    #[test]
    fn labels_and_texts_for_people_are_limited() {
        let labelled = |count: usize| {
            let mut source = spec("https://example.org/");
            let label = |n| (format!("k{n}").parse().unwrap(), "v".parse().unwrap());
            source.labels = (0..count).map(label).collect();
            source
        };
        assert_eq!(fields(&labelled(16)), [""; 0]);
        assert_eq!(fields(&labelled(17)), ["labels"]);
        let described = |title: &str, notes: &str, contact: &str| {
            let mut source = spec("https://example.org/");
            source.title = Some(title.to_owned());
            source.notes = Some(notes.to_owned());
            source.source_contact = Some(contact.to_owned());
            source
        };
        let good = described(&"日".repeat(200), &"n".repeat(2_000), "Ada <ada@example.org>");
        assert_eq!(fields(&good), [""; 0]);
        let long = described(&"t".repeat(201), &"n".repeat(2_001), &"c".repeat(201));
        assert_eq!(fields(&long), ["title", "notes", "source_contact"]);
        for bad in ["", " ", "a\nb", "\u{1b}[31m", "a\u{202e}b", "\u{85}"] {
            assert_eq!(fields(&described(bad, "n", "c")), ["title"], "{bad:?}");
            assert_eq!(fields(&described("t", bad, bad)), ["notes", "source_contact"], "{bad:?}");
        }
    }

    #[test]
    fn the_networks_of_a_source_are_limited() {
        let networks = |n: u8| {
            let mut source = spec("https://example.org/");
            source.allow_networks = (0..n).map(|n| format!("10.{n}.0.0/16").parse().unwrap()).collect();
            source
        };
        assert_eq!(fields(&networks(64)), [""; 0]);
        assert_eq!(fields(&networks(65)), ["allow_networks"]);
    }

    #[test]
    fn a_publication_to_networks_names_some_and_another_names_none() {
        let published = |publish: Publish, networks: u8| {
            let mut source = spec("https://example.org/");
            source.publish = publish;
            source.publish_networks =
                (0..networks).map(|n| format!("10.{n}.0.0/16").parse().unwrap()).collect();
            fields(&source)
        };
        assert_eq!(published(Publish::Networks, 64), [""; 0]);
        assert_eq!(published(Publish::Tokens, 0), [""; 0]);
        for (publish, networks) in [(Publish::Networks, 0), (Publish::Networks, 65), (Publish::Off, 1)] {
            assert_eq!(published(publish, networks), ["publish_networks"], "{publish:?}");
        }
        assert_eq!(published(Publish::Public, 1), ["publish_networks"]);
    }

    #[test]
    fn sets_by_rule_have_names_of_their_own_and_patterns_that_are_some() {
        let with = |sets: &[String]| {
            let mut source = spec("https://example.org/");
            source.publish_sets = sets.iter().map(|set| set.parse().unwrap()).collect();
            fields(&source)
        };
        let many = |count: usize| (0..count).map(|n| format!("n{n}=x")).collect::<Vec<_>>();
        assert_eq!(with(&many(32)), [""; 0]);
        assert_eq!(with(&many(33)), ["publish_sets"]);
        assert_eq!(with(&["a=x".to_owned(), "a=y".to_owned()]), ["publish_sets"]);
        assert_eq!(with(&["a=(".to_owned()]), ["publish_sets"]);
        assert_eq!(with(&[r"a=\w{2000}".to_owned()]), ["publish_sets"], "it takes too much memory");
    }

    #[test]
    fn a_source_goes_by_no_other_name_than_its_entrys() {
        let mut other = spec("https://example.org/");
        other.id = "mine".parse().unwrap();
        assert_eq!(fields(&other), ["id"]);
    }

    #[test]
    fn a_secret_is_no_name_of_a_credential_and_is_not_repeated() {
        use super::super::CredentialName;
        assert_eq!("partner-1.prod".parse::<CredentialName>().unwrap().as_str(), "partner-1.prod");
        for bad in ["", "Bearer abc", "hunter2!", &"a".repeat(65)] {
            let error = bad.parse::<CredentialName>().unwrap_err().to_string();
            assert!(bad.is_empty() || !error.contains(bad), "{error}");
        }
    }
}
