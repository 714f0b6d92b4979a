//! What the last scan left: its rows, and those that changed.

use std::ops::Range;
use std::sync::Arc;

use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _, future};

use super::row::Row;
use super::rows::Rows;
use super::streams::rows;
use crate::PublishError;

/// What the last scan left. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Last {
    pub(super) rows: Rows,
    /// How many files it found.
    pub(super) files: u64,
    /// All rows with a change of this number or a later one.
    recent: Option<(u64, Arc<[Row]>)>,
}

impl Last {
    /// `recent` are all rows with a change from `published` on, if they are held.
    pub(super) fn new(rows: Rows, files: u64, published: u64, recent: Option<Vec<Row>>) -> Self {
        Self { rows, files, recent: recent.map(|rows| (published, rows.into())) }
    }

    /// The rows with changes of these numbers. Most often they are in memory, or there are none: all rows of a large
    /// directory take as long to read as to scan its changes.
    pub(super) fn changes(&self, numbers: Range<u64>) -> BoxStream<'static, Result<Row, PublishError>> {
        let start = numbers.start;
        if self.rows.head.changed < start {
            return stream::empty().boxed();
        }
        let is_told = move |row: &Row| numbers.contains(&row.changed);
        match self.recent.clone() {
            Some((from, recent)) if from <= start => {
                let rows = (0..recent.len()).map(move |at| recent[at].clone());
                stream::iter(rows.filter(is_told).map(Ok)).boxed()
            }
            _ => rows(self.rows.read()).try_filter(move |row| future::ready(is_told(row))).boxed(),
        }
    }
}
