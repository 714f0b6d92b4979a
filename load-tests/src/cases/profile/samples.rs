//! Samples of the processors, taken by perf many times a second.

use std::collections::BTreeMap;

use super::stage;

/// The samples by place.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Samples {
    pub(super) count: u64,
    /// Samples by the stage of the innermost function; in the kernel by the requested work.
    pub(super) by_stage: BTreeMap<String, u64>,
}

impl Samples {
    /// Parses a `perf script`: a block of lines for each sample, the innermost function first, empty lines
    /// between them.
    pub(super) fn of(script: &str) -> Self {
        let mut samples = Self::default();
        let mut frames: Vec<(&str, &str)> = Vec::new();
        for line in script.lines().chain([""]) {
            match frame(line) {
                Some(frame) => frames.push(frame),
                None if frames.is_empty() => {}
                None => {
                    samples.count += 1;
                    *samples.by_stage.entry(stage_of(&frames).to_owned()).or_default() += 1;
                    frames.clear();
                }
            }
        }
        samples
    }
}

/// `  <address> <function> (<program or library>)`
fn frame(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.trim().split_once(' ')?;
    let (function, object) = rest.rsplit_once(" (")?;
    Some((function, object.trim_end_matches(')')))
}

fn stage_of(frames: &[(&str, &str)]) -> &'static str {
    let Some((function, object)) = frames.first() else { return stage::OTHER };
    if !is_kernel(object) {
        return stage::of(function);
    }
    let mut inside = frames.iter().take_while(|(_, object)| is_kernel(object));
    inside.find_map(|(function, _)| stage::of_kernel(function)).unwrap_or(stage::KERNEL_OTHER)
}

fn is_kernel(object: &str) -> bool {
    object.starts_with("[kernel") || object.ends_with(".ko")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_belongs_to_its_innermost_function_and_in_the_kernel_to_what_was_asked_for() {
        let script = "\n\tffff1 copy_page ([kernel.kallsyms])\n\tffff2 tcp_sendmsg ([kernel.kallsyms])\n\
            \tffff3 __x64_sys_writev ([kernel.kallsyms])\n\t  1a hyper::send (/bin/thresher)\n\n\n\
            \t  2b scheduler::plan::plan (/bin/thresher)\n\t  2c tokio::run (/bin/thresher)\n\n\
            \tffff4 do_fault ([kernel.kallsyms])\n\tffff5 asm_exc_page_fault ([kernel.kallsyms])\n\t  3 x (/bin/thresher)\n\n\
            \tffff6 sysvec_apic_timer_interrupt ([kernel.kallsyms])\n";
        let by_stage = ["kernel: network", "scheduler", "kernel: memory", stage::KERNEL_OTHER];
        let by_stage = by_stage.map(|stage| (stage.to_owned(), 1));
        assert_eq!(Samples::of(script), Samples { count: 4, by_stage: by_stage.into() });
    }
}
