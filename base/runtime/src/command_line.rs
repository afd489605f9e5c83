//! The command line of a program: its version, and documents that are made of it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::exit;

use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser, value_parser};
use clap_complete::{Shell, generate_to};

use crate::build_info::BuildInfo;
use crate::manual;

/// Name of the hidden command of every program that writes its manual pages and completions. `./dev
/// package` calls it.
const DOCUMENTS_COMMAND: &str = "write-documents";
/// Shells that completions are written for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Reads the command line of this process, as `Parser::parse` does. `--version` also shows the build.
/// The hidden command `write-documents` ends the process.
pub fn parse<P: Parser>(build: BuildInfo) -> P {
    // Lives as long as the process: clap takes texts that are known when it is built.
    let version: &'static str = Box::leak(build.to_string().into_boxed_str());
    let command = <P as CommandFactory>::command().long_version(version);
    let mut matches = command.subcommand(documents_command()).get_matches();
    if let Some((DOCUMENTS_COMMAND, given)) = matches.subcommand() {
        let folder = given.get_one::<PathBuf>("folder");
        let section = given.get_one::<u8>("section").copied().unwrap_or(8);
        let folder = folder.map_or_else(|| Path::new("."), PathBuf::as_path);
        let written = write_documents(<P as CommandFactory>::command(), build, section, folder);
        if let Err(error) = written {
            eprintln!("error: {}: {error}", folder.display());
            exit(1);
        }
        exit(0);
    }
    <P as FromArgMatches>::from_arg_matches_mut(&mut matches)
        .unwrap_or_else(|error| error.format(&mut <P as CommandFactory>::command()).exit())
}

fn documents_command() -> Command {
    Command::new(DOCUMENTS_COMMAND)
        .about("Write the manual pages and shell completions of this program into a folder")
        .hide(true)
        .arg(
            Arg::new("section")
                .long("section")
                .value_parser(value_parser!(u8).range(1..=9))
                .default_value("8"),
        )
        .arg(
            Arg::new("folder")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
}

/// Writes the documents of a command line that nothing was added to.
fn write_documents(
    command: Command,
    build: BuildInfo,
    section: u8,
    folder: &Path,
) -> io::Result<()> {
    let name = command.get_name().to_owned();
    for shell in SHELLS {
        generate_to(shell, &mut command.clone(), name.as_str(), folder)?;
    }
    for page in manual::pages(command, section, build.version()) {
        std::fs::write(folder.join(page.file), page.text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "metalmesh-example", version)]
    struct Example {
        #[command(subcommand)]
        _command: ExampleCommand,
    }

    #[derive(Debug, clap::Subcommand)]
    enum ExampleCommand {
        /// Work until the end.
        Run,
    }

    #[test]
    fn documents_are_pages_and_completions() {
        let folder = tempfile::tempdir().unwrap();
        let build = BuildInfo::new("1.2.3", None, None);
        write_documents(Example::command(), build, 8, folder.path()).unwrap();
        let mut files: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let expected = [
            "_metalmesh-example",
            "metalmesh-example-run.8",
            "metalmesh-example.8",
            "metalmesh-example.bash",
            "metalmesh-example.fish",
        ];
        assert_eq!(files, expected);
        for file in files {
            let text = std::fs::read_to_string(folder.path().join(&file)).unwrap();
            assert!(!text.contains(DOCUMENTS_COMMAND), "{file}");
        }
    }

    #[test]
    fn the_hidden_command_leaves_every_command_line_valid() {
        let command = Example::command().subcommand(documents_command());
        command.clone().debug_assert();
        let words = [
            "metalmesh-example",
            DOCUMENTS_COMMAND,
            "--section",
            "1",
            "/tmp",
        ];
        let matches = command.try_get_matches_from(words).unwrap();
        assert_eq!(matches.subcommand_name(), Some(DOCUMENTS_COMMAND));
    }
}
