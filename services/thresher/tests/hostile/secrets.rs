//! Secrets in an entry URL are refused.
