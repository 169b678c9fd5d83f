//! One running contestant, and the protocol of `benches/README.md`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

use super::machine;

const LOAD_LIMIT: Duration = Duration::from_secs(300);
const REPETITION_LIMIT: Duration = Duration::from_secs(300);
const END_LIMIT: Duration = Duration::from_secs(20);

/// How to start a contestant.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// `a` to `d`, as in the table of `benches/README.md`.
    pub(crate) letter: char,
    pub(crate) who: &'static str,
    pub(crate) program: PathBuf,
    /// What stands before the model and the number of threads.
    pub(crate) args: Vec<OsString>,
}

/// What one repetition took.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Repetition {
    pub(crate) prompt_tokens_per_second: f64,
    pub(crate) gen_tokens_per_second: f64,
    /// Hash of the generated tokens.
    pub(crate) ids: Option<u64>,
    /// The line as it came.
    pub(crate) raw: Value,
}

impl Repetition {
    fn parse(line: &str) -> Result<Repetition> {
        let raw: Value = serde_json::from_str(line).with_context(|| format!("not a line of JSON: {line}"))?;
        let number = |name: &str| raw.get(name).and_then(Value::as_f64).filter(|value| *value > 0.0);
        let speed = |tokens: &str, ms: &str| {
            let (tokens, ms) =
                number(tokens).zip(number(ms)).ok_or_else(|| anyhow!("{tokens} or {ms} missing: {line}"))?;
            anyhow::Ok(tokens / ms * 1e3)
        };
        Ok(Repetition {
            prompt_tokens_per_second: speed("prompt_tokens", "prompt_ms")?,
            gen_tokens_per_second: speed("gen_tokens", "gen_ms")?,
            ids: raw.get("ids").and_then(Value::as_u64),
            raw,
        })
    }
}

/// A started contestant that has loaded its model and waits. It is ended when dropped.
pub(crate) struct Contestant {
    pub(crate) letter: char,
    pub(crate) who: &'static str,
    /// Its first line: how long loading took, what it says about its libraries.
    pub(crate) ready: Value,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Contestant {
    /// Starts the program and waits until it has loaded and warmed up. What it writes to standard error goes to `log`.
    pub(crate) fn start(program: &Program, model: &Path, threads: usize, log: PathBuf) -> Result<Contestant> {
        if let Some(parent) = log.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        let errors = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut child = Command::new(&program.program)
            .args(&program.args)
            .arg(model)
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {}", program.program.display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| anyhow!("no standard output"))?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            // Ends with the contestant's output, or when nobody listens any more.
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let (letter, who) = (program.letter, program.who);
        let mut contestant = Contestant { letter, who, ready: Value::Null, child, stdin, lines, log };
        let line = contestant.next_line(LOAD_LIMIT)?;
        contestant.ready = serde_json::from_str(&line).with_context(|| format!("not a line of JSON: {line}"))?;
        if contestant.ready.get("ready").and_then(Value::as_bool) != Some(true) {
            bail!("expected the line that says it is ready, got: {line}");
        }
        Ok(contestant)
    }

    /// Lets it do one repetition.
    pub(crate) fn repetition(&mut self) -> Result<Repetition> {
        let stdin = self.stdin.as_mut().ok_or_else(|| anyhow!("no standard input"))?;
        stdin.write_all(b"run\n").and_then(|()| stdin.flush()).with_context(|| ended(&self.log))?;
        Repetition::parse(&self.next_line(REPETITION_LIMIT)?)
    }

    /// Processor time used so far, in seconds, where the system tells.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        machine::cpu_seconds_of(self.child.id())
    }

    /// Closes its input and waits for it to end; an error when it does not, or ends badly.
    pub(crate) fn finish(mut self) -> Result<()> {
        drop(self.stdin.take());
        let start = Instant::now();
        loop {
            match self.child.try_wait().context("cannot wait for it")? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("{status} at its end{}", log_tail(&self.log)),
                None if start.elapsed() > END_LIMIT => bail!("does not end when its input ends"),
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn next_line(&mut self, limit: Duration) -> Result<String> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => bail!("no answer within {} s{}", limit.as_secs(), log_tail(&self.log)),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().context("cannot wait for it")?;
                bail!("{} ({status})", ended(&self.log))
            }
        }
    }
}

impl Drop for Contestant {
    fn drop(&mut self) {
        // Both fail only for a program that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ended(log: &Path) -> String {
    format!("it ended early{}", log_tail(log))
}

/// The last lines that a contestant wrote to standard error.
fn log_tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines.get(lines.len().saturating_sub(8)..).unwrap_or_default().join("\n    ");
    if tail.is_empty() { String::new() } else { format!("; it said:\n    {tail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_speeds() -> Result<()> {
        let line = r#"{"prompt_tokens": 256, "prompt_ms": 512.0, "gen_tokens": 64, "gen_ms": 640, "ids": 7}"#;
        let repetition = Repetition::parse(line)?;
        assert_eq!(repetition.prompt_tokens_per_second, 500.0);
        assert_eq!(repetition.gen_tokens_per_second, 100.0);
        assert_eq!(repetition.ids, Some(7));
        Ok(())
    }

    #[test]
    fn a_bad_line_is_refused() {
        for line in ["", "{}", r#"{"prompt_tokens": 256, "prompt_ms": 0, "gen_tokens": 64, "gen_ms": 1}"#] {
            assert!(Repetition::parse(line).is_err(), "{line}");
        }
    }
}
