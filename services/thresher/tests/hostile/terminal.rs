//! Control characters of a Source never reach a terminal.
