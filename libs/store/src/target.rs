//! The address of a store: the argument of `--into`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use object_store::path::Path;

use crate::StoreError;

/// Thresher's own directory inside a local target.
pub const DATA_DIRECTORY: &str = ".thresher";

/// An address of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreTarget {
    /// A local directory: it contains the view, and Thresher's own data in `.thresher/`.
    Directory(PathBuf),
    /// A prefix of a bucket.
    S3 {
        /// The bucket.
        bucket: String,
        /// The prefix, without slashes at its ends; empty for the whole bucket.
        prefix: String,
    },
}

impl FromStr for StoreTarget {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let refuse = |why: String| Err(StoreError::Config(why));
        if text.is_empty() {
            return refuse("the store's address is empty; give a directory, or s3://bucket/prefix".into());
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Directory(PathBuf::from(text)));
        };
        if scheme != "s3" {
            return refuse(format!("{text:?} is no store; give a directory, or s3://bucket/prefix"));
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() || !bucket.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
            return refuse(format!(
                "{text:?} names no bucket; write s3://bucket/prefix (letters, digits, '-', '.', '_')"
            ));
        }
        let prefix = prefix.trim_end_matches('/');
        match Path::parse(prefix) {
            // The library would escape such a prefix, and objects would not be found under the given name.
            Ok(path) if path.as_ref() == prefix => {
                Ok(Self::S3 { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
            }
            Ok(_) => refuse(format!("the prefix in {text:?} begins with '/'; leave that out")),
            Err(error) => refuse(format!("the prefix in {text:?} cannot be used: {error}")),
        }
    }
}

impl fmt::Display for StoreTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::S3 { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_buckets_are_told_apart() {
        assert_eq!("./out".parse::<StoreTarget>().unwrap(), StoreTarget::Directory("./out".into()));
        let target: StoreTarget = "s3://harvest/a/b/".parse().unwrap();
        assert_eq!(target, StoreTarget::S3 { bucket: "harvest".into(), prefix: "a/b".into() });
        assert_eq!(target.to_string(), "s3://harvest/a/b");
        assert_eq!("s3://harvest".parse::<StoreTarget>().unwrap().to_string(), "s3://harvest");
    }

    #[test]
    fn what_is_neither_is_refused_with_what_to_write() {
        for bad in ["", "gs://b/p", "http://h/b", "s3://", "s3:///p", "s3://b/../p", "s3://b//p", "s3://a b"]
        {
            let error = bad.parse::<StoreTarget>().unwrap_err();
            assert!(matches!(error, StoreError::Config(_)), "{bad}: {error}");
        }
    }
}
