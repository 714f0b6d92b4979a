//! Who may read the publication of a Source, as its spec says.

use model::Publish;

use crate::access::Tokens;
use crate::readers::Readers;

/// The readers of a Source's publication; none if it is not published.
pub(crate) fn readers(spec: &control::Spec, tokens: Option<&Tokens>) -> Option<Readers> {
    match spec.publish {
        Publish::Off => None,
        Publish::Public => Some(Readers::default()),
        Publish::Tokens => Some(Readers { tokens: tokens.cloned(), networks: None }),
        Publish::Networks => {
            Some(Readers { tokens: None, networks: Some(spec.publish_networks.clone().into()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_token_is_closed_where_no_token_is_known() {
        let mut spec = control::Spec::new("https://example.org/".parse().unwrap());
        assert!(readers(&spec, None).is_none());
        spec.publish = Publish::Tokens;
        let tokens = Tokens::none();
        assert!(readers(&spec, Some(&tokens)).unwrap().tokens.is_some());
        spec.publish = Publish::Networks;
        spec.publish_networks = vec!["10.2.0.0/16".parse().unwrap()];
        assert_eq!(readers(&spec, Some(&tokens)).unwrap().networks.unwrap().len(), 1);
    }
}
