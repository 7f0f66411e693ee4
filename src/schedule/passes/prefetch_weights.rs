//! Weights that a product of one row reads once, at the speed of the memory that holds them, are asked for in the products before
//! it, which multiply most of the time: byte for byte beside the panels that those ask for themselves.
use crate::kernel::{BufId, Buffer, BufferLocation, Kernel, KernelId, Program, Step, Stmt};
use std::collections::HashMap;

/// Least bytes that are asked for so early: less comes from the third level in no time.
const LEAST_BYTES: u64 = 256 << 10;
/// The weights of how many later products a kernel asks for.
const MOST_LATER: usize = 3;

/// A kernel that asks for panels while it multiplies.
struct Prefetcher {
    panels: BufId,
    /// The first element that it asks for.
    first: i64,
    /// The number of later products whose weights the kernel prefetches already.
    later: usize,
}

/// Adds to kernels what later ones will read.
pub fn ask(program: &mut Program) {
    let launches: Vec<KernelId> = program.steps.iter().filter_map(launched).collect();
    let of = |&id: &KernelId| Some((id, asker(&program.kernels[id])?));
    let mut askers: HashMap<KernelId, Prefetcher> = launches.iter().filter_map(of).collect();
    for (i, &reader) in launches.iter().enumerate() {
        let Some(weights) = program.kernels[reader].streamed else { continue };
        if bytes(&program.buffers[weights]) >= LEAST_BYTES {
            before(program, &launches[..i], &mut askers, weights);
        }
    }
}

/// The prefetches of `kernel`, where all are of the panels of one product.
fn asker(kernel: &Kernel) -> Option<Prefetcher> {
    let all = asked(kernel, &kernel.body);
    let (panels, first) = all.iter().copied().reduce(|x, y| (x.0, x.1.min(y.1)))?;
    all.iter().all(|a| a.0 == panels).then_some(Prefetcher { panels, first, later: 0 })
}

fn launched(step: &Step) -> Option<KernelId> {
    match step {
        Step::Launch(kernel) => Some(*kernel),
        Step::Call(_) | Step::While { .. } | Step::Branch { .. } | Step::Together(_) => None,
    }
}

fn bytes(buffer: &Buffer) -> u64 {
    buffer.bytes()
}

/// Has `weights` asked for by the last of `launches` that ask for panels: the last of it by the last of them.
fn before(program: &mut Program, launches: &[KernelId], askers: &mut HashMap<KernelId, Prefetcher>, weights: BufId) {
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
        beside(&mut program.kernels[id].body, panels, first, slice);
        if left < size {
            return;
        }
    }
}

/// The prefetches in statements of `kernel`: the buffer, and the first element in it.
fn asked(kernel: &Kernel, body: &[Stmt]) -> Vec<(BufId, i64)> {
    let one = |s: &Stmt| match s {
        Stmt::Prefetch { buf, index } => vec![(*buf, index.range(&kernel.vars).0)],
        Stmt::For { body, .. } | Stmt::Let { body, .. } | Stmt::If { body, .. } | Stmt::While { body, .. } => {
            asked(kernel, body)
        }
        Stmt::Store { .. } | Stmt::Tiles(_) | Stmt::Set { .. } | Stmt::Release => vec![],
    };
    body.iter().flat_map(one).collect()
}

/// Wherever an element of `panels` is asked for, that of `more` is too, counted from element `first` of those.
fn beside(body: &mut Vec<Stmt>, panels: BufId, first: i64, more: BufId) {
    let mut added = Vec::new();
    for (i, s) in body.iter_mut().enumerate() {
        match s {
            Stmt::Prefetch { buf, index } if *buf == panels => {
                added.push((i, Stmt::Prefetch { buf: more, index: index.offset(-first) }));
            }
            Stmt::For { body, .. } | Stmt::Let { body, .. } | Stmt::If { body, .. } | Stmt::While { body, .. } => {
                beside(body, panels, first, more)
            }
            Stmt::Prefetch { .. } | Stmt::Store { .. } | Stmt::Tiles(_) | Stmt::Set { .. } | Stmt::Release => {}
        }
    }
    for (i, s) in added.into_iter().rev() {
        body.insert(i, s);
    }
}
