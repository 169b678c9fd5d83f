//! `cargo xtask bench`: speed, side by side. `benches/README.md` has the protocol.

mod cold;
mod contestant;
mod machine;
mod programs;
mod report;
mod stats;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::SetupArgs;
use crate::setup;
use contestant::{Contestant, Program};
use machine::Machine;
use report::{Lane, ModelRun};

/// What is compared.
const MODELS: [&str; 3] = ["Q4_1", "Q8_0", "Q4_K_M"];
const THREADS: usize = 2;
/// Before each turn: worker threads of the contestant before may spin for a moment until they sleep.
const PAUSE: Duration = Duration::from_millis(100);

/// Arguments of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    setup: SetupArgs,
    /// Where to write the results as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// How often each program runs with each model.
    #[arg(long, default_value_t = 5, value_name = "N")]
    runs: u32,
    /// Leave node-llama-cpp out.
    #[arg(long)]
    skip_node: bool,
    /// Leave llama-cpp-2 out, which takes minutes to build.
    #[arg(long)]
    skip_llama_cpp_2: bool,
    /// Measure how long building from nothing takes, instead of speed.
    #[arg(long)]
    cold_build: bool,
}

/// The repository, and where the benchmark keeps what it builds.
pub(crate) struct Folders {
    pub(crate) root: PathBuf,
    pub(crate) bench: PathBuf,
}

/// Runs it.
pub(crate) fn run(args: BenchArgs) -> Result<()> {
    ensure!(args.runs > 0, "--runs is 0; expected at least 1");
    let root = crate::root::dir();
    let folders = Folders { bench: root.join("target/bench"), root };
    let base = setup::prepare(&args.setup, false)?;
    if args.cold_build { write_json(&args, &cold::measure(&folders)?) } else { speed(&folders, &base, &args) }
}

/// Prints the tables. An error when a contestant failed; a target that is not met is none.
fn speed(folders: &Folders, base: &Path, args: &BenchArgs) -> Result<()> {
    let (ours, native) = progress("building this crate's contestant", || programs::ours(folders))?;
    let cpp = progress("building the C++ contestant", || programs::cpp(folders, &native))?;
    let mut contestants = vec![ours, cpp.clone()];
    // The others need things from outside: when those are not to be had, what can be compared still is.
    let mut failures = Vec::new();
    if !args.skip_llama_cpp_2 {
        match progress("building llama-cpp-2 (minutes, the first time)", || programs::llama_cpp_2(folders)) {
            Ok(program) => contestants.push(program),
            Err(error) => failures.push(format!("llama-cpp-2 cannot be built: {error:#}")),
        }
    }
    if !args.skip_node {
        match progress("installing node-llama-cpp", || programs::node(folders)) {
            Ok(Some(program)) => contestants.push(program),
            Ok(None) => println!("node-llama-cpp is left out: there is no Node.js with npm here"),
            Err(error) => failures.push(format!("node-llama-cpp cannot be installed: {error:#}")),
        }
    }
    let machine = Machine::detect();
    println!("{}", report::machine_line(&machine));
    println!("{THREADS} threads, prompt of 256 tokens, generation of 64, {} rounds in turn", args.runs);
    let mut runs = Vec::new();
    for kind in MODELS {
        let model = progress(&format!("preparing the {kind} model"), || programs::model(folders, &cpp, base, kind))?;
        runs.push(progress(&format!("running {kind}"), || Ok(turns(folders, &contestants, kind, &model, args.runs)))?);
    }
    println!("\n{}", report::tables(&runs, &machine));
    let settings =
        json!({ "threads": THREADS, "prompt_tokens": 256, "gen_tokens": 64, "n_ctx": 512, "rounds": args.runs });
    write_json(args, &report::json(&runs, &machine, settings))?;
    let lanes = runs.iter().flat_map(|run| run.lanes.iter().map(|lane| (&run.model, lane)));
    failures.extend(lanes.filter_map(|(model, lane)| {
        lane.failure.as_ref().map(|failure| format!("the contestant {} failed with {model}: {failure}", lane.who))
    }));
    if failures.is_empty() { Ok(()) } else { bail!("{}", failures.join("\n")) }
}

fn write_json(args: &BenchArgs, result: &Value) -> Result<()> {
    let Some(path) = &args.json else { return Ok(()) };
    let text = serde_json::to_string_pretty(result)?;
    fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

/// Starts all contestants on one model and lets them take turns.
fn turns(folders: &Folders, programs: &[Program], kind: &str, model: &Path, rounds: u32) -> ModelRun {
    let mut running: Vec<Option<Contestant>> = Vec::new();
    let mut lanes = Vec::new();
    for program in programs {
        let log = folders.bench.join("logs").join(format!("{}-{kind}.log", program.letter));
        let (contestant, failure) = match Contestant::start(program, model, THREADS, log) {
            Ok(contestant) => (Some(contestant), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let ready = contestant.as_ref().map_or(Value::Null, |contestant| contestant.ready.clone());
        let (letter, who) = contestant.as_ref().map_or((program.letter, program.who), |c| (c.letter, c.who));
        lanes.push(Lane { letter, who, ready, rounds: Vec::new(), failure, idle_share: None });
        running.push(contestant);
    }
    // Another one begins each round: who follows whom must not matter.
    for round in 0..rounds as usize {
        for step in 0..running.len() {
            let turn = (round + step) % running.len();
            one_turn(&mut running, &mut lanes, turn);
        }
    }
    for (contestant, lane) in running.into_iter().zip(&mut lanes) {
        if let Some(Err(error)) = contestant.map(Contestant::finish) {
            lane.failure.get_or_insert(format!("{error:#}"));
        }
    }
    ModelRun { model: kind.to_owned(), lanes }
}

/// One repetition of one contestant, with a look at what the waiting ones use meanwhile.
fn one_turn(running: &mut [Option<Contestant>], lanes: &mut [Lane], turn: usize) {
    let used = |running: &[Option<Contestant>]| -> Vec<Option<f64>> {
        running.iter().map(|contestant| contestant.as_ref().and_then(Contestant::cpu_seconds)).collect()
    };
    thread::sleep(PAUSE);
    let before = used(running);
    let started = Instant::now();
    let result = running.get_mut(turn).and_then(Option::as_mut).map(Contestant::repetition);
    let wall = started.elapsed().as_secs_f64();
    let after = used(running);
    for (i, lane) in lanes.iter_mut().enumerate() {
        if i == turn {
            match &result {
                Some(Ok(repetition)) => lane.rounds.push(Some(repetition.clone())),
                Some(Err(error)) => {
                    lane.rounds.push(None);
                    lane.failure.get_or_insert(format!("{error:#}"));
                }
                None => lane.rounds.push(None),
            }
            continue;
        }
        let seconds = before.get(i).copied().flatten().zip(after.get(i).copied().flatten());
        if let Some(share) = seconds.map(|(before, after)| (after - before) / wall.max(1e-9)) {
            lane.idle_share = Some(lane.idle_share.unwrap_or(0.0).max(share));
        }
    }
    if matches!(result, Some(Err(_)))
        && let Some(contestant) = running.get_mut(turn)
    {
        *contestant = None;
    }
}

/// Says what takes a while, and shows that it goes on.
pub(crate) fn progress<R>(label: &str, f: impl FnOnce() -> Result<R>) -> Result<R> {
    let shown = crate::progress::Activity::start(label);
    let result = f();
    drop(shown);
    result
}
