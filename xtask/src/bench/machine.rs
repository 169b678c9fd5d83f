//! What is measured on: processor, instruction sets, and the processor time that programs have used.

use std::fs;
use std::process::Command;

/// Instruction sets that matter to ggml's CPU backend, as the Linux kernel names them.
const SETS: [&str; 25] = [
    "sse4_2",
    "avx",
    "f16c",
    "fma",
    "bmi2",
    "avx2",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512vbmi",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "asimd",
    "asimdhp",
    "asimddp",
    "i8mm",
    "bf16",
    "sve",
    "sve2",
];

/// The machine, as far as it tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) sets: Vec<String>,
}

impl Machine {
    /// Asks the system. What it does not tell is left empty.
    pub(crate) fn detect() -> Machine {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        if let Ok(text) = fs::read_to_string("/proc/cpuinfo") {
            return Machine { cores, ..parse_cpuinfo(&text) };
        }
        let sysctl = Command::new("sysctl").args(["-n", "machdep.cpu.brand_string"]).output();
        let cpu = match sysctl {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            _ => std::env::var("PROCESSOR_IDENTIFIER").unwrap_or_else(|_| "unknown".to_owned()),
        };
        Machine { cpu, cores, sets: Vec::new() }
    }

    /// Whether ggml's AMX kernels can run.
    pub(crate) fn has_amx(&self) -> bool {
        ["amx_tile", "amx_int8"].iter().all(|name| self.sets.iter().any(|set| set == name))
    }
}

fn parse_cpuinfo(text: &str) -> Machine {
    let field = |names: &[&str]| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| names.contains(&name.trim()))
            .map(|(_, value)| value.trim())
    };
    let flags: Vec<&str> = field(&["flags", "Features"]).unwrap_or_default().split_whitespace().collect();
    Machine {
        cpu: field(&["model name", "Model"]).unwrap_or("unknown").to_owned(),
        cores: 0,
        sets: SETS.iter().filter(|set| flags.contains(set)).map(|&set| set.to_owned()).collect(),
    }
}

/// Linux counts processor time in hundredths of a second towards programs, whatever the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time that a running program has used in all its threads, in seconds. `None` where the system has no `/proc`.
pub(crate) fn cpu_seconds_of(pid: u32) -> Option<f64> {
    stat_seconds(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, 14)
}

/// Processor time of all ended children of this program, and of theirs, in seconds. `None` where there is no `/proc`.
pub(crate) fn cpu_seconds_of_ended_children() -> Option<f64> {
    stat_seconds(&fs::read_to_string("/proc/self/stat").ok()?, 16)
}

/// Adds the fields `first` (user time) and `first + 1` (system time) of a `stat` line, counted from 1 as in proc(5).
fn stat_seconds(stat: &str, first: usize) -> Option<f64> {
    // The second field, the program's name in parentheses, may hold anything; the third one follows the last ')'.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(first - 3);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_linux_description() {
        let text = "processor : 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx2 fma amx_tile amx_int8 lm\n";
        let machine = parse_cpuinfo(text);
        assert_eq!(machine.cpu, "Some CPU @ 2 GHz");
        assert_eq!(machine.sets, ["fma", "avx2", "amx_tile", "amx_int8"]);
        assert!(machine.has_amx());
        assert!(!parse_cpuinfo("flags : avx2 amx_tile\n").has_amx());
    }

    #[test]
    fn reads_times_behind_an_odd_program_name() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 300 100 20 0";
        assert_eq!(stat_seconds(stat, 14), Some(2.0));
        assert_eq!(stat_seconds(stat, 16), Some(4.0));
        assert_eq!(stat_seconds("nonsense", 14), None);
    }
}
