//! Names that resolve to the internal network.
