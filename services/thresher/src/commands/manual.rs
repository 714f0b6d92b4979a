//! `thresher completions` and `thresher man`: generated from the definition of the command line.

use std::io::Write as _;
use std::path::Path;

use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::command;
use crate::exit::{CommandResult, Exit};
use crate::terminal;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "thresher", &mut script);
    terminal::print(|out| out.write_all(&script))?;
    Ok(Exit::Good)
}

/// Prints the manual page, or writes one for each command into a directory.
pub(crate) fn man(directory: Option<&Path>) -> CommandResult {
    if let Some(directory) = directory {
        fs_err::create_dir_all(directory)?;
        clap_mangen::generate_to(command(), directory)?;
        return Ok(Exit::Good);
    }
    terminal::print(|out| Man::new(command()).render(out))?;
    Ok(Exit::Good)
}
