//! The subscriptions to a Source's channels, and their state at the hubs.

use api::Subscription;
use jiff::Timestamp;
use maud::{Markup, html};

use super::tell;

/// The section of a Source's page. It is empty where the fleet subscribes to nothing.
pub(super) fn section(all: &[Subscription], now: Timestamp) -> Markup {
    html! {
        @if !all.is_empty() {
            section aria-labelledby="channels" {
                h2 #channels { "Notifications" }
                div.wide tabindex="0" role="region" aria-label="Notifications" {
                    table {
                        caption { "Subscriptions" }
                        thead { tr {
                            th scope="col" { "Topic" }
                            th scope="col" { "Hub" }
                            th scope="col" { "State" }
                            th scope="col" { "Last delivery" }
                            th.number scope="col" { "Accepted" }
                            th.number scope="col" { "Dropped" }
                            th.number scope="col" { "Missed" }
                        } }
                        tbody { @for one in all { tr {
                            th scope="row" { (one.topic) }
                            td { (one.hub.as_deref().unwrap_or("none")) }
                            td { (standing(one, now)) }
                            td { (tell::ago_or(now, one.delivered_at, "never")) }
                            td.number { (tell::count(one.accepted)) }
                            td.number { (tell::count(one.dropped)) }
                            td.number { (tell::count(one.missed)) }
                        } } }
                    }
                }
            }
        }
    }
}

fn standing(one: &Subscription, now: Timestamp) -> Markup {
    let (gravity, words) = match &*one.state {
        "active" if one.last_error.is_none() => ("good", "active"),
        "active" => ("doubtful", "active"),
        "requested" => ("doubtful", "requested"),
        "pending" => ("doubtful", "pending"),
        "expired" => ("bad", "expired"),
        "denied" => ("bad", "denied"),
        "unsubscribing" => ("open", "unsubscribing"),
        _ => ("open", "unknown to this version"),
    };
    html! {
        span class={ "state " (gravity) } { (words) }
        @if let Some(until) = one.until.filter(|_| one.state == "active") { ", expires " (tell::ago(now, until)) " unless renewed" }
        @if let Some(trouble) = &one.last_error { p.error { (trouble) } }
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
