//! The stage of a function, by its name.

/// Functions without a stage of their own.
pub(super) const OTHER: &str = "other";
/// Kernel work that no system call of the process requested at that time.
pub(super) const KERNEL_OTHER: &str = "kernel: other";

/// The stages, and the crates of their functions.
const CRATES: [(&str, &[&str]); 17] = [
    ("reading lists", &["resourcesync", "quick_xml", "memchr", "encoding_rs", "jiff", "chrono"]),
    (
        "HTTP",
        &[
            "web",
            "reqwest",
            "hyper",
            "hyper_util",
            "hyper_rustls",
            "http",
            "http_body",
            "http_body_util",
            "httparse",
            "httpdate",
            "url",
            "idna",
            "percent_encoding",
            "tower",
            "tower_http",
            "tower_service",
            "socket2",
            "want",
        ],
    ),
    ("digests", &["fixity", "sha2", "sha1", "md5", "digest", "aws_lc_rs", "data_encoding", "block_buffer"]),
    ("scheduler", &["scheduler"]),
    ("fetcher", &["fetcher"]),
    ("verifier", &["verifier"]),
    ("process", &["pipeline", "thresher", "unpacker", "clap", "clap_builder", "indicatif"]),
    ("vocabulary", &["model", "ulid"]),
    ("messages", &["bus", "serde", "serde_core", "serde_json", "itoa", "ryu", "zmij"]),
    (
        "catalog",
        &[
            "catalog",
            "slatedb",
            "slatedb_common",
            "slatedb_txn_obj",
            "crossbeam_skiplist",
            "crossbeam_epoch",
            "lz4_flex",
            "flatbuffers",
            "moka",
            "crc32fast",
            "siphasher",
            "fail_parallel",
        ],
    ),
    ("store", &["store", "object_store", "packages", "zip", "walkdir"]),
    ("byte buffers", &["bytes"]),
    (
        "runtime",
        &[
            "tokio",
            "tokio_util",
            "mio",
            "futures",
            "futures_core",
            "futures_util",
            "async_channel",
            "event_listener",
            "atomic_waker",
            "parking_lot",
            "parking_lot_core",
            "concurrent_queue",
            "lock_api",
        ],
    ),
    (
        "telemetry",
        &["tracing", "tracing_core", "tracing_subscriber", "sharded_slab", "service", "prometheus_client"],
    ),
    ("clocks", &["fastant"]),
    ("allocator", &["__rustc", "tikv_jemallocator"]),
    ("standard library", &["core", "alloc", "std", "hashbrown", "indexmap"]),
];

/// The kernel's stages, by the names of system calls. All others concern files.
const CALLS: [(&str, &[&str]); 4] = [
    (
        "kernel: network",
        &[
            "writev",
            "readv",
            "sendto",
            "recvfrom",
            "sendmsg",
            "recvmsg",
            "connect",
            "socket",
            "shutdown",
            "accept4",
            "getsockopt",
            "setsockopt",
            "getpeername",
            "getsockname",
        ],
    ),
    (
        "kernel: waiting and waking",
        &[
            "futex",
            "epoll_wait",
            "epoll_pwait",
            "epoll_ctl",
            "poll",
            "sched_yield",
            "clock_nanosleep",
            "nanosleep",
        ],
    ),
    ("kernel: memory", &["madvise", "mmap", "munmap", "mremap", "mprotect", "brk"]),
    ("kernel: start and end", &["execve", "exit", "exit_group", "clone", "clone3", "prctl"]),
];

/// The stage of a function outside of the kernel.
pub(super) fn of(function: &str) -> &'static str {
    match crate_of(function) {
        Some(name) => CRATES
            .iter()
            .find_map(|(stage, crates)| crates.contains(&name).then_some(*stage))
            .unwrap_or(OTHER),
        None => of_c(function),
    }
}

/// Prefixes and suffixes of the kernel's entry functions; the rest is the name of the call.
const ENTRIES: [&str; 6] = ["__x64_sys_", "__arm64_sys_", "ksys_", "__sys_", "do_sys_", "do_"];

/// The stage of a kernel function, if it is an entry function.
pub(super) fn of_kernel(function: &str) -> Option<&'static str> {
    match function {
        // A write to an eventfd, not to a file: it wakes a thread.
        "eventfd_write" | "eventfd_read" => return Some("kernel: waiting and waking"),
        "vm_mmap_pgoff" => return Some("kernel: memory"),
        _ if function.contains("exc_page_fault") => return Some("kernel: memory"),
        _ => {}
    }
    let call = ENTRIES.iter().find_map(|entry| function.strip_prefix(entry))?;
    let known = CALLS.iter().find_map(|(stage, calls)| calls.contains(&call).then_some(*stage));
    // Many other functions have the last prefix, too.
    known.or_else(|| (!function.starts_with("do_")).then_some("kernel: files"))
}

/// `<&mut hyper::proto::Conn as core::fmt::Debug>::fmt` belongs to `hyper`. C has no crates.
fn crate_of(function: &str) -> Option<&str> {
    let mut name = function.trim_start_matches(['<', '&', '*', '(', '[']);
    for word in ["mut ", "dyn ", "const ", "impl "] {
        name = name.strip_prefix(word).unwrap_or(name);
    }
    let end = name.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')?;
    name[end..].starts_with("::").then(|| &name[..end])
}

fn of_c(function: &str) -> &'static str {
    let contains = |words: &[&str]| words.iter().any(|word| function.contains(word));
    if contains(&["memmove", "memcpy", "memset", "memcmp", "bcmp", "memchr"]) {
        "moving bytes"
    } else if contains(&["jem", "alloc", "tcache", "arena", "free"]) {
        "allocator"
    } else if contains(&["clock_gettime"]) {
        "clocks"
    } else if contains(&["_dl_", "dl_main", "do_lookup_x"]) {
        "start"
    } else if contains(&["sha1", "sha256", "sha512", "md5"]) {
        "digests"
    } else {
        OTHER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_belongs_to_the_crate_of_its_type() {
        assert_eq!(of("<hyper::proto::h1::Client as hyper::proto::Http1>::parse"), "HTTP");
        assert_eq!(of("<&mut serde_json::ser::Serializer<W> as serde::Serializer>::end"), "messages");
        assert_eq!(of("slatedb::format::sst::validate::{{closure}}"), "catalog");
        assert_eq!(of("core::ptr::drop_in_place<hyper::Body>"), "standard library");
        assert_eq!(of("unheard_of::f"), OTHER);
    }

    #[test]
    fn functions_of_c_go_by_their_names() {
        assert_eq!(of("__memmove_avx512_unaligned_erms"), "moving bytes");
        assert_eq!(of("_rjem_je_sdallocx_default"), "allocator");
        assert_eq!(of("__vdso_clock_gettime"), "clocks");
        assert_eq!(of("_dl_relocate_object"), "start");
        assert_eq!(of("qsort"), OTHER);
    }

    #[test]
    fn the_kernel_is_told_apart_by_what_it_was_asked_for() {
        assert_eq!(of_kernel("__x64_sys_recvfrom"), Some("kernel: network"));
        assert_eq!(of_kernel("__x64_sys_openat"), Some("kernel: files"));
        assert_eq!(of_kernel("asm_exc_page_fault"), Some("kernel: memory"));
        assert_eq!(of_kernel("ksys_write"), Some("kernel: files"));
        assert_eq!(of_kernel("eventfd_write"), Some("kernel: waiting and waking"));
        assert_eq!(of_kernel("do_writev"), Some("kernel: network"));
        assert_eq!(of_kernel("do_syscall_64"), None);
        assert_eq!(of_kernel("tcp_sendmsg"), None);
    }

    #[test]
    fn no_crate_has_two_parts() {
        let mut crates: Vec<&str> = CRATES.iter().flat_map(|(_, crates)| crates.iter().copied()).collect();
        let all = crates.len();
        crates.sort_unstable();
        crates.dedup();
        assert_eq!(crates.len(), all);
    }
}
