//! The tables and the JSON file.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::contestant::Repetition;
use super::machine::Machine;
use super::stats::{Ratio, Summary};

/// What one contestant did with one model.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(crate) letter: char,
    pub(crate) who: &'static str,
    /// Its first line.
    pub(crate) ready: Value,
    /// One entry a round.
    pub(crate) rounds: Vec<Option<Repetition>>,
    /// Why it stopped taking part.
    pub(crate) failure: Option<String>,
    /// The largest share of one core that it used while another contestant had its turn.
    pub(crate) idle_share: Option<f64>,
}

/// All contestants with one model.
#[derive(Debug, Clone)]
pub(crate) struct ModelRun {
    /// The quantization: `Q4_1`.
    pub(crate) model: String,
    pub(crate) lanes: Vec<Lane>,
}

/// The two things that are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Prompt,
    Generation,
}

const PHASES: [Phase; 2] = [Phase::Prompt, Phase::Generation];

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Prompt => "prompt",
            Phase::Generation => "generation",
        }
    }

    fn speed(self, repetition: &Repetition) -> f64 {
        match self {
            Phase::Prompt => repetition.prompt_tokens_per_second,
            Phase::Generation => repetition.gen_tokens_per_second,
        }
    }
}

impl Lane {
    fn speeds(&self, phase: Phase) -> Vec<Option<f64>> {
        self.rounds.iter().map(|round| round.as_ref().map(|repetition| phase.speed(repetition))).collect()
    }

    fn summary(&self, phase: Phase) -> Option<Summary> {
        Summary::of(&self.speeds(phase).into_iter().flatten().collect::<Vec<f64>>())
    }

    fn ids(&self) -> Option<u64> {
        self.rounds.iter().flatten().find_map(|repetition| repetition.ids)
    }
}

/// What `a` shall reach against the contestant `other`.
pub(crate) fn target(other: char, model: &str, phase: Phase, amx: bool) -> Option<f64> {
    match (other, amx && model == "Q4_1", phase) {
        ('b', _, _) => Some(0.98),
        ('c', true, Phase::Prompt) => Some(4.0),
        ('c', true, Phase::Generation) => Some(1.5),
        ('c', false, _) => Some(1.0),
        ('d', true, _) => Some(1.2),
        _ => None,
    }
}

/// How `a` compares with one other contestant in one phase.
struct Comparison<'a> {
    other: &'a Lane,
    phase: Phase,
    ratio: Ratio,
    target: Option<f64>,
}

impl Comparison<'_> {
    fn met(&self) -> Option<bool> {
        self.target.map(|target| self.ratio.rounds.median >= target)
    }
}

fn comparisons(run: &ModelRun, amx: bool) -> Vec<Comparison<'_>> {
    let Some(ours) = run.lanes.iter().find(|lane| lane.letter == 'a') else { return Vec::new() };
    let others = run.lanes.iter().filter(|lane| lane.letter != 'a');
    others
        .flat_map(|other| PHASES.map(|phase| (other, phase)))
        .filter_map(|(other, phase)| {
            let ratio = Ratio::of(&ours.speeds(phase), &other.speeds(phase))?;
            Some(Comparison { other, phase, ratio, target: target(other.letter, &run.model, phase, amx) })
        })
        .collect()
}

/// A line about the machine.
pub(crate) fn machine_line(machine: &Machine) -> String {
    let sets = if machine.sets.is_empty() { "not known".to_owned() } else { machine.sets.join(" ") };
    let amx = if machine.has_amx() { "yes" } else { "no" };
    format!("{}, {} cores; instruction sets: {sets}; AMX: {amx}", machine.cpu, machine.cores)
}

/// The table of speeds, the table of ratios, and remarks.
pub(crate) fn tables(runs: &[ModelRun], machine: &Machine) -> String {
    let mut text = String::new();
    // Writing to a String never fails.
    let _ = write_tables(&mut text, runs, machine);
    text
}

fn write_tables(out: &mut String, runs: &[ModelRun], machine: &Machine) -> std::fmt::Result {
    writeln!(out, "tokens/s: median (min .. max)")?;
    writeln!(out, "{:<7} {:<17} {:>29} {:>29}", "model", "contestant", "prompt", "generation")?;
    for run in runs {
        for lane in &run.lanes {
            let [prompt, generation] = PHASES.map(|phase| lane.summary(phase).map_or("-".to_owned(), |s| range(s, 1)));
            writeln!(out, "{:<7} {} {:<15} {prompt:>29} {generation:>29}", run.model, lane.letter, lane.who)?;
        }
    }
    writeln!(
        out,
        "\nratios: each the median of the ratios of the rounds (min .. max); best: best round over best round"
    )?;
    writeln!(out, "{:<7} {:<5} {:<10} {:>22} {:>7}  target", "model", "ratio", "phase", "rounds", "best")?;
    for run in runs {
        for comparison in comparisons(run, machine.has_amx()) {
            let Comparison { other, phase, ratio, target } = &comparison;
            let verdict = target.zip(comparison.met()).map_or("none".to_owned(), |(target, met)| {
                format!(">= {target:<4} {}", if met { "met" } else { "not met" })
            });
            let rounds = range(ratio.rounds, 3);
            let pair = format!("a/{}", other.letter);
            writeln!(
                out,
                "{:<7} {pair:<5} {:<10} {rounds:>22} {:>7.3}  {verdict}",
                run.model,
                phase.name(),
                ratio.best
            )?;
        }
    }
    for run in runs {
        write_remarks(out, run)?;
    }
    let idle = runs.iter().flat_map(|run| &run.lanes).filter_map(|lane| lane.idle_share).reduce(f64::max);
    if let Some(idle) = idle {
        writeln!(out, "a waiting contestant used at most {:.1} % of a core", idle * 100.0)?;
    }
    Ok(())
}

fn write_remarks(out: &mut String, run: &ModelRun) -> std::fmt::Result {
    for lane in &run.lanes {
        if let Some(failure) = &lane.failure {
            writeln!(out, "{}: {} ({}) failed: {failure}", run.model, lane.letter, lane.who)?;
        }
    }
    let ids = |letter: char| run.lanes.iter().find(|lane| lane.letter == letter).and_then(Lane::ids);
    if let Some((a, b)) = ids('a').zip(ids('b')).filter(|(a, b)| a != b) {
        writeln!(
            out,
            "{}: a and b generated different tokens ({a:08x}, {b:08x}): they did not do the same work",
            run.model
        )?;
    }
    Ok(())
}

fn range(summary: Summary, digits: usize) -> String {
    let Summary { median, min, max } = summary;
    format!("{median:.digits$} ({min:.digits$} .. {max:.digits$})")
}

/// All repetitions, medians and ratios.
pub(crate) fn json(runs: &[ModelRun], machine: &Machine, settings: Value) -> Value {
    let models: Vec<Value> = runs.iter().map(|run| model_json(run, machine.has_amx())).collect();
    json!({
        "machine": { "cpu": machine.cpu, "cores": machine.cores, "sets": machine.sets, "amx": machine.has_amx() },
        "settings": settings,
        "models": models,
    })
}

fn model_json(run: &ModelRun, amx: bool) -> Value {
    let lanes: Vec<Value> = run
        .lanes
        .iter()
        .map(|lane| {
            let raw: Vec<Value> =
                lane.rounds.iter().map(|round| round.as_ref().map_or(Value::Null, |r| r.raw.clone())).collect();
            json!({
                "contestant": lane.letter.to_string(),
                "who": lane.who,
                "ready": lane.ready,
                "repetitions": raw,
                "failure": lane.failure,
                "idle_share": lane.idle_share,
                "prompt_tokens_per_second": lane.summary(Phase::Prompt).map(summary_json),
                "gen_tokens_per_second": lane.summary(Phase::Generation).map(summary_json),
            })
        })
        .collect();
    let ratios: Vec<Value> = comparisons(run, amx)
        .iter()
        .map(|comparison| {
            json!({
                "ratio": format!("a/{}", comparison.other.letter),
                "phase": comparison.phase.name(),
                "rounds": summary_json(comparison.ratio.rounds),
                "best": comparison.ratio.best,
                "target": comparison.target,
                "met": comparison.met(),
            })
        })
        .collect();
    json!({ "model": run.model, "contestants": lanes, "ratios": ratios })
}

fn summary_json(summary: Summary) -> Value {
    json!({ "median": summary.median, "min": summary.min, "max": summary.max })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(letter: char, who: &'static str, speeds: &[f64]) -> Lane {
        let repetition = |speed: &f64| {
            Some(Repetition {
                prompt_tokens_per_second: *speed,
                gen_tokens_per_second: speed / 10.0,
                ids: Some(u64::from(letter == 'b')),
                raw: Value::Null,
            })
        };
        let rounds = speeds.iter().map(repetition).collect();
        Lane { letter, who, ready: Value::Null, rounds, failure: None, idle_share: Some(0.001) }
    }

    fn machine(sets: &[&str]) -> Machine {
        Machine { cpu: "CPU".into(), cores: 2, sets: sets.iter().map(|&set| set.into()).collect() }
    }

    #[test]
    fn targets_of_the_issue() {
        for (other, model, phase, amx, expected) in [
            ('b', "Q8_0", Phase::Prompt, true, Some(0.98)),
            ('c', "Q4_1", Phase::Prompt, true, Some(4.0)),
            ('c', "Q4_1", Phase::Generation, true, Some(1.5)),
            ('c', "Q8_0", Phase::Generation, true, Some(1.0)),
            ('c', "Q4_1", Phase::Prompt, false, Some(1.0)),
            ('d', "Q4_1", Phase::Generation, true, Some(1.2)),
            ('d', "Q4_1", Phase::Generation, false, None),
        ] {
            assert_eq!(target(other, model, phase, amx), expected, "{other} {model} {phase:?} {amx}");
        }
    }

    #[test]
    fn tables_say_what_is_met_and_what_differs() {
        let lanes = vec![
            lane('a', "ours", &[100.0, 110.0]),
            lane('b', "c++", &[100.0, 100.0]),
            lane('c', "x", &[200.0, 200.0]),
        ];
        let runs = [ModelRun { model: "Q4_1".into(), lanes }];
        let text = tables(&runs, &machine(&["avx2"]));
        assert!(text.contains(">= 0.98 met") && text.contains(">= 1    not met"), "{text}");
        assert!(text.contains("different tokens") && text.contains("at most 0.1 % of a core"), "{text}");
        let json = json(&runs, &machine(&["avx2"]), Value::Null);
        assert_eq!(json.pointer("/models/0/ratios/0/rounds/median").and_then(Value::as_f64), Some(1.05));
    }
}
