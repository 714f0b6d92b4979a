//! The commands, one file each.

pub(crate) mod apply;
pub(crate) mod audit;
pub(crate) mod cat;
pub(crate) mod demo;
pub(crate) mod discover;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod gc;
pub(crate) mod ignore;
pub(crate) mod inspect;
pub(crate) mod ls;
pub(crate) mod manual;
pub(crate) mod plan;
pub(crate) mod problems;
pub(crate) mod publish;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod retry;
pub(crate) mod run;
pub(crate) mod scrub;
mod select;
pub(crate) mod serve;
pub(crate) mod source;
mod source_move;
mod source_set;
mod source_switch;
pub(crate) mod sync;
