//! File names that would be programs or settings where they are written.
