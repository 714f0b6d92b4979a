//! Resources of origins foreign to the Source, and resources that several Sources hold.
