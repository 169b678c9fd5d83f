//! Carries out a [`BuildPlan`]: runs CMake on `native/`, in a cache that all cargo profiles share.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, panic};

use super::options::Options;
use super::plan::BuildPlan;
use super::source::{Fnv, Source};
use super::target::Target;

/// Builds the archives, or finds them built, and returns the folder that holds them.
pub(crate) fn build(
    plan: &BuildPlan,
    options: &Options,
    target: &Target,
    source: &Source,
    package_dir: &Path,
    out_dir: &Path,
) -> Result<PathBuf, String> {
    require_tools(plan)?;
    let native_dir = package_dir.join("native");
    let compiler = compiler_identity(target)?;
    let generator = generator(target);
    let launcher = launcher(options)?;
    let key = cache_key(plan, source, &native_dir, &compiler, generator.as_deref(), launcher.as_deref());
    let cache = cache_root(out_dir).join(&key);
    fs::create_dir_all(&cache).map_err(|e| format!("cannot create {}: {e}", cache.display()))?;

    // Two cargo profiles can get here at once; the second waits and then finds everything done.
    let lock_path = cache.join("lock");
    let lock = File::create(&lock_path).map_err(|e| format!("cannot create {}: {e}", lock_path.display()))?;
    lock.lock().map_err(|e| format!("cannot lock {}: {e}", lock_path.display()))?;

    let archives = cache.join("build/lib");
    let stamp = cache.join("stamp");
    let wanted = digest_dir(&native_dir)?;
    let up_to_date = !source.editable && fs::read_to_string(&stamp).is_ok_and(|have| have == wanted);
    if !up_to_date {
        run_cmake(plan, target, source, &native_dir, &cache, generator, launcher)?;
        write(&cache.join("plan.txt"), &plan.render())?;
        write(&cache.join("link.txt"), &link_line(plan, &archives))?;
        write(&stamp, &wanted)?;
    }
    Ok(archives)
}

/// `target/[TRIPLE/]PROFILE/build/PACKAGE-HASH/out` -> `target/[TRIPLE/]ggml-llama-native`: outside of the profile's
/// folder, so that dev, release, test and doc builds meet there. An unknown layout keeps the cache in `OUT_DIR`.
fn cache_root(out_dir: &Path) -> PathBuf {
    let name_is = |path: Option<&Path>, name: &str| path.and_then(Path::file_name).is_some_and(|have| have == name);
    let build = out_dir.ancestors().nth(2);
    match build.and_then(|dir| dir.ancestors().nth(2)) {
        Some(root) if name_is(build, "build") => root.join("ggml-llama-native"),
        _ => out_dir.join("ggml-llama-native"),
    }
}

fn cache_key(
    plan: &BuildPlan,
    source: &Source,
    native_dir: &Path,
    compiler: &str,
    generator: Option<&str>,
    launcher: Option<&str>,
) -> String {
    let mut digest = Fnv::new();
    digest.update(plan.render().as_bytes());
    digest.update(source.dir.as_os_str().as_encoded_bytes());
    if !source.editable {
        digest.update(source.hash.as_bytes());
    }
    digest.update(native_dir.as_os_str().as_encoded_bytes());
    digest.update(compiler.as_bytes());
    digest.update(generator.unwrap_or_default().as_bytes());
    digest.update(launcher.unwrap_or_default().as_bytes());
    digest.hex().chars().take(16).collect()
}

/// Contents of a (small) folder.
fn digest_dir(dir: &Path) -> Result<String, String> {
    let mut pending = vec![dir.to_path_buf()];
    let mut files = Vec::new();
    while let Some(dir) = pending.pop() {
        let entries = fs::read_dir(&dir).map_err(|e| format!("cannot read {}: {e}", dir.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() { pending.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let mut digest = Fnv::new();
    for file in files {
        digest.update(file.as_os_str().as_encoded_bytes());
        digest.update(&fs::read(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?);
    }
    Ok(digest.hex())
}

fn run_cmake(
    plan: &BuildPlan,
    target: &Target,
    source: &Source,
    native_dir: &Path,
    cache: &Path,
    generator: Option<String>,
    launcher: Option<String>,
) -> Result<(), String> {
    let mut config = cmake::Config::new(native_dir);
    config.out_dir(cache).profile("Release").build_target("gl_all").define("GL_UPSTREAM", &source.dir);
    if let Some(generator) = generator {
        config.generator(generator);
    }
    if let Some(toolset) = plan.toolset {
        config.generator_toolset(toolset);
    }
    if let Some(launcher) = launcher {
        for language in ["C", "CXX", "CUDA", "HIP"] {
            config.define(format!("CMAKE_{language}_COMPILER_LAUNCHER"), &launcher);
        }
    }
    if target.is_msvc() {
        // The cmake crate replaces the release flags for MSVC and with them the optimisation; these stand.
        for language in ["C", "CXX"] {
            config.define(format!("CMAKE_{language}_FLAGS_RELEASE"), "/O2 /Ob2 /DNDEBUG");
        }
    }
    for (name, value) in &plan.cmake {
        config.define(name, value);
    }
    // The crate panics when a step fails; what the step printed is already on our output, which cargo shows.
    panic::set_hook(Box::new(|_| {}));
    let result = panic::catch_unwind(panic::AssertUnwindSafe(|| config.build()));
    drop(panic::take_hook());
    result.map(drop).map_err(|payload| {
        let reason = payload.downcast_ref::<String>().map_or("a CMake step failed", String::as_str);
        format!(
            "building llama.cpp failed: {}\nSource: {} ({})\nBuild folder: {}\nThe output of CMake and of the compiler \
             stands above. A broken build folder can be removed at any time.",
            reason.trim(),
            source.dir.display(),
            source.origin,
            cache.display()
        )
    })
}

/// Ninja when it is there: it starts quicker and keeps all cores busy. Visual Studio projects keep CMake's own choice.
fn generator(target: &Target) -> Option<String> {
    let chosen = env::var_os("CMAKE_GENERATOR").is_some();
    let ninja = ["ninja", "ninja-build"].iter().any(|name| find_program(name).is_some());
    (!chosen && ninja && !target.is_msvc()).then(|| "Ninja".to_owned())
}

/// The compiler cache to put before each compiler call.
fn launcher(options: &Options) -> Result<Option<String>, String> {
    let wanted = options.ccache.as_deref().unwrap_or("auto");
    match wanted {
        "off" | "0" | "none" => Ok(None),
        "auto" | "" => Ok(["ccache", "sccache"].iter().find_map(|name| find_program(name)).map(show)),
        name => find_program(name).map(show).map(Some).ok_or_else(|| {
            format!("GGML_LLAMA_CCACHE is `{name}`, which is no program on PATH; expected auto, off, ccache, sccache or a path")
        }),
    }
}

fn show(path: PathBuf) -> String {
    path.display().to_string()
}

fn find_program(name: &str) -> Option<PathBuf> {
    let direct = Path::new(name);
    if direct.components().count() > 1 {
        return direct.is_file().then(|| direct.to_path_buf());
    }
    let suffix = env::consts::EXE_SUFFIX;
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(format!("{name}{suffix}"))).find(|path| path.is_file())
}

/// One block per missing tool, before CMake gives a less readable one.
fn require_tools(plan: &BuildPlan) -> Result<(), String> {
    let missing: Vec<String> = plan
        .tools
        .iter()
        .filter(|tool| find_program(tool.program).is_none())
        .filter(|tool| !env::var(tool.variable).is_ok_and(|path| Path::new(&path).exists()))
        .map(|tool| {
            let how: Vec<String> =
                tool.install.iter().map(|(manager, command)| format!("    {manager}: {command}")).collect();
            format!(
                "`{}` was not found.\n  needed: {}\n  install:\n{}\n  or set {} to where it is; `cargo xtask setup` installs what the default build needs",
                tool.program,
                tool.why,
                how.join("\n"),
                tool.variable
            )
        })
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(missing.join("\n\n")) }
}

/// Which compiler CMake will be given, with its version: another compiler is another cache.
fn compiler_identity(target: &Target) -> Result<String, String> {
    let tool = cc::Build::new().cpp(true).cargo_metadata(false).cargo_warnings(false).try_get_compiler().map_err(|e| {
        format!(
            "no C++ compiler for {}: {e}\n  install: Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++; \
             macOS: xcode-select --install; Windows: the Visual Studio build tools\n  or set CXX",
            target.triple
        )
    })?;
    let version = Command::new(tool.path()).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).map_err(|e| {
        format!(
            "the C++ compiler `{}` cannot be started: {e}\n  install: Debian, Ubuntu: apt-get install g++; Fedora: dnf \
             install gcc-c++; macOS: xcode-select --install\n  or set CXX",
            tool.path().display()
        )
    })?;
    Ok(format!("{} {version}", tool.path().display()))
}

/// How a C++ program links the same archives by hand.
fn link_line(plan: &BuildPlan, archives: &Path) -> String {
    use super::plan::Link;
    let mut words = vec![format!("-L{}", archives.display())];
    words.extend(plan.archives.iter().map(|name| format!("-l{name}")));
    words.extend(plan.link.iter().map(|link| match link {
        Link::Static(name) | Link::Dylib(name) => format!("-l{name}"),
        Link::Framework(name) => format!("-framework {name}"),
        Link::Search(dir) => format!("-L{dir}"),
        Link::Arg(arg) => arg.clone(),
    }));
    words.join(" ")
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}
