//! The library from the outside: a catalog, what is published of it, and what a reader finds.

mod incremental;
mod killed;
mod reader;
mod whole;
mod world;
