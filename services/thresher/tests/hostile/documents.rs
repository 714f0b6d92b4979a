//! Capabilities and entries that are not known are no failure.
