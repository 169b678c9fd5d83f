//! Every numbered example runs, on tiny models, and prints what it is there for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

use ggml_llama::build_info;
use ggml_llama_testkit::{self as testkit, LlamaOptions, STORY, SpmVocab};

mod build_support;
use build_support::{cargo, features, profile_args, profile_dir, target_dir};

const EXAMPLES: [&str; 7] =
    ["00_demo", "01_devices", "02_generate", "03_chat", "04_tokenize", "05_embeddings", "06_batched"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn program(name: &str) -> PathBuf {
    profile_dir().join("examples").join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

fn newest(path: &Path) -> SystemTime {
    let own = fs::metadata(path).unwrap().modified().unwrap();
    let inner = path.is_dir().then(|| fs::read_dir(path).unwrap().map(|entry| newest(&entry.unwrap().path())).max());
    inner.flatten().map_or(own, |inner| inner.max(own))
}

/// The test runners build the examples, unless they were told to build this test alone.
fn build() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let sources = newest(&root().join("src")).max(newest(&root().join("examples")));
        let built = |name: &&str| program(name).metadata().and_then(|file| file.modified()).is_ok_and(|t| t >= sources);
        if EXAMPLES.iter().all(built) {
            return;
        }
        let (target, triple) = target_dir();
        let mut command = Command::new(cargo());
        command.current_dir(root()).env("CARGO_TARGET_DIR", target);
        command.args(["build", "--examples", "--offline", "--quiet", "--features", &features().join(",")]);
        command.args(profile_args()).args(triple.iter().flat_map(|triple| ["--target", triple]));
        assert!(command.status().unwrap().success(), "building the examples failed");
    });
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// One CPU, so that the example takes one thread: several that wait for each other crawl where other tests run too.
#[cfg(target_os = "linux")]
fn on_one_cpu(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let restrict = || {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: plain bits, for which zero is a value; both calls get a set of the size that they are told.
        unsafe {
            let (mut allowed, mut one) = std::mem::zeroed::<(libc::cpu_set_t, libc::cpu_set_t)>();
            if libc::sched_getaffinity(0, size, &mut allowed) == 0
                && let Some(cpu) = (0..size * 8).find(|cpu| libc::CPU_ISSET(*cpu, &allowed))
            {
                libc::CPU_SET(cpu, &mut one);
                libc::sched_setaffinity(0, size, &one);
            }
        }
        // Where it may not be set, the test is only slower.
        Ok(())
    };
    // SAFETY: two system calls, and nothing that allocates or locks.
    unsafe { command.pre_exec(restrict) };
}

#[cfg(not(target_os = "linux"))]
fn on_one_cpu(_: &mut Command) {}

fn run_with_input(name: &str, args: &[&str], input: &str) -> Ran {
    build();
    let mut command = Command::new(program(name));
    command.args(args).env_remove("GGML_LLAMA_MODEL").env_remove("RUST_BACKTRACE");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    on_one_cpu(&mut command);
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{name}: {e}"));
    // A program that ends without reading closes its end.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What an example prints that must succeed, and say nothing besides.
fn run(name: &str, args: &[&str]) -> String {
    let ran = run_with_input(name, args, "");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{name} {args:?}: {}", ran.stdout);
    ran.stdout
}

fn path(path: std::io::Result<PathBuf>) -> String {
    path.unwrap().into_os_string().into_string().unwrap()
}

fn story() -> String {
    path(testkit::tiny_llama_story_path())
}

#[test]
fn this_file_runs_every_numbered_example() {
    let names = fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let there: BTreeSet<_> = names.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(there, EXAMPLES.map(str::to_owned).into());
    for name in EXAMPLES {
        let text = fs::read_to_string(root().join(format!("examples/{name}.rs"))).unwrap();
        let docs: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let usage = docs.iter().any(|line| line.contains("cargo run ") && line.contains(&format!("--example {name}")));
        assert!(docs.len() >= 3 && usage, "{name} does not say what it is and how to run it: {docs:#?}");
    }
}

#[test]
fn devices_lists_the_cpu_and_the_build() {
    let printed = run("01_devices", &[]);
    let cpu = printed.lines().find(|line| line.starts_with("CPU: ")).expect("no line for the CPU");
    assert!(cpu.contains("(Cpu, ") && cpu.contains(" MiB free)"), "{cpu}");
    let info = build_info();
    let built = format!("llama.cpp {}, ggml {}, built for {}", info.llama_version, info.ggml_version, info.target);
    let source = format!("source: {} ({})", info.source, info.source_hash);
    for line in [built, source] {
        assert!(printed.lines().any(|have| have == line), "`{line}` is not in\n{printed}");
    }
    assert!(printed.lines().any(|line| line.starts_with("system: CPU")), "{printed}");
}

#[test]
fn generate_goes_on_with_the_text() {
    let printed = run("02_generate", &[&story(), "Tell me", "60"]);
    assert_eq!(printed.trim_end(), format!("Tell me {STORY}"));
    let cut = run("02_generate", &[&story(), "Tell me", "3"]);
    let cut = cut.trim_end();
    assert!(printed.starts_with(cut) && cut.len() > "Tell me".len() && cut.len() < printed.len() / 2, "{cut}");
}

#[test]
fn chat_answers_each_line() {
    let ran = run_with_input("03_chat", &[&story()], "Hello!\nAnd then?\n\nnot read\n");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let answers: Vec<&str> = ran.stdout.lines().map(str::trim).collect();
    assert_eq!(answers, [STORY, STORY]);
}

#[test]
fn chat_ends_an_answer_that_finds_no_end() {
    let ran = run_with_input("03_chat", &[&path(testkit::tiny_llama_path())], "Hello!\nAnd then?\n");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.len() > 20, "{}", ran.stdout);
}

#[test]
fn chat_needs_a_template() {
    let gguf = LlamaOptions { chat_template: None, ..LlamaOptions::default() }.build();
    let ran = run_with_input("03_chat", &[&path(testkit::cached("no-template.gguf", &gguf))], "Hello!\n");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("the model has no chat template"), "{}", ran.stderr);
}

#[test]
fn tokenize_shows_each_token() {
    let text = "one small llama é";
    let printed = run("04_tokenize", &[&story(), text]);
    let lines: Vec<&str> = printed.lines().collect();
    let expected = SpmVocab::new().tokenize(text);
    assert_eq!(
        lines[0],
        format!("Spm vocabulary of {} tokens; BOS Some(Token(1)), EOS Some(Token(2))", SpmVocab::new().n_tokens())
    );
    let shown: Vec<i32> =
        lines[1..lines.len() - 1].iter().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert_eq!(shown[0], 1, "BOS comes first");
    assert_eq!(shown[1..], expected);
    let last = lines.last().unwrap();
    assert!(last.starts_with(&format!("{} tokens for {} bytes; back: ", shown.len(), text.len())), "{last}");
    assert!(last.contains(text), "{last}");
}

#[test]
fn embeddings_compares_each_pair() {
    let texts = ["a small llama", "a small llama", "one upon green"];
    let bert = path(testkit::tiny_bert_path());
    let printed = run("05_embeddings", &[&[bert.as_str()], texts.as_slice()].concat());
    let mut lines = printed.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("3 texts, ") && first.ends_with(" dimensions") && !first.contains(" 0 "), "{first}");
    let cosines: Vec<(f32, &str)> = lines
        .map(|line| line.trim_start().split_once("  ").expect("a cosine and two texts"))
        .map(|(cosine, pair)| (cosine.parse().unwrap(), pair))
        .collect();
    let pairs: Vec<&str> = cosines.iter().map(|(_, pair)| *pair).collect();
    let named = |a: usize, b: usize| format!("{:?} and {:?}", texts[a], texts[b]);
    assert_eq!(pairs, [named(0, 1), named(0, 2), named(1, 2)]);
    assert!(cosines.iter().all(|(cosine, _)| (-1.0001..=1.0001).contains(cosine)), "{cosines:?}");
    assert!(cosines[0].0 > 0.9999, "equal texts: {cosines:?}");
    assert!((cosines[1].0 - cosines[2].0).abs() < 1e-3 && cosines[1].0 < 0.9999, "different texts: {cosines:?}");
}

#[test]
fn batched_generates_several_sequences() {
    let model = path(testkit::tiny_llama_path());
    let args = [model.as_str(), "The weather", "3", "12"];
    let printed = run("06_batched", &args);
    let parts: Vec<&str> = printed.split("--- ").skip(1).collect();
    assert_eq!(parts.len(), 3, "{printed}");
    for (i, part) in parts.iter().enumerate() {
        let text = part.strip_prefix(&format!("{i}\nThe weather"));
        assert!(text.is_some_and(|text| text.trim().len() > 12), "{part}");
    }
    let texts: BTreeSet<&str> = parts.iter().map(|part| &part[1..]).collect();
    assert_eq!(texts.len(), 3, "different seeds, different texts: {printed}");
    assert_eq!(run("06_batched", &args), printed, "the same seeds, the same texts");
}

#[test]
fn demo_answers_and_says_how_fast() {
    let printed = run("00_demo", &["--model", &story(), "--threads", "1", "Tell me!"]);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!((lines[0], lines[2].trim()), ("> Tell me!", STORY));
    let value = |key: &str| {
        let line = lines.iter().find(|line| line.starts_with(key));
        line.unwrap_or_else(|| panic!("no line for {key}:\n{printed}"))[key.len()..].trim().to_owned()
    };
    for (key, unit) in [("prompt", "tokens/s"), ("generation", "tokens/s"), ("first token", "ms")] {
        let value = value(key);
        let mut words = value.split_whitespace();
        let number: f64 = words.next().unwrap().parse().unwrap();
        assert!(number > 0.0 && words.next() == Some(unit), "{key}: {value}");
    }
    let n_story = SpmVocab::new().tokenize(STORY).len();
    assert!(value("generation").ends_with(&format!("({n_story} tokens)")), "{printed}");
    assert!(value("device").starts_with("CPU (") && value("device").ends_with("with 1 threads"), "{printed}");
    let sets = build_info().cpu_sets.join(" ");
    assert!(value("instruction sets").contains(&sets), "{printed}");
    assert!(value("upstream").contains(build_info().llama_version), "{printed}");
}

#[test]
fn demo_answers_with_the_real_model() {
    let Some(model) = env::var_os("GGML_LLAMA_MODEL") else {
        let required = env::var_os("GGML_LLAMA_TEST_REQUIRE_MODEL").is_some_and(|value| value == "1");
        assert!(!required, "GGML_LLAMA_MODEL is not set");
        return println!("skipped: GGML_LLAMA_MODEL is not set");
    };
    let printed = run("00_demo", &["--model", model.to_str().unwrap()]);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[..3], ["> What is the capital of France?", "", "The capital of France is Paris."]);
}

#[test]
fn a_missing_model_or_argument_is_said() {
    for name in EXAMPLES.into_iter().filter(|name| *name != "01_devices") {
        let without = run_with_input(name, &[], "");
        assert!(without.code.is_some_and(|code| code != 0), "{name}: {:?}", without.code);
        let said = without.stderr.to_lowercase();
        assert!(said.contains("usage") && said.contains("model"), "{name}: {}", without.stderr);

        let file = "/nowhere/no-such-model.gguf";
        let args: &[&str] = if name == "00_demo" { &["--model", file] } else { &[file] };
        let ran = run_with_input(name, args, "");
        assert_eq!(ran.code, Some(1), "{name}");
        assert!(ran.stderr.contains(file), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains("No such file") || cfg!(windows), "{name}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{name}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{name}");
    }
}
