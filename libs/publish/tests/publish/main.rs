//! The library from the outside: a catalog, what is published of it, and what a reader finds.

mod change_dumps;
mod damaged;
mod deletions;
mod dumps;
mod files;
mod files_watched;
mod folder;
mod guarded;
mod incremental;
mod killed;
mod meanwhile;
mod oai;
mod part_sets;
mod past;
mod reader;
mod readers;
mod takedown;
mod whole;
mod world;
