//! The gateway's edge: connections, hosts, wrong tokens, event streams.
