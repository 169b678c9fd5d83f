#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
//! Runs a test of the same binary again in a process of its own, so that a crash or a hang is an outcome to look at
//! and not the end of the test.
//!
//! The test that plays the child is an ordinary `#[test]` that returns at once unless [`role`] gives it its task.

use std::ffi::OsStr;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const ROLE: &str = "GGML_LLAMA_TEST_CHILD";

/// What the parent asked this process to do; `None` in an ordinary run.
pub(crate) fn role() -> Option<std::ffi::OsString> {
    std::env::var_os(ROLE)
}

/// How a child ended, and all that it wrote.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// `None` when it had to be ended because it took too long.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Whether its test passed.
    pub(crate) fn passed(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Why it did not, in one line.
    pub(crate) fn failure(&self) -> Option<String> {
        let how = match self.status {
            None => "took too long".to_owned(),
            Some(status) if status.success() => return None,
            Some(status) => status.to_string(),
        };
        let said = self.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        Some(format!("{how}: {said}"))
    }

    /// What the child printed after the test runner's line with its name.
    pub(crate) fn line(&self, prefix: &str) -> Option<&str> {
        self.stdout.lines().find_map(|line| line.split_once(prefix)).map(|(_, rest)| rest)
    }
}

/// Runs the test `name` of this binary with a task.
pub(crate) fn run(name: &str, task: impl AsRef<OsStr>, limit: Duration) -> Outcome {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(ROLE, task)
        // Upstream would start a debugger at each crash.
        .env("GGML_NO_BACKTRACE", "1")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait(child, limit)
}

fn wait(mut child: Child, limit: Duration) -> Outcome {
    let stdout = reader(child.stdout.take().unwrap());
    let stderr = reader(child.stderr.take().unwrap());
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    Outcome { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

fn reader(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Bounds the address space of this process, so that an absurd allocation fails here and does not end the machine.
pub(crate) fn limit_memory() {
    #[cfg(target_os = "linux")]
    {
        let limit = libc::rlimit { rlim_cur: 6 << 30, rlim_max: 6 << 30 };
        // SAFETY: a valid struct; the call changes this process only.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    }
}
