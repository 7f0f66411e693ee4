//! `--tune FILE`: the choices of the model of costs against others, measured on this machine in the model they are for.
//!
//! All products take the second best tile, then all the third, and so on, and all convolutions the other way, direct or
//! Winograd's; each time every kernel is timed in whole calls, so that caches are as they will be. What wins by more than
//! measurements vary becomes a row.
//!
//! # How it works
//!
//! `schedule/plan/tile.rs` lists all register tiles with their predicted times; what a `Target`'s `Tuning` has for a product,
//! or tries, takes the place of the best; `schedule/plan/convolution.rs` asks it in the same way which method a convolution
//! takes. A kernel says what product it is and what was chosen (`Kernel::chosen`, `Kernel::method`); `cli/tune.rs` compiles
//! the whole graph once for each place in those lists, profiles it, and takes for each product what is faster by more than
//! measurements vary. The file is part of the input: no time is in it.
use super::args::CompileArgs;
use super::{graph, out, profile, progress};
use crate::codegen::Launches;
use crate::compile;
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::lower::Lowered;
use crate::package::files;
use crate::run::Session;
use crate::run::arguments;
use crate::target::{Choice, HOST_TRIPLE, Method, Target, Trial, Tuning};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is tried beside the model's choice.
const TRIALS: [Trial; 8] = [
    Trial::Tile(1),
    Trial::Tile(2),
    Trial::Tile(3),
    Trial::Tile(4),
    Trial::Tile(5),
    Trial::Tile(6),
    Trial::OtherOrder,
    Trial::OtherMethod,
];
/// Seconds that each trial is measured for.
const SECONDS: f64 = 0.4;
/// Seconds for the comparison at the end.
const LAST_SECONDS: f64 = 1.5;
/// What a choice must win by: a part of the time of the model's choice.
const LEAST_GAIN: f64 = 0.03;

/// What was chosen for each product or convolution, and the milliseconds that it took in a call.
type Timed<T> = BTreeMap<String, (T, f64)>;

/// Measures, adds the winners to `file`, and gives the target with them. Other rows of the file stay.
///
/// Errors: `Code::BadOption` for several targets and for one that is not this machine; `Code::Io`; those of a compile.
pub fn run(lowered: &Lowered, targets: &[Target], file: &Path, args: &CompileArgs) -> Result<Vec<Target>> {
    let target = here(targets)?;
    let mut tuning = if file.exists() { graph::tuning(file)? } else { Tuning::default() };
    let best = |trial| {
        let tried = Target { tuning: Tuning { trial, ..Tuning::default() }, ..target.clone() };
        times(lowered, &tried)
    };
    let model = best(Trial::None)?;
    let mut found = model.clone();
    for (i, trial) in TRIALS.iter().copied().enumerate() {
        progress::step(format_args!("measuring choice {} of {}", i + 1, TRIALS.len()));
        let (products, convolutions) = best(trial)?;
        take_better(&model.0, &mut found.0, products);
        take_better(&model.1, &mut found.1, convolutions);
    }
    let changed = (changed(&model.0, &found.0), changed(&model.1, &found.1));
    let sizes = (found.0.len(), found.1.len());
    add(&mut tuning, found);
    let mut tuned = Target { tuning, ..target.clone() };
    let (of_model, of_tuned) = compared(lowered, target, &tuned)?;
    if !args.graph.quiet {
        out::note(format_args!(
            "note: of {} products {} take other loops than the model of costs chose, of {} convolutions {} another method: {of_model:.3} ms a call with its choices, {of_tuned:.3} ms with the measured ones, {:.3} times as long",
            sizes.0,
            changed.0,
            sizes.1,
            changed.1,
            of_model / of_tuned,
        ));
    }
    // what wins kernel by kernel and loses in the whole was chance
    if of_tuned >= of_model {
        add(&mut tuned.tuning, model);
    }
    write(file, &tuned.tuning)?;
    Ok(vec![tuned])
}

/// The only target, which this machine must be.
fn here(targets: &[Target]) -> Result<&Target> {
    let [target] = targets else {
        return Err(Error::user(Code::BadOption, "one --cpu, please: --tune measures on this machine"));
    };
    let host = Target::resolve(None, None, None)?;
    let arch = |t: &str| t.split('-').next().unwrap_or("").to_string();
    if arch(&target.triple) != arch(HOST_TRIPLE) || target.level > host.level {
        let told =
            format!("--tune measures on this machine, which can't run code for {} {}", target.triple, target.cpu);
        return Err(Diagnostic::new(Code::BadOption, told)
            .help("tune on such a machine and use the file here, with --tuning FILE")
            .into());
    }
    Ok(target)
}

/// Puts what was tried in the place of what was found where it takes less, and less than the model's choice by enough.
fn take_better<T: Copy>(model: &Timed<T>, found: &mut Timed<T>, tried: Timed<T>) {
    for (form, (choice, ms)) in tried {
        let Some((_, of_model)) = model.get(&form) else { continue };
        let Some(slot) = found.get_mut(&form) else { continue };
        if ms < slot.1 && ms < of_model * (1.0 - LEAST_GAIN) {
            *slot = (choice, ms);
        }
    }
}

/// For how many something else was found than the model chose.
fn changed<T: PartialEq>(model: &Timed<T>, found: &Timed<T>) -> usize {
    found.iter().filter(|(form, row)| model.get(*form).is_some_and(|m| m.0 != row.0)).count()
}

/// Adds rows, in the place of those that are there.
fn add(tuning: &mut Tuning, (products, convolutions): (Timed<Choice>, Timed<Method>)) {
    tuning.rows.extend(products.into_iter().map(|(form, (choice, _))| (form, choice)));
    tuning.methods.extend(convolutions.into_iter().map(|(form, (method, _))| (form, method)));
}

/// The milliseconds of each product in a call, and of each convolution that has two methods.
fn times(lowered: &Lowered, target: &Target) -> Result<(Timed<Choice>, Timed<Method>)> {
    let (mut session, built) = session(lowered, target, Launches::Observed)?;
    let (least, _) = profile::measure(&built, &mut session, None, SECONDS)?;
    let (mut products, mut convolutions) = (Timed::new(), Timed::new());
    for (kernel, spent) in built.kernels.values().zip(least) {
        let ms = spent.time.as_secs_f64() * 1e3;
        if let Some((form, choice)) = &kernel.chosen {
            products.entry(form.clone()).or_insert((*choice, 0.0)).1 += ms;
        }
        if let Some((form, method)) = &kernel.method {
            convolutions.entry(form.clone()).or_insert((*method, 0.0)).1 += ms;
        }
    }
    Ok((products, convolutions))
}

/// The least milliseconds of a call for each of two targets, measured in turn.
fn compared(lowered: &Lowered, one: &Target, other: &Target) -> Result<(f64, f64)> {
    let (mut first, _) = session(lowered, one, Launches::Direct)?;
    let (mut second, _) = session(lowered, other, Launches::Direct)?;
    let (start, mut least, mut calls) = (Instant::now(), [Duration::MAX; 2], 0);
    while calls < 5 || start.elapsed().as_secs_f64() < LAST_SECONDS {
        for (session, least) in [&mut first, &mut second].into_iter().zip(&mut least) {
            // the first of two calls brings its own constants near
            session.call()?;
            let call = Instant::now();
            session.call()?;
            *least = (*least).min(call.elapsed());
        }
        calls += 1;
    }
    Ok((least[0].as_secs_f64() * 1e3, least[1].as_secs_f64() * 1e3))
}

fn session(lowered: &Lowered, target: &Target, launches: Launches) -> Result<(Session, crate::kernel::Program)> {
    let values = arguments::load(None, &lowered.args)?;
    let built = compile::build(lowered.clone(), "tuned", "", target, launches, &mut None)?;
    let session = Session::load(&built, target, &values, 1)?;
    Ok((session, built.program))
}

fn write(path: &Path, tuning: &Tuning) -> Result<()> {
    let mut temp = files::temp_beside(path)?;
    temp.write_all(tuning.to_string().as_bytes()).map_err(|e| io_error("written", path, &e))?;
    files::keep(temp, path)
}
