//! One link, whatever it was written in.

use std::fmt;

use url::Url;

use crate::fault::{Fault, Faults};
use crate::limits::{Limits, MOST_ATTRIBUTES};

/// A link (RFC 8288, 2): context, relation, target, attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// The target, as written: it may be relative.
    pub target: String,
    /// The relations, as written, with blanks between them.
    pub rel: String,
    /// The link's context, if it is not the requested resource.
    pub anchor: Option<String>,
    /// The other attributes, in their order: names in lower case, values as written.
    pub attributes: Vec<(String, String)>,
}

impl Link {
    /// A link without attributes.
    pub fn new(target: impl Into<String>, rel: impl Into<String>) -> Self {
        Self { target: target.into(), rel: rel.into(), anchor: None, attributes: Vec::new() }
    }

    /// The same link with one more attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.attributes.push((name.to_owned(), value.into()));
        self
    }

    /// Whether the link has this relation; case does not matter (RFC 8288, 2.1.1).
    pub fn is(&self, relation: &str) -> bool {
        self.relations().any(|rel| rel.eq_ignore_ascii_case(relation))
    }

    /// Its relations.
    pub fn relations(&self) -> impl Iterator<Item = &str> {
        self.rel.split_ascii_whitespace()
    }

    /// The bytes of its texts.
    pub fn size(&self) -> usize {
        let attributes: usize = self.attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.target.len() + self.rel.len() + self.anchor.as_ref().map_or(0, String::len) + attributes
    }

    /// The first value of an attribute. `name` is in lower case.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The target, resolved against the URL of what the link was written in.
    pub fn target_at(&self, base: &Url) -> Option<Url> {
        base.join(&self.target).ok()
    }

    /// The context, resolved likewise: `base` itself if the link has no anchor.
    pub fn context_at(&self, base: &Url) -> Option<Url> {
        match &self.anchor {
            Some(anchor) => base.join(anchor).ok(),
            None => Some(base.clone()),
        }
    }

    /// Whether the link is about the resource at `base`, and not about another one that its anchor names.
    pub fn is_about(&self, base: &Url) -> bool {
        self.context_at(base).is_some_and(|context| context == *base)
    }
}

/// Writes the link as a value of a `Link` header. Attributes whose name is no token are left out, and so are line
/// breaks: nothing that a link holds can begin another header.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Browsers write these characters of a URL by number, too.
        let target = self.target.replace('<', "%3C").replace('>', "%3E").replace(['\r', '\n'], "");
        write!(f, "<{}>; rel={}", target.trim(), Quoted(&self.rel))?;
        if let Some(anchor) = &self.anchor {
            write!(f, "; anchor={}", Quoted(anchor))?;
        }
        for (name, value) in self.attributes.iter().filter(|(name, _)| is_token(name)) {
            write!(f, "; {name}={}", Quoted(value))?;
        }
        Ok(())
    }
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.replace(['\r', '\n'], " ");
        write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

/// Whether a name may stand in a header (RFC 9110, 5.6.2).
pub(crate) fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Links that were read, and what was wrong with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    /// The links, in their order.
    pub links: Vec<Link>,
    /// The tolerated faults.
    pub faults: Faults,
}

impl Links {
    /// The links that are about the resource at `base` and have this relation.
    pub fn of<'a>(&'a self, base: &'a Url, relation: &'a str) -> impl Iterator<Item = &'a Link> {
        self.links.iter().filter(move |link| link.is(relation) && link.is_about(base))
    }

    /// The bytes of all texts of the links.
    pub fn size(&self) -> usize {
        self.links.iter().map(Link::size).sum()
    }

    /// Takes a link that was read, or counts why not. Whether another one may follow.
    pub(crate) fn take(&mut self, link: Link, limits: &Limits) -> bool {
        let is_long = |text: &str| text.len() > limits.value_bytes;
        if link.rel.trim_ascii().is_empty() {
            self.faults.add(Fault::NoRelation);
        } else if is_long(&link.target) || is_long(&link.rel) || link.anchor.as_deref().is_some_and(is_long) {
            self.faults.add(Fault::TooLong);
        } else if self.links.len() >= limits.links {
            self.faults.add(Fault::TooManyLinks);
            return false;
        } else {
            let is_odd = |rel: &str| !rel.contains(':') && rel.bytes().any(|byte| byte.is_ascii_uppercase());
            if link.relations().any(is_odd) {
                self.faults.add(Fault::RelationCase);
            }
            self.links.push(link);
        }
        true
    }
}

/// Adds an attribute to a link, or counts why not.
pub(crate) fn add_attribute(
    link: &mut Link,
    name: &str,
    value: String,
    faults: &mut Faults,
    limits: &Limits,
) {
    if !is_token(name) {
        faults.add(Fault::BadAttribute);
    } else if name.len().max(value.len()) > limits.value_bytes {
        faults.add(Fault::TooLong);
    } else if link.attributes.len() >= MOST_ATTRIBUTES {
        faults.add(Fault::TooManyAttributes);
    } else {
        link.attributes.push((name.to_ascii_lowercase(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_link_holds_begins_no_other_header() {
        let link = Link::new("http://e.org/a>\r\nSet-Cookie: b", "up\r\nX: y")
            .with("ti\ntle", "x")
            .with("type", "a\"b");
        assert_eq!(link.to_string(), "<http://e.org/a%3ESet-Cookie: b>; rel=\"up  X: y\"; type=\"a\\\"b\"");
    }

    #[test]
    fn a_link_with_an_anchor_is_about_that_resource() {
        let base: Url = "http://e.org/a/b".parse().unwrap();
        let link =
            |anchor: Option<&str>| Link { anchor: anchor.map(str::to_owned), ..Link::new("c", "item") };
        assert!(link(None).is_about(&base) && link(Some("b")).is_about(&base));
        assert!(!link(Some("/b")).is_about(&base));
        assert_eq!(link(None).target_at(&base).unwrap().as_str(), "http://e.org/a/c");
    }
}
