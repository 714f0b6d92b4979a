//! Failures of packages and members that are not taken.

use fixity::Mismatch;
use model::{Disposition, Evidence, Failure, ManifestEntry, ProblemReason, ResourceUri, UnpackTask, bytes};
use packages::PackageError;
use resourcesync::ReadError;

/// The package is not what its dump declares: another attempt receives it again.
pub(crate) fn package_mismatch(uri: &ResourceUri, what: &Mismatch) -> Failure {
    let (reason, noun, evidence) = seen(what);
    let message = format!(
        "the package {uri} has another {noun} than its dump declares: {what}. Nothing of it is taken, and it is fetched again. Either it \
         was damaged on its way, or the Source serves or lists it wrongly"
    );
    Failure { reason, message, disposition: Disposition::Retry { after: None }, evidence }
}

/// The package's bytes are not in the store.
pub(crate) fn missing(uri: &ResourceUri, why: &str) -> Failure {
    let message =
        format!("the package {uri} cannot be read where it was stored ({why}); it is fetched again");
    retried(ProblemReason::MissingBytes, message)
}

/// The package cannot be read. If its bytes match the dump's digest, fetching them again would not help.
pub(crate) fn of_package(
    uri: &ResourceUri,
    task: &UnpackTask,
    error: &PackageError,
    is_proved: bool,
) -> Failure {
    let reason = reason_of(error);
    let damaged = matches!(
        reason,
        ProblemReason::Truncated | ProblemReason::DigestMismatch | ProblemReason::LengthMismatch
    );
    let (read, taken) = match task {
        UnpackTask::Open { settled: 0, .. } => ("read", "nothing"),
        UnpackTask::Open { .. } | UnpackTask::Slice { .. } => ("read on", "no more"),
    };
    let message =
        format!("the package {uri} is not {read}: {error}. It stays stored, and {taken} of it is taken");
    if damaged && !is_proved { retried(reason, message) } else { refused(reason, message) }
}

/// The manifest cannot be read to its end.
pub(crate) fn of_manifest(uri: &ResourceUri, error: &ReadError) -> Failure {
    refused(
        ProblemReason::Malformed,
        format!("the manifest of the package {uri} cannot be read: {error}. Nothing of the package is taken"),
    )
}

/// Another attempt would end the same way.
pub(crate) fn refused(reason: ProblemReason, message: String) -> Failure {
    Failure { reason, message, disposition: Disposition::Refuse, evidence: Evidence::default() }
}

/// The member that an entry names does not exist.
pub(crate) fn no_such_member(package: &ResourceUri, entry: &ManifestEntry) -> Failure {
    let name = shown(entry.metadata.path.as_deref().unwrap_or_default());
    retried(
        ProblemReason::Malformed,
        format!(
            "{} is the member “{name}” by the manifest of {package}, and the package has no member of exactly this name. \
             The resource is asked for by itself",
            entry.loc
        ),
    )
}

/// The member exists, but cannot be taken.
pub(crate) fn of_member(package: &ResourceUri, entry: &ManifestEntry, error: &PackageError) -> Failure {
    let evidence = match error {
        PackageError::WrongCrc { declared, computed, .. } => Evidence {
            expected: Some(format!("CRC-32 {declared:08x}")),
            computed: Some(format!("CRC-32 {computed:08x}")),
            ..Evidence::default()
        },
        PackageError::WrongSize { declared, found, .. } => Evidence {
            expected: Some(bytes(*declared)),
            computed: Some(format!("it {found}")),
            ..Evidence::default()
        },
        _ => Evidence::default(),
    };
    let message = format!(
        "{} was not taken from the package {package}: {error}. The resource is asked for by itself",
        entry.loc
    );
    Failure { evidence, ..retried(reason_of(error), message) }
}

/// The member does not match its entry's declaration.
pub(crate) fn member_mismatch(package: &ResourceUri, entry: &ManifestEntry, what: &Mismatch) -> Failure {
    let (reason, noun, evidence) = seen(what);
    let name = shown(entry.metadata.path.as_deref().unwrap_or_default());
    let message = format!(
        "{} has another {noun} in the package {package} (its member “{name}”) than the manifest declares: {what}. It was not \
         taken; what was held before is kept, and the resource is asked for by itself",
        entry.loc
    );
    Failure { evidence, ..retried(reason, message) }
}

/// Problem reason for an error of a package or a member.
pub(crate) fn reason_of(error: &PackageError) -> ProblemReason {
    use PackageError as E;
    match error {
        E::NotAnArchive { .. } | E::NoManifest { .. } => ProblemReason::WrongKind,
        E::Truncated { .. } | E::BadCompression { .. } | E::BadDeflate { .. } => ProblemReason::Truncated,
        E::WrongCrc { .. } => ProblemReason::DigestMismatch,
        E::WrongSize { .. } => ProblemReason::LengthMismatch,
        E::MemberTooLarge { .. } => ProblemReason::TooLarge,
        E::AmbiguousEnd { .. }
        | E::Overlap { .. }
        | E::HeaderContradicts { .. }
        | E::TooManyMembers { .. }
        | E::DirectoryTooLarge { .. }
        | E::TooManyBytes { .. }
        | E::PackageTooDense { .. }
        | E::ExtensionTooLarge { .. }
        | E::DecoderTooLarge { .. }
        | E::MemberTooDense { .. } => ProblemReason::HostilePackage,
        _ => ProblemReason::Malformed,
    }
}

fn retried(reason: ProblemReason, message: String) -> Failure {
    let disposition = Disposition::Retry { after: None };
    Failure { reason, message, disposition, evidence: Evidence::default() }
}

fn seen(what: &Mismatch) -> (ProblemReason, &'static str, Evidence) {
    let (reason, noun, expected, computed) = match what {
        Mismatch::Length { expected, computed } => {
            (ProblemReason::LengthMismatch, "length", bytes(*expected), bytes(*computed))
        }
        Mismatch::Digest { expected, computed } => {
            (ProblemReason::DigestMismatch, "digest", expected.to_string(), computed.to_string())
        }
    };
    let evidence = Evidence { expected: Some(expected), computed: Some(computed), ..Evidence::default() };
    (reason, noun, evidence)
}

/// A name for use in a message: without control characters, and no longer than a line.
pub(crate) fn shown(name: &str) -> String {
    const LONGEST: usize = 200;
    let mut shown: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if name.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}
