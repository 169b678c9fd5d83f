//! Finds libclang as bindgen will, and the headers that clang brings itself.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;

/// The folders that hold libclang on the systems we know, likely ones first. `*` stands for any characters of one name.
const FOLDERS: &[&str] = &[
    "/usr/lib/llvm-*/lib",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/*-linux-*",
    "/usr/lib/llvm*/lib",
    "/usr/lib64/llvm*/lib*",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/llvm*/lib*",
    "/opt/homebrew/opt/llvm*/lib",
    "/usr/local/opt/llvm*/lib",
    "/home/linuxbrew/.linuxbrew/opt/llvm*/lib",
    "/Library/Developer/CommandLineTools/usr/lib",
    "/Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib",
    "C:/Program Files/LLVM/bin",
    "C:/Program Files/LLVM/lib",
    "C:/Program Files (x86)/LLVM/bin",
    "C:/msys64/*64/bin",
];

/// Whether bindgen has what it needs; if not, what is lacking when that is not simply everything.
pub(crate) fn look() -> Result<PathBuf, Option<String>> {
    let Some(library) = library() else { return Err(None) };
    // Any clang program tells bindgen its headers, and extra arguments mean that somebody has seen to it.
    let told = root::program(&["clang"]).is_some() || env::var_os("BINDGEN_EXTRA_CLANG_ARGS").is_some();
    if told || headers(&library) {
        Ok(library)
    } else {
        Err(Some(format!(
            "{} is there, but not the headers that belong to it (stddef.h and others)",
            library.display()
        )))
    }
}

fn library() -> Option<PathBuf> {
    // A folder or the file itself, as bindgen takes it. When it is set, bindgen looks nowhere else.
    if let Some(path) = root::variable("LIBCLANG_PATH") {
        return if path.is_file() { Some(path) } else { in_folder(&path) };
    }
    let search = ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"].iter().filter_map(env::var_os);
    let search: Vec<PathBuf> = search.flat_map(|list| env::split_paths(&list).collect::<Vec<_>>()).collect();
    let known = || FOLDERS.iter().flat_map(|pattern| expand(pattern));
    search.iter().find_map(|dir| in_folder(dir)).or_else(|| known().find_map(|dir| in_folder(&dir))).or_else(asked)
}

/// What `llvm-config` says. Last, since it means to start a program.
fn asked() -> Option<PathBuf> {
    let program = root::variable("LLVM_CONFIG_PATH").or_else(|| root::program(&["llvm-config"]))?;
    let output = Command::new(program).arg("--libdir").output().ok()?;
    in_folder(Path::new(String::from_utf8(output.stdout).ok()?.trim()))
}

fn in_folder(dir: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .ok()?
        .flatten()
        .filter(|entry| is_libclang(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        // A link of a removed package leads nowhere.
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found.into_iter().next()
}

/// The C interface, under any version; not the C++ one (`libclang-cpp`), which bindgen cannot use.
fn is_libclang(name: &str) -> bool {
    if name.starts_with("libclang-cpp") {
        return false;
    }
    let versioned = name.starts_with("libclang.so") || name.starts_with("libclang-") && name.contains(".so");
    versioned || name == "libclang.dylib" || name == "libclang.dll"
}

/// Clang's own headers lie near its library: `lib/clang/VERSION/include` in the same tree, seen through links.
fn headers(library: &Path) -> bool {
    let real = library.canonicalize().unwrap_or_else(|_| library.to_path_buf());
    let near = [library, real.as_path()].into_iter().filter_map(Path::parent).flat_map(|dir| {
        ["clang/*/include", "../lib/clang/*/include", "../lib64/clang/*/include", "../../clang/*/include"]
            .map(|rest| dir.join(rest).to_string_lossy().into_owned())
    });
    let known = ["/usr/lib/clang/*/include", "/usr/lib/llvm-*/lib/clang/*/include"].map(str::to_owned);
    near.chain(known).flat_map(|pattern| expand(&pattern)).any(|dir| dir.join("stddef.h").is_file())
}

/// The existing folders that match a pattern with `*` in some of its names.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let mut dirs = vec![PathBuf::new()];
    for part in Path::new(pattern).components() {
        let part = part.as_os_str();
        let text = part.to_string_lossy();
        dirs = if text.contains('*') {
            dirs.iter().flat_map(|dir| matching(dir, &text)).collect()
        } else {
            dirs.into_iter().map(|dir| dir.join(part)).collect()
        };
    }
    dirs.retain(|dir| dir.is_dir());
    dirs
}

fn matching(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| matches(&entry.file_name().to_string_lossy(), pattern))
        .map(|entry| entry.path())
        .collect();
    // The newest version first, as far as names tell.
    found.sort_by(|a, b| b.cmp(a));
    found
}

fn matches(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            // The rest may begin anywhere behind the star.
            name.char_indices()
                .map(|(at, _)| at)
                .chain([name.len()])
                .any(|at| name.get(at..).is_some_and(|n| matches(n, rest)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_library() {
        for name in
            ["libclang.so", "libclang.so.1", "libclang-14.so.1", "libclang-16.so", "libclang.dylib", "libclang.dll"]
        {
            assert!(is_libclang(name), "{name}");
        }
        for name in
            ["libclang-cpp.so", "libclang-cpp.so.14", "libclang-cpp-14.so", "libclang.a", "libclangAST.a", "clang"]
        {
            assert!(!is_libclang(name), "{name}");
        }
    }

    #[test]
    fn patterns() {
        assert!(matches("llvm-14", "llvm-*"));
        assert!(matches("x86_64-linux-gnu", "*-linux-*"));
        assert!(matches("llvm", "llvm*"));
        assert!(!matches("llvm-14", "llvm"));
        assert!(!matches("x86_64-darwin", "*-linux-*"));
    }

    #[test]
    fn library_and_headers_are_found_in_a_tree() {
        let root = env::temp_dir().join(format!("xtask-clang-{}", std::process::id()));
        let lib = root.join("llvm-14/lib");
        fs::create_dir_all(lib.join("clang/14/include")).unwrap();
        fs::write(lib.join("libclang-cpp.so.14"), "").unwrap();
        assert_eq!(in_folder(&lib), None);
        fs::write(lib.join("libclang-14.so.1"), "").unwrap();
        let library = in_folder(&lib).unwrap();
        assert_eq!(library, lib.join("libclang-14.so.1"));
        assert_eq!(expand(&format!("{}/llvm-*/lib", root.display())), std::slice::from_ref(&lib));
        fs::write(lib.join("clang/14/include/stddef.h"), "").unwrap();
        assert!(headers(&library));
        fs::remove_dir_all(root).unwrap();
    }
}
