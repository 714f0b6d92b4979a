//! Hints of senders without a token, unsigned deliveries, topics and inboxes.
