//! Fetches the upstream source ahead of the build, which would do it as well, but without a sign of life.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{cargo, process, root};

/// Lets cargo fetch the carrier package, unless a tree is there or fetching is forbidden.
pub(crate) fn fetch_if_missing() -> Result<()> {
    let given = root::variable("GGML_LLAMA_SOURCE_DIR").is_some() || root::variable("GGML_LLAMA_NO_FETCH").is_some();
    if given || root::dir().join("vendor/llama.cpp/CMakeLists.txt").is_file() {
        return Ok(());
    }
    let pin = pin()?;
    if registry_holds(&pin) {
        return Ok(());
    }
    let manifest = root::dir().join("vendor/Cargo.toml");
    let mut command = cargo::cmd();
    command.args(["fetch", "--locked", "--manifest-path"]).arg(manifest);
    process::quiet(&format!("fetching the upstream source ({} {})", pin.package, pin.version), &mut command)?;
    eprintln!("fetched the upstream source ({} {})", pin.package, pin.version);
    Ok(())
}

/// The carrier, as vendor/ names it.
struct Pin {
    package: String,
    folder: String,
    version: String,
}

fn pin() -> Result<Pin> {
    let read = |name: &str| {
        let path = root::dir().join("vendor").join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    parse(&read("Cargo.toml")?, &read("Cargo.lock")?)
}

fn parse(manifest: &str, lock: &str) -> Result<Pin> {
    let manifest: Value = basic_toml::from_str(manifest).context("vendor/Cargo.toml")?;
    let lock: Value = basic_toml::from_str(lock).context("vendor/Cargo.lock")?;
    let carrier = |key: &str| {
        let value = manifest.pointer(&format!("/package/metadata/carrier/{key}")).and_then(Value::as_str);
        value.map(str::to_owned).with_context(|| format!("vendor/Cargo.toml has no package.metadata.carrier.{key}"))
    };
    let (package, folder) = (carrier("package")?, carrier("folder")?);
    let entries = lock.get("package").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let version = entries
        .iter()
        .find(|entry| entry.get("name").and_then(Value::as_str) == Some(package.as_str()))
        .and_then(|entry| entry.get("version").and_then(Value::as_str))
        .with_context(|| format!("vendor/Cargo.lock has no entry for {package}"))?
        .to_owned();
    Ok(Pin { package, folder, version })
}

/// A look into cargo's registry folder in place of a cargo run.
fn registry_holds(pin: &Pin) -> bool {
    let home = root::variable("CARGO_HOME")
        .or_else(|| root::variable("HOME").or_else(|| root::variable("USERPROFILE")).map(|home| home.join(".cargo")));
    let registries = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok()).into_iter().flatten().flatten();
    let folder = PathBuf::from(format!("{}-{}", pin.package, pin.version)).join(&pin.folder).join("CMakeLists.txt");
    registries.map(|entry| entry.path().join(&folder)).any(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pin_is_read_from_manifest_and_lock_file() {
        let manifest =
            "[package]\nname = \"x\"\n[package.metadata.carrier]\npackage = \"tree\"\nfolder = \"llama.cpp\"\n";
        let lock = "version = 4\n[[package]]\nname = \"cc\"\nversion = \"1.0.0\"\n[[package]]\nname = \"tree\"\nversion = \"0.1.2\"\n";
        let pin = parse(manifest, lock).unwrap();
        assert_eq!((pin.package.as_str(), pin.folder.as_str(), pin.version.as_str()), ("tree", "llama.cpp", "0.1.2"));
        assert!(parse("[package]\n", lock).is_err());
        assert!(parse(manifest, "").is_err());
    }

    #[test]
    fn our_own_pin_is_readable() {
        assert!(pin().is_ok());
    }
}
