//! Declarations: what is declared is mostly what was received.

use fixity::{Algorithm, Digest};
use model::{Bitstream, Declaration};
use serde::{Deserialize, Serialize};

use super::digest::{DigestForm, algorithm, code};
use super::time::Time;

/// A declaration.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DeclarationForm<'a> {
    #[serde(borrow)]
    digests: Vec<DeclaredDigest<'a>>,
    unjudged: Vec<&'a str>,
    length: Declared<u64>,
    #[serde(borrow)]
    media_type: Declared<&'a str>,
    #[serde(borrow)]
    encoding: Declared<&'a str>,
    pub(super) lastmod: Option<Time>,
}

/// A declared digest.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum DeclaredDigest<'a> {
    /// The computed one of this algorithm.
    Computed(u8),
    /// Another one.
    Other(#[serde(borrow)] DigestForm<'a>),
}

/// A declared value.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Declared<T> {
    /// None is.
    None,
    /// That of the bitstream.
    Received,
    /// Another one.
    Other(T),
}

impl<T: PartialEq> Declared<T> {
    fn of(declared: Option<T>, received: Option<T>) -> Self {
        match declared {
            None => Self::None,
            declared if declared == received => Self::Received,
            Some(declared) => Self::Other(declared),
        }
    }

    fn read(self, received: Option<T>) -> Result<Option<T>, String> {
        match self {
            Self::None => Ok(None),
            Self::Received => {
                received.map(Some).ok_or_else(|| "it declares what was not received".to_owned())
            }
            Self::Other(declared) => Ok(Some(declared)),
        }
    }
}

impl<'a> DeclarationForm<'a> {
    /// The form of a declaration; `received` is the bitstream of the same record.
    pub(super) fn of(declaration: &'a Declaration, received: Option<&'a Bitstream>) -> Self {
        let Declaration { digests, unjudged, length, media_type, encoding, lastmod } = declaration;
        let digest = |digest: &'a Digest| {
            let computed = received.and_then(|received| received.computed.get(digest.algorithm()));
            if computed == Some(digest) {
                DeclaredDigest::Computed(code(digest.algorithm()))
            } else {
                DeclaredDigest::Other(DigestForm::of(digest))
            }
        };
        Self {
            digests: digests.iter().map(digest).collect(),
            unjudged: unjudged.iter().map(String::as_str).collect(),
            length: Declared::of(*length, received.map(|received| received.computed.length())),
            media_type: Declared::of(
                media_type.as_deref(),
                received.and_then(|received| received.media_type.as_deref()),
            ),
            encoding: Declared::of(
                encoding.as_deref(),
                received.and_then(|received| received.encoding.as_deref()),
            ),
            lastmod: lastmod.map(Into::into),
        }
    }

    pub(super) fn read(self, received: Option<&Bitstream>) -> Result<Declaration, String> {
        let computed = |algorithm: Algorithm| {
            let computed = received.and_then(|received| received.computed.get(algorithm).cloned());
            computed.ok_or_else(|| format!("it declares a {algorithm} digest that was not computed"))
        };
        let digests = self.digests.into_iter().map(|declared| match declared {
            DeclaredDigest::Computed(number) => computed(algorithm(number)?),
            DeclaredDigest::Other(digest) => digest.read(),
        });
        let media_type =
            self.media_type.read(received.and_then(|received| received.media_type.as_deref()))?;
        let encoding = self.encoding.read(received.and_then(|received| received.encoding.as_deref()))?;
        Ok(Declaration {
            digests: digests.collect::<Result<_, _>>()?,
            unjudged: self.unjudged.into_iter().map(str::to_owned).collect(),
            length: self.length.read(received.map(|received| received.computed.length()))?,
            media_type: media_type.map(str::to_owned),
            encoding: encoding.map(str::to_owned),
            lastmod: Time::read_optional(self.lastmod)?,
        })
    }
}
