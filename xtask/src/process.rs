//! Runs programs under a spinner.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::progress::Activity;

/// Lines kept for the message about a program that failed.
const KEPT: usize = 40;
/// How often the display is brought up to date while a program is silent.
const TICK: Duration = Duration::from_millis(250);

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// Runs a program and hands each line of its output to `on_line`; `on_tick` is called a few times a second. Standard
/// input is closed: nothing here may wait for an answer.
pub(crate) fn watch(
    activity: &mut Activity,
    command: &mut Command,
    on_line: &mut dyn FnMut(&mut Activity, Stream, String),
    on_tick: &mut dyn FnMut(&mut Activity),
) -> Result<ExitStatus> {
    let shown = show(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
    let lines = lines_of(&mut child);
    loop {
        match lines.recv_timeout(TICK) {
            Ok((stream, line)) => on_line(activity, stream, line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        activity.tick();
        on_tick(activity);
    }
    child.wait().with_context(|| format!("cannot wait for `{shown}`"))
}

/// Runs a program whose output matters only when it fails, and returns its standard output.
pub(crate) fn quiet(label: &str, command: &mut Command) -> Result<String> {
    let mut activity = Activity::start(label);
    let mut out = String::new();
    let mut tail = VecDeque::new();
    let shown = show(command);
    let mut on_line = |activity: &mut Activity, stream, line: String| {
        activity.detail(line.trim());
        if stream == Stream::Out {
            out.push_str(&line);
            out.push('\n');
        }
        if tail.len() == KEPT {
            tail.pop_front();
        }
        tail.push_back(line);
    };
    let status = watch(&mut activity, command, &mut on_line, &mut |_| {})?;
    drop(activity);
    if !status.success() {
        let tail: Vec<String> = tail.into();
        bail!("`{shown}` failed ({status}):\n{}", tail.join("\n"));
    }
    Ok(out)
}

/// The command as somebody would type it.
pub(crate) fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| quote(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// Puts quotes around a word that a shell would take apart.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%\\".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn lines_of(child: &mut Child) -> Receiver<(Stream, String)> {
    let (sender, receiver) = channel();
    if let Some(out) = child.stdout.take() {
        forward(out, Stream::Out, sender.clone());
    }
    if let Some(err) = child.stderr.take() {
        forward(err, Stream::Err, sender);
    }
    receiver
}

/// Sends the lines of a pipe until its end. A carriage return (someone else's progress bar) leaves only the last state.
fn forward(pipe: impl Read + Send + 'static, stream: Stream, sender: Sender<(Stream, String)>) {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\r', '\n']).rsplit('\r').next().unwrap_or_default().to_owned();
            line.clear();
            if sender.send((stream, text)).is_err() {
                break;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_typed() {
        let mut command = Command::new("apt-get");
        command.args(["install", "g++", "a b", "it's"]);
        assert_eq!(show(&command), r"apt-get install g++ 'a b' 'it'\''s'");
    }

    #[cfg(unix)]
    #[test]
    fn output_is_returned_and_a_failure_shows_its_last_lines() {
        assert_eq!(quiet("test", Command::new("sh").args(["-c", "echo one; echo two"])).unwrap(), "one\ntwo\n");
        let error = quiet("test", Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().contains("why"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = quiet("test", &mut Command::new("no-such-program-here")).unwrap_err();
        assert!(error.to_string().contains("no-such-program-here"), "{error}");
    }
}
