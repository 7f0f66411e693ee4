//! Measurements on this machine: times of calls and of kernels, and the machine's limits with which they are compared.
//!
//! Limits are measured by hand-written kernels in the form that the scheduler generates, so that they run on the same vectors, threads
//! and memory as compiled models.
pub mod bandwidth;
pub mod caches;
mod machine;
pub mod multiply_adds;
pub mod profile;
mod roofline;
mod times;
pub mod tune;

pub use machine::{MachineLimits, Throughput, parallel_speedup};
pub use profile::Profile;
pub use roofline::Roofline;
pub use times::{Effort, Timer, Times, time_calls};

#[cfg(test)]
mod tests {
    use super::caches::{LEVELS, MachineCaches};
    use super::{bandwidth, multiply_adds};
    use crate::target::Target;

    #[test]
    fn what_is_measured_is_a_program() {
        let target = Target::resolve(None, Some("x86-64-v3"), None).or_else(|_| Target::resolve(None, None, None));
        let target = target.expect("a target");
        for threads in [1, 3] {
            crate::kernel::verify(&multiply_adds::program(target.lanes(4), threads)).expect("multiply-adds");
            crate::kernel::verify(&bandwidth::program(&target, 1 << 12, 2, threads)).expect("reads");
        }
    }

    #[test]
    fn every_level_is_larger_than_the_one_before() {
        let caches = MachineCaches::of_this_machine();
        let sizes: Vec<u64> = LEVELS.iter().filter_map(|&l| caches.bytes_per_thread(l, 1)).collect();
        assert!(sizes.is_sorted() && sizes.len() >= 3, "{sizes:?}");
    }
}
