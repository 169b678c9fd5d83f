//! Shows that something is going on: a spinner or a bar on a terminal, else a plain line now and then.

use std::borrow::Cow;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a log without a terminal hears from a long step.
const QUIET: Duration = Duration::from_secs(15);

/// Something that takes a while. It disappears when dropped.
pub(crate) struct Activity {
    bar: ProgressBar,
    label: String,
    terminal: bool,
    started: Instant,
    last_line: Instant,
    detail: String,
}

impl Activity {
    /// Begins to show `label`.
    pub(crate) fn start(label: impl Into<String>) -> Activity {
        let label = label.into();
        let terminal = stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(
            None,
            if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        bar.set_style(style("{spinner} {prefix} ({elapsed}) {wide_msg}"));
        bar.set_prefix(label.clone());
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        let now = Instant::now();
        Activity { bar, label, terminal, started: now, last_line: now, detail: String::new() }
    }

    /// Prints a line above the spinner.
    pub(crate) fn line(&mut self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
        self.last_line = Instant::now();
    }

    /// Says beside the label what is being done just now.
    pub(crate) fn detail(&mut self, text: &str) {
        if self.detail != text {
            self.detail = text.to_owned();
            self.bar.set_message(self.detail.clone());
        }
        self.tick();
    }

    /// Turns the spinner into a bar over bytes.
    pub(crate) fn bytes(&mut self, done: u64, total: u64) {
        self.measure(done, total, "{spinner} {prefix} {wide_bar} {bytes}/{total_bytes} ({elapsed})");
        self.detail = format!("{} of {} MB", done / 1_000_000, total.div_ceil(1_000_000));
    }

    /// Turns the spinner into a bar over steps.
    pub(crate) fn steps(&mut self, done: u64, total: u64) {
        self.measure(done, total, "{spinner} {prefix} {wide_bar} {pos}/{len} ({elapsed})");
        self.detail = format!("{done} of {total}");
    }

    fn measure(&mut self, done: u64, total: u64, template: &str) {
        if self.bar.length() != Some(total) {
            self.bar.set_length(total);
            self.bar.set_style(style(template).progress_chars("=> "));
        }
        self.bar.set_position(done);
        self.tick();
    }

    /// To be called often; writes the plain line when one is due.
    pub(crate) fn tick(&mut self) {
        if !self.terminal && self.last_line.elapsed() >= QUIET {
            let detail = if self.detail.is_empty() { Cow::Borrowed("") } else { format!(": {}", self.detail).into() };
            eprintln!("  ... {}{detail} ({} s)", self.label, self.started.elapsed().as_secs());
            self.last_line = Instant::now();
        }
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A style from a template; the default style when the template is faulty, which only a change here can bring about.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// `1 min 5 s`, or `0.4 s` for what is quick.
pub(crate) fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_readable() {
        assert_eq!(duration(Duration::from_millis(420)), "0.4 s");
        assert_eq!(duration(Duration::from_secs(42)), "42 s");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 5 s");
    }

    #[test]
    fn templates_are_well_formed() {
        for template in
            ["{spinner} {prefix} ({elapsed}) {wide_msg}", "{prefix} {wide_bar} {bytes}/{total_bytes} {pos}/{len}"]
        {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
