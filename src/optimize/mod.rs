//! HLO to better HLO: an ordered list of passes.
//!
//! A pass is a function and a row of [`PIPELINE`]. Passes keep the shapes of parameters and of the root, and every value to
//! the bit, but for those that say otherwise. In debug builds the verifier runs after each and blames it.
mod constant;
mod cse;
mod dce;
mod expand;
mod fixed_sizes;
mod fold_constants;
mod hoist_products;
mod host_calls;
mod inline_calls;
mod narrow_products;
mod pad_into_window;
mod precision;
mod quantization;
mod repeated_lists;
pub mod rewrite;
mod scale_into_weights;
mod simplify;
mod simplify_loops;
mod space_to_batch;

use std::time::{Duration, Instant};

use crate::diag::{Code, Error, Result};
use crate::hlo::{Module, verify};
pub use expand::fft::kernel::fft_radices;
use expand::inline_module;
pub use expand::{EXPANSIONS, replace_foreign_calls};
pub use host_calls::{HOST_CALL, HostCall, HostCalls, separate_host_calls};
pub use precision::reduce_precision;
pub use quantization::multiply_quantized_values_as_integers;
pub use rewrite::Changed;

/// An optimization pass over a module.
#[derive(Debug)]
pub struct Pass {
    /// Kebab-case name, as `--passes` takes it.
    pub name: &'static str,
    /// A one-line description of the pass.
    pub about: &'static str,
    /// Runs the pass.
    pub run: fn(&mut Module) -> Result<Changed>,
}

/// Every pass, in the order in which they run.
#[rustfmt::skip]
pub const PIPELINE: &[Pass] = &[
    Pass { name: "dce",                about: "drops instructions and computations that no result needs",        run: dce::dce },
    Pass { name: "inline-calls",       about: "puts the body of a called computation in place of the call",      run: inline_calls::inline_calls },
    Pass { name: "fixed-sizes",        about: "gives bounded arrays the sizes that constants say they have",     run: fixed_sizes::resolve_fixed_sizes },
    Pass { name: "simplify",           about: "applies algebraic rules",                                         run: simplify::simplify },
    Pass { name: "fold-constants",     about: "computes what depends on constants only",                         run: fold_constants::fold_constants },
    Pass { name: "space-to-batch",     about: "dilates a depthwise window instead of cutting planes apart",      run: space_to_batch::space_to_batch },
    Pass { name: "scale-into-weights", about: "moves scales and offsets per feature into weights and one bias",  run: scale_into_weights::scale_into_weights },
    Pass { name: "pad-into-window",    about: "makes a pad the padding of the window that reads it",             run: pad_into_window::pad_into_window },
    Pass { name: "narrow-products",    about: "multiplies bytes as bytes where sums are integers of 32 bits",    run: narrow_products::narrow_products },
    Pass { name: "simplify-loops",     about: "takes out of a loop's state what does not change or is not read", run: simplify_loops::simplify_loops },
    Pass { name: "hoist-products",     about: "multiplies all steps of a sequence before the loop over it",     run: hoist_products::hoist_products },
    Pass { name: "repeated-lists",     about: "takes out of a loop lists into which each round puts one value",  run: repeated_lists::replace_repeated_lists },
    Pass { name: "cse",                about: "computes equal things once",                                      run: cse::cse },
];

/// Upper limit of repetitions of the pipeline while a pass changes something.
const MAX_ROUNDS: usize = 8;

/// Runs every pass in order, again until nothing changes (at most a fixed number of times).
///
/// # Errors
/// An internal one that names the pass.
pub fn run(module: &mut Module) -> Result<()> {
    run_passes(module, &[], |_, _, _, _| {})
}

/// Runs the passes named, once and in that order; the whole pipeline to its fixed point where none is named.
///
/// `observer` sees each pass that ran: its name, the module after it, whether it changed anything, and the time it took.
///
/// # Errors
/// `Code::BadOption` for a name that is no pass; an internal error that names the pass otherwise.
pub fn run_passes(
    module: &mut Module,
    passes: &[&str],
    mut observer: impl FnMut(&str, &Module, Changed, Duration),
) -> Result<()> {
    if passes.is_empty() {
        for _ in 0..MAX_ROUNDS {
            let mut changed = Changed::No;
            for pass in PIPELINE {
                changed = changed.or(run_pass(module, pass, &mut observer)?);
            }
            if changed == Changed::No {
                break;
            }
        }
        return Ok(());
    }
    let chosen = passes.iter().map(|name| find(name)).collect::<Result<Vec<_>>>()?;
    for pass in chosen {
        run_pass(module, pass, &mut observer)?;
    }
    Ok(())
}

/// Expands opcodes that have no kernel to opcodes that have one, and runs the pipeline on the result.
///
/// # Errors
/// Errors of the expansions, and an internal one that names the pass.
pub fn expand(module: &mut Module) -> Result<()> {
    let mut changed = Changed::No;
    for pass in EXPANSIONS {
        changed = changed.or(run_pass(module, pass, &mut |_, _, _, _| {})?);
    }
    if changed == Changed::Yes { run(module) } else { Ok(()) }
}

/// The pass of this name; `Code::BadOption` where there is none.
///
/// # Errors
/// `Code::BadOption` where there is none.
pub fn find(name: &str) -> Result<&'static Pass> {
    PIPELINE.iter().chain(EXPANSIONS).find(|p| p.name == name).ok_or_else(|| {
        let names: Vec<&str> = PIPELINE.iter().chain(EXPANSIONS).map(|p| p.name).collect();
        Error::user(Code::BadOption, format!("`{name}` is no pass; there are {}", names.join(", ")))
    })
}

fn run_pass(
    module: &mut Module,
    pass: &'static Pass,
    observer: &mut impl FnMut(&str, &Module, Changed, Duration),
) -> Result<Changed> {
    let start = Instant::now();
    let changed = (pass.run)(module)?;
    let taken = start.elapsed();
    if cfg!(debug_assertions) && changed == Changed::Yes {
        verify::verify(module).map_err(|e| Error::internal(pass.name, e.to_string()))?;
    }
    observer(pass.name, module, changed, taken);
    Ok(changed)
}

#[cfg(test)]
mod tests;
