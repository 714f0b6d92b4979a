//! The processes of the fleet, as far as the control store knows them.

use std::sync::Arc;

use control::{Member, Role};
use jiff::Timestamp;
use maud::{Markup, html};

use super::overview::Overview;
use crate::console::format;
use crate::console::layout;
use crate::console::layout::Column::{Number, Text};
use crate::state::Gateway;

/// Processes on the page.
const SHOWN: usize = 30;

/// The schedulers, the fetchers, and the gateway that serves this page.
pub(super) fn section(gateway: &Gateway, overview: &Overview, now: Timestamp) -> Markup {
    let members: Vec<Arc<Member>> =
        gateway.views.members.all().into_iter().map(|member| member.value).collect();
    let count = |role| members.iter().filter(|member| member.role == role).count() as u64;
    let waits: Vec<String> = gateway.readiness.waiting_for().iter().map(ToString::to_string).collect();
    let this = html! {
        th scope="row" { "this gateway" }
        td { "gateway" }
        td { (env!("CARGO_PKG_VERSION")) }
        td { @if waits.is_empty() { "ready" } @else { "not ready: " (waits.join("; ")) } }
        td { (format::ago(now, gateway.started_at)) }
        td.number { "–" }
    };
    // Schedulers come first: places are theirs.
    let mut shown = members.clone();
    shown.sort_by(|a, b| (rank(a.role), &a.id).cmp(&(rank(b.role), &b.id)));
    let rows = shown.iter().take(SHOWN).map(|member| row(member, overview, now));
    let columns = [
        Text("Process"),
        Text("Service"),
        Text("Version"),
        Text("State"),
        Text("Started"),
        Number("Active runs"),
    ];
    let caption = format!("Processes: {} of {}", members.len().min(SHOWN) + 1, members.len() + 1);
    let places: u64 = overview.places.values().sum();
    html! {
        section aria-labelledby="services" {
            h2 #services { "Services" }
            p {
                (format::counted(count(Role::Scheduler), "scheduler", "schedulers")) " and "
                (format::counted(count(Role::Fetcher), "fetcher", "fetchers")) " send heartbeats. "
                (format::counted(places, "place is", "places are")) " in use at schedulers."
            }
            @if count(Role::Scheduler) == 0 { p.error { "No scheduler is alive, so no run makes progress." } }
            @if count(Role::Fetcher) == 0 { p.error { "No fetcher is alive, so no resource is fetched." } }
            (layout::table("Services", &caption, &columns, std::iter::once(this).chain(rows)))
            p.hint {
                "Unpackers, verifiers and other gateways send no heartbeats to the control store, so this page does not "
                "know them. Their own " code { "/readyz" } " and metrics show their readiness, and the metrics of "
                "schedulers show the memory that places use."
            }
        }
    }
}

fn row(member: &Member, overview: &Overview, now: Timestamp) -> Markup {
    html! {
        th scope="row" { (member.id) }
        td { (member.role.as_str()) }
        td { (member.version) }
        td { "alive" }
        td { (format::ago(now, member.since)) }
        td.number { @match member.role {
            Role::Scheduler => (format::count(overview.places.get(&member.id).copied().unwrap_or(0))),
            Role::Fetcher | Role::Publisher => "–",
        } }
    }
}

fn rank(role: Role) -> u8 {
    match role {
        Role::Scheduler => 0,
        Role::Fetcher => 1,
        Role::Publisher => 2,
    }
}
