//! Settles deliveries of the in-process bus.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::Shared;
use super::stage::Key;
use crate::{BusError, Filter, Receipt};

/// Settles one delivery.
#[derive(Debug)]
pub(super) struct MemoryReceipt {
    shared: Arc<Shared>,
    filter: Filter,
    key: Key,
}

impl MemoryReceipt {
    pub(super) fn new(shared: Arc<Shared>, filter: Filter, key: Key) -> Self {
        Self { shared, filter, key }
    }
}

#[async_trait]
impl Receipt for MemoryReceipt {
    async fn ack(&self) -> Result<(), BusError> {
        self.shared.change(&self.filter, |stage| stage.settle(self.key));
        Ok(())
    }

    async fn nak(&self, delay: Duration) -> Result<(), BusError> {
        self.shared.change(&self.filter, |stage| stage.put_back(self.key, Instant::now(), delay));
        Ok(())
    }

    async fn progress(&self) -> Result<(), BusError> {
        self.shared.change(&self.filter, |stage| stage.progress(self.key, Instant::now()));
        Ok(())
    }

    async fn term(&self) -> Result<(), BusError> {
        self.shared.change(&self.filter, |stage| stage.settle(self.key));
        Ok(())
    }

    fn abandon(&self) {
        self.shared.change(&self.filter, |stage| stage.put_back(self.key, Instant::now(), Duration::ZERO));
    }
}
