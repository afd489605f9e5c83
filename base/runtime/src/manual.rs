//! Manual pages of a command line, in the macros of man(7).
//!
//! A program has a page, and each of its commands another one, in which the commands below are sections.

use clap::{Arg, Command};

/// A manual page.
#[derive(Debug)]
pub(crate) struct ManualPage {
    /// Name of its file, such as `metalmesh-core.8`.
    pub(crate) file: String,
    pub(crate) text: String,
}

/// The pages of a command line, that of the program first.
pub(crate) fn pages(mut command: Command, section: u8, version: &str) -> Vec<ManualPage> {
    command.build();
    let name = command.get_name().to_owned();
    let footer = format!("metalmesh {version}");
    let mut pages = vec![program_page(&command, section, &footer)];
    for below in visible(&command) {
        let title = format!("{name}-{}", below.get_name());
        let mut text = head(&title, section, &footer, below);
        describe(&mut text, below, "SH");
        let has_globals = command.get_arguments().any(Arg::is_global_set);
        sections(&mut text, below);
        if has_globals {
            heading(&mut text, "SH", "OPTIONS OF EVERY COMMAND");
            text.push_str(&format!("See {}({section}).\n", escaped(&name)));
        }
        see_also(&mut text, std::slice::from_ref(&name), section);
        let file = format!("{title}.{section}");
        pages.push(ManualPage { file, text });
    }
    pages
}

fn program_page(command: &Command, section: u8, footer: &str) -> ManualPage {
    let name = command.get_name();
    let mut text = head(name, section, footer, command);
    describe(&mut text, command, "SH");
    options(&mut text, command, "SH", |_| true);
    let commands: Vec<&Command> = visible(command).collect();
    if !commands.is_empty() {
        heading(&mut text, "SH", "COMMANDS");
    }
    for below in &commands {
        text.push_str(&format!(".TP\n\\fB{}\\fR\n", escaped(below.get_name())));
        paragraphs(&mut text, &about(below));
    }
    let pages: Vec<String> = commands
        .iter()
        .map(|below| format!("{name}-{}", below.get_name()))
        .collect();
    see_also(&mut text, &pages, section);
    let file = format!("{name}.{section}");
    ManualPage { file, text }
}

/// The options of a command, and its commands as sections, whatever their depth.
fn sections(text: &mut String, command: &Command) {
    options(text, command, "SH", |arg| !arg.is_global_set());
    let mut below: Vec<&Command> = visible(command).collect();
    below.reverse();
    while let Some(command) = below.pop() {
        let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
        heading(text, "SH", &name.to_uppercase());
        synopsis(text, command);
        text.push_str(".PP\n");
        paragraphs(text, &long_about(command));
        options(text, command, "SS", |arg| !arg.is_global_set());
        let mut deeper: Vec<&Command> = visible(command).collect();
        deeper.reverse();
        below.extend(deeper);
    }
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    let commands = command.get_subcommands();
    commands.filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// The title, the line for `apropos`, and the synopsis.
fn head(title: &str, section: u8, footer: &str, command: &Command) -> String {
    // Without a date: pages of two builds of one commit are the same.
    let mut text = format!(
        ".TH \"{}\" \"{section}\" \"\" \"{footer}\" \"metalmesh\"\n",
        escaped(&title.to_uppercase())
    );
    heading(&mut text, "SH", "NAME");
    let about = about(command);
    let first = about.lines().next().unwrap_or("a program of metalmesh");
    text.push_str(&format!("{} \\- {}\n", escaped(title), escaped(first)));
    heading(&mut text, "SH", "SYNOPSIS");
    synopsis(&mut text, command);
    text
}

fn synopsis(text: &mut String, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage:").unwrap_or(&usage);
    let lines: Vec<String> = usage
        .lines()
        .map(|line| format!("\\fB{}\\fR\n", escaped(line.trim())))
        .collect();
    text.push_str(&lines.join(".br\n"));
}

fn describe(text: &mut String, command: &Command, level: &str) {
    let long = long_about(command);
    if !long.is_empty() {
        heading(text, level, "DESCRIPTION");
        paragraphs(text, &long);
    }
    let after = command
        .get_after_long_help()
        .or_else(|| command.get_after_help());
    if let Some(after) = after {
        heading(text, level, "NOTES");
        paragraphs(text, &after.to_string());
    }
}

fn options(text: &mut String, command: &Command, level: &str, is_wanted: impl Fn(&Arg) -> bool) {
    let mut args = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && is_wanted(arg))
        .peekable();
    if args.peek().is_some() {
        heading(text, level, "OPTIONS");
    }
    for arg in args {
        text.push_str(&format!(".TP\n{}\n", spelling(arg)));
        let help = arg.get_long_help().or_else(|| arg.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        paragraphs(text, &format!("{help}{}", remarks(arg)));
    }
}

/// How an argument is written: `-o, --output FORMAT`.
fn spelling(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("\\-{short}"));
    let long = arg
        .get_long()
        .map(|long| format!("\\-\\-{}", escaped(long)));
    let flags: Vec<String> = short
        .into_iter()
        .chain(long)
        .map(|flag| format!("\\fB{flag}\\fR"))
        .collect();
    let value = arg.get_action().takes_values().then(|| value_of(arg));
    let words = [Some(flags.join(", ")), value];
    let words: Vec<String> = words.into_iter().flatten().collect();
    words.join(" ").trim().to_owned()
}

fn value_of(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("\\fI{}\\fR", escaped(name)))
        .collect();
    match names.is_empty() {
        true => format!("\\fI{}\\fR", escaped(&arg.get_id().as_str().to_uppercase())),
        false => names.join(" "),
    }
}

/// Default, possible values and environment variable of an argument, each a line.
fn remarks(arg: &Arg) -> String {
    let mut lines = String::new();
    if !arg.get_action().takes_values() {
        return lines;
    }
    let defaults: Vec<_> = arg.get_default_values().iter().collect();
    if !defaults.is_empty() && !arg.is_hide_default_value_set() {
        let shown: Vec<_> = defaults.iter().map(|own| own.to_string_lossy()).collect();
        lines.push_str(&format!("\n\nDefault: {}", shown.join(", ")));
    }
    let values = arg.get_possible_values();
    let values = values.iter().filter(|value| !value.is_hide_set());
    let values: Vec<&str> = values.map(clap::builder::PossibleValue::get_name).collect();
    if !values.is_empty() && !arg.is_hide_possible_values_set() {
        lines.push_str(&format!("\n\nPossible values: {}", values.join(", ")));
    }
    if let Some(variable) = arg.get_env() {
        let name = variable.to_string_lossy();
        lines.push_str(&format!("\n\nEnvironment variable: {name}"));
    }
    lines
}

fn about(command: &Command) -> String {
    let about = command.get_about().or_else(|| command.get_long_about());
    about.map(ToString::to_string).unwrap_or_default()
}

fn long_about(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    about.map(ToString::to_string).unwrap_or_default()
}

fn see_also(text: &mut String, pages: &[String], section: u8) {
    if pages.is_empty() {
        return;
    }
    heading(text, "SH", "SEE ALSO");
    let pages: Vec<String> = pages
        .iter()
        .map(|page| format!("\\fB{}\\fR({section})", escaped(page)))
        .collect();
    text.push_str(&format!("{}\n", pages.join(",\n")));
}

fn heading(text: &mut String, level: &str, title: &str) {
    text.push_str(&format!(".{level} \"{}\"\n", escaped(title)));
}

/// Lines of text; an empty one begins a paragraph, which stays indented in a list.
fn paragraphs(text: &mut String, lines: &str) {
    let mut is_after_break = true;
    for line in lines.trim().lines() {
        let line = line.trim();
        if !line.is_empty() {
            text.push_str(&format!("{}\n", escaped(line)));
        } else if !is_after_break {
            text.push_str(".sp\n");
        }
        is_after_break = line.is_empty();
    }
}

/// Text as man(7) shows it unchanged. A dot or a quote at the begin of a line would be a macro.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\(rs").replace('-', "\\-");
    let text = text.replace('"', "\\(dq");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    /// Shows what a page has.
    #[derive(Debug, Parser)]
    #[command(name = "metalmesh-example", after_help = ".no macro")]
    struct Example {
        /// Format of the log.
        #[arg(
            long = "log",
            value_name = "FORMAT",
            global = true,
            default_value = "text"
        )]
        _log: String,
        #[command(subcommand)]
        _command: ExampleCommand,
    }

    #[derive(Debug, clap::Subcommand)]
    enum ExampleCommand {
        /// Work until the end.
        Run {
            /// A file, such as C:\file.
            ///
            /// More about it.
            #[arg(short = 'f', long = "file", value_name = "FILE", env = "EXAMPLE_FILE")]
            _file: String,
        },
        /// Things.
        #[command(subcommand)]
        Thing(ThingCommand),
        /// Hidden.
        #[command(hide = true)]
        Hidden,
    }

    #[derive(Debug, clap::Subcommand)]
    enum ThingCommand {
        /// Make one.
        Make { _name: String },
    }

    fn page(pages: &[ManualPage], file: &str) -> String {
        let found = pages.iter().find(|page| page.file == file);
        found.unwrap_or_else(|| panic!("no {file}")).text.clone()
    }

    #[test]
    fn every_visible_command_has_a_page() {
        let pages = pages(Example::command(), 8, "1.2.3");
        assert_eq!(pages.len(), 3);
        let program = page(&pages, "metalmesh-example.8");
        for line in [
            ".TH \"METALMESH\\-EXAMPLE\" \"8\" \"\" \"metalmesh 1.2.3\" \"metalmesh\"\n",
            "metalmesh\\-example \\- Shows what a page has\n",
            "\\&.no macro\n",
            "\\fB\\-\\-log\\fR \\fIFORMAT\\fR\nFormat of the log\n.sp\nDefault: text\n",
            ".TP\n\\fBrun\\fR\nWork until the end\n",
            "\\fBmetalmesh\\-example\\-run\\fR(8),\n",
        ] {
            assert!(program.contains(line), "{line}\n{program}");
        }
        assert!(!program.contains("Hidden"), "{program}");
        let run = page(&pages, "metalmesh-example-run.8");
        for line in [
            "\\fB\\-f\\fR, \\fB\\-\\-file\\fR \\fIFILE\\fR\n",
            "A file, such as C:\\(rsfile.\n.sp\nMore about it.\n",
            "Environment variable: EXAMPLE_FILE\n",
        ] {
            assert!(run.contains(line), "{line}\n{run}");
        }
        assert!(!run.contains("\\-\\-log"), "of every command: {run}");
        let thing = page(&pages, "metalmesh-example-thing.8");
        let section = ".SH \"METALMESH\\-EXAMPLE THING MAKE\"\n";
        assert!(thing.contains(section), "{thing}");
        assert!(thing.contains("Make one\n"), "{thing}");
        for page in &pages {
            let is_macro = |line: &&str| line.starts_with('.') && !line.starts_with(". ");
            let macros = page.text.lines().filter(is_macro);
            let known = [".TH", ".SH", ".SS", ".TP", ".PP", ".sp", ".br"];
            for line in macros {
                assert!(known.iter().any(|own| line.starts_with(own)), "{line}");
            }
        }
    }
}
