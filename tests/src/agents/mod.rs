//! Real agents, each run against the mock model in a home of its own: what their command lines and their Agent Client
//! Protocol do in a plain turn, in a turn with a tool, and when the service is busy for a moment.

mod acp;
mod acp_program;
mod cases;
mod handed;
pub mod local;
mod openclaw;
mod program;
mod stage;

use std::path::PathBuf;

pub use cases::cases;
pub use stage::{KEY, Stage};

/// A real agent, and how it is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code's command line.
    Claude,
    /// Codex's command line.
    Codex,
    /// Gemini CLI's command line.
    Gemini,
    /// OpenCode's command line.
    Opencode,
    /// Claude Code through its adapter.
    ClaudeAcp,
    /// Codex through its adapter.
    CodexAcp,
    /// Gemini CLI, which speaks the protocol itself.
    GeminiAcp,
    /// OpenCode, which speaks the protocol itself.
    OpencodeAcp,
    /// A gateway of OpenClaw.
    Openclaw,
}

impl Agent {
    /// All of them.
    pub const ALL: [Agent; 9] = [
        Agent::Claude,
        Agent::Codex,
        Agent::Gemini,
        Agent::Opencode,
        Agent::ClaudeAcp,
        Agent::CodexAcp,
        Agent::GeminiAcp,
        Agent::OpencodeAcp,
        Agent::Openclaw,
    ];

    /// Its name, as `cargo xtask agents --only` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::Opencode => "opencode",
            Agent::ClaudeAcp => "claude-acp",
            Agent::CodexAcp => "codex-acp",
            Agent::GeminiAcp => "gemini-acp",
            Agent::OpencodeAcp => "opencode-acp",
            Agent::Openclaw => "openclaw",
        }
    }

    /// The program, if `cargo xtask agents` has brought it: the variable `PROSE_AGENT_` with the package's name says where.
    pub fn program(self) -> Option<PathBuf> {
        let variable = match self {
            Agent::Claude => "PROSE_AGENT_CLAUDE",
            Agent::Codex => "PROSE_AGENT_CODEX",
            Agent::Gemini | Agent::GeminiAcp => "PROSE_AGENT_GEMINI",
            Agent::Opencode | Agent::OpencodeAcp => "PROSE_AGENT_OPENCODE",
            Agent::ClaudeAcp => "PROSE_AGENT_CLAUDE_ACP",
            Agent::CodexAcp => "PROSE_AGENT_CODEX_ACP",
            Agent::Openclaw => "PROSE_AGENT_OPENCLAW",
        };
        std::env::var_os(variable).map(PathBuf::from)
    }

    /// What makes the program speak the Agent Client Protocol; none for a command line.
    pub fn acp_arguments(self) -> Option<&'static [&'static str]> {
        match self {
            Agent::Claude | Agent::Codex | Agent::Gemini | Agent::Opencode | Agent::Openclaw => None,
            Agent::ClaudeAcp | Agent::CodexAcp => Some(&[]),
            // Without a model named, a small model is asked first which one to take.
            Agent::GeminiAcp => Some(&["--model", "gemini-2.5-flash", "--acp"]),
            Agent::OpencodeAcp => Some(&["acp"]),
        }
    }
}
