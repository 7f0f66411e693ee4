//! Weights that a product of one row reads once, at the speed of the memory that holds them, are asked for in the products before
//! it, which multiply most of the time: byte for byte beside the panels that those ask for themselves.
use crate::kernel::{BufId, Buffer, BufferLocation, Kernel, KernelId, Program, Step, Stmt};
use std::collections::HashMap;

/// Smallest weights, in bytes, that are prefetched an operation ahead: smaller ones come from the third-level cache fast enough.
const LEAST_BYTES: u64 = 256 << 10;
/// Upper limit of later products whose weights one kernel prefetches.
const MOST_LATER: usize = 3;

/// A kernel that prefetches panels while it multiplies.
struct Prefetcher {
    panels: BufId,
    /// Index of the first element of the panels that the kernel prefetches.
    first: i64,
    /// Number of later products whose weights the kernel already prefetches.
    later: usize,
}

/// Adds prefetches of weights that later kernels read.
pub fn add_prefetches(program: &mut Program) {
    let launches: Vec<KernelId> = program.steps.iter().filter_map(launched_kernel).collect();
    let of = |&id: &KernelId| Some((id, panel_prefetcher(&program.kernels[id])?));
    let mut askers: HashMap<KernelId, Prefetcher> = launches.iter().filter_map(of).collect();
    for (i, &reader) in launches.iter().enumerate() {
        let Some(weights) = program.kernels[reader].streamed else { continue };
        if bytes(&program.buffers[weights]) >= LEAST_BYTES {
            prefetch_before(program, &launches[..i], &mut askers, weights);
        }
    }
}

/// The prefetches of `kernel`, if all are of the panels of one product.
fn panel_prefetcher(kernel: &Kernel) -> Option<Prefetcher> {
    let all = prefetches_in(kernel, &kernel.body);
    let (panels, first) = all.iter().copied().reduce(|x, y| (x.0, x.1.min(y.1)))?;
    all.iter().all(|a| a.0 == panels).then_some(Prefetcher { panels, first, later: 0 })
}

fn launched_kernel(step: &Step) -> Option<KernelId> {
    match step {
        Step::Launch(kernel) => Some(*kernel),
        Step::Call(_) | Step::While { .. } | Step::Branch { .. } | Step::Together(_) => None,
    }
}

fn bytes(buffer: &Buffer) -> u64 {
    buffer.bytes()
}

/// Adds prefetches of `weights` to the last kernels of `launches` that prefetch panels, as many as it takes: the later a kernel runs, the
/// later the part of `weights` that it fetches.
fn prefetch_before(
    program: &mut Program,
    launches: &[KernelId],
    askers: &mut HashMap<KernelId, Prefetcher>,
    weights: BufId,
) {
    let (BufferLocation::Weights(start), mut left) = (program.buffers[weights].place, bytes(&program.buffers[weights]))
    else {
        return;
    };
    for &id in launches.iter().rev() {
        let Some(asker) = askers.get_mut(&id).filter(|asker| asker.later < MOST_LATER) else { continue };
        asker.later += 1;
        let (panels, first) = (asker.panels, asker.first);
        let own = &program.buffers[panels];
        let (dtype, size) = (own.dtype, own.dtype.bytes() as u64);
        let part = bytes(own).min(left) / size * size;
        left -= part;
        let place = BufferLocation::Weights(start + left);
        let slice = program.buffers.push(Buffer { dtype, elements: part / size, place });
        add_beside_panels(&mut program.kernels[id].body, panels, first, slice);
        if left < size {
            return;
        }
    }
}

/// The prefetches in statements of `kernel`: the buffer and the first element.
fn prefetches_in(kernel: &Kernel, body: &[Stmt]) -> Vec<(BufId, i64)> {
    let one = |s: &Stmt| match s {
        Stmt::Prefetch { buf, index } => vec![(*buf, index.range(&kernel.vars).0)],
        Stmt::For { body, .. } | Stmt::Let { body, .. } | Stmt::If { body, .. } | Stmt::While { body, .. } => {
            prefetches_in(kernel, body)
        }
        Stmt::Store { .. } | Stmt::Tiles(_) | Stmt::Set { .. } | Stmt::Release => vec![],
    };
    body.iter().flat_map(one).collect()
}

/// Adds a prefetch of buffer `more` after each prefetch of `panels`: of element `i - first` where the latter fetches element `i`.
fn add_beside_panels(body: &mut Vec<Stmt>, panels: BufId, first: i64, more: BufId) {
    let mut added = Vec::new();
    for (i, s) in body.iter_mut().enumerate() {
        match s {
            Stmt::Prefetch { buf, index } if *buf == panels => {
                added.push((i, Stmt::Prefetch { buf: more, index: index.offset(-first) }));
            }
            Stmt::For { body, .. } | Stmt::Let { body, .. } | Stmt::If { body, .. } | Stmt::While { body, .. } => {
                add_beside_panels(body, panels, first, more)
            }
            Stmt::Prefetch { .. } | Stmt::Store { .. } | Stmt::Tiles(_) | Stmt::Set { .. } | Stmt::Release => {}
        }
    }
    for (i, s) in added.into_iter().rev() {
        body.insert(i, s);
    }
}
