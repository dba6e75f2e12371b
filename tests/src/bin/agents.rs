//! `cargo xtask agents`: tries the real agents that it is given by name.
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
        let Some(agent) = Agent::ALL.into_iter().find(|agent| agent.name() == name) else {
            eprintln!("there is no agent {name}");
            return ExitCode::from(2);
        };
        trials.extend(
            cases(agent)
                .into_iter()
                .map(|(name, case)| Trial::test(name, move || case(agent).map_err(Into::into))),
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
