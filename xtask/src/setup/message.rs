//! Pure: what is said when tools are missing.

use crate::setup::Tool;
use crate::setup::managers::Command;
use crate::setup::probe::Missing;

/// Why nothing is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// `--no-install`.
    Forbidden,
    /// Neither root nor sudo without a password.
    NotAllowed,
    /// No known package manager, or it has no such package.
    NoPackage,
    /// The commands have run, and something is missing still.
    DidNotHelp,
}

/// Said before the installation begins.
pub(crate) fn announcement(missing: &[Missing], commands: &[Command]) -> String {
    let mut text = "Missing, and to be installed now:\n".to_owned();
    for entry in missing {
        text.push_str(&format!("  {} ({})\n", title(entry), entry.tool.why()));
    }
    text + "with:\n" + &list(commands)
}

/// One block that says all that a user needs to know to go on. `rest` are the tools that the commands do not give.
pub(crate) fn stopped(missing: &[Missing], commands: &[Command], rest: &[Tool], reason: Reason) -> String {
    let mut text = match reason {
        Reason::Forbidden => "Something is missing, and --no-install forbids installing it.\n",
        Reason::NotAllowed => "Something is missing, and installing it takes rights that we do not have.\n",
        Reason::NoPackage => "Something is missing that we cannot install here.\n",
        Reason::DidNotHelp => "The installation went through, yet something is missing still.\n",
    }
    .to_owned();
    for entry in missing {
        text.push_str(&format!(
            "\n{}\n  for:      {}\n  install:  {}\n  instead:  {}\n",
            title(entry),
            entry.tool.why(),
            by_hand(entry.tool, rest.contains(&entry.tool), reason),
            entry.tool.instead()
        ));
    }
    if !commands.is_empty() && reason != Reason::DidNotHelp {
        let intro = if reason == Reason::Forbidden { "These commands would run" } else { "With these commands" };
        text.push_str(&format!("\n{intro}:\n{}", list(commands)));
    }
    text.trim_end().to_owned()
}

fn title(entry: &Missing) -> String {
    match &entry.found {
        Some(found) => format!("{}: {found}", entry.tool.title()),
        None => entry.tool.title().to_owned(),
    }
}

fn by_hand(tool: Tool, rest: bool, reason: Reason) -> &'static str {
    match (tool, reason) {
        (_, Reason::DidNotHelp) if cfg!(windows) => "open a new terminal, which knows the new PATH, and try again",
        (_, Reason::DidNotHelp) => "see what the commands above said",
        (Tool::Compiler, _) if cfg!(target_os = "macos") => "xcode-select --install",
        (Tool::RustComponents, _) => "rustup component add rustfmt clippy",
        _ if rest => {
            "with this system's package manager (of which we know apt-get, dnf, yum, pacman, zypper, apk, brew, winget)"
        }
        _ => "see below",
    }
}

fn list(commands: &[Command]) -> String {
    commands.iter().map(|command| format!("  {command}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::managers::{Manager, Rights, System, commands};

    fn sample() -> (Vec<Missing>, Vec<Command>) {
        let missing = vec![
            Missing { tool: Tool::CMake, found: Some("/usr/bin/cmake is 3.10".to_owned()) },
            Missing { tool: Tool::Libclang, found: None },
        ];
        let system = System { manager: Some(Manager::Apt), rights: Rights::None, want_ninja: false, rustup: true };
        let commands = commands(system, &[Tool::CMake, Tool::Libclang]).0;
        (missing, commands)
    }

    #[test]
    fn a_block_says_what_why_how_and_what_instead() {
        let (missing, commands) = sample();
        let text = stopped(&missing, &commands, &[], Reason::Forbidden);
        for part in [
            "CMake 3.14 or newer: /usr/bin/cmake is 3.10",
            "bindgen reads the C headers",
            "LIBCLANG_PATH",
            "sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends cmake libclang-dev",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    }

    #[test]
    fn without_commands_the_block_still_says_where_to_turn() {
        let text = stopped(&sample().0, &[], &[Tool::CMake, Tool::Libclang], Reason::NoPackage);
        assert!(text.contains("package manager") && !text.contains("With these commands"), "{text}");
    }

    #[test]
    fn the_announcement_lists_what_will_run() {
        let (missing, commands) = sample();
        let text = announcement(&missing, &commands);
        assert!(text.contains("apt-get update") && text.contains("configures the build"), "{text}");
    }
}
