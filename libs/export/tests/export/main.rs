//! Exports of every kind, whole and interrupted.
#![allow(missing_docs)]

mod interrupted;
mod read;
mod whole;
mod world;
