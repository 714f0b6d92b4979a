//! Bodies without end, by drips, or larger than allowed.
