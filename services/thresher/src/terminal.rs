//! Standard output and standard error: the only way to print.
//!
//! Texts of Sources are cleaned here, so that none can colour a terminal, set its title or forge a line. When
//! the reader of standard output has gone, as `head` does, writing fails with an error that [`is_closed`]
//! recognizes. The command then ends silently, with the status that shells use for it.

use std::fmt::Arguments;
use std::io::{self, BufWriter, ErrorKind, Stdout, Write};
use std::process::ExitCode;

use comfy_table::{Table, presets};
use model::{displayed, displayed_lines};
use serde::Serialize;

/// 128 and the number of SIGPIPE.
const READER_GONE: u8 = 141;

/// Prints one line to standard output; line ends in it are replaced. May fail.
macro_rules! say {
    ($($what:tt)*) => { $crate::terminal::line(format_args!($($what)*)) };
}

/// Prints one line to standard error; line ends in it are replaced. Cannot fail: a command continues without
/// its remarks.
macro_rules! note {
    ($($what:tt)*) => { $crate::terminal::remark(format_args!($($what)*)) };
}

pub(crate) use {note, say};

/// The reader of standard output has gone.
#[derive(Debug, thiserror::Error)]
#[error("the reader of standard output has gone")]
struct ReaderGone;

/// Standard output for bytes that are not changed. Buffered: [`Out::finish`] writes the rest.
#[derive(Debug)]
pub(crate) struct Out(BufWriter<Stdout>);

/// Prints one line to standard output.
pub(crate) fn line(what: Arguments<'_>) -> io::Result<()> {
    print(|out| out.line(&what.to_string()))
}

/// Prints a text of several lines to standard output, as it ends. The parts of its lines were cleaned before.
pub(crate) fn text(what: &str) -> io::Result<()> {
    print(|out| out.text(what))
}

/// Prints a value as one line of JSON to standard output.
pub(crate) fn json(what: &impl Serialize) -> io::Result<()> {
    print(|out| out.json(what))
}

/// Prints to standard output.
pub(crate) fn print(write: impl FnOnce(&mut Out) -> io::Result<()>) -> io::Result<()> {
    let mut out = Out::new();
    write(&mut out)?;
    out.finish()
}

/// A table without lines between its cells.
pub(crate) fn table<const COLUMNS: usize>(header: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

/// A value as one line of JSON. Control characters are escaped as in JSON, so nothing is lost.
pub(crate) fn json_line(what: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(what)?;
    let mut line = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if resourcesync::steers_display(character) {
            // All of these have one code unit.
            line.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    Ok(line)
}

/// Prints one line to standard error.
pub(crate) fn remark(what: Arguments<'_>) {
    // Where standard error is closed, a remark is dropped.
    let _ = writeln!(io::stderr(), "{}", displayed(&what.to_string()));
}

/// Whether an error means that the reader of standard output has gone.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.get_ref().is_some_and(|inner| inner.is::<ReaderGone>()))
}

/// The exit code when the reader has gone.
pub(crate) fn closed() -> ExitCode {
    ExitCode::from(READER_GONE)
}

/// The error of a writer to standard output without [`Out`], in the form that [`is_closed`] recognizes.
pub(crate) fn of_stdout(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => io::Error::new(ErrorKind::BrokenPipe, ReaderGone),
        _ => error,
    }
}

impl Out {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(io::stdout()))
    }

    /// One line; line ends in it are replaced.
    pub(crate) fn line(&mut self, what: &str) -> io::Result<()> {
        writeln!(self, "{}", displayed(what))
    }

    /// A text of several lines, as it ends.
    pub(crate) fn text(&mut self, what: &str) -> io::Result<()> {
        self.write_all(displayed_lines(what).as_bytes())
    }

    /// A value as one line of JSON.
    pub(crate) fn json(&mut self, what: &impl Serialize) -> io::Result<()> {
        self.write_all(json_line(what)?.as_bytes())
    }

    /// A value as one line of JSON, or as lines of text.
    pub(crate) fn json_or_lines(
        &mut self,
        json: bool,
        value: &impl Serialize,
        lines: impl FnOnce() -> Vec<String>,
    ) -> io::Result<()> {
        if json { self.json(value) } else { lines().iter().try_for_each(|line| self.line(line)) }
    }

    /// Writes the rest.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(of_stdout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(of_stdout)
    }
}
