//! The native build is shared by all profiles, is made again only for a reason, and leaves the upstream tree alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

mod build_support;
use build_support::{BuildScript, Miniature, Ran, native_builds, profile_dir, source_is_editable};

/// A profile's folder beside this test's own one, removed afterwards.
struct OtherProfile(PathBuf);

impl OtherProfile {
    fn new(name: &str) -> OtherProfile {
        OtherProfile(profile_dir().with_file_name(format!("{name}-{}", std::process::id())))
    }

    fn run(&self) -> Ran {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        BuildScript::new(package, &self.0.join("build/ggml-llama-0/out")).configured_as_this_test().run().success()
    }
}

impl Drop for OtherProfile {
    fn drop(&mut self) {
        // What cannot be removed is removed with the target folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The tree that this test's library was built from. Cargo keeps what the build script said beside its output.
fn upstream_tree() -> PathBuf {
    let said = fs::read_to_string(Path::new(env!("OUT_DIR")).with_file_name("output")).unwrap();
    let source = said.lines().find_map(|line| line.strip_prefix("cargo::metadata=source="));
    PathBuf::from(source.expect("the source is not told"))
}

/// The folder in the shared cache that a run says to link from.
fn native_build(ran: &Ran) -> PathBuf {
    let searched = ran.values("cargo::rustc-link-search=native=");
    let library = Path::new(searched.first().expect("nothing is linked"));
    library.ancestors().nth(2).unwrap().to_path_buf()
}

#[test]
fn another_profile_finds_everything_built() {
    let before = native_builds();
    let other = OtherProfile::new("test-profile");
    let started = Instant::now();
    let ran = other.run();
    let took = started.elapsed();
    let used = native_build(&ran);
    assert!(before.contains_key(&used), "{} is a new native build; there were {before:?}", used.display());
    if !source_is_editable() {
        assert_eq!(native_builds().get(&used), before.get(&used), "the native build was made again");
    }
    // bindgen, mostly, in a build script that is not optimised.
    assert!(took < Duration::from_secs(10), "{took:?}");

    // It wrote to its output folder only.
    assert_eq!(names(&other.0), [OsStr::new("build")].map(OsStr::to_owned).into());
    assert_eq!(names(&other.0.join("build")), [OsStr::new("ggml-llama-0")].map(OsStr::to_owned).into());
    assert_eq!(names(&other.0.join("build/ggml-llama-0")), [OsStr::new("out")].map(OsStr::to_owned).into());

    // Cargo takes a watched file that is not there for changed, and would compile the crate again each time.
    let watched = ran.values("cargo::rerun-if-changed=");
    let missing: Vec<_> = watched.iter().filter(|path| !Path::new(path).exists()).collect();
    assert!(!watched.is_empty() && missing.is_empty(), "watched, but not there: {missing:?}");

    // What it leaves for the crate is what this crate was compiled with.
    for file in ["bindings.rs", "build_info.rs", "functions.txt"] {
        let again = fs::read_to_string(other.0.join("build/ggml-llama-0/out").join(file)).unwrap();
        let ours = fs::read_to_string(Path::new(env!("OUT_DIR")).join(file)).unwrap();
        assert!(again == ours, "{file} differs");
    }
    let archives: Vec<_> = fs::read_dir(used.join("build/lib")).unwrap().flatten().map(|e| e.file_name()).collect();
    for archive in ran.values("cargo::rustc-link-lib=static=") {
        let there = archives.iter().any(|name| name.to_string_lossy().contains(archive));
        assert!(there, "{archive} is linked, but there is {archives:?}");
    }
}

#[test]
fn nothing_is_built_among_the_sources() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for dir in [&package.join("native"), &package.join("vendor/src"), &upstream_tree()] {
        let mut files = Vec::new();
        collect(dir, &mut files);
        assert!(!files.is_empty());
        for file in &files {
            let name = file.file_name().unwrap().to_string_lossy();
            let built = ["CMakeCache.txt", "build.ninja", "cmake_install.cmake"].contains(&name.as_ref())
                || ["o", "obj", "a", "lib"].iter().any(|ext| file.extension() == Some(OsStr::new(ext)));
            assert!(!built, "{} lies among the sources", file.display());
        }
    }
}

/// The archive that cargo unpacked lists what has to be there.
#[test]
fn the_carrier_is_as_it_was_unpacked() {
    let source = upstream_tree();
    let package = source.parent().unwrap();
    let archive = package.parent().and_then(|registry| {
        let cache = registry.ancestors().nth(2)?.join("cache").join(registry.file_name()?);
        Some(cache.join(format!("{}.crate", package.file_name()?.to_str()?)))
    });
    let Some(archive) = archive.filter(|archive| archive.is_file()) else {
        println!("skipped: {} was not unpacked by cargo, or the archive is gone", source.display());
        return;
    };
    let listed = match Command::new("tar").arg("-tzf").arg(&archive).output() {
        Ok(listed) => listed,
        Err(e) => return println!("skipped: no tar ({e})"),
    };
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8_lossy(&listed.stdout);
    let packed: BTreeSet<PathBuf> =
        listed.lines().filter(|name| !name.ends_with('/')).map(|name| package.with_file_name(name)).collect();
    let mut files = Vec::new();
    collect(package, &mut files);
    // Cargo's own mark beside what it unpacked.
    let unpacked = files.into_iter().filter(|file| file.file_name() != Some(OsStr::new(".cargo-ok"))).collect();
    assert!(packed.len() > 1000, "{} files in {}", packed.len(), archive.display());
    let added: Vec<_> = BTreeSet::difference(&unpacked, &packed).collect();
    assert!(added.is_empty(), "added: {added:?}");
    let removed: Vec<_> = packed.difference(&unpacked).collect();
    assert!(removed.is_empty(), "removed: {removed:?}");
}

/// How often CMake has configured the only native build of a miniature.
fn configured(miniature: &Miniature) -> usize {
    let builds = names(&miniature.path("target/ggml-llama-native"));
    let times = |name: &_| fs::read(miniature.path("target/ggml-llama-native").join(name).join("build/configured"));
    builds.iter().map(|name| times(name).unwrap().len()).sum()
}

fn n_builds(miniature: &Miniature) -> usize {
    names(&miniature.path("target/ggml-llama-native")).len()
}

/// The same package with a pinned source, as far as the build script can see: `vendor` names a carrier, which lies
/// where the fake cargo says.
fn pinned() -> Miniature {
    let miniature = Miniature::new();
    miniature.write(
        "package/vendor/Cargo.toml",
        "[package.metadata.carrier]\npackage = \"carrier\"\nfolder = \"tree\"\n\n[dependencies]\ncarrier = \"=1.2.3\"\n",
    );
    miniature.write(
        "package/vendor/Cargo.lock",
        "[[package]]\nname = \"carrier\"\nversion = \"1.2.3\"\nchecksum = \"c0ffee\"\n",
    );
    fs::create_dir(miniature.path("carrier-1.2.3")).unwrap();
    fs::rename(miniature.path("tree"), miniature.path("carrier-1.2.3/tree")).unwrap();
    let manifest = miniature.path("carrier-1.2.3/Cargo.toml");
    let json = format!("{{\"packages\":[{{\"manifest_path\":\"{}\"}}]}}", manifest.display());
    miniature.write("cargo", &format!("#!/bin/sh\nprintf '%s' '{json}'\n"));
    miniature
}

#[cfg(unix)]
fn run(miniature: &Miniature, profile: &str) -> Ran {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(miniature.path("cargo"), PermissionsExt::from_mode(0o755)).unwrap();
    let ran = miniature.script(profile).env("GGML_LLAMA_SOURCE_DIR", "").env("CARGO", miniature.path("cargo")).run();
    ran.success()
}

#[cfg(unix)]
#[test]
fn all_profiles_share_one_native_build() {
    let miniature = pinned();
    let first = run(&miniature, "debug");
    assert_eq!((n_builds(&miniature), configured(&miniature)), (1, 1));
    for profile in ["debug", "release", "my-own"] {
        assert_eq!(native_build(&run(&miniature, profile)), native_build(&first));
    }
    assert_eq!((n_builds(&miniature), configured(&miniature)), (1, 1));
    // Where it came from stands in what the crate is compiled with.
    let info = fs::read_to_string(miniature.path("target/release/build/ggml-llama-0/out/build_info.rs")).unwrap();
    for fact in ["\"carrier 1.2.3\"", "\"c0ffee\"", "\"7.8.9\"", "\"unknown\""] {
        assert!(info.contains(fact), "{fact} is not in {info}");
    }
}

#[cfg(unix)]
#[test]
fn a_changed_native_file_is_a_reason() {
    let miniature = pinned();
    run(&miniature, "debug");
    miniature.write("package/native/shim/new.cpp", "int gl_new;\n");
    run(&miniature, "debug");
    assert_eq!((n_builds(&miniature), configured(&miniature)), (1, 2), "in the same folder");
    // Touched is not changed.
    miniature.write("package/native/shim/new.cpp", "int gl_new;\n");
    run(&miniature, "debug");
    assert_eq!(configured(&miniature), 2);
}

#[cfg(unix)]
#[test]
fn a_failed_build_is_tried_again() {
    let miniature = pinned();
    run(&miniature, "debug");
    let good = fs::read_to_string(miniature.path("package/native/CMakeLists.txt")).unwrap();
    miniature.write("package/native/CMakeLists.txt", "message(FATAL_ERROR \"on purpose\")\n");
    let script = miniature.script("debug").env("GGML_LLAMA_SOURCE_DIR", "").env("CARGO", miniature.path("cargo"));
    assert!(!script.run().ok);
    miniature.write("package/native/CMakeLists.txt", &format!("{good}# changed\n"));
    run(&miniature, "debug");
    assert_eq!(configured(&miniature), 2);
}

#[cfg(unix)]
#[test]
fn other_options_are_another_native_build() {
    let miniature = pinned();
    run(&miniature, "debug");
    let script = miniature.script("debug").env("GGML_LLAMA_SOURCE_DIR", "").env("CARGO", miniature.path("cargo"));
    script.env("GGML_LLAMA_CMAKE_DEFINES", "GGML_LTO=ON").run().success();
    assert_eq!((n_builds(&miniature), configured(&miniature)), (2, 2));
    run(&miniature, "debug");
    assert_eq!(configured(&miniature), 2, "the first is still there");
}

#[test]
fn a_tree_of_the_user_is_looked_through_each_time() {
    let miniature = Miniature::new();
    miniature.script("debug").run().success();
    let stamp = |miniature: &Miniature| -> Option<SystemTime> {
        let build = names(&miniature.path("target/ggml-llama-native")).into_iter().next()?;
        fs::metadata(miniature.path("target/ggml-llama-native").join(build).join("stamp")).ok()?.modified().ok()
    };
    let first = stamp(&miniature).unwrap();
    miniature.write("tree/src/new.cpp", "int llama_new;\n");
    let ran = miniature.script("debug").run().success();
    assert_eq!(n_builds(&miniature), 1, "a changed file does not start a native build from nothing");
    assert!(stamp(&miniature).unwrap() > first);
    let watched = ran.values("cargo::rerun-if-changed=");
    let tree = miniature.path("tree").canonicalize().unwrap();
    assert!(watched.iter().any(|path| Path::new(path) == tree), "{watched:?}");
}

#[test]
fn bindings_alone_need_no_native_build() {
    let miniature = Miniature::new();
    let ran = miniature.script("debug").env("GGML_LLAMA_SKIP_NATIVE", "1").env("PATH", "").run().success();
    assert_eq!(ran.values("cargo::rustc-link-lib="), Vec::<&str>::new());
    assert!(ran.values("cargo::rustc-cfg=").contains(&"ggml_llama_skip_native"));
    assert!(!miniature.path("target/ggml-llama-native").exists());
    let bindings = fs::read_to_string(miniature.path("target/debug/build/ggml-llama-0/out/bindings.rs")).unwrap();
    assert!(bindings.contains("gl_nothing"));
}

fn names(dir: &Path) -> BTreeSet<std::ffi::OsString> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    entries.map(|entry| entry.unwrap().file_name()).collect()
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
