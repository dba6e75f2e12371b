//! Fuzz targets: an input is handed to [`test_fuzz::Target::check`], and new inputs are made half by the fuzzer's own changes of
//! bytes and half by [`test_fuzz::change`], which knows what programs are made of.
//!
//! Deliberately absent: what must hold. It is in `test-fuzz`, where ordinary tests call it too.
//!
//! Architecture invariant: every input that is tried is valid UTF-8, so that one that fails can be kept as a text.

pub use libfuzzer_sys;
use test_fuzz::Target;

/// Makes the next input out of the first `size` bytes of `data`, in place; gives its size.
pub fn mutate(target: Target, data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let most = most.min(data.len());
    let text = if seed % 2 == 0 {
        let size = libfuzzer_sys::fuzzer_mutate(data, size, most);
        String::from_utf8_lossy(&data[..size]).into_owned()
    } else {
        let input = String::from_utf8_lossy(&data[..size]);
        test_fuzz::change(target, &input, u64::from(seed), most)
    };
    // Replaced bytes take more room than they had.
    let size = (0..=text.len().min(most))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    data[..size].copy_from_slice(&text.as_bytes()[..size]);
    size
}

/// The program of a target.
#[macro_export]
macro_rules! target {
    ($target:ident) => {
        use $crate::libfuzzer_sys::{fuzz_mutator, fuzz_target};

        fuzz_target!(|data: &[u8]| {
            test_fuzz::Target::$target.check(data);
        });

        fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::mutate(test_fuzz::Target::$target, data, size, max_size, seed)
        });
    };
}
