//! Who may read the publication of a Source, as its spec says.

use fixity::Sha256;
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

/// Which readers a Source's publication has, in a word that changes with them.
pub(crate) fn admits_by(spec: &control::Spec) -> String {
    match spec.publish {
        Publish::Off => "off".to_owned(),
        Publish::Public => "public".to_owned(),
        Publish::Tokens => "tokens".to_owned(),
        Publish::Networks => {
            let networks: Vec<String> = spec.publish_networks.iter().map(ToString::to_string).collect();
            let digest = Sha256::of(networks.join(" ").as_bytes()).to_string();
            format!("networks-{}", &digest[..12])
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

    #[test]
    fn the_word_for_the_readers_changes_with_them() {
        let mut spec = control::Spec::new("https://example.org/".parse().unwrap());
        let mut words = std::collections::BTreeSet::new();
        for (publish, networks) in [
            (Publish::Public, &[][..]),
            (Publish::Tokens, &[]),
            (Publish::Networks, &["10.2.0.0/16"]),
            (Publish::Networks, &["10.2.0.0/16", "10.3.0.0/16"]),
        ] {
            spec.publish = publish;
            spec.publish_networks = networks.iter().map(|text| text.parse().unwrap()).collect();
            assert!(words.insert(admits_by(&spec)), "{words:?}");
            spec.title = Some("Another title".to_owned());
            assert!(words.contains(&admits_by(&spec)));
        }
    }
}
