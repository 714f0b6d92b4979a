//! A document as nodes with properties, for all forms of JSON-LD.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::context::Context;

/// The most nodes of a document that are read.
const MOST_NODES: usize = 256;

/// A document: its topmost nodes, and the nodes by id.
pub(crate) struct Document<'a> {
    nodes: Vec<Node<'a>>,
    by_id: BTreeMap<&'a str, usize>,
}

/// A node: an object of the document, with its context.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    members: &'a Map<String, Value>,
    context: Rc<Context>,
}

/// A value of a property.
#[derive(Debug, Clone)]
pub(crate) enum Item<'a> {
    Node(Node<'a>),
    Text(&'a str),
}

impl<'a> Document<'a> {
    /// Parses a document. One without a context is read as Activity Streams 2.
    pub(crate) fn of(value: &'a Value) -> Self {
        let mut nodes = Vec::new();
        for value in items(value) {
            let Value::Object(members) = value else { continue };
            let root = if members.contains_key("@context") {
                Context::default()
            } else {
                Context::activity_streams()
            };
            gather(Node::of(members, &Rc::new(root)), &mut nodes);
        }
        let mut by_id = BTreeMap::new();
        for (at, node) in nodes.iter().enumerate() {
            if let Some(id) = node.id() {
                by_id.entry(id).or_insert(at);
            }
        }
        Self { nodes, by_id }
    }

    /// Its topmost nodes.
    pub(crate) fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// The same node with all its properties, if this is only a reference to it.
    pub(crate) fn whole(&self, node: &Node<'a>) -> Node<'a> {
        let elsewhere = node.id().filter(|_| node.is_reference()).and_then(|id| self.by_id.get(id));
        elsewhere.map_or_else(|| node.clone(), |at| self.nodes[*at].clone())
    }
}

/// The node, or those of its graph.
fn gather<'a>(node: Node<'a>, nodes: &mut Vec<Node<'a>>) {
    let graph: Vec<&Value> = node.raw("@graph").flat_map(items).collect();
    for value in graph {
        if let Value::Object(members) = value {
            gather(Node::of(members, &node.context), nodes);
        }
    }
    if node.says_something() && nodes.len() < MOST_NODES {
        nodes.push(node);
    }
}

/// The items of an array, of a list or of a set; otherwise the value itself.
fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(self::items).collect(),
        Value::Object(members) => match members.get("@list").or_else(|| members.get("@set")) {
            Some(held) => self::items(held),
            None => vec![value],
        },
        Value::Null => Vec::new(),
        _ => vec![value],
    }
}

impl<'a> Node<'a> {
    fn of(members: &'a Map<String, Value>, around: &Rc<Context>) -> Self {
        let context = match members.get("@context") {
            Some(said) => Rc::new(around.with(said)),
            None => Rc::clone(around),
        };
        Self { members, context }
    }

    /// The values of all members whose name expands to `iri`.
    fn raw(&self, iri: &str) -> impl Iterator<Item = &'a Value> {
        self.members.iter().filter(move |(name, _)| self.context.expand(name) == iri).map(|(_, value)| value)
    }

    /// Its id, as written.
    pub(crate) fn id(&self) -> Option<&'a str> {
        self.raw("@id").find_map(Value::as_str)
    }

    /// Its types, as IRIs if they are known.
    pub(crate) fn types(&self) -> Vec<String> {
        let types = self.raw("@type").flat_map(items).filter_map(Value::as_str);
        types.map(|name| self.context.expand(name).into_owned()).collect()
    }

    /// The values of a property.
    ///
    /// One by one: each may have a context of its own.
    pub(crate) fn values(&self, property: &str) -> impl Iterator<Item = Item<'a>> {
        self.raw(property).flat_map(items).filter_map(|value| self.item(value))
    }

    fn item(&self, value: &'a Value) -> Option<Item<'a>> {
        match value {
            Value::String(text) => Some(Item::Text(text)),
            Value::Object(members) => match members.get("@value") {
                Some(literal) => literal.as_str().map(Item::Text),
                None => Some(Item::Node(Node::of(members, &self.context))),
            },
            _ => None,
        }
    }

    /// Whether it is only a reference to a node.
    fn is_reference(&self) -> bool {
        self.members.keys().all(|name| matches!(&*self.context.expand(name), "@id" | "@context"))
    }

    /// Whether it has anything beside its id.
    fn says_something(&self) -> bool {
        let says = |name: &String| !matches!(&*self.context.expand(name), "@id" | "@context" | "@graph");
        self.members.iter().any(|(name, value)| says(name) && !value.is_null())
    }
}

impl<'a> Item<'a> {
    /// The name of a value: a node's id, or the text itself.
    pub(crate) fn name(&self) -> Option<&'a str> {
        match self {
            Self::Node(node) => node.id(),
            Self::Text(text) => Some(text),
        }
    }
}
