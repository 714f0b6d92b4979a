//! Names that a system, a shell or a program obeys, and that must not come from a Source. This is the only list of
//! them, for views, trees and tars alike.
//!
//! | danger | where | what is written instead |
//! |---|---|---|
//! | a first dot: `.git`, `.envrc`, `.vscode`, `.htaccess`, `.DS_Store`, `.` and `..` | everywhere | `^2e` |
//! | a dot or space at the end, which is dropped, so that two names become one | Windows | `^2e`, `^20` |
//! | a colon: a stream beside the file (`name:stream`), or a separator | Windows, macOS | `^3a` |
//! | `< > " / \ \| ? *`, control characters | Windows | `^` and two digits |
//! | device names, with any extension: `con`, `nul`, `com1`, … | Windows | the first letter as `^` and two digits |
//! | `desktop.ini`, `autorun.inf`, which tell the system what to show or run | Windows | the same |
//! | `~` before a digit: the short name of another file (`GIT~1` is `.git`) | Windows | `^7e` |
//! | non-ASCII letters: several Unicode forms of a name, or ignored characters | macOS | `^` and two digits per byte |
//! | names that differ only in case | Windows, macOS | the mark `^u`, by the rules of collisions |

/// Which names are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hazards {
    /// All of the list above.
    All,
    /// The first list: neither first dots nor short names, nor files that tell Windows what to run.
    Former,
}

/// Whether the byte at an offset of a segment has to be escaped.
pub(super) fn is_hazard(segment: &[u8], at: usize, hazards: Hazards) -> bool {
    let byte = segment[at];
    let is_last = at + 1 == segment.len();
    if !stands(byte) || (byte == b'.' && is_last) {
        return true;
    }
    let is_listed = hazards == Hazards::All;
    match byte {
        b'.' => is_listed && at == 0,
        b'~' => is_listed && segment.get(at + 1).is_some_and(u8::is_ascii_digit),
        _ => at == 0 && (is_device(segment) || (is_listed && is_obeyed(segment))),
    }
}

/// Whether a byte is written unescaped: printable ASCII that no common file system reserves.
fn stands(byte: u8) -> bool {
    byte.is_ascii_graphic() && !br#"<>:"/\|?*^#"#.contains(&byte)
}

/// Names that Windows keeps for devices, with any extension.
fn is_device(segment: &[u8]) -> bool {
    let stem = segment.split(|byte| *byte == b'.').next().unwrap_or_default().to_ascii_lowercase();
    match stem.as_slice() {
        b"con" | b"prn" | b"aux" | b"nul" | b"conin$" | b"conout$" => true,
        [b'c', b'o', b'm', n] | [b'l', b'p', b't', n] => n.is_ascii_digit(),
        _ => false,
    }
}

/// Files that tell Windows what to show or run.
fn is_obeyed(segment: &[u8]) -> bool {
    [b"desktop.ini".as_slice(), b"autorun.inf"].iter().any(|name| segment.eq_ignore_ascii_case(name))
}
