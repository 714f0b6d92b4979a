//! A lastmod is no time of change.
