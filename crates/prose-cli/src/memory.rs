//! How the process asks the system for memory and gives it back. Only the C library of GNU needs to be told; others do without.

/// Sets up the allocator. To be called before there are other threads.
///
/// Without this every thread would get a pool of its own, and what one thread has freed would not be used by another. And
/// the text of a long document, copied for each edit, would be put between small things that stay: each hole it leaves is
/// too small for the next copy.
pub(crate) fn set_up() {
    gnu::set_up();
}

/// Gives back what is free. Takes some milliseconds for each 100 MB.
pub(crate) fn give_back() {
    gnu::give_back();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
mod gnu {
    /// Pools that threads share. One would make readers wait for each other.
    const POOLS: libc::c_int = 2;
    /// What is at least so long is mapped alone, and given back as soon as it is freed.
    const ALONE: libc::c_int = 2 * 1024 * 1024;
    /// So much may be free at the end of a pool.
    const FREE: libc::c_int = 8 * 1024 * 1024;

    pub(super) fn set_up() {
        for (what, value) in [
            (libc::M_ARENA_MAX, POOLS),
            (libc::M_MMAP_THRESHOLD, ALONE),
            (libc::M_TRIM_THRESHOLD, FREE),
        ] {
            // SAFETY: any parameter and value may be given; those that make no sense are refused.
            unsafe { libc::mallopt(what, value) };
        }
    }

    pub(super) fn give_back() {
        // SAFETY: may be called at any time; touches only what is free, under the allocator's own locks.
        unsafe { libc::malloc_trim(0) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod gnu {
    pub(super) fn set_up() {}
    pub(super) fn give_back() {}
}
