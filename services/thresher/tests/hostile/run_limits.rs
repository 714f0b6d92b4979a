//! Indexes without end, lists without end, and lists that inflate without end.
