//! Programs on which machine and model once differed, each with who was right.

use prose_model::BindKind;

use crate::build::*;
use crate::compare;
use crate::generate::Case;

#[track_caller]
fn agree(case: Case) {
    if let Err(difference) = compare(&case) {
        panic!("{case:?}\n{difference}");
    }
}

/// The machine: a leading input whose prompt inserts its own name is not asked with the others.
#[test]
fn an_input_that_inserts_its_own_name() {
    agree(Case {
        bundle: bundle(vec![
            program(vec![input("a", "A?"), input("b", "Q {b}?"), session("S {a} {b}")]).block(block(
                "unused",
                &[],
                vec![bind(BindKind::Let, "b", null())],
            )),
        ]),
        picks: vec![1, 1, 1],
    });
}
