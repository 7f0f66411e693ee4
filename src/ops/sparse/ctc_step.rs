//! Single step of a CTC beam search: every leaf receives the step's emissions, and the best of the leaves and their children
//! become the next leaves.
use super::ctc_beam::{BeamLeaves, BeamSizes};
use super::ctc_loss::log_add_exp;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::array::gather::gather_slices;
use crate::ops::counted_loop::{counted_loop, slice_at};
use crate::ops::math::special::compare_scalar;
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;

/// Leaves before a step, with their own probabilities after it; arrays `[batch, width]`, except for the first three.
struct Growth {
    /// `[batch, classes - 1]`: log-probability of each label.
    emitted: InstId,
    /// `pred[batch, width (child), width (parent)]`: whether a leaf is the child of another.
    is_child: InstId,
    before: BeamLeaves,
    /// Log-probabilities of the leaves after the step, without their children.
    total: InstId,
    blank: InstId,
    label: InstId,
}

/// Leaves of the beam search after time step `t`.
pub(super) fn beam_search_step(b: &mut Builder, s: BeamSizes, leaves: &BeamLeaves, x: InstId, t: InstId) -> BeamLeaves {
    let (all, dtype) = ([s.batch, s.classes], b.dtype(x));
    let now = slice_at(b, x, t);
    let norm = normalizer(b, now);
    let spread = b.broadcast(norm, &all, &[0]);
    let logs = b.sub(now, spread);
    let emitted = b.slice_axis(logs, 1, Dim::from(0), s.classes - 1);
    let is_child = {
        let dims = [s.batch, s.width, s.width];
        let (parent, node) = (b.broadcast(leaves.parent, &dims, &[0, 1]), b.broadcast(leaves.node, &dims, &[0, 2]));
        b.compare(Direction::Eq, parent, node)
    };
    // Paths of the leaf, extended by a blank.
    let blank = b.slice_axis(now, 1, s.classes - 1, s.classes);
    let blank = b.broadcast_to(blank, &[s.batch, s.width]);
    let blank = b.add(leaves.total, blank);
    let norm = b.broadcast(norm, &[s.batch, s.width], &[0]);
    let blank = b.sub(blank, norm);
    // Paths extended by the last label: repeated, or new behind the parent.
    let from_parent = from_parents(b, s, leaves, is_child);
    let sum = log_add_exp(b, leaves.label, from_parent);
    let none = b.full(DType::S32, &[s.batch, s.width], 0.0);
    let at = b.max(leaves.last, none);
    let own = gather_slices(b, logs, at, 1, 1);
    let sum = b.add(sum, own);
    let is_root = compare_scalar(b, Direction::Lt, leaves.last, 0.0);
    let nothing = b.full(dtype, &[s.batch, s.width], f64::NEG_INFINITY);
    let label = b.select(is_root, nothing, sum);
    let total = log_add_exp(b, blank, label);
    let growth = Growth { emitted, is_child, before: *leaves, total, blank, label };
    let ranked = grow(b, s, &growth);
    leaves_of(b, s, &growth, &ranked, t)
}

/// Log-sum-exp over the last of two axes.
fn normalizer(b: &mut Builder, x: InstId) -> InstId {
    let (dims, dtype) = (b.dims(x).to_vec(), b.dtype(x));
    let least = b.scalar(dtype, f64::NEG_INFINITY);
    let largest = b.reduce(x, least, ScalarOp::Maximum, &[1]);
    let spread = b.broadcast(largest, &dims, &[0]);
    let shifted = b.sub(x, spread);
    let e = b.unary(ScalarOp::Exp, shifted);
    let zero = b.scalar(dtype, 0.0);
    let sum = b.reduce(e, zero, ScalarOp::Add, &[1]);
    let log = b.unary(ScalarOp::Log, sum);
    b.add(largest, log)
}

/// Log-probability that each leaf receives from its parent for its last label: all of the parent's, or the part that ends in a
/// blank if the parent has the same last label.
fn from_parents(b: &mut Builder, s: BeamSizes, leaves: &BeamLeaves, is_child: InstId) -> InstId {
    let dims = [s.batch, s.width, s.width];
    let (own, of_parent) = (b.broadcast(leaves.last, &dims, &[0, 1]), b.broadcast(leaves.last, &dims, &[0, 2]));
    let is_same = b.compare(Direction::Eq, own, of_parent);
    let (blank, total) = (b.broadcast(leaves.blank, &dims, &[0, 2]), b.broadcast(leaves.total, &dims, &[0, 2]));
    let passed = b.select(is_same, blank, total);
    let nothing = b.full_like(passed, f64::NEG_INFINITY);
    let passed = b.select(is_child, passed, nothing);
    let least = b.scalar(b.dtype(passed), f64::NEG_INFINITY);
    b.reduce(passed, least, ScalarOp::Maximum, &[2])
}

/// Best nodes among the leaves and their children, with their origins: `leaf * classes` for a leaf, plus 1 + label for a child.
fn grow(b: &mut Builder, s: BeamSizes, g: &Growth) -> Ranked {
    let dims = [s.batch, s.width];
    let number = b.iota(DType::S32, &dims, 1);
    let by = b.full_like(number, s.classes);
    let own = b.mul(number, by);
    let start = best_of(b, g.total, own, s.width);
    let stunted = b.full(DType::Pred, &dims, 0.0);
    let BeamLeaves { total, blank, last, .. } = g.before;
    let state = [start.best, start.from, stunted, total, blank, last, g.emitted, g.is_child, g.total];
    let end = counted_loop(b, "ctc_beam_growth", s.width, &state, |b, k, parts| {
        let [best, from, stunted, total, blank, last, emitted, is_child, now] = parts[..] else { return parts };
        let zero = b.scalar(DType::S32, 0.0);
        let [of_total, of_blank, of_last, of_stunted] = [total, blank, last, stunted].map(|x| {
            let one = b.add_inst(Op::DynamicSlice(vec![s.batch, Dim::from(1)]), &[x, zero, k]);
            b.reshape(one, &[s.batch])
        });
        let leaf = Leaf { number: k, total: of_total, blank: of_blank, last: of_last, is_stunted: of_stunted };
        let children = b.add_inst(Op::DynamicSlice(vec![s.batch, s.width, Dim::from(1)]), &[is_child, zero, zero, k]);
        let children = b.reshape(children, &[s.batch, s.width]);
        let family = Family { children, last, now, emitted };
        let ranked = Ranked { best, from };
        let (ranked, stunted) = grow_leaf(b, s, &leaf, &family, &ranked, stunted);
        vec![ranked.best, ranked.from, stunted, total, blank, last, emitted, is_child, now]
    });
    Ranked { best: end[0], from: end[1] }
}

/// Best nodes so far, best first: arrays `[batch, width]`.
struct Ranked {
    /// Log-probabilities of the nodes.
    best: InstId,
    /// `s32`: origins of the nodes, encoded as by [`grow`].
    from: InstId,
}

/// Best `width` of some nodes; of equal ones the first.
fn best_of(b: &mut Builder, total: InstId, from: InstId, width: Dim) -> Ranked {
    let both = b.add_inst(Op::TopK { k: width, largest: true, kind: CompareKind::Total }, &[total]);
    let (best, at) = (b.get_tuple_element(both, 0), b.get_tuple_element(both, 1));
    Ranked { best, from: gather_slices(b, from, at, 1, 1) }
}

/// The leaf that currently grows: arrays `[batch]`, and its number.
struct Leaf {
    number: InstId,
    total: InstId,
    blank: InstId,
    last: InstId,
    /// `pred`: whether the leaf must not grow, because the beam dropped it and its parent produced it again.
    is_stunted: InstId,
}

/// Children, labels and probabilities of all leaves, for the growth of one of them.
struct Family {
    /// `pred[batch, width]`: mask of the leaves that are its children.
    children: InstId,
    /// `s32[batch, width]`: last label of each leaf.
    last: InstId,
    /// `[batch, width]`: log-probability of each leaf after the step.
    now: InstId,
    /// `[batch, classes - 1]`: log-probability of each label.
    emitted: InstId,
}

/// Adds the children of a leaf to the best nodes; also returns the updated mask of leaves that must not grow.
fn grow_leaf(
    b: &mut Builder,
    s: BeamSizes,
    leaf: &Leaf,
    family: &Family,
    ranked: &Ranked,
    stunted: InstId,
) -> (Ranked, InstId) {
    let labels = s.classes - 1;
    let dims = [s.batch, labels];
    // A leaf that is not better than the worst of the best nodes has no children among them.
    let worst = b.slice_axis(ranked.best, 1, s.width - 1, s.width);
    let worst = b.reshape(worst, &[s.batch]);
    let grows = b.compare(Direction::Gt, leaf.total, worst);
    let is_whole = b.unary(ScalarOp::Not, leaf.is_stunted);
    let grows = b.binary(ScalarOp::And, grows, is_whole);
    let number = b.iota(DType::S32, &dims, 1);
    let [last, blank, total] = [leaf.last, leaf.blank, leaf.total].map(|x| b.broadcast(x, &dims, &[0]));
    let is_same = b.compare(Direction::Eq, number, last);
    let passed = b.select(is_same, blank, total);
    let reached = b.add(family.emitted, passed);
    // Labels of children that are leaves are excluded: these children have their share, or fell out and cannot return.
    let square = [s.batch, s.width, labels];
    let label = b.iota(DType::S32, &square, 2);
    let own = b.broadcast(family.last, &square, &[0, 1]);
    let is_child = b.broadcast(family.children, &square, &[0, 1]);
    let is_label = b.compare(Direction::Eq, label, own);
    let is_label = b.binary(ScalarOp::And, is_label, is_child);
    let no = b.scalar(DType::Pred, 0.0);
    let is_leaf = b.reduce(is_label, no, ScalarOp::Or, &[1]);
    let is_new = b.unary(ScalarOp::Not, is_leaf);
    let grows_all = b.broadcast(grows, &dims, &[0]);
    let is_new = b.binary(ScalarOp::And, is_new, grows_all);
    let nothing = b.full_like(reached, f64::NEG_INFINITY);
    let reached = b.select(is_new, reached, nothing);
    let lost = has_fallen(b, s, family, ranked, reached);
    let lost = b.binary(ScalarOp::And, lost, family.children);
    let grows_wide = b.broadcast(grows, &[s.batch, s.width], &[0]);
    let lost = b.binary(ScalarOp::And, lost, grows_wide);
    let stunted = b.binary(ScalarOp::Or, stunted, lost);
    // Origin code: leaf * classes + label + 1.
    let (classes, first) = (b.full_like(leaf.number, s.classes), b.full_like(leaf.number, 1.0));
    let base = b.mul(leaf.number, classes);
    let base = b.add(base, first);
    let from = b.add(number, base);
    let total = b.concatenate(&[ranked.best, reached], 1);
    let from = b.concatenate(&[ranked.from, from], 1);
    (best_of(b, total, from, s.width), stunted)
}

/// Mask of the leaves that are not among the best nodes after the labels up to their own have been tried: `pred[batch, width]`.
fn has_fallen(b: &mut Builder, s: BeamSizes, family: &Family, ranked: &Ranked, reached: InstId) -> InstId {
    let dims = [s.batch, s.width, s.classes - 1];
    let (number, own) = (b.iota(DType::S32, &dims, 2), b.broadcast(family.last, &dims, &[0, 1]));
    let is_before = b.compare(Direction::Lt, number, own);
    let every = b.full(DType::Pred, &[s.batch, s.width, s.width], 1.0);
    let [among_best, before] = [(ranked.best, every), (reached, is_before)].map(|(others, counts)| {
        let dims = b.dims(counts).to_vec();
        let (now, others) = (b.broadcast(family.now, &dims, &[0, 1]), b.broadcast(others, &dims, &[0, 2]));
        let is_better = b.compare(Direction::Gt, others, now);
        let is_better = b.binary(ScalarOp::And, is_better, counts);
        let ones = b.convert(is_better, DType::S32);
        let zero = b.scalar(DType::S32, 0.0);
        b.reduce(ones, zero, ScalarOp::Add, &[2])
    });
    let better = b.add(among_best, before);
    let has_fallen = compare_scalar(b, Direction::Ge, better, s.width);
    let is_nothing = compare_scalar(b, Direction::Eq, family.now, f64::NEG_INFINITY);
    b.binary(ScalarOp::Or, has_fallen, is_nothing)
}

/// Leaves of the beam that are made of the best nodes.
fn leaves_of(b: &mut Builder, s: BeamSizes, g: &Growth, ranked: &Ranked, t: InstId) -> BeamLeaves {
    let classes = b.full_like(ranked.from, s.classes);
    let leaf = b.div(ranked.from, classes);
    let rest = b.binary(ScalarOp::Remainder, ranked.from, classes);
    let one = b.full_like(rest, 1.0);
    let label = b.sub(rest, one);
    let is_new = compare_scalar(b, Direction::Gt, rest, 0.0);
    let before = &g.before;
    let of_leaf = [g.blank, g.label, before.last, before.length, before.node, before.parent];
    let [blank, own, last, length, node, parent] = of_leaf.map(|x| gather_slices(b, x, leaf, 1, 1));
    let [labels, way] = [before.labels, before.way].map(|x| {
        let by_leaf = b.transpose(x, &[0, 2, 1]);
        let taken = gather_slices(b, by_leaf, leaf, 1, 1);
        b.transpose(taken, &[0, 2, 1])
    });
    let new = number_of_child(b, s, g, &Child { label, length, parent: node }, t);
    let longer = b.add(length, one);
    let labels = put(b, labels, length, label, is_new);
    let way = put(b, way, longer, new, is_new);
    let nothing = b.full_like(ranked.best, f64::NEG_INFINITY);
    BeamLeaves {
        total: ranked.best,
        blank: b.select(is_new, nothing, blank),
        label: b.select(is_new, ranked.best, own),
        last: b.select(is_new, label, last),
        length: b.select(is_new, longer, length),
        node: b.select(is_new, new, node),
        parent: b.select(is_new, node, parent),
        labels,
        way,
    }
}

/// `x`, `s32[batch, n, width]`, with a value written at position `at` of each column for which `holds` is true.
fn put(b: &mut Builder, x: InstId, at: InstId, value: InstId, holds: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let number = b.iota(DType::S32, &dims, 1);
    let [at, value, holds] = [at, value, holds].map(|v| b.broadcast(v, &dims, &[0, 2]));
    let is_there = b.compare(Direction::Eq, number, at);
    let is_there = b.binary(ScalarOp::And, is_there, holds);
    b.select(is_there, value, x)
}

/// Children of leaves: `s32[batch, width]` each.
struct Child {
    label: InstId,
    /// Number of labels of the parent's prefix.
    length: InstId,
    parent: InstId,
}

/// Node number of each child: the number that a leaf has for it whose path contains the child, or a new one.
fn number_of_child(b: &mut Builder, s: BeamSizes, g: &Growth, child: &Child, t: InstId) -> InstId {
    let square = [s.batch, s.width, s.width];
    // Rows are children, columns are leaves.
    let at = child.length;
    let last = b.full_like(at, s.time - 1);
    let label_at = b.min(at, last);
    let one = b.full_like(at, 1.0);
    let behind = b.add(at, one);
    let of_parent = gather_slices(b, g.before.way, at, 1, 1);
    let number = gather_slices(b, g.before.way, behind, 1, 1);
    let label = gather_slices(b, g.before.labels, label_at, 1, 1);
    let (parent, own) = (b.broadcast(child.parent, &square, &[0, 1]), b.broadcast(child.label, &square, &[0, 1]));
    let passes = b.compare(Direction::Eq, of_parent, parent);
    let goes_on = b.compare(Direction::Eq, label, own);
    let is_through = b.binary(ScalarOp::And, passes, goes_on);
    let none = b.full_like(number, -1.0);
    let number = b.select(is_through, number, none);
    let least = b.scalar(DType::S32, -1.0);
    let known = b.reduce(number, least, ScalarOp::Maximum, &[2]);
    // New numbers of a step exceed those of all earlier steps; the root has 0.
    let width = b.full_like(t, s.width);
    let base = b.mul(t, width);
    let column = b.iota(DType::S32, &[s.batch, s.width], 1);
    let fresh = b.add(column, base);
    let fresh = b.add(fresh, one);
    let none = b.full_like(known, 0.0);
    let is_known = b.compare(Direction::Ge, known, none);
    b.select(is_known, known, fresh)
}
