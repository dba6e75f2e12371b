//! Agents of a few lines of shell, in the place of real ones: what a backend does with an agent that breaks down can be tried
//! without a real one that does.

use std::path::Path;

/// What every stand-in for Claude Code begins with: it tells its version, and keeps its arguments, its variables and the two
/// lines that it is told in the folder `D`. `init` says hello, `use N TOOL INPUT` asks for a tool, `say TEXT` says something,
/// `deliver TEXT` writes the session's result, `done_with TEXT` ends the turn.
const CLAUDE: &str = r#"
case "$*" in *--version) echo "${VERSION:-2.1.197} (Claude Code)"; exit 0;; esac
for arg in "$@"; do printf '%s\n' "$arg"; done > "$D/args"
env > "$D/env"
read -r line; printf '%s\n' "$line" > "$D/init"
read -r prompt; printf '%s\n' "$prompt" > "$D/prompt"
init() { echo '{"type":"system","subtype":"init","model":"claude-model-1"}'; }
use() { printf '%s\n' '{"type":"control_request","request_id":"q'"$1"'","request":{"subtype":"hook_callback","callback_id":"tool","input":{"tool_name":"'"$2"'","tool_input":'"$3"'}}}'; read -r line; printf '%s\n' "$line" >> "$D/answers"; }
say() { printf '%s\n' '{"type":"assistant","parent_tool_use_id":null,"message":{"id":"m1","usage":{"input_tokens":9,"output_tokens":1},"content":[{"type":"text","text":"'"$1"'"}]}}'; }
done_with() { printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"'"$1"'","total_cost_usd":0.25,"modelUsage":{"a":{"inputTokens":10,"cacheReadInputTokens":5,"outputTokens":7}},"permission_denials":'"${2:-[]}"'}'; read -r rest; exit 0; }
"#;

/// What every stand-in for an agent of the Agent Client Protocol begins with. `next` takes the next message and keeps it in the
/// folder `D`, `ok` and `fails` answer it, `update` says what is new, `ask KIND FIELDS` asks for permission, `turn` takes the
/// prompt, `deliver TEXT` writes the session's result, `end` ends the turn.
const ACP: &str = r#"
env > "$D/env"; pwd > "$D/pwd"
next() { read -r line || exit 0; printf '%s\n' "$line" >> "$D/in"; id=$(printf '%s' "$line" | grep -o '"id":[^,}]*' | head -n 1 | cut -c 6-); }
ok() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
fails() { printf '{"jsonrpc":"2.0","id":%s,"error":%s}\n' "$id" "$1"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}\n' "$1"; }
say() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
call() { update '{"sessionUpdate":"tool_call","toolCallId":"t'"$1"'","title":"'"$2"'","kind":"'"$3"'"}'; }
options='[{"optionId":"A","name":"No","kind":"allow_always"},{"optionId":"a","name":"Stop","kind":"allow_once"},{"optionId":"r","name":"Approve all","kind":"reject_once"}]'
ask() { count=$((count + 1)); printf '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"q'$count'","kind":"%s",%s},"options":%s}}\n' "$1" "$2" "${3:-$options}"; read -r line; printf '%s\n' "$line" >> "$D/answers"; }
hello() { next; ok '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"gemini-api-key","name":"A key"}]}'; }
session() { next; ok '{"sessionId":"s1"'"$1"'}'; }
turn() { next; turn=$id; prompt=$line; }
end() { id=$turn; ok '{"stopReason":"'"${1:-end_turn}"'"'"$2"'}'; cat > /dev/null; }
wrote() { printf 'the result' > "$S/binding.md"; end; }
"#;

/// What both have: where the prompt says that the result is to be written, if no folder `S` is given for it.
const DELIVER: &str = r#"
deliver() { out=$S/binding.md; [ "$S" ] || out=$(printf '%s' "$prompt" | sed 's/.*write your output to:\\n  \([^\\]*\)\\n.*/\1/'); printf '%s' "$1" > "$out"; }
"#;

/// The text of a program in Claude Code's place. `places` are variables of the script, `D` among them.
pub fn claude(places: &[(&str, &Path)], script: &str) -> String {
    program(places, CLAUDE, script)
}

/// The text of a program that speaks the Agent Client Protocol. `places` are variables of the script, `D` among them.
pub fn acp(places: &[(&str, &Path)], script: &str) -> String {
    program(places, ACP, script)
}

/// Puts the text of a program into a file that can be run.
///
/// # Errors
/// Those of the file system.
#[cfg(unix)]
pub fn install(file: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(file, text)?;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
}

fn program(places: &[(&str, &Path)], head: &str, script: &str) -> String {
    let places = places
        .iter()
        .map(|(name, path)| format!("{name}='{}'\n", path.display()));
    let places: String = places.collect();
    format!("#!/bin/sh\n{places}{head}{DELIVER}{script}\n")
}
