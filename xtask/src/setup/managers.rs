//! Pure: which tools there are, what each system's package manager calls them, and the commands that install them.

use std::fmt;

/// Something that must be on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tool {
    /// A C++ compiler.
    Compiler,
    /// CMake, new enough.
    CMake,
    /// Ninja or make: what CMake drives.
    Builder,
    /// libclang with clang's own headers.
    Libclang,
    /// pip, for the model.
    Pip,
    /// rustfmt and clippy; rustup's business, not the package manager's.
    RustComponents,
}

impl Tool {
    /// Its name in messages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Tool::Compiler => "a C++ compiler",
            Tool::CMake => "CMake 3.14 or newer",
            Tool::Builder => "ninja or make",
            Tool::Libclang => "libclang with clang's headers",
            Tool::Pip => "pip",
            Tool::RustComponents => "rustfmt and clippy",
        }
    }

    /// What it is for.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Tool::Compiler => "compiles llama.cpp and ggml",
            Tool::CMake => "configures the build of llama.cpp and ggml",
            Tool::Builder => "runs the compilers for CMake",
            Tool::Libclang => "bindgen reads the C headers with it",
            Tool::Pip => "fetches the small model, once",
            Tool::RustComponents => "check formatting and lints",
        }
    }

    /// How to do without installing it in the usual place.
    pub(crate) fn instead(self) -> &'static str {
        match self {
            Tool::Compiler => "set CXX (and CC) to the compiler",
            Tool::CMake => "set CMAKE to the program; `pip install cmake` gives a new one on old systems",
            Tool::Builder => "set CMAKE_GENERATOR to what CMake shall use",
            Tool::Libclang => "set LIBCLANG_PATH to the folder that holds the library",
            Tool::Pip => "set GGML_LLAMA_MODEL, or give --model: any GGUF file of yours",
            Tool::RustComponents => "take them from where your Rust toolchain comes from",
        }
    }
}

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manager {
    Apt,
    Dnf,
    Yum,
    Pacman,
    Zypper,
    Apk,
    Brew,
    Winget,
}

impl Manager {
    /// In the order in which they are looked for. Homebrew comes last of the Unix ones: on Linux the system's own goes first.
    pub(crate) const ALL: [Manager; 8] = [
        Manager::Apt,
        Manager::Dnf,
        Manager::Yum,
        Manager::Pacman,
        Manager::Zypper,
        Manager::Apk,
        Manager::Brew,
        Manager::Winget,
    ];

    /// Its program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Manager::Apt => "apt-get",
            Manager::Dnf => "dnf",
            Manager::Yum => "yum",
            Manager::Pacman => "pacman",
            Manager::Zypper => "zypper",
            Manager::Apk => "apk",
            Manager::Brew => "brew",
            Manager::Winget => "winget",
        }
    }

    /// Homebrew refuses to run as root, and winget asks Windows by itself.
    pub(crate) fn needs_root(self) -> bool {
        !matches!(self, Manager::Brew | Manager::Winget)
    }

    /// The packages that give a tool. Empty when the manager has none.
    fn packages(self, tool: Tool) -> &'static [&'static str] {
        match (self, tool) {
            (_, Tool::RustComponents) => &[],
            (Manager::Apt, Tool::Compiler) => &["g++"],
            (Manager::Apt, Tool::Libclang) => &["libclang-dev"],
            (Manager::Dnf | Manager::Yum | Manager::Zypper, Tool::Compiler) => &["gcc-c++"],
            (Manager::Dnf | Manager::Yum | Manager::Zypper, Tool::Libclang) => &["clang-devel"],
            (Manager::Pacman, Tool::Compiler) => &["gcc"],
            (Manager::Pacman, Tool::Libclang) => &["clang"],
            (Manager::Apk, Tool::Compiler) => &["g++"],
            (Manager::Apk, Tool::Libclang) => &["clang-dev", "clang-libclang"],
            // Apple's compiler comes with its command line tools, not with Homebrew.
            (Manager::Brew, Tool::Compiler) => &[],
            (Manager::Brew, Tool::Libclang) => &["llvm"],
            (Manager::Winget, Tool::Compiler) => &["Microsoft.VisualStudio.2022.BuildTools"],
            (Manager::Winget, Tool::Libclang) => &["LLVM.LLVM"],
            (Manager::Winget, Tool::CMake) => &["Kitware.CMake"],
            (Manager::Winget, Tool::Builder) => &["Ninja-build.Ninja"],
            (Manager::Winget, Tool::Pip) => &["Python.Python.3.12"],
            (_, Tool::CMake) => &["cmake"],
            (Manager::Apt | Manager::Dnf | Manager::Yum, Tool::Builder) => &["ninja-build"],
            (Manager::Apk, Tool::Builder) => &["samurai"],
            (_, Tool::Builder) => &["ninja"],
            (Manager::Apk, Tool::Pip) => &["py3-pip"],
            (Manager::Pacman, Tool::Pip) => &["python-pip"],
            (Manager::Brew, Tool::Pip) => &["python3"],
            (_, Tool::Pip) => &["python3-pip"],
        }
    }

    /// Its command for some packages.
    fn install(self, packages: &[&str]) -> Vec<Command> {
        match self {
            // The lists may be old or not there at all.
            Manager::Apt => vec![
                Command::new("apt-get", &["update"]).with("DEBIAN_FRONTEND", "noninteractive"),
                Command::new("apt-get", &["install", "-y", "--no-install-recommends"])
                    .and(packages)
                    .with("DEBIAN_FRONTEND", "noninteractive"),
            ],
            Manager::Dnf => vec![Command::new("dnf", &["install", "-y"]).and(packages)],
            Manager::Yum => vec![Command::new("yum", &["install", "-y"]).and(packages)],
            Manager::Pacman => vec![Command::new("pacman", &["-Sy", "--needed", "--noconfirm"]).and(packages)],
            Manager::Zypper => {
                vec![Command::new("zypper", &["--non-interactive", "install", "--no-recommends"]).and(packages)]
            }
            Manager::Apk => vec![Command::new("apk", &["add", "--update-cache"]).and(packages)],
            Manager::Brew => vec![Command::new("brew", &["install"]).and(packages)],
            // One package a call; the build tools are an empty shell without their C++ part.
            Manager::Winget => packages.iter().map(|package| Manager::winget(package)).collect(),
        }
    }

    fn winget(package: &str) -> Command {
        let agree = ["--silent", "--accept-package-agreements", "--accept-source-agreements"];
        let command = Command::new("winget", &["install", "--exact", "--id"]).and(&[package]).and(&agree);
        if !package.contains("BuildTools") {
            return command;
        }
        let parts = "--quiet --wait --norestart --add Microsoft.VisualStudio.Workload.VCTools --includeRecommended";
        command.and(&["--override", parts])
    }
}

/// A command to run, or to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// Program and arguments.
    pub(crate) argv: Vec<String>,
    /// A variable that it needs.
    pub(crate) variable: Option<(&'static str, &'static str)>,
}

impl Command {
    fn new(program: &str, args: &[&str]) -> Command {
        Command { argv: vec![program.to_owned()], variable: None }.and(args)
    }

    fn and(mut self, args: &[&str]) -> Command {
        self.argv.extend(args.iter().map(|&arg| arg.to_owned()));
        self
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Command {
        self.variable = Some((name, value));
        self
    }

    /// Puts sudo before it. A variable goes through `env`: sudo would drop it.
    fn under_sudo(mut self, ask: bool) -> Command {
        let mut argv = vec!["sudo".to_owned()];
        if !ask {
            argv.push("-n".to_owned());
        }
        if let Some((name, value)) = self.variable.take() {
            argv.extend(["env".to_owned(), format!("{name}={value}")]);
        }
        argv.append(&mut self.argv);
        Command { argv, variable: None }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, value)) = self.variable {
            write!(f, "{name}={value} ")?;
        }
        let words: Vec<String> = self.argv.iter().map(|word| crate::process::quote(word)).collect();
        f.write_str(&words.join(" "))
    }
}

/// How root's rights are had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// We are root, or the manager needs none.
    Ours,
    /// sudo asks no password.
    Sudo,
    /// Only the user can.
    None,
}

/// What the decision depends on besides what is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct System {
    /// The package manager, if a known one is there.
    pub(crate) manager: Option<Manager>,
    /// Root's rights.
    pub(crate) rights: Rights,
    /// Ninja is not there. It comes along when something is installed anyway: it is quicker than make, but not worth an
    /// installation of its own.
    pub(crate) want_ninja: bool,
    /// rustup is there.
    pub(crate) rustup: bool,
}

/// The commands that install what is missing, and the tools that no command here can give.
pub(crate) fn commands(system: System, missing: &[Tool]) -> (Vec<Command>, Vec<Tool>) {
    let (mut packages, mut rest, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    for &tool in missing.iter().filter(|&&tool| tool != Tool::RustComponents) {
        match system.manager.map_or(&[] as &[&str], |manager| manager.packages(tool)) {
            [] => rest.push(tool),
            names => packages.extend(names),
        }
    }
    if let Some(manager) = system.manager.filter(|_| !packages.is_empty()) {
        if system.want_ninja && !missing.contains(&Tool::Builder) {
            packages.extend(manager.packages(Tool::Builder));
        }
        commands = manager.install(&packages);
        if manager.needs_root() && system.rights != Rights::Ours {
            commands = commands.into_iter().map(|command| command.under_sudo(system.rights == Rights::None)).collect();
        }
    }
    if missing.contains(&Tool::RustComponents) {
        if system.rustup {
            commands.push(Command::new("rustup", &["component", "add", "rustfmt", "clippy"]));
        } else {
            rest.push(Tool::RustComponents);
        }
    }
    (commands, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Tool; 5] = [Tool::Compiler, Tool::CMake, Tool::Builder, Tool::Libclang, Tool::Pip];

    fn on(manager: Manager, rights: Rights, want_ninja: bool) -> System {
        System { manager: Some(manager), rights, want_ninja, rustup: true }
    }

    fn lines(manager: Manager, missing: &[Tool], rights: Rights) -> Vec<String> {
        commands(on(manager, rights, true), missing).0.iter().map(Command::to_string).collect()
    }

    #[test]
    fn each_manager_installs_everything() {
        let expected: [(Manager, &[&str]); 7] = [
            (
                Manager::Apt,
                &[
                    "DEBIAN_FRONTEND=noninteractive apt-get update",
                    "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
                     'g++' cmake ninja-build libclang-dev python3-pip",
                ],
            ),
            (Manager::Dnf, &["dnf install -y 'gcc-c++' cmake ninja-build clang-devel python3-pip"]),
            (Manager::Yum, &["yum install -y 'gcc-c++' cmake ninja-build clang-devel python3-pip"]),
            (Manager::Pacman, &["pacman -Sy --needed --noconfirm gcc cmake ninja clang python-pip"]),
            (
                Manager::Zypper,
                &["zypper --non-interactive install --no-recommends 'gcc-c++' cmake ninja clang-devel python3-pip"],
            ),
            (Manager::Apk, &["apk add --update-cache 'g++' cmake samurai clang-dev clang-libclang py3-pip"]),
            (Manager::Brew, &["brew install cmake ninja llvm python3"]),
        ];
        for (manager, wanted) in expected {
            // The quotes are put where a shell needs them; `+` needs none.
            let wanted: Vec<String> = wanted.iter().map(|line| line.replace('\'', "")).collect();
            assert_eq!(lines(manager, &ALL, Rights::Ours), wanted, "{manager:?}");
        }
    }

    #[test]
    fn winget_takes_one_package_a_call_and_adds_the_cpp_workload() {
        let lines = lines(Manager::Winget, &ALL, Rights::None);
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert!(lines[0].contains("BuildTools") && lines[0].contains("VCTools"), "{}", lines[0]);
        assert!(lines.iter().all(|line| line.contains("--accept-package-agreements") && !line.contains("sudo")));
    }

    #[test]
    fn every_manager_knows_every_tool_or_says_so() {
        for manager in Manager::ALL {
            for tool in ALL {
                let (commands, rest) = commands(on(manager, Rights::Ours, false), &[tool]);
                assert_eq!(commands.is_empty(), rest == [tool], "{manager:?} {tool:?}");
            }
        }
        assert_eq!(commands(on(Manager::Brew, Rights::Ours, false), &ALL).1, [Tool::Compiler]);
    }

    #[test]
    fn sudo_keeps_the_variable_and_asks_only_when_shown_to_the_user() {
        assert_eq!(
            lines(Manager::Apt, &[Tool::CMake], Rights::Sudo)[0],
            "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update"
        );
        assert_eq!(lines(Manager::Dnf, &[Tool::CMake], Rights::None)[0], "sudo dnf install -y cmake ninja-build");
        assert_eq!(lines(Manager::Brew, &[Tool::CMake], Rights::None)[0], "brew install cmake ninja");
    }

    #[test]
    fn ninja_comes_along_only_when_something_is_installed() {
        for manager in Manager::ALL {
            assert_eq!(commands(on(manager, Rights::Ours, true), &[]), (vec![], vec![]), "{manager:?}");
        }
        let without = commands(on(Manager::Apt, Rights::Ours, false), &[Tool::CMake]).0;
        assert!(without.iter().all(|command| !command.to_string().contains("ninja")));
    }

    #[test]
    fn rust_components_are_rustups() {
        assert_eq!(lines(Manager::Apt, &[Tool::RustComponents], Rights::None), ["rustup component add rustfmt clippy"]);
        let bare = System { rustup: false, ..on(Manager::Apt, Rights::Ours, true) };
        assert_eq!(commands(bare, &[Tool::RustComponents]), (vec![], vec![Tool::RustComponents]));
    }

    #[test]
    fn without_a_manager_everything_is_left_to_the_user() {
        let system = System { manager: None, rights: Rights::Ours, want_ninja: true, rustup: false };
        assert_eq!(commands(system, &ALL), (vec![], ALL.to_vec()));
    }
}
