//! Tuning: measures alternatives to the cost model's choices, on this machine and within the model concerned.
//!
//! All matrix products use their second best tile, then all the third best, and so on, and all convolutions use the other algorithm, direct
//! or Winograd's. Each time every kernel is timed in whole calls, so that caches are in a realistic state. A choice that wins by more
//! than the variance of measurements becomes a row of the [`Tuning`].
//!
//! # How it works
//!
//! `schedule/families/contraction/recipe/register_tile.rs` lists all register tiles with their predicted times; the row of a target's [`Tuning`] for a product, or
//! its trial, takes the place of the best; `schedule/families/convolution/recipe/algorithm.rs` asks it in the same way for the algorithm of a convolution.
//! A kernel has the product that it computes and the choice (`kernel::Provenance`). The whole graph is compiled
//! once for each position in those lists and profiled, and each product takes what is faster by more than measurements vary.
use super::profile;
use crate::codegen::Launches;
use crate::compile;
use crate::diag::Result;
use crate::kernel::Program;
use crate::lower::Lowered;
use crate::run::{Session, arguments};
use crate::target::{CodeRequest, ConvolutionMethod, TileChoice, Tuning, TuningTrial};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Alternatives to the cost model's choice that are tried.
const TRIALS: [TuningTrial; 8] = [
    TuningTrial::Tile(1),
    TuningTrial::Tile(2),
    TuningTrial::Tile(3),
    TuningTrial::Tile(4),
    TuningTrial::Tile(5),
    TuningTrial::Tile(6),
    TuningTrial::OtherOrder,
    TuningTrial::OtherMethod,
];
/// Seconds for which each trial is measured.
const SECONDS: f64 = 0.4;
/// Seconds for comparing the tuned model with the untuned one.
const LAST_SECONDS: f64 = 1.5;
/// Fraction of the time of the cost model's choice that an alternative must save.
const LEAST_GAIN: f64 = 0.03;

/// By product or convolution: the choice, and its milliseconds in a call.
type Timed<T> = BTreeMap<String, (T, f64)>;

/// Tuned choices for a model, and their gain.
pub struct TuningResult {
    /// The previous rows and those of this model.
    pub tuning: Tuning,
    /// Number of products of the model.
    pub products: usize,
    /// Number of products for which an alternative was faster.
    pub changed_products: usize,
    /// Number of convolutions with two algorithms.
    pub convolutions: usize,
    /// Number of convolutions for which the other algorithm was faster.
    pub changed_convolutions: usize,
    /// Milliseconds of a call with the cost model's choices.
    pub untuned_ms: f64,
    /// Milliseconds of a call with the measured choices.
    pub tuned_ms: f64,
}

/// Measures a function without variables, and adds the faster choices to `tuning`. `progress` receives the number of each trial and the
/// number of trials.
///
/// # Errors
/// Errors of compiling, loading and calling.
pub fn tune(
    lowered: &Lowered,
    request: &CodeRequest,
    mut tuning: Tuning,
    progress: impl Fn(usize, usize),
) -> Result<TuningResult> {
    let measure = |trial| {
        let tried = CodeRequest { tuning: Tuning { trial, ..Tuning::default() }, ..request.clone() };
        times(lowered, &tried)
    };
    let model = measure(TuningTrial::None)?;
    let mut best = model.clone();
    for (i, trial) in TRIALS.iter().copied().enumerate() {
        progress(i + 1, TRIALS.len());
        let (products, convolutions) = measure(trial)?;
        take_faster(&model.0, &mut best.0, products);
        take_faster(&model.1, &mut best.1, convolutions);
    }
    let (changed_products, changed_convolutions) = (count_changed(&model.0, &best.0), count_changed(&model.1, &best.1));
    let (products, convolutions) = (best.0.len(), best.1.len());
    add_rows(&mut tuning, best.0, best.1);
    let mut tuned = CodeRequest { tuning, ..request.clone() };
    let (untuned_ms, tuned_ms) = compare(lowered, request, &tuned)?;
    // an alternative that wins in its kernel but loses in the whole model won by chance
    if tuned_ms >= untuned_ms {
        add_rows(&mut tuned.tuning, model.0, model.1);
    }
    let tuning = tuned.tuning;
    Ok(TuningResult { tuning, products, changed_products, convolutions, changed_convolutions, untuned_ms, tuned_ms })
}

/// Replaces choices in `best` by faster ones that also save [`LEAST_GAIN`] of the time of the cost model's choice.
fn take_faster<T: Copy>(model: &Timed<T>, best: &mut Timed<T>, tried: Timed<T>) {
    for (form, (choice, ms)) in tried {
        let Some((_, of_model)) = model.get(&form) else { continue };
        let Some(slot) = best.get_mut(&form) else { continue };
        if ms < slot.1 && ms < of_model * (1.0 - LEAST_GAIN) {
            *slot = (choice, ms);
        }
    }
}

/// Number of choices that differ from the cost model's.
fn count_changed<T: PartialEq>(model: &Timed<T>, best: &Timed<T>) -> usize {
    best.iter().filter(|(form, row)| model.get(*form).is_some_and(|m| m.0 != row.0)).count()
}

/// Adds rows, replacing those for the same products and convolutions.
fn add_rows(tuning: &mut Tuning, products: Timed<TileChoice>, convolutions: Timed<ConvolutionMethod>) {
    tuning.rows.extend(products.into_iter().map(|(form, (choice, _))| (form, choice)));
    tuning.methods.extend(convolutions.into_iter().map(|(form, (method, _))| (form, method)));
}

/// Measures the milliseconds in a call of each product, and of each convolution that has two algorithms.
fn times(lowered: &Lowered, request: &CodeRequest) -> Result<(Timed<TileChoice>, Timed<ConvolutionMethod>)> {
    let (mut session, program) = load(lowered, request, Launches::Observed)?;
    let (least, _) = profile::kernel_times(&program, &mut session, None, SECONDS)?;
    let (mut products, mut convolutions) = (Timed::new(), Timed::new());
    for (kernel, time) in program.kernels.values().zip(least) {
        let ms = time.time.as_secs_f64() * 1e3;
        if let Some(product) = kernel.product_choice() {
            products.entry(product.form.clone()).or_insert((product.choice, 0.0)).1 += ms;
        }
        if let Some((form, method)) = kernel.convolution_choice() {
            convolutions.entry(form.clone()).or_insert((*method, 0.0)).1 += ms;
        }
    }
    Ok((products, convolutions))
}

/// Measures the minimum milliseconds of a call of code for two requests, alternating between them.
fn compare(lowered: &Lowered, one: &CodeRequest, other: &CodeRequest) -> Result<(f64, f64)> {
    let (mut first, _) = load(lowered, one, Launches::Direct)?;
    let (mut second, _) = load(lowered, other, Launches::Direct)?;
    let (start, mut least, mut calls) = (Instant::now(), [Duration::MAX; 2], 0);
    while calls < 5 || start.elapsed().as_secs_f64() < LAST_SECONDS {
        for (session, least) in [&mut first, &mut second].into_iter().zip(&mut least) {
            // the first of two calls loads its own constants into the caches
            session.call()?;
            let call = Instant::now();
            session.call()?;
            *least = (*least).min(call.elapsed());
        }
        calls += 1;
    }
    Ok((least[0].as_secs_f64() * 1e3, least[1].as_secs_f64() * 1e3))
}

/// Compiles and loads the model, with random arguments.
fn load(lowered: &Lowered, request: &CodeRequest, launches: Launches) -> Result<(Session, Program)> {
    let values = arguments::load(None, &lowered.args)?;
    let built = compile::build(lowered.clone(), "tuned", "", request, launches, &mut None)?;
    let session = Session::load(&built, &request.target, &values, 1)?;
    Ok((session, built.program))
}
