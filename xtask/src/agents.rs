//! `cargo xtask agents`: the real agents, brought by name and version, against the mock model. What is tried with them is in
//! `tests/src/agents`; the versions are in the lock files of `tests/agents`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::process::command;
use crate::session::{Kind, Session, say};
use crate::{Result, places, provision};

/// Which agents to try.
#[derive(Args)]
pub struct Options {
    /// Try only these agents
    #[arg(long, value_delimiter = ',')]
    only: Vec<Agent>,
    /// Try only this case of each, such as `program`
    #[arg(long, conflicts_with = "bring")]
    case: Option<String>,
    /// Bring them and say where they are, as variables for a shell; try nothing
    #[arg(long)]
    bring: bool,
}

/// A real agent, and how it is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Agent {
    /// Claude Code's command line
    Claude,
    /// Codex's command line
    Codex,
    /// Gemini CLI's command line
    Gemini,
    /// OpenCode's command line
    Opencode,
    /// Claude Code by the Agent Client Protocol
    ClaudeAcp,
    /// Codex by the Agent Client Protocol
    CodexAcp,
    /// Gemini CLI by the Agent Client Protocol
    GeminiAcp,
    /// OpenCode by the Agent Client Protocol
    OpencodeAcp,
    /// A gateway of OpenClaw
    Openclaw,
    /// A run on a real model of 135 million parameters on this machine, by name only: it says nothing sensible
    LocalModel,
}

/// A package of the registry that has an agent in it.
struct Package {
    /// Its folder in `tests/agents`.
    folder: &'static str,
    /// Its program.
    program: &'static str,
    /// The package whose install script has to run: it puts the program for this machine in its place.
    script: Option<&'static str>,
    /// The variable that tells tests where the program is.
    variable: &'static str,
}

const CLAUDE: Package = Package {
    folder: "claude",
    program: "claude",
    script: Some("@anthropic-ai/claude-code"),
    variable: "PROSE_AGENT_CLAUDE",
};
const CODEX: Package = Package {
    folder: "codex",
    program: "codex",
    script: None,
    variable: "PROSE_AGENT_CODEX",
};
const GEMINI: Package = Package {
    folder: "gemini",
    program: "gemini",
    script: None,
    variable: "PROSE_AGENT_GEMINI",
};
const OPENCODE: Package = Package {
    folder: "opencode",
    program: "opencode",
    script: Some("opencode-ai"),
    variable: "PROSE_AGENT_OPENCODE",
};
const CLAUDE_ACP: Package = Package {
    folder: "claude-acp",
    program: "claude-agent-acp",
    script: None,
    variable: "PROSE_AGENT_CLAUDE_ACP",
};
const CODEX_ACP: Package = Package {
    folder: "codex-acp",
    program: "codex-acp",
    script: None,
    variable: "PROSE_AGENT_CODEX_ACP",
};

const OPENCLAW: Package = Package {
    folder: "openclaw",
    program: "openclaw",
    script: None,
    variable: "PROSE_AGENT_OPENCLAW",
};

impl Agent {
    /// Those that every change is tried with: Claude Code itself, and the lightest that speaks the Agent Client Protocol. The
    /// others are by name only.
    pub const ALWAYS: [Agent; 2] = [Agent::Claude, Agent::ClaudeAcp];

    fn package(self) -> Option<&'static Package> {
        let package = match self {
            Agent::Claude => &CLAUDE,
            Agent::Codex => &CODEX,
            Agent::Gemini | Agent::GeminiAcp => &GEMINI,
            Agent::Opencode | Agent::OpencodeAcp => &OPENCODE,
            Agent::ClaudeAcp => &CLAUDE_ACP,
            Agent::CodexAcp => &CODEX_ACP,
            Agent::Openclaw => &OPENCLAW,
            Agent::LocalModel => return None,
        };
        Some(package)
    }

    fn name(self) -> String {
        // Every variant has a name; none is skipped.
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

pub fn run(options: Options) -> Result<ExitCode> {
    let chosen = if options.only.is_empty() {
        let mut agents = Agent::value_variants().to_vec();
        agents.retain(|agent| *agent != Agent::LocalModel);
        agents
    } else {
        options.only
    };
    if options.bring {
        for (name, value) in variables(&chosen)? {
            say(&format!("export {name}='{}'", value.display()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut session = Session::default();
    add_case(&mut session, &chosen, options.case.as_deref());
    Ok(session.close())
}

/// Brings the given agents and tries them.
pub fn add_steps(session: &mut Session, agents: &[Agent]) {
    add_case(session, agents, None);
}

/// Brings the given agents and tries one case of each, or all of them.
fn add_case(session: &mut Session, agents: &[Agent], case: Option<&str>) {
    let Some(variables) = session.prepare("bring the agents", || variables(agents)) else {
        return;
    };
    let mut build = vec!["build", "--package", "prose-tests", "--bin", "agents"];
    // The others are not run by a backend of ours.
    let by_hand = |agent: &Agent| matches!(agent, Agent::Codex | Agent::Gemini | Agent::Opencode);
    if !agents.iter().all(by_hand) {
        build.extend(["--package", "prose-cli", "--bin", "prose"]);
    }
    if !session.step(
        "build the agents' tests",
        Kind::Check,
        command("cargo", &build, places::root()),
    ) {
        return;
    }
    let Some(tests) = session.prepare("find the agents' tests", || places::binary("agents")) else {
        return;
    };
    let mut tests = command(tests, &[], places::root());
    tests
        .args(agents.iter().map(|agent| match case {
            Some(case) => format!("{}::{case}", agent.name()),
            None => agent.name(),
        }))
        .envs(variables);
    session.step("agents against the mock model", Kind::Runner, tests);
}

/// Brings the given agents. The variables that tell where they are.
fn variables(agents: &[Agent]) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut all = vec![("PROSE_NODE", provision::node()?)];
    for package in agents.iter().filter_map(|agent| agent.package()) {
        if all.iter().all(|(variable, _)| *variable != package.variable) {
            let folder = provision::npm_locked(
                &places::root().join("tests/agents").join(package.folder),
                &format!("agent-{}", package.folder),
                &[],
                package.script,
            )?;
            all.push((
                package.variable,
                folder.join("node_modules/.bin").join(package.program),
            ));
        }
    }
    if agents.contains(&Agent::Openclaw) {
        all.push(("PROSE_NEWER_NODE", provision::newer_node()?));
    }
    if agents.contains(&Agent::LocalModel) {
        let packages = provision::npm_locked(
            &places::root().join("tests/agents/local-model"),
            "agent-local-model",
            // They are for graphics cards, and large.
            &["--omit=optional"],
            None,
        )?;
        all.push(("PROSE_LOCAL_MODEL_PACKAGES", packages));
        all.push(("PROSE_LOCAL_MODEL", provision::local_model()?));
        all.push(("PROSE_BIN", places::binary("prose")?));
    }
    Ok(all)
}
