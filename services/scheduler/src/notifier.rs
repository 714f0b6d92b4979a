//! Change notifications, both ways: subscriptions at hubs, the outbox of notifications that this fleet owes others, and
//! the inboxes of others that it polls. Each is a [`periodic`] task.

pub(crate) mod channels;
mod hubs;
mod inbox;
mod inbox_poller;
mod outbox_sender;
mod outbox_writer;
pub(crate) mod periodic;
mod subscription_manager;

pub(crate) use inbox_poller::InboxPoller;
pub(crate) use outbox_sender::OutboxSender;
pub(crate) use outbox_writer::OutboxWriter;
pub(crate) use subscription_manager::SubscriptionManager;
