use std::fmt;

use serde::Serialize;

/// A position in a document, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Position {
    /// The line, counted from 1.
    pub line: u64,
    /// The byte within the line, counted from 1.
    pub column: u64,
    /// The byte within the document, counted from 0.
    pub byte: u64,
}

impl Default for Position {
    fn default() -> Self {
        Self { line: 1, column: 1, byte: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}
