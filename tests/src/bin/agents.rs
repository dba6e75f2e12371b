//! `cargo xtask agents`: tries the real agents that it is given by name. A name such as `openclaw::program` is one case of an
//! agent.
#![allow(clippy::print_stderr)]

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    use libtest_mimic::{Arguments, Trial};
    use prose_tests::agents::{Agent, cases, local};

    let names: Vec<String> = std::env::args().skip(1).collect();
    let mut trials = Vec::new();
    for name in &names {
        if name == "local-model" {
            trials.push(Trial::test("local-model::run", || {
                local::run().map_err(Into::into)
            }));
            continue;
        }
        let agent_name = name.split("::").next();
        let Some(agent) = Agent::ALL
            .into_iter()
            .find(|agent| Some(agent.name()) == agent_name)
        else {
            eprintln!("there is no agent {name}");
            return ExitCode::from(2);
        };
        let mut tried = cases(agent);
        tried.retain(|(case, _)| agent.name() == name || case == name);
        if tried.is_empty() {
            let all: Vec<String> = cases(agent).into_iter().map(|(case, _)| case).collect();
            eprintln!("there is no case {name}; there are {}", all.join(", "));
            return ExitCode::from(2);
        }
        trials.extend(
            tried
                .into_iter()
                .map(|(case, run)| Trial::test(case, move || run(agent).map_err(Into::into))),
        );
    }
    let arguments = Arguments {
        // Agents are large; a few at once are enough for any machine.
        test_threads: Some(2),
        ..Arguments::default()
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("the agents are tried on Unix only");
    ExitCode::from(2)
}
