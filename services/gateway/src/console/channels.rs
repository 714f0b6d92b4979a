//! The subscriptions to a Source's channels, and their state at the hubs.

use api::Subscription;
use jiff::Timestamp;
use maud::{Markup, html};

use super::layout::Column::{Number, Text};
use super::{format, layout};

/// The section of a Source's page. It is empty where the fleet subscribes to nothing.
pub(super) fn section(all: &[Subscription], now: Timestamp) -> Markup {
    if all.is_empty() {
        return html! {};
    }
    let columns = [
        Text("Topic"),
        Text("Hub"),
        Text("State"),
        Text("Last delivery"),
        Number("Accepted"),
        Number("Dropped"),
        Number("Missed"),
    ];
    let row = |one: &Subscription| {
        html! {
            th scope="row" { (one.topic) }
            td { (one.hub.as_deref().unwrap_or("none")) }
            td { (state(one, now)) }
            td { (format::ago_or(now, one.delivered_at, "never")) }
            td.number { (format::count(one.accepted)) }
            td.number { (format::count(one.dropped)) }
            td.number { (format::count(one.missed)) }
        }
    };
    html! {
        section aria-labelledby="channels" {
            h2 #channels { "Notifications" }
            (layout::table("Notifications", "Subscriptions", &columns, all.iter().map(row)))
        }
    }
}

fn state(one: &Subscription, now: Timestamp) -> Markup {
    let (severity, label) = match &*one.state {
        state @ "active" if one.last_error.is_none() => ("good", state),
        state @ ("active" | "requested" | "pending") => ("doubtful", state),
        state @ ("expired" | "denied") => ("bad", state),
        state @ "unsubscribing" => ("open", state),
        _ => ("open", "unknown to this version"),
    };
    html! {
        span class={ "state " (severity) } { (label) }
        @if let Some(until) = one.until.filter(|_| one.state == "active") { ", expires " (format::ago(now, until)) " unless renewed" }
        @if let Some(error) = &one.last_error { p.error { (error) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_shown_with_its_state_and_what_a_stranger_says_is_text() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let told = serde_json::json!({
            "topic": "https://example.org/<b>", "set": "s", "hub": "https://hub.example/", "state": "denied",
            "last_error": "its hub says no: <script>", "next_at": now, "accepted": 1234, "dropped": 0, "missed": 3
        });
        let one: Subscription = serde_json::from_value(told).unwrap();
        let page = section(&[one], now).into_string();
        for part in ["https://example.org/&lt;b&gt;", "denied", "&lt;script&gt;", "1\u{202f}234", "never"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert_eq!(section(&[], now).into_string(), "");
    }
}
