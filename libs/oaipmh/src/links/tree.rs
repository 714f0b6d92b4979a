//! A record as a tree, which is bounded as the record is.

use std::borrow::Cow;

use resourcesync::Position;

use crate::error::BadReason;
use crate::events::{Events, Tag, Token};
use crate::limits::Limits;
use crate::scope::{Scope, split};

/// An element.
#[derive(Debug, Default)]
pub(super) struct Node<'x> {
    pub(super) namespace: Cow<'x, str>,
    pub(super) name: &'x str,
    /// Namespace, local name and value.
    attributes: Vec<(Cow<'x, str>, &'x str, Cow<'x, str>)>,
    /// The text directly within it.
    pub(super) text: String,
    pub(super) children: Vec<Node<'x>>,
}

/// The root of a document, and what is beside its tree.
pub(super) fn read<'x>(document: &'x str, limits: &'x Limits) -> Result<Node<'x>, BadReason> {
    let mut events = Events::new(document, Position::default(), Scope::default(), limits);
    // The elements that are open, outermost first.
    let mut open: Vec<Node<'x>> = Vec::new();
    loop {
        let closed = match events.next()? {
            Token::Open(tag) => {
                let node = node(&mut events, &tag)?;
                if !tag.empty {
                    open.push(node);
                    continue;
                }
                Some(node)
            }
            Token::Close(_) => open.pop(),
            Token::Text(text) => {
                if let Some(parent) = open.last_mut() {
                    parent.text.push_str(&text);
                }
                None
            }
            Token::Char(character) => {
                if let Some(parent) = open.last_mut() {
                    parent.text.push(character);
                }
                None
            }
            Token::End => return Err(BadReason::EmptyMetadata),
            _ => None,
        };
        if let Some(closed) = closed {
            match open.last_mut() {
                Some(parent) => parent.children.push(closed),
                None => return Ok(closed),
            }
        }
    }
}

fn node<'x>(events: &mut Events<'x>, tag: &Tag<'x>) -> Result<Node<'x>, BadReason> {
    let (prefix, name) = split(tag.name());
    let mut node = Node { namespace: events.namespace(prefix)?, name, ..Node::default() };
    events.attributes(tag, |events, name, value| {
        let (prefix, local) = split(name);
        let namespace = if prefix.is_empty() { Cow::Borrowed("") } else { events.namespace(prefix)? };
        node.attributes.push((namespace, local, value));
        Ok(())
    })?;
    Ok(node)
}

impl<'x> Node<'x> {
    /// The value of an attribute of this local name, blanks around it removed; `None` when it is missing or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(_, local, _)| *local == name);
        found.map(|(_, _, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The text, blanks around it removed; `None` when it is empty.
    pub(super) fn value(&self) -> Option<&str> {
        Some(self.text.trim()).filter(|text| !text.is_empty())
    }

    /// The children of this local name.
    pub(super) fn named<'n>(&'n self, name: &'n str) -> impl Iterator<Item = &'n Node<'x>> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The first child of this local name.
    pub(super) fn first(&self, name: &str) -> Option<&Node<'x>> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All elements of this local name below it, in the order of the document.
    pub(super) fn all<'n>(&'n self, name: &str) -> Vec<&'n Node<'x>> {
        let mut found = Vec::new();
        // Children are pushed in reverse, so that they come in their order.
        let mut left: Vec<&Node<'x>> = self.children.iter().rev().collect();
        while let Some(node) = left.pop() {
            if node.name == name {
                found.push(node);
            }
            left.extend(node.children.iter().rev());
        }
        found
    }
}
