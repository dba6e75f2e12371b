//! The tests in the real editors, the VS Code package, and the README's picture.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use clap::{Args, ValueEnum};

use crate::process::{command, quiet};
use crate::session::{Kind, Session, say};
use crate::{Result, places, provision};

/// Which editors to test.
#[derive(Args)]
pub struct Options {
    /// Test only these editors
    #[arg(long, value_delimiter = ',')]
    only: Vec<Editor>,
}

/// An editor that has tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Editor {
    /// The extension host and the window
    Vscode,
    /// Headless
    Neovim,
    /// Batch mode, with Eglot
    Emacs,
}

impl Editor {
    /// Those that every change is tested in; Emacs is by name only.
    pub const ALL: [Editor; 2] = [Editor::Vscode, Editor::Neovim];
}

pub fn run(options: Options) -> Result<ExitCode> {
    let mut session = Session::default();
    let chosen = if options.only.is_empty() {
        Editor::ALL.to_vec()
    } else {
        options.only
    };
    add_steps(&mut session, &chosen);
    Ok(session.close())
}

/// Builds the server and runs the tests of the given editors.
pub fn add_steps(session: &mut Session, editors: &[Editor]) {
    if !session.step("build the server", Kind::Check, build_server(&[])) {
        return;
    }
    if editors.contains(&Editor::Vscode) {
        vscode(session);
    }
    if editors.contains(&Editor::Neovim)
        && let Some(nvim) = session.prepare("bring Neovim", provision::neovim)
        && let Some(mut tests) = session.prepare("set up Neovim's tests", || driver("neovim/run.mjs"))
    {
        tests.env("PROSE_NVIM", nvim);
        session.step("Neovim", Kind::Runner, tests);
    }
    if editors.contains(&Editor::Emacs)
        && let Some(emacs) = session.prepare("bring Emacs", provision::emacs)
        && let Some(mut tests) = session.prepare("set up Emacs' tests", || driver("emacs/run.mjs"))
    {
        tests.env("PROSE_EMACS", emacs);
        session.step("Emacs", Kind::Runner, tests);
    }
}

/// Makes the package with a release build of the server in it.
pub fn package() -> Result<ExitCode> {
    let mut session = Session::default();
    if session.step("build the server", Kind::Check, build_server(&["--release"])) {
        session.prepare("package", || {
            let debug = places::binary("prose-lsp")?;
            let profile = debug
                .parent()
                .and_then(Path::parent)
                .ok_or("no target folder")?
                .join("release");
            let vsix = make_vsix(&profile.join(debug.file_name().unwrap_or_default()))?;
            say(&format!("{}", vsix.display()));
            Ok(())
        });
    }
    Ok(session.close())
}

/// Takes the README's picture.
pub fn screenshot() -> Result<ExitCode> {
    let mut session = Session::default();
    if session.step("build the server", Kind::Check, build_server(&[]))
        && let Some(mut driver) = session.prepare("set up", || {
            provision::npm_ci(&extension())?;
            let vsix = make_vsix(&places::binary("prose-lsp")?)?;
            vscode_driver("vscode/screenshot.mjs", &vsix)
        })
    {
        driver.arg(places::root().join("docs/images/vscode.png"));
        session.step("picture", Kind::Check, driver);
    }
    Ok(session.close())
}

fn vscode(session: &mut Session) {
    let folder = extension();
    if session
        .prepare("packages of the extension", || provision::npm_ci(&folder))
        .is_none()
    {
        return;
    }
    let npm = |script: &str| command("npm", &["run", "--silent", script], &extension());
    session.step("types of the extension", Kind::Check, npm("typecheck"));
    session.step("unit tests of the extension", Kind::Runner, npm("test"));
    let Some(vsix) = session.prepare("package the extension", || {
        make_vsix(&places::binary("prose-lsp")?)
    }) else {
        return;
    };
    let set_up = || {
        Ok((
            vscode_driver("vscode/host.mjs", &vsix)?,
            vscode_driver("vscode/workbench.mjs", &vsix)?,
        ))
    };
    if let Some((host, window)) = session.prepare("bring VS Code and a browser", set_up) {
        session.step("VS Code, extension host", Kind::Runner, host);
        session.step("VS Code, window", Kind::Runner, window);
    }
}

fn build_server(more: &[&str]) -> Command {
    let arguments = [&["build", "--package", "prose-cli", "--bins"], more].concat();
    command("cargo", &arguments, places::root())
}

/// Puts a server into the extension and packages both.
fn make_vsix(server: &Path) -> Result<PathBuf> {
    let folder = extension();
    let name = server.file_name().unwrap_or(OsStr::new("prose-lsp"));
    let target = folder.join("server").join(name);
    let problem = |error: std::io::Error| format!("can't put the server into the extension: {error}");
    fs::create_dir_all(folder.join("server")).map_err(problem)?;
    fs::copy(server, &target).map_err(problem)?;
    if let Some(strip) = places::on_path(&["strip"]) {
        // Debug information is most of the file, and nobody debugs the packaged server.
        let mut strip = Command::new(strip);
        strip.arg(&target);
        quiet(strip)?;
    }
    quiet(command("npm", &["run", "--silent", "package"], &folder))?;
    Ok(folder.join("openprose.vsix"))
}

fn vscode_driver(script: &str, vsix: &Path) -> Result<Command> {
    let mut command = driver(script)?;
    command
        .env("PROSE_VSCODE", provision::vscode()?)
        .env("PROSE_CHROMIUM", provision::chromium()?)
        .env("PROSE_VSIX", vsix);
    Ok(command)
}

/// A script of `tests/editors`, with what all of them need.
fn driver(script: &str) -> Result<Command> {
    let folder = places::root().join("tests/editors");
    provision::npm_ci(&folder)?;
    let out = places::cache()?.join("out");
    let mut node = command(provision::node()?, &[script], &folder);
    node.env("PROSE_LSP", places::binary("prose-lsp")?)
        .env("PROSE_OUT", out);
    // A person's settings for their own language server are not to be tested.
    for name in env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.to_string_lossy().starts_with("VSCODE_"))
    {
        node.env_remove(name);
    }
    Ok(node)
}

fn extension() -> PathBuf {
    places::root().join("editors/vscode")
}
