//! Fields that have another name now. An old one is refused with the new one's name.

/// The old and the new name of each field.
const RENAMED: [(&str, &str); 41] = [
    ("frame", "service"),
    ("lane_groups", "origin_groups"),
    ("earlier_keys", "previous_keys"),
    ("patience_seconds", "retry_timeout_seconds"),
    ("jobs_at_a_time", "max_concurrent_jobs"),
    ("small_bytes", "pack_threshold_bytes"),
    ("megabytes_per_stage", "max_megabytes_per_stream"),
    ("sources_at_a_time", "max_concurrent_runs"),
    ("max_concurrent_sources", "max_concurrent_runs"),
    ("origins_at_a_time", "max_open_origins"),
    ("sources_shown", "metrics_max_sources"),
    ("freshness_grace_seconds", "stale_after_seconds"),
    ("hint_pause_seconds", "hint_debounce_seconds"),
    ("backup_poll_seconds", "fallback_poll_seconds"),
    ("job_seconds", "max_job_seconds"),
    ("largest_bytes", "max_body_bytes"),
    ("resumes", "max_resumes"),
    ("package_ranges_at_a_time", "max_package_ranges"),
    ("opened_at_a_time", "max_open_packages"),
    ("members", "max_members"),
    ("member_bytes", "max_member_bytes"),
    ("directory_bytes", "max_directory_bytes"),
    ("inflated_bytes", "max_inflated_bytes"),
    ("decoder_bytes", "max_decoder_bytes"),
    ("ratio", "max_ratio"),
    ("head_seconds", "header_timeout_seconds"),
    ("body_seconds", "body_timeout_seconds"),
    ("catalogs_open", "max_open_catalogs"),
    ("session_seconds", "session_ttl_seconds"),
    ("idempotency_seconds", "idempotency_ttl_seconds"),
    ("without_tokens", "allow_anonymous"),
    ("push_at_a_time", "push_max_in_flight"),
    ("most_per_sender", "max_per_sender"),
    ("jobs_of_a_source_at_a_time", "max_jobs_per_source"),
    ("jobs_of_slow_origins_at_a_time", "max_jobs_of_slow_origins"),
    ("largest_package_bytes", "max_package_bytes"),
    ("package_seconds", "max_package_seconds"),
    ("challenge_rest_seconds", "challenge_cooldown_seconds"),
    ("least_bytes_per_minute", "min_bytes_per_minute"),
    ("hint_pause_most_seconds", "hint_debounce_max_seconds"),
    ("notification_patience_seconds", "notification_timeout_seconds"),
];

/// The parser's message on a field, with the new name if that explains it.
pub(super) fn explained(why: String) -> String {
    let unknown = why.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let renamed = RENAMED.iter().find(|(old, _)| Some(*old) == unknown);
    match renamed {
        Some((old, new)) => format!("`{old}` is named `{new}` now"),
        None => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_old_name_leads_to_a_name_that_is_not_old_itself() {
        for (old, new) in RENAMED {
            let message = format!("unknown field `{old}`, expected `{new}`");
            assert_eq!(explained(message), format!("`{old}` is named `{new}` now"));
            let again = format!("unknown field `{new}`");
            assert_eq!(explained(again.clone()), again);
        }
    }
}
