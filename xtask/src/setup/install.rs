//! Installs what is missing, when that is possible and allowed.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::process;
use crate::progress::duration;
use crate::root;
use crate::setup::managers::{self, Manager, Rights, System};
use crate::setup::message::{self, Reason};
use crate::setup::probe::{self, Missing};
use crate::setup::{Need, Stopped, Tool};

/// Looks for the tools and installs what is missing.
pub(crate) fn tools(need: Need) -> Result<()> {
    let missing = probe::missing(need);
    if missing.is_empty() {
        return Ok(());
    }
    let system = system();
    let names: Vec<Tool> = missing.iter().map(|entry| entry.tool).collect();
    let (commands, rest) = managers::commands(system, &names);
    let stop = |missing: &[Missing], reason| Err(Stopped(message::stopped(missing, &commands, &rest, reason)).into());
    let packages = names.iter().any(|&tool| tool != Tool::RustComponents);
    if !need.install {
        return stop(&missing, Reason::Forbidden);
    }
    if !rest.is_empty() {
        return stop(&missing, Reason::NoPackage);
    }
    if packages && system.rights == Rights::None {
        return stop(&missing, Reason::NotAllowed);
    }
    eprintln!("{}", message::announcement(&missing, &commands));
    for command in &commands {
        let started = Instant::now();
        let (program, args) = command.argv.split_first().context("an empty command")?;
        let mut child = Command::new(program);
        child.args(args).envs(command.variable);
        process::quiet(&format!("running {command}"), &mut child)?;
        eprintln!("done: {command} ({})", duration(started.elapsed()));
    }
    let missing = probe::missing(need);
    if missing.is_empty() { Ok(()) } else { stop(&missing, Reason::DidNotHelp) }
}

/// Only looked at when something is missing: it starts programs.
fn system() -> System {
    let manager = Manager::ALL.into_iter().find(|manager| root::program(&[manager.program()]).is_some());
    let rights = match manager {
        Some(manager) if manager.needs_root() => rights(),
        _ => Rights::Ours,
    };
    System { manager, rights, want_ninja: probe::ninja().is_none(), rustup: root::program(&["rustup"]).is_some() }
}

fn rights() -> Rights {
    let id = Command::new("id").arg("-u").output();
    if id.is_ok_and(|output| output.stdout.trim_ascii() == b"0") {
        return Rights::Ours;
    }
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if sudo.status().is_ok_and(|status| status.success()) { Rights::Sudo } else { Rights::None }
}
